//! Watches a block: samples the resource use of its processes every quarter of a second, on one clock, inside the
//! block's own namespaces.
//!
//! ```text
//!   keeper ── Watcher ──► /proc of every process and network   (crate host)
//!                    ├──► the edge's own account: weir's API, or stub_status and a private log   (edge, sink)
//!                    ├──► where their threads wait, if asked: programs in the kernel, or /proc   (inside)
//!                    ├──► programs behind the edge, probed every half second   (probe)
//!                    └──► what the edge logged   (errors)
//! ```
//!
//! [`tap`] adds the statements that the watcher needs to a copy of the edge's configuration. The block mounts this
//! copy over the file in its own mount namespace. This module judges nothing: its result is data, [`Watched`].

pub mod account;
pub mod edge;
pub mod errors;
pub mod inside;
pub mod logged;
pub mod plan;
pub mod probe;
pub mod pulse;
pub mod sink;
pub mod tap;
pub mod tick;
pub mod way;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, UNIX_EPOCH};

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weir_host as host;
use weir_net::{clock, worker};

use crate::said::{Said, say};

pub use account::Account;
pub use plan::{WatchPlan, WatchedProcess};
pub use pulse::{Beat, Pulse};
pub use tick::{HostTick, ProcessTick, ThreadTick, Tick};

/// The interval between samples.
const EVERY: Duration = Duration::from_millis(250);
/// The interval on a system that runs: its CPU is not the lab's.
const EVERY_RUNNING: Duration = Duration::from_millis(500);
/// Most ticks of a block. A longer series is thinned to every second tick, repeatedly. The highest levels stay.
const TICKS_MAX: usize = 480;
/// The socket tables are read every this many ticks: reading is slow with many sockets.
const SOCKETS_EVERY: u64 = 2;

/// The observations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Watched {
    /// In order. The first tick is at the beginning of the load, the last one after its end.
    pub ticks: Vec<Tick>,
    /// The resources used between the samples, from the beginning of the load to its end.
    pub pulses: Vec<Pulse>,
    /// Number of lines in the edge's log, by kind.
    pub said: BTreeMap<String, u64>,
    /// Size of the accept queue, by listen address.
    pub backlogs: BTreeMap<String, u64>,
    /// Number of local ports for outgoing connections, by host.
    pub ports: BTreeMap<String, u64>,
    /// The addresses that each process listens on, by process name, at the beginning or at the end.
    pub listens: BTreeMap<String, BTreeSet<String>>,
    /// Figures that probed programs reported about themselves.
    pub told: Vec<probe::Answers>,
    /// Number of lines that each process wrote, by kind.
    pub wrote: BTreeMap<String, BTreeMap<String, u64>>,
    /// Connections that each listening socket turned away because its queue was full, by host, then address.
    pub turned_away: BTreeMap<String, BTreeMap<String, u64>>,
    /// The values that could not be read, a sentence each. Their counts are unknown, not zero.
    #[serde(deserialize_with = "crate::said::read_list")]
    pub unread: Vec<Said>,
    /// Where threads waited.
    pub inside: Option<inside::Inside>,
    /// The size of the pool of threads of Node.js, by process.
    pub uv_threads: BTreeMap<String, u64>,
}

impl Watched {
    /// The size of an address's accept queue. `ss` writes `*` for a socket of both families; the kernel's table has it as
    /// `[::]`.
    pub fn backlog(&self, address: &str) -> Option<u64> {
        let both = || self.backlogs.get(&format!("0.0.0.0:{}", address.strip_prefix("[::]:")?));
        self.backlogs.get(address).or_else(both).copied()
    }
}

/// Facts about a host from `ss` and the kernel, beside the ticks.
#[derive(Default)]
struct Facts {
    /// Size of the accept queue, by address.
    backlogs: BTreeMap<String, u64>,
    /// Connections turned away since the socket began to listen, by address.
    drops: BTreeMap<String, u64>,
    /// Local ports.
    ports: Option<u64>,
    /// The values that could not be read.
    unread: Vec<Said>,
}

/// Watches on its own thread, from [`Watcher::start`] to [`Watcher::end`].
pub struct Watcher {
    targets: Arc<Mutex<Vec<WatchedProcess>>>,
    is_over: Arc<AtomicBool>,
    ticks: mpsc::Receiver<(Vec<Tick>, Vec<Pulse>)>,
    plan: WatchPlan,
    said_before: u64,
    listens: BTreeMap<String, BTreeSet<String>>,
    drops_before: BTreeMap<String, BTreeMap<String, u64>>,
    asker: probe::Asker,
    follower: Option<inside::Follower>,
}

impl Watcher {
    /// Starts watching.
    pub fn start(
        plan: &WatchPlan,
        targets: Vec<WatchedProcess>,
        mut account: edge::AccountReader,
    ) -> std::io::Result<Watcher> {
        let listens = listens_of(&targets);
        let hosts = hosts_of(&targets, plan);
        let drops_before =
            hosts.into_iter().map(|(host, entry)| (host.clone(), facts_of(&host, &entry).drops)).collect();
        let follower = inside::Follower::start(plan.inside, &targets)?;
        let start = clock::precise();
        let mut probes = probe::find(&targets, &plan.probes, &plan.dir);
        probes.retain(|probe| !plan.is_running || probe.is_silent());
        let asker = probe::Asker::start(probes, start)?;
        let targets = Arc::new(Mutex::new(targets));
        let is_over = Arc::new(AtomicBool::new(false));
        let (tell, ticks) = mpsc::channel();
        let (known, over) = (targets.clone(), is_over.clone());
        let every = if plan.is_running { EVERY_RUNNING } else { EVERY };
        worker::block_aside("watch", move || {
            let (mut ticks, mut pulses): (Vec<Tick>, Vec<Pulse>) = (Vec::new(), Vec::new());
            let (mut number, mut step, mut before) = (0u64, 1u64, None::<Tick>);
            loop {
                let is_last = over.load(Ordering::Relaxed);
                let is_kept = number.is_multiple_of(step) || is_last;
                let who = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let with_sockets = is_kept && ((number / step).is_multiple_of(SOCKETS_EVERY) || is_last);
                let (at, wall) = (clock::precise() - start, clock::precise_wall());
                let mut tick = tick::look(Path::new("/"), &who, with_sockets);
                tick.at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
                tick.account = account();
                let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
                let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
                if let Some(pulse) = before.as_ref().and_then(|before| Pulse::between(before, &tick, wall_ms)) {
                    pulse::add(&mut pulses, pulse);
                }
                before = Some(tick.clone());
                match ticks.last_mut() {
                    Some(last) if !is_kept => last.absorb(&tick),
                    _ => ticks.push(tick),
                }
                if is_last {
                    break;
                }
                if ticks.len() >= TICKS_MAX {
                    ticks = tick::thinned(&ticks);
                    step *= 2;
                }
                number += 1;
                let next = start + every * u32::try_from(number).unwrap_or(u32::MAX);
                std::thread::sleep(next.saturating_duration_since(clock::precise()));
            }
            // The send fails only if the receiver is gone; then the result is not needed.
            let _ = tell.send((ticks, pulses));
        })?;
        let said_before = std::fs::metadata(&plan.log).map_or(0, |file| file.len());
        Ok(Watcher { targets, is_over, ticks, plan: plan.clone(), said_before, listens, drops_before, asker, follower })
    }

    /// Adds a process to watch from this moment on.
    pub fn add(&self, target: WatchedProcess) {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).push(target);
    }

    /// Takes a last sample and stops.
    pub fn end(self) -> Watched {
        self.is_over.store(true, Ordering::Relaxed);
        let inside = self.follower.and_then(inside::Follower::end);
        let (ticks, pulses) = self.ticks.recv().unwrap_or_default();
        let told = self.asker.end();
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut watched = Watched { ticks, pulses, ..Watched::default() };
        if !self.plan.log.as_os_str().is_empty() {
            let unread;
            (watched.said, unread) = errors::count(&self.plan.log, self.said_before);
            watched.unread.extend(unread.map(|why| say!(EDGES_LOG, why)));
        }
        watched.listens = self.listens;
        watched.told = told;
        if inside.is_none() && self.plan.inside != inside::Way::Off {
            watched.unread.push(say!(WHERE_THREADS_WAITED_INSIDE));
        }
        watched.inside = inside;
        for target in targets.iter().filter(|target| !target.is_edge && !self.plan.dir.as_os_str().is_empty()) {
            let (lines, unread) = errors::count(&self.plan.dir.join(format!("{}.err", target.name)), 0);
            watched.unread.extend(unread.map(|why| say!(OUTPUT, &target.name, why)));
            if !lines.is_empty() {
                watched.wrote.insert(target.name.clone(), lines);
            }
        }
        watched.uv_threads =
            targets.iter().filter_map(|target| Some((target.name.clone(), uv_threads(target)?))).collect();
        for (name, found) in listens_of(&targets) {
            watched.listens.entry(name).or_default().extend(found);
        }
        for (host, entry) in hosts_of(&targets, &self.plan) {
            let facts = facts_of(&host, &entry);
            watched.backlogs.extend(facts.backlogs);
            watched.ports.extend(facts.ports.map(|ports| (host.clone(), ports)));
            watched.unread.extend(facts.unread);
            let before = self.drops_before.get(&host);
            let since = |(address, drops): (String, u64)| {
                let then = before.and_then(|before| before.get(&address)).copied().unwrap_or(0);
                (address, drops.saturating_sub(then))
            };
            watched.turned_away.insert(host, facts.drops.into_iter().map(since).collect());
        }
        watched
    }
}

/// The hosts of the processes, each once, with the words of a command that enters the host's network.
fn hosts_of(targets: &[WatchedProcess], plan: &WatchPlan) -> BTreeMap<String, Vec<String>> {
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    // The network of another user's process cannot be told, and not be entered either.
    let is_own = |pid: u32| network(&pid.to_string()).is_none_or(|known| Some(known) == network("self"));
    let entry = |target: &WatchedProcess| match plan.is_running {
        true if is_own(target.pid) => Vec::new(),
        true => words(&["nsenter", "--net", "--target", &target.pid.to_string()]),
        false if target.host == "edge" => Vec::new(),
        false => words(&["ip", "netns", "exec", &target.host]),
    };
    targets.iter().rev().map(|target| (target.host.clone(), entry(target))).collect()
}

/// The addresses that each process or its descendants listen on.
fn listens_of(targets: &[WatchedProcess]) -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new("/");
    let one =
        |target: &WatchedProcess| (target.name.clone(), host::listens_of(root, &host::family_under(root, target.pid)));
    targets.iter().map(one).collect()
}

/// The size of the pool of threads of Node.js.
// libuv: uv__threadpool, "Its default size is 4, but it can be changed at startup time by setting the UV_THREADPOOL_SIZE environment variable".
fn uv_threads(target: &WatchedProcess) -> Option<u64> {
    let is_node = |pid: &&u32| {
        std::fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.file_name().is_some_and(|name| name == "node"))
    };
    let family = host::family_under(Path::new("/"), target.pid);
    let pid = family.iter().find(is_node)?;
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let size = environment
        .split(|byte| *byte == 0)
        .find_map(|word| String::from_utf8_lossy(word).strip_prefix("UV_THREADPOOL_SIZE=")?.parse().ok());
    Some(size.unwrap_or(4))
}

/// Accept queues, drops and local ports of a host. Without a netlink socket of our own, only `ss` shows the first two.
fn facts_of(host: &str, entry: &[String]) -> Facts {
    let mut unread = Vec::new();
    let mut output = |words: &[&str]| {
        let mut all: Vec<&str> = entry.iter().map(String::as_str).collect();
        all.extend(words);
        let (program, arguments) = all.split_first()?;
        let output = match Command::new(program).args(arguments).stdin(std::process::Stdio::null()).output() {
            Ok(output) => output,
            Err(error) => {
                unread.push(say!(COMMAND_ON_HOST, words.join(" "), host, *program, error.to_string()));
                return None;
            }
        };
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            let why = why.lines().next().unwrap_or("it failed").to_owned();
            unread.push(say!(COMMAND_FAILED, words.join(" "), host, why));
            return None;
        }
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let listeners = output(&["ss", "-HlntOm"]).unwrap_or_default();
    let range = output(&["cat", "/proc/sys/net/ipv4/ip_local_port_range"]).unwrap_or_default();
    let mut ends = range.split_ascii_whitespace().filter_map(|word| word.parse::<u64>().ok());
    let ports = ends.next().zip(ends.next()).and_then(|(low, high)| Some(high.checked_sub(low)? + 1));
    let mut facts = Facts { ports, unread, ..Facts::default() };
    for (address, most, drops) in listeners.lines().filter_map(listener) {
        // Several sockets of one address (reuseport) have one queue each.
        let known = facts.backlogs.entry(address.clone()).or_insert(most);
        *known = most.max(*known);
        if let Some(drops) = drops {
            *facts.drops.entry(address).or_default() += drops;
        }
    }
    facts
}

/// State, Recv-Q, Send-Q, local address, …, `skmem:(…,d7)`. For a listener, Send-Q is the size of the accept queue,
/// and `d` counts the connections that the full queue turned away.
fn listener(line: &str) -> Option<(String, u64, Option<u64>)> {
    let mut words = line.split_ascii_whitespace().skip(2);
    let (most, address) = (words.next()?.parse().ok()?, words.next()?);
    let memory = line.split_once("skmem:(").and_then(|(_, rest)| rest.split_once(')')).map(|(memory, _)| memory);
    let drops = memory.and_then(|memory| memory.rsplit(',').find_map(|part| part.strip_prefix('d')?.parse().ok()));
    Some((address.replace('*', "0.0.0.0"), most, drops))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_listening_socket_tells_whom_it_turned_away() {
        let line = "LISTEN 9      8            0.0.0.0:3000      0.0.0.0:*    skmem:(r0,rb131072,t0,tb16384,f0,w0,o0,bl0,d171)";
        assert_eq!(listener(line), Some(("0.0.0.0:3000".to_owned(), 8, Some(171))));
        assert_eq!(listener("LISTEN 0 128 [::]:80 [::]:*"), Some(("[::]:80".to_owned(), 128, None)));
        assert_eq!(listener("rubbish"), None);
        let facts = facts_of("origin", &["ip", "netns", "exec", "weir-no-such-namespace"].map(str::to_owned));
        assert!(facts.backlogs.is_empty() && facts.unread.len() == 2, "{:?}", facts.unread);
    }

    #[test]
    fn this_process_is_watched_from_beginning_to_end() {
        let own = WatchedProcess {
            name: "own".into(),
            host: "edge".into(),
            pid: std::process::id(),
            ..WatchedProcess::default()
        };
        let watcher = Watcher::start(&WatchPlan::default(), Vec::new(), Box::new(Account::default)).unwrap();
        watcher.add(own);
        std::thread::sleep(Duration::from_millis(600));
        let watched = watcher.end();
        let last = watched.ticks.last().unwrap();
        assert!(watched.ticks.len() >= 2 && last.at_ms >= 600);
        assert_eq!((last.processes.len(), last.hosts.len()), (1, 1));
        assert!(last.processes[0].fds > 0 && last.processes[0].threads.iter().any(|thread| thread.ran_ns > 0));
        assert!(watched.ports["edge"] > 0 && !last.cpus.is_empty());
        let json = serde_json::to_value(&watched).unwrap();
        assert_eq!(serde_json::from_value::<Watched>(json).unwrap(), watched);
    }
}
