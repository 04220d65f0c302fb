//! The part of the log that the script replays, and its arrivals over time.

use super::gather::AccessLogs;
use super::wish::Wish;

/// The longest part of a log that is replayed as it is.
const HOUR_MS: u64 = 3_600_000;
/// Most phases of a script.
pub(super) const PHASES_MAX: u64 = 60;
/// Two stretches of the log are one phase if their arrivals differ by no more than chance explains: this many standard
/// deviations.
const DEVIATIONS: f64 = 3.0;

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
    // With a length, the rates stay: fewer arrivals in less time. A speed makes every second shorter.
    let share = script_s as f64 * wish.speed / seconds;
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

/// Divides the arrivals into phases: equal stretches of time, and neighbours of the same rate are one.
pub(super) fn divide(starts: &[u64], window: &LogWindow) -> Vec<ScriptPhase> {
    let stretch_s = window.script_s.div_ceil(PHASES_MAX).max(1);
    let stretches = window.script_s.div_ceil(stretch_s);
    let mut counts = vec![0_u64; stretches as usize];
    let length_ms = (window.to_ms - window.from_ms).max(1);
    let per_stretch_ms = length_ms as f64 * stretch_s as f64 / window.script_s as f64;
    for start in starts {
        let at = ((start - window.from_ms) as f64 / per_stretch_ms) as usize;
        if let Some(count) = counts.get_mut(at.min(stretches as usize - 1)) {
            *count += 1;
        }
    }
    let mut groups: Vec<(u64, u64, u64)> = Vec::new();
    for (number, count) in counts.into_iter().enumerate() {
        let number = number as u64;
        match groups.last_mut() {
            Some((_, stretches, sum)) if is_same(*sum, *stretches, count) => {
                *stretches += 1;
                *sum += count;
            }
            _ => groups.push((number, 1, count)),
        }
    }
    let mut sum = 0.0;
    let mut given = 0;
    let phase = |(from, stretches, count): (u64, u64, u64)| {
        // The remainders add up, so that no arrival is lost by rounding.
        sum += count as f64 * window.share;
        let arrivals = (sum.round() as u64).saturating_sub(given);
        given += arrivals;
        let end_s = ((from + stretches) * stretch_s).min(window.script_s);
        ScriptPhase {
            duration_s: end_s - from * stretch_s,
            arrivals,
            at_ms: window.from_ms + (from as f64 * per_stretch_ms) as u64,
        }
    };
    groups.into_iter().map(phase).collect()
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
}
