//! Sums the times of threads and connections to a few figures for each process. Pure functions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::calls::{Call, call};

/// Most locks that are reported for a process, and most peers.
const TOLD_MAX: usize = 5;
/// Most keys of a process that are counted separately.
const KEYS_MAX: usize = 4096;
/// If its threads wait at least this long within requests, thread-seconds a second, a process is judged by the time
/// within requests alone.
const REQUESTS_MIN: f64 = 0.02;

/// The activity of a thread in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Did {
    /// Ran.
    #[default]
    Ran,
    /// Waited for a CPU.
    Queued,
    /// Slept until an event.
    Waits,
    /// Slept uninterruptibly (state D).
    Uninterruptibly {
        /// The kernel counted that sleep as input or output.
        is_io: bool,
    },
}

/// The progress of a thread with a client's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadPhase {
    /// The thread had read no request, or that is unknown.
    #[default]
    None,
    /// The thread had read a request and written nothing back.
    Asked,
    /// The thread had written something back.
    Answered,
}

/// The thread that ended a wait at a futex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WokenBy {
    /// That is not known, or the wait goes on.
    #[default]
    Unknown,
    /// No thread of the process: a timeout, a signal, another process.
    Nobody,
    /// A thread of the process that has no request of a client.
    Thread,
    /// A thread of the process that has a request of a client.
    Request,
}

/// The object behind the descriptor that a thread waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behind {
    /// No descriptor, several descriptors, or one that could not be read.
    #[default]
    Nothing,
    /// TCP or UDP.
    Inet {
        /// The remote end.
        peer: SocketAddr,
        /// The local port; 0 in a sum over connections.
        local: u16,
        /// A connection from a client, or to a port that the process listens on.
        is_in: bool,
        /// It is a listening socket.
        is_listening: bool,
    },
    /// A Unix socket.
    Unix {
        /// Its path; empty if it has none.
        path: String,
        /// A connection from a client.
        is_in: bool,
        /// It is a listening socket.
        is_listening: bool,
    },
    /// A pipe.
    Pipe,
    /// A file, or a device.
    File,
    /// Something else.
    Other,
}

/// The time of one thread in one activity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The label of the process of the stack.
    pub label: u32,
    /// The thread.
    pub thread: u32,
    /// Its process. A process of the stack may have several.
    pub process: u32,
    /// The system call; -1 for none.
    pub call: i32,
    /// The activity.
    pub did: Did,
    /// The progress with a client's request.
    pub phase: ThreadPhase,
    /// The object behind its descriptor.
    pub behind: Behind,
    /// The address of the futex; 0 for none.
    pub futex: u64,
    /// The futex is certainly a lock, not a condition.
    pub is_mutex: bool,
    /// The wait at the futex has a timeout.
    pub is_timed: bool,
    /// The thread that ended the wait at the futex.
    pub by: WokenBy,
    /// Total time.
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// Longest time.
    pub most_ns: u64,
}

/// The traffic between a process and a peer: the time from sent data to the answer. For clients, from received data
/// to the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// The label of the process of the stack.
    pub label: u32,
    /// All connections from clients to the process, together.
    pub is_in: bool,
    /// The peer.
    pub with: Behind,
    /// Total time.
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// Longest time.
    pub most_ns: u64,
    /// Connections.
    pub connections: u64,
}

/// A kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeKind {
    /// Ran.
    Ran,
    /// Waited for a CPU.
    Queue,
    /// Waited for a lock. Without a known request, only a futex that is certainly a lock counts.
    Lock,
    /// Waited at a futex: a lock, or the condition that wakes an idle thread.
    Parked,
    /// Waited for a thread of the same process that has no request: for its result.
    Thread,
    /// Waited for another process, over a socket.
    Peer,
    /// Waited for the rest of a client's request.
    Client,
    /// Waited for work: in accept, in an event loop, or for the next request.
    Idle,
    /// Waited for a time to pass.
    Sleep,
    /// Waited for a disk.
    Disk,
    /// Waited for a child process to end.
    Child,
    /// Waited for a pipe.
    Pipe,
    /// Waited for something else.
    Other,
}

/// The waits of the threads of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// The process of the stack, with its descendants.
    pub process: String,
    /// Number of observed threads.
    pub threads: u64,
    /// Number of threads that read requests of clients. 0 if that was not observed.
    pub request_threads: u64,
    /// It is a Go program. Go's scheduler moves work between threads: their futexes are not locks of the program.
    pub is_go: bool,
    /// The shares below cover the time between reading a request and answering it. Otherwise they cover all time that
    /// was not idle.
    pub is_of_requests: bool,
    /// That time, thread-seconds a second.
    pub busy: f64,
    /// Shares of that time, by kind.
    pub shares: BTreeMap<TimeKind, f64>,
    /// All time by kind, thread-seconds a second.
    pub all: BTreeMap<TimeKind, f64>,
    /// Locks, by falling waiting time.
    pub locks: Vec<Lock>,
    /// Futexes at which threads were [`TimeKind::Parked`], by falling waiting time.
    pub parked: Vec<Lock>,
    /// The servers that it uses, by falling waiting time.
    pub peers: Vec<UsedServer>,
    /// For clients: number of answers, and mean number of requests in progress. `None` if connections were not
    /// observed.
    pub clients: Option<(u64, f64)>,
}

/// A lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lock {
    /// `futex 0x7f…`, `a lock on a file`.
    pub at: String,
    /// The process that has the lock in its memory.
    pub process: u32,
    /// Only one thread can hold it. Otherwise it may also be a semaphore or a condition.
    pub is_mutex: bool,
    /// Threads that waited for it.
    pub threads: u64,
    /// Mean number of waiting threads.
    pub waiting: f64,
    /// Number of waits.
    pub count: u64,
    /// Mean time of a wait, ms.
    pub ms: f64,
}

/// A server that a process uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsedServer {
    /// `10.0.0.3:5432`, `unix:/run/x.sock`.
    pub at: String,
    /// Connections to it that were used.
    pub connections: u64,
    /// Mean number of threads that slept until it answered.
    pub waiting: f64,
    /// Number of threads that did so.
    pub threads: u64,
    /// Mean number of requests to it without an answer yet.
    pub in_flight: f64,
    /// Its answers; 0 if connections were not observed.
    pub answers: u64,
    /// Mean time of an answer, ms.
    pub ms: f64,
    /// Longest time of an answer, ms.
    pub most_ms: f64,
}

/// The kind of a wait.
pub fn kind_of(wait: &Wait, is_go: bool) -> TimeKind {
    let known = call(wait.call);
    match wait.did {
        Did::Ran => return TimeKind::Ran,
        Did::Queued => return TimeKind::Queue,
        Did::Uninterruptibly { is_io } => {
            let is_file = matches!(known, Call::Sync | Call::File) || wait.behind == Behind::File;
            return if is_io || is_file { TimeKind::Disk } else { TimeKind::Other };
        }
        Did::Waits => {}
    }
    match known {
        Call::Futex if is_go => TimeKind::Parked,
        Call::Futex if wait.is_mutex => TimeKind::Lock,
        Call::Futex if wait.phase == ThreadPhase::Asked => match (wait.by, wait.is_timed) {
            // Its own timeout ended it: Thread.sleep, a timer.
            (WokenBy::Nobody, true) => TimeKind::Sleep,
            (WokenBy::Unknown, true) => TimeKind::Parked,
            (WokenBy::Thread, _) => TimeKind::Thread,
            (WokenBy::Request, _) | (WokenBy::Nobody | WokenBy::Unknown, false) => TimeKind::Lock,
        },
        Call::Futex => TimeKind::Parked,
        Call::Descriptor => behind(wait),
        Call::Poll if wait.behind != Behind::Nothing => behind(wait),
        Call::Poll | Call::Events => TimeKind::Idle,
        Call::Sleep => TimeKind::Sleep,
        Call::Child => TimeKind::Child,
        Call::FileLock => TimeKind::Lock,
        Call::File | Call::Sync => TimeKind::Disk,
        Call::Other => TimeKind::Other,
    }
}

fn behind(wait: &Wait) -> TimeKind {
    match &wait.behind {
        Behind::Inet { is_listening: true, .. } | Behind::Unix { is_listening: true, .. } => TimeKind::Idle,
        Behind::Inet { is_in: true, .. } | Behind::Unix { is_in: true, .. } => match wait.phase {
            ThreadPhase::Asked => TimeKind::Client,
            ThreadPhase::None | ThreadPhase::Answered => TimeKind::Idle,
        },
        Behind::Inet { .. } | Behind::Unix { .. } => TimeKind::Peer,
        Behind::Pipe => TimeKind::Pipe,
        Behind::File => TimeKind::Disk,
        Behind::Nothing | Behind::Other => TimeKind::Other,
    }
}

fn name(behind: &Behind) -> String {
    match behind {
        Behind::Inet { peer, .. } => peer.to_string(),
        Behind::Unix { path, .. } if path.is_empty() => "a Unix socket without a name".to_owned(),
        Behind::Unix { path, .. } => format!("unix:{path}"),
        Behind::Nothing | Behind::Pipe | Behind::File | Behind::Other => String::new(),
    }
}

/// The figures of one process. `waits` and `exchanges` belong to it. `is_traced`: requests were observed, so a wait
/// at a futex in a thread without a request is not work of the program.
pub fn sum(
    (process, is_go): (&str, bool),
    is_traced: bool,
    waits: &[Wait],
    exchanges: &[Exchange],
    seconds: f64,
) -> Waits {
    let per_second = |ns: u64| ns as f64 / 1e9 / seconds.max(1e-9);
    let handed = handed_over(waits);
    let kind = |wait: &Wait| match kind_of(wait, is_go) {
        TimeKind::Sleep if handed.contains(&(wait.process, wait.futex)) => TimeKind::Lock,
        kind => kind,
    };
    let kinds: Vec<(TimeKind, &Wait)> = waits.iter().map(|wait| (kind(wait), wait)).collect();
    let threads: BTreeSet<(u32, u32)> = waits.iter().map(|wait| (wait.process, wait.thread)).collect();
    let mut found = Waits { process: process.to_owned(), threads: threads.len() as u64, is_go, ..Waits::default() };
    let readers = waits.iter().filter(|wait| wait.phase != ThreadPhase::None);
    let readers: BTreeSet<(u32, u32)> = readers.map(|wait| (wait.process, wait.thread)).collect();
    found.request_threads = readers.len() as u64;
    for (kind, wait) in &kinds {
        *found.all.entry(*kind).or_default() += per_second(wait.ns);
    }
    // While a thread writes the answer, its CPU time belongs to the request too. A wait after that may be for the
    // next request.
    let is_of_request = |kind: TimeKind, wait: &Wait| {
        kind != TimeKind::Idle
            && (wait.phase == ThreadPhase::Asked
                || (wait.phase == ThreadPhase::Answered && matches!(kind, TimeKind::Ran | TimeKind::Queue)))
    };
    let is_waiting = |kind: TimeKind| !matches!(kind, TimeKind::Ran | TimeKind::Queue);
    let asked = kinds.iter().filter(|(kind, wait)| is_of_request(*kind, wait) && is_waiting(*kind));
    // Goroutines change threads: the request that a thread reads says nothing about the thread's waits.
    found.is_of_requests = !is_go && per_second(asked.map(|(_, wait)| wait.ns).sum()) >= REQUESTS_MIN;
    let counts = |kind: TimeKind, wait: &Wait| match found.is_of_requests {
        true => is_of_request(kind, wait),
        false => {
            !matches!(kind, TimeKind::Idle | TimeKind::Sleep | TimeKind::Child)
                && (kind != TimeKind::Parked || !(is_traced || is_go))
        }
    };
    let counted: Vec<(TimeKind, &Wait)> = kinds.iter().copied().filter(|(kind, wait)| counts(*kind, wait)).collect();
    found.busy = per_second(counted.iter().map(|(_, wait)| wait.ns).sum());
    for (kind, wait) in &counted {
        *found.shares.entry(*kind).or_default() += per_second(wait.ns) / found.busy.max(1e-9);
    }
    found.locks = locks(&counted, TimeKind::Lock, &per_second);
    found.parked = locks(&kinds, TimeKind::Parked, &per_second);
    found.peers = peers(&counted, exchanges, &per_second);
    let clients: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.is_in).collect();
    found.clients = (!exchanges.is_empty())
        .then(|| (clients.iter().map(|one| one.count).sum(), per_second(clients.iter().map(|one| one.ns).sum())));
    found
}

/// At least this part of the waits at a lock that is polled ends because a thread hands the lock over.
const HANDED: f64 = 0.01;

/// Futexes that threads of the process hand over. A timeout of a wait there is one look of a poll, as in Python: its
/// threads look every 5 ms whether the interpreter is free (`sys.setswitchinterval`).
fn handed_over(waits: &[Wait]) -> BTreeSet<(u32, u64)> {
    let mut by: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
    for wait in waits.iter().filter(|wait| wait.futex != 0) {
        let key = (wait.process, wait.futex);
        if by.len() < KEYS_MAX || by.contains_key(&key) {
            let (handed, all) = by.entry(key).or_default();
            *all += wait.count;
            *handed += if matches!(wait.by, WokenBy::Request | WokenBy::Thread) { wait.count } else { 0 };
        }
    }
    let is_handed = |(handed, all): &(u64, u64)| *handed > 0 && *handed as f64 >= HANDED * *all as f64;
    by.into_iter().filter(|(_, counts)| is_handed(counts)).map(|(key, _)| key).collect()
}

fn locks(counted: &[(TimeKind, &Wait)], wanted: TimeKind, per_second: &dyn Fn(u64) -> f64) -> Vec<Lock> {
    let mut by: BTreeMap<(u32, u64), (Lock, u64, BTreeSet<u32>)> = BTreeMap::new();
    for (_, wait) in counted.iter().filter(|(kind, _)| *kind == wanted) {
        let key = (wait.process, wait.futex);
        if by.len() >= KEYS_MAX && !by.contains_key(&key) {
            continue;
        }
        let (lock, ns, threads) = by.entry(key).or_default();
        lock.at = if wait.futex == 0 { "a lock on a file".to_owned() } else { format!("futex {:#x}", wait.futex) };
        lock.process = wait.process;
        lock.is_mutex |= wait.is_mutex;
        lock.count += wait.count;
        *ns += wait.ns;
        threads.insert(wait.thread);
    }
    let mut all: Vec<Lock> = by
        .into_values()
        .map(|(lock, ns, threads)| Lock {
            threads: threads.len() as u64,
            waiting: per_second(ns),
            ms: ns as f64 / 1e6 / lock.count.max(1) as f64,
            ..lock
        })
        .collect();
    all.sort_by(|one, other| other.waiting.total_cmp(&one.waiting));
    all.truncate(TOLD_MAX);
    all
}

/// Threads by their processes.
type Threads = BTreeSet<(u32, u32)>;
/// Local ports.
type Ports = BTreeSet<u16>;

fn peers(counted: &[(TimeKind, &Wait)], exchanges: &[Exchange], per_second: &dyn Fn(u64) -> f64) -> Vec<UsedServer> {
    let mut by: BTreeMap<String, (UsedServer, Threads, Ports)> = BTreeMap::new();
    for (_, wait) in counted.iter().filter(|(kind, _)| *kind == TimeKind::Peer) {
        let at = name(&wait.behind);
        if by.len() >= KEYS_MAX && !by.contains_key(&at) {
            continue;
        }
        let (peer, threads, ports) = by.entry(at).or_default();
        peer.waiting += per_second(wait.ns);
        threads.insert((wait.process, wait.thread));
        if let Behind::Inet { local, .. } = &wait.behind {
            ports.insert(*local);
        }
    }
    for exchange in exchanges.iter().filter(|exchange| !exchange.is_in) {
        let at = name(&exchange.with);
        if at.is_empty() || (by.len() >= KEYS_MAX && !by.contains_key(&at)) {
            continue;
        }
        let (peer, _, _) = by.entry(at).or_default();
        peer.in_flight += per_second(exchange.ns);
        peer.answers += exchange.count;
        peer.connections += exchange.connections;
        peer.most_ms = peer.most_ms.max(exchange.most_ns as f64 / 1e6);
        peer.ms += exchange.ns as f64 / 1e6;
    }
    let mut all: Vec<UsedServer> = by
        .into_iter()
        .map(|(at, (peer, threads, ports))| UsedServer {
            at,
            threads: threads.len() as u64,
            connections: peer.connections.max(ports.len() as u64),
            in_flight: peer.in_flight.max(peer.waiting),
            ms: peer.ms / peer.answers.max(1) as f64,
            ..peer
        })
        .collect();
    all.sort_by(|one, other| other.in_flight.total_cmp(&one.in_flight));
    all.truncate(TOLD_MAX);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUTEX: i32 = if cfg!(target_arch = "aarch64") { 98 } else { 202 };
    const RECV: i32 = if cfg!(target_arch = "aarch64") { 207 } else { 45 };
    const EVENTS: i32 = if cfg!(target_arch = "aarch64") { 22 } else { 232 };
    const FSYNC: i32 = if cfg!(target_arch = "aarch64") { 82 } else { 74 };

    fn wait(thread: u32, call: i32, phase: ThreadPhase, ms: u64) -> Wait {
        Wait {
            label: 1,
            thread,
            process: 7,
            call,
            did: Did::Waits,
            phase,
            ns: ms * 1_000_000,
            count: 1,
            ..Wait::default()
        }
    }

    fn inet(peer: &str, local: u16, is_in: bool) -> Behind {
        let peer = peer.parse().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
        Behind::Inet { peer, local, is_in, is_listening: false }
    }

    #[test]
    fn a_lock_is_told_of_requests_and_an_idle_pool_is_not() {
        let lock = |thread, ms| Wait { futex: 0x70, ..wait(thread, FUTEX, ThreadPhase::Asked, ms) };
        let pool = Wait { futex: 0x90, ..wait(9, FUTEX, ThreadPhase::Answered, 1000) };
        let ran = Wait { did: Did::Ran, call: -1, ..wait(1, -1, ThreadPhase::Answered, 50) };
        let found = sum(("app", false), true, &[lock(1, 450), lock(2, 500), pool, ran], &[], 1.0);
        assert!(found.is_of_requests && (found.busy - 1.0).abs() < 1e-9, "{found:?}");
        assert!(
            (found.shares[&TimeKind::Lock] - 0.95).abs() < 1e-9 && (found.shares[&TimeKind::Ran] - 0.05).abs() < 1e-9
        );
        assert_eq!((found.locks.len(), found.locks[0].threads, found.threads), (1, 2, 3));
        assert_eq!((found.locks[0].at.as_str(), found.all[&TimeKind::Parked]), ("futex 0x70", 1.0));
        // Without observed requests, an idle pool and a lock look the same.
        let parked = Wait { futex: 0x90, ..wait(9, FUTEX, ThreadPhase::None, 1000) };
        let of = |is_traced| sum(("app", false), is_traced, std::slice::from_ref(&parked), &[], 1.0);
        assert_eq!(
            (of(false).shares.get(&TimeKind::Parked), of(true).shares.get(&TimeKind::Parked)),
            (Some(&1.0), None)
        );
        assert_eq!((of(false).parked[0].threads, of(false).locks.len()), (1, 0));
        // Without requests, only a futex that is certainly a lock counts as one. For Go, none does.
        let unknown =
            |is_mutex, is_go| kind_of(&Wait { futex: 1, is_mutex, ..wait(1, FUTEX, ThreadPhase::None, 1) }, is_go);
        assert_eq!((unknown(true, false), unknown(false, false)), (TimeKind::Lock, TimeKind::Parked));
        assert_eq!(unknown(true, true), TimeKind::Parked);
    }

    /// Thread.sleep is a wait at a futex with a timeout, which ends it. Nobody holds a lock meanwhile.
    #[test]
    fn a_thread_that_sleeps_waits_for_no_lock() {
        let sleep = |thread, ms| Wait {
            futex: 0x70 + u64::from(thread),
            is_timed: true,
            by: WokenBy::Nobody,
            ..wait(thread, FUTEX, ThreadPhase::Asked, ms)
        };
        let ran = Wait { did: Did::Ran, call: -1, ..wait(1, -1, ThreadPhase::Answered, 50) };
        let found = sum(("app", false), true, &[sleep(1, 450), sleep(2, 500), ran], &[], 1.0);
        assert!((found.shares[&TimeKind::Sleep] - 0.95).abs() < 1e-9 && found.locks.is_empty(), "{found:?}");
        assert_eq!((found.request_threads, found.is_of_requests), (2, true));
        // A wait that goes on may be either.
        let open = Wait { by: WokenBy::Unknown, ..sleep(1, 900) };
        assert_eq!(kind_of(&open, false), TimeKind::Parked);
        // A result of a thread that has no request is no lock either.
        let result = Wait { by: WokenBy::Thread, is_timed: false, ..sleep(1, 900) };
        assert_eq!(kind_of(&result, false), TimeKind::Thread);
    }

    #[test]
    fn a_lock_that_is_polled_is_a_lock() {
        let poll = Wait {
            futex: 0x70,
            is_timed: true,
            by: WokenBy::Nobody,
            count: 90,
            ..wait(1, FUTEX, ThreadPhase::Asked, 450)
        };
        let got = Wait { by: WokenBy::Request, count: 3, ..poll.clone() };
        let found = sum(("app", false), true, &[poll.clone(), got], &[], 1.0);
        assert_eq!(found.shares.keys().collect::<Vec<_>>(), [&TimeKind::Lock]);
        let found = sum(("app", false), true, &[poll], &[], 1.0);
        assert_eq!(found.shares.keys().collect::<Vec<_>>(), [&TimeKind::Sleep]);
    }

    #[test]
    fn a_peer_is_told_by_its_address_and_its_connections() {
        let read = |thread, local| Wait {
            behind: inet("10.0.0.3:5432", local, false),
            ..wait(thread, RECV, ThreadPhase::Asked, 930)
        };
        let next = Wait { behind: inet("10.0.0.9:1", 80, true), ..wait(3, RECV, ThreadPhase::Answered, 900) };
        let rest = Wait { behind: inet("10.0.0.9:1", 80, true), ..wait(3, RECV, ThreadPhase::Asked, 140) };
        let found = sum(("app", false), true, &[read(1, 4001), read(2, 4002), next, rest], &[], 1.0);
        assert_eq!((found.peers.len(), found.peers[0].connections, found.peers[0].threads), (1, 2, 2));
        assert_eq!(found.peers[0].at, "10.0.0.3:5432");
        assert!(
            (found.shares[&TimeKind::Peer] - 0.93).abs() < 1e-9
                && (found.shares[&TimeKind::Client] - 0.07).abs() < 1e-9
        );
        assert_eq!((found.all[&TimeKind::Idle], found.shares.contains_key(&TimeKind::Idle)), (0.9, false));
    }

    #[test]
    fn an_event_loops_peers_are_told_by_what_passes_on_connections() {
        let idle = wait(1, EVENTS, ThreadPhase::None, 990);
        let exchanges = [
            Exchange { label: 1, is_in: true, count: 40, ns: 30_000_000_000, connections: 32, ..Exchange::default() },
            Exchange {
                label: 1,
                with: inet("10.0.0.3:5432", 0, false),
                count: 39,
                ns: 1_950_000_000,
                most_ns: 60_000_000,
                connections: 2,
                ..Exchange::default()
            },
        ];
        let found = sum(("app", false), true, &[idle], &exchanges, 1.0);
        assert_eq!((found.is_of_requests, found.clients), (false, Some((40, 30.0))));
        let peer = &found.peers[0];
        assert_eq!((peer.connections, peer.answers, peer.ms, peer.most_ms), (2, 39, 50.0, 60.0));
        assert!((peer.in_flight - 1.95).abs() < 1e-9);
    }

    #[test]
    fn a_disk_is_a_disk_and_an_uninterruptible_wait_need_not_be() {
        let stuck = |call, is_io, behind| {
            kind_of(&Wait { did: Did::Uninterruptibly { is_io }, behind, ..wait(1, call, ThreadPhase::None, 1) }, false)
        };
        assert_eq!(stuck(FSYNC, false, Behind::Nothing), TimeKind::Disk);
        assert_eq!(stuck(-1, true, Behind::Nothing), TimeKind::Disk);
        assert_eq!(stuck(-1, false, Behind::Nothing), TimeKind::Other);
        assert_eq!(stuck(RECV, false, Behind::File), TimeKind::Disk);
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        let found = sum(("app", false), true, &[], &[], 0.0);
        assert_eq!((found.busy, found.threads, found.clients), (0.0, 0, None));
    }
}
