//! The past: figures of the last seconds, requests per second, times when peers were away.

use std::collections::{HashMap, VecDeque};

use weir_meter::live::histogram::Tally;
use weir_meter::live::{Times, ZoneTimes};

/// The time between two marks; recent figures are measured from a mark.
const MARK_EVERY_MS: u64 = 5_000;

/// Marks kept: recent figures cover the last 10 to 15 s.
const MARKS_MAX: usize = 3;

/// The past, by key. weir removes a key that the last second did not report, because peers come and go while an edge
/// runs.
pub(super) struct Trends {
    started_ms: u64,
    marks: VecDeque<Mark>,
    rates: HashMap<String, Rate>,
    outages: HashMap<String, Outage>,
}

/// Tallies as they were at one moment.
struct Mark {
    at_ms: u64,
    tallies: HashMap<String, Tally>,
}

/// A number per second, from the last two ticks.
#[derive(Clone, Copy, Default)]
struct Rate {
    count: u64,
    at_ms: u64,
    rate: f64,
    most: f64,
}

/// The times when a peer was not available to clients.
#[derive(Clone, Copy, Default)]
pub(super) struct Outage {
    at_ms: u64,
    /// The start of the current outage, if there is one.
    pub(super) since_ms: Option<u64>,
    before_ms: u64,
}

/// A second whose figures are being reported.
pub(super) struct Second<'t> {
    trends: &'t mut Trends,
    now_ms: u64,
    mark: Option<Mark>,
}

impl Trends {
    /// No past yet.
    pub(super) fn new(now_ms: u64) -> Trends {
        Trends { started_ms: now_ms, marks: VecDeque::new(), rates: HashMap::new(), outages: HashMap::new() }
    }

    /// Begins a second; [`Second::end`] ends it.
    pub(super) fn second(&mut self, now_ms: u64) -> Second<'_> {
        let is_due = self.marks.back().is_none_or(|mark| now_ms.saturating_sub(mark.at_ms) >= MARK_EVERY_MS);
        let mark = is_due.then(|| Mark { at_ms: now_ms, tallies: HashMap::new() });
        Second { trends: self, now_ms, mark }
    }

    /// Milliseconds since the start.
    pub(super) fn uptime_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.started_ms)
    }

    /// Milliseconds that recent figures cover.
    pub(super) fn recent_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.marks.front().map_or(self.started_ms, |mark| mark.at_ms))
    }

    /// The increase since the oldest mark.
    pub(super) fn recent(&self, key: &str, tally: &Tally) -> Times {
        match self.marks.front().and_then(|mark| mark.tallies.get(key)) {
            Some(mark) => tally.since(mark).times(),
            None => tally.times(),
        }
    }

    /// Rate, recent and total.
    pub(super) fn times(&self, key: &str, tally: &Tally) -> ZoneTimes {
        let rate = self.rates.get(key).copied().unwrap_or_default();
        ZoneTimes { rate: rate.rate, rate_max: rate.most, recent: self.recent(key, tally), total: tally.times() }
    }

    /// The outages of this peer.
    pub(super) fn outage(&self, peer: &str) -> Outage {
        self.outages.get(peer).copied().unwrap_or_default()
    }

    /// Forgets the outages of this peer.
    pub(super) fn forget_outage(&mut self, peer: &str) {
        self.outages.remove(peer);
    }
}

impl Second<'_> {
    /// Reports a count up to this second.
    pub(super) fn count(&mut self, key: String, count: u64) {
        self.trends.rates.entry(key).or_default().step(count, self.now_ms);
    }

    /// Reports a sum of times up to this second.
    pub(super) fn tally(&mut self, key: &str, tally: &Tally) {
        if let Some(mark) = &mut self.mark {
            mark.tallies.insert(key.to_owned(), tally.clone());
        }
    }

    /// Reports whether a peer is away.
    pub(super) fn outage(&mut self, peer: String, is_out: bool) {
        self.trends.outages.entry(peer).or_default().step(is_out, self.now_ms);
    }

    /// Ends the second: all figures were reported.
    pub(super) fn end(self) {
        let Second { trends, now_ms, mark } = self;
        trends.rates.retain(|_, rate| rate.at_ms == now_ms);
        trends.outages.retain(|_, outage| outage.at_ms == now_ms);
        trends.marks.extend(mark);
        if trends.marks.len() > MARKS_MAX {
            trends.marks.pop_front();
        }
    }
}

impl Rate {
    fn step(&mut self, count: u64, now_ms: u64) {
        let passed = now_ms.saturating_sub(self.at_ms);
        if self.at_ms > 0 && passed > 0 {
            self.rate = count.saturating_sub(self.count) as f64 * 1000.0 / passed as f64;
            self.most = self.most.max(self.rate);
        }
        (self.count, self.at_ms) = (count, now_ms);
    }
}

impl Outage {
    fn step(&mut self, is_out: bool, now_ms: u64) {
        self.at_ms = now_ms;
        match (self.since_ms, is_out) {
            (None, true) => self.since_ms = Some(now_ms),
            (Some(since), false) => {
                self.before_ms += now_ms.saturating_sub(since);
                self.since_ms = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// Milliseconds it was away in total.
    pub(super) fn total_ms(&self, now_ms: u64) -> u64 {
        self.before_ms + self.since_ms.map_or(0, |since| now_ms.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_second_and_the_highest_is_kept() {
        let mut rate = Rate::default();
        for (count, at_ms) in [(10, 1_000), (30, 2_000), (31, 2_500)] {
            rate.step(count, at_ms);
        }
        assert_eq!((rate.rate, rate.most), (2.0, 20.0));
    }

    #[test]
    fn an_outage_lasts_until_the_peer_is_back() {
        let mut outage = Outage::default();
        outage.step(true, 1_000);
        outage.step(true, 2_000);
        assert_eq!(outage.total_ms(2_500), 1_500);
        outage.step(false, 3_000);
        outage.step(true, 9_000);
        assert_eq!((outage.total_ms(9_500), outage.since_ms), (2_500, Some(9_000)));
    }

    #[test]
    fn who_is_not_spoken_of_is_forgotten() {
        let mut trends = Trends::new(0);
        for second in 1..9 {
            let mut told = trends.second(second * 1000);
            for key in [format!("peer {second}"), "stays".to_owned()] {
                told.tally(&key, &Tally::default());
                told.count(key.clone(), second);
                told.outage(key, second > 1);
            }
            told.end();
        }
        let keys = |mut keys: Vec<&String>| {
            keys.sort();
            keys.into_iter().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(trends.rates.keys().collect()), ["peer 8", "stays"]);
        assert_eq!(keys(trends.outages.keys().collect()), ["peer 8", "stays"]);
        assert_eq!((trends.marks.len(), trends.outage("stays").total_ms(9_000)), (2, 7_000));
    }
}
