//! The latencies of the old configuration, as counts by their logarithm.

/// The quantiles of latency that are watched.
pub const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// Places: each is 5 % longer than the one before; the last one is beyond 1,000 s.
pub const PLACES: usize = 420;
/// Places of a natural logarithm.
pub(crate) const PER_E: f64 = 20.0;
/// Latencies before a rank is believed.
const FEW: u64 = 200;
/// Latencies after which old ones count half, so that the day's course is followed.
const MANY: u64 = 200_000;

/// The latencies.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: [u32; PLACES],
    /// For each place, the latencies in it and in those before it.
    up_to: [u32; PLACES],
    all: u64,
    /// For each quantile, the last place that is not slow.
    usual: [usize; 3],
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies { counts: [0; PLACES], up_to: [0; PLACES], all: 0, usual: [PLACES; 3] }
    }
}

/// The place of a latency.
pub fn place(us: u64) -> u16 {
    ((us.max(1) as f64).ln() * PER_E).min((PLACES - 1) as f64) as u16
}

impl Latencies {
    /// Adds latencies, and finds [`QUANTILES`] again.
    pub fn add(&mut self, places: &[u16]) {
        for place in places {
            if let Some(count) = self.counts.get_mut(usize::from(*place)) {
                *count += 1;
                self.all += 1;
            }
        }
        if self.all > MANY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.all = self.counts.iter().map(|count| u64::from(*count)).sum();
        }
        let mut sum = 0;
        for (count, up_to) in self.counts.iter().zip(&mut self.up_to) {
            sum += count;
            *up_to = sum;
        }
        self.usual = QUANTILES.map(|part| {
            let wanted = part * self.all as f64;
            self.up_to.partition_point(|sum| f64::from(*sum) < wanted)
        });
    }

    /// Whether they are too few for a rank.
    pub fn are_few(&self) -> bool {
        self.all < FEW
    }

    /// The part of the latencies that are shorter, with half of those in the same place; one half while there are few.
    pub fn rank(&self, place: u16) -> f64 {
        let place = usize::from(place);
        if self.are_few() {
            return 0.5;
        }
        let same = self.counts.get(place).copied().unwrap_or_default();
        let up_to = self.up_to.get(place).copied().unwrap_or_default();
        (f64::from(up_to) - f64::from(same) / 2.0) / self.all as f64
    }

    /// For each quantile, whether a latency is longer. None is while there are few.
    pub fn is_slow(&self, place: u16) -> [bool; 3] {
        self.usual.map(|usual| !self.are_few() && usize::from(place) > usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_quantiles_follow_the_latencies() {
        let mut known = Latencies::default();
        known.add(&[place(1_000)]);
        assert_eq!((known.rank(place(9_000_000)), known.is_slow(place(9_000_000))), (0.5, [false; 3]), "few");
        let all: Vec<u16> = (1..=1_000).map(|ms| place(ms * 1_000)).collect();
        known.add(&all);
        for (ms, rank) in [(1, 0.0), (250, 0.25), (500, 0.5), (1_000, 1.0)] {
            assert!((known.rank(place(ms * 1_000)) - rank).abs() < 0.04, "{ms}: {}", known.rank(place(ms * 1_000)));
        }
        assert_eq!(known.is_slow(place(400_000)), [false; 3]);
        assert_eq!(known.is_slow(place(700_000)), [true, false, false]);
        assert_eq!(known.is_slow(place(2_000_000)), [true; 3]);
        assert_eq!((usize::from(place(u64::MAX)), place(0)), (PLACES - 1, 0));
    }

    #[test]
    fn old_latencies_are_forgotten() {
        let mut known = Latencies::default();
        let many = |us| vec![place(us); 150_000];
        known.add(&many(1_000));
        (0..3).for_each(|_| known.add(&many(100_000)));
        assert!(known.rank(place(100_000)) < 0.62, "{}", known.rank(place(100_000)));
        assert!(known.all <= MANY);
    }
}
