//! Runs one script: fills in ports and macros, runs `varnishtest`, then makes the checks that all scripts share.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support;

/// Longest time for an edge to end after QUIT, when all peers of the script are gone already. It ends at once; a busy
/// machine needs longer.
const END_LIMIT: Duration = Duration::from_secs(60);
/// `varnishtest` kills a script that runs longer; no script comes near this limit.
const SCRIPT_LIMIT_SECONDS: &str = "120";
/// Number of listen addresses of each script: `${listen}`, `${listen2}`, `${listen3}`.
const LISTENS: usize = 4;

/// State that all scripts share: the binary under test and the tools beside it.
pub struct Bench {
    /// The server under test, by a path whose last part is `nginx`.
    binary: PathBuf,
    home: PathBuf,
    scratch: PathBuf,
    /// True if the binary is nginx itself: scripts with `# weir only: why` are left out.
    pub is_oracle: bool,
    next_run: AtomicU32,
}

impl Bench {
    /// `WEIR_VTC_BINARY` names another server to test; `WEIR_VTC_ORACLE` declares that it is nginx.
    pub fn from_env() -> Self {
        let scratch = support::scratch("vtc");
        Self {
            binary: support::binary(&scratch),
            home: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"),
            scratch,
            is_oracle: std::env::var_os("WEIR_VTC_ORACLE").is_some(),
            next_run: AtomicU32::new(0),
        }
    }

    /// Runs one script; the error contains the reason, the script's log, and the edge's log.
    pub fn script(&self, path: &Path) -> Result<(), String> {
        let tmp = self.scratch.join(self.next_run.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir_all(tmp.join("room")).expect("script folder");
        let text = std::fs::read_to_string(path).expect("script is readable");
        // Keep the script's own name, because varnishtest prints it.
        let script = tmp.join(path.file_name().expect("a script's name"));
        std::fs::write(&script, strict(&text)).expect("script is written");
        let output = self
            .varnishtest(&script, &tmp.join("room"))
            .output()
            .map_err(|e| format!("varnishtest (apt: varnish): {e}"))?;
        let log = String::from_utf8_lossy(&output.stdout);
        let room = script_room(&tmp.join("room"));
        let ended = room.as_deref().map_or(Ok(()), end_edges);
        let verdict = match output.status.code() {
            Some(0) => ended.and_then(|()| room.as_deref().map_or(Ok(()), quiet_log)),
            Some(77) => Err("the script skipped itself; say `# weir only: why` or give it what it needs".to_owned()),
            _ => Err("the script failed".to_owned()),
        };
        let edge_log = room.map(|room| read(&room.join("error.log"))).unwrap_or_default();
        std::fs::remove_dir_all(&tmp).ok();
        verdict.map_err(|why| format!("{why}\n{log}\n--- error.log\n{edge_log}"))
    }

    fn varnishtest(&self, script: &Path, tmp: &Path) -> Command {
        let mut command = Command::new("varnishtest");
        command.args(["-L", "-v", "-t", SCRIPT_LIMIT_SECONDS]).stdin(Stdio::null());
        command.env("TMPDIR", tmp).env("WEIR_VTC_BINARY", &self.binary).env_remove("NGINX");
        let mut define = |name: &str, value: &str| {
            command.arg("-D").arg(format!("{name}={value}"));
        };
        for tool in ["edge", "await", "until", "secure", "names", "says", "shapes", "app"] {
            define(tool, &self.home.join(tool).display().to_string());
        }
        // `cargo xtask ci` installs the packages of PyPI there.
        define("python", &self.home.join("../target/python/bin/python").display().to_string());
        for number in 1..=LISTENS {
            let suffix = if number == 1 { String::new() } else { number.to_string() };
            let port = support::free_port();
            define(&format!("port{suffix}"), &port.to_string());
            define(&format!("listen{suffix}"), &format!("127.0.0.1:{port}"));
            if number == 1 {
                // A client without -connect connects to v1, which is the edge's first listener.
                define("v1_sock", &format!("127.0.0.1:{port}"));
            }
        }
        command.arg(script);
        command
    }
}

/// The script with `shell` blocks in which every command must succeed: varnishtest checks only the last command's
/// status.
fn strict(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("shell {") {
        Some(rest) => format!("shell {{set -e; {rest}\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

impl Drop for Bench {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.scratch).ok();
    }
}

/// The one folder that `varnishtest` left: the script's `${tmpdir}`.
fn script_room(tmp: &Path) -> Option<PathBuf> {
    std::fs::read_dir(tmp).ok()?.next()?.ok().map(|entry| entry.path())
}

/// Asks every edge of the script to end gracefully; kills and reports an edge that does not end. Ends the script's
/// applications, too.
fn end_edges(room: &Path) -> Result<(), String> {
    let listed = |file: &str| -> Vec<String> { read(&room.join(file)).lines().map(str::to_owned).collect() };
    let (pids, apps) = (listed("edge.pids"), listed("app.pids"));
    for pid in pids.iter().filter(|pid| is_running(pid)) {
        signal(pid, "-QUIT");
    }
    // A program that a shell starts in the background ignores QUIT.
    for pid in apps.iter().filter(|pid| is_running(pid)) {
        signal(pid, "-TERM");
    }
    for _ in 0..END_LIMIT.as_millis() / 10 {
        if !pids.iter().any(|pid| is_running(pid)) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for pid in pids.iter().filter(|pid| is_running(pid)) {
        signal(pid, "-KILL");
    }
    Err(format!("the edge did not end within {END_LIMIT:?} of QUIT"))
}

fn quiet_log(room: &Path) -> Result<(), String> {
    let all = read(&room.join("error.log")) + &read(&room.join("output.log"));
    match all.lines().find(|line| ["[alert]", "panicked at"].iter().any(|bad| line.contains(bad))) {
        Some(line) => Err(format!("the edge's log holds a line that no script may cause: {line}")),
        None => Ok(()),
    }
}

fn is_running(pid: &str) -> bool {
    // A zombie has ended; its parent, the script's shell, is gone.
    let state = read(Path::new(&format!("/proc/{pid}/stat")));
    state.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

fn signal(pid: &str, signal: &str) {
    Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status().ok();
}

fn read(path: &Path) -> String {
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
