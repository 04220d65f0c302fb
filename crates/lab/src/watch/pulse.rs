//! The course of a block: what each process used between one sample and the next. Samples of a long block are thinned; its
//! pulses are joined instead, and the highest values stay.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tick::{HostTick, ProcessTick, Tick};

/// Most pulses of a block. More are joined in pairs, repeatedly.
pub const PULSES_MAX: usize = 1200;

/// The time between two samples, or between more of them that were joined.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pulse {
    /// Its end, ms since the first sample.
    pub at_ms: u64,
    /// The machine's clock at its end, ms since 1970.
    pub wall_ms: u64,
    /// Its length, ms.
    pub span_ms: u64,
    /// Every process whose totals did not fall.
    pub processes: BTreeMap<String, Beat>,
    /// Share of all CPUs that the hypervisor took.
    pub steal: f64,
    /// Heads of answers that servers of upstreams sent. `None` if the edge did not tell, or told less than before.
    pub heads: Option<u64>,
    /// Bits a second of the busiest device of each host, in or out.
    pub bits: BTreeMap<String, f64>,
}

/// The resources that a process used in a pulse.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Beat {
    /// CPUs, mean.
    pub cpu: f64,
    /// CPUs, the most between two samples.
    pub cpu_most: f64,
    /// Threads that waited for a CPU, the most between two samples.
    pub waited: f64,
    /// Share of the looks at its threads in which one waited for a disk, the most of a sample.
    pub stuck: f64,
    /// Share of the periods of its quota in which it was throttled, the most between two samples.
    pub throttled: f64,
    /// Open descriptors at the end, and their limit.
    pub fds: (u64, u64),
    /// Resident memory at the end.
    pub rss: u64,
}

impl Pulse {
    /// The time between two samples. `None` if the second is not later.
    pub fn between(then: &Tick, now: &Tick, wall_ms: u64) -> Option<Pulse> {
        let span_ms = now.at_ms.checked_sub(then.at_ms).filter(|span| *span > 0)?;
        let beat = |now: &ProcessTick| {
            let then = then.processes.iter().find(|then| then.name == now.name && then.started == now.started)?;
            Some((now.name.clone(), Beat::between(then, now, span_ms)?))
        };
        let heads = |tick: &Tick| {
            let heads = tick.account.peers.values().fold(0u64, |sum, peer| sum.saturating_add(peer.header.0));
            tick.account.is_there.then_some(heads)
        };
        let host = |now: &HostTick| {
            let then = then.hosts.iter().find(|then| then.name == now.name)?;
            Some((now.name.clone(), bits(then, now, span_ms)))
        };
        let taken = |tick: &Tick| tick.cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(cpu.4));
        let room = (span_ms as f64 * now.cpus.len() as f64).max(1.0);
        Some(Pulse {
            at_ms: now.at_ms,
            wall_ms,
            span_ms,
            processes: now.processes.iter().filter_map(beat).collect(),
            steal: (taken(now).saturating_sub(taken(then)) as f64 / room).min(1.0),
            heads: heads(now).zip(heads(then)).and_then(|(now, then)| now.checked_sub(then)),
            bits: now.hosts.iter().filter_map(host).collect(),
        })
    }

    /// Joins the pulse after this one to it: totals are added, and of shares and levels the highest stays.
    fn join(&mut self, next: &Pulse) {
        for (name, beat) in &next.processes {
            match self.processes.get_mut(name) {
                Some(known) => known.join(beat, (self.span_ms, next.span_ms)),
                None => drop(self.processes.insert(name.clone(), beat.clone())),
            }
        }
        (self.at_ms, self.wall_ms) = (next.at_ms, next.wall_ms);
        self.span_ms = self.span_ms.saturating_add(next.span_ms);
        self.steal = self.steal.max(next.steal);
        self.heads = self.heads.zip(next.heads).map(|(heads, more)| heads.saturating_add(more));
        for (host, bits) in &next.bits {
            let known = self.bits.entry(host.clone()).or_default();
            *known = known.max(*bits);
        }
    }
}

impl Beat {
    /// `None` if a total fell: what it used is unknown.
    fn between(then: &ProcessTick, now: &ProcessTick, span_ms: u64) -> Option<Beat> {
        let span_ns = span_ms as f64 * 1e6;
        // The group also has the time of processes for which nobody has waited.
        let group = now.group_ns.zip(then.group_ns).and_then(|(now, then)| now.checked_sub(then));
        let family = now.ran_ns.checked_sub(then.ran_ns);
        let cpu = family.max(group)? as f64 / span_ns;
        // Threads that ended take their waits with them.
        let waited = now.waited_ns.saturating_sub(then.waited_ns) as f64 / span_ns;
        let periods = now.periods.zip(then.periods);
        let throttled = periods.and_then(|(now, then)| Some((now.0.checked_sub(then.0)?, now.1.checked_sub(then.1)?)));
        let part = |some: u64, all: u64| (some as f64 / all.max(1) as f64).min(1.0);
        Some(Beat {
            cpu,
            cpu_most: cpu,
            waited,
            stuck: part(now.stuck.0.into(), now.stuck.1.into()),
            throttled: throttled.map_or(0.0, |(all, some)| part(some, all)),
            fds: (now.fds, now.fds_max),
            rss: now.rss,
        })
    }

    /// Joins what was used in the time after: of shares and levels, the highest or last stays. `spans` are the lengths of both.
    pub(crate) fn join(&mut self, next: &Beat, spans: (u64, u64)) {
        let (own, other) = (spans.0 as f64, spans.1 as f64);
        self.cpu = (self.cpu * own + next.cpu * other) / (own + other).max(1.0);
        self.cpu_most = self.cpu_most.max(next.cpu_most);
        self.waited = self.waited.max(next.waited);
        self.stuck = self.stuck.max(next.stuck);
        self.throttled = self.throttled.max(next.throttled);
        (self.fds, self.rss) = (next.fds, next.rss);
    }
}

/// Bits a second of the busiest device of a host.
fn bits(then: &HostTick, now: &HostTick, span_ms: u64) -> f64 {
    let grew = |(name, now): (&String, &(u64, u64))| {
        let then = then.devices.get(name)?;
        let (received, sent) = (now.0.checked_sub(then.0)?, now.1.checked_sub(then.1)?);
        (name != "lo").then(|| received.max(sent))
    };
    now.devices.iter().filter_map(grew).max().unwrap_or(0) as f64 * 8.0 * 1000.0 / span_ms.max(1) as f64
}

/// Adds a pulse, and joins pairs of pulses if there are too many.
pub fn add(pulses: &mut Vec<Pulse>, pulse: Pulse) {
    // The last one may be shorter than the others, of which none is exactly as long as the first.
    let step = pulses.first().map_or(0, |first| first.span_ms + first.span_ms / 8);
    match pulses.last_mut().filter(|last| last.span_ms.saturating_add(pulse.span_ms) <= step) {
        Some(last) => last.join(&pulse),
        None => pulses.push(pulse),
    }
    if pulses.len() > PULSES_MAX {
        *pulses = pulses
            .chunks(2)
            .filter_map(|pair| {
                let mut first = pair.first()?.clone();
                pair.iter().skip(1).for_each(|next| first.join(next));
                Some(first)
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tick(at_ms: u64, ran_ms: u64) -> Tick {
        let process =
            ProcessTick { name: "batch".into(), started: 3, ran_ns: ran_ms * 1_000_000, ..ProcessTick::default() };
        Tick { at_ms, processes: vec![process], ..Tick::default() }
    }

    #[test]
    fn a_short_burst_survives_a_long_block() {
        // 20 minutes, four samples a second, with one burst of 250 ms.
        let (mut pulses, mut ran) = (Vec::new(), 0);
        let mut before = tick(0, 0);
        for number in 1..=4_800u64 {
            ran += if number == 2_222 { 250 } else { 5 };
            let now = tick(number * 250, ran);
            add(&mut pulses, Pulse::between(&before, &now, number).unwrap());
            before = now;
        }
        assert!((PULSES_MAX / 2..=PULSES_MAX).contains(&pulses.len()), "{}", pulses.len());
        let busy: Vec<&Pulse> = pulses.iter().filter(|pulse| pulse.processes["batch"].cpu_most > 0.9).collect();
        assert_eq!(busy.len(), 1);
        assert!(busy[0].at_ms.abs_diff(2_222 * 250) <= 1000 && busy[0].processes["batch"].cpu < 0.3, "{busy:?}");
        assert!(pulses.iter().all(|pulse| pulse.span_ms <= 1000), "{:?}", pulses.last());
    }

    #[test]
    fn a_total_that_falls_is_no_use() {
        let pulse = Pulse::between(&tick(0, 900), &tick(250, 20), 0).unwrap();
        assert!(pulse.processes.is_empty());
        assert_eq!(Pulse::between(&tick(250, 0), &tick(250, 20), 0), None);
        let mut other = tick(250, 2000);
        other.processes[0].started = 4;
        assert!(Pulse::between(&tick(0, 900), &other, 0).unwrap().processes.is_empty(), "another process");
    }
}
