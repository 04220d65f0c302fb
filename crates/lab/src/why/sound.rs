//! Samples that contradict each other: totals that fall, times that go back, another process under a known id, an account of another
//! program. Their figures are unknown: they count as neither zero nor as a growth, and the report names them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::known::KnownBlock;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::stack::Deed;
use crate::watch::{Account, ProcessTick, Tick, Watched};

/// CPU time is exact to 10 ms for each part of an account. A larger fall than this is no rounding, ns.
const ROUNDED_NS: u64 = 100_000_000;
/// The account has to count at least this part of the answers that the load got. Less cannot come from an account that began late.
const COUNTED_MIN: f64 = 0.5;
/// An account that begins this late lacks the requests before it, ms.
const BEGINS_MS: u64 = 600;
/// No count is larger than this: as nanoseconds, it is nine years of CPU time. Sums and multiples of such numbers do not overflow.
const COUNT_MAX: u64 = 1 << 58;
/// With fewer answers, a few early ones make a large part.
const ANSWERS_MIN: u64 = 50;

/// The observations without what contradicts itself, and a sentence for each part that was left out, in [`Watched::unread`].
/// `told` are the samples as the keeper told them.
pub fn sound(mut watched: Watched, told: &Value, known: &KnownBlock<'_>, answered: u64) -> Watched {
    let mut found: Vec<Said> = wild(&mut watched.ticks, told).into_iter().chain(order(&mut watched.ticks)).collect();
    found.extend(networks(&mut watched.ticks));
    found.extend(machine(&mut watched.ticks));
    if let Some(why) = account(&watched.ticks, known, answered) {
        watched.ticks.iter_mut().for_each(|tick| tick.account = Account::default());
        found.push(why);
    }
    let names: BTreeSet<&str> =
        watched.ticks.iter().flat_map(|tick| &tick.processes).map(|it| it.name.as_str()).collect();
    for name in names {
        found.extend(process(&watched.ticks, name, known));
    }
    watched.unread.extend(found);
    watched
}

/// Leaves out samples with a number that no count reaches: a total that went below zero, or another program's bytes.
fn wild(ticks: &mut Vec<Tick>, told: &Value) -> Option<Said> {
    fn is_wild(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_u64().is_some_and(|number| number > COUNT_MAX),
            Value::Array(all) => all.iter().any(is_wild),
            Value::Object(all) => all.values().any(is_wild),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }
    let (all, mut told) = (ticks.len(), told.as_array().into_iter().flatten());
    ticks.retain(|_| !told.next().is_some_and(is_wild));
    (ticks.len() < all).then(|| say!(SAMPLES_WILD, all - ticks.len(), all))
}

/// Leaves out samples whose time is not after that of the sample before.
fn order(ticks: &mut Vec<Tick>) -> Option<Said> {
    let (all, mut last) = (ticks.len(), None);
    ticks.retain(|tick| {
        let is_after = last.is_none_or(|last| tick.at_ms > last);
        last = if is_after { Some(tick.at_ms) } else { last };
        is_after
    });
    (ticks.len() < all).then(|| say!(SAMPLES_OUT_OF_ORDER, all - ticks.len(), all))
}

/// Whether a total falls from one sample to a later one.
fn falls(values: impl Iterator<Item = u64>) -> bool {
    let mut most = 0;
    for value in values {
        if value < most {
            return true;
        }
        most = value;
    }
    false
}

/// Leaves out the counters of networks that fall, and the devices whose bytes fall.
fn networks(ticks: &mut [Tick]) -> Vec<Said> {
    let hosts = || ticks.iter().flat_map(|tick| &tick.hosts);
    let mut fallen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let names: BTreeSet<&String> = hosts().map(|host| &host.name).collect();
    for name in names {
        let own = || hosts().filter(|host| host.name == *name);
        let counters: BTreeSet<&String> = own().flat_map(|host| host.counters.keys()).collect();
        let devices: BTreeSet<&String> = own().flat_map(|host| host.devices.keys()).collect();
        let counters =
            counters.into_iter().filter(|one| falls(own().filter_map(|host| host.counters.get(*one).copied())));
        let is_torn = |device: &&String| {
            let bytes = || own().filter_map(|host| host.devices.get(*device));
            falls(bytes().map(|both| both.0)) || falls(bytes().map(|both| both.1))
        };
        let all: BTreeSet<String> = counters.chain(devices.into_iter().filter(is_torn)).cloned().collect();
        if !all.is_empty() {
            fallen.insert(name.clone(), all);
        }
    }
    for host in ticks.iter_mut().flat_map(|tick| &mut tick.hosts) {
        let Some(names) = fallen.get(&host.name) else { continue };
        host.counters.retain(|name, _| !names.contains(name));
        host.devices.retain(|name, _| !names.contains(name));
    }
    let said = |(host, names): (&String, &BTreeSet<String>)| {
        say!(COUNTERS_FELL, host, names.iter().cloned().collect::<Vec<_>>().join(", "))
    };
    fallen.iter().map(said).collect()
}

/// Leaves out the CPUs whose times fall. The kernel's idle time may go back by some ticks (proc_stat(5)).
fn machine(ticks: &mut [Tick]) -> Option<Said> {
    const BACK_MS: u64 = 1000;
    let numbers: BTreeSet<usize> = ticks.iter().flat_map(|tick| &tick.cpus).map(|cpu| cpu.0).collect();
    let is_torn = |number: &usize| {
        let own = || ticks.iter().filter_map(|tick| tick.cpus.iter().find(|cpu| cpu.0 == *number));
        let back = |of: fn(&(usize, u64, u64, u64, u64)) -> u64| {
            let mut most = 0u64;
            own().any(|cpu| {
                most = most.max(of(cpu));
                most - of(cpu) > BACK_MS
            })
        };
        back(|cpu| cpu.2) || back(|cpu| cpu.3) || back(|cpu| cpu.4)
    };
    let torn: Vec<usize> = numbers.into_iter().filter(is_torn).collect();
    ticks.iter_mut().for_each(|tick| tick.cpus.retain(|cpu| !torn.contains(&cpu.0)));
    (!torn.is_empty()).then(|| say!(CPU_TIMES_FELL, torn.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")))
}

/// Why the edge's account is unknown: a total falls, or it does not count the requests of this load.
fn account(ticks: &[Tick], known: &KnownBlock<'_>, answered: u64) -> Option<Said> {
    let there = || ticks.iter().filter(|tick| tick.account.is_there);
    type Total = fn(&Account) -> u64;
    let totals: [(&str, Total); 5] = [
        ("accepted", |a| a.accepted),
        ("requests", |a| a.requests),
        ("handshakes", |a| a.handshakes),
        ("answers of servers", |a| a.peers.values().fold(0, |sum, peer| peer.header.0.saturating_add(sum))),
        ("tries", |a| a.peers.values().fold(0, |sum, peer| peer.requests.saturating_add(sum))),
    ];
    if let Some((name, _)) = totals.iter().find(|(_, of)| falls(there().map(|tick| of(&tick.account)))) {
        return Some(say!(ACCOUNT_FELL, *name));
    }
    let (first, last) = (there().next()?, there().next_back()?);
    let counted = last.account.requests.saturating_sub(first.account.requests);
    let is_whole = known.is_direct && first.at_ms <= BEGINS_MS && answered >= ANSWERS_MIN;
    (is_whole && (counted as f64) < COUNTED_MIN * answered as f64).then(|| say!(ACCOUNT_OF_ANOTHER, counted, answered))
}

/// The samples of a process between which its CPU time never falls and its first process stays the same: the longest such part.
pub(super) fn stretch<'a>(seen: &'a [(u64, &'a ProcessTick)]) -> &'a [(u64, &'a ProcessTick)] {
    let is_one = |then: &(u64, &ProcessTick), now: &(u64, &ProcessTick)| {
        let is_same = then.1.started == 0 || now.1.started == 0 || then.1.started == now.1.started;
        is_same && now.1.ran_ns.saturating_add(ROUNDED_NS) >= then.1.ran_ns
    };
    seen.chunk_by(is_one).max_by_key(|part| part.len()).unwrap_or(seen)
}

/// The contradictions in the samples of a process.
fn process(ticks: &[Tick], name: &str, known: &KnownBlock<'_>) -> Vec<Said> {
    let seen: Vec<(u64, &ProcessTick)> =
        ticks.iter().filter_map(|tick| Some((tick.at_ms, tick.processes.iter().find(|it| it.name == name)?))).collect();
    let whole = stretch(&seen);
    let mut found = Vec::new();
    if whole.len() < seen.len() {
        let seconds = |part: &[(u64, &ProcessTick)]| match (part.first(), part.last()) {
            (Some(from), Some(to)) => digits(to.0.saturating_sub(from.0) as f64 / 1000.0),
            _ => digits(0.0),
        };
        let starts: BTreeSet<u64> = seen.iter().map(|(_, tick)| tick.started).filter(|start| *start > 0).collect();
        found.push(if starts.len() > 1 {
            say!(PROCESS_REPLACED, name, seconds(whole), seconds(&seen))
        } else {
            say!(CPU_TIME_FELL, name, seconds(whole), seconds(&seen))
        });
    }
    // The load ends by itself.
    let (Some((ended, _)), Some(last)) = (seen.last(), ticks.last()) else { return found };
    let is_asked = known
        .spec
        .actions
        .iter()
        .any(|action| matches!(&action.deed, Deed::Kill(of) | Deed::Restart(of) if of == name));
    if *ended < last.at_ms && name != known.spec.client.name && !is_asked {
        found.push(say!(PROCESS_VANISHED, name, digits(*ended as f64 / 1000.0)));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use weir_conf::Tree;
    use weir_load::record::Hdr;

    use super::*;
    use crate::stack::{HUB, Spec};
    use crate::watch::account::UpstreamPeer;
    use crate::watch::{HostTick, ThreadTick, WatchPlan};
    use crate::why::gather;
    use crate::why::good::GoodStatuses;
    use crate::why::signals::Signals;

    /// The signals of these samples, beside a load of 1000 answers.
    fn signals(ticks: Vec<Tick>, is_weir: bool) -> Signals {
        let process = |name: &str| crate::stack::Process {
            name: name.into(),
            host: HUB.into(),
            cpus: vec![0],
            ..Default::default()
        };
        let spec = Spec {
            watch: Some(WatchPlan { at: "/run/x".into(), ..WatchPlan::default() }),
            processes: vec![process("app"), process("edge")],
            edge: "edge".into(),
            client: process("client"),
            ..Spec::default()
        };
        let known = KnownBlock {
            spec: &spec,
            tree: &Tree::default(),
            offered: Some(100.0),
            planned: None,
            length_s: 10.0,
            connections: 8,
            is_closed: false,
            is_noisy: true,
            is_direct: true,
            is_weir,
            pools: &[],
            good: &GoodStatuses::default(),
            running: None,
        };
        let watched = Watched { ticks, ..Watched::default() };
        let answer = json!({
            "usage": {"seconds": 10.0, "edge_cpu_s": 5.0, "foreign": 0.0, "steal": 0.0, "client_core": 0.1},
            "watched": watched,
            "load": {"aggregate": {"counters": {"http.requests": 1000, "http.codes.200": 1000}},
                "weir": {"started_ms": 1000, "ended_ms": 11_000, "incomplete": [], "generator": {"worker_cpu": [0.1], "limits": []},
                    "response": {"hdr_ns": Hdr::default().encoded(), "count": 1000, "mean": 2.0, "p50": 1.0, "p95": 4.0, "p99": 5.0, "max": 6.0}}},
        });
        gather::signals(&answer, &known).unwrap()
    }

    /// Eleven samples, one a second, of an edge at half a CPU, an application at a fifth, and 100 requests a second.
    fn steady() -> Vec<Tick> {
        let process = |name: &str, ran_ms: u64| ProcessTick {
            name: name.into(),
            host: HUB.into(),
            started: 7,
            ran_ns: ran_ms * 1_000_000,
            fds: 9,
            fds_max: 1024,
            threads: vec![ThreadTick { id: 5, is_main: true, ran_ns: ran_ms * 1_000_000, waited_ns: 0 }],
            ..ProcessTick::default()
        };
        let peer =
            |count: u64| UpstreamPeer { requests: count, header: (count, count * 900), ..UpstreamPeer::default() };
        let one = |at: u64| Tick {
            at_ms: at * 1000,
            cpus: vec![(0, at * 700, 0, at * 300, 0), (1, 0, 0, at * 1000, 0)],
            stalled: [("io".to_owned(), 0.0)].into(),
            processes: vec![process("edge", at * 500), process("app", at * 200), process("client", at * 100)],
            hosts: vec![HostTick {
                name: HUB.into(),
                counters: [("ListenOverflows".to_owned(), 0), ("ActiveOpens".to_owned(), at * 10)].into(),
                devices: [("eth0".to_owned(), (at * 1000, at * 2000))].into(),
                ..HostTick::default()
            }],
            account: Account {
                is_there: true,
                requests: at * 100,
                accepted: at,
                lines: Some(at * 100),
                peers: [("127.0.0.1:3000".to_owned(), peer(at * 100))].into(),
                ..Account::default()
            },
            ..Tick::default()
        };
        (0..=10).map(one).collect()
    }

    fn cpu(signals: &Signals, name: &str) -> f64 {
        signals.processes.iter().find(|process| process.name == name).unwrap().cpu
    }

    /// The signals after a change of the samples, and the one sentence about it.
    fn named(change: impl Fn(&mut Vec<Tick>)) -> (Signals, Said) {
        let mut ticks = steady();
        change(&mut ticks);
        let found = signals(ticks, false);
        assert_eq!(found.unread.len(), 1, "{:?}", found.unread);
        let why = found.unread[0].clone();
        (found, why)
    }

    #[test]
    fn samples_that_agree_are_whole() {
        let found = signals(steady(), false);
        assert_eq!(found.unread, Vec::<Said>::new());
        assert!((cpu(&found, "edge") - 0.5).abs() < 1e-9 && (cpu(&found, "app") - 0.2).abs() < 1e-9);
        assert_eq!((found.edge.requests, found.hosts[0].counters["ActiveOpens"]), (1000, 100));
    }

    #[test]
    fn a_process_that_vanishes_or_is_another_is_named() {
        let (found, why) =
            named(|ticks| ticks.iter_mut().skip(7).for_each(|tick| tick.processes.retain(|it| it.name != "app")));
        assert_eq!(why, "app ended after 6.00 s: its figures are of the time before");
        assert!((cpu(&found, "app") - 0.2).abs() < 1e-9);
        // Another program got the number of the process. It has used 90 s of CPU.
        let (found, why) = named(|ticks| {
            for tick in ticks.iter_mut().skip(8) {
                (tick.processes[1].started, tick.processes[1].ran_ns) = (900, 90_000_000_000 + tick.at_ms);
            }
        });
        assert_eq!(why, "app was replaced by another process: its figures are of 7.00 of 10.0 s");
        assert!((cpu(&found, "app") - 0.2).abs() < 1e-9, "{}", cpu(&found, "app"));
    }

    #[test]
    fn a_counter_that_falls_is_unknown() {
        let (found, why) =
            named(|ticks| ticks.iter_mut().skip(6).for_each(|tick| tick.processes[0].ran_ns -= 2_000_000_000));
        assert_eq!(why, "the CPU time of edge fell: its figures are of 5.00 of 10.0 s");
        assert!((cpu(&found, "edge") - 0.5).abs() < 1e-9, "{}", cpu(&found, "edge"));
        let (found, why) = named(|ticks| ticks[9].hosts[0].counters.extend([("ActiveOpens".to_owned(), 3)]));
        assert_eq!(why, "counters of edge that fell, so that their growth is unknown: ActiveOpens");
        assert_eq!((found.hosts[0].counters.get("ActiveOpens"), found.edge.opened), (None, None));
        let (found, why) = named(|ticks| ticks[10].cpus[0].3 = 0);
        assert_eq!(why, "the times of CPU 0 fell, so that its use is unknown");
        assert!(found.machine.busy.abs() < 1e-9);
        // The kernel's idle time goes back by a few ticks.
        let mut ticks = steady();
        ticks[10].cpus[0].3 -= 320;
        assert_eq!(signals(ticks, false).unread, Vec::<Said>::new());
    }

    #[test]
    fn a_total_below_zero_is_left_out() {
        let (found, why) = named(|ticks| ticks[10].account.requests = 5u64.wrapping_sub(9));
        assert_eq!(why, "1 of 11 readings have a number that no count reaches: these are left out");
        assert_eq!(found.edge.requests, 900);
    }

    #[test]
    fn a_clock_that_goes_back_is_named() {
        let (found, why) = named(|ticks| ticks[5].at_ms = 100);
        assert_eq!(why, "the time of 1 of 11 readings is not after that of the reading before: these are left out");
        assert!((cpu(&found, "edge") - 0.5).abs() < 1e-9);
    }

    #[test]
    fn the_account_of_another_edge_is_unknown() {
        let (found, why) = named(|ticks| ticks[6].account.requests = 20);
        assert!(why.starts_with("the edge's account is unknown: its count \"requests\" fell"), "{why}");
        assert!(!found.edge.is_known && found.edge.requests == 0);
        let (found, why) = named(|ticks| {
            ticks
                .iter_mut()
                .for_each(|tick| (tick.account.requests, tick.account.lines) = (tick.at_ms / 1000, Some(10)));
        });
        assert!(
            why.starts_with("the edge's account is unknown: it counts 10 requests, and the load got 1000"),
            "{why}"
        );
        assert!(!found.edge.is_known);
    }

    /// Numbers at the ends and in the middle.
    fn number(rng: &mut fastrand::Rng) -> u64 {
        match rng.u16(..300) {
            0 => u64::MAX,
            1..50 => 0,
            50..90 => COUNT_MAX,
            90..130 => rng.u64(..COUNT_MAX),
            _ => rng.u64(..5_000),
        }
    }

    fn chaos(rng: &mut fastrand::Rng) -> Tick {
        let name = |rng: &mut fastrand::Rng, all: &[&str]| all[rng.usize(..all.len())].to_owned();
        let process = |rng: &mut fastrand::Rng| ProcessTick {
            name: name(rng, &["edge", "app", "client"]),
            host: HUB.into(),
            started: number(rng),
            threads: (0..rng.usize(..3))
                .map(|_| ThreadTick {
                    id: rng.u32(..3),
                    is_main: rng.bool(),
                    ran_ns: number(rng),
                    waited_ns: number(rng),
                })
                .collect(),
            ran_ns: number(rng),
            ended_ns: number(rng),
            group_ns: rng.bool().then(|| number(rng)),
            waited_ns: number(rng),
            fds: number(rng),
            fds_max: number(rng),
            rss: number(rng),
            swapped: number(rng),
            periods: rng.bool().then(|| (number(rng), number(rng))),
            stuck: (rng.u32(..), rng.u32(..)),
            unread: (rng.u32(..), rng.u32(..)),
            preempted: number(rng),
            are_waits_unknown: rng.bool(),
        };
        let pair = |rng: &mut fastrand::Rng| (number(rng), number(rng));
        let host = |rng: &mut fastrand::Rng| HostTick {
            name: HUB.into(),
            counters: [(name(rng, &["ActiveOpens", "OutDatagrams", "InDatagrams"]), number(rng))].into(),
            devices: [(name(rng, &["eth0", "lo"]), pair(rng))].into(),
            has_sockets: rng.bool(),
            waiting: [("0.0.0.0:80".to_owned(), number(rng))].into(),
            held: [("127.0.0.1:3000".to_owned(), pair(rng))].into(),
            is_cut: rng.bool(),
            asking_names: number(rng),
        };
        let peer = |rng: &mut fastrand::Rng| UpstreamPeer {
            requests: number(rng),
            opened: rng.bool().then(|| number(rng)),
            bad: number(rng),
            header: pair(rng),
        };
        Tick {
            at_ms: number(rng),
            cpus: (0..rng.usize(..3))
                .map(|_| (rng.usize(..2), number(rng), number(rng), number(rng), number(rng)))
                .collect(),
            runnable: number(rng),
            stalled: [("io".to_owned(), rng.f64() * 1e6)].into(),
            processes: (0..rng.usize(..4)).map(|_| process(rng)).collect(),
            hosts: (0..rng.usize(..2)).map(|_| host(rng)).collect(),
            account: Account {
                is_there: rng.u8(..4) > 0,
                accepted: number(rng),
                dropped: number(rng),
                active: number(rng),
                idle: number(rng),
                requests: number(rng),
                handshakes: number(rng),
                resumed: number(rng),
                peers: (0..rng.usize(..3)).map(|at| (format!("127.0.0.1:300{at}"), peer(rng))).collect(),
                exchanges: number(rng),
                tries: number(rng),
                steps: [(name(rng, &["wait", "connect"]), pair(rng))].into(),
                limits: [("fds x".to_owned(), (rng.f64(), rng.f64(), number(rng)))].into(),
                errors: [("502".to_owned(), number(rng))].into(),
                own: [(502, number(rng))].into(),
                given: [(503, number(rng))].into(),
                no_server: number(rng),
                lines: rng.bool().then(|| number(rng)),
                asked: number(rng),
                ..Account::default()
            },
        }
    }

    /// The first number of a value that is negative, or that was not finite: JSON writes such a number as null.
    fn wrong(value: &Value, at: &str) -> Option<String> {
        // Not there, by their own types.
        const MAY_LACK: [&str; 18] = [
            "worker_processes",
            "worker_connections",
            "worker_rlimit_nofile",
            "keepalive",
            "upstream_requests",
            "next_upstream",
            "backlog",
            "opened",
            "quota",
            "link_max",
            "first_error_s",
            "inside",
            "waited",
            "accepts_gzip",
            "is_get",
            "planned",
            "memory_max",
            "uv_threads",
        ];
        match value {
            Value::Number(number) => {
                number.as_f64().is_none_or(|number| number < 0.0).then(|| format!("{at}: {number}"))
            }
            Value::Null => {
                (!MAY_LACK.iter().any(|name| at.ends_with(name)) && !at.contains("conf")).then(|| at.to_owned())
            }
            Value::Array(all) => all.iter().enumerate().find_map(|(number, one)| wrong(one, &format!("{at}.{number}"))),
            Value::Object(all) => all.iter().find_map(|(name, one)| wrong(one, &format!("{at}.{name}"))),
            Value::Bool(_) | Value::String(_) => None,
        }
    }

    /// With any samples, every figure is finite and not negative, and every rule can read them.
    #[test]
    fn any_samples_give_finite_figures() {
        for seed in 0..2_000 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut ticks: Vec<Tick> = (0..rng.usize(..9)).map(|_| chaos(&mut rng)).collect();
            if rng.bool() {
                // Half of the sequences are in order, so that more than one sample is used.
                ticks.iter_mut().enumerate().for_each(|(number, tick)| tick.at_ms = number as u64 * 250);
            }
            let found = signals(ticks, rng.bool());
            let json = serde_json::to_value(&found).unwrap();
            assert_eq!(wrong(&json, ""), None, "seed {seed}");
            let _ = crate::why::rules::find(&found, None);
        }
    }
}
