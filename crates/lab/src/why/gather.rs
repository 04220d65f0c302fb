//! Converts a keeper's answer to [`Signals`]: totals become growth, levels become their maximum, configuration files
//! become facts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use weir_host as host;
use weir_load::record::Hdr;

use super::course::{Course, course};
use super::known::KnownBlock;
use super::processes::processes;
use super::sent;
use super::served;
use super::signals::{Conf, EdgeSignals, HostSignals, LoadSignals, Machine, Signals};
use super::sound::sound;
use super::told;
use super::unread;
use super::written::conf;
use crate::block::{Block, BlockSettings};
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::stack::{HUB, Spec};
use crate::watch::account::{Acted, Cache, Paced, UpstreamPeer};
use crate::watch::{Account, HostTick, Tick, Watched};

/// The parts of a keeper's answer that the signals need. Keeper and lab are the same program: a missing or renamed
/// key is an error, and never means "nothing was used".
#[derive(Deserialize)]
struct Answer {
    usage: Used,
    // The key is always there. It is null for a block that is not watched: a block of a proof or of a try.
    #[serde(deserialize_with = "Option::deserialize")]
    watched: Option<Watched>,
    load: Report,
}

#[derive(Deserialize)]
struct Used {
    seconds: f64,
    foreign: f64,
}

#[derive(Deserialize)]
struct Report {
    weir: Own,
    aggregate: Aggregate,
}

#[derive(Deserialize)]
struct Own {
    started_ms: f64,
    ended_ms: f64,
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    hdr_ns: String,
    /// Number of answers. The key is missing if every request failed.
    #[serde(default)]
    count: u64,
}

#[derive(Deserialize)]
struct Aggregate {
    counters: BTreeMap<String, Value>,
}

/// All signals of one block. The error names the part of the answer that could not be read.
pub fn signals(answer: &Value, known: &KnownBlock<'_>) -> Result<Signals, Said> {
    let read = Answer::deserialize(answer).map_err(|error| say!(ANSWER_UNREADABLE, error.to_string()))?;
    let hdr = Hdr::decode(&read.load.weir.response.hdr_ns);
    let hdr = hdr.ok_or_else(|| say!(ANSWER_UNREADABLE, "load.weir.response.hdr_ns is no histogram"))?;
    let counters: BTreeMap<String, u64> =
        read.load.aggregate.counters.iter().filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect();
    let watched = match (read.watched, &known.spec.watch) {
        (Some(watched), _) => watched,
        (None, None) => Watched::default(),
        (None, Some(_)) => {
            return Err(say!(ANSWER_UNREADABLE, "nothing was watched"));
        }
    };
    let asked = BlockSettings { is_noisy: known.is_noisy, is_search: true, ..BlockSettings::default() };
    let block = Block::of(answer, 0, ComparedSide::Before, 0, asked);
    let weir = &read.load.weir;
    let measured = Some((weir.ended_ms - weir.started_ms) / 1000.0);
    if weir.response.count > 0 && sent::QUANTILES.iter().any(|key| answer["load"]["weir"]["response"][key].is_null()) {
        return Err(say!(ANSWER_UNREADABLE, "load.weir.response lacks a latency"));
    }
    let statuses = counters.iter().filter(|(name, _)| name.starts_with("http.codes."));
    let watched = sound(
        watched,
        &answer["watched"]["ticks"],
        known,
        statuses.map(|(_, count)| *count).fold(0, u64::saturating_add),
    );
    let processes = processes(&watched, known, answer);
    let mut unread = unread::unread(&watched, known, answer, &processes);
    let (course, jumped) = course(&watched.pulses, &answer["load"], known.length_s, known.good);
    // The load's times are of the machine's clock.
    let measured = measured.filter(|seconds| *seconds > 0.0 && jumped.is_none());
    unread.extend(jumped);
    Ok(Signals {
        unread,
        course,
        seconds: measured.unwrap_or(read.usage.seconds),
        load: sent::load(answer, &counters, &hdr, &block, known),
        conf: Conf { groups: served::groups(known.tree, known.spec), ..conf(known.tree, known.is_weir) },
        edge: edge(&watched.ticks, known),
        processes,
        hosts: hosts(&watched, known.spec),
        machine: machine(&watched.ticks, read.usage.foreign),
        said: watched.said,
        wrote: watched.wrote,
        pools: known.pools.to_vec(),
        told: told::summed(&watched.told),
        inside: watched.inside,
    })
}

/// The signals of processes that ran before, and of a load from outside. The kernel's figures and the edge's account are
/// read as those of a block.
pub fn running(watched: Watched, known: &KnownBlock<'_>, load: LoadSignals) -> Signals {
    // Samples that were never written as JSON have no numbers that a reader could misunderstand.
    let watched = sound(watched, &Value::Null, known, 0);
    let processes = processes(&watched, known, &Value::Null);
    let unread = unread::unread(&watched, known, &Value::Null, &processes);
    let mut machine = machine(&watched.ticks, 0.0);
    let own: f64 = processes.iter().map(|process| process.cpu).sum();
    machine.foreign = (machine.busy - own / machine.cpus.max(1.0)).max(0.0);
    Signals {
        unread,
        // The windows of a load from outside are not known.
        course: Course::default(),
        seconds: load.length_s,
        load,
        conf: Conf { groups: served::groups(known.tree, known.spec), ..conf(known.tree, known.is_weir) },
        edge: edge(&watched.ticks, known),
        processes,
        hosts: hosts(&watched, known.spec),
        machine,
        said: watched.said,
        wrote: watched.wrote,
        pools: Vec::new(),
        told: told::summed(&watched.told),
        inside: watched.inside,
    }
}

fn edge(ticks: &[Tick], known: &KnownBlock<'_>) -> EdgeSignals {
    // The load lies between the first account and the last.
    let told: Vec<&Tick> = ticks.iter().filter(|tick| tick.account.is_there).collect();
    let (Some(first), Some(end)) = (told.first(), told.last()) else {
        return EdgeSignals::default();
    };
    let (then, now) = (&first.account, &end.account);
    let since = |of: fn(&Account) -> u64| of(now).saturating_sub(of(then));
    let most = |of: fn(&Account) -> u64| told.iter().map(|tick| of(&tick.account)).max().unwrap_or(0);
    let peers: BTreeMap<String, UpstreamPeer> =
        now.peers.iter().map(|(name, peer)| (name.clone(), peer_since(peer, then.peers.get(name)))).collect();
    let opened = if known.is_weir {
        Some(peers.values().filter_map(|peer| peer.opened).sum())
    } else if known.running.is_some() {
        // Any program of the machine opens connections.
        None
    } else {
        // All connections that the edge's host opened, minus the client's connections if the client is on that host.
        let opened = grown(ticks, HUB, "ActiveOpens");
        let clients = if known.spec.client.host == HUB { since(|a| a.accepted) } else { 0 };
        opened.map(|opened| opened.saturating_sub(clients))
    };
    EdgeSignals {
        is_known: told.len() > 1,
        accepted: since(|a| a.accepted),
        dropped: since(|a| a.dropped),
        active_max: most(|a| a.active),
        idle_max: most(|a| a.idle),
        requests: since(|a| a.requests),
        handshakes: since(|a| a.handshakes),
        resumed: since(|a| a.resumed),
        peers,
        exchanges: since(|a| a.exchanges),
        tries: since(|a| a.tries),
        opened,
        cache: cache_since(&now.cache, &then.cache),
        steps: pairs_since(&now.steps, &then.steps),
        limits: limits(&told),
        errors: since_map(&now.errors, &then.errors),
        paced: Paced {
            answers: since(|a| a.paced.answers),
            by_field: since(|a| a.paced.by_field),
            rates: since(|a| a.paced.rates),
        },
        policies: policies_since(&now.policies, &then.policies),
        own: since_counts(&now.own, &then.own),
        given: since_counts(&now.given, &then.given),
        no_server: since(|a| a.no_server),
        lives: since_counts(&now.lives, &then.lives),
    }
}

fn since_counts<K: Ord + Copy>(now: &BTreeMap<K, u64>, then: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let since = |(of, count): (&K, &u64)| (*of, count.saturating_sub(then.get(of).copied().unwrap_or(0)));
    now.iter().map(since).filter(|(_, count)| *count > 0).collect()
}

fn policies_since(now: &BTreeMap<String, Acted>, then: &BTreeMap<String, Acted>) -> BTreeMap<String, Acted> {
    let since = |(name, now): (&String, &Acted)| {
        let then = then.get(name).cloned().unwrap_or_default();
        let acted = Acted {
            refused: now.refused.saturating_sub(then.refused),
            delayed: now.delayed.saturating_sub(then.delayed),
            delay_us: now.delay_us.map(|us| us.saturating_sub(then.delay_us.unwrap_or(0))),
        };
        (name.clone(), acted)
    };
    now.iter().map(since).filter(|(_, acted)| acted.refused + acted.delayed > 0).collect()
}

fn peer_since(now: &UpstreamPeer, then: Option<&UpstreamPeer>) -> UpstreamPeer {
    let then = then.cloned().unwrap_or_default();
    UpstreamPeer {
        requests: now.requests.saturating_sub(then.requests),
        opened: now.opened.map(|opened| opened.saturating_sub(then.opened.unwrap_or(0))),
        bad: now.bad.saturating_sub(then.bad),
        header: (now.header.0.saturating_sub(then.header.0), now.header.1.saturating_sub(then.header.1)),
    }
}

fn cache_since(now: &Cache, then: &Cache) -> Cache {
    Cache {
        said: since_map(&now.said, &then.said),
        fetches: now.fetches.saturating_sub(then.fetches),
        waited: now.waited.map(|waited| waited.saturating_sub(then.waited.unwrap_or(0))),
        reasons: since_map(&now.reasons, &then.reasons),
        polled: now.polled.saturating_sub(then.polled),
    }
}

fn since_map(now: &BTreeMap<String, u64>, then: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since =
        |(name, count): (&String, &u64)| (name.clone(), count.saturating_sub(then.get(name).copied().unwrap_or(0)));
    now.iter().map(since).filter(|(_, count)| *count > 0).collect()
}

fn pairs_since(
    now: &BTreeMap<String, (u64, u64)>,
    then: &BTreeMap<String, (u64, u64)>,
) -> BTreeMap<String, (u64, u64)> {
    let since = |(name, (count, sum)): (&String, &(u64, u64))| {
        let (count_then, sum_then) = then.get(name).copied().unwrap_or_default();
        (name.clone(), (count.saturating_sub(count_then), sum.saturating_sub(sum_then)))
    };
    now.iter().map(since).filter(|(_, (count, _))| *count > 0).collect()
}

fn limits(told: &[&Tick]) -> BTreeMap<String, (f64, f64, u64)> {
    let mut found: BTreeMap<String, (f64, f64, u64)> = BTreeMap::new();
    let before: BTreeMap<&String, u64> = told
        .first()
        .map(|tick| tick.account.limits.iter().map(|(name, (_, _, met))| (name, *met)).collect())
        .unwrap_or_default();
    for tick in told {
        for (name, (used, limit, met)) in &tick.account.limits {
            let entry = found.entry(name.clone()).or_insert((0.0, *limit, 0));
            entry.0 = entry.0.max(*used);
            entry.2 = met.saturating_sub(before.get(name).copied().unwrap_or(0));
        }
    }
    found
}

/// How much a counter of a host grew between the first and the last sample that has it.
fn grown(ticks: &[Tick], host: &str, counter: &str) -> Option<u64> {
    let values: Vec<u64> = ticks
        .iter()
        .filter_map(|tick| tick.hosts.iter().find(|known| known.name == host)?.counters.get(counter).copied())
        .collect();
    Some(values.last()?.saturating_sub(*values.first()?))
}

fn hosts(watched: &Watched, spec: &Spec) -> Vec<HostSignals> {
    let mut names: Vec<&str> =
        watched.ticks.iter().flat_map(|tick| tick.hosts.iter().map(|host| host.name.as_str())).collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            let seen: Vec<(u64, &HostTick)> = watched
                .ticks
                .iter()
                .filter_map(|tick| Some((tick.at_ms, tick.hosts.iter().find(|host| host.name == name)?)))
                .collect();
            let (from, to) = (seen.first()?, seen.last()?);
            let mut host = HostSignals {
                name: name.to_owned(),
                counters: since_map(&to.1.counters, &from.1.counters),
                ports: watched.ports.get(name).copied().unwrap_or(0),
                is_hub: name == HUB,
                turned_away: watched.turned_away.get(name).cloned().unwrap_or_default(),
                ..HostSignals::default()
            };
            for (_, tick) in &seen {
                for (address, waiting) in &tick.waiting {
                    let most = watched.backlog(address).unwrap_or(0);
                    let queue = host.queues.entry(address.clone()).or_insert((0, most));
                    queue.0 = queue.0.max(*waiting);
                }
                for (address, held) in &tick.held {
                    let most = host.held.entry(address.clone()).or_default();
                    *most = (*most).max(*held);
                }
            }
            let looks = seen.iter().filter(|(_, tick)| tick.has_sockets).count().max(1) as f64;
            for address in host.queues.keys() {
                let waited =
                    seen.iter().filter(|(_, tick)| tick.waiting.get(address).is_some_and(|waiting| *waiting >= 2));
                host.lasting.insert(address.clone(), waited.count() as f64 / looks);
            }
            host.asking_names = asking(&seen);
            host.questions = questions(&seen);
            let bits = to.1.devices.keys().map(|device| carried(&seen, device));
            let busier = |link: &(f64, f64)| link.0.max(link.1);
            let (received, sent) = bits.max_by(|one, other| busier(one).total_cmp(&busier(other))).unwrap_or_default();
            (host.link_bits, host.link_sends) = (received.max(sent), sent > received);
            let rate = spec.hosts.iter().find(|known| known.name == name).and_then(|known| known.rate_kbit);
            host.link_max = rate.map(|kbit| kbit as f64 * 1000.0);
            Some(host)
        })
        .collect()
}

/// The mean number of sockets towards a name server while there was load: the first sample is before it, and the last one after it.
fn asking(seen: &[(u64, &HostTick)]) -> f64 {
    let all: Vec<f64> =
        seen.iter().filter(|(_, tick)| tick.has_sockets).map(|(_, tick)| tick.asking_names as f64).collect();
    let inner = all.get(1..all.len().saturating_sub(1)).filter(|inner| !inner.is_empty()).unwrap_or(&all);
    inner.iter().sum::<f64>() / inner.len().max(1) as f64
}

/// Least number of intervals between samples for the rate of a link.
const INTERVALS_MIN: usize = 4;

/// Bits a second that a device received and sent while it carried traffic. Leaves out the samples before and after the
/// load, and the two intervals in which the load began and ended.
fn carried(seen: &[(u64, &HostTick)], device: &str) -> (f64, f64) {
    let counts: Vec<(u64, (u64, u64))> =
        seen.iter().filter_map(|(at, tick)| tick.devices.get(device).map(|count| (*at, *count))).collect();
    let grew = |pair: &[(u64, (u64, u64))]| pair.first().zip(pair.last()).is_some_and(|(then, now)| then.1 != now.1);
    let moving = |pair: &&[(u64, (u64, u64))]| grew(pair);
    let first = counts.windows(2).position(grew).unwrap_or(0);
    let last = counts.len().saturating_sub(1 + counts.windows(2).rev().take_while(|pair| !moving(pair)).count());
    let (from, to) =
        if last.saturating_sub(first) >= INTERVALS_MIN + 2 { (first + 1, last - 1) } else { (first, last) };
    let (Some((at, then)), Some((end, now))) = (counts.get(from), counts.get(to)) else { return (0.0, 0.0) };
    let seconds = end.saturating_sub(*at) as f64 / 1000.0;
    if seconds <= 0.0 {
        return (0.0, 0.0);
    }
    let bits = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8.0 / seconds;
    (bits(now.0, then.0), bits(now.1, then.1))
}

/// Datagrams without an answer yet, mean over the samples, and the number of sent datagrams.
fn questions(seen: &[(u64, &HostTick)]) -> (f64, u64) {
    let count = |tick: &HostTick, name: &str| tick.counters.get(name).copied();
    let pairs: Vec<(u64, u64)> =
        seen.iter().filter_map(|(_, tick)| Some((count(tick, "OutDatagrams")?, count(tick, "InDatagrams")?))).collect();
    let Some((out, answered)) = pairs.first().copied() else { return (0.0, 0) };
    let open =
        |pair: &(u64, u64)| (pair.0.saturating_sub(out) as f64 - pair.1.saturating_sub(answered) as f64).max(0.0);
    let sent = pairs.last().map_or(0, |last| last.0.saturating_sub(out));
    (pairs.iter().map(open).sum::<f64>() / pairs.len() as f64, sent)
}

fn machine(ticks: &[Tick], foreign: f64) -> Machine {
    let (Some(first), Some(last)) = (ticks.first(), ticks.last()) else { return Machine::default() };
    let (mut worked, mut sums) = (0.0, [0u64; 2]);
    let elapsed = Duration::from_millis(last.at_ms.saturating_sub(first.at_ms));
    for (cpu, _, interrupts, idle, steal) in &last.cpus {
        let Some(then) = first.cpus.iter().find(|then| then.0 == *cpu) else { continue };
        let since = |now: &u64, then: u64| now.saturating_sub(then);
        let (idle, steal) = (since(idle, then.3), since(steal, then.4));
        worked += host::worked(elapsed, Duration::from_millis(idle), Duration::from_millis(steal)).as_secs_f64();
        sums.iter_mut().zip([since(interrupts, then.2), steal]).for_each(|(sum, ms)| *sum += ms);
    }
    let room = (elapsed.as_secs_f64() * last.cpus.len() as f64).max(1e-3);
    let [interrupts, steal] = sums.map(|ms| ms as f64 / 1000.0 / room);
    // Computed from totals: the kernel's own averages include the time before the block.
    let pressure = last.stalled.iter().filter_map(|(what, now)| {
        let stalled = now - first.stalled.get(what)?;
        Some((what.clone(), (stalled / elapsed.as_secs_f64().max(1e-3)).clamp(0.0, 1.0)))
    });
    let pressure = pressure.collect();
    let busy = (worked / room - interrupts).max(0.0);
    Machine { cpus: last.cpus.len() as f64, busy, interrupts, steal, foreign, pressure }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::good::GoodStatuses;
    use super::*;
    use serde_json::json;
    use weir_conf::MemoryFiles;

    fn tree(text: &str) -> weir_conf::Tree {
        weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false).0
    }

    #[test]
    fn what_a_link_carries_is_judged_while_it_is_loaded() {
        // Ten intervals, four a second: three before the load and one after it. 125 kB in each whole interval are 4
        // Mbit/s.
        let bytes = [0, 0, 0, 60_000, 185_000, 310_000, 435_000, 560_000, 685_000, 700_000, 700_000];
        let ticks: Vec<HostTick> = bytes
            .iter()
            .map(|sent| HostTick { devices: [("eth0".to_owned(), (*sent / 10, *sent))].into(), ..HostTick::default() })
            .collect();
        let seen: Vec<(u64, &HostTick)> =
            ticks.iter().enumerate().map(|(number, tick)| (number as u64 * 250, tick)).collect();
        let (received, sent) = carried(&seen, "eth0");
        assert!((sent - 4e6).abs() < 1.0 && (received - 4e5).abs() < 1.0, "{received} {sent}");
        assert_eq!(carried(&seen, "eth1"), (0.0, 0.0));
        // There are too few samples to leave any out.
        assert!((carried(&seen[2..6], "eth0").1 - 310_000.0 * 8.0 / 0.75).abs() < 1.0);
        assert_eq!(carried(&seen[..2], "eth0"), (0.0, 0.0));
    }

    #[test]
    fn totals_become_what_was_used() {
        let process = |name: &str| crate::stack::Process {
            name: name.into(),
            host: HUB.into(),
            cpus: vec![0],
            ..Default::default()
        };
        let spec = Spec {
            watch: Some(crate::watch::WatchPlan::default()),
            processes: vec![process("origin0"), process("edge")],
            edge: "edge".into(),
            client: process("client"),
            ..Spec::default()
        };
        let tick = |at_ms: u64, ran_ms: u64, accepted: u64| {
            json!({"at_ms": at_ms, "cpus": [[0, ran_ms, 0, at_ms - ran_ms, 0]],
                "processes": [{"name": "edge", "host": HUB, "ran_ns": ran_ms * 1_000_000, "fds": 7, "fds_max": 30, "periods": [at_ms / 100, at_ms / 200],
                    "threads": [{"id": 5, "is_main": true, "ran_ns": ran_ms * 1_000_000, "waited_ns": 0}]}],
                "hosts": [{"name": HUB, "counters": {"ActiveOpens": accepted * 3}, "has_sockets": true, "waiting": {"0.0.0.0:80": 4}, "held": {"10.0.0.1:1": [9, 3]}}],
                "account": {"is_there": true, "accepted": accepted, "active": 6, "requests": accepted * 10, "steps": {"wait": [accepted, accepted * 100]}}})
        };
        let answer = json!({
            "usage": {"seconds": 10.0, "edge_cpu_s": 5.0, "foreign": 0.0, "steal": 0.0, "client_core": 0.1},
            "watched": {"ticks": [tick(0, 0, 1), tick(10_000, 5_000, 101)], "backlogs": {"0.0.0.0:80": 8}, "ports": {"edge": 200}, "said": {"no_port": 3}},
            "load": {"aggregate": {"counters": {"http.requests": 1000, "http.codes.200": 900, "http.codes.502": 100}},
                "weir": {"started_ms": 1000, "ended_ms": 11_000, "service": {"mean": 1.25}, "response": {"hdr_ns": Hdr::default().encoded(), "count": 1000, "mean": 2.0, "p50": 1.0, "p95": 4.0, "p99": 5.0, "max": 6.0},
                    "series": {"interval_ms": 500, "length": 3, "counts": {"http.codes.200": [1, 2, 3], "http.codes.502": [0, 0, 4]}, "response": {"p50": [1, 1, 1]}}}},
        });
        let tree = tree("http { }");
        let known = KnownBlock {
            spec: &spec,
            tree: &tree,
            offered: Some(100.0),
            planned: None,
            length_s: 10.0,
            connections: 8,
            is_closed: false,
            is_noisy: true,
            is_direct: true,
            is_weir: false,
            pools: &[],
            good: &GoodStatuses::default(),
            running: None,
        };
        let found = signals(&answer, &known).unwrap();
        // A renamed key is an error. It is not a block in which nothing happened.
        for (place, key) in
            [("", "watched"), ("/watched", "ticks"), ("/load/weir/response", "hdr_ns"), ("/load/aggregate", "counters")]
        {
            let mut torn = answer.clone();
            let object = torn.pointer_mut(place).and_then(Value::as_object_mut).unwrap();
            let value = object.remove(key).unwrap();
            object.insert(format!("{key}_renamed"), value);
            assert!(
                signals(&torn, &known)
                    .is_err_and(|why| why.starts_with("the lab cannot read the result of its measuring process")),
                "{key}"
            );
        }
        let mut torn = answer.clone();
        torn["watched"]["ticks"][0]["account"]["unread"] = json!("expected `,`");
        let unread = signals(&torn, &known).unwrap().unread;
        assert!(unread.iter().any(|why| why == "the lab cannot read the edge's account: expected `,`"), "{unread:?}");
        // A block of a proof is not watched: only its answers count. A block that should be watched is invalid
        // without observations.
        let mut unwatched = answer.clone();
        unwatched["watched"] = Value::Null;
        let blind = Spec { watch: None, ..spec.clone() };
        assert_eq!(signals(&unwatched, &KnownBlock { spec: &blind, ..known }).map(|found| found.goodput()), Ok(90.0));
        let watching = Spec { watch: Some(crate::watch::WatchPlan::default()), ..spec.clone() };
        let is_refused = signals(&unwatched, &KnownBlock { spec: &watching, ..known }).is_err();
        assert!(is_refused, "a block that was to be watched has nothing that was seen");
        // The application has no sample, and the kernel did not kill it. If the kernel kills it before its first
        // sample, it is listed.
        assert!(!found.processes.iter().any(|process| process.name == "origin0"));
        let mut killed = answer.clone();
        killed["usage"]["hosts"] = json!({HUB: {"memory_full": 9, "memory_killed": 1}});
        let killed = signals(&killed, &known).unwrap();
        let origin = killed.processes.iter().find(|process| process.name == "origin0").unwrap();
        assert_eq!((origin.memory_full, origin.memory_killed), (9, 1));
        assert_eq!((found.seconds, found.load.sent, found.load.answered, found.failed()), (10.0, 1000, 1000, 100));
        assert_eq!((found.load.well, found.goodput(), found.load.unsent_ms), (900, 90.0, 0.75));
        // Fourteen answers with a good status ended in the middle of their bodies.
        let mut torn = answer.clone();
        torn["load"]["aggregate"]["counters"]["errors.ECONNRESET"] = json!(14);
        let torn = signals(&torn, &known).unwrap().load;
        assert_eq!((torn.well, torn.cut_off()), (886, 14));
        // The same block with other good statuses: a 502 is good, a 429 is not.
        let mut refused = answer.clone();
        refused["load"]["aggregate"]["counters"] =
            json!({"http.requests": 1000, "http.codes.429": 900, "http.codes.502": 100});
        let good: GoodStatuses = "502".parse().unwrap();
        let other = signals(&refused, &KnownBlock { good: &good, ..known }).unwrap();
        assert_eq!(
            (other.load.well, other.failed(), other.load.errors.keys().next().map(String::as_str)),
            (100, 900, Some("429"))
        );
        assert_eq!(found.load.first_error_s, Some(1.0));
        let edge = found.edge_process().unwrap();
        assert!((edge.cpu - 0.5).abs() < 1e-9 && (edge.throttled - 0.5).abs() < 1e-9 && edge.fds == (7, 30));
        assert_eq!((found.edge.accepted, found.edge.opened, found.edge.steps["wait"]), (100, Some(200), (100, 10_000)));
        let hub = found.hub().unwrap();
        assert_eq!((hub.queues["0.0.0.0:80"], hub.held["10.0.0.1:1"], hub.ports), ((4, 8), (9, 3), 200));
        assert_eq!(found.said("no_port"), 3);
        assert!((found.machine.busy - 0.5).abs() < 1e-9, "{:?}", found.machine);
    }

    #[test]
    fn a_backlog_of_both_families_is_found() {
        let watched = Watched { backlogs: [("0.0.0.0:3000".to_owned(), 128)].into(), ..Watched::default() };
        assert_eq!((watched.backlog("[::]:3000"), watched.backlog("[::]:80")), (Some(128), None));
    }

    #[test]
    fn names_are_asked_for_under_load() {
        let tick = |asking_names| HostTick { has_sockets: true, asking_names, ..HostTick::default() };
        let ticks = [tick(0), tick(2), tick(2), tick(0)];
        let seen: Vec<(u64, &HostTick)> = ticks.iter().map(|tick| (0, tick)).collect();
        assert_eq!((asking(&seen), asking(&seen[1..2]), asking(&[])), (2.0, 2.0, 0.0));
    }

    #[test]
    fn questions_that_wait_are_counted() {
        let tick = |out: u64, answered: u64| HostTick {
            counters: [("OutDatagrams".to_owned(), out), ("InDatagrams".to_owned(), answered)].into(),
            ..HostTick::default()
        };
        let ticks = [tick(100, 40), tick(110, 48), tick(120, 56)];
        let seen: Vec<(u64, &HostTick)> = ticks.iter().map(|tick| (0, tick)).collect();
        assert_eq!(questions(&seen), (2.0, 20));
        assert_eq!(questions(&[]), (0.0, 0));
    }

    #[test]
    fn the_machine_worked_when_it_was_not_idle() {
        let tick = |at_ms, busy, interrupts, idle, steal| Tick {
            at_ms,
            cpus: vec![(0, busy, interrupts, idle, steal), (1, 0, 0, at_ms, 0)],
            // 9 s before the block, and a quarter of the block's time.
            stalled: [("io".to_owned(), 9.0 + at_ms as f64 / 4000.0)].into(),
            ..Tick::default()
        };
        // Work that runs at the frequency of the timer tick is missing in the busy counter. The idle counter shows
        // it.
        let found = machine(&[tick(0, 0, 0, 0, 0), tick(1000, 0, 100, 200, 100)], 0.0);
        assert!((found.busy - 0.3).abs() < 1e-9, "{found:?}");
        assert!((found.interrupts - 0.05).abs() < 1e-9 && (found.steal - 0.05).abs() < 1e-9, "{found:?}");
        assert!((found.pressure["io"] - 0.25).abs() < 1e-9, "{found:?}");
        // The other way round: the busy counter is full, but the CPU was idle.
        let found = machine(&[tick(0, 0, 0, 0, 0), tick(1000, 1000, 0, 1000, 0)], 0.0);
        assert!(found.busy.abs() < 1e-9, "{found:?}");
    }
}
