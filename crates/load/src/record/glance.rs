//! Latencies of one second, for a line in a chart: a log-linear histogram of 3 % in four kilobytes.

use std::time::Duration;

/// Buckets per octave, as a power of two: 32 buckets, 3 % wide.
const BITS: u32 = 5;
const BUCKETS: usize = 1 << BITS;
/// Octaves from 1 µs: up to 18 minutes.
const OCTAVES: usize = 30;

/// Mergeable latencies, coarse.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// Empty until the first latency.
    counts: Vec<u32>,
}

impl Glance {
    /// Adds a latency.
    #[inline]
    pub fn add(&mut self, latency: Duration) {
        let at = bucket(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
        match self.counts.get_mut(at) {
            Some(count) => *count = count.saturating_add(1),
            None => self.add_far(at),
        }
    }

    #[cold]
    fn add_far(&mut self, at: usize) {
        self.counts.resize(OCTAVES * BUCKETS, 0);
        if let Some(count) = self.counts.get_mut(at) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds all latencies of another.
    pub fn merge(&mut self, other: &Glance) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            *own = own.saturating_add(*other);
        }
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// The latency in ms that this share of them, 0 to 1, did not exceed; `None` if there are none.
    pub fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let total = self.count();
        // Ranks start at 1; the longest latency has the last rank.
        let rank = ((quantile * total as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let at = self.counts.iter().position(|&count| {
            sum += u64::from(count);
            sum >= rank && total > 0
        })?;
        Some(middle_us(at) / 1000.0)
    }

    /// The filled buckets and their counts; [`Glance::set`] reads them back.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, &count)| (at, count))
    }

    /// Sets a bucket's count; ignores an invalid bucket.
    pub fn set(&mut self, at: usize, count: u32) {
        self.counts.resize(OCTAVES * BUCKETS, 0);
        if let Some(bucket) = self.counts.get_mut(at) {
            *bucket = count;
        }
    }
}

/// The bucket of a latency; the last bucket holds all longer latencies.
#[inline]
fn bucket(us: u64) -> usize {
    if us < BUCKETS as u64 {
        return us as usize;
    }
    let shift = us.ilog2() - BITS;
    let within = (us >> shift) as usize - BUCKETS;
    ((shift as usize + 1) * BUCKETS + within).min(OCTAVES * BUCKETS - 1)
}

/// The middle of a bucket in µs.
fn middle_us(at: usize) -> f64 {
    let (octave, within) = (at / BUCKETS, at % BUCKETS);
    if octave == 0 {
        return within as f64 + 0.5;
    }
    let width = (1u64 << (octave - 1)) as f64;
    (BUCKETS + within) as f64 * width + width / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut before = 0;
        for us in 0..200_000 {
            let at = bucket(us);
            assert!(at == before || at == before + 1, "{us}");
            let error = (middle_us(at) - us as f64).abs();
            assert!(error <= (us as f64 * 0.032).max(1.0), "{us}: {}", middle_us(at));
            before = at;
        }
        assert_eq!(bucket(u64::MAX), OCTAVES * BUCKETS - 1);
    }

    #[test]
    fn quantiles() {
        let mut glance = Glance::default();
        assert_eq!(glance.quantile_ms(0.5), None);
        (1..=1000).for_each(|ms| glance.add(Duration::from_millis(ms)));
        for (quantile, ms) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let seen = glance.quantile_ms(quantile).unwrap();
            assert!((seen / ms - 1.0).abs() < 0.04, "{quantile}: {seen}");
        }
    }

    #[test]
    fn parts_merge_to_the_whole_and_buckets_give_it_back() {
        let (mut a, mut b, mut whole) = (Glance::default(), Glance::default(), Glance::default());
        for us in (0..5_000).map(|n| Duration::from_micros(n * n)) {
            if us.as_micros() % 3 == 0 {
                a.add(us)
            } else {
                b.add(us)
            }
            whole.add(us);
        }
        a.merge(&b);
        assert_eq!(a, whole);
        let mut back = Glance::default();
        whole.filled().for_each(|(at, count)| back.set(at, count));
        back.set(usize::MAX, 1);
        assert_eq!(back, whole);
    }
}
