//! One sample of everything: totals and levels from the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_host as host;

use super::account::Account;
use super::plan::WatchedProcess;

/// Most threads of a process that are kept: the busiest.
const THREADS_KEPT: usize = 32;
/// Most threads of one process whose states are sampled. With more threads, none are. If a family has more in total,
/// they are read once in a sample.
const STATES_MAX: usize = 64;
/// How many times states are read in one sample, and the time between these reads. A wait for a disk takes less than
/// a millisecond, so four reads a second would meet it only by luck.
const STATES: (u32, Duration) = (5, Duration::from_millis(4));
/// Most members of a family that are sampled.
const FAMILY_MAX: usize = 256;

/// The useful counters of a network namespace (Documentation/networking/snmp_counter.rst).
const COUNTERS: &[&str] = &[
    "ListenOverflows",
    "ListenDrops",
    "TCPReqQFullDoCookies",
    "TCPReqQFullDrop",
    "SyncookiesSent",
    "TCPTimeWaitOverflow",
    "TCPAbortOnOverflow",
    "TCPTimeouts",
    "TCPSynRetrans",
    "ActiveOpens",
    "PassiveOpens",
    "AttemptFails",
    "EstabResets",
    "OutRsts",
    "RetransSegs",
    "OutSegs",
    "InDatagrams",
    "OutDatagrams",
];

/// One sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tick {
    /// Time since the first sample, ms.
    pub at_ms: u64,
    /// For each CPU: its number, and ms of work, interrupts, idle time and stolen time.
    pub cpus: Vec<(usize, u64, u64, u64, u64)>,
    /// Tasks that run or are ready to run.
    pub runnable: u64,
    /// Time so far in which some task of the machine was stalled, s, by `cpu`, `memory` and `io`.
    pub stalled: BTreeMap<String, f64>,
    /// Every watched process.
    pub processes: Vec<ProcessTick>,
    /// Every network namespace of these processes.
    pub hosts: Vec<HostTick>,
    /// The account of the edge.
    pub account: Account,
}

/// A process with its descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessTick {
    /// Its name in the stack.
    pub name: String,
    /// Its host.
    pub host: String,
    /// When its first process started, in the kernel's ticks. A process with the same id and another start is another process.
    pub started: u64,
    /// The busiest threads of the family.
    pub threads: Vec<ThreadTick>,
    /// CPU time of all its processes and threads, also of those that have ended.
    pub ran_ns: u64,
    /// The part of it that no live thread has. To 20 ms for each process.
    pub ended_ns: u64,
    /// CPU time of its control group, if that has this family alone: also the time of processes for which nobody has waited.
    pub group_ns: Option<u64>,
    /// Time that all live threads waited for a CPU.
    pub waited_ns: u64,
    /// Open descriptors of the family member with the most, and its limit.
    pub fds: u64,
    /// See `fds`; 0 if unknown.
    pub fds_max: u64,
    /// Resident memory of all members.
    pub rss: u64,
    /// Swapped-out memory of all members.
    pub swapped: u64,
    /// Periods of its CPU quota, and throttled periods. `None` without a quota.
    pub periods: Option<(u64, u64)>,
    /// How often a thread was seen waiting for a disk (state D), and how often threads were checked.
    pub stuck: (u32, u32),
    /// The same for a thread of the edge that waits until somebody reads from a full pipe or terminal.
    pub unread: (u32, u32),
    /// Involuntary context switches of the family's main threads.
    pub preempted: u64,
    /// The kernel reports the wait for a CPU for no thread, or not for all.
    pub are_waits_unknown: bool,
}

/// A thread's totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadTick {
    /// The kernel's thread id.
    pub id: u32,
    /// The first thread of its process.
    pub is_main: bool,
    /// CPU time.
    pub ran_ns: u64,
    /// Time that it waited for a CPU.
    pub waited_ns: u64,
}

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostTick {
    /// Its host's name.
    pub name: String,
    /// The kernel's counters.
    pub counters: BTreeMap<String, u64>,
    /// Bytes received and sent, by device.
    pub devices: BTreeMap<String, (u64, u64)>,
    /// This tick also has the socket figures below.
    pub has_sockets: bool,
    /// Connections in accept queues, by address.
    pub waiting: BTreeMap<String, u64>,
    /// By remote address: local ports in use, and those in TIME_WAIT.
    pub held: BTreeMap<String, (u64, u64)>,
    /// There were more sockets than the limit of the sample.
    pub is_cut: bool,
    /// Open sockets towards a name server (port 53).
    pub asking_names: u64,
}

impl Tick {
    /// Takes over the levels of a later sample that is not kept, if they are higher. Totals need no such care: the next sample has them.
    pub fn absorb(&mut self, later: &Tick) {
        for process in &later.processes {
            let Some(known) = self.processes.iter_mut().find(|known| known.name == process.name) else { continue };
            if process.fds > known.fds {
                (known.fds, known.fds_max) = (process.fds, process.fds_max);
            }
            known.rss = known.rss.max(process.rss);
            // Of looks, all count.
            let added =
                |one: (u32, u32), other: (u32, u32)| (one.0.saturating_add(other.0), one.1.saturating_add(other.1));
            known.stuck = added(known.stuck, process.stuck);
            known.unread = added(known.unread, process.unread);
        }
        for host in later.hosts.iter().filter(|host| host.has_sockets) {
            let Some(known) = self.hosts.iter_mut().find(|known| known.name == host.name) else { continue };
            for (address, waiting) in &host.waiting {
                let most = known.waiting.entry(address.clone()).or_default();
                *most = (*most).max(*waiting);
            }
            for (address, held) in &host.held {
                let most = known.held.entry(address.clone()).or_default();
                *most = (*most).max(*held);
            }
        }
        self.account.active = self.account.active.max(later.account.active);
        self.account.idle = self.account.idle.max(later.account.idle);
    }
}

/// Every second sample, with the highest levels of both.
pub fn thinned(ticks: &[Tick]) -> Vec<Tick> {
    let pair = |pair: &[Tick]| {
        let mut first = pair.first()?.clone();
        pair.iter().skip(1).for_each(|later| first.absorb(later));
        Some(first)
    };
    ticks.chunks(2).filter_map(pair).collect()
}

/// Takes a sample.
pub fn look(root: &Path, targets: &[WatchedProcess], with_sockets: bool) -> Tick {
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let files = host::Files::under(root);
    let cpus = host::cpu_times_under(root);
    let kinds = ["cpu", "memory", "io"].into_iter();
    let mut processes: Vec<(ProcessTick, Threads)> =
        targets.iter().filter_map(|target| process(root, target)).collect();
    states(&mut processes);
    Tick {
        cpus: cpus.iter().map(|t| (t.cpu, ms(t.busy), ms(t.interrupts), ms(t.idle), ms(t.steal))).collect(),
        runnable: host::cpu_kinds_under(&files, &[]).map_or(0, |(_, runnable)| runnable),
        stalled: kinds
            .filter_map(|what| Some((what.to_owned(), host::stalled_under(&files, what)?.as_secs_f64())))
            .collect(),
        processes: processes.into_iter().map(|(tick, _)| tick).collect(),
        hosts: hosts(root, targets, with_sockets),
        ..Tick::default()
    }
}

/// The threads of a process whose states are read.
#[derive(Default)]
struct Threads {
    /// Their directories in `/proc`.
    places: Vec<PathBuf>,
    is_of_edge: bool,
}

/// A sample of a process, and its threads.
fn process(root: &Path, target: &WatchedProcess) -> Option<(ProcessTick, Threads)> {
    let family = host::members_under(root, target.pid);
    let pids: BTreeSet<u32> = family.iter().map(|member| member.pid).collect();
    let mut tick = ProcessTick {
        name: target.name.clone(),
        host: target.host.clone(),
        started: family.first().and_then(|first| first.started).unwrap_or(0),
        ..ProcessTick::default()
    };
    let (mut is_there, mut states) = (false, Threads { places: Vec::new(), is_of_edge: target.is_edge });
    for (place, member) in family.into_iter().enumerate() {
        let pid = member.pid;
        if place >= FAMILY_MAX {
            // The kernel's account is enough for the members that are not looked at.
            tick.ran_ns += as_ns(member.cpu(Duration::ZERO));
            continue;
        }
        let threads = host::thread_times_of(root, pid);
        let is_small = threads.len() <= STATES_MAX;
        let live_ns = threads.iter().map(|thread| thread.ran_ns).sum();
        let ran_ns = as_ns(member.cpu(Duration::from_nanos(live_ns)));
        tick.ran_ns += ran_ns;
        tick.ended_ns += ran_ns.saturating_sub(live_ns);
        for thread in threads {
            is_there = true;
            if is_small {
                states.places.push(root.join(format!("proc/{pid}/task/{}", thread.id)));
            }
            tick.are_waits_unknown |= thread.waited_ns.is_none();
            let waited_ns = thread.waited_ns.unwrap_or(0);
            tick.waited_ns += waited_ns;
            let is_main = thread.id == pid;
            tick.threads.push(ThreadTick { id: thread.id, is_main, ran_ns: thread.ran_ns, waited_ns });
        }
        let fds = std::fs::read_dir(root.join(format!("proc/{pid}/fd"))).map_or(0, |list| list.count() as u64);
        if fds >= tick.fds {
            tick.fds = fds;
            tick.fds_max = host::file_limit_of(root, pid).map_or(0, |limit| limit.soft);
        }
        let status = std::fs::read_to_string(root.join(format!("proc/{pid}/status"))).unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        tick.preempted += number("nonvoluntary_ctxt_switches:").unwrap_or(0);
        tick.rss += number("VmRSS:").unwrap_or(0) * 1024;
        tick.swapped += number("VmSwap:").unwrap_or(0) * 1024;
    }
    tick.group_ns = host::own_group_under(root, target.pid)
        .filter(|group| group.members.iter().all(|pid| pids.contains(pid)))
        .map(|group| as_ns(group.cpu));
    tick.threads.sort_by_key(|thread| std::cmp::Reverse(thread.ran_ns));
    tick.threads.truncate(THREADS_KEPT);
    tick.periods = host::throttling_under(root, Some(target.pid));
    is_there.then_some((tick, states))
}

fn as_ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the states of threads several times. If a family has many threads, reads them once.
fn states(processes: &mut [(ProcessTick, Threads)]) {
    let (times, apart) = STATES;
    for time in 0..times {
        if time > 0 {
            std::thread::sleep(apart);
        }
        for (tick, threads) in
            processes.iter_mut().filter(|(_, threads)| time == 0 || threads.places.len() <= STATES_MAX)
        {
            let count = |is: fn(&Path) -> bool| u32::from(threads.places.iter().any(|thread| is(thread)));
            tick.stuck = (tick.stuck.0 + count(is_stuck), tick.stuck.1 + 1);
            if threads.is_of_edge {
                tick.unread = (tick.unread.0 + count(is_unread), tick.unread.1 + 1);
            }
        }
    }
}

/// Whether a thread waits for a disk: its state is D (proc_pid_stat(5)).
fn is_stuck(thread: &Path) -> bool {
    let stat = std::fs::read_to_string(thread.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('D'))
}

/// Functions of the kernel in which a writer waits for the reader of a pipe or a terminal; the name of the first one changed with Linux 6.14.
const WAITS_FOR_READER: [&str; 4] = ["pipe_write", "anon_pipe_write", "pipe_wait_writable", "n_tty_write"];

/// Whether a thread waits until somebody reads from a full pipe or terminal (proc_pid_wchan(5), for root).
fn is_unread(thread: &Path) -> bool {
    let place = std::fs::read_to_string(thread.join("wchan")).unwrap_or_default();
    WAITS_FOR_READER.contains(&place.trim())
}

fn hosts(root: &Path, targets: &[WatchedProcess], with_sockets: bool) -> Vec<HostTick> {
    let mut found: Vec<HostTick> = Vec::new();
    for target in targets {
        if found.iter().any(|host| host.name == target.host) {
            continue;
        }
        let counters = host::counters_of(root, target.pid, COUNTERS);
        if counters.is_empty() {
            // The process is gone. Another process of its host may still be there.
            continue;
        }
        let mut tick = HostTick {
            name: target.host.clone(),
            counters,
            devices: host::devices_of(root, target.pid),
            has_sockets: with_sockets,
            ..HostTick::default()
        };
        if with_sockets {
            let sockets = host::sockets_of(root, target.pid);
            tick.is_cut = sockets.is_cut;
            tick.asking_names = host::asking_names(root, target.pid);
            tick.waiting = sockets.waiting.iter().map(|(address, count)| (address.to_string(), *count)).collect();
            let held = sockets.held.iter().map(|(address, held)| (address.to_string(), (held.ports, held.resting)));
            tick.held = held.collect();
        }
        found.push(tick);
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_rare_level_survives_the_thinning() {
        let tick = |number: u64| {
            let fds = if number == 301 { 900 } else { 20 };
            let process =
                ProcessTick { name: "app".into(), fds, fds_max: 1024, stuck: (0, 5), ..ProcessTick::default() };
            let waiting = [("0.0.0.0:80".to_owned(), if number == 77 { 64 } else { 0 })].into();
            let host = HostTick { name: "edge".into(), has_sockets: true, waiting, ..HostTick::default() };
            let account = Account { active: if number == 155 { 500 } else { 3 }, ..Account::default() };
            Tick { at_ms: number * 250, processes: vec![process], hosts: vec![host], account, ..Tick::default() }
        };
        let all: Vec<Tick> = (0..480).map(tick).collect();
        let found = thinned(&thinned(&thinned(&all)));
        assert_eq!((found.len(), found[1].at_ms), (60, 2000));
        let most = |of: &dyn Fn(&Tick) -> u64| found.iter().map(of).max().unwrap();
        assert_eq!(most(&|tick| tick.processes[0].fds), 900);
        assert_eq!(most(&|tick| tick.hosts[0].waiting["0.0.0.0:80"]), 64);
        assert_eq!(most(&|tick| tick.account.active), 500);
        assert_eq!(found.iter().map(|tick| tick.processes[0].stuck.1).sum::<u32>(), 480 * 5);
    }

    #[test]
    fn states_are_looked_at_more_than_once() {
        let dir = std::env::temp_dir().join(format!("weir-test-tick-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let thread = |name: &str, state: char, place: &str| {
            let thread = dir.join(name);
            std::fs::create_dir_all(&thread).unwrap();
            std::fs::write(thread.join("stat"), format!("7 (a) b) {state} 1 1")).unwrap();
            std::fs::write(thread.join("wchan"), place).unwrap();
            thread
        };
        let (waits, runs) = (thread("waits", 'D', "io_schedule"), thread("runs", 'R', "0"));
        let writes = thread("writes", 'S', "anon_pipe_write");
        let many = vec![waits.clone(); STATES_MAX + 1];
        let mut processes = [
            (vec![runs.clone(), waits], false),
            (vec![runs.clone()], true),
            (many, false),
            (vec![runs, writes.clone()], true),
            (vec![writes], false),
        ]
        .map(|(places, is_of_edge)| (ProcessTick::default(), Threads { places, is_of_edge }));
        states(&mut processes);
        let seen = processes.map(|(tick, _)| (tick.stuck, tick.unread));
        let (rests, none) = ((0, 5), (0, 0));
        assert_eq!(seen, [((5, 5), none), (rests, rests), ((1, 1), none), (rests, (5, 5)), (rests, none)]);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
