//! The resources that each process used, from its samples.

use std::collections::BTreeSet;

use serde_json::Value;

use super::known::KnownBlock;
use super::served;
use super::signals::{ProcessSignals, Role};
use super::sound::stretch;
use crate::stack::{Process, Spec};
use crate::watch::{ProcessTick, Watched};

/// Parts of a block for which throttling is computed.
const QUARTERS: usize = 4;

/// From this many samples of a process on, beside the first and the last, those two are left out.
const LOOKS_MIN: usize = 4;
/// Most addresses of a process that are kept.
const LISTENS_MAX: usize = 64;

/// The processes of a block that were seen, with the resources that they used.
pub fn processes(watched: &Watched, known: &KnownBlock<'_>, answer: &Value) -> Vec<ProcessSignals> {
    let spec = known.spec;
    let peers = served::upstreams(known.tree, spec);
    people(spec)
        .filter_map(|process| {
            let seen: Vec<(u64, &ProcessTick)> = watched
                .ticks
                .iter()
                .filter_map(|tick| Some((tick.at_ms, tick.processes.iter().find(|known| known.name == process.name)?)))
                .collect();
            let listens: Vec<String> =
                watched.listens.get(&process.name).into_iter().flatten().take(LISTENS_MAX).cloned().collect();
            let running = known.running.and_then(|all| all.get(&process.name));
            let role = match process.name.as_str() {
                _ if let Some(running) = running => running.role,
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
            let seen = stretch(&seen);
            let used = used(seen).or_else(|| (memory_killed > 0).then(ProcessSignals::default))?;
            let quota = match running {
                Some(running) => running.quota,
                None if process.is_unlimited => None,
                None => quota_of(spec, &process.host),
            };
            let pinned = if process.cpus.is_empty() { crate::ask::allowed_cpus() } else { process.cpus.clone() };
            let cpus = pinned.len() as f64;
            Some(ProcessSignals {
                name: process.name.clone(),
                host: process.host.clone(),
                role,
                cpus: quota.map_or(cpus, |quota| quota.min(cpus)),
                pinned,
                uv_threads: watched.uv_threads.get(&process.name).copied(),
                listens,
                quota,
                is_node: process.argv.iter().take(3).any(|word| {
                    word.rsplit('/').next() == Some("node") || word.starts_with("node ") || word.contains("exec node ")
                }),
                throttled: throttled(seen),
                throttled_strip: throttled_strip(seen),
                memory_max: if process.is_unlimited { None } else { memory_of(spec, &process.host) },
                memory_full: group("memory_full"),
                memory_killed,
                ..used
            })
        })
        .collect()
}

/// The processes of a block that were to be seen. A load from outside has no client here.
pub fn people(spec: &Spec) -> impl Iterator<Item = &Process> {
    let client = Some(&spec.client).filter(|client| !client.name.is_empty());
    spec.processes.iter().chain(client).filter(|process| !process.is_step)
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
        // A thread with less time than one of the same id before is a new one. No thread runs or waits longer than the time that passed.
        let is_one = |then: &&crate::watch::ThreadTick| then.id == now.id && then.ran_ns <= now.ran_ns;
        let then = from.1.threads.iter().find(is_one).cloned().unwrap_or_default();
        (share(now.ran_ns, then.ran_ns).min(1.0), share(now.waited_ns, then.waited_ns).min(1.0), now.is_main)
    };
    let mut threads: Vec<(f64, f64, bool)> = to.1.threads.iter().map(of).collect();
    threads.sort_by(|a, b| (b.0 + b.1).total_cmp(&(a.0 + a.1)));
    let most = |of: fn(&ProcessTick) -> u64| seen.iter().map(|(_, tick)| of(tick)).max().unwrap_or(0);
    let (stuck, looked) = inner.iter().fold((0, 0), |(stuck, looked), (_, tick)| added((stuck, looked), tick.stuck));
    let live = |tick: &ProcessTick| tick.ran_ns.saturating_sub(tick.ended_ns);
    let (unread, read) = inner.iter().fold((0, 0), |(unread, read), (_, tick)| added((unread, read), tick.unread));
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
        stuck: part(stuck, looked),
        unread: part(unread, read),
        preempted: to.1.preempted.saturating_sub(from.1.preempted) as f64 / elapsed_ns * 1e9,
        ..ProcessSignals::default()
    })
}

fn added(sums: (u64, u64), seen: (u32, u32)) -> (u64, u64) {
    (sums.0.saturating_add(seen.0.into()), sums.1.saturating_add(seen.1.into()))
}

/// A part of all, 0 to 1.
fn part(some: u64, all: u64) -> f64 {
    (some as f64 / all.max(1) as f64).min(1.0)
}

fn memory_of(spec: &Spec, host: &str) -> Option<u64> {
    let mb = spec.hosts.iter().find(|known| known.name == host)?.memory_mb?;
    Some(mb.saturating_mul(1 << 20))
}

fn quota_of(spec: &Spec, host: &str) -> Option<f64> {
    let host = spec.hosts.iter().find(|known| known.name == host)?;
    host.cpus.or(host.credits.as_ref().map(|credits| credits.cpus))
}

fn throttled(seen: &[(u64, &ProcessTick)]) -> f64 {
    let periods: Vec<(u64, u64)> = seen.iter().filter_map(|(_, tick)| tick.periods).collect();
    let (Some(first), Some(last)) = (periods.first(), periods.last()) else { return 0.0 };
    let all = last.0.saturating_sub(first.0);
    part(last.1.saturating_sub(first.1), all)
}

fn throttled_strip(seen: &[(u64, &ProcessTick)]) -> Vec<f64> {
    let length = seen.len().div_ceil(QUARTERS).max(1);
    // Neighbouring parts share one sample.
    (0..QUARTERS)
        .filter_map(|part| seen.get(part * length..((part + 1) * length + 1).min(seen.len())))
        .map(throttled)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
}
