//! A child of the server: starts it, reads its output within bounds, and ends it when the call is cancelled or lasts too long.
//!
//! A child ends itself when its standard input closes ([`crate::call::end_with_parent`]). So closing that pipe is the order to end,
//! and the kernel gives the same order if the server is killed. A child that does not obey in time is killed. A lab's keepers see
//! the end of the lab in the same way, and end everything that they started.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use weir_net::{clock, process, worker};

/// Most bytes of a child's standard output.
pub const OUTPUT_BYTES_MAX: usize = 16 << 20;
/// The end of a child's standard error that is kept, in bytes.
const SAID_BYTES_MAX: usize = 8 << 10;
/// How often the server looks at a child.
const LOOK: Duration = Duration::from_millis(20);
/// How long a child may take to end itself. The whole of a cancelled call ends within a second.
const PATIENCE: Duration = Duration::from_millis(600);
/// How long the output may stay open after the child has ended.
const DRAIN: Duration = Duration::from_millis(500);
/// How often progress is told.
const TELL: Duration = Duration::from_secs(2);

/// The state of a call that others may change.
#[derive(Debug, Default)]
pub struct CallControl {
    is_cancelled: AtomicBool,
}

impl CallControl {
    /// Orders the end of the call.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the call has to end.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }
}

/// The end of a child.
#[derive(Debug)]
pub enum ChildEnd {
    /// It ended by itself.
    Done {
        /// Its standard output.
        output: Vec<u8>,
        /// The end of its standard error.
        said: String,
    },
    /// The call was cancelled.
    Cancelled,
    /// It lasted too long.
    TooLong,
    /// It wrote too much.
    TooMuch,
    /// It could not be started.
    NotStarted(String),
}

/// The work of a child.
pub struct ChildWork<'w> {
    /// The program.
    pub program: &'w Path,
    /// Its words.
    pub words: &'w [String],
    /// The first line of its standard input.
    pub line: &'w str,
    /// The longest time.
    pub limit: Duration,
}

/// Runs a child until it ends. `tell` gets the seconds so far and the number of lines that the child wrote to standard error.
pub fn run(work: &ChildWork<'_>, control: &CallControl, tell: &mut dyn FnMut(f64, u64)) -> ChildEnd {
    let mut running = match RunningChild::start(work) {
        Ok(running) => running,
        Err(error) => return ChildEnd::NotStarted(error.to_string()),
    };
    let began = clock::precise();
    let mut told = began;
    loop {
        match running.child.try_wait() {
            Ok(None) => {}
            Ok(Some(_)) => return running.done(),
            Err(error) => {
                running.end();
                return ChildEnd::NotStarted(error.to_string());
            }
        }
        let now = clock::precise();
        let why = match () {
            () if control.is_cancelled() => Some(ChildEnd::Cancelled),
            () if now - began > work.limit => Some(ChildEnd::TooLong),
            () if running.is_full.load(Ordering::Relaxed) => Some(ChildEnd::TooMuch),
            () => None,
        };
        if let Some(why) = why {
            running.end();
            return why;
        }
        if now - told >= TELL {
            told = now;
            tell((now - began).as_secs_f64(), running.lines.load(Ordering::Relaxed));
        }
        std::thread::sleep(LOOK);
    }
}

/// A child with its pipes.
struct RunningChild {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Receiver<Vec<u8>>,
    said: Receiver<Vec<u8>>,
    is_full: Arc<AtomicBool>,
    lines: Arc<AtomicU64>,
}

impl RunningChild {
    fn start(work: &ChildWork<'_>) -> io::Result<RunningChild> {
        let mut command = Command::new(work.program);
        command.args(work.words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C at the terminal of a client is for the server alone.
        let mut child = process::spawn_on(&[], &mut command)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let begun = RunningChild::reading(pipes, work.line);
        let (stdin, output, said, is_full, lines) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                end(&mut child, None);
                return Err(error);
            }
        };
        Ok(RunningChild { child, stdin: Some(stdin), output, said, is_full, lines })
    }

    /// Writes the line, and reads both outputs on threads of their own.
    fn reading(pipes: Pipes, line: &str) -> io::Result<Begun> {
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else { return Err(io::ErrorKind::BrokenPipe.into()) };
        // A child that ended at once does not read it; its output says more than this error.
        let _ = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        let (is_full, lines) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (full, count) = (Arc::clone(&is_full), Arc::clone(&lines));
        let output = reading(stdout, move |kept, bytes| {
            let fits = kept.len() + bytes.len() <= OUTPUT_BYTES_MAX;
            if fits {
                kept.extend_from_slice(bytes)
            } else {
                full.store(true, Ordering::Relaxed)
            }
            fits
        })?;
        let said = reading(stderr, move |kept, bytes| {
            count.fetch_add(bytes.iter().filter(|byte| **byte == b'\n').count() as u64, Ordering::Relaxed);
            kept.extend_from_slice(bytes);
            kept.drain(..kept.len().saturating_sub(SAID_BYTES_MAX));
            true
        })?;
        Ok((stdin, output, said, is_full, lines))
    }

    /// The end of a child that ended by itself.
    fn done(self) -> ChildEnd {
        drop(self.stdin);
        if self.is_full.load(Ordering::Relaxed) {
            // Its pipe was closed because of that, and so it ended.
            return ChildEnd::TooMuch;
        }
        let said = self.said.recv_timeout(DRAIN).unwrap_or_default();
        let output = self.output.recv_timeout(DRAIN).unwrap_or_default();
        ChildEnd::Done { output, said: String::from_utf8_lossy(&said).into_owned() }
    }

    fn end(&mut self) {
        end(&mut self.child, self.stdin.take());
    }
}

type Pipes = (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>);
type Begun = (ChildStdin, Receiver<Vec<u8>>, Receiver<Vec<u8>>, Arc<AtomicBool>, Arc<AtomicU64>);

/// Orders the end of a child, waits, and kills it if it does not obey.
fn end(child: &mut Child, stdin: Option<ChildStdin>) {
    drop(stdin);
    let ordered = clock::precise();
    while clock::precise() - ordered < PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(LOOK);
    }
    // It may have ended meanwhile.
    let _ = child.kill();
    let _ = child.wait();
}

/// Reads a pipe on a thread of its own, which gives what `keep` kept when the pipe ends or `keep` says no.
fn reading(
    mut pipe: impl Read + Send + 'static,
    mut keep: impl FnMut(&mut Vec<u8>, &[u8]) -> bool + Send + 'static,
) -> io::Result<Receiver<Vec<u8>>> {
    let (give, given) = mpsc::sync_channel(1);
    worker::block_aside("output", move || {
        let (mut kept, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
        while let Ok(count @ 1..) = pipe.read(&mut chunk) {
            if !keep(&mut kept, chunk.get(..count).unwrap_or_default()) {
                break;
            }
        }
        // Nobody waits for the output of a child that was ended.
        let _ = give.send(kept);
    })?;
    Ok(given)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn of(script: &str, limit: Duration, control: &CallControl) -> ChildEnd {
        let words = ["-c".to_owned(), script.to_owned()];
        run(&ChildWork { program: Path::new("/bin/sh"), words: &words, line: "first", limit }, control, &mut |_, _| {})
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_child_gets_its_line_and_gives_its_output() {
        let ended = of("read line; echo \"got $line\"; echo said >&2; exit 3", LONG, &CallControl::default());
        let ChildEnd::Done { output, said } = ended else { panic!("{ended:?}") };
        assert_eq!((output.as_slice(), said.as_str()), (&b"got first\n"[..], "said\n"));
    }

    #[test]
    fn a_child_that_does_not_obey_is_killed() {
        let control = CallControl::default();
        control.cancel();
        assert!(matches!(of("exec sleep 60", LONG, &control), ChildEnd::Cancelled));
        let late = of("exec sleep 60", Duration::from_millis(50), &CallControl::default());
        assert!(matches!(late, ChildEnd::TooLong));
    }

    #[test]
    fn output_has_a_bound() {
        assert!(matches!(of("exec cat /dev/zero", LONG, &CallControl::default()), ChildEnd::TooMuch));
        let none = ChildWork { program: Path::new("/none"), words: &[], line: "", limit: LONG };
        assert!(matches!(run(&none, &CallControl::default(), &mut |_, _| {}), ChildEnd::NotStarted(_)));
    }
}
