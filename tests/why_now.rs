//! `weir why` beside edges that run, of weir and of nginx: it names a fault that is there, calls a sound edge so, and says
//! why it gives no verdict.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use needs::{Need, cases};
use serde_json::Value;

const NGINX: &str = "/usr/sbin/nginx";
const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// The longest time until a process listens.
const PATIENCE: Duration = Duration::from_secs(20);
const LOG: &str = "log_format why '$remote_addr [$time_local] \"$request\" $status $body_bytes_sent $request_time $upstream_addr $upstream_status $upstream_connect_time $upstream_header_time $upstream_response_time';";

fn main() -> ExitCode {
    needs::run(cases![
        [] => a_weir_whose_table_is_full_is_named, a_sound_weir_is_called_so, what_is_no_edge_is_refused;
        [Need::Program(NGINX)] => an_nginx_whose_table_is_full_is_named_with_the_command_that_proves_it, an_nginx_without_times_in_its_log_gets_the_line_that_adds_them, an_edge_that_ends_meanwhile_gets_no_verdict;
    ])
}

/// Processes that end with the test.
struct System {
    dir: PathBuf,
    port: u16,
    edge: Child,
    others: Vec<Child>,
}

impl System {
    /// An edge before `weir origin`; `text` has @DIR@, @PORT@ and @APP@.
    fn start(name: &str, is_weir: bool, text: &str) -> System {
        let dir = std::env::temp_dir().join(format!("weir-test-why-now-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let [port, app] =
            [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap()).map(|free| free.local_addr().unwrap().port());
        let shown = dir.display().to_string();
        let text =
            text.replace("@DIR@", &shown).replace("@PORT@", &port.to_string()).replace("@APP@", &app.to_string());
        let head = format!("daemon off; pid {shown}/pid; error_log {shown}/error.log;\n");
        fs::write(dir.join("nginx.conf"), head + &text).unwrap();
        let origin = quiet(Command::new(WEIR).args(["origin", "--listen", &format!("127.0.0.1:{app}")]));
        listens(app);
        let conf = dir.join("nginx.conf");
        let mut command = Command::new(if is_weir { WEIR } else { NGINX });
        if is_weir {
            command.arg("edge");
        }
        let edge = quiet(command.arg("-c").arg(&conf));
        listens(port);
        System { dir, port, edge, others: vec![origin] }
    }

    /// Clients that ask for this as fast as they are answered, or at a rate.
    fn load(&mut self, words: &[&str]) {
        let url = format!("http://127.0.0.1:{}{}", self.port, words[0]);
        self.others.push(quiet(Command::new(WEIR).args(["load", &url, "-d", "60s"]).args(&words[1..])));
        // The first connections have to be there.
        std::thread::sleep(Duration::from_millis(700));
    }

    fn why(&self, words: &[&str]) -> (Value, Output) {
        let pid = self.edge.id().to_string();
        let output =
            Command::new(WEIR).args(["why", "--edge", &pid, "--json", "--for", "2s"]).args(words).output().unwrap();
        let run = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        if output.status.success() {
            schema::valid("why", &run);
        }
        (run, output)
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // A master process of nginx ends its workers.
        let _ = Command::new("kill").arg(self.edge.id().to_string()).status();
        let _ = self.edge.wait();
        for other in &mut self.others {
            let _ = other.kill();
            let _ = other.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn quiet(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn listens(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "nothing listens at {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A configuration with this many connections for each worker.
fn conf(connections: u64, log: &str) -> String {
    format!(
        "worker_processes 1;\nevents {{ worker_connections {connections}; }}\nhttp {{ {log}\n server {{ listen 127.0.0.1:@PORT@; location / {{ proxy_pass http://127.0.0.1:@APP@; }} }} }}\n"
    )
}

fn told(run: &Value, output: &Output) -> String {
    format!("{run:#}\n{}", String::from_utf8_lossy(&output.stderr))
}

/// The run beside an edge with 32 connections, of which 60 clients want one each.
fn of_a_full_table(name: &str, is_weir: bool) -> (System, Value, Option<i32>) {
    let log = format!("{LOG} access_log @DIR@/access.log why;");
    let mut system = System::start(name, is_weir, &conf(32, &log));
    system.load(&["/1k?delay=300ms", "-c", "60"]);
    let (run, output) = system.why(&[]);
    assert_eq!(
        (run["verdict"]["name"].as_str(), run["verdict"]["rule"].as_str()),
        (Some("SUSPECTED"), Some("B05")),
        "{}",
        told(&run, &output)
    );
    (system, run, output.status.code())
}

fn an_nginx_whose_table_is_full_is_named_with_the_command_that_proves_it() {
    let (system, run, code) = of_a_full_table("table-n", false);
    let command = run["prove"].as_str().unwrap();
    assert!(
        command
            .starts_with(&format!("weir lab why --prove --edge {NGINX} {}", system.dir.join("nginx.conf").display())),
        "{command}"
    );
    assert!(command.contains(" /1k --origin ") && command.contains("origin --listen"), "{command}");
    let roles = run["signals"]["processes"].as_array().unwrap();
    assert!(
        roles.iter().any(|one| one["role"] == "App" && one["name"].as_str().unwrap().starts_with("weir origin")),
        "{roles:?}"
    );
    assert_eq!((code, &run["log_format"]), (Some(0), &Value::Null));
}

fn a_weir_whose_table_is_full_is_named() {
    of_a_full_table("table-w", true);
}

fn a_sound_weir_is_called_so() {
    let mut system = System::start("sound", true, &conf(512, ""));
    system.load(&["/1k?delay=5ms", "-R", "40", "-c", "4"]);
    let (run, output) = system.why(&["--lang", "ko"]);
    assert_eq!(run["verdict"]["name"], "NOT SATURATED", "{}", told(&run, &output));
    let load = &run["signals"]["load"];
    assert!(load["sent"].as_u64() > Some(30) && load["sent"] == load["well"], "{load}");
    assert_eq!(output.status.code(), Some(0));
}

fn an_nginx_without_times_in_its_log_gets_the_line_that_adds_them() {
    let mut system = System::start("plain", false, &conf(512, "access_log @DIR@/access.log;"));
    let (run, output) = system.why(&[]);
    // Nobody asks: that is no verdict.
    assert_eq!(
        (run["verdict"]["name"].as_str(), output.status.code()),
        (Some("no verdict"), Some(3)),
        "{}",
        told(&run, &output)
    );
    system.load(&["/1k", "-R", "40", "-c", "4"]);
    let (run, output) = system.why(&[]);
    assert_eq!(run["verdict"]["name"], "NOT SATURATED", "{}", told(&run, &output));
    assert!(run["log_format"].as_str().unwrap().contains("$upstream_response_time"), "{run:#}");
    let unread: Vec<&str> = run["unread"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(unread.iter().any(|why| why.contains("lacks $request_time $upstream_addr")), "{unread:?}");
}

fn an_edge_that_ends_meanwhile_gets_no_verdict() {
    let system = System::start("ends", false, &conf(512, "access_log @DIR@/access.log;"));
    let pid = system.edge.id().to_string();
    let watch = Command::new(WEIR)
        .args(["why", "--edge", &pid, "--for", "30s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    let begun = Instant::now();
    let output = watch.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(15), "the watch goes on without the edge");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("no verdict") && text.contains(&pid), "{text}");
    assert_eq!(output.status.code(), Some(3));
}

fn what_is_no_edge_is_refused() {
    for (words, why) in [
        (&["why", "--edge", "1"][..], "process 1 is neither an nginx nor a weir"),
        (&["why", "--edge", "http://127.0.0.1:9/"], "127.0.0.1:9"),
        (&["why", "--for", "1s"], "2 seconds"),
    ] {
        let output = Command::new(WEIR).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && text.contains(why), "{words:?}: {text}");
    }
}
