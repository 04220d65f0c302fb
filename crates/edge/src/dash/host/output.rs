//! Logs that no file has: those of services in systemd's journal, and those of containers.

use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use weir_dash::logs::{TAIL_BYTES_MAX, Tail, plain};
use weir_net::{clock, log, process, worker};
use weir_words::Said;

/// Most lines of a log that are asked for.
const LINES_MAX: &str = "5000";
/// Most bytes that are read from a program, of which the last [`TAIL_BYTES_MAX`] are searched.
const READ_BYTES_MAX: u64 = 8 << 20;
/// A program that takes longer is killed; a viewer waits five seconds.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Most bytes of a program's own message.
const MESSAGE_BYTES_MAX: usize = 300;

/// A log that a program prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramOutput {
    /// `journald:UNIT`: journalctl prints the log of a unit.
    Journal(String),
    /// `docker:NAME`, `podman:NAME`: the program prints the log of a container.
    Container(&'static str, String),
}

/// The programs that print the logs of containers.
const CONTAINERS: [&str; 2] = ["docker", "podman"];

/// Where the lines of a log are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPlace {
    /// A file, a full path.
    File(PathBuf),
    /// The output of a program.
    Output(ProgramOutput),
}

impl ProgramOutput {
    /// Reads `journald:UNIT`, `docker:NAME` or `podman:NAME`; `None` for other texts, which name files.
    ///
    /// # Errors
    /// The part after the colon is not such a name.
    pub fn parse(text: &str) -> Option<Result<ProgramOutput, &'static str>> {
        let (kind, name) = text.split_once(':')?;
        let is_name = |more: &[u8]| {
            let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte) || more.contains(&byte);
            !name.is_empty() && !name.starts_with('-') && name.len() <= 255 && name.bytes().all(is_fit)
        };
        if kind == "journald" {
            return Some(match is_name(b"@:\\") {
                true => Ok(ProgramOutput::Journal(name.to_owned())),
                false => Err("journald: needs the name of a unit, as in journald:shop.service"),
            });
        }
        let program = CONTAINERS.into_iter().find(|program| *program == kind)?;
        Some(match is_name(b"") {
            true => Ok(ProgramOutput::Container(program, name.to_owned())),
            false => Err("docker: and podman: need the name of a container, as in docker:shop-1"),
        })
    }

    fn command(&self) -> Command {
        let (program, arguments): (&str, Vec<&str>) = match self {
            ProgramOutput::Journal(unit) => (
                "journalctl",
                vec!["--no-pager", "--quiet", "--output=short-iso-precise", "--lines", LINES_MAX, "--unit", unit],
            ),
            ProgramOutput::Container(program, name) => {
                (program, vec!["logs", "--timestamps", "--tail", LINES_MAX, name])
            }
        };
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// The end of the log.
    ///
    /// # Errors
    /// The program cannot be started, fails, or takes longer than [`TIMEOUT`].
    pub fn tail(&self) -> Result<Tail, Said> {
        let mut command = self.command();
        let program = command.get_program().to_string_lossy().into_owned();
        let (bytes, is_cut, has_failed) = run(&mut command).map_err(|error| match error.kind() {
            ErrorKind::NotFound => Said::of_both(
                format!("the program {program} is not on this machine"),
                format!("이 머신에 {program} 프로그램이 없습니다"),
            ),
            _ => Said::of_both(
                format!("weir cannot run {program} {}", log::Os(&error)),
                format!("{program} 프로그램을 실행할 수 없습니다 {}", log::Os(&error)),
            ),
        })?;
        if has_failed {
            // A program that was killed may have printed lines of the log before.
            let message = plain::shown(bytes.get(..bytes.len().min(MESSAGE_BYTES_MAX)).unwrap_or_default());
            let message = message.trim();
            return Err(match message.is_empty() {
                true => Said::of_both(
                    format!("{program} gave no log within {} seconds", TIMEOUT.as_secs()),
                    format!("{program} 프로그램이 {}초 안에 로그를 출력하지 않았습니다", TIMEOUT.as_secs()),
                ),
                false => Said::of_both(format!("{program}: {message}"), format!("{program}: {message}")),
            });
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let from = bytes.len().saturating_sub(TAIL_BYTES_MAX);
        let is_whole = from == 0 && !is_cut && lines < LINES_MAX.parse().unwrap_or(usize::MAX);
        let modified_ms = i64::try_from(clock::unix_ms()).unwrap_or(i64::MAX);
        Ok(Tail { bytes: bytes.get(from..).unwrap_or_default().to_vec(), is_whole, modified_ms })
    }
}

impl fmt::Display for ProgramOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProgramOutput::Journal(unit) => write!(f, "journald:{unit}"),
            ProgramOutput::Container(program, name) => write!(f, "{program}:{name}"),
        }
    }
}

/// Runs a program. Gives its output with its messages, whether more output was left, and whether it failed.
fn run(command: &mut Command) -> io::Result<(Vec<u8>, bool, bool)> {
    // `docker logs` prints the container's stderr to its own: one pipe keeps the order.
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    process::detach(command);
    let mut child = process::spawn_on(&[], command)?;
    // Only the child may hold the writing end, so that its end is the end of the output.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let group = child.id();
    let (done, is_done) = mpsc::channel::<()>();
    let watched = worker::block_aside("log timeout", move || {
        if is_done.recv_timeout(TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = process::kill_group(group);
        }
    });
    if let Err(error) = watched {
        end(&mut child);
        return Err(error);
    }
    let mut bytes = Vec::new();
    let read = reader.take(READ_BYTES_MAX).read_to_end(&mut bytes);
    let is_cut = bytes.len() as u64 >= READ_BYTES_MAX;
    // weir does not wait for a program that still writes.
    if is_cut || read.is_err() {
        end(&mut child);
        read?;
        return Ok((bytes, is_cut, false));
    }
    let status = child.wait();
    drop(done);
    Ok((bytes, false, !status?.success()))
}

fn end(child: &mut Child) {
    let _ = process::kill_group(child.id());
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_source_names_a_unit_or_a_container() {
        for (text, is_good) in [
            ("journald:shop.service", true),
            ("journald:php@8.2-fpm", true),
            ("docker:shop-web-1", true),
            ("podman:web", true),
            ("docker:", false),
            ("docker:--help", false),
            ("journald:a b", false),
        ] {
            let source = ProgramOutput::parse(text).unwrap();
            assert_eq!(source.is_ok(), is_good, "{text}");
            if let Ok(source) = source {
                assert_eq!(source.to_string(), text);
            }
        }
        assert_eq!(ProgramOutput::parse("/var/log/app.log"), None);
        assert_eq!(ProgramOutput::parse("C:x"), None);
    }

    #[test]
    fn a_programs_output_messages_and_failure_are_told_apart() {
        let sh = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stdin(Stdio::null());
            run(&mut command)
        };
        assert_eq!(sh("echo one; echo two >&2").unwrap(), (b"one\ntwo\n".to_vec(), false, false));
        assert_eq!(sh("echo no such thing >&2; exit 1").unwrap(), (b"no such thing\n".to_vec(), false, true));
        let (bytes, is_cut, has_failed) = sh("yes").unwrap();
        assert!(bytes.len() as u64 == READ_BYTES_MAX && is_cut && !has_failed);
        assert_eq!(run(&mut Command::new("/no/such/program")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
