//! Turns phases into arrivals: which virtual user is due when, as pure arithmetic (artillery.md §1.2).
//!
//! Every worker and every agent computes the same schedule and runs only its own share, so they need not ask each
//! other: arrival number `k` belongs to share `k mod n`. The counts of phases without randomness equal Artillery's.

use std::time::Duration;

use fastrand::Rng;

use crate::plan::{Arrivals, LoopTimes, Phase, Plan, Step};

/// Most arrivals of one phase; later arrivals are never due. It is a day at a million a second.
pub const ARRIVALS_MAX: u64 = 86_400_000_000;
/// Shortest time between two arrivals, one microsecond: a higher rate is lowered to this one.
const GAP_MIN: Duration = Duration::from_micros(1);
/// Interval between two steps of a rate in a ramp.
const RAMP_STEP: Duration = Duration::from_secs(1);

/// One virtual user that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The virtual user's number in the whole run, from 0.
    pub number: u64,
    /// The index of the virtual user's phase.
    pub phase: usize,
    /// Due time, after the start of the run.
    pub due: Duration,
}

/// All arrivals of a run, in order.
#[derive(Debug)]
pub struct AllArrivals<'p> {
    phases: &'p [Phase],
    phase: usize,
    began: Duration,
    pacer: Option<Pacer>,
    number: u64,
    random: Rng,
}

impl<'p> AllArrivals<'p> {
    /// The schedule of these phases. The same seed gives the same random arrivals on every worker.
    pub fn new(phases: &'p [Phase], seed: u64) -> AllArrivals<'p> {
        AllArrivals { phases, phase: 0, began: Duration::ZERO, pacer: None, number: 0, random: Rng::with_seed(seed) }
    }
}

impl Iterator for AllArrivals<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let phase = self.phases.get(self.phase)?;
            let pacer = self.pacer.get_or_insert_with(|| Pacer::new(phase));
            if let Some(after) = pacer.next(&mut self.random) {
                let arrival = Arrival { number: self.number, phase: self.phase, due: self.began + after };
                self.number += 1;
                return Some(arrival);
            }
            self.began += phase.duration;
            self.phase += 1;
            self.pacer = None;
        }
    }
}

/// Number of arrivals in a phase; `None` if it is random.
pub fn expected(phase: &Phase) -> Option<u64> {
    match phase.arrivals {
        Arrivals::Poisson(_) => None,
        _ => Some(Pacer::new(phase).total()),
    }
}

/// The number of requests that the virtual users of all phases send together. `None` if the script does not show it:
/// arrivals at random, or a loop whose rounds are known only at run time.
pub fn requests(plan: &Plan) -> Option<f64> {
    let arrivals: Option<u64> = plan.phases.iter().map(expected).sum();
    let weights: f64 = plan.scenarios.iter().map(|scenario| f64::from(scenario.weight)).sum();
    let each: Option<f64> = plan
        .scenarios
        .iter()
        .filter(|scenario| scenario.weight > 0)
        .map(|scenario| Some(f64::from(scenario.weight) / weights * requests_of(&scenario.flow)?))
        .sum();
    Some(arrivals? as f64 * each?)
}

/// The requests and messages of a flow.
fn requests_of(flow: &[Step]) -> Option<f64> {
    flow.iter()
        .map(|step| match step {
            Step::Request(_) | Step::Send { .. } | Step::Emit(_) => Some(1.0),
            Step::Think(_) | Step::Log(_) | Step::Function(_) | Step::Wait(_) | Step::Connect(_) => Some(0.0),
            Step::Parallel { steps, .. } => requests_of(steps),
            Step::Loop(one) => {
                let rounds = match &one.times {
                    LoopTimes::Range(from, to) => (to - from).max(0) as f64,
                    LoopTimes::Over(values) => values.len() as f64,
                    LoopTimes::Forever
                    | LoopTimes::Rendered(_)
                    | LoopTimes::OverVariable(_)
                    | LoopTimes::OverPath(_) => return None,
                };
                one.while_true.is_none().then_some(())?;
                Some(rounds * requests_of(&one.flow)?)
            }
        })
        .sum()
}

/// Time from the start of the run to the end of the phases.
pub fn length(phases: &[Phase]) -> Duration {
    phases.iter().map(|phase| phase.duration).sum()
}

/// The arrivals of one phase, as times after its start.
#[derive(Debug)]
enum Pacer {
    Even(Even),
    Chance { mean: f64, duration: Duration, at: Duration, left: u64 },
    Ramp { from: f64, to: f64, steps: u64, step: u64, within: Option<Even> },
}

#[derive(Debug)]
struct Even {
    gap: Duration,
    left: u64,
    next: Duration,
}

impl Even {
    /// `count` arrivals one gap apart, the first one gap after `begin`.
    fn new(begin: Duration, gap: Duration, count: u64) -> Even {
        Even { gap, left: count, next: begin + gap }
    }

    fn next(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let due = self.next;
        self.next += self.gap;
        Some(due)
    }
}

impl Pacer {
    fn new(phase: &Phase) -> Pacer {
        let duration = phase.duration;
        match phase.arrivals {
            Arrivals::Pause => Pacer::Even(Even::new(Duration::ZERO, GAP_MIN, 0)),
            Arrivals::Count(count) => {
                let count = count.min(ARRIVALS_MAX);
                let gap = whole_micros(duration.as_secs_f64() / count.max(1) as f64);
                Pacer::Even(Even::new(Duration::ZERO, gap, count))
            }
            Arrivals::Rate(rate) if rate > 0.0 => {
                let gap = whole_micros(1.0 / rate).max(GAP_MIN);
                let count = u64::try_from(duration.as_nanos() / gap.as_nanos()).unwrap_or(ARRIVALS_MAX);
                Pacer::Even(Even::new(Duration::ZERO, gap, count.min(ARRIVALS_MAX)))
            }
            Arrivals::Rate(_) => Pacer::Even(Even::new(Duration::ZERO, GAP_MIN, 0)),
            Arrivals::Poisson(rate) => {
                let mean = if rate > 0.0 { 1.0 / rate } else { f64::INFINITY };
                Pacer::Chance { mean, duration, at: Duration::ZERO, left: ARRIVALS_MAX }
            }
            Arrivals::Ramp(from, to) => {
                let steps = duration.as_nanos().div_ceil(RAMP_STEP.as_nanos()).max(1);
                Pacer::Ramp { from, to, steps: u64::try_from(steps).unwrap_or(u64::MAX), step: 0, within: None }
            }
        }
    }

    fn next(&mut self, random: &mut Rng) -> Option<Duration> {
        match self {
            Pacer::Even(even) => even.next(),
            Pacer::Chance { mean, duration, at, left } => {
                *left = left.checked_sub(1)?;
                // 1 - u lies in (0, 1]: its logarithm is finite.
                let gap = -(1.0 - random.f64()).ln() * *mean;
                *at = at.checked_add(Duration::try_from_secs_f64(gap).ok()?)?;
                (*at < *duration).then_some(*at)
            }
            Pacer::Ramp { from, to, steps, step, within } => loop {
                if let Some(due) = within.as_mut().and_then(Even::next) {
                    return Some(due);
                }
                if *step >= *steps {
                    return None;
                }
                *within = Some(ramp_second(*from, *to, *step, *steps));
                *step += 1;
            },
        }
    }

    /// Number of arrivals in total; only for phases that are not random.
    fn total(&self) -> u64 {
        match self {
            Pacer::Even(even) => even.left,
            Pacer::Chance { .. } => 0,
            Pacer::Ramp { from, to, steps, .. } => {
                (0..*steps).fold(0, |sum: u64, step| sum.saturating_add(ramp_rate(*from, *to, step, *steps)))
            }
        }
    }
}

/// The arrivals of one second of a ramp.
fn ramp_second(from: f64, to: f64, step: u64, steps: u64) -> Even {
    let begin = RAMP_STEP.saturating_mul(u32::try_from(step).unwrap_or(u32::MAX));
    let rate = ramp_rate(from, to, step, steps);
    // Whole milliseconds up to a thousand a second, as in Artillery; microseconds for higher rates.
    let gap = match rate {
        0 => RAMP_STEP,
        1..=1000 => Duration::from_millis(1000 / rate),
        _ => Duration::from_nanos(1_000_000_000 / rate).max(GAP_MIN),
    };
    Even::new(begin, gap, rate)
}

/// Number of arrivals in one second of a ramp: the straight line at that second, rounded half up.
fn ramp_rate(from: f64, to: f64, step: u64, steps: u64) -> u64 {
    let rate = match steps {
        1 => f64::midpoint(from, to),
        _ => from + (to - from) * step as f64 / (steps - 1) as f64,
    };
    ((rate + 0.5).floor().max(0.0) as u64).min(ARRIVALS_MAX)
}

fn whole_micros(seconds: f64) -> Duration {
    // A float out of range saturates; a gap of a day is practically never.
    Duration::from_micros((seconds * 1e6 + 1e-6).floor().clamp(0.0, 86_400e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(duration: u64, arrivals: Arrivals) -> Phase {
        Phase {
            name: "p".into(),
            shown: format!("{duration}s"),
            duration: Duration::from_secs(duration),
            arrivals,
            vusers_max: None,
        }
    }

    fn per_second(phases: &[Phase]) -> Vec<usize> {
        let mut counts = Vec::new();
        for arrival in AllArrivals::new(phases, 7) {
            // The last arrival of a second is at the end of the second.
            let second = ((arrival.due.as_millis().max(1) - 1) / 1000) as usize;
            counts.resize(counts.len().max(second + 1), 0);
            counts[second] += 1;
        }
        counts
    }

    #[test]
    fn a_rate_is_spread_evenly() {
        let phases = [phase(6, Arrivals::Rate(5.0))];
        let all: Vec<Arrival> = AllArrivals::new(&phases, 1).collect();
        assert_eq!(all.len(), 30);
        assert_eq!(all[0].due, Duration::from_millis(200));
        assert_eq!(all[29].due, Duration::from_secs(6));
    }

    #[test]
    fn fractions_of_a_rate_are_served() {
        assert_eq!(expected(&phase(10, Arrivals::Rate(0.5))), Some(5));
        assert_eq!(expected(&phase(2, Arrivals::Rate(1.5))), Some(3));
        assert_eq!(expected(&phase(10, Arrivals::Rate(3.0))), Some(30));
        assert_eq!(expected(&phase(1, Arrivals::Rate(0.5))), Some(0));
    }

    #[test]
    fn a_ramp_steps_each_second() {
        assert_eq!(per_second(&[phase(5, Arrivals::Ramp(2.0, 10.0))]), [2, 4, 6, 8, 10]);
        assert_eq!(per_second(&[phase(5, Arrivals::Ramp(10.0, 2.0))]), [10, 8, 6, 4, 2]);
        assert_eq!(expected(&phase(5, Arrivals::Ramp(2.0, 20.0))), Some(56));
        assert_eq!(expected(&phase(1, Arrivals::Ramp(2.0, 10.0))), Some(6));
    }

    #[test]
    fn a_count_is_spread_over_the_phase() {
        let phases = [phase(2, Arrivals::Count(4))];
        let dues: Vec<u128> = AllArrivals::new(&phases, 1).map(|arrival| arrival.due.as_millis()).collect();
        assert_eq!(dues, [500, 1000, 1500, 2000]);
        assert_eq!(expected(&phase(0, Arrivals::Count(3))), Some(3));
    }

    #[test]
    fn phases_follow_one_another_and_numbers_run_on() {
        let phases = [phase(1, Arrivals::Count(2)), phase(3, Arrivals::Pause), phase(1, Arrivals::Rate(2.0))];
        let all: Vec<Arrival> = AllArrivals::new(&phases, 1).collect();
        assert_eq!(all.iter().map(|a| a.number).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(all.iter().map(|a| a.phase).collect::<Vec<_>>(), [0, 0, 2, 2]);
        assert_eq!(all[2].due, Duration::from_millis(4500));
        assert_eq!(length(&phases), Duration::from_secs(5));
    }

    #[test]
    fn chance_keeps_the_mean_and_the_seed() {
        let phases = [phase(100, Arrivals::Poisson(50.0))];
        let count = AllArrivals::new(&phases, 42).count();
        assert!((4500..5500).contains(&count), "{count} arrivals where 5000 are expected");
        let dues = |seed| AllArrivals::new(&phases, seed).map(|arrival| arrival.due).collect::<Vec<_>>();
        assert_eq!(dues(42), dues(42));
        assert_ne!(dues(42), dues(43));
        assert_eq!(expected(&phases[0]), None);
    }

    #[test]
    fn absurd_rates_end() {
        assert_eq!(AllArrivals::new(&[phase(1, Arrivals::Rate(0.0))], 1).count(), 0);
        assert_eq!(AllArrivals::new(&[phase(1, Arrivals::Poisson(0.0))], 1).count(), 0);
        assert_eq!(expected(&phase(1, Arrivals::Rate(1e300))), Some(1_000_000));
        assert_eq!(expected(&phase(1, Arrivals::Rate(f64::NAN))), Some(0));
    }
}
