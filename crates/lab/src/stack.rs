//! A block's processes: client, edge and origin, started, measured and gone again.
//!
//! ```text
//!   lab ── stdin: what to do, then open ──► keeper  (first process of namespaces of its own, with root)
//!       ◄─ stdout: one answer ────────────    ├─ processes in their order, on hosts: origins, then the edge
//!                                             └─ client   weir load, once to warm up and once to measure
//! ```
//!
//! With root the keeper is in fresh network, process and mount namespaces: ports that rest, counters and mounts end with the
//! block. Without, it is a plain process. Either way everything ends with the keeper, and the keeper ends when its standard
//! input does: whatever becomes of the lab, by Ctrl-C, panic or `kill -9`, nothing of a block outlives it.

pub mod credits;
mod group;
pub mod keeper;
pub mod leftovers;
mod network;
mod spec;
mod started;
mod usage;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde_json::Value;
use weir_net::{clock, process, worker};

use group::Groups;

pub use leftovers::{Place, sweep};
pub use network::{CLIENT, Layout, ORIGIN, layout};
pub use spec::{Action, Again, Deed, HUB, Host, LIMIT_MAX, Process, Ready, Spec, Watch};

/// How often a waiting lab looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long a keeper may take beyond what its block may.
const GRACE: Duration = Duration::from_secs(20);
/// Bytes of an answer, and of what a keeper complains of.
const ANSWER_MAX: u64 = 16 << 20;

/// Why there is no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// Somebody told the lab to stop.
    Stopped,
    /// It could not be run; the text is for the user.
    Broken(String),
}

/// Whether this process can make namespaces: it is root, and `unshare` and `ip` work.
pub fn can_isolate() -> bool {
    process::is_root()
        && isolated(Path::new("/proc"))
            .args(["ip", "link", "set", "lo", "up"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
}

/// A command in namespaces of its own, which the caller adds. Its `/proc` shows its own processes; at `machine`, a directory
/// that only it sees so, is ours.
fn isolated(machine: &Path) -> Command {
    let inner = "unshare --net --pid --fork --mount-proc --kill-child";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("mount --bind /proc \"$0\"; exec {inner} \"$@\"")]).arg(machine);
    command
}

/// Runs one block by a keeper of the program `weir`, and gives its answer.
///
/// Hosts with limits get their control groups here, so that those go when the keeper has gone, however it went.
pub fn run(spec: &Spec, weir: &Path, stop: &AtomicBool) -> Result<Value, Failed> {
    spec.check().map_err(Failed::Broken)?;
    let groups = Groups::make(Path::new("/"), &group::lab_name(&spec.dir), &spec.hosts).map_err(Failed::Broken)?;
    let spec = &Spec { groups: groups.list(), ..spec.clone() };
    let mut keeper =
        Keeper::start(spec, weir).map_err(|error| Failed::Broken(format!("a block cannot be started: {error}")))?;
    let (tell, told) = mpsc::channel();
    let stdout = keeper.child.stdout.take();
    let listening = worker::block_aside("lab block", move || {
        let mut line = String::new();
        if let Some(stdout) = stdout {
            // An answer that cannot be read is none.
            let _ = BufReader::new(stdout.take(ANSWER_MAX)).read_line(&mut line);
        }
        // Nobody waits for it any more: then it does not matter.
        let _ = tell.send(line);
    });
    listening.map_err(|error| Failed::Broken(format!("a block cannot be heard: {error}")))?;
    let end = clock::precise() + spec.limit() + GRACE;
    let line = loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Failed::Stopped);
        }
        if clock::precise() > end {
            return Err(Failed::Broken(format!("a block took more than {} s", (spec.limit() + GRACE).as_secs())));
        }
        match told.recv_timeout(LOOK) {
            Ok(line) => break line,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break String::new(),
        }
    };
    let answer: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
    match (answer["error"].as_str(), answer.is_object()) {
        (None, true) => Ok(answer),
        (Some(error), _) => Err(Failed::Broken(error.to_owned())),
        (None, false) => Err(Failed::Broken(format!("a block ended without an answer{}", keeper.complaint()))),
    }
}

/// The keeper of a block; everything it keeps ends when this is dropped.
struct Keeper {
    child: Child,
}

impl Keeper {
    fn start(spec: &Spec, weir: &Path) -> std::io::Result<Keeper> {
        let mut command = match spec.is_isolated {
            true => {
                let machine = spec.machine_proc();
                std::fs::create_dir_all(&machine)?;
                let mut command = isolated(&machine);
                command.arg(weir);
                command
            }
            false => Command::new(weir),
        };
        command.args(["lab", "block"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is the lab's to hear.
        let mut child = process::spawn_on(&[], &mut command)?;
        if let Some(stdin) = &mut child.stdin {
            stdin.write_all(format!("{}\n", spec.to_json()).as_bytes())?;
        }
        Ok(Keeper { child })
    }

    /// What it said on standard error, for a message.
    fn complaint(&mut self) -> String {
        let mut text = String::new();
        drop(self.child.stdin.take());
        if let Some(stderr) = self.child.stderr.take() {
            let _ = stderr.take(4096).read_to_string(&mut text);
        }
        if text.trim().is_empty() { String::new() } else { format!(": {}", text.trim()) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The end of its input is what a keeper lives by; it has its own to kill before it goes.
        drop(self.child.stdin.take());
        let end = clock::precise() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && clock::precise() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Gone already is as good.
        let _ = process::kill_group(self.child.id());
        let _ = self.child.wait();
    }
}
