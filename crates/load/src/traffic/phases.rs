//! The part of the log that the script replays, and its arrivals over time.

use super::gather::AccessLogs;
use super::wish::Wish;

/// The longest part of a log that is replayed as it is.
const HOUR_MS: u64 = 3_600_000;
/// Most phases of a script from logs.
pub(super) const PHASES_MAX: u64 = 60;
/// Most phases of a script from recordings, if no arrivals come in bursts: one for each hundredth.
const CALM_PHASES: u64 = 100;
/// Most stretches of a script from recordings: no phase is shorter than a stretch.
const STRETCHES_MAX: u64 = 1_000;
/// Two stretches of the log are one phase if their arrivals differ by no more than chance explains: this many standard
/// deviations.
const DEVIATIONS: f64 = 3.0;

/// Arrivals come in bursts if they vary more than random ones by this many standard deviations: a calm hour has 100
/// phases, and hardly ever one with such a chance.
const BURST_DEVIATIONS: f64 = 4.0;

/// A part of the log, and its length in the script.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LogWindow {
    pub(super) from_ms: u64,
    /// One past the last millisecond.
    pub(super) to_ms: u64,
    /// The length of the script.
    pub(super) script_s: u64,
    /// How many arrivals the script has for each arrival of the log.
    pub(super) share: f64,
    /// True if the log is longer than the part.
    pub(super) is_part: bool,
}

/// A phase of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptPhase {
    pub(super) duration_s: u64,
    pub(super) arrivals: u64,
    /// When it begins in the log.
    pub(super) at_ms: u64,
}

/// Chooses the part: with a length that the user gave, the whole log; otherwise the hour with most requests.
pub(super) fn window(log: &AccessLogs, wish: &Wish) -> LogWindow {
    let first = log.requests.first().map_or(0, |request| request.at_ms);
    let last = log.requests.last().map_or(0, |request| request.at_ms);
    let last = first + (last + 1 - first).next_multiple_of(1000);
    let is_part = wish.minutes.is_none() && last - first > HOUR_MS;
    let (from_ms, to_ms) = if is_part { busiest(log, first) } else { (first, last) };
    let seconds = (to_ms - from_ms) as f64 / 1000.0;
    let script_s = match wish.minutes {
        Some(minutes) => u64::from(minutes) * 60,
        None => (seconds / wish.speed).round().max(1.0) as u64,
    };
    let whole = if wish.all_clients { log.clients_each() } else { 1.0 };
    // With a length, the rates stay: fewer arrivals in less time. A speed makes every second shorter, and keeps all
    // arrivals, although the script has whole seconds.
    let part = if wish.minutes.is_some() { script_s as f64 * wish.speed / seconds } else { 1.0 };
    let share = part * whole;
    LogWindow { from_ms, to_ms, script_s, share, is_part }
}

/// The hour with most requests; it begins with a request.
fn busiest(log: &AccessLogs, first: u64) -> (u64, u64) {
    let (mut from, mut best, mut most) = (0, first, 0);
    for (at, request) in log.requests.iter().enumerate() {
        while log.requests.get(from).is_some_and(|early| early.at_ms + HOUR_MS <= request.at_ms) {
            from += 1;
        }
        if at + 1 - from > most {
            most = at + 1 - from;
            best = log.requests.get(from).map_or(first, |early| early.at_ms);
        }
    }
    (best, best + HOUR_MS)
}

/// Arrivals in neighbouring stretches of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretches {
    /// The number of the first one.
    from: u64,
    stretches: u64,
    arrivals: u64,
}

/// Divides the arrivals into phases: equal stretches of time, and neighbours of the same rate are one.
pub(super) fn divide(starts: &[u64], window: &LogWindow) -> Vec<ScriptPhase> {
    let stretch_s = window.script_s.div_ceil(PHASES_MAX).max(1);
    let counts = counted(starts, window, stretch_s);
    phases(joined(0, &counts), stretch_s, window)
}

/// Divides the arrivals into phases of equal length. One in which they come in bursts is divided again, where the rate
/// changes. Returns the phases, and the number of phases with bursts.
pub(super) fn divide_exactly(starts: &[u64], window: &LogWindow) -> (Vec<ScriptPhase>, u64) {
    let stretch_s = window.script_s.div_ceil(STRETCHES_MAX).max(1);
    let calm_s = window.script_s.div_ceil(CALM_PHASES).max(stretch_s);
    let counts = counted(starts, window, stretch_s);
    let mut all: Vec<Stretches> = Vec::new();
    let mut bursts = 0;
    let mut from = 0;
    for counts in counts.chunks(calm_s.div_ceil(stretch_s) as usize) {
        let whole = Stretches { from, stretches: counts.len() as u64, arrivals: counts.iter().sum() };
        from += whole.stretches;
        if is_bursty(counts) {
            bursts += 1;
            all.extend(joined(whole.from, counts));
            continue;
        }
        match all.last_mut().filter(|last| last.arrivals == 0 && whole.arrivals == 0) {
            Some(last) => last.stretches += whole.stretches,
            None => all.push(whole),
        }
    }
    (phases(all, stretch_s, window), bursts)
}

/// The arrivals of each stretch.
fn counted(starts: &[u64], window: &LogWindow, stretch_s: u64) -> Vec<u64> {
    let stretches = window.script_s.div_ceil(stretch_s);
    let mut counts = vec![0_u64; stretches as usize];
    for start in starts {
        let at = ((start - window.from_ms) as f64 / stretch_ms(window, stretch_s)) as usize;
        if let Some(count) = counts.get_mut(at.min(stretches as usize - 1)) {
            *count += 1;
        }
    }
    counts
}

/// The length of a stretch in the log.
fn stretch_ms(window: &LogWindow, stretch_s: u64) -> f64 {
    (window.to_ms - window.from_ms).max(1) as f64 * stretch_s as f64 / window.script_s as f64
}

/// Joins neighbours of the same rate.
fn joined(from: u64, counts: &[u64]) -> Vec<Stretches> {
    let mut groups: Vec<Stretches> = Vec::new();
    for (number, count) in (from..).zip(counts) {
        match groups.last_mut() {
            Some(last) if is_same(last.arrivals, last.stretches, *count) => {
                last.stretches += 1;
                last.arrivals += count;
            }
            _ => groups.push(Stretches { from: number, stretches: 1, arrivals: *count }),
        }
    }
    groups
}

fn phases(groups: Vec<Stretches>, stretch_s: u64, window: &LogWindow) -> Vec<ScriptPhase> {
    let mut sum = 0.0;
    let mut given = 0;
    let phase = |Stretches { from, stretches, arrivals }: Stretches| {
        // The remainders add up, so that no arrival is lost by rounding.
        sum += arrivals as f64 * window.share;
        let arrivals = (sum.round() as u64).saturating_sub(given);
        given += arrivals;
        let end_s = ((from + stretches) * stretch_s).min(window.script_s);
        ScriptPhase {
            duration_s: end_s - from * stretch_s,
            arrivals,
            at_ms: window.from_ms + (from as f64 * stretch_ms(window, stretch_s)) as u64,
        }
    };
    groups.into_iter().map(phase).collect()
}

/// True if the arrivals of these stretches vary more than arrivals at random do: their index of dispersion is that of a
/// Poisson process, or chance does not explain it.
fn is_bursty(counts: &[u64]) -> bool {
    let stretches = counts.len() as f64;
    let mean = counts.iter().sum::<u64>() as f64 / stretches;
    if counts.len() < 2 || mean == 0.0 {
        return false;
    }
    let dispersion: f64 = counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum();
    // It has a chi-squared distribution; few arrivals in a stretch make it wider. The bound is that of Wilson and
    // Hilferty.
    let (free, wider) = (stretches - 1.0, (1.0 + 0.5 / mean).sqrt());
    let part = 2.0 / (9.0 * free);
    dispersion > free * (1.0 - part + BURST_DEVIATIONS * wider * part.sqrt()).powi(3)
}

/// True if a stretch with this count continues a phase with this sum.
fn is_same(sum: u64, stretches: u64, count: u64) -> bool {
    let mean = sum as f64 / stretches as f64;
    // Both are counts: the variance of the difference is that of the stretch and that of the mean.
    let deviation = (mean.max(1.0) * (1.0 + 1.0 / stretches as f64)).sqrt();
    (count as f64 - mean).abs() <= DEVIATIONS * deviation && (sum == 0) == (count == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_rate_begins_a_phase_and_no_arrival_is_lost() {
        let window = LogWindow { from_ms: 0, to_ms: 600_000, script_s: 60, share: 0.1, is_part: false };
        // 5 minutes with 1 a second, then 5 minutes with 4 a second.
        let slow = (0..300).map(|second| second * 1000);
        let fast = (0..1200).map(|quarter| 300_000 + quarter * 250);
        let starts: Vec<u64> = slow.chain(fast).collect();
        let phases = divide(&starts, &window);
        let seen: Vec<(u64, u64)> = phases.iter().map(|phase| (phase.duration_s, phase.arrivals)).collect();
        assert_eq!(seen, [(30, 30), (30, 120)]);
        assert_eq!(phases.last().map(|phase| phase.at_ms), Some(300_000));
        let odd = LogWindow { script_s: 61, share: 1.0 / 3.0, ..window };
        let phases = divide(&starts, &odd);
        assert_eq!(phases.iter().map(|phase| phase.duration_s).sum::<u64>(), 61);
        assert_eq!(phases.iter().map(|phase| phase.arrivals).sum::<u64>(), 500);
    }

    #[test]
    fn bursts_have_phases_of_their_own() {
        let window = LogWindow { from_ms: 0, to_ms: 600_000, script_s: 600, share: 1.0, is_part: false };
        let mut random = fastrand::Rng::with_seed(7);
        // 5 arrivals a second at random, and 200 more in the second 301.
        let mut starts: Vec<u64> = (0..3_000).map(|_| random.u64(0..600_000)).collect();
        starts.extend((0..200).map(|n| 301_000 + n * 5));
        let (phases, bursts) = divide_exactly(&starts, &window);
        assert_eq!((bursts, phases.iter().map(|phase| phase.arrivals).sum()), (1, 3_200));
        let burst = phases.iter().find(|phase| phase.at_ms == 301_000).map(|phase| (phase.duration_s, phase.arrivals));
        let own = starts.iter().filter(|start| (301_000..302_000).contains(*start)).count() as u64;
        assert_eq!(burst, Some((1, own)), "{phases:?}");
        let calm: Vec<u64> = phases.iter().map(|phase| phase.duration_s).filter(|seconds| *seconds == 6).collect();
        assert_eq!(calm.len(), 99);
        for phase in phases {
            let in_it = phase.at_ms..phase.at_ms + phase.duration_s * 1000;
            assert_eq!(starts.iter().filter(|start| in_it.contains(start)).count() as u64, phase.arrivals);
        }
    }

    #[test]
    fn a_long_script_has_bounded_phases_and_its_quiet_hours_are_one() {
        let day_s = 86_400;
        let window = LogWindow { from_ms: 0, to_ms: day_s * 1000, script_s: day_s, share: 1.0, is_part: false };
        let starts: Vec<u64> = (0..day_s / 2).flat_map(|second| [second * 1000; 3]).collect();
        let (phases, bursts) = divide_exactly(&starts, &window);
        // The phase with the end of the busy half is divided at it.
        assert_eq!((bursts, phases.len()), (1, 52));
        let quiet = phases.last().map(|phase| (phase.duration_s > day_s / 2 - 1_000, phase.arrivals));
        assert_eq!(quiet, Some((true, 0)));
        let spikes: Vec<u64> = (0..day_s).filter(|second| second / 87 % 2 == 0).map(|second| second * 1000).collect();
        let (phases, bursts) = divide_exactly(&spikes, &window);
        assert!(bursts > 90 && phases.len() <= 1_000, "{bursts} {}", phases.len());
    }
}
