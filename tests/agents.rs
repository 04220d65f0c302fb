//! One run from several agents, with a real nats-server between them (Debian's `nats-server`).
//!
//! The test has its own target: the merged report must equal the target's counts.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use needs::{Need, cases};
use serde_json::Value;
use support::PATIENCE;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ROWS: usize = 90;

/// Each virtual user sends one request, with the next row of a CSV file and a variable of the environment.
const SCRIPT: &str = "config:
  target: TARGET
  phases: [{duration: SECONDS, arrivalCount: 90}]
  payload: {path: ../data/rows.csv, fields: [row], order: sequence}
scenarios:
  - flow:
      - get: {url: '/?row={{ row }}&token={{ $env.AGENTS_TEST_TOKEN }}&secret={{ $env.AGENTS_TEST_SECRET }}&id={{ $uuid }}'}
      - log: 'row {{ row }}'
";

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program("nats-server")] => three_agents_do_the_work_of_one, a_lost_agent_marks_the_run, agents_that_do_not_come_are_said, a_processor_on_an_agent_decides_the_exit_code;
        [Need::Program("nats-server"), Need::Namespaces] => three_machines_load_one_target;
    ])
}

fn three_agents_do_the_work_of_one() {
    let nats = Nats::start("127.0.0.1", None);
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents", &target.url, 2);
    let agents: Vec<_> = ["a", "a", "c"].map(|name| nats.agent(&mut Command::new(WEIR), name)).into();
    let (report, stdout) = nats.load(&room, 3, &[]);
    same_as_the_targets_own(&report, &target.asked());
    let generator = &report["weir"]["generator"]["agents"];
    let mut names: Vec<_> = generator.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["a", "a-2", "c"], "{stdout}");
    assert_eq!(report["weir"]["incomplete"], serde_json::json!([]), "{stdout}");
    assert!(stdout.contains("agent a-2 runs share"), "{stdout}");
    for name in ["[a] row ", "[a-2] row ", "[c] row "] {
        assert_eq!(stdout.matches(name).count(), ROWS / 3, "{name} {stdout}");
    }
    for agent in agents {
        agent.ends_well();
    }
}

fn a_lost_agent_marks_the_run() {
    let nats = Nats::start("127.0.0.1", Some("s3cret"));
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-lost", &target.url, 3);
    // A killed agent leaves its directory behind. The test's directory contains it, so both are removed together.
    let mut agents: Vec<_> =
        ["a", "b"].map(|name| nats.agent(Command::new(WEIR).env("TMPDIR", &room.dir), name)).into();
    let load = std::thread::scope(|scope| {
        let load = scope.spawn(|| nats.load(&room, 2, &[]));
        let begun = Instant::now();
        while target.asked().len() < ROWS / 3 && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        agents.remove(1).0.kill().unwrap();
        load.join().unwrap()
    });
    let (report, stdout) = load;
    let incomplete = report["weir"]["incomplete"].to_string();
    assert!(incomplete.contains("agent b (share ") && incomplete.contains("of 2) was lost"), "{incomplete} {stdout}");
    assert!(stdout.contains("Incomplete: agent b"), "{stdout}");
    let counted = report["aggregate"]["counters"]["http.requests"].as_u64().unwrap() as usize;
    let asked = target.asked().len();
    // Agent a ran all of its half; agent b's counts are complete up to its last second.
    assert!((ROWS / 2..=asked).contains(&counted) && asked < ROWS, "counted {counted}, asked {asked}\n{stdout}");
    agents.remove(0).ends_well();
}

fn agents_that_do_not_come_are_said() {
    let nats = Nats::start("127.0.0.1", Some("s3cret"));
    let room = Room::new("agents-none", "http://127.0.0.1:1", 1);
    let _agent = nats.agent(&mut Command::new(WEIR), "only");
    let load = |url: &str| {
        let args = ["load", "--agents", url, "-n", "2", "--agents-wait", "2s"];
        let output = Command::new(WEIR).args(args).arg(&room.script).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = load(&nats.url);
    assert!(code == Some(11) && said.contains("only 1 of 2 agents connected within 2 s (only)"), "{code:?} {said}");
    let (code, said) = load(&nats.url.replace("s3cret", "wrong"));
    assert!(code == Some(11) && said.contains("Authorization Violation") && !said.contains("wrong"), "{code:?} {said}");
    let (_, said) = load("tls://127.0.0.1");
    assert!(said.contains("does not support TLS to NATS"), "{said}");
}

fn a_processor_on_an_agent_decides_the_exit_code() {
    let nats = Nats::start("127.0.0.1", None);
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-exit", &target.url, 1);
    let code = "let n = 0; module.exports = { judge(context, ee, next) { if (++n === 20) artillery.suggestedExitCode = 17; next(); } };";
    std::fs::write(room.dir.join("tests/judge.js"), code).unwrap();
    let script = std::fs::read_to_string(&room.script).unwrap();
    let script = script
        .replace("scenarios:", "  processor: ./judge.js\nscenarios:")
        .replace("  - flow:\n", "  - flow:\n      - function: judge\n");
    std::fs::write(&room.script, script).unwrap();
    let agents: Vec<_> = ["a", "b"].map(|name| nats.agent(&mut Command::new(WEIR), name)).into();
    let output = Command::new(WEIR)
        .args(["load", "--agents", &nats.url, "-n", "2", "--env-pass", "AGENTS_TEST_TOKEN"])
        .arg(&room.script)
        .env("AGENTS_TEST_TOKEN", "passed")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(17), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(target.asked().len(), ROWS);
    for agent in agents {
        agent.ends_well();
    }
}

/// Three machines: network namespaces joined by a bridge.
fn three_machines_load_one_target() {
    let net = Namespaces::new();
    let nats = Nats::start(&net.gateway, None);
    let target = Target::start(&net.gateway);
    let room = Room::new("agents-netns", &target.url, 2);
    let mut agents = Vec::new();
    for name in &net.names {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name, WEIR]);
        agents.push(nats.agent(&mut command, name));
    }
    let (report, stdout) = nats.load(&room, 3, &[]);
    let asked = target.asked();
    same_as_the_targets_own(&report, &asked);
    let mut by_address: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for (address, _) in &asked {
        *by_address.entry(*address).or_default() += 1;
    }
    assert_eq!(by_address.values().copied().collect::<Vec<_>>(), [ROWS / 3; 3], "{stdout}");
    for agent in agents {
        agent.ends_well();
    }
}

/// Checks that a complete run's report equals the target's counts.
fn same_as_the_targets_own(report: &Value, asked: &[(IpAddr, String)]) {
    let counters = &report["aggregate"]["counters"];
    assert_eq!(asked.len(), ROWS);
    for name in ["vusers.created", "vusers.completed", "http.requests", "http.codes.200"] {
        assert_eq!(counters[name], ROWS, "{name}");
    }
    for latency in ["response", "service", "schedule_lag"] {
        assert_eq!(report["weir"][latency]["count"], ROWS, "{latency}");
    }
    let value = |line: &str, name: &str| {
        let query = line.split(' ').nth(1).unwrap().split('?').nth(1).unwrap();
        query.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap_or_default().to_owned()
    };
    let mut rows: Vec<usize> = asked.iter().map(|(_, line)| value(line, "row=").parse().unwrap()).collect();
    rows.sort_unstable();
    assert_eq!(rows, (0..ROWS).collect::<Vec<_>>(), "each row once");
    let ids: std::collections::BTreeSet<_> = asked.iter().map(|(_, line)| value(line, "id=")).collect();
    assert_eq!(ids.len(), ROWS, "no two virtual users are the same");
    assert!(asked.iter().all(|(_, line)| value(line, "token=") == "passed" && !line.contains("hidden")), "{asked:?}");
}

/// A directory with the script, removed at the end.
struct Room {
    dir: PathBuf,
    script: PathBuf,
}

impl Room {
    fn new(name: &str, target: &str, seconds: u64) -> Room {
        let dir = support::scratch(name);
        for sub in ["tests", "data"] {
            std::fs::create_dir_all(dir.join(sub)).unwrap();
        }
        let rows: String = (0..ROWS).map(|row| format!("{row}\n")).collect();
        std::fs::write(dir.join("data/rows.csv"), rows).unwrap();
        let script = dir.join("tests/script.yml");
        let text = SCRIPT.replace("TARGET", target).replace("SECONDS", &seconds.to_string());
        std::fs::write(&script, text).unwrap();
        Room { dir, script }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A process that is ended with the test.
struct Running(Child);

impl Running {
    fn ends_well(mut self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("an agent did not end after its run");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A nats-server on a free port.
struct Nats {
    _server: Running,
    url: String,
}

impl Nats {
    fn start(host: &str, token: Option<&str>) -> Nats {
        let port = support::free_port();
        let mut command = Command::new("nats-server");
        command.args(["-a", host, "-p", &port.to_string()]).args(token.iter().flat_map(|token| ["--auth", token]));
        let server = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while TcpStream::connect((host, port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "nats-server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        let login = token.map_or(String::new(), |token| format!("{token}@"));
        Nats { _server: server, url: format!("nats://{login}{host}:{port}") }
    }

    /// Starts an agent for one run, and returns when it waits for the run.
    fn agent(&self, command: &mut Command, name: &str) -> Running {
        command.args(["agent", &self.url, "--name", name, "--once", "--workers", "1"]);
        let mut agent = Running(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(agent.0.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("waiting for a run"), "{line}");
        std::thread::spawn(move || lines.read_to_string(&mut String::new()));
        agent
    }

    /// Runs the load; returns the report and the printed text.
    fn load(&self, room: &Room, agents: usize, more: &[&str]) -> (Value, String) {
        let report = room.dir.join("report.json");
        let output = Command::new(WEIR)
            .args(["load", "--agents", &self.url, "-n", &agents.to_string(), "--env-pass", "AGENTS_TEST_TOKEN", "-o"])
            .args([report.as_path(), Path::new(&room.script)])
            .args(more)
            .env("AGENTS_TEST_TOKEN", "passed")
            .env("AGENTS_TEST_SECRET", "hidden")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let stdout = text(&output.stdout);
        assert!(output.status.success(), "{} {stdout} {}", output.status, text(&output.stderr));
        let report = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        (report, stdout)
    }
}

/// A target that records its requests.
struct Target {
    url: String,
    asked: Arc<Mutex<Vec<(IpAddr, String)>>>,
}

impl Target {
    fn start(host: &str) -> Target {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let all = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let all = all.clone();
                std::thread::spawn(move || answer(stream, &all));
            }
        });
        Target { url, asked }
    }

    fn asked(&self) -> Vec<(IpAddr, String)> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<(IpAddr, String)>>) {
    let Ok(peer) = stream.peer_addr() else { return };
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut first = None;
    for line in lines.map_while(Result::ok) {
        if !line.is_empty() {
            first.get_or_insert(line);
            continue;
        }
        asked.lock().unwrap().push((peer.ip(), first.take().unwrap_or_default()));
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

/// Three network namespaces on a bridge; removed at the end.
struct Namespaces {
    names: Vec<String>,
    bridge: String,
    gateway: String,
}

impl Namespaces {
    fn new() -> Namespaces {
        let id = std::process::id() % 10_000;
        // Link-local addresses do not collide with other networks.
        let subnet = format!("169.254.{}", 1 + id % 250);
        let bridge = format!("wab{id}");
        let names = (1..=3).map(|n| format!("wan{id}x{n}")).collect();
        let net = Namespaces { names, bridge, gateway: format!("{subnet}.1") };
        let ip = |line: String| Command::new("ip").args(line.split(' ')).output().is_ok_and(|out| out.status.success());
        let bridge = &net.bridge;
        let mut is_made = ip(format!("link add {bridge} type bridge"))
            && ip(format!("addr add {subnet}.1/24 dev {bridge}"))
            && ip(format!("link set {bridge} up"));
        for (index, name) in net.names.iter().enumerate() {
            let (out, address) = (format!("wav{id}x{index}"), format!("{subnet}.{}", index + 2));
            is_made = is_made
                && ip(format!("netns add {name}"))
                && ip(format!("link add {out} type veth peer name eth0 netns {name}"))
                && ip(format!("link set {out} master {bridge} up"))
                && ip(format!("-n {name} addr add {address}/24 dev eth0"))
                && ip(format!("-n {name} link set eth0 up"));
        }
        assert!(is_made, "no namespaces on {bridge}");
        net
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
        let _ = Command::new("ip").args(["link", "del", &self.bridge]).output();
    }
}
