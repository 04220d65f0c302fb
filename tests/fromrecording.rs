//! `weir load from` with a recording: its mix comes back in the log of the edge to which the script is replayed.
//!
//! Counts only: which routes, which sessions, which fields. The times of a run are not asserted.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use weir_recording::model::{
    Beginning, Ending, Losses, RecordedAnswer, RecordedBody, RecordedExchange, RecordedField, RecordedText,
    RecordedVersion, RecordingPart,
};
use weir_recording::write::Writer;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Largest difference of a share between recording and replay, in percentage points.
const TOLERANCE: f64 = 2.0;
/// Sessions of the recording that a test makes.
const SESSIONS: u64 = 2_400;

/// Clients that ask an edge while it records.
const KNOWN: &str = r#"
config:
  phases:
    - { duration: 5, arrivalRate: 200 }
scenarios:
  - weight: 60
    flow: [{ get: { headers: { user-agent: "{{ $uuid }}" }, url: "/items/{{ $randomNumber(1, 99) }}" } }, { think: "100ms" }, { get: { headers: { user-agent: "{{ $uuid }}", if-none-match: "x" }, url: "/app.css" } }]
  - weight: 40
    flow: [{ post: { headers: { user-agent: "{{ $uuid }}" }, url: "/orders", json: { item: "{{ $randomNumber(1, 9) }}", password: "secret" } } }]
"#;

struct Edge {
    child: Child,
    url: String,
    log: PathBuf,
    room: PathBuf,
}

impl Edge {
    /// An edge that answers everything itself. `words` is one more line of its server.
    fn start(room: &Path, name: &str, words: &str) -> Edge {
        let port = support::free_port();
        let (file, log) = (room.join(format!("{name}.conf")), room.join(format!("{name}.log")));
        let text = format!(
            "events {{ worker_connections 4096; }}
error_log {name}.error.log; pid {name}.pid;
http {{
    log_format own '\"$request\" $status $http_user_agent|$http_cookie|$content_length|$http_x_session';
    access_log {} own;
    server {{ listen 127.0.0.1:{port}; {words} 
        location / {{ return 200 ok; }} location /orders {{ proxy_pass http://127.0.0.1:{port}/kept; }}
        location = /kept {{ access_log off; record off; return 201; }} }}
}}",
            log.display()
        );
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(WEIR);
        command.args(["edge", "-p"]).arg(room).arg("-c").arg(&file).args(["-g", "daemon off;"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weir runs");
        support::within("the edge listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Edge { child, url: format!("http://127.0.0.1:{port}"), log, room: room.to_owned() }
    }

    /// Ends the edge in order, so that its recording has its end.
    fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-QUIT", &pid]).status().unwrap().success());
        support::within("the edge ends", || self.child.try_wait().unwrap().is_some());
    }

    /// The lines of the log.
    fn lines(&self) -> Vec<LogLine> {
        std::fs::read_to_string(&self.log).expect("a log").lines().map(LogLine::read).collect()
    }

    /// Makes a script of a recording, and runs it here. A field of each request shows its virtual user.
    fn replay(&self, recording: &Path, flags: &[&str]) -> (String, String) {
        let script = self.room.join("mix.yml");
        let (recording, out) = (recording.to_str().unwrap(), script.to_str().unwrap());
        let made = load(&[&["from", recording, "-t", &self.url, "-o", out], flags].concat());
        let text = std::fs::read_to_string(&script).unwrap();
        let marked = text.replace("headers: { ", "headers: { x-session: \"{{ $uuid }}\", ");
        std::fs::write(&script, marked).unwrap();
        load(&["-q", "--seed", "7", "--workers", "1", out]);
        (text, String::from_utf8_lossy(&made.stderr).into_owned())
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request of an edge's log.
struct LogLine {
    route: String,
    agent: String,
    cookie: String,
    length: String,
    session: String,
}

impl LogLine {
    fn read(line: &str) -> LogLine {
        let (request, rest) = line.strip_prefix('"').unwrap().split_once("\" ").unwrap();
        let words: Vec<&str> = request.split(' ').collect();
        let (_, fields) = rest.split_once(' ').unwrap();
        let fields: Vec<String> = fields.split('|').map(str::to_owned).collect();
        let [agent, cookie, length, session] = fields.try_into().unwrap();
        LogLine { route: route(words[0], words[1]), agent, cookie, length, session }
    }
}

/// `GET /items/:id`.
fn route(method: &str, target: &str) -> String {
    let path = target.split('?').next().unwrap();
    let part =
        |part: &str| if part.starts_with(|c: char| c.is_ascii_digit()) { ":id".to_owned() } else { part.to_owned() };
    format!("{method} {}", path.split('/').map(part).collect::<Vec<_>>().join("/"))
}

fn load(arguments: &[&str]) -> Output {
    let output = Command::new(WEIR).arg("load").args(arguments).stdin(Stdio::null()).output().expect("weir runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The share of each value, in per cent.
fn shares<T: Ord>(values: impl IntoIterator<Item = T>) -> BTreeMap<T, f64> {
    let mut counts = BTreeMap::new();
    values.into_iter().for_each(|value| *counts.entry(value).or_insert(0.0) += 1.0);
    let all: f64 = counts.values().sum();
    counts.values_mut().for_each(|count| *count *= 100.0 / all);
    counts
}

fn assert_near<T: Ord + std::fmt::Debug>(what: &str, before: &BTreeMap<T, f64>, after: &BTreeMap<T, f64>) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{what}");
    for (key, share) in before {
        assert!((after[key] - share).abs() <= TOLERANCE, "{what} {key:?}: {share:.1} % became {:.1} %", after[key]);
    }
}

/// The numbers of requests of the virtual users.
fn lengths(lines: &[LogLine]) -> Vec<usize> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    lines.iter().for_each(|line| *counts.entry(line.session.as_str()).or_default() += 1);
    counts.into_values().collect()
}

/// The exchanges of a session: a page, pictures asked for at the same time, items, and for one of four an order.
fn session(number: u64) -> Vec<RecordedExchange> {
    // 40 sessions begin in one second of the minute, the others are spread over it.
    let mut at_us = if number < 40 { 30_000_000 + number * 20_000 } else { number * 59_000_000 / SESSIONS };
    let mut all = vec![exchange(at_us, number, "GET", "/", "")];
    for picture in 0..number % 3 {
        all.push(exchange(at_us + 60_000, number, "GET", &format!("/static/{}/p.png", picture + 1), ""));
    }
    for item in 0..number % 5 {
        at_us += 1_000_000 + 100_000 * (number % 7);
        all.push(exchange(at_us, number, "GET", &format!("/items/{}?page={item}", number * 7 % 300), ""));
    }
    if number.is_multiple_of(4) {
        at_us += 900_000;
        all.push(exchange(at_us, number, "POST", "/orders", &format!("{{\"item\":{},\"tags\":{{}}}}", number % 900)));
    }
    all
}

fn exchange(at_us: u64, client: u64, method: &str, target: &str, body: &str) -> RecordedExchange {
    let field = |name: &str, value: &str| RecordedField { name: name.into(), value: RecordedText::plain(value) };
    let mut fields = vec![field("host", "shop.test"), field("user-agent", &format!("browser-{}", client % 3))];
    if client.is_multiple_of(2) {
        fields.push(field("cookie", &format!("sid=s{client}")));
    }
    if !body.is_empty() {
        fields.push(field("content-type", "application/json"));
    }
    let kept = (!body.is_empty()).then(|| RecordedText::plain(body));
    let answer = RecordedAnswer { status: 200, fields: Vec::new().into(), body: RecordedBody::default() };
    RecordedExchange {
        at_us,
        client,
        connection: client,
        version: RecordedVersion::Http11,
        is_tls: false,
        port: 80,
        method: method.into(),
        target: RecordedText::plain(target),
        fields: fields.into(),
        body: RecordedBody { length: body.len() as u64, hash: None, kept },
        answer: Some(answer),
        is_cut: false,
        took_us: 40_000,
        tries: Vec::new(),
        cache: None,
        generation: 1,
        location: 0,
        tunnel: 0,
    }
}

/// Writes a recording of these sessions; returns its exchanges.
fn record(path: &Path, sessions: impl Iterator<Item = u64>) -> Vec<RecordedExchange> {
    let program = "weir/0.1.0".to_owned();
    let beginning =
        Beginning { unix_us: 1_795_629_600_000_000, program, share_ppm: 500_000, key_id: 1, has_bodies: true };
    let mut writer = Writer::new(File::create(path).unwrap(), &beginning).unwrap();
    let mut all: Vec<RecordedExchange> = sessions.flat_map(session).collect();
    all.sort_by_key(|exchange| exchange.at_us);
    all.iter().for_each(|exchange| writer.put(&RecordingPart::Exchange(Box::new(exchange.clone()))).unwrap());
    let lost = Losses { queue: 3, ..Losses::default() };
    let recorded = all.len() as u64;
    writer.put(&RecordingPart::Ending(Ending { at_us: 60_000_000, exchanges: recorded + 3, recorded, lost })).unwrap();
    writer.finish().unwrap();
    all
}

#[test]
fn a_recording_becomes_a_script_whose_replay_has_the_same_mix() {
    let room = support::scratch("fromrecording");
    let recording = room.join("hour.rec");
    let recorded = record(&recording, 0..SESSIONS);
    let edge = Edge::start(&room, "replay", "");
    let (script, notes) = edge.replay(&recording, &["--speed", "10"]);
    for note in [
        &*format!(
            "is a recording with {} of {} requests. Lost: 3 because the queue was full",
            recorded.len(),
            recorded.len() + 3
        ),
        "The recording has 50.0 % of the clients, and the script has their load",
    ] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    assert!(script.contains("body: \"{{ s") && script.contains("cookie: { \"sid\": "), "{script}");

    let lines = edge.lines();
    let lengths = lengths(&lines);
    assert_eq!(lengths.len() as u64, SESSIONS);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let of = |one: &RecordedExchange| route(&text(&one.method), &text(&one.target.bytes));
    assert_near("route", &shares(recorded.iter().map(of)), &shares(lines.iter().map(|line| line.route.clone())));
    assert_near("length", &shares((0..SESSIONS).map(|number| session(number).len())), &shares(lengths));
    let agent = |one: &RecordedExchange| format!("browser-{}", one.client % 3);
    assert_near("agent", &shares(recorded.iter().map(agent)), &shares(lines.iter().map(|line| line.agent.clone())));
    let has_cookie = |line: &LogLine| line.cookie.starts_with("sid=s");
    let cookies = shares(recorded.iter().map(|one| one.client % 2 == 0));
    assert_near("cookie", &cookies, &shares(lines.iter().map(has_cookie)));
    // Each order has a body of the recording, and each session one cookie.
    let orders: BTreeSet<&str> =
        lines.iter().filter(|line| line.route == "POST /orders").map(|line| line.length.as_str()).collect();
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), ["20", "21", "22"]);
    let mut cookies: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in &lines {
        cookies.entry(&line.session).or_default().insert(&line.cookie);
    }
    assert!(cookies.values().all(|values| values.len() == 1));

    // The burst has a phase of its own, and no arrival is lost.
    let counts = |line: &str| Some(line.split("arrivalCount: ").nth(1)?.split(',').next()?.parse::<u64>().unwrap());
    assert_eq!(script.lines().filter_map(counts).sum::<u64>(), SESSIONS);
    std::fs::remove_dir_all(room).unwrap();
}

#[test]
fn what_an_edge_records_can_be_replayed() {
    let room = support::scratch("fromrecorded");
    let recording = room.join("traffic.rec");
    let words = format!("record {} client=$http_user_agent bodies=on;", recording.display());
    let first = Edge::start(&room, "first", &words);
    let known = room.join("known.yml");
    std::fs::write(&known, KNOWN).unwrap();
    load(&["-q", "--seed", "1", "-t", &first.url, known.to_str().unwrap()]);
    let before = first.lines();
    first.end();

    let second = Edge::start(&room, "second", "");
    let (script, notes) = second.replay(&recording, &[]);
    assert!(notes.contains(&format!("is a recording with all {} requests", before.len())), "{notes}");
    assert!(notes.contains("have hashes in the places of secrets"), "{notes}");
    for text in ["GET /app.css (condition)", "if-none-match: \"x\"", "content-type: \"application/json\""] {
        assert!(script.contains(text), "{text}\n{script}");
    }
    let after = second.lines();
    let routes = |lines: &[LogLine]| shares(lines.iter().map(|line| line.route.clone()));
    assert_near("route", &routes(&before), &routes(&after));
    let sessions: BTreeSet<&str> = before.iter().map(|line| line.agent.as_str()).collect();
    assert_eq!(lengths(&after).len(), sessions.len());
    let lengths_of = |lines: &[LogLine]| shares(lines.iter().map(|line| line.length.clone()));
    assert_near("content-length", &lengths_of(&before), &lengths_of(&after));
    std::fs::remove_dir_all(room).unwrap();
}

/// The run that a lab kept.
fn lab(room: &Path, words: &[&str]) -> Value {
    let store = room.join(words[0]);
    let output = Command::new(WEIR)
        .arg("lab")
        .args(words)
        .args(["--load", "mix.yml", "--plain", "--noisy", "--warmup", "0", "--store"])
        .arg(&store)
        .current_dir(room)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let files = std::fs::read_dir(&store).into_iter().flatten().flatten().map(|file| file.path());
    let kept = files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).max();
    let kept = kept.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap()
}

#[test]
fn the_script_of_a_recording_is_a_load_of_the_lab() {
    let room = support::scratch("fromrecording-lab");
    let recorded = record(&room.join("shop.rec"), (0..SESSIONS).step_by(40)).len() as u64;
    let (recording, script) = (room.join("shop.rec"), room.join("mix.yml"));
    load(&["from", recording.to_str().unwrap(), "--speed", "30", "-o", script.to_str().unwrap()]);
    // Only the server of the recorded host answers.
    let port = support::free_port();
    let conf = format!(
        "events {{ worker_connections 512; }}
http {{
    access_log off;
    server {{ listen 127.0.0.1:{port} default_server; return 503; }}
    server {{ listen 127.0.0.1:{port}; server_name shop.test; location / {{ return 200 ok; }} }}
}}"
    );
    std::fs::write(room.join("nginx.conf"), conf).unwrap();
    // Which scenarios are drawn is random: a block has about as many requests as the recording.
    let is_near = |requests: u64| requests * 2 > recorded && requests < recorded * 2;
    let run = lab(&room, &["ab", "--aa", "nginx.conf", "--pairs", "1", "--metric", "p50"]);
    let blocks = run["blocks"].as_array().unwrap();
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(is_near(block["requests"].as_u64().unwrap()) && block["errors"] == json!({}), "{recorded}: {block}");
    }
    let run = lab(&room, &["why", "nginx.conf", "--try-budget", "0"]);
    let answers = &run["signals"]["load"];
    // On a busy machine the generator may be its own limit; then the lab says nothing else.
    let is_busy = run["verdict"]["name"] == "no verdict" && answers.is_null();
    let statuses = &answers["statuses"];
    assert!(
        is_busy || (statuses == &json!({ "200": answers["sent"] }) && is_near(statuses["200"].as_u64().unwrap())),
        "{run:#}"
    );
    std::fs::remove_dir_all(room).unwrap();
}

#[test]
fn bad_recordings_are_refused_with_their_places() {
    let room = support::scratch("fromrecording-bad");
    let file = room.join("a.rec");
    record(&file, 0..SESSIONS);
    let whole = std::fs::read(&file).unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    for (bytes, flags, why) in [
        (whole[..whole.len() - 5].to_vec(), &[][..], "a.rec: the recording ends within the frame at byte "),
        (changed(8, 9), &[], "has version 9 of the format"),
        (changed(60, 1), &[], "a.rec: the frame at byte 12 has a wrong checksum"),
        (changed(15, 255), &[], "a.rec: the frame at byte 12 says that it is longer than a frame may be"),
        (whole.clone(), &["--host", "other.test"], "there is no request for the host other.test"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let output = Command::new(WEIR).args(["load", "from"]).arg(&file).args(flags).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(why), "{why}: {said}");
    }
    std::fs::remove_dir_all(room).unwrap();
}
