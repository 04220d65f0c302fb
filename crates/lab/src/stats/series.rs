//! Whether a block is steady: the end of its warm-up, drifts, and steps.

use super::middle::{mean, median};
use statrs::distribution::{ContinuousCDF, Normal};

/// Values that MSER-5 joins to a batch.
const BATCH: usize = 5;
/// Number of shuffles for judging a step. With 199, the smallest p is 0.005.
const SHUFFLES: usize = 199;
/// Number of neighbours that stay together in a shuffle: a value that depends on its neighbour is not chance.
const KEPT_TOGETHER: usize = 4;
/// Least number of values of a series.
const VALUES_MIN: usize = 10;

/// Number of values at the beginning that are warm-up: the cut that gives the most precise mean of the rest (MSER-5,
/// White 1997). `None` if the cut would take more than half of the series: it has not warmed up.
pub fn warm_up(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < 2 {
        return None;
    }
    let error = |cut: usize| {
        let rest = batches.get(cut..).unwrap_or_default();
        let mean = mean(rest);
        rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    // A cut that leaves fewer than five batches would win by chance: the mean of a single value has no error.
    let cuts = 0..=batches.len().saturating_sub(BATCH.min(batches.len() - 1));
    let best = cuts.min_by(|one, other| error(*one).total_cmp(&error(*other)))?;
    (best * 2 <= batches.len()).then_some(best * BATCH)
}

/// How similar each value is to the one before: the lag-1 autocorrelation, -1 to 1. 0 if all values are equal.
pub fn lag_one(values: &[f64]) -> f64 {
    let mean = mean(values);
    let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.iter().zip(values.iter().skip(1));
    let product: f64 = pairs.map(|(one, next)| (one - mean) * (next - mean)).sum();
    if spread > 0.0 { product / spread } else { 0.0 }
}

/// A drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The probability of such a trend by chance.
    pub p: f64,
    /// The change over the whole series: Sen's slope times its length.
    pub over_all: f64,
}

/// The trend of a series (Mann and Kendall). The variance is widened if neighbours are similar (Yue and Wang 2004).
/// `None` for fewer than ten values.
pub fn mann_kendall(values: &[f64]) -> Option<Trend> {
    let len = values.len();
    if len < VALUES_MIN {
        return None;
    }
    let (mut sum, mut slopes) = (0.0, Vec::with_capacity(len * (len - 1) / 2));
    for (at, one) in values.iter().enumerate() {
        for (gap, other) in values.iter().skip(at + 1).enumerate() {
            sum += if other > one {
                1.0
            } else if other < one {
                -1.0
            } else {
                0.0
            };
            slopes.push((other - one) / (gap + 1) as f64);
        }
    }
    let slope = median(&slopes);
    let n = len as f64;
    // The similarity of neighbours without the trend. The trend itself would make them similar.
    let flat: Vec<f64> = values.iter().enumerate().map(|(at, value)| value - slope * at as f64).collect();
    let alike = lag_one(&flat).clamp(0.0, 0.95);
    let widened = (1.0 + alike) / (1.0 - alike);
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * widened;
    let z = (sum - f64::signum(sum) * f64::from(sum != 0.0)) / variance.sqrt();
    let p = Normal::new(0.0, 1.0).map_or(f64::NAN, |normal| 2.0 * normal.sf(z.abs()));
    Some(Trend { p, over_all: slope * (n - 1.0) })
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The first value after it.
    pub at: usize,
    /// The change of the mean.
    pub by: f64,
    /// The probability of such a step by chance.
    pub p: f64,
}

/// The largest step of a series, by least squares. It is judged against shuffles of the series in small blocks, with
/// random numbers from `seed`. `None` for fewer than ten values, or if all values are equal.
pub fn change_point(values: &[f64], seed: u64) -> Option<Shift> {
    let (at, gain) = best_split(values)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut blocks: Vec<&[f64]> = values.chunks(KEPT_TOGETHER).collect();
    let as_far = (0..SHUFFLES).filter(|_| {
        rng.shuffle(&mut blocks);
        best_split(&blocks.concat()).is_some_and(|(_, other)| other >= gain)
    });
    let p = (as_far.count() + 1) as f64 / (SHUFFLES + 1) as f64;
    let (before, after) = values.split_at(at);
    Some(Shift { at, by: mean(after) - mean(before), p })
}

/// The split that explains most, and the part of the sum of squares that it explains.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let len = values.len();
    if len < VALUES_MIN {
        return None;
    }
    let all: f64 = values.iter().sum();
    let whole = all / len as f64;
    let mut sum = 0.0;
    let mut best: Option<(usize, f64)> = None;
    for (at, value) in values.iter().enumerate().take(len - 2) {
        sum += value;
        let left = (at + 1) as f64;
        let right = len as f64 - left;
        let gain = left * (sum / left - whole).powi(2) + right * ((all - sum) / right - whole).powi(2);
        if at >= 1 && best.is_none_or(|(_, known)| gain > known) {
            best = Some((at + 1, gain));
        }
    }
    best.filter(|(_, gain)| *gain > 0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::chance::normal;
    use super::*;

    const Y: [f64; 10] = [1.2, 1.4, 1.1, 1.7, 1.6, 1.9, 2.2, 1.8, 2.4, 2.6];

    fn noise(seed: u64, len: usize) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..len).map(|_| 10.0 + 0.1 * normal(&mut rng)).collect()
    }

    // numpy: sum((y[1:]-m)*(y[:-1]-m))/sum((y-m)**2) = 0.4965903992821894; S = 35, variance 125, z 3.041, p 0.00236
    // without widening. After detrending, Y's neighbours are not similar, so nothing is widened here.
    #[test]
    fn figures_of_scipy() {
        assert!((lag_one(&Y) - 0.496_590_399_282_189_4).abs() < 1e-12);
        let trend = mann_kendall(&Y).unwrap();
        assert!((trend.p - 0.002_357_527_595_795_49).abs() < 1e-6, "{trend:?}");
        assert!((trend.over_all - 1.4).abs() < 0.2, "{trend:?}");
    }

    #[test]
    fn a_warm_up_is_cut_and_a_steady_series_is_not() {
        let mut values = noise(1, 80);
        assert!(warm_up(&values).unwrap() <= 20);
        for (at, value) in values.iter_mut().enumerate().take(15) {
            *value += 5.0 * (15 - at) as f64;
        }
        let cut = warm_up(&values).unwrap();
        assert!((10..=25).contains(&cut), "{cut}");
        // A series that never settles.
        let endless: Vec<f64> = (0..80).map(|at| f64::from(80 - at).powi(2)).collect();
        assert_eq!(warm_up(&endless), None);
        assert_eq!((warm_up(&[]), warm_up(&values[..9])), (None, None));
    }

    #[test]
    fn drift_is_seen_and_chance_is_not() {
        let alarms = (0..200).filter(|seed| mann_kendall(&noise(*seed, 80)).unwrap().p < 0.01).count();
        assert!(alarms <= 6, "{alarms} of 200 at 1 %");
        let drifting: Vec<f64> = noise(1, 80).iter().enumerate().map(|(at, v)| v + 0.01 * at as f64).collect();
        assert!(mann_kendall(&drifting).unwrap().p < 0.01);
        assert_eq!(mann_kendall(&[1.0; 9]), None);
        assert!(mann_kendall(&[1.0; 10]).unwrap().p > 0.9);
    }

    /// Similar neighbours look like a trend to the plain test far more often than its level says.
    #[test]
    fn alike_neighbours_are_no_drift() {
        let alarms = (0..200).filter(|seed| {
            let mut last = 0.0;
            let series: Vec<f64> = noise(*seed, 80)
                .iter()
                .map(|v| {
                    last = 0.6 * last + (v - 10.0);
                    last
                })
                .collect();
            mann_kendall(&series).unwrap().p < 0.01
        });
        assert!(alarms.count() <= 16);
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut values = noise(7, 60);
        values.iter_mut().skip(36).for_each(|value| *value -= 0.5);
        let shift = change_point(&values, 1).unwrap();
        assert!((35..=37).contains(&shift.at) && shift.p <= 0.01 && (shift.by + 0.5).abs() < 0.1, "{shift:?}");
        let alarms = (0..100).filter(|seed| change_point(&noise(*seed, 60), 1).unwrap().p <= 0.01).count();
        assert!(alarms <= 5, "{alarms} of 100 at 1 %");
        assert_eq!(change_point(&[1.0; 60], 1), None);
        assert_eq!(change_point(&values[..9], 1), None);
    }
}
