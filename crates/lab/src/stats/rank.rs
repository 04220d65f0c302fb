//! The exact signed-rank interval, and the exact test of flipped signs.

use super::middle::median;

/// Least number of pairs for a 95 % interval: the smallest two-sided p is 2^(1-n).
pub const PAIRS_MIN: usize = 6;
/// Most pairs for an exact null table. A lab has at most [`super::PAIRS_MAX`].
const TABLE_MAX: usize = 50;
/// Most differences n whose 2^n sign patterns are counted one by one. A longer list is split into two halves, which
/// are merged.
const FLIPS_MAX: usize = 25;

/// An interval around an effect.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether the interval leaves out 0.
    pub fn excludes_zero(self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether the whole interval is closer to 0 than `bound`.
    pub fn is_within(self, bound: f64) -> bool {
        self.low > -bound && self.high < bound
    }
}

/// Means of every two differences, including each one with itself, in order.
fn walsh(differences: &[f64]) -> Vec<f64> {
    let mut averages = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
    for (at, one) in differences.iter().enumerate() {
        averages.extend(differences.iter().skip(at).map(|other| (one + other) / 2.0));
    }
    averages.sort_by(f64::total_cmp);
    averages
}

/// The effect: the median of all Walsh averages (Hodges and Lehmann 1963). NaN for an empty list.
pub fn hodges_lehmann(differences: &[f64]) -> f64 {
    median(&walsh(differences))
}

/// The position, from either end, of the Walsh average that bounds an interval of this confidence: the largest k with
/// P(W <= k - 1) <= (1 - confidence) / 2 under the null. 0 if there is none, and beyond 50 pairs.
pub fn signed_rank_k(pairs: usize, confidence: f64) -> usize {
    if pairs == 0 || pairs > TABLE_MAX {
        return 0;
    }
    // Number of the 2^n sign patterns for each sum of ranks, built one rank at a time. Exact in f64 up to 2^53.
    let mut table = vec![1.0f64];
    for rank in 1..=pairs {
        let mut next = vec![0.0; table.len() + rank];
        for (sum, count) in table.iter().enumerate() {
            for slot in [sum, sum + rank] {
                if let Some(slot) = next.get_mut(slot) {
                    *slot += count;
                }
            }
        }
        table = next;
    }
    let tail = (1.0 - confidence) / 2.0 * 2f64.powi(pairs as i32);
    let mut sum = 0.0;
    table
        .iter()
        .take_while(|count| {
            sum += **count;
            sum <= tail * (1.0 + 1e-12)
        })
        .count()
}

/// The exact interval of the effect, by inverting the signed-rank test. `None` if there are too few pairs for a bound.
pub fn interval(differences: &[f64], confidence: f64) -> Option<Interval> {
    let averages = walsh(differences);
    let k = signed_rank_k(differences.len(), confidence).checked_sub(1)?;
    let (low, high) = (averages.get(k)?, averages.get(averages.len().checked_sub(1 + k)?)?);
    Some(Interval { low: *low, high: *high })
}

/// Whether the effect is shown to be smaller than `bound`: two one-sided tests at 5 % (Schuirmann 1987). This means
/// that the 90 % interval lies within the bound.
pub fn is_equivalent(differences: &[f64], bound: f64) -> bool {
    interval(differences, 0.90).is_some_and(|interval| interval.is_within(bound))
}

/// The probability that the sum of the differences is at least this far from 0, if each could have had the other
/// sign. Counts all 2^n patterns exactly.
pub fn sign_flip_p(differences: &[f64]) -> f64 {
    let pairs = differences.len();
    if pairs == 0 || pairs > 2 * FLIPS_MAX {
        return f64::NAN;
    }
    let wanted = differences.iter().sum::<f64>().abs();
    let slack = 1e-9 * differences.iter().map(|d| d.abs()).sum::<f64>();
    // The sums of each half's patterns. For each sum of one half, count the sums of the other half that reach far
    // enough.
    let (left, right) = differences.split_at(pairs / 2);
    let (left, mut right) = (patterns(left), patterns(right));
    right.sort_by(f64::total_cmp);
    let far: f64 = left
        .iter()
        .map(|sum| {
            let above = right.len() - right.partition_point(|other| sum + other < wanted - slack);
            let below = right.partition_point(|other| sum + other <= -(wanted - slack));
            (above + below) as f64
        })
        .sum();
    (far / (left.len() as f64 * right.len() as f64)).min(1.0)
}

/// The sums of all sign patterns.
fn patterns(differences: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for difference in differences {
        sums = sums.iter().flat_map(|sum| [sum + difference, sum - difference]).collect();
    }
    sums
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::chance::{heavy, normal};
    use super::*;
    use proptest::prelude::*;

    const X: [f64; 8] = [0.0412, -0.0105, 0.0623, 0.0311, 0.0087, 0.0560, 0.0204, 0.0399];

    // The critical values of Wilcoxon's table (two-sided .05: n=6 0, 8 3, 12 13, 16 29, 20 52, 25 89), plus one.
    // Those of 97.8 % are counted in Python: c=[1]; for i in 1..n: d=[0]*(len(c)+i); d[j]+=c[j]; d[j+i]+=c[j].
    #[test]
    fn the_table_is_the_printed_one() {
        let at = |confidence| [6, 8, 12, 16, 20, 24, 25].map(|pairs| signed_rank_k(pairs, confidence));
        assert_eq!(at(0.95), [1, 4, 14, 30, 53, 82, 90]);
        assert_eq!(at(0.978), [0, 2, 11, 25, 45, 71, 79]);
        assert_eq!([1, 4, 5].map(|pairs| signed_rank_k(pairs, 0.95)), [0; 3]);
    }

    // scipy 1.x: w=sorted((x[i]+x[j])/2 for i<=j); numpy.median(w) = 0.031725; w[3], w[-4]; stats.wilcoxon(x).pvalue =
    // 0.0234375; the flips counted over itertools.product((1,-1), repeat=8): 6/256.
    #[test]
    fn figures_of_scipy() {
        assert!((hodges_lehmann(&X) - 0.031_725).abs() < 1e-12);
        let interval = interval(&X, 0.95).unwrap();
        assert!((interval.low - 0.0087).abs() < 1e-12 && (interval.high - 0.05175).abs() < 1e-12);
        assert!((sign_flip_p(&X) - 0.023_437_5).abs() < 1e-12);
        assert!(interval.excludes_zero() && interval.is_within(0.06) && !interval.is_within(0.05));
        assert!(is_equivalent(&X, 0.06) && !is_equivalent(&X, 0.03));
    }

    #[test]
    fn too_few_pairs_have_no_interval() {
        assert_eq!(interval(&X[..5], 0.95), None);
        assert!(interval(&X[..6], 0.95).is_some());
        assert_eq!(interval(&[], 0.95), None);
        assert!((sign_flip_p(&[1.0; 6]) - 2.0 / 64.0).abs() < 1e-12);
        assert!(sign_flip_p(&[]).is_nan() && hodges_lehmann(&[]).is_nan());
    }

    /// How often the interval contains the true value, for normal and for heavy-tailed differences.
    #[test]
    fn the_interval_covers() {
        for (seed, draw) in [(1, normal as fn(&mut fastrand::Rng) -> f64), (2, heavy)] {
            let mut rng = fastrand::Rng::with_seed(seed);
            for (pairs, confidence) in [(8, 0.95), (8, 0.978), (16, 0.978)] {
                let holds = |_: &i32| {
                    let differences: Vec<f64> = (0..pairs).map(|_| 0.1 + 0.03 * draw(&mut rng)).collect();
                    interval(&differences, confidence).is_some_and(|i| i.low <= 0.1 && 0.1 <= i.high)
                };
                let covered = (0..4000).filter(holds).count() as f64 / 4000.0;
                // Three standard errors of 4000 draws.
                let error = 3.0 * (confidence * (1.0 - confidence) / 4000.0_f64).sqrt();
                assert!(covered > confidence - error, "{pairs} pairs, {confidence}: {covered}");
            }
        }
    }

    proptest! {
        #[test]
        fn turning_signs_turns_the_answer(x in prop::collection::vec(-1.0f64..1.0, 6..20)) {
            let turned: Vec<f64> = x.iter().map(|d| -d).collect();
            let (one, other) = (interval(&x, 0.95).unwrap(), interval(&turned, 0.95).unwrap());
            prop_assert!((one.low + other.high).abs() < 1e-12 && (one.high + other.low).abs() < 1e-12);
            prop_assert!(one.low <= hodges_lehmann(&x) && hodges_lehmann(&x) <= one.high);
            prop_assert!((sign_flip_p(&x) - sign_flip_p(&turned)).abs() < 1e-12);
        }

        #[test]
        fn more_confidence_is_wider(x in prop::collection::vec(-1.0f64..1.0, 8..24)) {
            let (wide, narrow) = (interval(&x, 0.978).unwrap(), interval(&x, 0.90).unwrap());
            prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
        }

        #[test]
        fn a_shift_shifts(x in prop::collection::vec(-1.0f64..1.0, 6..20), by in -5.0f64..5.0) {
            let moved: Vec<f64> = x.iter().map(|d| d + by).collect();
            let (one, other) = (interval(&x, 0.95).unwrap(), interval(&moved, 0.95).unwrap());
            prop_assert!((other.low - one.low - by).abs() < 1e-9 && (other.high - one.high - by).abs() < 1e-9);
        }

        #[test]
        fn splitting_the_flips_counts_them_all(x in prop::collection::vec(-1.0f64..1.0, 1..10)) {
            let wanted = x.iter().sum::<f64>().abs();
            let all = patterns(&x);
            let far = all.iter().filter(|sum| sum.abs() >= wanted - 1e-9).count() as f64;
            prop_assert!((sign_flip_p(&x) - far / all.len() as f64).abs() < 1e-9);
        }
    }
}
