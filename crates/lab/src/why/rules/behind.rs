//! Behind the edge: an application that turns connections away, and slow name resolution.

use super::inside::cpu_of;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Tier, percent};
use crate::why::signals::{HostSignals, ProcessSignals, Role, Signals};

/// Least number of turned-away connections that counts: fewer may be unrelated to the load.
const TURNED_AWAY: u64 = 3;
/// If an application uses more of its CPUs than this, it accepts late because it computes: its CPU is the cause.
const BUSY: f64 = 0.7;
/// Least mean number of name queries without an answer yet.
const ASKING: f64 = 0.3;
/// Least part of a request's time that name queries take.
const PART: f64 = 0.2;
/// Least part of a request's time that is spent in an edge that waits for a name.
const HELD_PART: f64 = 0.5;
/// Least time that a request spends in an edge that waits for a name, ms.
const HELD_LEAST_MS: f64 = 10.0;

/// Least mean number of lookups, as a part of those that a pool allows, at which the pool is full: as for a pool of connections.
const POOL_USED: f64 = 0.85;
/// From this many requests for each lookup that the pool allows on, requests wait for the pool.
const CROWDED: f64 = 1.3;
/// The largest pool of libuv.
// libuv: MAX_THREADPOOL_SIZE.
const LIBUV_THREADS_MAX: f64 = 1024.0;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B49",
        says: texts::APPLICATIONS_QUEUE_CONNECTIONS_ACCEPT,
        tier: Tier::Limit,
        check: turned_away,
        fires: |s| {
            s.hosts.push(HostSignals {
                name: "origin".into(),
                counters: [("ListenOverflows".to_owned(), 1143)].into(),
                queues: [("0.0.0.0:3000".to_owned(), (9, 8))].into(),
                turned_away: [("0.0.0.0:3000".to_owned(), 1143)].into(),
                ..HostSignals::default()
            });
        },
        silent: |s| {
            // It turns connections away because it computes.
            s.hosts.push(HostSignals {
                name: "origin".into(),
                queues: [("0.0.0.0:3000".to_owned(), (9, 8))].into(),
                turned_away: [("0.0.0.0:3000".to_owned(), 1143)].into(),
                ..HostSignals::default()
            });
            s.processes.iter_mut().filter(|process| process.role == Role::App).for_each(|app| app.cpu = 0.97);
        },
    },
    Rule {
        id: "B50",
        says: texts::NAME_RESOLUTION_SLOW_QUERIES,
        tier: Tier::Limit,
        check: names,
        fires: |s| {
            let host = HostSignals {
                name: "origin".into(),
                asking_names: 10.0,
                questions: (10.0, 2000),
                ..HostSignals::default()
            };
            s.hosts.push(host);
            s.load.ms = [55.0, 54.0, 60.0, 66.0, 70.0];
        },
        silent: |s| {
            // Each query is answered at once.
            let host = HostSignals {
                name: "origin".into(),
                asking_names: 0.1,
                questions: (0.1, 2000),
                ..HostSignals::default()
            };
            s.hosts.push(host);
            s.load.ms = [55.0, 54.0, 60.0, 66.0, 70.0];
        },
    },
];

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

/// Whether the process is on this host and is an application or a server that applications use.
fn is_behind(process: &ProcessSignals, host: &HostSignals) -> bool {
    process.host == host.name && matches!(process.role, Role::App | Role::Beside)
}

fn turned_away(s: &Signals) -> Option<FiredRule> {
    // The edge's own listeners belong to rule B10.
    let is_apps = |host: &HostSignals, address: &str| {
        !host.is_hub
            || s.edge.peers.keys().any(|peer| port(peer) == port(address))
            || s.processes
                .iter()
                .any(|process| is_behind(process, host) && process.listens.iter().any(|at| port(at) == port(address)))
    };
    let all =
        s.hosts.iter().flat_map(|host| host.turned_away.iter().map(move |(address, count)| (host, address, *count)));
    let (host, address, count) =
        all.filter(|(host, address, _)| is_apps(host, address)).max_by_key(|(_, _, count)| *count)?;
    if count < TURNED_AWAY {
        return None;
    }
    let own = s
        .processes
        .iter()
        .find(|process| is_behind(process, host) && process.listens.iter().any(|at| port(at) == port(address)));
    let used = match own {
        Some(own) => own.usage().max(own.wanted()),
        None => s.apps().map(|app| app.usage().max(app.wanted())).fold(0.0, f64::max),
    };
    if used >= BUSY || own.is_some_and(|own| own.throttled > 0.05 || own.memory_killed > 0) {
        return None;
    }
    let (most, room) = host.queues.get(address).copied().unwrap_or_default();
    let whose = own.map_or_else(|| host.name.clone(), |own| own.name.clone());
    let found = FiredRule::new(say!(APPLICATION_QUEUE_CONNECTIONS_ACCEPT, whose, address), 0.92)
        .with(texts::LABEL_OVERFLOWS, say!(TIMES_KERNEL_REJECTED_CONNECTION, count))
        .with(texts::LABEL_QUEUE, say!(MOST_WAITED_QUEUE_ROOM, most, room))
        .with(texts::LABEL_CPU, say!(CPUS_USED_WAITS_INSTEAD, percent(used)))
        .slows(&[Segment::Connect, Segment::Wait, Segment::Outside]);
    Some(found.knob(say!(FIND_WORK_KEEPS_APPLICATION), say!(NO_CONNECTION_WAITS_SECOND)))
}

fn names(s: &Signals) -> Option<FiredRule> {
    let unresolved = s.said("unresolved");
    edges_names(s)
        .or_else(|| nodes_names(s))
        .or_else(|| apps_names(s))
        .or_else(|| (unresolved > 0).then(|| failed(s, unresolved)))
}

/// An application resolves names. Each waiting query is an open socket. Little's law turns their mean number into a
/// wait.
fn apps_names(s: &Signals) -> Option<FiredRule> {
    // The edge's own resolver keeps its socket open, even if it waits for no answer.
    let open = |host: &HostSignals| {
        let sockets = if host.is_hub && s.conf.has_resolver { 0.0 } else { host.asking_names };
        if host.asking_names > 0.0 { host.questions.0.max(sockets) } else { 0.0 }
    };
    let host = s.hosts.iter().max_by(|one, other| open(one).total_cmp(&open(other)))?;
    let each = open(host) * s.seconds * 1000.0 / s.load.sent.max(1) as f64;
    let part = each / s.load.ms[0].max(1e-9);
    if open(host) < ASKING || part < PART {
        return None;
    }
    let found = FiredRule::new(say!(APPLICATION_NAME_RESOLUTION_SLOW, &host.name), part)
        .with(texts::LABEL_QUERIES, say!(ANY_MOMENT_QUERIES_NAME, digits(open(host))))
        .with(texts::LABEL_WAITS, say!(ABOUT_MS_REQUEST_MEAN, digits(each), digits(s.load.ms[0])))
        .slows(&[Segment::Wait]);
    Some(remedy(found))
}

/// Node.js looks names up with a few threads (libuv), and more requests wait for these threads. Its sockets to the name server are as
/// many as its lookups at once, however many requests there are.
fn nodes_names(s: &Signals) -> Option<FiredRule> {
    let apps = s.apps().count().max(1);
    let (_, micros) = s.edge.steps.get("wait").copied().unwrap_or_default();
    let requests = micros as f64 / 1e6 / s.seconds.max(1e-9) / apps as f64;
    let (app, threads, open) = s.apps().find_map(|app| {
        let threads = app.uv_threads?;
        let host = s.hosts.iter().find(|host| host.name == app.host && !(host.is_hub && s.conf.has_resolver))?;
        // By eBPF, if it was asked for: it sees every lookup.
        let traced = s.inside.iter().flat_map(|inside| &inside.processes).filter(|waits| waits.process == app.name);
        let traced = traced.flat_map(|waits| &waits.peers).filter(|peer| peer.at.ends_with(":53"));
        let open = traced.map(|peer| peer.in_flight).sum::<f64>().max(host.asking_names);
        let most = at_once(threads);
        (open >= POOL_USED * most && requests >= CROWDED * most && app.usage() < BUSY).then_some((app, threads, open))
    })?;
    let most = at_once(threads);
    let found = FiredRule::new(say!(NODES_THREADS_FOR_NAMES, &app.name), (open / most).min(1.0))
        .with(texts::LABEL_THREADS, say!(LOOKUPS_AT_ONCE, digits(open), most as u64, threads))
        .with(texts::LABEL_REQUESTS, say!(REQUESTS_CLIENTS_AVERAGE, &app.name, digits(requests)))
        .with(texts::LABEL_CPU, cpu_of(s, &app.name))
        .slows(&[Segment::Wait]);
    // As many lookups at once as there are requests need twice as many threads.
    let wanted = (2.0 * requests).ceil().min(LIBUV_THREADS_MAX) as u64;
    Some(found.knob(say!(LARGER_LIBUV_POOL, wanted), say!(NO_LOOKUP_WAITS)))
}

/// How many lookups a pool of libuv runs at once.
// libuv: slow_work_thread_threshold(), `(nthreads + 1) / 2` for UV__WORK_SLOW_IO, which getaddrinfo is.
fn at_once(threads: u64) -> f64 {
    threads.div_ceil(2).max(1) as f64
}

/// The edge resolves names (`resolver`): requests wait in the edge before it contacts an upstream, its CPU is not
/// full, and it sent queries.
fn edges_names(s: &Signals) -> Option<FiredRule> {
    let hub = s.hub()?;
    if !s.conf.has_resolver || hub.asking_names <= 0.0 || hub.questions.1 == 0 {
        return None;
    }
    // nginx's log does not divide this wait from other time before the answer's head. weir has no step for it.
    let held = s.step_ms("write") + Segment::Undivided.ms(s) + Segment::Outside.ms(s);
    let edge = s.edge_process()?;
    let is_idle = edge.usage() < BUSY && edge.wanted() < BUSY && edge.throttled < 0.05;
    let part = held / s.load.ms[0].max(1e-9);
    let overflows = hub.counters.get("ListenOverflows").copied().unwrap_or(0);
    let is_slow_link = s.hosts.iter().any(|host| host.link_max.is_some_and(|most| host.link_bits > 0.5 * most));
    if part < HELD_PART || held < HELD_LEAST_MS || !is_idle || overflows >= TURNED_AWAY || is_slow_link {
        return None;
    }
    let unresolved = s.said("unresolved");
    let found = FiredRule::new(say!(EDGE_NAME_RESOLUTION_SLOW), part)
        .with(texts::LABEL_QUERIES, say!(HOST_SENT_DATAGRAMS_SOCKET, &hub.questions.1))
        .with(texts::LABEL_WAITS, say!(MS_REQUESTS_MEAN_MS_PASS, digits(held), digits(s.load.ms[0])))
        .with(texts::LABEL_EDGE, say!(CPUS_USED_WAITS_INSTEAD, percent(edge.usage())))
        .with(texts::LABEL_FAILED, if unresolved > 0 { unresolved_names(unresolved) } else { Said::default() })
        .slows(&[Segment::Body, Segment::Undivided, Segment::Outside, Segment::Edge]);
    Some(remedy(found))
}

fn unresolved_names(count: u64) -> Said {
    say!(NAMES_NOT_RESOLVED_LOG, count)
}

fn remedy(found: FiredRule) -> FiredRule {
    found.knob(say!(USE_NEARER_NAME_SERVER), say!(NO_REQUEST_WAITS_NAME))
}

/// The edge's resolver failed, and no query was seen waiting.
fn failed(s: &Signals, unresolved: u64) -> FiredRule {
    let share = unresolved as f64 / s.load.sent.max(1) as f64;
    FiredRule::new(say!(EDGE_NAMES_NOT_RESOLVED), share.max(0.5))
        .with(texts::LABEL_FAILED, unresolved_names(unresolved))
        .knob(say!(CHECK_RESOLVERS_ADDRESS_NAME), say!(NO_REQUEST_FAILS_BECAUSE))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_edge_that_waits_for_names_is_told_from_one_that_works() {
        let mut s = Signals::quiet();
        s.conf.has_resolver = true;
        s.load.ms = [95.0, 1.0, 504.0, 585.0, 605.0];
        s.hosts[0].asking_names = 1.0;
        s.hosts[0].questions = (0.0, 4);
        let found = names(&s).unwrap();
        assert_eq!(found.subject, "edge: name resolution is slow");
        // None of these: the edge computes; there is no resolver; no query was sent.
        let mut other = s.clone();
        other.processes[0].cpu = 0.95;
        assert_eq!(names(&other), None);
        let mut other = s.clone();
        other.conf.has_resolver = false;
        other.hosts[0].asking_names = 0.0;
        assert_eq!(names(&other), None);
        s.hosts[0].questions = (0.0, 0);
        assert_eq!(names(&s), None);
        s.said.insert("unresolved".into(), 7);
        assert_eq!(names(&s).unwrap().subject, "edge: names are not resolved");
    }

    /// Two lookups at once, for however many requests: each waits 60 ms for its name, and ten times as long for a thread.
    #[test]
    fn lookups_that_wait_for_threads_of_node_are_seen() {
        let mut s = Signals::quiet();
        s.load.ms = [480.0, 470.0, 500.0, 510.0, 520.0];
        s.edge.steps.insert("wait".into(), (330, 158_000_000));
        (s.processes[1].host, s.processes[1].uv_threads) = ("origin".into(), Some(4));
        s.hosts.push(HostSignals {
            name: "origin".into(),
            asking_names: 2.0,
            questions: (4.0, 660),
            ..HostSignals::default()
        });
        let found = names(&s).unwrap();
        assert_eq!(found.subject, "application app: lookups of names wait for the threads of Node.js (libuv)");
        assert!(
            found.evidence[0].1.contains("2.00 lookups at once on the average, of 2 that its pool of 4 threads allows"),
            "{found:?}"
        );
        assert!(found.knob.starts_with("UV_THREADPOOL_SIZE=32"), "{}", found.knob);
        // A larger pool, of which as many are used.
        s.processes[1].uv_threads = Some(64);
        assert!(names(&s).is_none_or(|found| !found.subject.contains("libuv")));
    }

    #[test]
    fn an_application_whose_cpu_is_full_is_late_and_not_deaf() {
        let (mut s, rule) = (Signals::quiet(), &RULES[0]);
        (rule.fires)(&mut s);
        assert!(turned_away(&s).unwrap().subject.contains("0.0.0.0:3000"));
        s.hosts.iter_mut().for_each(|host| _ = host.turned_away.insert("0.0.0.0:3000".into(), 2));
        assert_eq!(turned_away(&s), None);
        // The edge's own listener belongs to another rule.
        s.hosts[0].turned_away.insert("0.0.0.0:80".into(), 500);
        assert_eq!(turned_away(&s), None);
    }
}
