//! Runs every `tests/load/scripts/*.yml` with `weir load` against real servers, one libtest case per script.
//!
//! A script's comments contain its expected results; `tests/README.md` explains the words. The list of counters is
//! complete: an additional counter fails like a missing one. The scripts run against `load/servers.mjs`: Node's HTTP,
//! npm's ws and Socket.IO, as pinned in `apps/package-lock.json`. HTTP scripts run a second time over HTTP/2, where
//! every counter must be the same.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[path = "support/schema.rs"]
mod schema;
#[allow(dead_code)]
mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::Arc;

use libtest_mimic::{Arguments, Trial};
use serde_json::Value;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Scripts spend most of the time waiting for their next arrival.
    arguments.test_threads.get_or_insert(8);
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load");
    let room = support::scratch("load");
    let bench = Arc::new(Bench { servers: Servers::start(&home, &room), room });
    let mut scripts: Vec<PathBuf> = std::fs::read_dir(home.join("scripts"))
        .expect("folder is readable")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yml"))
        .collect();
    scripts.sort();
    let trial = |script: &PathBuf, over: Over| {
        let (bench, script) = (bench.clone(), script.clone());
        let name = script.file_stem().unwrap().to_string_lossy().into_owned();
        let name = if over == Over::Http2 { format!("http2::{name}") } else { name };
        Trial::test(name, move || bench.script(&script, over).map_err(Into::into))
    };
    let mut trials: Vec<_> = scripts.iter().map(|script| trial(script, Over::Http1)).collect();
    let runs_twice = |script: &&PathBuf| HTTP2.iter().any(|name| script.file_stem().unwrap() == *name);
    trials.extend(scripts.iter().filter(runs_twice).map(|script| trial(script, Over::Http2)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Scripts that run over HTTP/2 too.
const HTTP2: [&str; 14] = [
    "bodies",
    "captures",
    "conditions",
    "cookies_redirects",
    "expect_errors",
    "expect_fails",
    "hooks",
    "listeners_none",
    "loops",
    "max_vusers",
    "parallel",
    "payload",
    "processor",
    "rich",
];

/// The protocol of a script's requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Http1,
    Http2,
}

/// State that all scripts share.
struct Bench {
    servers: Servers,
    room: PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.room).ok();
    }
}

impl Bench {
    /// Runs one script; the error contains all that a reader needs.
    fn script(&self, script: &Path, over: Over) -> Result<(), String> {
        let text = std::fs::read_to_string(script).expect("script is readable");
        let meant = Meant::read(&text.replace("{http}", &self.servers.http(over).to_string()));
        let kind = if over == Over::Http2 { "http2.json" } else { "json" };
        let report = self.room.join(script.file_stem().unwrap()).with_extension(kind);
        let output = self.run(script, &report, &meant, over);
        let mut wrong = meant.wrong(&output);
        match std::fs::read(&report) {
            Ok(text) => wrong.push_str(&meant.wrong_in(&serde_json::from_slice(&text).expect("the report is JSON"))),
            Err(error) if !meant.counters.is_empty() => writeln!(wrong, "no report: {error}").unwrap(),
            Err(_) => {}
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Err(format!("{wrong}--- stderr\n{}--- stdout\n{}", text(&output.stderr), text(&output.stdout)))
    }

    fn run(&self, script: &Path, report: &Path, meant: &Meant, over: Over) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(["load", "--workers", "2"]).args(&meant.arguments).arg(script).arg("-o").arg(report);
        for (name, port) in &self.servers.ports {
            command.env(name.to_uppercase(), port.to_string());
        }
        command.env("HTTP", self.servers.http(over).to_string());
        if over == Over::Http2 {
            command.args(["--overrides", r#"{"config": {"http": {"http2": true}}}"#]);
        }
        command.envs(meant.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(script.parent().unwrap()).stdin(Stdio::null()).output().expect("weir runs")
    }
}

/// The expected results in a script's comments.
#[derive(Default)]
struct Meant {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    exit: i32,
    prints: Vec<String>,
    counters: BTreeMap<String, String>,
    summaries: Vec<String>,
}

impl Meant {
    fn read(text: &str) -> Meant {
        let mut meant = Meant::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
            let (word, rest) = line.split_once(": ").unwrap_or((line, ""));
            match word {
                "flags" => meant.arguments = rest.split(' ').map(str::to_owned).collect(),
                "env" => {
                    let (name, value) = rest.split_once('=').expect("NAME=value");
                    meant.environment.push((name.to_owned(), value.to_owned()));
                }
                "exit" => meant.exit = rest.parse().expect("an exit code"),
                "prints" => meant.prints.push(rest.to_owned()),
                "summary" => meant.summaries.push(rest.to_owned()),
                "count" => {
                    let (name, count) = rest.rsplit_once(' ').expect("a counter and its count");
                    meant.counters.insert(name.to_owned(), count.to_owned());
                }
                _ => {}
            }
        }
        meant
    }

    fn wrong(&self, output: &Output) -> String {
        let mut wrong = String::new();
        if output.status.code() != Some(self.exit) {
            writeln!(wrong, "ended with {}, not with {}", output.status, self.exit).unwrap();
        }
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        for text in self.prints.iter().filter(|text| !printed.contains(*text)) {
            writeln!(wrong, "not printed: {text}").unwrap();
        }
        wrong
    }

    fn wrong_in(&self, report: &Value) -> String {
        let mut wrong: String = schema::errors("load", report).iter().map(|error| format!("{error}\n")).collect();
        let part = |name: &str| report["aggregate"][name].as_object().expect("a part of the aggregate");
        for (name, count) in part("counters") {
            let meant = self.counters.get(name).map_or("absent", String::as_str);
            if !matches(meant, count.as_u64().unwrap_or(u64::MAX)) {
                writeln!(wrong, "{name}: {count}, meant: {meant}").unwrap();
            }
        }
        for (name, meant) in self.counters.iter().filter(|(name, _)| !part("counters").contains_key(*name)) {
            writeln!(wrong, "{name}: absent, meant: {meant}").unwrap();
        }
        if !self.summaries.is_empty() {
            let mut found: Vec<_> = part("summaries").keys().cloned().collect();
            found.sort();
            if found != self.summaries {
                writeln!(wrong, "summaries: {found:?}, meant: {:?}", self.summaries).unwrap();
            }
        }
        wrong
    }
}

/// `7`, or `3..9` if the count is random: both ends are allowed.
fn matches(meant: &str, count: u64) -> bool {
    match meant.split_once("..") {
        Some((least, most)) => (least.parse().unwrap()..=most.parse().unwrap()).contains(&count),
        None => meant.parse() == Ok(count),
    }
}

/// `servers.mjs`, running until the end of the tests.
struct Servers {
    child: Child,
    ports: BTreeMap<String, u16>,
}

impl Servers {
    /// The port of the server for the scripts.
    fn http(&self, over: Over) -> u16 {
        self.ports[if over == Over::Http2 { "web2" } else { "http" }]
    }

    fn start(home: &Path, room: &Path) -> Servers {
        let installed = home.with_file_name("apps").join("node_modules");
        assert!(installed.is_dir(), "the servers are not installed: npm ci --prefix tests/apps");
        let (cert, key) = support::certificate(room);
        let mut child = Command::new("node")
            .env("CERT", &cert)
            .env("KEY", &key)
            .arg(home.join("servers.mjs"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).expect("the servers print their ports");
        Servers { child, ports: serde_json::from_str(&line).expect("the ports are JSON") }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
