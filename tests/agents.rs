//! One run from several agents, with a real redis-server between them (Debian's `redis-server`).
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
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use needs::{Need, cases};
use serde_json::Value;
use support::{PATIENCE, within};

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
        [Need::Program("redis-server")] => three_agents_do_the_work_of_one, a_lost_agent_marks_the_run, agents_that_do_not_come_are_said, a_processor_on_an_agent_decides_the_exit_code, a_redis_that_starts_again_loses_nothing, a_user_of_redis_needs_few_rights;
        [Need::Program("redis-server"), Need::Program("openssl")] => agents_speak_tls_to_a_server_that_the_machine_trusts;
        [Need::Program("redis-server"), Need::Namespaces] => three_machines_load_one_target;
    ])
}

fn three_agents_do_the_work_of_one() {
    let redis = Redis::start("127.0.0.1", &[], "");
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents", &target.url, 2);
    let agents: Vec<_> = ["a", "a", "c"].map(|name| redis.agent(&mut Command::new(WEIR), name)).into();
    let (report, stdout) = redis.load(&room, 3, &mut Command::new(WEIR));
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
    let redis = Redis::start("127.0.0.1", &["--requirepass", "s3cret"], ":s3cret@");
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-lost", &target.url, 3);
    // A killed agent leaves its directory behind. The test's directory contains it, so both are removed together.
    let mut agents: Vec<_> =
        ["a", "b"].map(|name| redis.agent(Command::new(WEIR).env("TMPDIR", &room.dir), name)).into();
    let load = std::thread::scope(|scope| {
        let load = scope.spawn(|| redis.load(&room, 2, &mut Command::new(WEIR)));
        within("a third of the load", || target.asked().len() >= ROWS / 3);
        drop(agents.remove(1));
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
    let redis = Redis::start("127.0.0.1", &["--requirepass", "s3cret"], ":s3cret@");
    let room = Room::new("agents-none", "http://127.0.0.1:1", 1);
    let _agent = redis.agent(&mut Command::new(WEIR), "only");
    let load = |url: &str| {
        let args = ["load", "--agents", url, "-n", "2", "--agents-wait", "2s"];
        let output = Command::new(WEIR).args(args).arg(&room.script).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = load(&redis.url);
    assert!(code == Some(11) && said.contains("only 1 of 2 agents connected within 2 s (only)"), "{code:?} {said}");
    let none = format!("redis://127.0.0.1:{}", support::free_port());
    for (url, why) in [
        (redis.url.replace("s3cret", "gue55").as_str(), "refuses: WRONGPASS"),
        (&redis.url.replace(":s3cret@", ""), "refuses: NOAUTH"),
        (&redis.url.replace("redis://", "nats://"), "agents use Redis in place of NATS: write redis://HOST"),
        (&redis.url.replace("redis://", "rediss://"), "no connection to the Redis server"),
        (&none, "Connection refused"),
    ] {
        let (code, said) = load(url);
        assert!(code == Some(11) && said.contains(why), "{url}: {code:?} {said}");
        assert!(!said.contains("gue55") && !said.contains("s3cret"), "{said}");
    }
}

fn a_processor_on_an_agent_decides_the_exit_code() {
    let redis = Redis::start("127.0.0.1", &[], "");
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-exit", &target.url, 1);
    let code = "let n = 0; module.exports = { judge(context, ee, next) { if (++n === 20) artillery.suggestedExitCode = 17; next(); } };";
    std::fs::write(room.dir.join("tests/judge.js"), code).unwrap();
    let script = std::fs::read_to_string(&room.script).unwrap();
    let script = script
        .replace("scenarios:", "  processor: ./judge.js\nscenarios:")
        .replace("  - flow:\n", "  - flow:\n      - function: judge\n");
    std::fs::write(&room.script, script).unwrap();
    let agents: Vec<_> = ["a", "b"].map(|name| redis.agent(&mut Command::new(WEIR), name)).into();
    let output = Command::new(WEIR)
        .args(["load", "--agents", &redis.url, "-n", "2", "--env-pass", "AGENTS_TEST_TOKEN"])
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

fn a_redis_that_starts_again_loses_nothing() {
    let mut redis = Redis::start("127.0.0.1", &[], "");
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-again", &target.url, 5);
    let agents: Vec<_> = ["a", "b"].map(|name| redis.agent(&mut Command::new(WEIR), name)).into();
    let url = redis.url.clone();
    let (report, stdout) = std::thread::scope(|scope| {
        let load = scope.spawn(|| load(&url, &room, 2, &mut Command::new(WEIR)));
        within("a third of the load", || target.asked().len() >= ROWS / 3);
        redis.start_again();
        load.join().unwrap()
    });
    same_as_the_targets_own(&report, &target.asked());
    assert_eq!(report["weir"]["incomplete"], serde_json::json!([]), "{stdout}");
    for agent in agents {
        let said = agent.ends_well();
        assert!(said.contains("connection to the Redis server is lost") && said.contains("connected again"), "{said}");
    }
}

/// The user of Redis that the guide names, and a user that may not publish.
fn a_user_of_redis_needs_few_rights() {
    let user = "weir on >s3cret resetchannels &weir.v1.* -@all +publish +subscribe +ping";
    let users: Vec<&str> = ["--user"].into_iter().chain(user.split(' ')).collect();
    let redis = Redis::start("127.0.0.1", &users, "weir:s3cret@");
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-user", &target.url, 1);
    let agent = redis.agent(&mut Command::new(WEIR), "a");
    let (report, stdout) = redis.load(&room, 1, &mut Command::new(WEIR));
    same_as_the_targets_own(&report, &target.asked());
    assert_eq!(report["weir"]["incomplete"], serde_json::json!([]), "{stdout}");
    agent.ends_well();

    let mute = user.replace("+publish ", "");
    let users: Vec<&str> = ["--user"].into_iter().chain(mute.split(' ')).collect();
    let redis = Redis::start("127.0.0.1", &users, "weir:s3cret@");
    let output = Command::new(WEIR).args(["agent", &redis.url, "--once"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("refuses: NOPERM"), "{:?} {said}", output.status);
}

fn agents_speak_tls_to_a_server_that_the_machine_trusts() {
    let target = Target::start("127.0.0.1");
    let room = Room::new("agents-tls", &target.url, 1);
    let (certificate, key) = support::certificate(&room.dir);
    let (certificate, port) = (certificate.to_str().unwrap(), support::free_port());
    let tls = ["--tls-port", &port.to_string(), "--tls-auth-clients", "no", "--tls-cert-file", certificate];
    let options = [&tls[..], &["--tls-key-file", key.to_str().unwrap()]].concat();
    let mut redis = Redis::start("127.0.0.1", &options, "");
    redis.url = format!("rediss://localhost:{port}");
    let agent = redis.agent(Command::new(WEIR).env("SSL_CERT_FILE", certificate), "a");
    let (report, _) = redis.load(&room, 1, Command::new(WEIR).env("SSL_CERT_FILE", certificate));
    same_as_the_targets_own(&report, &target.asked());
    agent.ends_well();
    let output = Command::new(WEIR).args(["agent", &redis.url, "--once"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("no TLS"), "{:?} {said}", output.status);
}

/// Three machines: network namespaces joined by a bridge.
fn three_machines_load_one_target() {
    let net = Namespaces::new();
    let redis = Redis::start(&net.gateway, &[], "");
    let target = Target::start(&net.gateway);
    let room = Room::new("agents-netns", &target.url, 2);
    let mut agents = Vec::new();
    for name in &net.names {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name, WEIR]);
        agents.push(redis.agent(&mut command, name));
    }
    let (report, stdout) = redis.load(&room, 3, &mut Command::new(WEIR));
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

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An agent of one run.
struct RunningAgent {
    process: Running,
    said: JoinHandle<String>,
}

impl RunningAgent {
    /// Waits for its end; returns the lines that it printed after the first.
    fn ends_well(mut self) -> String {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.process.0.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return self.said.join().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("an agent did not end after its run");
    }
}

/// A redis-server on a free port, without files on disk.
struct Redis {
    server: Running,
    words: Vec<String>,
    place: String,
    url: String,
}

impl Redis {
    /// Starts the server with these further options. `login` stands before the host in the URL.
    fn start(host: &str, options: &[&str], login: &str) -> Redis {
        let port = support::free_port().to_string();
        let always = ["--bind", host, "--port", &port, "--save", "", "--appendonly", "no", "--protected-mode", "no"];
        let words: Vec<String> = always.iter().chain(options).map(ToString::to_string).collect();
        let place = format!("{host}:{port}");
        Redis { server: redis_server(&words, &place), words, url: format!("redis://{login}{place}"), place }
    }

    /// Kills the server, and starts it again at the same place.
    fn start_again(&mut self) {
        self.server.0.kill().unwrap();
        self.server.0.wait().unwrap();
        self.server = redis_server(&self.words, &self.place);
    }

    /// Starts an agent for one run, and returns when it waits for the run.
    fn agent(&self, command: &mut Command, name: &str) -> RunningAgent {
        command.args(["agent", &self.url, "--name", name, "--once", "--workers", "1"]);
        let mut process = Running(command.stderr(Stdio::piped()).spawn().unwrap());
        let mut lines = BufReader::new(process.0.stderr.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert!(line.contains("waiting for a run"), "{line}");
        let said = std::thread::spawn(move || {
            let mut rest = String::new();
            lines.read_to_string(&mut rest).unwrap();
            rest
        });
        RunningAgent { process, said }
    }

    /// Runs the load by this command; returns the report and the printed text.
    fn load(&self, room: &Room, agents: usize, weir: &mut Command) -> (Value, String) {
        load(&self.url, room, agents, weir)
    }
}

fn redis_server(words: &[String], place: &str) -> Running {
    let mut command = Command::new("redis-server");
    let server = Running(command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    within("redis-server answers", || TcpStream::connect(place).is_ok());
    server
}

/// Runs the load on agents; returns the report and the printed text.
fn load(url: &str, room: &Room, agents: usize, weir: &mut Command) -> (Value, String) {
    let report = room.dir.join("report.json");
    let output = weir
        .args(["load", "--agents", url, "-n", &agents.to_string(), "--env-pass", "AGENTS_TEST_TOKEN", "-o"])
        .args([&report, &room.script])
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
