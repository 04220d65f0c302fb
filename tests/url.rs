//! `weir load URL` from outside: its reports have the form of a script's, and Ctrl-C ends it with complete reports.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/schema.rs"]
mod schema;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A server that counts its answers: every tenth is a 404.
struct Server {
    url: String,
    seen: Arc<AtomicU64>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        let seen = Arc::new(AtomicU64::new(0));
        let counts = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let counts = counts.clone();
                thread::spawn(move || answer(stream, &counts));
            }
        });
        Server { url, seen }
    }

    fn seen(&self) -> u64 {
        self.seen.load(Ordering::SeqCst)
    }

    /// Waits until the server has seen this many requests.
    fn wait_for(&self, requests: u64) {
        while self.seen() < requests {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn answer(mut stream: TcpStream, seen: &AtomicU64) {
    let mut head = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|read| read > 0) {
        head.push(byte[0]);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            let status = if seen.fetch_add(1, Ordering::SeqCst) % 10 == 9 { "404 No" } else { "200 OK" };
            if write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nhello").is_err() {
                return;
            }
        }
    }
}

fn load(arguments: &[&str]) -> Output {
    Command::new(WEIR).arg("load").args(arguments).stdin(Stdio::null()).output().expect("weir runs")
}

fn begin(arguments: &[&str]) -> Child {
    let mut command = Command::new(WEIR);
    command.arg("load").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("weir runs")
}

fn report(path: &Path) -> Value {
    let report = serde_json::from_slice(&std::fs::read(path).expect("a report")).expect("JSON");
    schema::valid("load", &report);
    report
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn room(name: &str) -> (PathBuf, PathBuf, PathBuf) {
    let dir = support::scratch(name);
    (dir.join("run.json"), dir.join("run.html"), dir)
}

#[test]
fn its_reports_have_what_was_sent() {
    let server = Server::start();
    let (json, html, dir) = room("url");
    for (model, lags) in [(&["-d", "60s"][..], 0), (&["-R", "400"][..], 300)] {
        let before = server.seen();
        let mut flags = vec![&*server.url, "-n", "300", "-c", "4", "--workers", "2", "-o", text(&json)];
        flags.extend(["--html", text(&html)].iter().chain(model));
        let output = load(&flags);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("Statuses   200: 270   404: 30"), "{printed}");
        assert_eq!(server.seen() - before, 300);
        let report = report(&json);
        let counters = &report["aggregate"]["counters"];
        for (name, count) in [
            ("http.requests", 300),
            ("http.responses", 300),
            ("http.codes.200", 270),
            ("http.codes.404", 30),
            ("http.downloaded_bytes", 1500),
        ] {
            assert_eq!(counters[name], count, "{name} of {counters}");
        }
        let weir = &report["weir"];
        let count = |key: &str| weir[key]["count"].as_u64();
        assert_eq!((count("response"), count("service")), (Some(300), Some(300)));
        assert_eq!(count("schedule_lag"), Some(lags));
        assert_eq!(report["aggregate"]["summaries"]["http.response_time"]["count"], 300);
        assert_eq!(weir["targets"][0], server.url.trim_end_matches("/x"));
        let sum = |of: &Value| of.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>();
        assert_eq!(sum(&weir["series"]["counts"]["http.requests"]), 300);
        assert_eq!((&weir["incomplete"], &weir["dropped"]), (&Value::Array(Vec::new()), &0.into()));
        let page = std::fs::read_to_string(&html).unwrap();
        assert!(page.contains("300 requests answered") && !page.contains("virtual user"), "{page}");
    }
    let compared = load(&["compare", text(&json), text(&json)]);
    let printed = String::from_utf8_lossy(&compared.stdout);
    assert!(compared.status.success() && printed.contains("response p99, ms"), "{printed}");
    std::fs::remove_dir_all(dir).ok();
}

/// A server that answers the first request of each connection and closes the connection at the second, and the number of
/// requests that it has read.
fn closing() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicU64::new(0));
    let counts = seen.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut piece = [0; 2048];
            for _ in 0..2 {
                if stream.read(&mut piece).is_ok_and(|count| count > 0)
                    && counts.fetch_add(1, Ordering::SeqCst).is_multiple_of(2)
                {
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok();
                }
            }
        }
    });
    Server { url, seen }
}

#[test]
fn a_request_whose_connection_is_closed_is_a_failure_and_is_sent_once() {
    let (json, _, dir) = room("url-closing");
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST"] {
        let server = closing();
        let output = load(&[&server.url, "-X", method, "-n", "6", "-c", "1", "-o", text(&json)]);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("Statuses   200: 3") && printed.contains("3 failed: 3 errors"), "{method}: {printed}");
        let counters = &report(&json)["aggregate"]["counters"];
        assert_eq!((&counters["http.requests"], &counters["errors.ECONNRESET"]), (&6.into(), &3.into()), "{method}");
        assert_eq!(server.seen(), 6, "{method}");
    }
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn a_connection_carries_no_more_requests_than_it_may() {
    let server = Server::start();
    let (json, _, dir) = room("per-connection");
    let flags = ["-n", "40", "-c", "1", "--per-connection", "5", "-o", text(&json)];
    let output = load(&[&[&*server.url], &flags[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let connects = &report(&json)["aggregate"]["summaries"]["http.connect"]["count"];
    assert_eq!((server.seen(), connects.as_u64()), (40, Some(8)));
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn a_signal_ends_it_with_its_reports() {
    let server = Server::start();
    let (json, _, dir) = room("url-stopped");
    let child = begin(&[&server.url, "-R", "100", "-d", "600s", "-c", "2", "-o", text(&json)]);
    server.wait_for(20);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stdout));
    let report = report(&json);
    assert_eq!(report["weir"]["incomplete"][0], "a signal stopped the run before its end");
    let sent = report["aggregate"]["counters"]["http.requests"].as_u64().unwrap();
    // A request in transit when the signal comes counts as sent, and the server may not see it.
    assert!((20..=server.seen() + 2).contains(&sent), "{sent} of {}", server.seen());
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn what_was_due_and_never_sent_is_told() {
    // No process answers: each connection waits for its first answer until the end.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let (json, _, dir) = room("url-dropped");
    let output = load(&[&url, "-R", "100", "-d", "1s", "-c", "3", "--timeout", "2s", "-o", text(&json)]);
    let printed = String::from_utf8_lossy(&output.stdout);
    let report = report(&json);
    let (sent, dropped) = (&report["aggregate"]["counters"]["http.requests"], &report["weir"]["dropped"]);
    assert_eq!((sent.as_u64(), dropped.as_u64()), (Some(3), Some(97)), "{printed}");
    assert_eq!(report["aggregate"]["counters"]["errors.ETIMEDOUT"], 3);
    assert!(
        printed.contains("Incomplete: 97 requests were due, but weir never sent them: all 3 connections"),
        "{printed}"
    );
    assert_eq!(report["weir"]["generator"]["is_limit"], false, "the target was");
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn its_metrics_are_served_while_it_runs() {
    let server = Server::start();
    let address = format!("127.0.0.1:{}", support::free_port());
    let mut child = begin(&[&server.url, "-R", "50", "-d", "600s", "--prometheus", &address]);
    server.wait_for(50);
    let mut said = String::new();
    while !said.contains("weir_load_dropped_total 0") {
        said.clear();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n"), "{said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_report_without_a_place_begins_nothing() {
    let server = Server::start();
    for flag in ["-o", "--html"] {
        let output = load(&[&server.url, "-n", "1", flag, "/nowhere/at/all/x"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), server.seen()), (Some(2), 0), "{said}");
        assert!(said.contains("Path does not exist: /nowhere/at/all"), "{said}");
    }
}

#[test]
fn nobody_there_is_said_and_is_a_failure() {
    // A port on which no process listens: the test opened and closed it.
    let place = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ended = Command::new(WEIR).args(["load", &format!("http://{place}/"), "-n", "3", "-c", "1"]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("No request got an answer"), "{said}");
    let row = said.lines().find(|line| line.starts_with("response")).unwrap();
    assert!(row.contains(" - ") && !row.contains("0.000"), "{row}");
}

#[test]
fn a_place_without_its_scheme_is_asked_about() {
    for place in ["127.0.0.1:22400/1k", "localhost:22400"] {
        let ended = Command::new(WEIR).args(["load", place]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("did you mean http://{place}?")), "{said}");
    }
}

#[test]
fn a_scheme_is_known_in_any_case_and_a_strange_one_is_named() {
    let server = Server::start();
    let url = server.url.replace("http://", "HTTP://");
    assert!(load(&[&url, "-n", "3", "-c", "1"]).status.success());
    assert!(load(&["quick", "--count", "1", "--num", "1", &url]).status.success());
    assert_eq!(server.seen(), 4);
    let ended = load(&["ftp://127.0.0.1/x"]);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("ftp") && said.contains("http://"), "{said}");
}

#[test]
fn the_figures_of_ab_are_printed_and_quiet_is_one_line() {
    let server = Server::start();
    let (json, _, dir) = room("url-figures");
    let output = load(&[&server.url, "-n", "50", "-c", "2", "-o", text(&json)]);
    let printed = String::from_utf8_lossy(&output.stdout);
    for part in
        ["min     mean       sd", "connect ", "2 new connections", "5 failed: 0 errors, 5 answers of 400 or more"]
    {
        assert!(printed.contains(part), "{part}\n{printed}");
    }
    assert_eq!(report(&json)["aggregate"]["summaries"]["http.connect"]["count"], 2);
    let output = load(&[&server.url, "-n", "50", "-c", "2", "-q"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.starts_with("50 requests in ") && printed.contains(" p95 "), "{printed}");
    assert_eq!(printed.lines().count(), 1, "{printed}");
    let nobody = format!("127.0.0.1:{}", support::free_port());
    let output = load(&[&format!("http://{nobody}/"), "-n", "1"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(&format!("ECONNREFUSED, while connecting to {nobody}")), "{printed}");
    assert!(!printed.contains("upstream"), "{printed}");
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn a_certificate_that_is_not_accepted_has_a_hint() {
    let room = support::scratch("url-tls");
    let (certificate, key) = support::certificate(&room);
    let port = support::free_port();
    let conf = room.join("edge.conf");
    let server = format!(
        "listen 127.0.0.1:{port} ssl; ssl_certificate {}; ssl_certificate_key {}; location / {{ return 200; }}",
        certificate.display(),
        key.display()
    );
    let lines =
        format!("error_log edge.log; pid edge.pid; events {{ }} http {{ access_log off; server {{ {server} }} }}");
    std::fs::write(&conf, lines).unwrap();
    let mut command = Command::new(WEIR);
    command.args(["edge", "-p"]).arg(&room).arg("-c").arg(&conf).args(["-g", "daemon off;"]);
    let mut edge = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir runs");
    support::within("the edge listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("https://127.0.0.1:{port}/");
    let refused = String::from_utf8_lossy(&load(&[&url, "-n", "1"]).stdout).into_owned();
    let accepted = String::from_utf8_lossy(&load(&[&url, "-n", "1", "-k"]).stdout).into_owned();
    // A script has a key for it, too.
    let script = |name: &str, tls: &str, flags: &[&str]| {
        let file = room.join(name);
        let phases = "phases: [{ duration: 1, arrivalCount: 2 }]";
        let lines = format!(
            "config: {{ target: \"{url}\", {tls} {phases} }}\nscenarios: [{{ flow: [{{ get: {{ url: / }} }}] }}]\n"
        );
        std::fs::write(&file, lines).unwrap();
        String::from_utf8_lossy(&load(&[&[text(&file)], flags].concat()).stdout).into_owned()
    };
    let asked = script("asked.yml", "", &[]);
    let told = [script("flag.yml", "", &["-k"]), script("key.yml", "tls: { rejectUnauthorized: false },", &[])];
    edge.kill().ok();
    edge.wait().ok();
    assert!(refused.contains("_CERT") && refused.contains("add -k (--insecure)"), "{refused}");
    assert!(accepted.contains("Statuses   200: 1") && !accepted.contains("--insecure"), "{accepted}");
    let hint = "add -k (--insecure), or write config.tls.rejectUnauthorized: false in the script.";
    assert!(asked.contains("_CERT") && asked.matches(hint).count() == 1, "{asked}");
    for told in told {
        assert!(told.contains("http.codes.200") && !told.contains("--insecure"), "{told}");
    }
    std::fs::remove_dir_all(room).ok();
}

#[test]
fn quick_does_as_artillerys_quick_and_the_cloud_is_refused_by_name() {
    let server = Server::start();
    let (json, _, dir) = room("url-quick");
    let output = load(&["quick", "--count", "3", "--num", "4", "-o", text(&json), &server.url]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.seen(), 12);
    assert_eq!(report(&json)["aggregate"]["counters"]["vusers.completed"], 3);
    for (arguments, code, why) in [
        (&["quick", "ftp://x/"][..], 1, "Supported protocols: HTTP(S) and WS(S)"),
        (&["quick", "-c", "0", "http://x/"], 2, "at least 1"),
        (&["run-fargate", "--region", "eu-west-1", "test.yml"], 2, "weir load --agents redis://HOST"),
        (&["run", "--record", "test.yml"], 2, "-o run.json --html run.html"),
        (&["--record", "--key", "k", "test.yml"], 2, "-o run.json --html run.html"),
    ] {
        let output = load(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(why), "{arguments:?}: {said}");
    }
    std::fs::remove_dir_all(dir).ok();
}

#[test]
fn every_mistyped_key_of_an_invalid_script_is_named() {
    let dir = support::scratch("url-typos");
    let script = dir.join("typos.yml");
    std::fs::write(
        &script,
        "config:
  targt: http://127.0.0.1:1
  phases:
    - { duration: 1, arivalRate: 5 }
scenarios:
  - flwo:
      - gett: { url: / }
      - lop: [{ get: { url: /, ifTru: x } }]
        count: 3
",
    )
    .unwrap();
    let output = load(&["--check", text(&script)]);
    let said = String::from_utf8_lossy(&output.stderr);
    for (place, typo, meant) in [
        ("2:3", "targt", "target"),
        ("4:22", "arivalRate", "arrivalRate"),
        ("6:5", "flwo", "flow"),
        ("7:9", "gett", "get"),
        ("8:9", "lop", "loop"),
        ("8:32", "ifTru", "ifTrue"),
    ] {
        let line = said.lines().find(|line| line.contains(&format!("`{typo}`"))).unwrap_or_default();
        assert!(
            line.contains(&format!(":{place}:")) && line.contains(&format!("did you mean `{meant}`?")),
            "{typo}\n{said}"
        );
    }
    std::fs::write(&script, "config: { target: 'http://127.0.0.1:1', phases: [{ pause: 1 }] }\nscenarios: [{ flow: [{ get: { url: / } }] }]\n")
        .unwrap();
    let output = load(&["--check", text(&script)]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("have no virtual users"));
    std::fs::remove_dir_all(dir).ok();
}
