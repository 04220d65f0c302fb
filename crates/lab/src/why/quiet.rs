//! Whether a load was answered at the rate at which it came. If requests in flight or latency grow within a block, or
//! connections are turned away, it was not.

use super::signals::Signals;
use crate::metric::digits;
use crate::said::{Said, say};

/// Least number of windows for a statement about growth.
const WINDOWS_MIN: usize = 6;
/// Requests in flight grow only if their number rises by more than this factor beyond the growth of the rate.
const FLIGHT_GROWS: f64 = 1.5;
/// Requests in flight grow only if the rise is at least this part of all requests of the block.
const FLIGHT_PART: f64 = 0.01;
/// Requests in flight grow only if the rise is at least this many requests.
const FLIGHT_LEAST: f64 = 4.0;
/// The median latency grows only if it becomes more than this many times as long, and if each window at the end is
/// longer than each window at the beginning.
const LATENCY_GROWS: f64 = 2.0;
/// The median latency grows only if it rises by more than this many ms.
const LATENCY_LEAST_MS: f64 = 20.0;
/// Least number of connections turned away by a full queue that counts: fewer may be unrelated to the load.
const OVERFLOWS_MIN: u64 = 3;

/// The signs that the load was not answered as it came, a sentence each. Empty if there are none.
pub fn unrest(s: &Signals) -> Vec<Said> {
    [flight(s), latency(s)].into_iter().flatten().chain(overflows(s)).collect()
}

fn flight(s: &Signals) -> Option<Said> {
    let (flight, sent) = (&s.load.flight, &s.load.sent_strip);
    // A closed loop never has more requests in flight than connections.
    if s.load.is_closed || flight.len() < WINDOWS_MIN {
        return None;
    }
    let quarter = flight.len() / 4;
    let (early, late) = (quarter..2 * quarter, flight.len() - quarter..flight.len());
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len().max(1) as f64;
    let (from, to) = (mean(flight.get(early.clone())?), mean(flight.get(late.clone())?));
    // A script with a rising rate has more requests in flight at the same latency.
    let rate = (mean(sent.get(late.clone())?) / mean(sent.get(early.clone())?).max(1e-9)).max(1.0);
    let least = FLIGHT_LEAST.max(FLIGHT_PART * s.load.sent as f64);
    // Requests that wait together and leave together make waves. Growth affects every window at the end.
    (are_apart(flight.get(early)?, flight.get(late)?) && to > FLIGHT_GROWS * from * rate && to - from * rate >= least)
        .then(|| say!(REQUESTS_FLIGHT_GREW_WITHIN, digits(from), digits(to)))
}

fn latency(s: &Signals) -> Option<Said> {
    let windows = &s.load.medians;
    if windows.len() < WINDOWS_MIN {
        return None;
    }
    let third = windows.len() / 3;
    let (early, late) = (windows.get(..third)?, windows.get(windows.len() - third..)?);
    let middle = |list: &[f64]| {
        let mut sorted = list.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    };
    let (from, to) = (middle(early), middle(late));
    // A slow moment affects some of the last windows. Growth affects all of them.
    (are_apart(early, late) && to > LATENCY_GROWS * from && to - from > LATENCY_LEAST_MS)
        .then(|| say!(MEDIAN_LATENCY_GREW_MS, digits(from), digits(to)))
}

/// Whether every value at the end is larger than every value at the beginning.
fn are_apart(early: &[f64], late: &[f64]) -> bool {
    late.iter().copied().fold(f64::INFINITY, f64::min) > early.iter().copied().fold(0.0, f64::max)
}

fn overflows(s: &Signals) -> impl Iterator<Item = Said> {
    s.hosts.iter().filter_map(|host| {
        let count = host.counters.get("ListenOverflows").copied().unwrap_or(0);
        (count >= OVERFLOWS_MIN).then(|| say!(CONNECTIONS_FOUND_QUEUE_FULL, count, &host.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script with a growing backlog: 300 requests a second sent, 180 a second answered, for two seconds.
    fn piling() -> Signals {
        let mut s = Signals::quiet();
        s.load.offered = None;
        s.load.sent_strip = vec![75.0; 8];
        s.load.flight = (1..=8).map(|window| f64::from(window) * 30.0).collect();
        s
    }

    #[test]
    fn what_piles_up_is_not_quiet() {
        assert_eq!(unrest(&Signals::quiet()), Vec::<String>::new());
        assert_eq!(unrest(&piling()), ["requests in flight grew from 105 to 225 within the block"]);
        // Twice the rate with twice the requests in flight: the latency is the same.
        let mut ramp = piling();
        ramp.load.sent_strip = (1..=8).map(|window| f64::from(window) * 20.0).collect();
        assert_eq!(unrest(&ramp), Vec::<String>::new());
        // A closed loop cannot have more requests in flight than connections.
        let mut closed = piling();
        closed.load.is_closed = true;
        assert_eq!(unrest(&closed), Vec::<String>::new());
    }

    #[test]
    fn waves_are_quiet() {
        // Every second, the requests of half a second wait for one answer.
        let mut s = piling();
        s.load.flight = vec![2.0, 15.0, 30.0, 1.0, 2.0, 15.0, 30.0, 28.0];
        assert_eq!(unrest(&s), Vec::<String>::new());
    }

    #[test]
    fn a_latency_that_grows_is_not_quiet_and_one_slow_moment_is() {
        let mut s = Signals::quiet();
        s.load.medians = (0..9).map(|window| 5.0 + 60.0 * f64::from(window)).collect();
        assert_eq!(unrest(&s), ["the median latency grew from 65.0 ms to 425 ms within the block"]);
        s.load.is_closed = true;
        assert_eq!(unrest(&s).len(), 1, "of a closed loop as well");
        s.load.medians = vec![5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 400.0, 400.0];
        assert_eq!(unrest(&s), Vec::<String>::new());
    }

    #[test]
    fn what_a_full_queue_turns_away_is_not_quiet() {
        let mut s = Signals::quiet();
        s.hosts[0].counters.insert("ListenOverflows".into(), 1143);
        assert_eq!(unrest(&s), ["1143 connections found a queue of edge full (ListenOverflows)"]);
    }
}
