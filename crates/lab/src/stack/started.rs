//! A process of a block: starts it as its role says, waits until it is ready, and ends it with the block.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::json;
use weir_net::{Instant, clock, process};

use super::host::HUB;
use super::leftovers::note;
use super::network::middle;
use super::spec::{Process, ReadyCondition, Spec};
use crate::wan::{BadLink, JOINED};

/// How long a process may take to be ready, unless its role gives it longer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often the keeper checks a process that starts.
pub(super) const ASK: Duration = Duration::from_millis(10);
/// Bytes of a failed process's output that are shown.
const SAID_MAX: u64 = 1500;
/// Bytes of a process's output that are searched for its line.
const LOOKED_MAX: u64 = 1 << 20;

/// The process groups to end, kept globally so that the keeper can end them wherever it has to exit. `None`: they have
/// been ended, and no process may start any more.
static KEPT: Mutex<Option<Vec<u32>>> = Mutex::new(Some(Vec::new()));

/// A process that was started.
pub(super) struct Started {
    pub name: String,
    pub host: String,
    pub child: Child,
}

/// Ends every started process; later starts fail.
pub(super) fn end_all() {
    let kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    for group in kept.unwrap_or_default() {
        // The group may have ended already.
        let _ = process::kill_group(group);
    }
}

impl Started {
    /// Starts a process in its control groups, on its host, with its limits.
    pub fn start(spec: &Spec, role: &Process) -> Result<Started, String> {
        let argv = argv(spec, role);
        let (program, arguments) = argv.split_first().ok_or("a process has no name")?;
        let file = |end: &str| {
            let path = spec.dir.join(format!("{}.{end}", role.name));
            // A restarted process appends to its old output.
            let file = fs::OpenOptions::new().create(true).append(true).open(&path);
            file.map_err(|error| format!("{}: {error}", path.display()))
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(file("out")?).stderr(file("err")?);
        command.envs(role.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &role.cwd {
            command.current_dir(cwd);
        }
        // The lock is held until the process is on the list: if the lab ends meanwhile, `end_all` waits for it.
        let mut kept = KEPT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let kept = kept.as_mut().ok_or("the lab has ended")?;
        let child = process::spawn_on(&role.cpus, &mut command)
            .map_err(|error| format!("{}: {program}: {error}", role.name))?;
        kept.push(child.id());
        if !spec.is_isolated {
            note(spec.dir.parent().unwrap_or(&spec.dir), child.id());
        }
        Ok(Started { name: role.name.clone(), host: role.host.clone(), child })
    }

    /// The end of its standard error, or else of its standard output, for a message.
    pub fn said(&self, dir: &Path) -> String {
        let ends = ["err", "out"].map(|end| tail(&dir.join(format!("{}.{end}", self.name)), SAID_MAX));
        ends.into_iter().find(|text| !text.is_empty()).map_or_else(String::new, |text| format!(": {text}"))
    }

    /// How it ended, if it has.
    pub fn ended(&mut self, dir: &Path) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("({status}){}", self.said(dir)))
    }

    /// Waits for its end. True if it succeeded.
    pub fn finish(&mut self, end: Instant) -> Result<bool, String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) if clock::precise() > end => return Err(format!("{} did not end in time", self.name)),
                Ok(None) => std::thread::sleep(ASK),
                Err(error) => return Err(format!("{}: {error}", self.name)),
            }
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = process::kill_group(self.child.id());
        let _ = self.child.wait();
    }
}

fn argv(spec: &Spec, role: &Process) -> Vec<String> {
    let own = spec.groups.iter().filter(|group| group.host == role.host && !role.is_unlimited && !role.is_limited_late);
    let groups: Vec<String> = own.flat_map(super::group::Group::members).collect();
    let mut argv: Vec<String> = Vec::new();
    let mut say = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    if !groups.is_empty() {
        // A shell joins the groups and then becomes the process, so no part of it ever runs outside of them.
        let script =
            "n=$1; shift; while [ $n -gt 0 ]; do echo 0 > \"$1\" || exit 97; shift; n=$((n-1)); done; exec \"$@\"";
        say(&["sh", "-c", script, "sh", &groups.len().to_string()]);
        say(&groups.iter().map(String::as_str).collect::<Vec<_>>());
    }
    if spec.is_isolated && role.host != HUB {
        // Not `ip netns exec`: that mounts another /sys, without control groups, and weir load reads its own there.
        say(&["nsenter", &format!("--net=/run/netns/{}", role.host), "--"]);
    }
    if let Some((soft, hard)) = role.files {
        say(&["prlimit", &format!("--nofile={soft}:{hard}"), "--"]);
    }
    argv.extend(role.argv.iter().cloned());
    argv
}

/// The processes that pass frames on bad links. They are in no host's control group.
fn wans(spec: &Spec) -> Result<Vec<Process>, String> {
    let weir =
        std::env::current_exe().map_err(|error| format!("weir cannot find the path of its own program: {error}"))?;
    let links = spec.hosts.iter().filter_map(|host| Some((middle(&host.name), host.link?)));
    let wan = |(name, link): (String, BadLink)| Process {
        argv: vec![weir.display().to_string(), "lab".into(), "wan".into(), json!(link).to_string()],
        ready: ReadyCondition::Prints(JOINED.to_owned()),
        is_together: true,
        host: name.clone(),
        name,
        ..Process::default()
    };
    Ok(links.map(wan).collect())
}

/// Starts every process in its order, links first. Processes that belong together start at once; then the keeper
/// waits for all of them.
pub(super) fn start_all(spec: &Spec, end: Instant) -> Result<Vec<Started>, String> {
    let mut started: Vec<Started> = Vec::new();
    let mut waiting: Vec<&Process> = Vec::new();
    let wans = if spec.is_isolated { wans(spec)? } else { Vec::new() };
    for role in wans.iter().chain(&spec.processes) {
        if !role.is_together {
            wait_for(&std::mem::take(&mut waiting), &mut started, &spec.dir, spec.is_isolated, end)?;
        }
        let mut process = Started::start(spec, role)?;
        if role.is_step {
            if !process.finish(end)? {
                return Err(format!("{} failed{}", role.name, process.said(&spec.dir)));
            }
            continue;
        }
        started.push(process);
        waiting.push(role);
    }
    wait_for(&waiting, &mut started, &spec.dir, spec.is_isolated, end)?;
    Ok(started)
}

/// Waits until all of these are ready. Fails if one of the processes has ended.
///
/// With namespaces, the keeper reads the kernel's list of listening sockets: a connection would use a port of the
/// host, and the process would count it.
fn wait_for(
    roles: &[&Process],
    started: &mut [Started],
    dir: &Path,
    is_isolated: bool,
    end: Instant,
) -> Result<(), String> {
    for role in roles {
        let patience = if role.patience_s == 0 { PATIENCE } else { Duration::from_secs(role.patience_s) };
        let give_up = (clock::precise() + patience).min(end);
        loop {
            // This check comes first. A process may answer and then end; the loop below notices that.
            let missing = missing(role, dir, is_isolated.then(|| pid_of(started, &role.name)));
            for process in started.iter_mut() {
                if let Some(how) = process.ended(dir) {
                    return Err(format!("{} did not start {how}", process.name));
                }
            }
            let Some(missing) = missing else { break };
            if clock::precise() > give_up {
                let said = started.iter().find(|process| process.name == role.name).map(|process| process.said(dir));
                return Err(format!("{missing} ({}, {} s){}", role.name, patience.as_secs(), said.unwrap_or_default()));
            }
            std::thread::sleep(ASK);
        }
    }
    Ok(())
}

fn pid_of(started: &[Started], name: &str) -> u32 {
    started.iter().find(|process| process.name == name).map_or(0, |process| process.child.id())
}

/// The first condition that a process does not meet yet; `None` if it is ready. `own` is the id of the process, if the
/// process has its own network.
fn missing(role: &Process, dir: &Path, own: Option<u32>) -> Option<String> {
    let is_there = |address: &SocketAddr| match own {
        Some(pid) => listens(Path::new(&format!("/proc/{pid}/net")), *address),
        None => answers(*address),
    };
    match &role.ready {
        ReadyCondition::Started => None,
        ReadyCondition::Answers(addresses) => addresses
            .iter()
            .find(|address| !is_there(address))
            .map(|address| format!("no process listens at {address}")),
        ReadyCondition::Prints(text) => {
            let wrote = ["out", "err"].map(|end| head(&dir.join(format!("{}.{end}", role.name)), LOOKED_MAX));
            (!wrote.iter().any(|wrote| wrote.contains(text))).then(|| format!("it did not print {text:?}"))
        }
    }
}

/// Whether a process accepts connections at this address.
pub(super) fn answers(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// Whether the kernel has a listening socket for an address, in the network that `net` (`/proc/PID/net`) shows.
fn listens(net: &Path, address: SocketAddr) -> bool {
    let port = format!("{:04X}", address.port());
    ["tcp", "tcp6"].into_iter().any(|file| {
        let text = fs::read_to_string(net.join(file)).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut words = line.split_ascii_whitespace().skip(1);
            let (local, state) = (words.next().unwrap_or_default(), words.nth(1));
            let Some((at, at_port)) = local.split_once(':') else { return false };
            state == Some("0A") && at_port == port && (at.bytes().all(|digit| digit == b'0') || at == hex(address.ip()))
        })
    })
}

/// An address in the form of `/proc/net/tcp`: words of four bytes, each in reversed order.
fn hex(ip: IpAddr) -> String {
    let bytes = match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    bytes.chunks(4).flat_map(|word| word.iter().rev()).map(|byte| format!("{byte:02X}")).collect()
}

fn head(path: &Path, most: u64) -> String {
    let mut bytes = Vec::new();
    // A missing file counts as empty.
    let _ = fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The end of a file.
pub(super) fn tail(path: &Path, most: u64) -> String {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
        file.take(most).read_to_end(&mut bytes)
    });
    // A missing file counts as empty.
    let _ = read;
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_kernel_tells_who_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let net = Path::new("/proc/self/net");
        assert!(listens(net, at));
        assert!(!listens(net, SocketAddr::new("127.0.0.9".parse().unwrap(), at.port())));
        let any = std::net::TcpListener::bind("[::]:0").unwrap();
        assert!(listens(net, SocketAddr::new("10.1.2.3".parse().unwrap(), any.local_addr().unwrap().port())));
        drop(listener);
        assert!(!listens(net, at));
        assert_eq!(hex("::1".parse().unwrap()), "00000000000000000000000001000000");
    }
}
