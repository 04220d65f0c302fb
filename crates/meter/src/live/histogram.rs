//! Counts durations by size: a fixed number of buckets, written by one thread without a lock, read by any.
//!
//! Up to 8 µs each microsecond has a bucket; above that each doubling has eight. So a quantile is at most 12.5 % too
//! high, and never too low. Durations longer than [`LONGEST_US`] count in the last bucket.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Times;

/// Buckets of a histogram: 2 kB.
pub const BUCKETS: usize = 240;

/// The end of the last bucket in microseconds: 71 minutes.
pub const LONGEST_US: u64 = (1 << 32) - 1;

const SUB_BITS: u32 = 3;
const SUBS: u64 = 1 << SUB_BITS;

/// A number that one thread writes and any thread may read, without locked instructions.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// A count of 0.
    pub const fn new() -> Count {
        Count(AtomicU64::new(0))
    }

    /// Adds to the number; only the thread that owns it may call this.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Adds one; only the thread that owns it may call this.
    #[inline]
    pub fn one(&self) {
        self.add(1);
    }

    /// Sets the number; only the thread that owns it may call this.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations that one thread counts.
#[derive(Debug)]
pub struct Histogram {
    /// One for each value of a byte, so that no index needs a check; those from [`BUCKETS`] on stay empty.
    buckets: [Count; 1 << u8::BITS],
    sum: Count,
    max: Count,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: [const { Count::new() }; 1 << u8::BITS], sum: Count::new(), max: Count::new() }
    }
}

impl Histogram {
    /// Counts a duration; only the thread that owns the histogram may call this.
    #[inline]
    pub fn record(&self, us: u64) {
        // Most durations without waiting are 0 by a worker's clock.
        if us == 0 { self.buckets[0].one() } else { self.put(Spot::of(us)) }
    }

    /// As [`Histogram::record`], for a duration whose bucket is known.
    #[inline]
    pub fn put(&self, spot: Spot) {
        self.buckets[usize::from(spot.bucket)].one();
        self.sum.add(spot.us);
        if spot.us > self.max.get() {
            self.max.set(spot.us);
        }
    }
}

/// A duration and its bucket, for a duration that several histograms count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spot {
    us: u64,
    bucket: u8,
}

impl Spot {
    /// The bucket of a duration.
    #[inline]
    pub fn of(us: u64) -> Spot {
        Spot { us, bucket: index(us) as u8 }
    }

    /// The bucket of another duration. It is often the same one, because the clock is read once a turn.
    #[inline]
    pub fn or(self, us: u64) -> Spot {
        if us == self.us { self } else { Spot::of(us) }
    }
}

/// The index of a duration's bucket. `us | SUBS` gives durations below the first doubling the same shift.
#[inline]
fn index(us: u64) -> usize {
    let shift = u64::from((us | SUBS).ilog2() - SUB_BITS);
    ((shift * SUBS + (us >> shift)) as usize).min(BUCKETS - 1)
}

/// The longest duration in a bucket.
fn end(index: usize) -> u64 {
    let index = index as u64;
    if index < SUBS {
        return index;
    }
    let (exponent, sub) = (index / SUBS - 1, index % SUBS);
    ((SUBS + sub + 1) << exponent) - 1
}

/// The counts of histograms at one moment, several of them added up.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    buckets: Box<[u64]>,
    sum: u64,
    max: u64,
}

impl Default for Tally {
    fn default() -> Tally {
        Tally { buckets: vec![0; BUCKETS].into(), sum: 0, max: 0 }
    }
}

impl Tally {
    /// Adds the current counts of a histogram.
    pub fn add(&mut self, histogram: &Histogram) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&histogram.buckets) {
            *mine += theirs.get();
        }
        self.sum += histogram.sum.get();
        self.max = self.max.max(histogram.max.get());
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The increase since `earlier`, a tally of the same histograms. The longest duration is only known to a bucket.
    pub fn since(&self, earlier: &Tally) -> Tally {
        let both = self.buckets.iter().zip(&earlier.buckets);
        let buckets: Box<[u64]> = both.map(|(now, then)| now.saturating_sub(*then)).collect();
        let last = buckets.iter().rposition(|count| *count > 0);
        let max = last.map_or(0, |last| end(last).min(self.max));
        Tally { buckets, sum: self.sum.saturating_sub(earlier.sum), max }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Sum of the durations in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum
    }

    /// Number of durations up to this one, which should be the end of a bucket.
    pub fn count_to(&self, us: u64) -> u64 {
        self.buckets.iter().take(index(us) + 1).sum()
    }

    /// The usual quantiles.
    pub fn times(&self) -> Times {
        let count = self.count();
        let at = |share: f64| self.quantile(count, share);
        Times { count, sum_us: self.sum, p50_us: at(0.5), p95_us: at(0.95), p99_us: at(0.99), max_us: self.max }
    }

    fn quantile(&self, count: u64, share: f64) -> u64 {
        let rank = ((count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, bucket) in self.buckets.iter().enumerate() {
            seen += bucket;
            if seen >= rank {
                return end(index).min(self.max);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for index_of in 1..BUCKETS {
            assert_eq!(index(end(index_of - 1) + 1), index_of);
            assert_eq!(index(end(index_of)), index_of);
        }
        assert_eq!((end(BUCKETS - 1), index(u64::MAX)), (LONGEST_US, BUCKETS - 1));
    }

    #[test]
    fn quantiles_are_never_too_low_and_an_eighth_too_high_at_most() {
        let histogram = Histogram::default();
        for us in 1..=10_000 {
            histogram.record(us);
        }
        let mut tally = Tally::default();
        tally.add(&histogram);
        let times = tally.times();
        assert_eq!((times.count, times.sum_us, times.max_us), (10_000, 50_005_000, 10_000));
        for (got, exact) in [(times.p50_us, 5_000), (times.p95_us, 9_500), (times.p99_us, 9_900)] {
            assert!(got >= exact && got <= exact + exact / 8, "{got} for {exact}");
        }
        assert_eq!(Tally::default().times(), Times::default());
    }

    #[test]
    fn a_window_is_the_difference_and_merging_adds() {
        let (one, other) = (Histogram::default(), Histogram::default());
        one.record(100);
        let mut before = Tally::default();
        before.add(&one);
        one.record(3);
        other.record(7);
        let mut after = Tally::default();
        after.add(&one);
        let mut theirs = Tally::default();
        theirs.add(&other);
        after.merge(&theirs);
        let window = after.since(&before);
        assert_eq!((window.count(), window.sum_us(), window.times().max_us), (2, 10, 7));
        assert_eq!((after.count(), after.count_to(7), after.times().max_us), (3, 2, 100));
    }
}
