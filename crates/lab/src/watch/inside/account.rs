//! From times of threads and connections to a few figures of each process: pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::calls::{Call, call};

/// Locks and peers of a process that are told, each.
const TOLD_MAX: usize = 5;
/// Keys of a process that are told apart.
const KEYS_MAX: usize = 4096;
/// From so much of its threads' time in requests on, a process is judged by that time alone, thread-seconds a second.
const REQUESTS_MIN: f64 = 0.02;

/// What a thread did in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Did {
    /// Ran.
    #[default]
    Ran,
    /// Waited for a CPU.
    Queued,
    /// Slept until something came.
    Waits,
    /// Slept and could not be woken (state D); and the kernel counted that as input or output.
    Uninterruptibly {
        /// See above.
        is_io: bool,
    },
}

/// Where a thread stood with a request of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It had read none, or that is not known.
    #[default]
    None,
    /// It had read one, and not written anything back.
    Asked,
    /// It had written something back.
    Answered,
}

/// What is behind the descriptor that is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behind {
    /// No descriptor, several, or one that could not be looked at.
    #[default]
    Nothing,
    /// TCP or UDP.
    Inet {
        /// The other end.
        peer: SocketAddr,
        /// The port of this end; 0 of what is summed over connections.
        local: u16,
        /// A client's connection, or one that clients connect to.
        is_in: bool,
        /// It is listened on.
        is_listening: bool,
    },
    /// A Unix socket.
    Unix {
        /// Its path; empty where it has none.
        path: String,
        /// See above.
        is_in: bool,
        /// See above.
        is_listening: bool,
    },
    /// A pipe.
    Pipe,
    /// A file, or a device.
    File,
    /// Something else.
    Other,
}

/// Time of one thread at one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Whose it is: the label of a process of the stack.
    pub label: u32,
    /// The thread.
    pub thread: u32,
    /// Its process; a stack's process may have several.
    pub process: u32,
    /// The system call; -1 of none.
    pub call: i32,
    /// What it did.
    pub did: Did,
    /// Where it stood.
    pub phase: Phase,
    /// What is behind its descriptor.
    pub behind: Behind,
    /// The address it waited at.
    pub futex: u64,
    /// That is surely a lock, and not a condition.
    pub is_mutex: bool,
    /// How long, all together.
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// How long at most.
    pub most_ns: u64,
}

/// What passed between a process and a peer: from something sent to what came back; of clients, from what came to what was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Whose it is.
    pub label: u32,
    /// Clients' connections, all of a process together.
    pub is_in: bool,
    /// With whom.
    pub with: Behind,
    /// How long, all together.
    pub ns: u64,
    /// How often.
    pub count: u64,
    /// How long at most.
    pub most_ns: u64,
    /// Connections.
    pub connections: u64,
}

/// A kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Ran.
    Ran,
    /// Waited for a CPU.
    Queue,
    /// For a lock; in threads that no request is known of, for one that is surely a lock.
    Lock,
    /// At a futex: a lock, or the condition under which an idle thread is woken.
    Parked,
    /// For another process, over a socket.
    Peer,
    /// For the rest of a client's request.
    Client,
    /// For work: to accept, at an event loop, for the next request.
    Idle,
    /// For a time to pass.
    Sleep,
    /// For a disk.
    Disk,
    /// For a child's end.
    Child,
    /// For a pipe.
    Pipe,
    /// For something else.
    Other,
}

/// Where the threads of a process were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waits {
    /// The process of the stack, with its descendants.
    pub process: String,
    /// Threads that were seen.
    pub threads: u64,
    /// Go's scheduler moves work between threads: their futexes are no locks of the program.
    pub is_go: bool,
    /// The shares below are of the time in which a thread had read a request and not answered it; else of all time that was not idle.
    pub is_of_requests: bool,
    /// That time, thread-seconds a second.
    pub busy: f64,
    /// Its shares by kind.
    pub shares: BTreeMap<Kind, f64>,
    /// All time by kind, thread-seconds a second.
    pub all: BTreeMap<Kind, f64>,
    /// Locks, those that were waited for longest first.
    pub locks: Vec<Lock>,
    /// Futexes at which threads were [`Kind::Parked`], likewise.
    pub parked: Vec<Lock>,
    /// Those that it asks, the longest waited for first.
    pub peers: Vec<Peer>,
    /// Clients: answers to them, and requests in progress on the average. None without a look at connections.
    pub clients: Option<(u64, f64)>,
}

/// A lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lock {
    /// `futex 0x7f…`, `a lock on a file`.
    pub at: String,
    /// The process that has it in its memory.
    pub process: u32,
    /// Threads that waited for it.
    pub threads: u64,
    /// How many waited on the average.
    pub waiting: f64,
    /// How often.
    pub count: u64,
    /// How long each time, ms.
    pub ms: f64,
}

/// One that is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Peer {
    /// `10.0.0.3:5432`, `unix:/run/x.sock`.
    pub at: String,
    /// Connections to it that were used.
    pub connections: u64,
    /// Threads that slept until it answered, on the average.
    pub waiting: f64,
    /// Threads that did so.
    pub threads: u64,
    /// Requests to it without an answer, on the average.
    pub in_flight: f64,
    /// Answers of it; 0 without a look at connections.
    pub answers: u64,
    /// How long each took, ms.
    pub ms: f64,
    /// How long at most, ms.
    pub most_ms: f64,
}

/// What a wait is.
pub fn kind_of(wait: &Wait, is_go: bool) -> Kind {
    let known = call(wait.call);
    match wait.did {
        Did::Ran => return Kind::Ran,
        Did::Queued => return Kind::Queue,
        Did::Uninterruptibly { is_io } => {
            let is_file = matches!(known, Call::Sync | Call::File) || wait.behind == Behind::File;
            return if is_io || is_file { Kind::Disk } else { Kind::Other };
        }
        Did::Waits => {}
    }
    match known {
        Call::Futex if is_go => Kind::Parked,
        Call::Futex if wait.is_mutex || wait.phase == Phase::Asked => Kind::Lock,
        Call::Futex => Kind::Parked,
        Call::Descriptor => behind(wait),
        Call::Poll if wait.behind != Behind::Nothing => behind(wait),
        Call::Poll | Call::Events => Kind::Idle,
        Call::Sleep => Kind::Sleep,
        Call::Child => Kind::Child,
        Call::FileLock => Kind::Lock,
        Call::File | Call::Sync => Kind::Disk,
        Call::Other => Kind::Other,
    }
}

fn behind(wait: &Wait) -> Kind {
    match &wait.behind {
        Behind::Inet { is_listening: true, .. } | Behind::Unix { is_listening: true, .. } => Kind::Idle,
        Behind::Inet { is_in: true, .. } | Behind::Unix { is_in: true, .. } => match wait.phase {
            Phase::Asked => Kind::Client,
            Phase::None | Phase::Answered => Kind::Idle,
        },
        Behind::Inet { .. } | Behind::Unix { .. } => Kind::Peer,
        Behind::Pipe => Kind::Pipe,
        Behind::File => Kind::Disk,
        Behind::Nothing | Behind::Other => Kind::Other,
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

/// The figures of one process. `waits` and `exchanges` are its own; `is_traced` says that requests were seen, so that time at a
/// futex in a thread without one is not the program's work.
pub fn sum(
    (process, is_go): (&str, bool),
    is_traced: bool,
    waits: &[Wait],
    exchanges: &[Exchange],
    seconds: f64,
) -> Waits {
    let per_second = |ns: u64| ns as f64 / 1e9 / seconds.max(1e-9);
    let kinds: Vec<(Kind, &Wait)> = waits.iter().map(|wait| (kind_of(wait, is_go), wait)).collect();
    let threads: BTreeSet<(u32, u32)> = waits.iter().map(|wait| (wait.process, wait.thread)).collect();
    let mut found = Waits { process: process.to_owned(), threads: threads.len() as u64, is_go, ..Waits::default() };
    for (kind, wait) in &kinds {
        *found.all.entry(*kind).or_default() += per_second(wait.ns);
    }
    // Work that a thread does while it writes the answer is of the request as well; a wait after it may be for the next.
    let is_of_request = |kind: Kind, wait: &Wait| {
        kind != Kind::Idle
            && (wait.phase == Phase::Asked
                || (wait.phase == Phase::Answered && matches!(kind, Kind::Ran | Kind::Queue)))
    };
    let is_waiting = |kind: Kind| !matches!(kind, Kind::Ran | Kind::Queue);
    let asked = kinds.iter().filter(|(kind, wait)| is_of_request(*kind, wait) && is_waiting(*kind));
    // Goroutines change threads: which of them a thread reads for says nothing of what it waits for.
    found.is_of_requests = !is_go && per_second(asked.map(|(_, wait)| wait.ns).sum()) >= REQUESTS_MIN;
    let counts = |kind: Kind, wait: &Wait| match found.is_of_requests {
        true => is_of_request(kind, wait),
        false => {
            !matches!(kind, Kind::Idle | Kind::Sleep | Kind::Child) && (kind != Kind::Parked || !(is_traced || is_go))
        }
    };
    let counted: Vec<(Kind, &Wait)> = kinds.iter().copied().filter(|(kind, wait)| counts(*kind, wait)).collect();
    found.busy = per_second(counted.iter().map(|(_, wait)| wait.ns).sum());
    for (kind, wait) in &counted {
        *found.shares.entry(*kind).or_default() += per_second(wait.ns) / found.busy.max(1e-9);
    }
    found.locks = locks(&counted, Kind::Lock, &per_second);
    found.parked = locks(&kinds, Kind::Parked, &per_second);
    found.peers = peers(&counted, exchanges, &per_second);
    let clients: Vec<&Exchange> = exchanges.iter().filter(|exchange| exchange.is_in).collect();
    found.clients = (!exchanges.is_empty())
        .then(|| (clients.iter().map(|one| one.count).sum(), per_second(clients.iter().map(|one| one.ns).sum())));
    found
}

fn locks(counted: &[(Kind, &Wait)], wanted: Kind, per_second: &dyn Fn(u64) -> f64) -> Vec<Lock> {
    let mut by: BTreeMap<(u32, u64), (Lock, u64, BTreeSet<u32>)> = BTreeMap::new();
    for (_, wait) in counted.iter().filter(|(kind, _)| *kind == wanted) {
        let key = (wait.process, wait.futex);
        if by.len() >= KEYS_MAX && !by.contains_key(&key) {
            continue;
        }
        let (lock, ns, threads) = by.entry(key).or_default();
        lock.at = if wait.futex == 0 { "a lock on a file".to_owned() } else { format!("futex {:#x}", wait.futex) };
        lock.process = wait.process;
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

fn peers(counted: &[(Kind, &Wait)], exchanges: &[Exchange], per_second: &dyn Fn(u64) -> f64) -> Vec<Peer> {
    let mut by: BTreeMap<String, (Peer, Threads, Ports)> = BTreeMap::new();
    for (_, wait) in counted.iter().filter(|(kind, _)| *kind == Kind::Peer) {
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
    let mut all: Vec<Peer> = by
        .into_iter()
        .map(|(at, (peer, threads, ports))| Peer {
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

    fn wait(thread: u32, call: i32, phase: Phase, ms: u64) -> Wait {
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
        let lock = |thread, ms| Wait { futex: 0x70, ..wait(thread, FUTEX, Phase::Asked, ms) };
        let pool = Wait { futex: 0x90, ..wait(9, FUTEX, Phase::Answered, 1000) };
        let ran = Wait { did: Did::Ran, call: -1, ..wait(1, -1, Phase::Answered, 50) };
        let found = sum(("app", false), true, &[lock(1, 450), lock(2, 500), pool, ran], &[], 1.0);
        assert!(found.is_of_requests && (found.busy - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.shares[&Kind::Lock] - 0.95).abs() < 1e-9 && (found.shares[&Kind::Ran] - 0.05).abs() < 1e-9);
        assert_eq!((found.locks.len(), found.locks[0].threads, found.threads), (1, 2, 3));
        assert_eq!((found.locks[0].at.as_str(), found.all[&Kind::Parked]), ("futex 0x70", 1.0));
        // Where requests cannot be seen, an idle pool and a lock look the same.
        let parked = Wait { futex: 0x90, ..wait(9, FUTEX, Phase::None, 1000) };
        let of = |is_traced| sum(("app", false), is_traced, std::slice::from_ref(&parked), &[], 1.0);
        assert_eq!((of(false).shares.get(&Kind::Parked), of(true).shares.get(&Kind::Parked)), (Some(&1.0), None));
        assert_eq!((of(false).parked[0].threads, of(false).locks.len()), (1, 0));
        // Without requests, only what is surely a lock is one; of Go nothing is.
        let unknown = |is_mutex, is_go| kind_of(&Wait { futex: 1, is_mutex, ..wait(1, FUTEX, Phase::None, 1) }, is_go);
        assert_eq!((unknown(true, false), unknown(false, false)), (Kind::Lock, Kind::Parked));
        assert_eq!(unknown(true, true), Kind::Parked);
    }

    #[test]
    fn a_peer_is_told_by_its_address_and_its_connections() {
        let read = |thread, local| Wait {
            behind: inet("10.0.0.3:5432", local, false),
            ..wait(thread, RECV, Phase::Asked, 930)
        };
        let next = Wait { behind: inet("10.0.0.9:1", 80, true), ..wait(3, RECV, Phase::Answered, 900) };
        let rest = Wait { behind: inet("10.0.0.9:1", 80, true), ..wait(3, RECV, Phase::Asked, 140) };
        let found = sum(("app", false), true, &[read(1, 4001), read(2, 4002), next, rest], &[], 1.0);
        assert_eq!((found.peers.len(), found.peers[0].connections, found.peers[0].threads), (1, 2, 2));
        assert_eq!(found.peers[0].at, "10.0.0.3:5432");
        assert!((found.shares[&Kind::Peer] - 0.93).abs() < 1e-9 && (found.shares[&Kind::Client] - 0.07).abs() < 1e-9);
        assert_eq!((found.all[&Kind::Idle], found.shares.contains_key(&Kind::Idle)), (0.9, false));
    }

    #[test]
    fn an_event_loops_peers_are_told_by_what_passes_on_connections() {
        let idle = wait(1, EVENTS, Phase::None, 990);
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
            kind_of(&Wait { did: Did::Uninterruptibly { is_io }, behind, ..wait(1, call, Phase::None, 1) }, false)
        };
        assert_eq!(stuck(FSYNC, false, Behind::Nothing), Kind::Disk);
        assert_eq!(stuck(-1, true, Behind::Nothing), Kind::Disk);
        assert_eq!(stuck(-1, false, Behind::Nothing), Kind::Other);
        assert_eq!(stuck(RECV, false, Behind::File), Kind::Disk);
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        let found = sum(("app", false), true, &[], &[], 0.0);
        assert_eq!((found.busy, found.threads, found.clients), (0.0, 0, None));
    }
}
