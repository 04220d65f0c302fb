//! `weir top` on terminals of `script(1)`, in front of a running edge: it draws the dashboard's data, handles its
//! keys, and restores the terminal.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio};

use needs::{Need, cases};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ALTERNATE: &str = "\x1b[?1049h";
const BACK: &str = "\x1b[?1049l";

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Program("script")] => it_draws_and_takes_keys;
        [] => without_a_terminal_it_prints_once;
    ])
}

fn it_draws_and_takes_keys() {
    let edge = Edge::start();
    // Texts that appear on every machine, however busy: the verdict depends on the machine.
    for (size, key, more, expected) in [
        ((100, 30), "q", "", ["weir requests", "LIMIT", "Memory"]),
        ((40, 10), "\x03", "", ["weir requests", "LIMIT", "Memory"]),
        ((100, 30), "\x1b", "--lang=ko", ["weir 요청", "한도", "메모리"]),
    ] {
        let mut top = Top::start(size, &edge.url, more);
        let is_drawn = |text: &str| expected.iter().all(|part| words(text).contains(&squeezed(part)));
        let shown = top.until(|text| text.contains(ALTERNATE) && is_drawn(text));
        assert!(!shown.contains(BACK), "{shown:?}");
        top.press(key);
        let (status, all) = top.end();
        assert!(status.success(), "{size:?} {key:?}: {status} {all:?}");
        assert!(all.contains(BACK) && all.contains("\x1b[?25h"), "the terminal is as it was: {all:?}");
    }
}

fn without_a_terminal_it_prints_once() {
    let edge = Edge::start();
    let out = Command::new(WEIR).args(["top", &edge.url]).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success() && !text.contains('\x1b'), "{text}");
    assert!(text.contains("requests") && text.contains("LIMIT") && text.contains("Memory"), "{text}");
    let verdicts = ["● healthy", "▲ near a limit", "■ limited", "■ failing"];
    assert!(text.lines().nth(1).is_some_and(|line| verdicts.iter().any(|verdict| line.starts_with(verdict))), "{text}");
    let nobody = format!("http://127.0.0.1:{}/", support::free_port());
    let out = Command::new(WEIR).args(["top", "--once", &nobody]).output().unwrap();
    assert!(out.status.code() == Some(1) && !out.stderr.is_empty() && out.stdout.is_empty());
}

/// The output without cursor movements, colours and spaces: spaces may be written as movements.
fn words(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            chars.by_ref().skip(1).find(|c| c.is_ascii_alphabetic());
        } else if !c.is_whitespace() {
            out.push(c);
        }
    }
    out
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

struct Edge {
    url: String,
    child: Child,
    dir: std::path::PathBuf,
}

impl Edge {
    fn start() -> Edge {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (dir, port) = (support::scratch(&format!("top-{number}")), support::free_port());
        std::fs::create_dir_all(dir.join("logs")).unwrap();
        let text = format!(
            "daemon off; dashboard 127.0.0.1:{port}; pid p; error_log e; worker_processes 1;\nevents {{}} http {{}}"
        );
        std::fs::write(dir.join("nginx.conf"), text).unwrap();
        let prefix = format!("{}/", dir.display());
        let child =
            Command::new(WEIR).args(["edge", "-p", &prefix, "-c", "nginx.conf"]).stdout(Stdio::null()).spawn().unwrap();
        support::within("the dashboard answers", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Edge { url: format!("http://127.0.0.1:{port}/"), child, dir }
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// `weir top` on a terminal.
struct Top {
    script: Child,
    screen: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Top {
    fn start((columns, rows): (u32, u32), url: &str, more: &str) -> Top {
        let command = format!("stty cols {columns} rows {rows}; exec {WEIR} top {url} {more}");
        let mut script = Command::new("script");
        script.args(["-qefc", &command, "/dev/null"]).env("TERM", "xterm-256color");
        let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let screen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (mut out, written): (ChildStdout, _) = (script.stdout.take().unwrap(), screen.clone());
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut piece) {
                written.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
        Top { script, screen, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().unwrap()).into_owned()
    }

    fn until(&self, is_so: impl Fn(&str) -> bool) -> String {
        support::within("the screen shows it", || is_so(&self.text()));
        self.text()
    }

    fn press(&mut self, key: &str) {
        let stdin = self.script.stdin.as_mut().unwrap();
        stdin.write_all(key.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    fn end(mut self) -> (ExitStatus, String) {
        support::within("it ends", || self.script.try_wait().unwrap().is_some());
        let status = self.script.wait().unwrap();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        (status, self.text())
    }
}

impl Drop for Top {
    /// Without this, a remaining `weir top` would send requests to the next owner of the port. SIGTERM makes
    /// script(1) end its child.
    fn drop(&mut self) {
        if self.script.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = Command::new("kill").arg(self.script.id().to_string()).status();
            let _ = self.script.wait();
        }
    }
}
