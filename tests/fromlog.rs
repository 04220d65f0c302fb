//! `weir load from`: the mix of an edge's log, made into a script and replayed, comes back in the edge's log.
//!
//! Counts only: which routes, how many arrivals. The times of a run are not asserted.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Largest difference of a share between log and replay, in percentage points; of a count, in percent.
const TOLERANCE: f64 = 2.0;

/// The clients of the first log: three kinds of sessions, ids with different frequencies, a rate that changes.
const KNOWN: &str = r#"
config:
  phases:
    - { duration: 5, arrivalRate: 100 }
    - { duration: 10, arrivalRate: 250 }
  variables:
    user: [1, 1, 1, 1, 2, 2, 3, 4, 5, 6]
    article: ["a-first-one", "the-second-one"]
scenarios:
  - weight: 50
    flow: [{ get: { headers: { user-agent: "{{ $uuid }}" }, url: "/" } }, { think: "300ms" }, { get: { headers: { user-agent: "{{ $uuid }}" }, url: "/users/{{ user }}" } }, { get: { headers: { user-agent: "{{ $uuid }}" }, url: "/app.css" } }]
  - weight: 30
    flow: [{ get: { headers: { user-agent: "{{ $uuid }}" }, url: "/" } }, { get: { headers: { user-agent: "{{ $uuid }}" }, url: "/blog/{{ article }}?page={{ $randomNumber(1, 3) }}" } }]
  - weight: 20
    flow: [{ post: { headers: { user-agent: "{{ $uuid }}" }, url: "/users/{{ user }}/orders" } }, { think: "200ms" }, { get: { headers: { user-agent: "{{ $uuid }}" }, url: "/old", followRedirect: false } }]
"#;

struct Edge {
    child: Child,
    url: String,
    log: PathBuf,
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An edge that answers everything itself. Its log has the number of the request on its connection: a virtual user has
/// one connection.
fn edge(room: &Path, name: &str) -> Edge {
    let port = support::free_port();
    let (file, log) = (room.join(format!("{name}.conf")), room.join(format!("{name}.log")));
    let text = format!(
        "events {{ worker_connections 4096; }}
error_log {name}.error.log; pid {name}.pid;
http {{
    log_format own '$connection_requests $remote_addr [$msec $request_time] \"$request\" $status \"$http_user_agent\"';
    access_log {} own;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 ok; }} location /old {{ return 302 /; }} }}
}}",
        log.display()
    );
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(WEIR);
    command.args(["edge", "-p"]).arg(room).arg("-c").arg(&file).args(["-g", "daemon off;"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir runs");
    support::within("the edge listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    Edge { child, url: format!("http://127.0.0.1:{port}"), log }
}

fn load(arguments: &[&str]) -> Output {
    let output = Command::new(WEIR).arg("load").args(arguments).stdin(Stdio::null()).output().expect("weir runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The requests of a log by route, and its arrivals.
fn counted(log: &Path) -> (BTreeMap<String, f64>, u64) {
    let (mut routes, mut arrivals) = (BTreeMap::new(), 0);
    for line in std::fs::read_to_string(log).expect("a log").lines() {
        arrivals += u64::from(line.starts_with("1 "));
        let request = line.split('"').nth(1).expect("a request");
        let words: Vec<&str> = request.split(' ').collect();
        let digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
        let parts: Vec<&str> = words[1].split('/').map(|part| if digit(part) { ":id" } else { part }).collect();
        *routes.entry(format!("{} {}", words[0], parts.join("/"))).or_insert(0.0) += 1.0;
    }
    let all: f64 = routes.values().sum();
    routes.values_mut().for_each(|count| *count *= 100.0 / all);
    (routes, arrivals)
}

/// The durations and the arrivals of a script's phases.
fn phases(script: &str) -> Vec<(u64, u64)> {
    let number = |line: &str, key: &str| {
        let digits = line.split(key).nth(1)?.split([',', ' ']).find(|word| !word.is_empty())?;
        digits.parse::<u64>().ok()
    };
    let phase = |line: &str| Some((number(line, "duration: ")?, number(line, "arrivalCount: ")?));
    script.lines().filter_map(phase).collect()
}

#[test]
fn a_log_becomes_a_script_whose_replay_has_the_same_mix() {
    let room = support::scratch("fromlog");
    let first = edge(&room, "first");
    let (known, script) = (room.join("known.yml"), room.join("mix.yml"));
    std::fs::write(&known, KNOWN).unwrap();
    load(&["-q", "--seed", "1", "-t", &first.url, known.to_str().unwrap()]);
    let (shares, arrivals) = counted(&first.log);
    assert_eq!(arrivals, 3_000);

    let second = edge(&room, "second");
    let (conf, log, out) = (room.join("first.conf"), first.log.to_str().unwrap(), script.to_str().unwrap());
    let made = load(&["from", log, "--conf", conf.to_str().unwrap(), "--format", "own", "-t", &second.url, "-o", out]);
    let notes = String::from_utf8_lossy(&made.stderr);
    assert!(notes.contains("have an empty body") && notes.contains("does not follow redirects"), "{notes}");
    let text = std::fs::read_to_string(&script).unwrap();
    for part in ["/users/{{ s", "think: ", "followRedirect: false", "302: 100.0 %", "(asset)"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    // The rate changes once. A second in which one phase becomes the other may be a phase of its own.
    let phases = phases(&text);
    assert_eq!(phases.iter().map(|(_, arrivals)| arrivals).sum::<u64>(), arrivals, "{text}");
    let mut long: Vec<(u64, u64)> = phases.iter().copied().filter(|(seconds, _)| *seconds > 2).collect();
    long.sort_by_key(|(_, arrivals)| *arrivals);
    let rates: Vec<f64> = long.iter().map(|(seconds, arrivals)| *arrivals as f64 / *seconds as f64).collect();
    assert!(phases.len() <= 4 && rates.len() == 2, "{phases:?}");
    assert!((rates[0] / 100.0 - 1.0).abs() < 0.1 && (rates[1] / 250.0 - 1.0).abs() < 0.1, "{phases:?}");

    // Another seed: with the same one, the replay would draw the scenarios in the order of the first run.
    load(&["-q", "--seed", "2", "--workers", "1", out]);
    let (again, arrived) = counted(&second.log);
    assert_eq!(arrived, arrivals);
    assert_eq!(shares.keys().collect::<Vec<_>>(), again.keys().collect::<Vec<_>>());
    for (route, share) in &shares {
        assert!((again[route] - share).abs() <= TOLERANCE, "{route}: {share:.1} % became {:.1} %", again[route]);
    }
    std::fs::remove_dir_all(room).unwrap();
}

#[test]
fn the_command_line_names_its_problems() {
    let room = support::scratch("fromlog-flags");
    let (log, conf) = (room.join("a.log"), room.join("a.conf"));
    std::fs::write(&log, "GET / x\n").unwrap();
    std::fs::write(&conf, "http { log_format bare '$status $request'; }").unwrap();
    let (log, conf) = (log.to_str().unwrap(), conf.to_str().unwrap());
    for (arguments, why) in [
        (vec![log], "no line has the form combined"),
        (vec!["/none.log"], "/none.log: No such file"),
        (vec![log, "--format", "mine"], "name the nginx.conf with this log_format: --conf FILE"),
        (vec![log, "--conf", conf], "--conf needs --format NAME"),
        (vec![log, "--conf", conf, "--format", "mine"], "has no log_format mine"),
        (vec![log, "--conf", conf, "--format", "bare"], "has no time"),
        (vec![log, "--format", "$request $status"], "--format needs $request or $request_uri, and $time_local"),
        (vec![log, "--speed", "0"], "a number from"),
    ] {
        let mut command = Command::new(WEIR);
        let output = command.args(["load", "from"]).args(&arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(why), "{arguments:?}: {said}");
    }
    std::fs::remove_dir_all(room).unwrap();
}
