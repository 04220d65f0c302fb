//! Runs without pairs: the Mann-Whitney test, its shift, and the variation within one run.

use super::middle::{mean, median};
use super::rank::Interval;
use statrs::distribution::{ContinuousCDF, Normal};

/// Most runs of each kind for an exact null table: C(50, 25) still fits a double.
pub const RUNS_MAX: usize = 25;
/// Least number of runs of each kind for a conclusion.
pub const RUNS_MIN: usize = 6;
/// Least number of windows for the spread within a run.
const WINDOWS_MIN: usize = 8;
/// Series that a bootstrap draws.
const DRAWS: usize = 2_000;

/// All differences between a value of `after` and a value of `before`, in order.
fn differences(before: &[f64], after: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = after.iter().flat_map(|b| before.iter().map(move |a| b - a)).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// The shift of `after` from `before`: the median of all differences (Hodges and Lehmann). NaN for an empty list.
pub fn shift(before: &[f64], after: &[f64]) -> f64 {
    median(&differences(before, after))
}

/// The exact interval of the shift, by inverting the Mann-Whitney test. `None` if there are too few runs, and beyond
/// [`RUNS_MAX`] of a kind.
pub fn shift_interval(before: &[f64], after: &[f64], confidence: f64) -> Option<Interval> {
    let table = null_table(before.len(), after.len())?;
    let all: f64 = table.iter().sum();
    let (mut below, mut k) = (0.0, 0);
    for count in &table {
        below += count;
        if below / all > (1.0 - confidence) / 2.0 {
            break;
        }
        k += 1;
    }
    let found = differences(before, after);
    let at = |index: usize| found.get(index).copied();
    let first = usize::checked_sub(k, 1)?;
    Some(Interval { low: at(first)?, high: at(found.len().checked_sub(1 + first)?)? })
}

/// The exact probability that the ranks of two kinds of runs differ at least this much by chance (Mann and Whitney
/// 1947). Ties make the result too large. NaN if there is no table.
pub fn rank_sum_p(before: &[f64], after: &[f64]) -> f64 {
    let Some(table) = null_table(before.len(), after.len()) else { return f64::NAN };
    let found = differences(before, after);
    let above = found.iter().filter(|d| **d > 0.0).count() as f64;
    let equal = found.iter().filter(|d| **d == 0.0).count() as f64 / 2.0;
    let least = (above + equal).min(found.len() as f64 - above - equal).floor() as usize;
    let tail: f64 = table.iter().take(least + 1).sum();
    (2.0 * tail / table.iter().sum::<f64>()).min(1.0)
}

/// The probability that as many values are larger by chance as those of `more` are than those of `less`: the same ranks, by the normal
/// approximation with its correction for ties, for any number of values. 1 without values.
pub fn larger_p(less: &[f64], more: &[f64]) -> f64 {
    let (n, m) = (less.len() as f64, more.len() as f64);
    let mut all: Vec<(f64, bool)> =
        less.iter().map(|value| (*value, false)).chain(more.iter().map(|value| (*value, true))).collect();
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut ranks, mut ties, mut at) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|one, other| one.0 == other.0) {
        let count = equal.len() as f64;
        let own = equal.iter().filter(|(_, is_more)| *is_more).count() as f64;
        ranks += own * (at + (count + 1.0) / 2.0);
        ties += count.powi(3) - count;
        at += count;
    }
    let above = ranks - m * (m + 1.0) / 2.0 - n * m / 2.0;
    let variance = n * m / 12.0 * (n + m + 1.0 - ties / ((n + m) * (n + m - 1.0)).max(1.0));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (above - 0.5) / variance.sqrt();
    Normal::new(0.0, 1.0).map_or(1.0, |normal| normal.sf(z))
}

/// Number of orders that give each U: the coefficients of the Gaussian binomial.
fn null_table(before: usize, after: usize) -> Option<Vec<f64>> {
    let counts = 1..=RUNS_MAX;
    if !counts.contains(&before) || !counts.contains(&after) {
        return None;
    }
    let mut table = vec![0.0; before * after + 1];
    *table.first_mut()? = 1.0;
    for one in 1..=after {
        for u in (before + one..table.len()).rev() {
            let other = table.get(u - before - one).copied().unwrap_or(0.0);
            table.get_mut(u).into_iter().for_each(|slot| *slot -= other);
        }
        for u in one..table.len() {
            let other = table.get(u - one).copied().unwrap_or(0.0);
            table.get_mut(u).into_iter().for_each(|slot| *slot += other);
        }
    }
    Some(table)
}

/// The 95 % interval of a series' mean, by resampling blocks of neighbours (Künsch 1989). A block is as long as the
/// cube root of the series. The interval covers the variation within one run, not the variation between runs. `None`
/// for fewer than eight values. `seed` starts the random numbers.
pub fn moving_block(values: &[f64], seed: u64) -> Option<Interval> {
    let len = values.len();
    if len < WINDOWS_MIN || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let block = (len as f64).cbrt().ceil() as usize;
    let starts: Vec<&[f64]> = values.windows(block).collect();
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut means: Vec<f64> = (0..DRAWS)
        .map(|_| {
            let drawn = (0..len.div_ceil(block)).filter_map(|_| starts.get(rng.usize(..starts.len())));
            mean(&drawn.flat_map(|block| block.iter().copied()).take(len).collect::<Vec<_>>())
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let at = |part: f64| means.get((part * (DRAWS - 1) as f64).round() as usize).copied();
    Some(Interval { low: at(0.025)?, high: at(0.975)? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::chance::{heavy, normal};
    use super::*;
    use proptest::prelude::*;

    // By hand: U = 23 of 25, of which 12.5 are expected; the variance with two ties is 25 / 12 (11 - 12 / 90), z = 2.102.
    #[test]
    fn ranks_of_many_values_are_judged_by_the_normal_approximation() {
        let p = larger_p(&[1.0, 2.0, 3.0, 4.0, 5.0], &[4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((p - 0.017_79).abs() < 1e-4, "{p}");
        assert!(larger_p(&[4.0, 5.0, 6.0], &[1.0, 2.0, 3.0]) > 0.9);
        assert_eq!((larger_p(&[], &[1.0]), larger_p(&[2.0; 9], &[2.0; 9])), (1.0, 1.0));
    }

    // Mann and Whitney's printed table, two-sided .05: 6+6 5, 8+8 13, 10+10 23, 20+20 127; 3+3 none.
    #[test]
    fn the_table_is_the_printed_one() {
        for (runs, critical) in [(6usize, 5usize), (8, 13), (10, 23), (20, 127)] {
            let table = null_table(runs, runs).unwrap();
            let all: f64 = table.iter().sum();
            let tail = |most: usize| table.iter().take(most + 1).sum::<f64>() / all;
            assert!(tail(critical) <= 0.025 && tail(critical + 1) > 0.025, "{runs}");
        }
        assert_eq!(null_table(2, 2).unwrap(), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!((null_table(0, 3), null_table(3, 26)), (None, None));
        assert_eq!(shift_interval(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.95), None);
    }

    // scipy: stats.mannwhitneyu([1.1,2.2,3.3,4.4,5.5,6.6],[4.0,5.0,7.0,8.0,9.0,10.0]).pvalue, exact: U = 5, p =
    // 0.04113. Median and 6th and 31st of the 36 differences by hand: numpy.sort(numpy.subtract.outer(b, a).ravel()).
    #[test]
    fn figures_of_scipy() {
        let (a, b) = ([1.1, 2.2, 3.3, 4.4, 5.5, 6.6], [4.0, 5.0, 7.0, 8.0, 9.0, 10.0]);
        assert!((rank_sum_p(&a, &b) - 0.041_125_541).abs() < 1e-8, "{}", rank_sum_p(&a, &b));
        let found = differences(&a, &b);
        let interval = shift_interval(&a, &b, 0.95).unwrap();
        assert_eq!((interval.low, interval.high), (found[5], found[30]));
        assert!((shift(&a, &b) - 3.45).abs() < 0.3 && interval.excludes_zero());
        assert!(rank_sum_p(&[], &b).is_nan() && shift(&[], &b).is_nan());
    }

    #[test]
    fn the_interval_covers_and_cries_as_seldom_as_it_says() {
        for (seed, draw) in [(1, normal as fn(&mut fastrand::Rng) -> f64), (2, heavy)] {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut covered, mut alarms) = (0, 0);
            for _ in 0..2_000 {
                let mut sample =
                    |at: f64, count: i32| (0..count).map(|_| at + 0.03 * draw(&mut rng)).collect::<Vec<_>>();
                let (a, b, same) = (sample(1.0, 6), sample(1.1, 8), sample(1.0, 6));
                covered += i32::from(shift_interval(&a, &b, 0.95).is_some_and(|i| i.low <= 0.1 && 0.1 <= i.high));
                alarms += i32::from(rank_sum_p(&a, &same) < 0.05);
            }
            assert!(covered > 1_870 && alarms < 130, "{covered} of 2000 covered, {alarms} alarms");
        }
    }

    #[test]
    fn neighbours_that_are_alike_make_a_run_less_certain() {
        let mut rng = fastrand::Rng::with_seed(5);
        let apart: Vec<f64> = (0..80).map(|_| 10.0 + normal(&mut rng)).collect();
        let mut last = 0.0;
        let alike: Vec<f64> = (0..80)
            .map(|_| {
                last = 0.9 * last + 0.436 * normal(&mut rng);
                10.0 + last
            })
            .collect();
        let width = |values: &[f64]| moving_block(values, 1).map(|i| i.high - i.low).unwrap();
        assert!(width(&apart) > 0.25 && width(&apart) < 0.7, "{}", width(&apart));
        assert!(width(&alike) > 1.3 * width(&apart), "{} {}", width(&alike), width(&apart));
        assert_eq!(moving_block(&apart[..7], 1), None);
    }

    proptest! {
        #[test]
        fn turning_the_kinds_turns_the_answer(a in prop::collection::vec(-1.0f64..1.0, 6..12), b in prop::collection::vec(-1.0f64..1.0, 6..12)) {
            let (one, other) = (shift_interval(&a, &b, 0.95).unwrap(), shift_interval(&b, &a, 0.95).unwrap());
            prop_assert!((one.low + other.high).abs() < 1e-12 && (one.high + other.low).abs() < 1e-12);
            prop_assert!((rank_sum_p(&a, &b) - rank_sum_p(&b, &a)).abs() < 1e-12);
        }
    }
}
