//! Goes to the background: weir starts itself again.
//!
//! The first process starts the same command line with a marked environment and the write end of a pipe as standard
//! input, and waits. The second starts a session of its own, starts up, and reports this through the pipe; only then
//! the first exits with 0. If the second fails, its messages are on the terminal, and the first exits with its exit
//! code.

use super::manager::unaddress;
use rustix::fs::{FileType, fstat};
use rustix::process::setsid;
use rustix::stdio;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Names the role of a process that a keeper has started from its own file.
pub(super) const ENV_ROLE: &str = "WEIR_ROLE";

/// Marks the environment of the second process.
const ENV_DAEMON: &str = "WEIR_DAEMON";

/// Which of the two processes we are after [`daemonise`].
#[derive(Debug)]
pub enum Daemon {
    /// The first: exit with this code.
    Started(i32),
    /// The second: go on, and report when ready.
    Background(Ready),
}

/// The report that the second process owes to the waiting first process.
#[derive(Debug)]
pub struct Ready(());

/// Call before any thread is started and any socket bound: the second process
/// begins `main` anew.
pub fn daemonise() -> io::Result<Daemon> {
    if is_second() {
        setsid()?;
        take_name_of_command();
        Ok(Daemon::Background(Ready(())))
    } else {
        let exe = std::env::current_exe()?;
        let mut args = std::env::args_os();
        let mut command = Command::new(exe);
        if let Some(name) = args.next() {
            // The name of the command decides the behaviour (as `nginx`, for example); the file behind it does not.
            command.arg0(name);
        }
        command.args(args);
        start(command).map(Daemon::Started)
    }
}

/// Names the process after its command. The kernel named it after its file, and Debian's `/etc/init.d/nginx` sends
/// signals only to a process of the name `nginx`, which may be a link to weir. A failure changes nothing else.
fn take_name_of_command() {
    let command = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&command).file_name().and_then(|name| CString::new(name.as_bytes()).ok());
    let _ = name.map(|name| rustix::thread::set_name(&name));
}

impl Ready {
    /// Lets the first process exit, and leaves the terminal: standard input and
    /// output become `/dev/null`. Standard error stays; see [`redirect_stderr`].
    pub fn tell(self) -> io::Result<()> {
        rustix::io::write(stdio::stdin(), b"1")?;
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        stdio::dup2_stdin(&null)?;
        stdio::dup2_stdout(&null)?;
        Ok(())
    }
}

/// Whether this is the second process, which is in the background or will be soon.
pub fn is_background() -> bool {
    is_second()
}

/// Makes standard error a copy of `file`, as nginx does with the error log, so that even the last message of a crash
/// is in the log.
pub fn redirect_stderr(file: &File) -> io::Result<()> {
    Ok(stdio::dup2_stderr(file.as_fd())?)
}

/// The mark alone is no proof: the process could have inherited it from another ancestor.
fn is_second() -> bool {
    std::env::var_os(ENV_DAEMON).is_some()
        && fstat(stdio::stdin()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
}

/// Starts the second process and waits until it is ready (0) or has ended (its code).
fn start(mut command: Command) -> io::Result<i32> {
    let (read, write): (OwnedFd, OwnedFd) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    unaddress(&mut command);
    command.env(ENV_DAEMON, "1").stdin(Stdio::from(write));
    let mut child = command.spawn()?;
    // The command holds our copy of the write end: without this drop we would never see the end of the pipe.
    drop(command);
    let mut byte = [0u8; 1];
    match File::from(read).read(&mut byte)? {
        0 => Ok(child.wait()?.code().unwrap_or(1).max(1)),
        _ => Ok(0),
    }
}

/// Removes the marks from a command that must not become a second process, or a keeper's.
pub(super) fn unmark(command: &mut Command) {
    command.env_remove(ENV_DAEMON).env_remove(ENV_ROLE);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn run(script: &str) -> i32 {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        start(command).unwrap()
    }

    #[test]
    fn ready_is_success_while_the_child_lives_on() {
        // The child closes the pipe only after the byte, and exits with 7 later.
        assert_eq!(run("test \"$WEIR_DAEMON\" = 1 && printf 1 >&0; exit 7"), 0);
    }

    #[test]
    fn a_child_that_fails_hands_on_its_code() {
        assert_eq!(run("exit 3"), 3);
        assert_eq!(run("exit 0"), 1, "gone without a word is a failure");
        assert_eq!(run("kill -9 $$"), 1);
    }

    #[test]
    fn we_are_not_a_second_process() {
        assert!(!is_second());
    }
}
