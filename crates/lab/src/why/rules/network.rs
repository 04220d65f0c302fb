//! Links, memory and disks, and upgrades that are not forwarded.

use crate::metric::digits;
use crate::said::{Said, say};
use crate::texts;
use crate::why::rule::{FiredRule, Rule, Segment, Squeeze, Tier, of, percent};
use crate::why::signals::{HostSignals, ProcessSignals, ProgramFigures, Role, Signals};

/// A link with this usage is full: its rate includes headers that the interface's counters leave out.
const LINK_FULL: f64 = 0.88;
/// Share of time in garbage collections that is too much.
const COLLECTED: f64 = 0.10;
/// Share of samples in which a process waited for a disk that is not chance.
const STUCK: f64 = 0.25;
/// Share of a block with stalled tasks that is not chance.
const PRESSED: f64 = 0.10;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule {
        id: "B34",
        says: texts::LINK_FULL,
        tier: Tier::Full,
        check: link,
        fires: |s| {
            let mut client = s.hosts[0].clone();
            client.is_hub = false;
            client.name = "client".into();
            client.link_bits = 9.7e6;
            client.link_max = Some(10e6);
            s.hosts.push(client);
        },
        silent: |s| {
            s.hosts[0].link_bits = 2e6;
            s.hosts[0].link_max = Some(10e6);
        },
    },
    Rule {
        id: "B43",
        says: texts::MEMORY_SHORT,
        tier: Tier::Limit,
        check: memory,
        fires: |s| s.processes[1].memory_full = 300,
        silent: |s| {
            s.machine.pressure.insert("memory".into(), 0.01);
        },
    },
    Rule {
        id: "B44",
        says: texts::THREADS_WAIT_DISK,
        tier: Tier::Full,
        check: disk,
        fires: |s| {
            s.machine.pressure.insert("io".into(), 0.6);
            s.said.insert("temporary".into(), 900);
        },
        silent: |s| {
            s.machine.pressure.insert("io".into(), 0.6);
        },
    },
    Rule {
        id: "B40",
        says: texts::WEBSOCKET_UPGRADES_FORWARDED,
        tier: Tier::Limit,
        check: upgrade,
        fires: |s| {
            s.load.upgrades = (0, 300);
            s.load.errors.insert("Unexpected server response: 426".into(), 300);
        },
        silent: |s| {
            s.conf.has_upgrade = true;
            s.load.upgrades = (0, 300);
            s.load.errors.insert("ECONNREFUSED".into(), 300);
        },
    },
    Rule {
        id: "B41",
        says: texts::REQUESTS_ONE_SOCKET_IO,
        tier: Tier::Limit,
        check: stickiness,
        fires: |s| {
            s.load.errors.insert("xhr poll error".into(), 500);
            s.load.statuses.insert(400, 500);
        },
        silent: |s| {
            s.load.statuses.insert(400, 500);
        },
    },
];

fn link(s: &Signals) -> Option<FiredRule> {
    let full =
        s.hosts.iter().filter_map(|host| Some((host, host.link_bits / host.link_max.filter(|most| *most > 0.0)?)));
    let (host, share) = full.filter(|(_, share)| *share >= LINK_FULL).max_by(|one, other| one.1.total_cmp(&other.1))?;
    let edge = s.edge_process().map_or(0.0, |edge| edge.usage());
    let bytes = host.link_bits / 8.0 * s.seconds / s.load.answered.max(1) as f64;
    let kb = digits(bytes / 1000.0);
    let each = if is_upload(s, host) { say!(KB_PER_REQUEST_HEADERS, kb) } else { say!(KB_PER_ANSWER_HEADERS, kb) };
    let found = FiredRule::new(say!(THE_LINK_OF, &host.name), share.min(1.0))
        .with(
            texts::LABEL_LINK,
            say!(MBIT_OF, digits(host.link_bits / 1e6), digits(host.link_max.unwrap_or(0.0) / 1e6), percent(share)),
        )
        .with(texts::LABEL_ANSWERS, each)
        .with(texts::LABEL_EDGE, say!(CPUS_USED, percent(edge)))
        .slows(&[Segment::Outside, Segment::Read, Segment::Body])
        .squeezed(Squeeze::Link(host.name.clone()));
    if is_upload(s, host) {
        return Some(found.knob(say!(SMALLER_UPLOADS), say!(REQUESTS_SECOND_GROW_BODIES)));
    }
    // The edge compresses answers on their way to the client. Between the edge and the servers behind it, they stay
    // as large as before.
    let is_behind = s
        .processes
        .iter()
        .any(|process| process.host == host.name && matches!(process.role, Role::App | Role::Beside) && !host.is_hub);
    let (knob, expect) = match (is_behind, s.conf.has_gzip) {
        (true, _) => (say!(LET_APPLICATION_COMPRESS_ANSWERS), say!(ANSWERS_SECOND_GROW_BYTES)),
        (false, true) => (say!(SMALLER_ANSWERS_FASTER_LINK), say!(ANSWERS_SECOND_GROW_THEIR)),
        (false, false) => (say!(GZIP_GZIP_TYPES_TEXT), say!(ANSWERS_SECOND_GROW_THEIR)),
    };
    Some(found.knob(knob, expect))
}

/// Whether requests fill the link of a host, not answers.
fn is_upload(s: &Signals, host: &HostSignals) -> bool {
    let has = |wanted: &[Role]| s.processes.iter().any(|one| one.host == host.name && wanted.contains(&one.role));
    match () {
        // Several links of the edge may have this rate. The answers of all clients pass through one of them.
        () if host.is_hub => (s.load.bytes as f64) < 0.5 * host.link_bits / 8.0 * s.seconds,
        () if has(&[Role::Client]) => host.link_sends,
        () if has(&[Role::App, Role::Beside]) => !host.link_sends,
        () => false,
    }
}

fn memory(s: &Signals) -> Option<FiredRule> {
    let process = s
        .processes
        .iter()
        .filter(|process| process.role != Role::Client)
        .max_by_key(|process| (process.memory_killed, process.memory_full, process.swapped))?;
    let pressed = s.machine.pressure.get("memory").copied().unwrap_or(0.0);
    // By the JVM's own count, or by Spring Boot's metrics.
    let collects = |told: &&ProgramFigures| matches!(told.kind.as_str(), "jvm" | "spring") && told.failed.is_none();
    let collector =
        s.told.iter().filter(collects).max_by(|one, other| one.rate("gc_ms").total_cmp(&other.rate("gc_ms")));
    let collected = collector.map_or(0.0, |told| told.rate("gc_ms") / 1000.0);
    let killed = process.memory_killed;
    if killed == 0 && process.memory_full < 20 && process.swapped == 0 && pressed < PRESSED && collected < COLLECTED {
        return None;
    }
    if let Some(told) = collector.filter(|_| killed == 0 && collected >= COLLECTED) {
        return Some(heap(told, collected));
    }
    // If a process was killed, its other failures are consequences. Pressure is measured for the whole machine: a
    // process without a count of its own is not named.
    let is_own = killed > 0 || process.memory_full > 0 || process.swapped > 0;
    let who = if is_own { Said::from(&process.name) } else { say!(THIS_MACHINE) };
    let found = FiredRule::new(say!(MEMORY, who), if killed > 0 { 1.0 } else { 0.9 })
        .with(texts::LABEL_KILLED, if killed > 0 { say!(TIMES_KERNEL_KILLED_PROCESS, killed) } else { Said::default() })
        .with(
            texts::LABEL_LIMIT,
            say!(TIMES_GROUPS_MEMORY_FULL, &process.memory_full, digits(process.swapped as f64 / 1e6)),
        )
        .with(texts::LABEL_PRESSURE, say!(SOME_TASK_WAITED_MEMORY, percent(pressed)))
        .slows(&[Segment::Wait, Segment::Outside]);
    Some(found.knob(say!(LARGER_LIMIT_SMALLER_HEAP), say!(THESE_PAUSES_DISAPPEAR_P99)).for_the_tail())
}

fn heap(told: &ProgramFigures, collected: f64) -> FiredRule {
    let mb = |name: &str| digits(told.most(name).unwrap_or(0.0) / 1e6);
    let found = FiredRule::new(say!(APPLICATION_HEAP, &told.process), collected.max(0.9))
        .with(texts::LABEL_COLLECTIONS, say!(GARBAGE_COLLECTIONS_TOOK_TIME, percent(collected)))
        .with(
            texts::LABEL_HEAP,
            match told.most("heap_max") {
                Some(_) => say!(MOST_MB_USED_MB, mb("heap"), mb("heap_max")),
                None => Said::default(),
            },
        )
        .slows(&[Segment::Wait]);
    found.knob(say!(LARGER_HEAP_XMX_FEWER), say!(COLLECTIONS_BELOW_5_TIME)).for_the_tail()
}

fn disk(s: &Signals) -> Option<FiredRule> {
    let pressed = s.machine.pressure.get("io").copied().unwrap_or(0.0);
    let temporary = s.said("temporary");
    let waits = |process: &&ProcessSignals| process.role != Role::Client && process.stuck >= STUCK;
    let stuck = s.processes.iter().filter(waits).max_by(|one, other| one.stuck.total_cmp(&other.stuck));
    if stuck.is_none() && (pressed < PRESSED || temporary == 0) {
        return None;
    }
    let who = stuck.map_or_else(|| say!(EDGE), |process| Said::from(&process.name));
    let found = FiredRule::new(say!(ITS_DISK, who), stuck.map_or(pressed, |process| process.stuck).max(0.5))
        .with(
            texts::LABEL_WAITED,
            stuck.map_or_else(Said::default, |process| say!(READINGS_ONE_THREADS_WAITED, percent(process.stuck))),
        )
        .with(texts::LABEL_PRESSURE, say!(SOME_TASK_MACHINE_WAITED, percent(pressed)))
        .with(
            texts::LABEL_FILES,
            if temporary > 0 { say!(BODIES_WRITTEN_TEMPORARY_FILES, temporary) } else { Said::default() },
        )
        .slows(&[Segment::Body, Segment::Outside, Segment::Undivided, Segment::Cache, Segment::Wait]);
    // The edge's buffers do not change how much another process writes. They matter for bodies only if some bodies
    // were written to disk.
    let is_other = stuck.is_some_and(|process| process.role != Role::Edge);
    let knob = match (is_other, temporary > 0, s.conf.has_buffered_log) {
        (true, ..) => {
            say!(REDUCE_WRITES_REQUEST_WAITS)
        }
        (false, true, true) => say!(PROXY_BUFFERS_16_32K),
        (false, true, false) => say!(ACCESS_LOG_BUFFER_64K_FLUSH),
        (false, false, false) => say!(ACCESS_LOG_BUFFER_64K),
        (false, false, true) => {
            say!(PUT_FILES_EDGE_ITSELF)
        }
    };
    Some(found.knob(knob, say!(NO_THREAD_WAITS_DISK)))
}

fn upgrade(s: &Signals) -> Option<FiredRule> {
    let named = |name: &str| {
        name.contains("Unexpected server response")
            || name.contains("websocket error")
            || name.contains("Invalid status")
    };
    let refused: u64 = s.load.errors.iter().filter(|(name, _)| named(name)).map(|(_, count)| count).sum();
    let (upgraded, tried) = s.load.upgrades;
    if refused == 0 || s.conf.has_upgrade || upgraded > 0 {
        return None;
    }
    let failed = match s.load.is_outside {
        true => say!(NOW_UPGRADES_REFUSED, of(refused, tried)),
        false => say!(UPGRADES_REFUSED_VIRTUAL_USERS, refused, tried),
    };
    let found = FiredRule::new(say!(EDGE_WEBSOCKET_UPGRADES_FORWARDED), 0.95)
        .with(texts::LABEL_FAILED, failed)
        .with(texts::LABEL_CONFIGURATION, say!(PROXY_SET_HEADER_UPGRADE));
    Some(found.knob(say!(PROXY_HTTP_VERSION_1_1_PROXY), say!(APPLICATION_ANSWERS_EVERY_UPGRADE)))
}

fn stickiness(s: &Signals) -> Option<FiredRule> {
    let polls: u64 = s
        .load
        .errors
        .iter()
        .filter(|(name, _)| name.contains("xhr poll error") || name.contains("Session ID unknown"))
        .map(|(_, count)| count)
        .sum();
    let refused = s.load.statuses.get(&400).copied().unwrap_or(0);
    if polls == 0 || s.edge.peers.len() < 2 && refused == 0 {
        return None;
    }
    let failed = match s.load.is_outside {
        true => say!(NOW_SESSIONS_UNKNOWN, of(polls, s.load.sent)),
        false => say!(VIRTUAL_USERS_REQUEST_REACHED, of(polls, s.load.upgrades.1.max(polls))),
    };
    let found = FiredRule::new(say!(APPLICATION_SOCKET_IO_SESSIONS), 0.9)
        .with(texts::LABEL_FAILED, failed)
        .with(texts::LABEL_STATUSES, say!(ANSWERS_400, refused));
    Some(found.knob(say!(UPSTREAM_HASH_REMOTE_ADDR), say!(EVERY_PROCESS_KNOWS_SESSIONS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_at_the_edge_makes_a_link_behind_it_carry_more() {
        let full = |name: &str, link_sends: bool| {
            let mut s = Signals::quiet();
            let mut host = s.hosts[0].clone();
            (host.is_hub, host.name, host.link_bits, host.link_max) = (false, name.to_owned(), 9.7e6, Some(10e6));
            host.link_sends = link_sends;
            s.hosts.push(host);
            s.processes[1].host = "origin".into();
            s.processes[2].host = "client".into();
            link(&s).unwrap_or_default().knob
        };
        assert!(full("client", false).starts_with("gzip on;"));
        assert!(full("origin", true).contains("application compress its answers"), "{}", full("origin", true));
        // The bodies of requests fill it: no smaller answer helps.
        for (host, link_sends) in [("client", true), ("origin", false)] {
            assert!(full(host, link_sends).contains("smaller uploads"), "{host}: {}", full(host, link_sends));
        }
        // The edge's own links carry 2 MB of answers, and 12 MB of something else.
        let mut s = Signals::quiet();
        (s.hosts[0].link_bits, s.hosts[0].link_max) = (9.7e6, Some(10e6));
        assert!(link(&s).unwrap_or_default().knob.contains("smaller uploads"));
        s.load.bytes = 11_000_000;
        assert!(link(&s).unwrap_or_default().knob.starts_with("gzip on;"));
    }

    #[test]
    fn an_applications_disk_is_not_the_edges_buffers() {
        let mut s = Signals::quiet();
        s.processes[1].stuck = 0.6;
        let knob = disk(&s).unwrap_or_default().knob;
        assert!(knob.contains("fsync") && !knob.contains("proxy_buffers"), "{knob}");
        s.processes.swap(0, 1);
        (s.processes[0].role, s.processes[1].role) = (Role::Edge, Role::App);
        let knob = disk(&s).unwrap_or_default().knob;
        assert_eq!(knob, "access_log … buffer=64k flush=1s;", "no body was on disk");
    }

    #[test]
    fn who_was_killed_for_want_of_memory_is_named_before_what_came_of_it() {
        let mut s = Signals::quiet();
        s.processes[1].memory_full = 12;
        assert_eq!(memory(&s), None);
        s.processes[1].memory_killed = 1;
        let found = memory(&s).unwrap_or_default();
        assert!(found.subject.starts_with("app: ") && found.evidence[0].1.starts_with("1 times"), "{found:?}");
        let mut pressed = Signals::quiet();
        pressed.machine.pressure.insert("memory".into(), 0.4);
        assert!(memory(&pressed).is_some_and(|found| found.subject == "this machine: its memory"));
        // Its connections were reset, and then no process listened any more.
        s.load.errors.insert("502".into(), 1900);
        s.said.extend([("reset".into(), 16), ("refused".into(), 12)]);
        let first = crate::why::rules::find(&s, None).into_iter().next();
        assert_eq!(first.map(|finding| finding.rule.id), Some("B43"));
    }
}
