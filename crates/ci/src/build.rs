//! Commands of the user that must end: the build of a revision.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use weir_net::{clock, process};
use weir_words::{Said, say};

use crate::texts;

/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of a failed command's output that are shown.
const TAIL: u64 = 2_000;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandEnd {
    /// With success.
    Well,
    /// With this status.
    Failed(String),
    /// The run is over; the command and all that it started were killed.
    Stopped,
}

/// Waits for a command that leads a process group of its own.
pub(crate) fn finish(child: &mut Child, stop: &AtomicBool) -> CommandEnd {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return CommandEnd::Well,
            Ok(Some(status)) => return CommandEnd::Failed(status.to_string()),
            Err(error) => return CommandEnd::Failed(error.to_string()),
            Ok(None) if stop.load(Ordering::Relaxed) => {
                // The group may have ended in this moment.
                let _ = process::kill_group(child.id());
                let _ = child.wait();
                return CommandEnd::Stopped;
            }
            Ok(None) => std::thread::sleep(LOOK),
        }
    }
}

/// Runs the build command of one revision in its directory. Its output goes to `log`. Returns how long it took.
///
/// # Errors
/// It fails, with the end of its output, or `stop` becomes true.
pub fn build(name: &str, command: &str, directory: &Path, log: &Path, stop: &AtomicBool) -> Result<Duration, Said> {
    let failed = |why: String| say!(texts::ERR_BUILD, name, why, tail(log));
    let began = clock::precise();
    let out = fs::File::create(log).map_err(|error| failed(error.to_string()))?;
    let both = out.try_clone().map_err(|error| failed(error.to_string()))?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(directory).stdin(Stdio::null()).stdout(out).stderr(both);
    let mut child = process::spawn_on(&[], &mut shell).map_err(|error| failed(error.to_string()))?;
    let ended = finish(&mut child, stop);
    // A build may leave programs behind; they would disturb the measurement.
    let _ = process::kill_group(child.id());
    match ended {
        CommandEnd::Well => Ok(clock::precise() - began),
        CommandEnd::Failed(why) => Err(failed(why)),
        CommandEnd::Stopped => Err(say!(texts::ERR_BUDGET_BUILD, name)),
    }
}

/// The end of a file as a part of a message; empty if there is none.
pub(crate) fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    let text = read().unwrap_or_default();
    if text.is_empty() { text } else { format!(":\n{text}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_build_succeeds_fails_with_its_output_or_is_stopped_with_its_children() {
        let room = std::env::temp_dir().join(format!("weir-test-build-{}", std::process::id()));
        fs::create_dir_all(&room).unwrap();
        let (log, never, now) = (room.join("log"), AtomicBool::new(false), AtomicBool::new(true));
        build("a", "echo x > made", &room, &log, &never).unwrap();
        assert_eq!(fs::read_to_string(room.join("made")).unwrap(), "x\n");
        let why = build("b", "echo oh no >&2; exit 3", &room, &log, &never).unwrap_err();
        assert!(why.contains("b:") && why.contains("exit status: 3") && why.ends_with("oh no"), "{why}");
        // The shell waits for a sleep of an hour; both are killed.
        let why = build("c", "sleep 3600 & wait", &room, &log, &now).unwrap_err();
        assert!(why.contains("before the build"), "{why}");
        fs::remove_dir_all(&room).unwrap();
    }
}
