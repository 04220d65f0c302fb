//! Limits that were met: ports, the connection table, descriptors, queues. Each finding rests on a counter or a log
//! line.

use super::upstream;
use crate::metric::digits;
use crate::why::rule::{Found, Rule, Segment, Squeeze, Tier, of, percent};
use crate::why::signals::{Host, Signals};

/// Linux keeps a port for a minute if the side that holds the port closed the connection first (TCP_TIMEWAIT_LEN).
const TIME_WAIT_S: f64 = 60.0;
/// A queue that is this full is near its limit.
const QUEUE_FULL: f64 = 0.9;
/// Share of samples in which an application's queue has to be non-empty.
const LASTING: f64 = 0.6;
/// Least number of listen overflows that counts: fewer may be unrelated to the load.
const OVERFLOWS_MIN: u64 = 3;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B01",
        says: "the edge ran out of local ports towards an upstream",
        tier: Tier::Limit,
        check: ports,
        fires: |s| {
            s.said.insert("no_port".into(), 400);
            s.load.errors.insert("502".into(), 400);
            s.hosts.iter_mut().for_each(|host| {
                host.ports = 200;
                host.held.insert("127.0.0.1:3000".into(), (200, 190));
            });
        },
        silent: |s| {
            s.load.errors.insert("502".into(), 400);
            s.hosts.iter_mut().for_each(|host| host.ports = 200);
        },
    },
    Rule {
        id: "B05",
        says: "the edge's connection table was full",
        tier: Tier::Limit,
        check: table,
        fires: |s| {
            s.conf.worker_connections = Some(32);
            s.edge.active_max = 31;
            s.said.insert("connections".into(), 40);
            s.load.errors.insert("ECONNRESET".into(), 40);
        },
        silent: |s| {
            s.conf.worker_connections = Some(32);
            s.load.errors.insert("ECONNRESET".into(), 40);
        },
    },
    Rule {
        id: "B06",
        says: "the edge closed idle clients' connections to make room for others",
        tier: Tier::Limit,
        check: recycled,
        fires: |s| {
            s.conf.worker_connections = Some(32);
            s.said.insert("recycled".into(), 700);
            s.edge.accepted = 800;
        },
        silent: |s| {
            s.edge.accepted = 800;
        },
    },
    Rule {
        id: "B07",
        says: "the edge ran out of file descriptors",
        tier: Tier::Limit,
        check: files,
        fires: |s| {
            s.said.insert("no_file".into(), 30);
            s.processes.iter_mut().for_each(|process| process.fds = (30, 30));
        },
        silent: |s| s.processes.iter_mut().for_each(|process| process.fds = (290, 1024)),
    },
    Rule {
        id: "B10",
        says: "connections waited for the edge's accept until the queue was full",
        tier: Tier::Limit,
        check: |s| queue(s, true),
        fires: |s| {
            s.hosts.iter_mut().for_each(|host| {
                host.counters.insert("ListenOverflows".into(), 171);
                host.queues.insert("0.0.0.0:80".into(), (9, 8));
            });
        },
        silent: |s| {
            s.hosts.iter_mut().for_each(|host| {
                host.queues.insert("0.0.0.0:80".into(), (3, 8));
            });
        },
    },
    Rule {
        id: "B11",
        says: "connections came faster than the queue of half-open connections accepts them",
        tier: Tier::Limit,
        check: syns,
        fires: |s| s.hosts.iter_mut().for_each(|host| host.counters.extend([("TCPReqQFullDoCookies".into(), 46)])),
        silent: |s| s.hosts.iter_mut().for_each(|host| host.counters.extend([("TCPTimeouts".into(), 46)])),
    },
    Rule {
        id: "B22",
        says: "an application lets connections wait although its CPU is not full: one of its pools is full",
        tier: Tier::Limit,
        check: pool,
        fires: |s| {
            s.hosts.iter_mut().for_each(|host| {
                host.queues.insert("127.0.0.1:3000".into(), (40, 128));
                host.lasting.insert("127.0.0.1:3000".into(), 0.9);
            });
        },
        silent: |s| {
            s.processes.iter_mut().filter(|process| process.name == "app").for_each(|process| {
                process.cpu = 0.97;
                process.threads = vec![(0.97, 0.02)];
            });
            s.hosts.iter_mut().for_each(|host| {
                host.queues.insert("127.0.0.1:3000".into(), (40, 128));
                host.lasting.insert("127.0.0.1:3000".into(), 0.9);
            });
        },
    },
];

fn ports(s: &Signals) -> Option<Found> {
    let failed = s.said("no_port").max(s.edge_errors("no_port"));
    let hub = s.hub()?;
    let (peer, (held, resting)) = hub.held.iter().max_by_key(|(_, (held, _))| *held)?;
    let share = *held as f64 / hub.ports.max(1) as f64;
    // Near the end of the ports, errors are a matter of seconds. Far from it, errors have another cause.
    if failed == 0 && share < 0.95 {
        return None;
    }
    let cap = hub.ports as f64 / TIME_WAIT_S;
    let who = if *resting * 2 > *held { "the edge closes first" } else { "connections are open" };
    let ok = s.goodput();
    let found = Found::new(format!("edge → {peer}: local ports"), share.max(0.95))
        .with(
            "failed",
            format!("{failed} connects had no port (errno 99), {} requests failed", of(s.failed(), s.load.sent)),
        )
        .with("ports", format!("{held} of {} held towards {peer}, {resting} of them in TIME_WAIT: {who}", hub.ports))
        .with(
            "predicted",
            format!(
                "{} / 60 s = {} new connections a second are the most that can continue; the edge answered {}/s",
                hub.ports,
                digits(cap),
                digits(ok)
            ),
        )
        .squeezed(Squeeze::Ports(hub.name.clone()));
    let knob = match (s.conf.keepalive, s.conf.can_keep) {
        (None | Some(0), _) => upstream::pool(s, 64),
        (Some(1..), false) => {
            "proxy_http_version 1.1; proxy_set_header Connection \"\";   (without these lines, keepalive does nothing)".to_owned()
        }
        (Some(1..), true) => {
            "raise keepalive, or add addresses of the upstream; a wider net.ipv4.ip_local_port_range only delays the problem"
                .to_owned()
        }
    };
    Some(found.knob(knob, "new connections a request → below 0.02, and no errors of this kind"))
}

fn table(s: &Signals) -> Option<Found> {
    let said = s.said("connections");
    let dropped = s.edge.dropped;
    // If weir's file sets no number, its limit is the limit on open files.
    if said + dropped == 0 || said == 0 && s.conf.worker_connections.is_none() {
        return None;
    }
    let slots = s.conf.worker_connections.map_or("512 (nginx's default)".to_owned(), |slots| slots.to_string());
    let share = s.failed_share();
    let found = Found::new("edge: worker_connections", 0.95_f64.max(share))
        .with(
            "refused",
            format!("{} connections found no slot (\"worker_connections are not enough\")", said.max(dropped)),
        )
        .with("failed", of(s.failed(), s.load.sent))
        .with(
            "table",
            format!(
                "{} of clients open at most, {slots} slots a worker; a proxied request holds two",
                s.edge.active_max
            ),
        )
        .squeezed(Squeeze::Slots);
    let knob = format!(
        "worker_connections {};   (descriptors: worker_rlimit_nofile at least that)",
        next_size(s.conf.worker_connections.unwrap_or(512))
    );
    Some(found.knob(knob, "every connection finds a slot; the upstream then gets all connections at once"))
}

/// Four times as many, rounded up to a power of two.
fn next_size(slots: u64) -> u64 {
    (slots * 4).next_power_of_two().max(1024)
}

fn recycled(s: &Signals) -> Option<Found> {
    let said = s.said("recycled");
    if said == 0 || s.said("connections") + s.edge.dropped > said {
        return None;
    }
    let per_request = s.edge.accepted as f64 / s.load.sent.max(1) as f64;
    let found = Found::new("edge: idle clients occupy worker_connections", 0.9)
        .with("recycled", format!("{said} times idle connections were closed for new ones (\"reusing connections\")"))
        .with(
            "accepted",
            format!("{} connections for {} requests: {} a request", s.edge.accepted, s.load.sent, digits(per_request)),
        )
        .with(
            "table",
            format!("{} slots a worker, {} idle at most", s.conf.worker_connections.unwrap_or(512), s.edge.idle_max),
        )
        .slows(&[Segment::Outside])
        .squeezed(Squeeze::Slots);
    let knob = format!("worker_connections {};", next_size(s.conf.worker_connections.unwrap_or(512)));
    Some(
        found
            .knob(knob, "connections per request → only the connections that clients open themselves; with TLS, equally fewer handshakes"),
    )
}

fn files(s: &Signals) -> Option<Found> {
    let failed = s.said("no_file").max(s.edge_errors("no_file"));
    let edge = s.edge_process()?;
    let (open, limit) = edge.fds;
    let met: u64 = s.edge.limits.iter().filter(|(name, _)| name.starts_with("fds")).map(|(_, (_, _, met))| met).sum();
    if failed + met == 0 {
        return None;
    }
    let found = Found::new("edge: open files", 0.98)
        .with("failed", format!("{} times there was no descriptor (errno 24)", failed.max(met)))
        .with("files", format!("{open} open at most of {limit} that the process may have"))
        .with("requests", format!("{} failed; p50 {} ms", of(s.failed(), s.load.sent), digits(s.load.ms[1])))
        .slows(&[Segment::Outside, Segment::Edge])
        .squeezed(Squeeze::Files(edge.name.clone()));
    Some(found.knob(
        format!(
            "worker_rlimit_nofile {};   (or LimitNOFILE= of its systemd unit)",
            (limit * 4).next_power_of_two().max(1024)
        ),
        "no EMFILE, no accept that waits half a second",
    ))
}

fn queue(s: &Signals, of_edge: bool) -> Option<Found> {
    let hub = s.hub()?;
    let apps: Vec<&str> = s.edge.peers.keys().map(|peer| port(peer)).collect();
    let own = |address: &str| !apps.contains(&port(address)) || hub.queues.len() == 1;
    let (address, (most, room)) =
        hub.queues.iter().filter(|(address, _)| own(address) == of_edge).max_by_key(|(_, (most, _))| *most)?;
    // The counter covers all listeners of a host. Subtract the connections that the other sockets turned away.
    let others: u64 = hub.turned_away.iter().filter(|(known, _)| own(known) != of_edge).map(|(_, count)| count).sum();
    let overflows = hub.counters.get("ListenOverflows").copied().unwrap_or(0).saturating_sub(others);
    let is_full = *room > 0 && *most as f64 >= QUEUE_FULL * *room as f64;
    if overflows < OVERFLOWS_MIN && !is_full {
        return None;
    }
    // The counter covers all listeners of a host. It counts as the edge's only if the edge's queue was seen to fill.
    let others =
        hub.queues.iter().filter(|(address, _)| own(address) != of_edge).map(|(_, (most, _))| *most).max().unwrap_or(0);
    if !is_full && others > *most {
        return None;
    }
    let waits = s.share_between(950.0, 1300.0) + s.share_between(2900.0, 3400.0) + s.share_between(6900.0, 7600.0);
    let found = Found::new(format!("edge: the queue of connections to accept at {address}"), 0.97)
        .with("queue", format!("at most {most} waited, and the queue has room for {room}"))
        .with("overflows", format!("{overflows} times the kernel found it full (ListenOverflows)"))
        .with(
            "latency",
            format!(
                "{} of answers took about 1, 3 or 7 s, because the kernel sent a SYN again; max {} ms",
                percent(waits),
                digits(s.load.ms[4])
            ),
        )
        .slows(&[Segment::Outside]);
    Some(found.knob(
        "first find the work that keeps the edge from accepting connections; then write listen … backlog=4096 and raise net.core.somaxconn to match",
        "no connection waits for a repeated SYN",
    ))
}

fn syns(s: &Signals) -> Option<Found> {
    let hub = s.hub()?;
    let count = |name: &str| hub.counters.get(name).copied().unwrap_or(0);
    let (cookies, dropped) = (count("TCPReqQFullDoCookies").max(count("SyncookiesSent")), count("TCPReqQFullDrop"));
    if cookies + dropped == 0 || count("ListenOverflows") >= OVERFLOWS_MIN {
        return None;
    }
    let found = Found::new("edge: half-open connections", 0.9)
        .with("queue", format!("the kernel answered {cookies} SYNs with cookies, and {dropped} not at all"))
        .slows(&[Segment::Outside]);
    Some(found.knob(
        "write listen … backlog=4096, raise net.ipv4.tcp_max_syn_backlog to match, or use a load that begins more slowly",
        "connecting takes one round trip",
    ))
}

/// The pool of an application's workers is full: the program reports it, or connections wait in its accept queue.
fn pool(s: &Signals) -> Option<Found> {
    workers(s).or_else(|| waiting(s))
}

/// Apache, PHP-FPM, uWSGI or Tomcat reports that all of its workers are busy.
fn workers(s: &Signals) -> Option<Found> {
    let all = s.told.iter().filter(|told| told.failed.is_none());
    let full = all.filter_map(|told| {
        let busy = told.mean("busy")?;
        let most = told.most("busy_max").unwrap_or(busy + told.mean("idle")?);
        (busy >= 2.0 && busy >= 0.95 * most).then_some((told.process.as_str(), busy, most))
    });
    let wrote = s.wrote.iter().filter_map(|(process, kinds)| Some((process.as_str(), *kinds.get("workers")?)));
    let lines: Vec<(&str, u64)> = wrote.collect();
    let (process, board) = match full.max_by(|one, other| one.1.total_cmp(&other.1)) {
        Some((process, busy, most)) => (process, Some((busy, most))),
        None => (lines.first()?.0, None),
    };
    let app = s.processes.iter().find(|known| known.name == process);
    let used = app.map_or(0.0, |app| app.usage());
    if used >= 0.7 || app.is_some_and(|app| app.throttled > 0.05) {
        return None;
    }
    let said = lines.iter().filter(|(known, _)| *known == process).map(|(_, count)| count).sum::<u64>();
    let found = Found::new(format!("application {process}: its workers"), 0.97)
        .with(
            "workers",
            board.map_or(String::new(), |(busy, most)| format!("{} of {} busy", digits(busy), digits(most))),
        )
        .with(
            "log",
            if said > 0 {
                format!("{said} times the application logged that it reached its limit of workers")
            } else {
                String::new()
            },
        )
        .with("cpu", format!("its CPUs were {} used: the workers wait instead of working", percent(used)));
    let found = match s.pools.iter().find(|pool| pool.process == process) {
        Some(pool) => found.squeezed(Squeeze::Pool(pool.process.clone(), pool.variable.clone())),
        None => found,
    };
    Some(waited_for(s, found, " (pm.max_children, uwsgi's processes, MaxRequestWorkers, server.tomcat.threads.max)"))
}

/// Connections wait in the accept queue of an application that does not compute.
fn waiting(s: &Signals) -> Option<Found> {
    let apps: Vec<&str> = s.edge.peers.keys().map(|peer| port(peer)).collect();
    // A short queue comes from a burst of connections. A lasting queue means that the process does not accept them.
    let lasts = |host: &Host, address: &String| host.lasting.get(address).is_some_and(|share| *share >= LASTING);
    let queues = s.hosts.iter().flat_map(|host| host.queues.iter().filter(move |(address, _)| lasts(host, address)));
    let (address, (most, room)) =
        queues.filter(|(address, _)| apps.contains(&port(address))).max_by_key(|(_, (most, _))| *most)?;
    let busy = s.apps().map(|app| app.usage().max(app.wanted())).fold(0.0, f64::max);
    let throttled = s.apps().map(|app| app.throttled).fold(0.0, f64::max);
    if *most < 2 || busy >= 0.7 || throttled > 0.05 {
        return None;
    }
    let found =
        Found::new(format!("application at {address}: a pool of its own (threads, processes, connections)"), 0.9)
            .with("queue", format!("{most} connections of {room} waited for the application to accept them"))
            .with("cpu", format!("its CPUs were {} used: it waits instead of working", percent(busy)));
    Some(waited_for(s, found, ""))
}

/// The effect of a full worker pool on requests, and the remedy. `names` are the settings that size these pools.
fn waited_for(s: &Signals, found: Found, names: &str) -> Found {
    let (waited, all) = (s.step_ms("wait") + s.step_ms("connect"), s.load.ms[0]);
    found
        .with("wait", format!("{} ms of a request's {} ms are spent waiting for it", digits(waited), digits(all)))
        .slows(&[Segment::Wait, Segment::Connect])
        .knob(
            format!("find the resource that its workers wait for; add workers only if that resource has room{names}"),
            "if the pool is the limit, answers a second grow with it; if not, the limit is the resource that its workers wait for",
        )
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}
