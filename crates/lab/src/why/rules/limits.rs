//! Limits that were met: ports, the connection table, descriptors, queues. Each finding rests on a counter or a log
//! line.

use super::programs;
use super::upstream;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Squeeze, Tier, of, percent};
use crate::why::signals::{HostSignals, Signals};

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
        says: texts::EDGE_RAN_OUT_LOCAL,
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
        says: texts::EDGES_CONNECTION_TABLE_FULL,
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
        says: texts::EDGE_CLOSED_IDLE_CLIENTS,
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
        says: texts::EDGE_RAN_OUT_FILE,
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
        says: texts::CONNECTIONS_WAITED_EDGES_ACCEPT,
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
        says: texts::CONNECTIONS_CAME_FASTER_THAN,
        tier: Tier::Limit,
        check: syns,
        fires: |s| s.hosts.iter_mut().for_each(|host| host.counters.extend([("TCPReqQFullDoCookies".into(), 46)])),
        silent: |s| s.hosts.iter_mut().for_each(|host| host.counters.extend([("TCPTimeouts".into(), 46)])),
    },
    Rule {
        id: "B22",
        says: texts::APPLICATION_LETS_CONNECTIONS_WAIT,
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

fn ports(s: &Signals) -> Option<FiredRule> {
    let failed = s.tries_failed("no_port");
    let hub = s.hub()?;
    let (peer, (held, resting)) = hub.held.iter().max_by_key(|(_, (held, _))| *held)?;
    let share = *held as f64 / hub.ports.max(1) as f64;
    // Near the end of the ports, errors are a matter of seconds. Far from it, errors have another cause.
    if failed == 0 && share < 0.95 {
        return None;
    }
    let cap = hub.ports as f64 / TIME_WAIT_S;
    let who = if *resting * 2 > *held { say!(EDGE_CLOSES_FIRST) } else { say!(CONNECTIONS_OPEN) };
    let ok = s.goodput();
    let found = FiredRule::new(say!(EDGE_LOCAL_PORTS, peer), share.max(0.95))
        .with(texts::LABEL_FAILED, say!(CONNECTS_HAD_NO_PORT, failed, of(s.failed(), s.load.sent)))
        .with(texts::LABEL_PORTS, say!(HELD_TOWARDS_THEM_TIME, held, &hub.ports, peer, resting, who))
        .with(texts::LABEL_PREDICTED, say!(NEW_CONNECTIONS_A_SECOND, &hub.ports, digits(cap), digits(ok)))
        .squeezed(Squeeze::Ports(hub.name.clone()));
    let knob = match (s.conf.keepalive, s.conf.can_keep) {
        (None | Some(0), _) => upstream::pool(s, 64),
        (Some(1..), false) => {
            say!(PROXY_HTTP_VERSION_1)
        }
        // The edge itself ends connections after so many requests.
        (Some(1..), true) if upstream::ended_after(s).is_some() => {
            say!(UPSTREAM_KEEPALIVE_REQUESTS, upstream::LASTING_REQUESTS)
        }
        (Some(1..), true) => {
            say!(RAISE_KEEPALIVE_ADD_ADDRESSES)
        }
    };
    Some(found.knob(knob, say!(NEW_CONNECTIONS_REQUEST_BELOW)))
}

fn table(s: &Signals) -> Option<FiredRule> {
    let said = s.said("connections");
    let dropped = s.edge.dropped;
    // If weir's file sets no number, its limit is the limit on open files.
    if said + dropped == 0 || said == 0 && s.conf.worker_connections.is_none() {
        return None;
    }
    let slots = s.conf.worker_connections.map_or_else(|| say!(SLOTS_NGINXS_DEFAULT), Said::from);
    let share = s.failed_share();
    let found = FiredRule::new(say!(EDGE_WORKER_CONNECTIONS), 0.95_f64.max(share))
        .with(texts::LABEL_REFUSED, say!(CONNECTIONS_FOUND_NO_SLOT, said.max(dropped)))
        .with(texts::LABEL_FAILED, of(s.failed(), s.load.sent))
        .with(texts::LABEL_TABLE, say!(CLIENTS_OPEN_MOST_SLOTS, &s.edge.active_max, slots))
        .squeezed(Squeeze::Slots);
    let knob = say!(WORKER_CONNECTIONS_DESCRIPTORS_WORKER, next_size(s.conf.worker_connections.unwrap_or(512)));
    Some(found.knob(knob, say!(EVERY_CONNECTION_FINDS_SLOT)))
}

/// Four times as many, rounded up to a power of two.
fn next_size(slots: u64) -> u64 {
    (slots * 4).next_power_of_two().max(1024)
}

fn recycled(s: &Signals) -> Option<FiredRule> {
    let said = s.said("recycled");
    if said == 0 || s.said("connections") + s.edge.dropped > said {
        return None;
    }
    let per_request = s.edge.accepted as f64 / s.load.sent.max(1) as f64;
    let found = FiredRule::new(say!(EDGE_IDLE_CLIENTS_OCCUPY), 0.9)
        .with(texts::LABEL_RECYCLED, say!(TIMES_IDLE_CONNECTIONS_CLOSED, said))
        .with(
            texts::LABEL_ACCEPTED,
            say!(CONNECTIONS_REQUESTS_REQUEST, &s.edge.accepted, &s.load.sent, digits(per_request)),
        )
        .with(
            texts::LABEL_TABLE,
            say!(SLOTS_WORKER_IDLE_MOST, s.conf.worker_connections.unwrap_or(512), &s.edge.idle_max),
        )
        .slows(&[Segment::Outside])
        .squeezed(Squeeze::Slots);
    let knob = say!(WORKER_CONNECTIONS, next_size(s.conf.worker_connections.unwrap_or(512)));
    Some(found.knob(knob, say!(CONNECTIONS_PER_REQUEST_ONLY)))
}

fn files(s: &Signals) -> Option<FiredRule> {
    let failed = s.tries_failed("no_file");
    let edge = s.edge_process()?;
    let of_fds = || s.edge.limits.iter().filter(|(name, _)| name.starts_with("fds"));
    let met: u64 = of_fds().map(|(_, (_, _, met))| met).sum();
    // An edge whose descriptors are all in use may not answer the lab, and then nobody counts the requests that it refuses.
    let full = of_fds().find(|(_, (used, most, _))| *most > 0.0 && used >= most);
    let (counted, (open, most)) = match full {
        _ if failed + met > 0 => (say!(TIMES_NO_DESCRIPTOR_ERRNO, failed.max(met)), edge.fds),
        Some((_, (used, most, _))) if s.failed_share() > upstream::FAILED => {
            (Said::default(), (*used as u64, *most as u64))
        }
        _ => return None,
    };
    let limit = edge.fds.1;
    let found = FiredRule::new(say!(EDGE_OPEN_FILES), 0.98)
        .with(texts::LABEL_FAILED, counted)
        .with(texts::LABEL_FILES, say!(OPEN_MOST_PROCESS_MAY, open, most))
        .with(texts::LABEL_REQUESTS, say!(FAILED_P50_MS, of(s.failed(), s.load.sent), digits(s.load.ms[1])))
        .slows(&[Segment::Outside, Segment::Undivided, Segment::Edge])
        .squeezed(Squeeze::Files(edge.name.clone()));
    Some(found.knob(
        say!(WORKER_RLIMIT_NOFILE_LIMITNOFILE, (limit * 4).next_power_of_two().max(1024)),
        say!(NO_EMFILE_NO_ACCEPT),
    ))
}

fn queue(s: &Signals, of_edge: bool) -> Option<FiredRule> {
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
    let found = FiredRule::new(say!(EDGE_QUEUE_CONNECTIONS_ACCEPT, address), 0.97)
        .with(texts::LABEL_QUEUE, say!(MOST_WAITED_QUEUE_ROOM, most, room))
        .with(texts::LABEL_OVERFLOWS, say!(TIMES_KERNEL_FOUND_FULL, overflows))
        .with(texts::LABEL_LATENCY, say!(ANSWERS_TOOK_ABOUT_1, percent(waits), digits(s.load.ms[4])))
        .slows(&[Segment::Outside]);
    Some(found.knob(say!(FIRST_FIND_WORK_KEEPS), say!(NO_CONNECTION_WAITS_REPEATED)))
}

fn syns(s: &Signals) -> Option<FiredRule> {
    let hub = s.hub()?;
    let count = |name: &str| hub.counters.get(name).copied().unwrap_or(0);
    let (cookies, dropped) = (count("TCPReqQFullDoCookies").max(count("SyncookiesSent")), count("TCPReqQFullDrop"));
    if cookies + dropped == 0 || count("ListenOverflows") >= OVERFLOWS_MIN {
        return None;
    }
    let found = FiredRule::new(say!(EDGE_HALF_OPEN_CONNECTIONS), 0.9)
        .with(texts::LABEL_QUEUE, say!(KERNEL_ANSWERED_SYNS_COOKIES, cookies, dropped))
        .slows(&[Segment::Outside]);
    Some(found.knob(say!(WRITE_LISTEN_BACKLOG_4096), say!(CONNECTING_TAKES_ONE_ROUND)))
}

/// The pool of an application's workers is full: the program reports it, or connections wait in its accept queue.
fn pool(s: &Signals) -> Option<FiredRule> {
    workers(s).or_else(|| waiting(s))
}

/// Apache, PHP-FPM, uWSGI or Tomcat reports that all of its workers are busy.
fn workers(s: &Signals) -> Option<FiredRule> {
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
    let (script, place) = script(s, process);
    let overlong = s.wrote.get(process).and_then(|kinds| kinds.get("overlong")).copied().unwrap_or(0);
    let found = FiredRule::new(say!(APPLICATION_WORKERS, process), 0.97)
        .with(
            texts::LABEL_WORKERS,
            board.map_or_else(Said::default, |(busy, most)| say!(BUSY, digits(busy), digits(most))),
        )
        .with(texts::LABEL_SCRIPT, script)
        .with(texts::LABEL_PLACE, place)
        .with(texts::LABEL_KILLED, if overlong > 0 { say!(SCRIPTS_TERMINATED, overlong) } else { Said::default() })
        .with(texts::LABEL_LOG, if said > 0 { say!(TIMES_APPLICATION_LOGGED_REACHED, said) } else { Said::default() })
        .with(texts::LABEL_CPU, say!(CPUS_USED_WORKERS_WAIT, percent(used)));
    let found = match s.pools.iter().find(|pool| pool.process == process) {
        Some(pool) => found.squeezed(Squeeze::Pool(pool.process.clone(), pool.variable.clone())),
        None => found,
    };
    Some(waited_for(s, found, say!(FIND_RESOURCE_WORKERS_WAIT_SETTINGS)))
}

/// Connections wait in the accept queue of an application that does not compute.
fn waiting(s: &Signals) -> Option<FiredRule> {
    let apps: Vec<&str> = s.edge.peers.keys().map(|peer| port(peer)).collect();
    // A short queue comes from a burst of connections. A lasting queue means that the process does not accept them.
    let lasts = |host: &HostSignals, address: &String| host.lasting.get(address).is_some_and(|share| *share >= LASTING);
    let queues = s.hosts.iter().flat_map(|host| {
        let lasting = host.queues.iter().filter(move |(address, _)| lasts(host, address));
        lasting.map(move |queue| (&host.name, queue))
    });
    let (name, (address, (most, room))) =
        queues.filter(|(_, (address, _))| apps.contains(&port(address))).max_by_key(|(_, (_, (most, _)))| *most)?;
    let own = s
        .processes
        .iter()
        .find(|process| process.host == *name && process.listens.iter().any(|at| port(at) == port(address)));
    let whose = own.map_or(name, |own| &own.name);
    let busy = s.apps().map(|app| app.usage().max(app.wanted())).fold(0.0, f64::max);
    let throttled = s.apps().map(|app| app.throttled).fold(0.0, f64::max);
    if *most < 2 || busy >= 0.7 || throttled > 0.05 {
        return None;
    }
    let (script, place) = script(s, whose);
    let found = FiredRule::new(say!(APPLICATION_OWN_POOL, whose, reached(s, name, address)), 0.9)
        .with(texts::LABEL_QUEUE, say!(CONNECTIONS_WAITED_APPLICATION_ACCEPT, most, room))
        .with(texts::LABEL_SCRIPT, script)
        .with(texts::LABEL_PLACE, place)
        .with(texts::LABEL_CPU, say!(CPUS_USED_WAITS_INSTEAD, percent(busy)));
    Some(waited_for(s, found, say!(FIND_RESOURCE_WORKERS_WAIT)))
}

/// The script that holds the workers of PHP-FPM, and its slowest place.
fn script(s: &Signals, process: &str) -> (Said, Said) {
    s.told_by("php-fpm").find(|told| told.process == process).and_then(programs::script).unwrap_or_default()
}

/// An address as the edge reaches it. A wildcard tells no one where the application is: it is the address of a server of the upstream, or
/// the name of its host.
fn reached(s: &Signals, host: &str, address: &str) -> String {
    let is_wildcard = ["0.0.0.0:", "[::]:", "*:"].iter().any(|any| address.starts_with(any));
    if !is_wildcard {
        return address.to_owned();
    }
    let is_hub = s.hub().is_some_and(|hub| hub.name == host);
    let mut peers = s.edge.peers.keys().filter(|peer| port(peer) == port(address));
    match (is_hub, peers.next()) {
        (true, Some(peer)) => peer.clone(),
        _ => format!("{host}:{}", port(address)),
    }
}

/// The effect of a full worker pool on requests, and the remedy.
fn waited_for(s: &Signals, found: FiredRule, knob: Said) -> FiredRule {
    let (waited, all) = (s.step_ms("wait") + s.step_ms("connect"), s.load.ms[0]);
    found
        .with(texts::LABEL_WAIT, say!(MS_REQUESTS_MS_SPENT, digits(waited), digits(all)))
        .slows(&[Segment::Wait, Segment::Connect])
        .knob(knob, say!(IF_POOL_LIMIT_ANSWERS))
}

fn port(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(_, port)| port)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::signals::{ProgramFigures, ProgramText, Role};

    #[test]
    fn ports_that_short_connections_take_need_longer_ones() {
        let mut s = Signals::quiet();
        s.said.insert("no_port".into(), 400);
        s.load.errors.insert("502".into(), 400);
        s.edge.opened = Some(1000);
        let knob = |s: &Signals| ports(s).unwrap().knob;
        assert!(knob(&s).starts_with("raise keepalive"), "{}", knob(&s));
        s.conf.upstream_requests = Some(2);
        assert!(knob(&s).starts_with("upstream … { keepalive_requests 1000; }"), "{}", knob(&s));
        // Two in a thousand: the pool is the cause.
        s.conf.upstream_requests = Some(500);
        assert!(knob(&s).starts_with("raise keepalive"), "{}", knob(&s));
    }

    /// The edge answered two of eight readings, and counted no request that it refused.
    #[test]
    fn descriptors_that_are_all_in_use_are_named_without_a_count() {
        let mut s = Signals::quiet();
        s.said.insert("recycled".into(), 2);
        s.edge.limits.insert("fds worker 0".into(), (14.0, 14.0, 0));
        assert_eq!(files(&s), None);
        s.load.errors.insert("ECONNRESET".into(), 1900);
        let found = files(&s).unwrap();
        assert_eq!(found.evidence[0].1, "14 open at most of 14 that the process may have");
        assert_eq!(crate::why::rules::find(&s, None)[0].rule.id, "B07");
        s.edge.limits.insert("fds worker 0".into(), (9.0, 14.0, 0));
        assert_eq!(files(&s), None);
    }

    /// The workers of PHP-FPM are full by its own figures, or by its accept queue alone: both times the script is named.
    #[test]
    fn the_script_that_holds_workers_is_named() {
        let mut s = Signals::quiet();
        let part = ProgramText { text: "/srv/slow.php".into(), numbers: vec![2.0], most: Some(52_000.0) };
        let levels = [("busy".to_owned(), (2.0, 2.0)), ("idle".to_owned(), (0.0, 0.0))];
        s.told.push(ProgramFigures {
            kind: "php-fpm".into(),
            process: "app".into(),
            level: levels.into(),
            seen: [("script".to_owned(), vec![part])].into(),
            ..ProgramFigures::default()
        });
        s.wrote.insert("app".into(), [("overlong".to_owned(), 7)].into());
        let has = |found: &FiredRule, text: &str| found.evidence.iter().any(|(_, line)| line.contains(text));
        let full = pool(&s).unwrap();
        assert!(
            has(&full, "/srv/slow.php holds 100 % of the busy workers") && has(&full, "7 scripts that ran longer"),
            "{full:?}"
        );
        s.told[0].level.clear();
        s.hosts[0].queues.insert("127.0.0.1:3000".into(), (40, 128));
        s.hosts[0].lasting.insert("127.0.0.1:3000".into(), 0.9);
        s.processes[1].listens = vec!["127.0.0.1:3000".into()];
        let full = pool(&s).unwrap();
        assert!(has(&full, "/srv/slow.php holds") && has(&full, "connections"), "{full:?}");
    }

    #[test]
    fn a_full_pool_is_named_by_its_process() {
        let mut s = Signals::quiet();
        s.hosts[0].queues.insert("0.0.0.0:3000".into(), (40, 128));
        s.hosts[0].lasting.insert("0.0.0.0:3000".into(), 0.9);
        for app in s.processes.iter_mut().filter(|process| process.role == Role::App) {
            app.listens = vec!["0.0.0.0:3000".into()];
        }
        let subject = waiting(&s).unwrap().subject;
        assert!(subject.starts_with("application app at 127.0.0.1:3000: "), "{subject}");
        // On a host of its own.
        let mut far = s.hosts[0].clone();
        (far.name, far.is_hub) = ("origin".into(), false);
        s.hosts[0].queues.clear();
        s.hosts.push(far);
        s.processes.iter_mut().for_each(|process| process.host = "origin".into());
        let subject = waiting(&s).unwrap().subject;
        assert!(subject.starts_with("application app at origin:3000: "), "{subject}");
    }
}
