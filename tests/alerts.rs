//! `dashboard_alert` of a real edge: what receivers get while its requests fail, and when they succeed again.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use needs::{Need, cases};
use serde_json::Value;

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program("python3")] => trouble_its_end_and_a_reload_are_told;
        [Need::Program("python3"), Need::Program("openssl")] => only_a_trusted_receiver_gets_alerts;
    ])
}

/// A process that ends with its test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Room(PathBuf);

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Room {
    fn new(name: &str) -> Room {
        let room = support::scratch(name);
        std::fs::create_dir_all(room.join("logs")).unwrap();
        Room(room)
    }

    /// Starts an edge whose requests go to `app`, with these lines at the top of its file.
    fn edge(&self, lines: &str, port: u16, app: u16) -> Ends {
        self.write(lines, port, app);
        let mut command = Command::new(support::binary(&self.0));
        command.arg("-p").arg(&self.0).args(["-c", "n.conf"]).env("LANG", "C.UTF-8").env_remove("LC_ALL");
        command.env("HOOK", lines.split_whitespace().find(|word| word.starts_with("http")).unwrap_or_default());
        let edge = Ends(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        support::within("the edge listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        edge
    }

    fn write(&self, lines: &str, port: u16, app: u16) {
        let text = format!(
            "daemon off; pid edge.pid; error_log logs/error.log info;\n{lines}\nevents {{ }}\nhttp {{ access_log off; \
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{app}; }} }} }}\n"
        );
        std::fs::write(self.0.join("n.conf"), text).unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.0.join("logs/error.log")).unwrap_or_default()
    }

    fn receiver(&self, port: u16, more: &[&str]) -> Ends {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/alert_receiver.py");
        let mut command = Command::new("python3");
        command.arg(script).arg(port.to_string()).arg(self.0.join("got.jsonl")).args(more);
        let receiver = Ends(command.stderr(Stdio::null()).spawn().unwrap());
        support::within("the receiver listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        receiver
    }

    /// The requests so far, without those that are refused for ever.
    fn got(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.join("got.jsonl")).unwrap_or_default();
        let all = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.filter(|got| got["path"] != "/gone").collect()
    }
}

/// Sends requests until it is dropped.
struct Load(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Load {
    fn to(port: u16) -> Load {
        let ends = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let until = ends.clone();
        std::thread::spawn(move || {
            while !until.load(std::sync::atomic::Ordering::Relaxed) {
                if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                    let _ = stream.write_all(b"GET / HTTP/1.0\r\n\r\n");
                    let _ = stream.read_to_end(&mut Vec::new());
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Load(ends)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Answers every request with 200.
fn application(port: u16) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
}

fn trouble_its_end_and_a_reload_are_told() {
    let room = Room::new("alerts");
    let [edge_port, app, hook] = [(); 3].map(|()| support::free_port());
    // The first two tries are refused.
    let _receiver = room.receiver(hook, &["--fail", "2"]);
    let lines = format!(
        "# http://127.0.0.1:{hook}/services/secret\ndashboard off;\ndashboard_alert env:HOOK after=2s from=failing name=shop lang=ko;\n\
         dashboard_alert http://127.0.0.1:{hook}/gone format=slack after=2s from=failing;\n"
    );
    let edge = room.edge(&lines, edge_port, app);
    let _load = Load::to(edge_port);
    support::within("trouble is told", || room.got().iter().any(|got| got["status"] == 200));
    let got = room.got();
    // A busy machine, which is named as the limit, may have been told too.
    let statuses: Vec<u64> = got.iter().map(|got| got["status"].as_u64().unwrap()).collect();
    assert!(
        statuses.starts_with(&[503, 503, 200]) && statuses[3..].iter().all(|status| *status == 200),
        "{statuses:?}"
    );
    let (path, body) = (&got[2]["path"], &got[2]["body"]);
    assert_eq!((path.as_str(), got[2]["type"].as_str()), (Some("/services/secret"), Some("application/json")));
    assert_eq!(
        (body["event"].as_str(), body["state"].as_str(), body["name"].as_str()),
        (Some("begins"), Some("failing"), Some("shop"))
    );
    let text = body["text"].as_str().unwrap();
    assert!(text.starts_with("weir shop: 요청 실패\n") && text.contains("%가 실패했습니다: "), "{body}");
    // A reload with the same line tells nothing again.
    let pid = std::fs::read_to_string(room.0.join("edge.pid")).unwrap();
    assert!(Command::new("kill").args(["-HUP", pid.trim()]).status().unwrap().success());
    application(app);
    support::within("the end is told", || room.got().last().is_some_and(|got| got["body"]["event"] == "ends"));
    // A busy machine may be named as the limit for a while: that is a change, and no new trouble.
    let got = room.got();
    let events = got[2..].iter().map(|got| got["body"]["event"].as_str().unwrap());
    assert_eq!(events.filter(|event| *event != "changes").collect::<Vec<_>>(), ["begins", "ends"], "{got:?}");
    let last = got.last().unwrap();
    assert!(last["body"]["text"].as_str().unwrap().starts_with("weir shop: 정상으로 돌아왔습니다 (요청 실패, "));
    // A receiver that refuses is told with its host, and stops nothing.
    let refused = "alert to 127.0.0.1: not delivered (begins): it answered with status 404 after 1 try";
    support::within("the failure is told", || room.log().contains(refused));
    let log = room.log();
    assert!(log.contains("alert to 127.0.0.1: delivered (begins)") && !log.contains("secret"), "{log}");
    drop(edge);
}

fn only_a_trusted_receiver_gets_alerts() {
    let room = Room::new("alerts-tls");
    let [edge_port, app, hook] = [(); 3].map(|()| support::free_port());
    let (certificate, key) = support::certificate(&room.0);
    let names = [&certificate, &key].map(|path| path.to_str().unwrap());
    let _receiver = room.receiver(hook, &["--certificate", names[0], "--key", names[1]]);
    let lines = format!(
        "dashboard_alert https://localhost:{hook} format=alertmanager after=1s trusted_certificate={};\n\
         dashboard_alert https://127.0.0.1:{hook}/untrusted after=1s;\n",
        names[0]
    );
    let _edge = room.edge(&lines, edge_port, app);
    let _load = Load::to(edge_port);
    support::within("the alert comes", || !room.got().is_empty());
    let got = room.got();
    assert_eq!(got[0]["path"].as_str(), Some("/api/v2/alerts"));
    let alert = &got[0]["body"][0];
    assert_eq!(
        (alert["labels"]["alertname"].as_str(), alert["labels"]["severity"].as_str()),
        (Some("WeirVerdict"), Some("critical"))
    );
    assert!(alert["startsAt"].as_str() < alert["endsAt"].as_str(), "{alert}");
    support::within("distrust is told", || room.log().contains("upstream SSL certificate verify error: (18:"));
    assert!(room.got().iter().all(|got| got["path"] == "/api/v2/alerts"), "{:?}", room.got());
}
