//! A block's processes: starts client, edge and origin, measures them and ends them.
//!
//! ```text
//!   lab ── stdin: the spec, stays open ───► keeper  (first process of namespaces of its own, with root)
//!       ◄─ stdout: one answer ────────────    ├─ processes in their order, on hosts: origins, then the edge
//!                                             └─ client   weir load, once to warm up and once to measure
//! ```
//!
//! With root, the keeper runs in new network, process and mount namespaces: ports in TIME_WAIT, counters and mounts
//! end with the block. Without root, it is a plain process. In both cases every process of the block ends with the
//! keeper, and the keeper ends when its standard input closes. So no part of a block outlives the lab, even after
//! Ctrl-C, a panic or `kill -9`.

pub mod credits;
mod group;
mod host;
pub mod keeper;
pub mod leftovers;
mod name;
mod network;
pub(crate) mod spec;
mod started;
mod usage;

use crate::said::{Said, say};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use serde_json::Value;
use weir_net::{clock, process, worker};

use group::Groups;

pub use host::{HUB, Host};
pub use leftovers::{LabDirectory, sweep};
pub use network::{CLIENT, Layout, ORIGIN, layout};
pub use spec::{Action, Again, Deed, LIMIT_MAX, LineWatch, Process, ReadyCondition, Spec};

/// How often a waiting lab checks whether it has to stop.
const LOOK: Duration = Duration::from_millis(100);
/// The extra time that a keeper gets beyond the limit of its block.
const GRACE: Duration = Duration::from_secs(20);
/// Most bytes of an answer, and of a keeper's standard error.
const ANSWER_MAX: u64 = 16 << 20;

/// Why a block gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockFailure {
    /// The user stopped the lab.
    Stopped,
    /// The block could not be run; the text is for the user.
    Broken(Said),
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

/// A command in new namespaces; the caller adds its words. Its `/proc` shows its own processes. The directory
/// `machine` shows the lab's `/proc` inside the new mount namespace.
fn isolated(machine: &Path) -> Command {
    let inner = "unshare --net --pid --fork --mount-proc --kill-child";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("mount --bind /proc \"$0\"; exec {inner} \"$@\"")]).arg(machine);
    command
}

/// Runs one block with a keeper of the program `weir`, and returns its answer.
///
/// Hosts with limits get their control groups here, so that the groups are removed however the keeper ended.
pub fn run(spec: &Spec, weir: &Path, stop: &AtomicBool) -> Result<Value, BlockFailure> {
    spec.check().map_err(BlockFailure::Broken)?;
    let groups = Groups::make(Path::new("/"), &group::lab_name(&spec.dir), &spec.hosts);
    let groups = groups.map_err(|why| BlockFailure::Broken(why.into()))?;
    let spec = &Spec { groups: groups.list(), ..spec.clone() };
    let mut keeper =
        Keeper::start(spec, weir).map_err(|error| BlockFailure::Broken(say!(ERR_BLOCK_START, error.to_string())))?;
    let (tell, told) = mpsc::channel();
    let stdout = keeper.child.stdout.take();
    let listening = worker::block_aside("lab block", move || {
        let mut line = String::new();
        if let Some(stdout) = stdout {
            // An answer that cannot be read counts as none.
            let _ = BufReader::new(stdout.take(ANSWER_MAX)).read_line(&mut line);
        }
        // The send fails only if the receiver is gone; then the answer is not needed.
        let _ = tell.send(line);
    });
    listening.map_err(|error| BlockFailure::Broken(say!(ERR_BLOCK_OUTPUT, error.to_string())))?;
    let end = clock::precise() + spec.limit() + GRACE;
    let line = loop {
        if stop.load(Ordering::Relaxed) {
            return Err(BlockFailure::Stopped);
        }
        if clock::precise() > end {
            return Err(BlockFailure::Broken(say!(ERR_BLOCK_LONG, (spec.limit() + GRACE).as_secs())));
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
        (Some(error), _) => Err(BlockFailure::Broken(error.into())),
        (None, false) => Err(BlockFailure::Broken(say!(ERR_BLOCK_NO_RESULT, keeper.complaint()))),
    }
}

/// The keeper of a block. Dropping it ends every process of the block.
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
        // The keeper is in a process group of its own: the terminal sends Ctrl-C only to the lab.
        let mut child = process::spawn_on(&[], &mut command)?;
        if let Some(stdin) = &mut child.stdin {
            stdin.write_all(format!("{}\n", spec.to_json()).as_bytes())?;
        }
        Ok(Keeper { child })
    }

    /// The text on its standard error, for a message.
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
        // Closing its input ends a keeper. The keeper first kills its own processes.
        drop(self.child.stdin.take());
        let end = clock::precise() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) && clock::precise() < end {
            std::thread::sleep(Duration::from_millis(5));
        }
        // The keeper may have ended already.
        let _ = process::kill_group(self.child.id());
        let _ = self.child.wait();
    }
}
