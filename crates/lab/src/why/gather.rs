//! Converts a keeper's answer to [`Signals`]: totals become growth, levels become their maximum, configuration files
//! become facts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use weir_conf::{Statement, Tree};
use weir_host as host;
use weir_load::record::Hdr;

use super::known::KnownBlock;
use super::policies::{excluded, outages, policies};
use super::sent;
use super::served;
use super::signals::{CacheConf, Conf, EdgeSignals, HostSignals, Machine, ProcessSignals, Role, Signals};
use super::told;
use super::unread;
use crate::block::{Block, BlockSettings};
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::stack::{HUB, Spec};
use crate::watch::account::{Acted, Cache, UpstreamPeer};
use crate::watch::{Account, HostTick, ProcessTick, Tick, Watched};

/// Parts of a block for which throttling is computed.
const QUARTERS: usize = 4;

/// From this many samples of a process on, beside the first and the last, those two are left out.
const LOOKS_MIN: usize = 4;
/// Most servers of an upstream that are kept.
const SERVERS_MAX: usize = 256;
/// Most addresses of a process that are kept.
const LISTENS_MAX: usize = 64;

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
    let measured = (weir.ended_ms - weir.started_ms) / 1000.0;
    if weir.response.count > 0 && sent::QUANTILES.iter().any(|key| answer["load"]["weir"]["response"][key].is_null()) {
        return Err(say!(ANSWER_UNREADABLE, "load.weir.response lacks a latency"));
    }
    let processes = processes(&watched, known, answer);
    let unread = unread::unread(&watched, known, answer, &processes);
    Ok(Signals {
        unread,
        seconds: if measured > 0.0 { measured } else { read.usage.seconds },
        load: sent::load(answer, &counters, &hdr, &block, known),
        conf: conf(known.tree, known.is_weir),
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
        policies: policies_since(&now.policies, &then.policies),
        own: since_statuses(&now.own, &then.own),
        given: since_statuses(&now.given, &then.given),
        no_server: since(|a| a.no_server),
    }
}

fn since_statuses(now: &BTreeMap<u16, u64>, then: &BTreeMap<u16, u64>) -> BTreeMap<u16, u64> {
    let since = |(status, count): (&u16, &u64)| (*status, count.saturating_sub(then.get(status).copied().unwrap_or(0)));
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

fn processes(watched: &Watched, known: &KnownBlock<'_>, answer: &Value) -> Vec<ProcessSignals> {
    let spec = known.spec;
    let peers = served::upstreams(known.tree, spec);
    let roles = spec.processes.iter().chain([&spec.client]).filter(|process| !process.is_step);
    roles
        .filter_map(|process| {
            let seen: Vec<(u64, &ProcessTick)> = watched
                .ticks
                .iter()
                .filter_map(|tick| Some((tick.at_ms, tick.processes.iter().find(|known| known.name == process.name)?)))
                .collect();
            let listens: Vec<String> =
                watched.listens.get(&process.name).into_iter().flatten().take(LISTENS_MAX).cloned().collect();
            let role = match process.name.as_str() {
                name if name == spec.edge => Role::Edge,
                name if name == spec.client.name => Role::Client,
                // If no sockets could be seen, every process may be an application.
                _ if watched.listens.values().all(BTreeSet::is_empty) => Role::App,
                _ if served::is_one(&listens, &process.host, &peers, spec) => Role::App,
                _ => Role::Beside,
            };
            // The host's cgroup counts only its limited processes.
            let group = |what: &str| {
                let used = answer["usage"]["hosts"][&process.host][what].as_u64().filter(|_| !process.is_unlimited);
                used.unwrap_or(0)
            };
            let memory_killed = group("memory_killed");
            // Keep a process that the kernel killed before its first sample.
            let used = used(&seen).or_else(|| (memory_killed > 0).then(ProcessSignals::default))?;
            let quota = if process.is_unlimited { None } else { quota_of(spec, &process.host) };
            let pinned = if process.cpus.is_empty() { crate::ask::allowed_cpus() } else { process.cpus.clone() };
            let cpus = pinned.len() as f64;
            Some(ProcessSignals {
                name: process.name.clone(),
                host: process.host.clone(),
                role,
                cpus: quota.map_or(cpus, |quota| quota.min(cpus)),
                pinned,
                listens,
                quota,
                is_node: process.argv.iter().take(3).any(|word| {
                    word.rsplit('/').next() == Some("node") || word.starts_with("node ") || word.contains("exec node ")
                }),
                throttled: throttled(&seen),
                throttled_strip: throttled_strip(&seen),
                memory_full: group("memory_full"),
                memory_killed,
                ..used
            })
        })
        .collect()
}

/// The CPU time and other resources that a process used, from its samples.
fn used(seen: &[(u64, &ProcessTick)]) -> Option<ProcessSignals> {
    // The first sample contains the client's start and the last one its end. Only the load lies between.
    let inner = seen.get(1..seen.len().saturating_sub(1)).filter(|inner| inner.len() >= LOOKS_MIN).unwrap_or(seen);
    // For a process that ends, use the sample with the highest CPU time.
    let (from, to) = (inner.first()?, inner.iter().rev().max_by_key(|(_, tick)| tick.ran_ns)?);
    let elapsed_ns = (to.0.saturating_sub(from.0)).max(1) as f64 * 1e6;
    let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_ns;
    let of = |now: &crate::watch::ThreadTick| {
        let then = from.1.threads.iter().find(|then| then.id == now.id).cloned().unwrap_or_default();
        (share(now.ran_ns, then.ran_ns), share(now.waited_ns, then.waited_ns), now.is_main)
    };
    let mut threads: Vec<(f64, f64, bool)> = to.1.threads.iter().map(of).collect();
    threads.sort_by(|a, b| (b.0 + b.1).total_cmp(&(a.0 + a.1)));
    let most = |of: fn(&ProcessTick) -> u64| seen.iter().map(|(_, tick)| of(tick)).max().unwrap_or(0);
    let (stuck, looked) =
        inner.iter().fold((0, 0), |(stuck, looked), (_, tick)| (stuck + tick.stuck.0, looked + tick.stuck.1));
    let live = |tick: &ProcessTick| tick.ran_ns.saturating_sub(tick.ended_ns);
    let (unread, read) =
        inner.iter().fold((0, 0), |(unread, read), (_, tick)| (unread + tick.unread.0, read + tick.unread.1));
    let by_family = share(to.1.ran_ns, from.1.ran_ns);
    // The group also has the time of processes for which nobody has waited.
    let by_group = to.1.group_ns.zip(from.1.group_ns).map_or(0.0, |(to, from)| share(to, from));
    let cpu = by_family.max(by_group);
    Some(ProcessSignals {
        cpu,
        ended: (cpu - share(live(to.1), live(from.1))).clamp(0.0, cpu),
        is_main_busiest: threads.first().is_some_and(|(_, _, is_main)| *is_main),
        threads: threads.iter().map(|(ran, waited, _)| (*ran, *waited)).collect(),
        fds: (most(|tick| tick.fds), most(|tick| tick.fds_max)),
        swapped: to.1.swapped.saturating_sub(from.1.swapped),
        stuck: f64::from(stuck) / f64::from(looked.max(1)),
        unread: f64::from(unread) / f64::from(read.max(1)),
        preempted: to.1.preempted.saturating_sub(from.1.preempted) as f64 / elapsed_ns * 1e9,
        ..ProcessSignals::default()
    })
}

fn quota_of(spec: &Spec, host: &str) -> Option<f64> {
    let host = spec.hosts.iter().find(|known| known.name == host)?;
    host.cpus.or(host.credits.as_ref().map(|credits| credits.cpus))
}

fn throttled(seen: &[(u64, &ProcessTick)]) -> f64 {
    let periods: Vec<(u64, u64)> = seen.iter().filter_map(|(_, tick)| tick.periods).collect();
    let (Some(first), Some(last)) = (periods.first(), periods.last()) else { return 0.0 };
    let all = last.0.saturating_sub(first.0);
    last.1.saturating_sub(first.1) as f64 / all.max(1) as f64
}

fn throttled_strip(seen: &[(u64, &ProcessTick)]) -> Vec<f64> {
    let length = seen.len().div_ceil(QUARTERS).max(1);
    // Neighbouring parts share one sample.
    (0..QUARTERS)
        .filter_map(|part| seen.get(part * length..((part + 1) * length + 1).min(seen.len())))
        .map(throttled)
        .collect()
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
            host.asking_names =
                seen.iter().filter(|(_, tick)| tick.has_sockets).map(|(_, tick)| tick.asking_names as f64).sum::<f64>()
                    / looks;
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

/// The settings of a configuration, as far as rules need them. Of several values, the one that limits first.
pub fn conf(tree: &Tree, is_weir: bool) -> Conf {
    let mut found = Conf { is_weir, can_keep: is_weir, has_upgrade: is_weir, ..Conf::default() };
    (found.policies, found.outages) = (policies(tree), outages(tree));
    found.cache = cache(tree);
    (found.upstream_requests, found.next_upstream) = (upstream_requests(tree), next_upstream(tree));
    let mut all: Vec<&Statement> = tree.root.iter().collect();
    let (mut speaks_11, mut clears) = (false, false);
    let (mut named, mut passed) = (Vec::new(), Vec::new());
    while let Some(statement) = all.pop() {
        all.extend(statement.children());
        let (first, number) = (statement.text(0), statement.text(0).parse::<u64>().ok());
        let has = |word: &str| statement.words().any(|given| given.text == word);
        match statement.name.text.as_str() {
            "worker_processes" => found.worker_processes = Some(first.to_owned()),
            "worker_connections" => found.worker_connections = number,
            "worker_rlimit_nofile" => found.worker_rlimit_nofile = number,
            "keepalive" => found.keepalive = found.keepalive.max(number),
            "proxy_http_version" => speaks_11 |= first == "1.1",
            "proxy_set_header" if first.eq_ignore_ascii_case("connection") => {
                clears |= statement.text(1).is_empty() || statement.text(1).starts_with('$')
            }
            "proxy_set_header" if first.eq_ignore_ascii_case("upgrade") => found.has_upgrade = true,
            name @ ("proxy_connect_timeout" | "proxy_read_timeout" | "proxy_send_timeout") => {
                if let Some(ms) = time_ms(first) {
                    let known = found.timeouts.entry(name.to_owned()).or_insert(ms);
                    *known = ms.min(*known);
                }
            }
            "listen" => {
                let backlog = statement.words().find_map(|word| word.text.strip_prefix("backlog=")?.parse().ok());
                found.backlog = backlog.or(found.backlog);
                found.has_tls |= has("ssl");
            }
            "proxy_cache" => found.has_cache |= first != "off",
            "proxy_cache_lock" => found.has_lock |= first == "on",
            "proxy_cache_use_stale" => found.has_stale_updating |= has("updating"),
            "proxy_cache_background_update" => found.has_background_update |= first == "on",
            "access_log" => {
                found.has_buffered_log |=
                    first == "off" || statement.words().any(|word| word.text.starts_with("buffer="))
            }
            "resolver" => found.has_resolver |= first != "off",
            "gzip" => found.has_gzip |= first == "on",
            "gzip_comp_level" => found.gzip_level = found.gzip_level.max(number.unwrap_or(0)),
            "upstream" => {
                found.has_upstream = true;
                named.push(first.to_owned());
                let is_used =
                    |server: &&Statement| !server.words().any(|word| matches!(word.text.as_str(), "down" | "backup"));
                let servers = statement.named("server").filter(is_used).map(|server| server.text(0).to_owned());
                let servers: Vec<String> = servers.take(SERVERS_MAX).collect();
                if servers.len() > found.servers.len() {
                    found.servers = servers;
                }
            }
            "server" if !statement.is_block() => {
                found.names_localhost |= first == "localhost" || first.starts_with("localhost:")
            }
            "proxy_pass" => {
                found.names_localhost |= first.contains("//localhost");
                passed.extend(address(first));
            }
            _ => {}
        }
    }
    found.can_keep |= speaks_11 && clears;
    found.passed = passed.into_iter().find(|server| !named.contains(server));
    found
}

/// Every statement; a block comes before its content.
fn every(tree: &Tree) -> impl Iterator<Item = &Statement> {
    let mut open: Vec<&Statement> = tree.root.iter().rev().collect();
    std::iter::from_fn(move || {
        let statement = open.pop()?;
        open.extend(statement.children().iter().rev());
        Some(statement)
    })
}

/// The smallest `keepalive_requests` of an upstream.
fn upstream_requests(tree: &Tree) -> Option<u64> {
    let upstreams = every(tree).filter(|one| one.name == *"upstream");
    upstreams.flat_map(|one| one.named("keepalive_requests")).filter_map(|one| one.text(0).parse().ok()).min()
}

/// The conditions of the last `proxy_next_upstream`.
fn next_upstream(tree: &Tree) -> Option<Vec<String>> {
    let last = every(tree).filter(|one| one.name == *"proxy_next_upstream").last()?;
    Some(last.args.iter().map(|word| word.text.clone()).collect())
}

/// The statements about a cache that decide what it stores. The modules of nginx use the same names after their prefix.
fn cache(tree: &Tree) -> CacheConf {
    let mut found = CacheConf { excluded: excluded(tree), ..CacheConf::default() };
    for statement in every(tree) {
        let name = statement.name.text.split_once('_').map_or("", |(_, name)| name);
        match name {
            "cache_key" => found.key = Some(statement.text(0).to_owned()),
            "cache_valid" => found.has_valid = true,
            "cache_min_uses" => found.min_uses = found.min_uses.max(statement.text(0).parse().unwrap_or(1)),
            "ignore_headers" => found.ignored.extend(statement.args.iter().map(|word| word.text.to_ascii_lowercase())),
            _ => {}
        }
    }
    found
}

/// The server that a `proxy_pass` over HTTP names itself. `None` if a variable sets it.
fn address(url: &str) -> Option<String> {
    let server = url.strip_prefix("http://")?.split('/').next()?;
    (!server.is_empty() && !server.contains('$') && !server.starts_with("unix:")).then(|| server.to_owned())
}

/// A time as nginx writes it, in ms, as far as timeouts use it.
fn time_ms(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = number.parse().ok()?;
    let factor = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::good::GoodStatuses;
    use super::*;
    use serde_json::json;
    use weir_conf::MemoryFiles;

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false).0
    }

    #[test]
    fn a_configuration_says_what_binds() {
        let text = "worker_processes 1; events { worker_connections 32; } http {
            upstream app { server localhost:3000; keepalive 64; keepalive_requests 5; }
            proxy_next_upstream error http_503; proxy_cache_path /c keys_zone=one:1m; proxy_read_timeout 2m;
            server { listen 80 backlog=8; listen 443 ssl; proxy_cache one; proxy_cache_lock on;
              location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_read_timeout 500ms; } } }";
        let found = conf(&tree(text), false);
        assert_eq!((found.worker_connections, found.keepalive, found.backlog), (Some(32), Some(64), Some(8)));
        assert!(found.can_keep && found.has_cache && found.has_lock && found.names_localhost && found.has_tls);
        assert!(!found.has_stale_updating && !found.has_upgrade && found.has_upstream);
        let named =
            "http { gzip_comp_level 6; upstream app { server a:1; } server { location / { proxy_pass http://app; } ";
        let other = conf(&tree(&format!("{named} location /b {{ proxy_pass http://b:3000/x; }} }} }}")), false);
        assert_eq!((other.passed.as_deref(), other.gzip_level), (Some("b:3000"), 6));
        assert_eq!(conf(&tree(&format!("{named} }} }}")), false).passed, None);
        assert_eq!(
            (found.upstream_requests, found.next_upstream.unwrap().join(" ")),
            (Some(5), "error http_503".into())
        );
        assert_eq!(found.timeouts["proxy_read_timeout"], 500);
        assert!(!conf(&tree("http { proxy_http_version 1.1; }"), false).can_keep);
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
                "weir": {"started_ms": 1000, "ended_ms": 11_000, "response": {"hdr_ns": Hdr::default().encoded(), "count": 1000, "mean": 2.0, "p50": 1.0, "p95": 4.0, "p99": 5.0, "max": 6.0},
                    "series": {"interval_ms": 500, "length": 3, "counts": {"http.codes.200": [1, 2, 3], "http.codes.502": [0, 0, 4]}, "response": {"p50": [1, 1, 1]}}}},
        });
        let tree = tree("http { }");
        let known = KnownBlock {
            spec: &spec,
            tree: &tree,
            offered: Some(100.0),
            length_s: 10.0,
            connections: 8,
            is_closed: false,
            is_noisy: true,
            is_weir: false,
            pools: &[],
            good: &GoodStatuses::default(),
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
        assert_eq!((found.load.well, found.goodput()), (900, 90.0));
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
    fn an_application_with_a_thread_for_each_connection_is_as_busy_as_its_process() {
        // 0.9 of a CPU, of which its live threads have 0.02; nobody waited for children that used 0.05 more.
        let tick = |ran_ms: u64, live_ms: u64, group_ms: Option<u64>| ProcessTick {
            ran_ns: ran_ms * 1_000_000,
            ended_ns: (ran_ms - live_ms) * 1_000_000,
            group_ns: group_ms.map(|ms| ms * 1_000_000),
            ..ProcessTick::default()
        };
        let of = |first: &ProcessTick, last: &ProcessTick| used(&[(0, first), (10_000, last)]).unwrap();
        let alone = of(&tick(1_000, 500, None), &tick(10_000, 700, None));
        assert!((alone.cpu - 0.9).abs() < 1e-9 && (alone.ended - 0.88).abs() < 1e-9, "{alone:?}");
        let grouped = of(&tick(1_000, 500, Some(1_000)), &tick(10_000, 700, Some(10_500)));
        assert!((grouped.cpu - 0.95).abs() < 1e-9 && (grouped.ended - 0.93).abs() < 1e-9, "{grouped:?}");
        let torn = of(&tick(9_000, 500, None), &tick(1_000, 700, None));
        assert_eq!((torn.cpu, torn.ended), (0.0, 0.0), "a counter that falls");
    }

    #[test]
    fn a_backlog_of_both_families_is_found() {
        let watched = Watched { backlogs: [("0.0.0.0:3000".to_owned(), 128)].into(), ..Watched::default() };
        assert_eq!((watched.backlog("[::]:3000"), watched.backlog("[::]:80")), (Some(128), None));
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
