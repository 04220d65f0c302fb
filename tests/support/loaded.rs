//! A server that `weir load` loads, and that reports the counts of what it saw.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

use super::support;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A running server that counts.
pub struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    pub port: u16,
}

impl Server {
    /// Starts a program that prints its port.
    pub fn start(command: &mut Command) -> Server {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the server runs");
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        Server { child, out, port: line.trim().parse().expect("the server's port") }
    }

    /// Ends the server and returns its counts.
    pub fn saw(mut self) -> Value {
        assert!(Command::new("kill").arg(self.child.id().to_string()).status().unwrap().success());
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).expect("what the server saw")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Runs `weir load`.
pub fn load(arguments: &[&str]) -> Output {
    Command::new(WEIR).arg("load").args(arguments).stdin(Stdio::null()).output().expect("weir runs")
}

/// Runs `weir load`, which must exit with this code; returns its report.
pub fn report(code: i32, name: &str, arguments: &[&str]) -> Value {
    let room = support::scratch(name);
    let file = room.join("run.json");
    let output = load(&[arguments, &["--workers", "1", "-o", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    let report = read(&file);
    std::fs::remove_dir_all(room).ok();
    report
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// A counter of a report; 0 if it is not there.
pub fn counter(report: &Value, name: &str) -> u64 {
    report["aggregate"]["counters"][name].as_u64().unwrap_or(0)
}
