//! A canary, as the keeper sees it: orders come in a file beside the pid file with SIGHUP, and the state goes into another one.
//!
//! `weir canary` writes the order as the user who may signal the keeper. The keeper takes an order only from a file of its own
//! user or of root that nobody else may write, and only if it is young: an order that nobody took must not turn a later reload
//! into a canary.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weir_http::hold::board::lock;
use weir_meter::live::{Canary, CanaryPhase, CanaryReason};
use weir_net::answers::Answers;
use weir_net::log::{self, Level};
use weir_net::path::{self, Links};
use weir_net::{clock, process};

use crate::canary::say;
use crate::canary::terms::{CanaryOrder, Terms};
use crate::load::ConfOrigin;

/// An older order is not obeyed.
const AGE_MS_MAX: u64 = 10_000;
/// Bytes of an order, at most.
const ORDER_BYTES_MAX: u64 = 64 << 10;

/// An order of `weir canary`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CanaryAsked {
    /// Its number, so that the answer can be told from others.
    pub number: u64,
    /// When it was written, in Unix milliseconds.
    pub at_ms: u64,
    /// The order.
    pub what: CanaryAsk,
}

/// The content of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CanaryAsk {
    /// Begin a canary.
    Start(Terms),
    /// About the canary that runs.
    Order(CanaryOrder),
}

/// The content of the file with the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CanaryShown {
    /// The number of the last order.
    pub answered: Option<u64>,
    /// Why it was refused.
    pub refused: Option<String>,
    /// The canary, or the last one.
    pub canary: Option<Canary>,
}

/// The file with the order.
fn order_path(pid: &Path) -> PathBuf {
    with_suffix(pid, ".canary-order")
}

/// The file with the state.
pub fn state_path(pid: &Path) -> PathBuf {
    with_suffix(pid, ".canary")
}

fn with_suffix(pid: &Path, suffix: &str) -> PathBuf {
    let mut name = pid.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Writes an order for the keeper with this pid file, which takes it at its next SIGHUP.
///
/// # Errors
/// The file cannot be written.
pub fn give(pid: &Path, asked: &CanaryAsked) -> io::Result<()> {
    write(&order_path(pid), 0o600, &serde_json::to_vec(asked).map_err(io::Error::from)?)
}

/// Takes the order, if there is one that the keeper obeys. The file is gone then.
pub fn take(pid: &Path) -> Option<CanaryAsked> {
    let path = order_path(pid);
    // Where others may write, the name may lead elsewhere, or to a pipe on which the keeper would wait.
    let bytes = path.as_os_str().as_bytes();
    let directory = (bytes.len() - path.file_name().map_or(0, OsStr::len)).saturating_sub(1);
    let file = path::open(bytes, directory, Links::Refused).ok()?;
    let facts = file.metadata().ok()?;
    let _ = fs::remove_file(&path);
    let is_ours = facts.uid() == 0 || facts.uid() == process::effective_user();
    if !facts.is_file() || !is_ours || facts.mode() & 0o022 != 0 || facts.len() > ORDER_BYTES_MAX {
        return None;
    }
    let asked: CanaryAsked = serde_json::from_reader(file).ok()?;
    (clock::unix_ms().saturating_sub(asked.at_ms) <= AGE_MS_MAX).then_some(asked)
}

/// The state that the keeper with this pid file has written.
pub fn read(pid: &Path) -> Option<CanaryShown> {
    serde_json::from_slice(&fs::read(state_path(pid)).ok()?).ok()
}

/// Writes a file in the place of another one, so that a reader sees all of it.
fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let next = with_suffix(path, ".next");
    let _ = fs::remove_file(&next);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&next)?;
    file.write_all(bytes)?;
    fs::rename(&next, path)
}

/// The canary of a keeper.
#[derive(Default)]
pub struct KeptCanary {
    /// The new configuration as it was read: a promotion puts these bytes in force, whatever the files say by then.
    pub read: Option<(ConfOrigin, Answers)>,
    shown: CanaryShown,
}

impl KeptCanary {
    /// Whether a canary runs.
    pub fn is_on(&self) -> bool {
        self.shown.canary.as_ref().is_some_and(|canary| canary.phase.is_on())
    }

    /// A canary has begun.
    pub fn begin(&mut self, read: (ConfOrigin, Answers), state: Canary) {
        self.read = Some(read);
        self.shown.canary = Some(state);
    }

    /// Takes the state that the server tells.
    pub fn hear(&mut self, state: Canary, pid: &Path) {
        // A late word of the server does not begin an ended canary again, and is not about a newer one.
        let is_late = |known: &Canary| {
            known.generation > state.generation || known.generation == state.generation && !known.phase.is_on()
        };
        if self.shown.canary.as_ref().is_some_and(is_late) {
            return;
        }
        self.shown.canary = Some(state);
        self.show(pid);
    }

    /// The canary has ended in a way of which the server may not have told.
    pub fn end(&mut self, phase: CanaryPhase, reason: CanaryReason, pid: &Path) {
        self.read = None;
        if !self.is_on() {
            return;
        }
        if let Some(canary) = &mut self.shown.canary {
            if phase != CanaryPhase::Promoted || canary.reason == CanaryReason::None {
                canary.reason = reason;
            }
            canary.phase = phase;
            canary.sentence = say::sentence(canary).en().to_owned();
            if reason == CanaryReason::Died {
                // The server could not say it.
                log::global(Level::Notice, format_args!("canary: {}", canary.sentence));
            }
        }
        self.show(pid);
    }

    /// Answers an order.
    pub fn answer(&mut self, number: u64, answer: Result<(), String>, pid: &Path) {
        self.shown.answered = Some(number);
        self.shown.refused = answer.err();
        self.show(pid);
    }

    /// Nobody reads a file about a keeper that does not run.
    pub fn remove(&self, pid: &Path) {
        let _ = fs::remove_file(state_path(pid));
    }

    /// A state that cannot be written is in the log and in the API.
    fn show(&self, pid: &Path) {
        if let Ok(bytes) = serde_json::to_vec(&self.shown) {
            let _ = write(&state_path(pid), 0o644, &bytes);
        }
    }
}

/// The newest word about a canary on its way from its thread to the keeper.
pub type Word = std::sync::Arc<std::sync::Mutex<Option<Canary>>>;

/// Takes the newest word.
pub fn newest(word: &Word) -> Option<Canary> {
    lock(word).take()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_order_is_taken_once_if_it_is_young_and_nobody_else_may_write_it() {
        let directory = std::env::temp_dir().join(format!("weir-asked-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let pid = directory.join("pid");
        let asked = CanaryAsked { number: 7, at_ms: clock::unix_ms(), what: CanaryAsk::Order(CanaryOrder::RollBack) };
        assert_eq!(take(&pid), None);
        give(&pid, &asked).unwrap();
        assert_eq!((take(&pid), take(&pid)), (Some(asked.clone()), None));
        give(&pid, &CanaryAsked { at_ms: 0, ..asked.clone() }).unwrap();
        assert_eq!((take(&pid), order_path(&pid).exists()), (None, false), "it is old");
        give(&pid, &asked).unwrap();
        fs::set_permissions(order_path(&pid), fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(take(&pid), None, "anybody may write it");
        give(&pid, &asked).unwrap();
        fs::rename(order_path(&pid), directory.join("order")).unwrap();
        std::os::unix::fs::symlink(directory.join("order"), order_path(&pid)).unwrap();
        assert_eq!(take(&pid), None, "the name leads elsewhere");
        fs::remove_file(order_path(&pid)).unwrap();
        let mut kept = KeptCanary::default();
        kept.answer(7, Err("no".to_owned()), &pid);
        assert_eq!(read(&pid).map(|shown| (shown.answered, shown.refused)), Some((Some(7), Some("no".to_owned()))));
        kept.hear(Canary { generation: 2, ..Canary::default() }, &pid);
        assert!(kept.is_on());
        kept.end(CanaryPhase::RolledBack, CanaryReason::Died, &pid);
        kept.hear(Canary { generation: 2, ..Canary::default() }, &pid);
        assert!(!kept.is_on() && read(&pid).unwrap().canary.unwrap().reason == CanaryReason::Died);
        kept.hear(Canary { generation: 3, ..Canary::default() }, &pid);
        kept.hear(Canary { generation: 2, phase: CanaryPhase::Promoted, ..Canary::default() }, &pid);
        assert!(kept.is_on(), "a late word about the one before");
        kept.remove(&pid);
        assert_eq!(read(&pid), None);
        fs::remove_dir_all(&directory).unwrap();
    }
}
