//! The due times of requests at a fixed rate.

use std::time::Duration;

use weir_net::Instant;

use super::plan::Rate;

/// The due times of one thread's share, in order and without end.
pub(super) struct DueTimes {
    rate: Rate,
    begin: Instant,
    /// Seconds since the beginning: the next due time of random arrivals.
    at: f64,
    /// The number of the next request among those of all threads.
    number: u64,
    step: u64,
    random: u64,
}

impl DueTimes {
    /// The share of thread `index` among `threads`.
    pub(super) fn new(rate: Rate, begin: Instant, index: usize, threads: usize) -> DueTimes {
        let step = threads.max(1) as u64;
        let rate = match rate {
            Rate::Poisson(rate) => Rate::Poisson(rate / step as f64),
            constant => constant,
        };
        let random = seed() ^ (index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut schedule = DueTimes { rate, begin, at: 0.0, number: index as u64, step, random };
        if let Rate::Poisson(rate) = rate {
            schedule.at = schedule.gap(rate);
        }
        schedule
    }

    /// The due time of the next request if it is before `end`; does not take the request.
    pub(super) fn peek(&self, end: Instant) -> Option<Instant> {
        let seconds = match self.rate {
            Rate::Constant(rate) => self.number as f64 / rate,
            Rate::Poisson(_) => self.at,
        };
        let due = self.begin + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4);
        (due < end).then_some(due)
    }

    /// Takes a request: moves on to the next.
    pub(super) fn take(&mut self) {
        match self.rate {
            Rate::Constant(_) => self.number = self.number.saturating_add(self.step),
            Rate::Poisson(rate) => self.at += self.gap(rate),
        }
    }

    /// An exponentially distributed gap, in seconds.
    fn gap(&mut self, rate: f64) -> f64 {
        // splitmix64; 53 of its bits make a number in [0, 1).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        -(1.0 - uniform).ln() / rate
    }
}

/// A number that differs from run to run.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_net::clock;

    fn due(rate: Rate, index: usize, threads: usize, seconds: u64) -> Vec<f64> {
        let begin = clock::precise();
        let end = begin + Duration::from_secs(seconds);
        let mut schedule = DueTimes::new(rate, begin, index, threads);
        let mut all = Vec::new();
        while let Some(at) = schedule.peek(end) {
            all.push((at - begin).as_secs_f64());
            schedule.take();
        }
        all
    }

    #[test]
    fn constant_rates_are_dealt_out_evenly() {
        assert_eq!(due(Rate::Constant(2.0), 0, 1, 2), [0.0, 0.5, 1.0, 1.5]);
        assert_eq!(due(Rate::Constant(2.0), 1, 2, 2), [0.5, 1.5]);
        assert_eq!(due(Rate::Constant(500.0), 0, 1, 30).len(), 15_000);
    }

    #[test]
    fn random_arrivals_keep_the_mean() {
        let all = due(Rate::Poisson(1000.0), 0, 2, 40);
        // 20,000 expected: five standard deviations are 707.
        assert!((19_293..=20_707).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted());
    }
}
