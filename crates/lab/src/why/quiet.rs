//! Whether a load was answered as it came: what grows within a block, or is turned away, belies that it was.

use super::signals::Signals;
use crate::metric::digits;

/// Windows below which nothing is said of growth.
const WINDOWS_MIN: usize = 6;
/// Requests in flight grow if there are so many times as many as the rate explains.
const FLIGHT_GROWS: f64 = 1.5;
/// And so many more of them, of all that were sent in the block.
const FLIGHT_PART: f64 = 0.01;
/// And at least so many.
const FLIGHT_LEAST: f64 = 4.0;
/// A median latency grows if it is so many times as long, each window at the end longer than each at the beginning.
const LATENCY_GROWS: f64 = 2.0;
/// And by so many ms.
const LATENCY_LEAST_MS: f64 = 20.0;
/// Connections that a full queue turned away and that may be anybody's.
const OVERFLOWS_MIN: u64 = 3;

/// What was not quiet, a sentence each; none of a load that was answered as it came.
pub fn unrest(s: &Signals) -> Vec<String> {
    [flight(s), latency(s)].into_iter().flatten().chain(overflows(s)).collect()
}

fn flight(s: &Signals) -> Option<String> {
    let (flight, sent) = (&s.load.flight, &s.load.sent_strip);
    // A closed loop has as many in flight as it has connections, and no more.
    if s.load.is_closed || flight.len() < WINDOWS_MIN {
        return None;
    }
    let quarter = flight.len() / 4;
    let (early, late) = (quarter..2 * quarter, flight.len() - quarter..flight.len());
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len().max(1) as f64;
    let (from, to) = (mean(flight.get(early.clone())?), mean(flight.get(late.clone())?));
    // A script that sends more and more has more of them, at the same latency.
    let rate = (mean(sent.get(late)?) / mean(sent.get(early)?).max(1e-9)).max(1.0);
    let least = FLIGHT_LEAST.max(FLIGHT_PART * s.load.sent as f64);
    (to > FLIGHT_GROWS * from * rate && to - from * rate >= least)
        .then(|| format!("requests in flight grew from {} to {} within the block", digits(from), digits(to)))
}

fn latency(s: &Signals) -> Option<String> {
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
    // One slow moment is in some of the last windows; what grows is in all of them.
    let are_apart = late.iter().copied().fold(f64::INFINITY, f64::min) > early.iter().copied().fold(0.0, f64::max);
    (are_apart && to > LATENCY_GROWS * from && to - from > LATENCY_LEAST_MS)
        .then(|| format!("the median latency grew from {} ms to {} ms within the block", digits(from), digits(to)))
}

fn overflows(s: &Signals) -> impl Iterator<Item = String> {
    s.hosts.iter().filter_map(|host| {
        let count = host.counters.get("ListenOverflows").copied().unwrap_or(0);
        (count >= OVERFLOWS_MIN)
            .then(|| format!("{count} connections found a queue of {} full (ListenOverflows)", host.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script whose requests pile up: 300 a second sent, 180 a second answered, for two seconds.
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
        // Twice the rate, twice as many: the latency is the same.
        let mut ramp = piling();
        ramp.load.sent_strip = (1..=8).map(|window| f64::from(window) * 20.0).collect();
        assert_eq!(unrest(&ramp), Vec::<String>::new());
        // A closed loop cannot have more than it has connections.
        let mut closed = piling();
        closed.load.is_closed = true;
        assert_eq!(unrest(&closed), Vec::<String>::new());
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
