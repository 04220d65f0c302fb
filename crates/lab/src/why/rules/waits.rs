//! The waits of application threads, if `--inside` observed them: for a lock, for a connection when all are in use,
//! for a slow peer. Also the sentences about them that are printed when no rule fires.

use super::inside::{cpu_of, squeezed, wait, wait_share, wanted};
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::watch::inside::{Inside, Lock, TimeKind, UsedServer, Waits};
use crate::why::rule::{FiredRule, Rule, Segment, Tier, percent};
use crate::why::signals::{Role, Signals};

/// Least part of the time in requests that is spent in one kind of wait.
const MOST: f64 = 0.5;
/// Least mean number of threads that work on requests.
const BUSY: f64 = 0.5;
/// Least part of a request's time that is spent waiting for the application.
const WAIT_SHARE: f64 = 0.6;
/// Connections with this share of time in use are always in use.
const IN_USE: f64 = 0.85;
/// From this many answers for each connection on, connections are kept.
const KEPT: u64 = 4;
/// From this many requests in an application for each of its connections on, requests wait for a connection.
const CROWDED: f64 = 1.3;
/// From this mean number of threads on, several threads work at once beside those that wait for a lock.
const SEVERAL: f64 = 1.5;
/// Most sentences that are printed.
const LINES_MAX: usize = 12;
/// From this mean number of working threads on, a process is reported.
const TOLD: f64 = 0.01;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B60",
        says: texts::THREADS_APPLICATION_WAIT_LOCK,
        tier: Tier::Rest,
        check: lock,
        fires: |s| seen(s, &[(TimeKind::Lock, 0.93), (TimeKind::Ran, 0.07)], None, (900, 12.0)),
        // As many threads wait, but for requests.
        silent: |s| seen(s, &[(TimeKind::Ran, 0.9), (TimeKind::Lock, 0.1)], None, (900, 0.4)),
    },
    Rule {
        id: "B65",
        says: texts::THREADS_THAT_TAKE_REQUESTS_WAIT,
        tier: Tier::Rest,
        check: threads,
        // Four threads that sleep, and 15 requests.
        fires: |s| {
            seen(s, &[(TimeKind::Sleep, 0.97), (TimeKind::Ran, 0.03)], None, (900, 3.95));
            first(s).request_threads = 4;
        },
        // As many requests, but a thread for each.
        silent: |s| {
            seen(s, &[(TimeKind::Sleep, 0.97), (TimeKind::Ran, 0.03)], None, (900, 3.95));
            first(s).request_threads = 16;
        },
    },
    Rule {
        id: "B61",
        says: texts::APPLICATION_USES_ALL_CONNECTIONS,
        tier: Tier::Rest,
        check: connections,
        fires: |s| seen(s, &[(TimeKind::Lock, 0.9), (TimeKind::Peer, 0.1)], Some((2, 1.97)), (80, 30.0)),
        // As many requests, but each has a connection of its own.
        silent: |s| seen(s, &[(TimeKind::Ran, 0.6), (TimeKind::Peer, 0.4)], Some((40, 12.0)), (80, 30.0)),
    },
    Rule {
        id: "B62",
        says: texts::REQUESTS_APPLICATION_WAIT_ANOTHER,
        tier: Tier::Rest,
        check: slow,
        fires: |s| seen(s, &[(TimeKind::Peer, 0.95), (TimeKind::Ran, 0.05)], Some((40, 28.5)), (300, 30.0)),
        silent: |s| seen(s, &[(TimeKind::Ran, 0.9), (TimeKind::Peer, 0.1)], Some((40, 3.0)), (300, 30.0)),
    },
];

fn seen(s: &mut Signals, shares: &[(TimeKind, f64)], peer: Option<(u64, f64)>, clients: (u64, f64)) {
    s.load.ms[0] = 40.0;
    s.edge.steps.insert("wait".into(), (2000, 76_000_000));
    let made = |(connections, in_flight): (u64, f64)| UsedServer {
        at: "10.0.0.3:5432".into(),
        connections,
        in_flight,
        waiting: in_flight,
        answers: 400,
        ms: 50.0,
        most_ms: 61.0,
        ..UsedServer::default()
    };
    let busy = clients.1;
    let share = |wanted| shares.iter().find(|(kind, _)| *kind == wanted).map_or(0.0, |(_, share)| *share);
    let lock = Lock {
        at: "futex 0x7f00".into(),
        threads: 12,
        waiting: busy * share(TimeKind::Lock),
        ms: 41.0,
        ..Lock::default()
    };
    let waits = Waits {
        process: "app".into(),
        threads: 32,
        is_of_requests: true,
        busy,
        shares: shares.iter().copied().collect(),
        locks: vec![lock],
        peers: peer.map(made).into_iter().collect(),
        clients: Some(clients),
        ..Waits::default()
    };
    s.inside = Some(Inside { is_traced: true, seconds: 10.0, processes: vec![waits], ..Inside::default() });
}

/// The waits of the only process of a case.
fn first(s: &mut Signals) -> &mut Waits {
    let inside = s.inside.get_or_insert_default();
    if inside.processes.is_empty() {
        inside.processes.push(Waits::default());
    }
    &mut inside.processes[0]
}

/// The waits of the applications that requests wait for.
fn waiting(s: &Signals) -> impl Iterator<Item = &Waits> {
    let is_waited_for = wait_share(s) >= WAIT_SHARE;
    let all = s.inside.iter().filter(move |_| is_waited_for).flat_map(|inside| inside.processes.iter());
    all.filter(|waits| s.apps().any(|app| app.name == waits.process))
}

fn lock(s: &Signals) -> Option<FiredRule> {
    if connections(s).is_some() {
        return None;
    }
    let (waits, lock) = waiting(s).find_map(|waits| {
        let share = waits.shares.get(&TimeKind::Lock).copied().unwrap_or(0.0);
        let lock = waits.locks.first()?;
        (share >= MOST && waits.busy >= BUSY && lock.waiting >= BUSY * MOST).then_some((waits, lock))
    })?;
    let share = waits.shares.get(&TimeKind::Lock).copied().unwrap_or(0.0);
    let beside = waits.busy * (1.0 - share);
    // A semaphore of several places, which guards a pool, lets several threads go on at once. One thread holds a lock.
    let may_be_pool = beside >= SEVERAL && !lock.is_mutex;
    let subject = match may_be_pool {
        true => say!(APPLICATION_POOL_OR_LOCK, &waits.process),
        false => say!(APPLICATION_LOCK_THREADS_WAIT, &waits.process),
    };
    let found = FiredRule::new(subject, share)
        .with(texts::LABEL_LOCKS, told_locks(waits, lock, waits.busy * share))
        .with(texts::LABEL_HELD, told_beside(waits, beside))
        .with(texts::LABEL_THREADS, told_shares(waits))
        .with(texts::LABEL_CPU, cpu_of(s, &waits.process))
        .with(texts::LABEL_WAIT, wait(s))
        .slows(&[Segment::Wait]);
    if may_be_pool {
        return Some(
            found.knob(say!(LARGER_POOL_OR_LESS_UNDER_LOCK, digits(beside)), say!(ANSWERS_SECOND_GROW_POOL_UNTIL)),
        );
    }
    Some(found.knob(say!(LESS_WORK_UNDER_LOCK), say!(ANSWERS_SECOND_GROW_TIME)))
}

/// The lock at which most threads wait. A thread of Java waits at a futex of its own, whatever the lock.
fn told_locks(waits: &Waits, lock: &Lock, waiting: f64) -> Said {
    match lock.threads {
        0 | 1 => say!(LOCKS_EACH_OWN, &waits.process, digits(waiting)),
        _ => told_lock(&waits.process, lock),
    }
}

/// The work of the threads that have a request and do not wait for the lock. One of them holds it.
fn told_beside(waits: &Waits, beside: f64) -> Said {
    let part = |kind: TimeKind| waits.shares.get(&kind).copied().unwrap_or(0.0) * waits.busy / beside.max(1e-9);
    let rest = waits.shares.keys().filter(|kind| !matches!(kind, TimeKind::Lock | TimeKind::Ran | TimeKind::Queue));
    let most = rest.copied().max_by(|one, other| part(*one).total_cmp(&part(*other)));
    let (ran, queued) = (percent(part(TimeKind::Ran)), percent(part(TimeKind::Queue)));
    match most.filter(|kind| part(*kind) >= LEADING_MIN) {
        Some(kind) => say!(BESIDE_WAIT, digits(beside), ran, queued, percent(part(kind)), named(kind)),
        None => say!(BESIDE_RUN, digits(beside), ran, queued),
    }
}

/// The threads that take requests are all at requests and wait, and more requests wait for a thread.
fn threads(s: &Signals) -> Option<FiredRule> {
    if connections(s).is_some() || lock(s).is_some() || slow(s).is_some() {
        return None;
    }
    let apps = s.apps().count().max(1);
    let (_, micros) = s.edge.steps.get("wait").copied().unwrap_or_default();
    let inside = micros as f64 / 1e6 / s.seconds.max(1e-9) / apps as f64;
    let waits = waiting(s).find(|waits| {
        let all = waits.request_threads as f64;
        let share = |kind: TimeKind| waits.shares.get(&kind).copied().unwrap_or(0.0);
        let runs = share(TimeKind::Ran) + share(TimeKind::Queue) + share(TimeKind::Lock);
        waits.is_of_requests && all > 0.0 && waits.busy >= IN_USE * all && inside >= CROWDED * all && runs < MOST
    })?;
    let rest = waits.shares.iter().filter(|(kind, _)| !matches!(kind, TimeKind::Ran | TimeKind::Queue));
    let (kind, share) = rest.max_by(|one, other| one.1.total_cmp(other.1))?;
    let all = waits.request_threads;
    let found = FiredRule::new(say!(APPLICATION_THREADS_TAKE_REQUESTS, &waits.process, all), waits.busy / all as f64)
        .with(texts::LABEL_THREADS, say!(THREADS_BUSY_WAIT, digits(waits.busy), all, percent(*share), named(*kind)))
        .with(texts::LABEL_REQUESTS, told_clients(&waits.process, inside))
        .with(texts::LABEL_CPU, cpu_of(s, &waits.process))
        .with(texts::LABEL_WAIT, wait(s))
        .slows(&[Segment::Wait]);
    Some(squeezed(s, found, &waits.process).knob(say!(MORE_THREADS, wanted(inside)), say!(ANSWERS_GROW_THREADS)))
}

fn connections(s: &Signals) -> Option<FiredRule> {
    let (waits, peer, inside) = waiting(s).find_map(|waits| {
        let (_, inside) = waits.clients?;
        let full = |peer: &&UsedServer| {
            let all = peer.connections as f64;
            peer.connections > 0
                && peer.answers >= KEPT * peer.connections
                && peer.in_flight >= IN_USE * all
                && inside >= CROWDED * all
        };
        Some((waits, waits.peers.iter().find(full)?, inside))
    })?;
    let subject = say!(APPLICATION_CONNECTIONS, &waits.process, &peer.at);
    let found = FiredRule::new(subject, peer.in_flight / peer.connections.max(1) as f64)
        .with(texts::LABEL_CONNECTIONS, told_peer(&waits.process, peer))
        .with(texts::LABEL_REQUESTS, told_clients(&waits.process, inside))
        .with(texts::LABEL_CPU, cpu_of(s, &waits.process))
        .with(texts::LABEL_WAIT, wait(s))
        .slows(&[Segment::Wait]);
    Some(
        squeezed(s, found, &waits.process)
            .knob(say!(USE_POOL_CONNECTIONS_IF, wanted(inside), &peer.at), say!(ANSWERS_SECOND_GROW_POOL_UNTIL)),
    )
}

fn slow(s: &Signals) -> Option<FiredRule> {
    if connections(s).is_some() {
        return None;
    }
    let (waits, peer, share) = waiting(s).find_map(|waits| {
        let peer = waits.peers.first()?;
        let share = peer_share(waits, peer);
        (share >= MOST && peer.in_flight >= BUSY).then_some((waits, peer, share))
    })?;
    let subject = say!(APPLICATION_SERVER_ASKS, &waits.process, &peer.at);
    let found = FiredRule::new(subject, share)
        .with(texts::LABEL_CONNECTIONS, told_peer(&waits.process, peer))
        .with(texts::LABEL_THREADS, told_shares(waits))
        .with(texts::LABEL_CPU, cpu_of(s, &waits.process))
        .with(texts::LABEL_WAIT, wait(s))
        .slows(&[Segment::Wait]);
    Some(found.knob(say!(REDUCE_WORK_REQUEST_NUMBER, &peer.at), say!(WAIT_APPLICATION_FALLS_TIME, &peer.at)))
}

/// The part of its requests' time that an application waits for a peer. Computed from its threads, or from the
/// traffic on its connections.
fn peer_share(waits: &Waits, peer: &UsedServer) -> f64 {
    let by_threads = waits.shares.get(&TimeKind::Peer).copied().unwrap_or(0.0);
    if waits.is_of_requests {
        let all: f64 = waits.peers.iter().map(|peer| peer.waiting).sum();
        return if all > 0.0 { by_threads * peer.waiting / all } else { by_threads };
    }
    match waits.clients {
        Some((_, inside)) if inside > 0.0 => (peer.in_flight / inside).min(1.0),
        _ => by_threads,
    }
}

/// The least share of the time that is told as the longest wait.
const LEADING_MIN: f64 = 0.2;

/// Below so many busy threads for each request of a client inside, the requests do not wait in threads.
const IDLE_THREADS: f64 = 0.1;

/// The longest wait of the applications themselves, in a sentence. `None` if it is less than [`LEADING_MIN`].
pub fn leading(s: &Signals) -> Option<Said> {
    let inside = s.inside.as_ref()?;
    let of_apps = inside.processes.iter().filter(|waits| s.apps().any(|app| app.name == waits.process));
    let mut all: Vec<(f64, Said)> = Vec::new();
    for waits in of_apps {
        let name = &waits.process;
        if let Some(peer) = waits.peers.first() {
            let share = peer_share(waits, peer);
            let text = say!(REQUESTS_WAIT_THEIR_TIME, name, percent(share), &peer.at, &peer.connections);
            all.push((share, text));
        }
        // Goroutines and callbacks wait without a thread: the little that the threads do explains nothing.
        if let Some((_, inside)) = waits.clients.filter(|(_, inside)| waits.busy < inside * IDLE_THREADS) {
            let requests = digits(inside);
            let text = say!(REQUESTS_WAIT_WHILE_THREADS, requests, name);
            all.push((LEADING_MIN, text));
            continue;
        }
        // A peer is told with its address, above.
        let told =
            waits.shares.iter().filter(|(kind, _)| !matches!(kind, TimeKind::Ran | TimeKind::Peer | TimeKind::Client));
        for (kind, share) in told {
            all.push((*share, say!(THREADS_WAIT_TIME, name, percent(*share), named(*kind))));
        }
    }
    let (share, text) = all.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    (share >= LEADING_MIN).then_some(text)
}

/// The object of a wait, in words.
fn named(kind: TimeKind) -> Said {
    match kind {
        TimeKind::Lock => say!(A_LOCK),
        TimeKind::Disk => say!(A_DISK),
        TimeKind::Queue => say!(A_CPU),
        TimeKind::Parked => say!(LOCK_WORK_PROC_DOES),
        TimeKind::Sleep => say!(TIME_PASS),
        TimeKind::Child => say!(CHILDS_END),
        TimeKind::Thread => say!(OTHER_THREAD),
        TimeKind::Peer => say!(A_PEER),
        TimeKind::Pipe => say!(A_PIPE),
        TimeKind::Client | TimeKind::Idle | TimeKind::Ran | TimeKind::Other => say!(SOMETHING_ELSE),
    }
}

/// All observations, a sentence each.
pub fn lines(s: &Signals) -> Vec<Said> {
    let Some(inside) = &s.inside else { return Vec::new() };
    let seconds = digits(inside.seconds);
    let mut lines = vec![match (inside.is_traced, &inside.why) {
        (true, None) => say!(PROGRAMS_KERNEL_EBPF_WHICH, seconds),
        (true, Some(why)) => say!(PROGRAMS_KERNEL_EBPF_WITHOUT, seconds, why),
        (false, why) => {
            let why = why.as_ref().map_or_else(|| say!(NO_PROGRAM_KERNEL), Said::from);
            say!(PROC_50_TIMES_SECOND, seconds, why)
        }
    }];
    if inside.lost > 0 {
        lines.push(say!(KERNELS_TABLES_HAD_NO, &inside.lost));
    }
    let is_edges = |waits: &&Waits| s.processes.iter().any(|one| one.name == waits.process && one.role == Role::Edge);
    let is_told = |waits: &&Waits| waits.busy >= TOLD || waits.clients.is_some_and(|(_, inside)| inside >= TOLD);
    for waits in inside.processes.iter().filter(|waits| !is_edges(waits)).filter(is_told) {
        let name = &waits.process;
        lines.push(told_shares(waits));
        lines.extend(waits.clients.filter(|(count, _)| *count > 0).map(|(_, inside)| told_clients(name, inside)));
        let is_told = |lock: &&Lock| lock.waiting >= TOLD;
        lines.extend(waits.locks.iter().filter(is_told).take(2).map(|lock| told_lock(name, lock)));
        if waits.shares.contains_key(&TimeKind::Parked) {
            lines.extend(waits.parked.iter().take(2).map(|lock| told_lock(name, lock)));
        }
        lines
            .extend(waits.peers.iter().filter(|peer| peer.in_flight >= TOLD).take(3).map(|peer| told_peer(name, peer)));
    }
    lines.truncate(LINES_MAX);
    lines
}

fn told_shares(waits: &Waits) -> Said {
    let share = |kind| waits.shares.get(&kind).copied().unwrap_or(0.0);
    let named = [TimeKind::Ran, TimeKind::Queue, TimeKind::Lock, TimeKind::Peer, TimeKind::Disk];
    let [ran, queue, lock, peer, disk] = named.map(|kind| percent(share(kind)));
    // Rounding leaves a tiny rest in the sum of the parts.
    let other = 1.0 - named.iter().map(|kind| share(*kind)).sum::<f64>();
    let other = percent(if other < 1e-4 { 0.0 } else { other });
    let holes = [
        Said::from(&waits.process),
        Said::from(digits(waits.busy)),
        Said::from(waits.threads),
        Said::from(ran),
        Said::from(queue),
        Said::from(lock),
        Said::from(peer),
        Said::from(disk),
        Said::from(other),
    ];
    if waits.is_of_requests { texts::THREADS_AT_REQUESTS.with(&holes) } else { texts::THREADS_NOT_IDLE.with(&holes) }
}

fn told_lock(process: &str, lock: &Lock) -> Said {
    say!(LOCKS_THREADS_WAITING_AVERAGE, process, &lock.at, &lock.threads, digits(lock.waiting), digits(lock.ms))
}

fn told_peer(process: &str, peer: &UsedServer) -> Said {
    if peer.answers == 0 {
        return say!(CONNECTIONS_THREADS_WAITING_AVERAGE, process, &peer.at, &peer.connections, digits(peer.waiting));
    }
    say!(
        CONNECTIONS_REQUESTS_FLIGHT_AVERAGE,
        process,
        &peer.at,
        &peer.connections,
        digits(peer.in_flight),
        digits(peer.ms),
        digits(peer.most_ms)
    )
}

fn told_clients(process: &str, inside: f64) -> Said {
    say!(REQUESTS_CLIENTS_AVERAGE, process, digits(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_rule_speaks_the_longest_wait_is_told() {
        let mut s = Signals::quiet();
        assert_eq!((leading(&s), lines(&s)), (None, Vec::new()));
        seen(&mut s, &[(TimeKind::Disk, 0.8), (TimeKind::Ran, 0.2)], None, (10, 3.0));
        assert_eq!(leading(&s).as_deref(), Some("threads of app wait 80 % of the time for a disk"));
        seen(&mut s, &[(TimeKind::Lock, 0.9), (TimeKind::Peer, 0.1)], Some((2, 1.97)), (80, 30.0));
        assert_eq!(leading(&s).as_deref(), Some("threads of app wait 90 % of the time for a lock"));
        let told = lines(&s);
        assert!(told[0].starts_with("by programs in the kernel (eBPF)"), "{told:?}");
        let peer = "from app to 10.0.0.3:5432: 2 connections, 1.97 requests in flight on the average, 50.0 ms each, 61.0 at most";
        assert!(told.iter().any(|line| line == peer), "{told:?}");
        // An event loop: its threads show nothing, its connections do.
        if let Some(waits) = s.inside.as_mut().and_then(|inside| inside.processes.first_mut()) {
            waits.is_of_requests = false;
            waits.shares = [(TimeKind::Ran, 1.0)].into();
            waits.clients = Some((80, 1.97));
        }
        let text = "requests in app wait 100 % of their time for 10.0.0.3:5432, over 2 connections";
        assert_eq!(leading(&s).as_deref(), Some(text));
        // Goroutines: nearly no thread is busy, and no connection leads to a server.
        if let Some(waits) = s.inside.as_mut().and_then(|inside| inside.processes.first_mut()) {
            (waits.busy, waits.clients, waits.peers) = (0.2, Some((80, 15.4)), Vec::new());
            waits.shares = [(TimeKind::Ran, 0.15), (TimeKind::Queue, 0.85)].into();
        }
        let text = "15.4 requests in app wait while its threads are idle: the program itself makes them wait, where weir cannot look";
        assert_eq!(leading(&s).as_deref(), Some(text));
    }

    /// Four threads that each sleep in a request: no lock, and more threads help.
    #[test]
    fn a_pool_of_threads_that_sleep_is_no_lock() {
        let mut s = Signals::quiet();
        seen(&mut s, &[(TimeKind::Sleep, 0.97), (TimeKind::Ran, 0.03)], None, (900, 3.95));
        first(&mut s).request_threads = 4;
        assert_eq!(lock(&s), None);
        let found = threads(&s).unwrap_or_default();
        assert_eq!(found.subject, "application app: its 4 threads that take requests");
        assert!(found.knob.contains("more threads (about 10)"), "{}", found.knob);
        assert!(found.evidence[0].1.contains("97 % of their time for a time to pass"), "{found:?}");
    }

    #[test]
    fn who_works_beside_the_waiting_is_told() {
        let mut s = Signals::quiet();
        seen(&mut s, &[(TimeKind::Lock, 0.9), (TimeKind::Ran, 0.1)], None, (900, 10.0));
        let found = lock(&s).unwrap_or_default();
        assert!(found.evidence[1].1.contains("other threads at requests: they ran 100 %"), "{found:?}");
        assert!(found.knob.contains("more threads do not help"));
        // As in Java, each waits at a place of its own.
        first(&mut s).locks[0].threads = 1;
        let found = lock(&s).unwrap_or_default();
        assert!(found.evidence[0].1.contains("9.00 threads waiting on the average, each at"), "{found:?}");
        // Three go on at once: it may be a pool of three.
        seen(&mut s, &[(TimeKind::Lock, 0.7), (TimeKind::Sleep, 0.3)], None, (900, 10.0));
        let found = lock(&s).unwrap_or_default();
        assert!(found.evidence[1].1.contains("waited 100 % for a time to pass"), "{found:?}");
        assert!(found.knob.contains("3.00 at once") && found.subject.contains("a pool, or a lock"), "{found:?}");
        // A mutex of the C library is no pool.
        first(&mut s).locks[0].is_mutex = true;
        assert!(lock(&s).unwrap_or_default().knob.contains("more threads do not help"));
    }

    #[test]
    fn the_way_and_why_it_was_no_better_are_told() {
        let mut s = Signals::quiet();
        s.inside = Some(Inside { why: Some("the kernel refused the maps".into()), seconds: 2.0, ..Inside::default() });
        assert_eq!(
            lines(&s),
            ["by /proc, 50 times a second for 2.00 s, which misses short waits: the kernel refused the maps"]
        );
        s.inside = Some(Inside { is_traced: true, why: Some("x".into()), lost: 7, ..Inside::default() });
        assert!(
            lines(&s)[0].ends_with("without connections: x")
                && lines(&s)[1].starts_with("the kernel's tables had no room for 7 waits")
        );
    }
}
