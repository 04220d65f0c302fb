//! Whether a block is steady: where its warm-up ends, whether it drifts, whether it steps.

use super::{mean, median};
use statrs::distribution::{ContinuousCDF, Normal};

/// Values that MSER-5 puts together before it looks.
const BATCH: usize = 5;
/// Shuffles by which a step is judged; with 199 the smallest p is 0.005.
const SHUFFLES: usize = 199;
/// Neighbours that are kept together when a series is shuffled: what depends on its neighbour is not chance.
const KEPT_TOGETHER: usize = 4;
/// Fewer values than this are no series.
const VALUES_MIN: usize = 10;

/// How many values at the beginning are warm-up: the cut after which the mean is known best (MSER-5, White 1997). `None`
/// where that cut would take more than half: it has not warmed up.
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
    // Cuts that leave fewer than five batches win by chance: a mean of one value has no error at all.
    let cuts = 0..=batches.len().saturating_sub(BATCH.min(batches.len() - 1));
    let best = cuts.min_by(|one, other| error(*one).total_cmp(&error(*other)))?;
    (best * 2 <= batches.len()).then_some(best * BATCH)
}

/// How much each value resembles the one before it: the lag-1 autocorrelation, -1 to 1. 0 where nothing varies.
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
    /// How likely so much of a trend is by chance.
    pub p: f64,
    /// What it amounts to over the whole series: Sen's slope times its length.
    pub over_all: f64,
}

/// The trend of a series (Mann and Kendall), with the variance widened for neighbours that resemble each other (Yue and Wang
/// 2004). `None` of fewer than ten values.
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
    // Neighbours as they are without the trend itself, which would make them alike.
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
    /// How far the mean moves.
    pub by: f64,
    /// How likely such a step is by chance.
    pub p: f64,
}

/// The largest step of a series, by least squares, judged by shuffling what is around it in small blocks with chance from
/// `seed`. `None` of fewer than ten values, or where nothing varies.
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

/// Where a split explains most, and how much of the sum of squares.
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
    // without widening. Detrended, Y's neighbours are not alike, so that nothing is widened here.
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
        // One that never settles.
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

    /// Neighbours that are alike look like a trend to the plain test far more often than it says.
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
