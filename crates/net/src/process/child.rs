//! Processes that a lab starts: each in its own process group, on the CPUs it may use.

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Starts a command as the leader of a process group that may run only on these CPUs; on all of ours if none are named.
///
/// A thread that lives only for this call takes the affinity, and the child inherits it: no other thread is moved.
/// Fails if the program cannot be started, or if none of the CPUs may be used (`EINVAL`).
pub fn spawn_on(cpus: &[usize], command: &mut Command) -> io::Result<Child> {
    command.process_group(0);
    if cpus.is_empty() {
        return command.spawn();
    }
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(*cpu);
    }
    std::thread::scope(|scope| {
        let spawning = scope.spawn(|| {
            sched_setaffinity(None, &set)?;
            command.spawn()
        });
        spawning.join().unwrap_or_else(|_| Err(io::Error::other("starting it panicked")))
    })
}

/// Asks all processes of a group that [`spawn_on`] began to end.
pub fn end_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::TERM)
}

/// Kills all processes of a group that [`spawn_on`] began; `ESRCH` if there are none left.
pub fn kill_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::KILL)
}

/// Stops all processes of a group that [`spawn_on`] began, where they are.
pub fn stop_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::STOP)
}

/// Continues all processes of a group that [`stop_group`] stopped.
pub fn continue_group(leader: u32) -> io::Result<()> {
    signal_group(leader, Signal::CONT)
}

fn signal_group(leader: u32, signal: Signal) -> io::Result<()> {
    // Group 1 would mean all processes: it is never one of ours.
    let pid = i32::try_from(leader).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok(kill_process_group(pid, signal)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_child_has_its_cpus_and_we_keep_ours() {
        let cpu = *weir_host::allowed_cpus(std::path::Path::new("/")).last().unwrap();
        let before = weir_host::allowed_cpus(std::path::Path::new("/"));
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]).stdout(Stdio::piped());
        let output = spawn_on(&[cpu], &mut command).unwrap().wait_with_output().unwrap();
        let line = String::from_utf8(output.stdout).unwrap();
        assert_eq!(line.split_whitespace().last(), Some(cpu.to_string().as_str()));
        assert_eq!(weir_host::allowed_cpus(std::path::Path::new("/")), before);
        assert!(spawn_on(&[usize::MAX], &mut Command::new("true")).is_err());
    }

    #[test]
    fn a_group_ends_as_a_whole() {
        let mut shell = spawn_on(&[], Command::new("sh").args(["-c", "sleep 60 & sleep 60"])).unwrap();
        stop_group(shell.id()).unwrap();
        continue_group(shell.id()).unwrap();
        kill_group(shell.id()).unwrap();
        assert!(!shell.wait().unwrap().success());
        assert!(kill_group(1).is_err() && kill_group(0).is_err() && end_group(u32::MAX).is_err());
    }
}
