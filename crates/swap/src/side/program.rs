//! The programs that run a configuration: asks them for their build.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use weir_doctor::Build;
use weir_net::process::{self, Signal};
use weir_net::worker;

/// Longest wait for a program that is asked.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program that runs a configuration.
#[derive(Clone, Debug)]
pub struct SideProgram {
    /// The command that starts this weir. It runs the configuration, or ends the other program together with this
    /// process.
    pub own: Vec<OsString>,
    /// Another program, with nginx's flags: an nginx, or another weir.
    pub other: Option<OtherProgram>,
}

/// A program with nginx's flags.
#[derive(Clone, Debug)]
pub struct OtherProgram {
    /// Its path.
    pub path: PathBuf,
    /// Its answer to `-V`.
    pub build: Build,
}

impl SideProgram {
    /// True for this weir and for another one.
    pub fn is_weir(&self) -> bool {
        self.other.as_ref().is_none_or(|other| other.build.is_weir)
    }
}

/// Runs a program and waits, up to 30 s.
///
/// # Errors
/// A sentence: the program cannot be started, or does not answer.
pub fn ask(mut command: Command) -> Result<Output, String> {
    let shown = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("{shown}: {error}"))?;
    let pid = child.id();
    let (tell, told) = mpsc::channel();
    let wait = move || {
        // The asker may have given up.
        let _ = tell.send(child.wait_with_output());
    };
    worker::block_aside("ask", wait).map_err(|error| format!("{shown}: {error}"))?;
    match told.recv_timeout(PATIENCE) {
        Ok(output) => output.map_err(|error| format!("{shown}: {error}")),
        Err(_) => {
            // It may just have ended.
            let _ = process::send_signal(pid, Signal::Term);
            Err(format!("{shown} did not answer within {} s", PATIENCE.as_secs()))
        }
    }
}

/// The answer of a program to `-V`; `shown` is its path for messages.
///
/// # Errors
/// A sentence: the program does not answer as nginx does.
pub fn build(program: &Path, shown: &str) -> Result<Build, String> {
    let mut command = Command::new(program);
    // weir answers as nginx does if its `argv[0]` is `nginx`.
    command.arg0("nginx").arg("-V");
    let output = ask(command)?;
    let text = String::from_utf8_lossy(&output.stderr);
    Build::read(&text).ok_or_else(|| format!("the output of {shown} -V is not nginx's"))
}
