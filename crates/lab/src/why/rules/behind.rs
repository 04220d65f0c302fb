//! Behind the edge: an application that turns connections away, and names that take long to be resolved.

use crate::metric::digits;
use crate::why::rule::{Found, Rule, Segment, Tier, percent};
use crate::why::signals::{Host, Process, Role, Signals};

/// Connections turned away that may be anybody's.
const TURNED_AWAY: u64 = 3;
/// An application that computes is late to accept: its CPU is the cause.
const BUSY: f64 = 0.7;
/// Questions that wait for an answer at any moment, on the average.
const ASKING: f64 = 0.3;
/// And such a part of a request's time.
const PART: f64 = 0.2;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B49",
        says: "an application's queue of connections to accept overflows, and its CPU is not full",
        tier: Tier::Limit,
        check: turned_away,
        fires: |s| {
            s.hosts.push(Host {
                name: "origin".into(),
                counters: [("ListenOverflows".to_owned(), 1143)].into(),
                queues: [("0.0.0.0:3000".to_owned(), (9, 8))].into(),
                turned_away: [("0.0.0.0:3000".to_owned(), 1143)].into(),
                ..Host::default()
            });
        },
        silent: |s| {
            // It turns connections away because it computes.
            s.hosts.push(Host {
                name: "origin".into(),
                queues: [("0.0.0.0:3000".to_owned(), (9, 8))].into(),
                turned_away: [("0.0.0.0:3000".to_owned(), 1143)].into(),
                ..Host::default()
            });
            s.processes.iter_mut().filter(|process| process.role == Role::App).for_each(|app| app.cpu = 0.97);
        },
    },
    Rule {
        id: "B50",
        says: "names are resolved slowly: questions to a name server wait for their answers",
        tier: Tier::Limit,
        check: names,
        fires: |s| {
            let host = Host { name: "origin".into(), asking_names: 10.0, questions: (10.0, 2000), ..Host::default() };
            s.hosts.push(host);
            s.load.ms = [55.0, 54.0, 60.0, 66.0, 70.0];
        },
        silent: |s| {
            // Each is answered at once.
            let host = Host { name: "origin".into(), asking_names: 0.1, questions: (0.1, 2000), ..Host::default() };
            s.hosts.push(host);
            s.load.ms = [55.0, 54.0, 60.0, 66.0, 70.0];
        },
    },
];

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

/// Whose sockets are on a host: applications, and whom these ask.
fn is_behind(process: &Process, host: &Host) -> bool {
    process.host == host.name && matches!(process.role, Role::App | Role::Beside)
}

fn turned_away(s: &Signals) -> Option<Found> {
    // The edge's own listeners are B10's.
    let is_apps = |host: &Host, address: &str| {
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
    let found = Found::new(format!("application {whose}: its queue of connections to accept at {address}"), 0.92)
        .with("overflows", format!("{count} times the kernel turned a connection away: the queue was full"))
        .with("queue", format!("{most} waited at most, of {room} that may"))
        .with("cpu", format!("its CPUs were {} used: it waits, it does not work", percent(used)))
        .slows(&[Segment::Connect, Segment::Wait, Segment::Outside]);
    Some(found.knob(
        "find what keeps the application from accepting; a larger backlog (listen(port, host, 4096), net.core.somaxconn) for bursts",
        "no connection waits a second for its SYN to be sent again",
    ))
}

fn names(s: &Signals) -> Option<Found> {
    let unresolved = s.said("unresolved");
    let asks = |host: &&Host| host.asking_names > 0.0 && host.questions.0 >= ASKING;
    let host = s.hosts.iter().filter(asks).max_by(|one, other| one.questions.0.total_cmp(&other.questions.0));
    let Some(host) = host else {
        return (unresolved > 0).then(|| failed(s, unresolved));
    };
    let (open, sent) = host.questions;
    // Little's law: so many at once, so many a second.
    let ms = open * s.seconds * 1000.0 / sent.max(1) as f64;
    let each = ms * sent as f64 / s.load.sent.max(1) as f64;
    let is_edges = host.is_hub && s.conf.has_resolver;
    // Of a resolver that asks once for all that wait, each waits as long as the question does.
    let part = if is_edges { open.min(1.0) } else { each / s.load.ms[0].max(1e-9) };
    if part < PART && unresolved == 0 {
        return None;
    }
    let whose = if is_edges { "edge".to_owned() } else { format!("application on {}", host.name) };
    let found = Found::new(format!("{whose}: names are resolved slowly"), part)
        .with("queries", format!("{sent} questions to name servers, {} without an answer at any moment", digits(open)))
        .with(
            "waits",
            format!(
                "about {} ms a question: {} of a request's mean {} ms",
                digits(ms),
                percent(part.min(1.0)),
                digits(s.load.ms[0])
            ),
        )
        .with(
            "failed",
            if unresolved > 0 {
                format!("{unresolved} names were not resolved (the edge's log)")
            } else {
                String::new()
            },
        )
        .slows(if is_edges { &[Segment::Body, Segment::Outside, Segment::Edge] } else { &[Segment::Wait] });
    Some(found.knob(
        "a name server that is nearer (a cache on the same host); names kept for longer (resolver … valid=30s); addresses instead of names",
        "no request waits for a name",
    ))
}

/// The edge's resolver got no answer, and no question was seen to wait.
fn failed(s: &Signals, unresolved: u64) -> Found {
    let share = unresolved as f64 / s.load.sent.max(1) as f64;
    Found::new("edge: names are not resolved", share.max(0.5))
        .with("failed", format!("{unresolved} names were not resolved (the edge's log)"))
        .knob("the resolver's address, and that name; the name server's own log", "no request fails for its name")
}
