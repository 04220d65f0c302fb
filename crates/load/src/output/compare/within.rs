//! Intervals for the difference of two single runs, from the series of each.
//!
//! The requests of a run depend on each other: a slow second follows a slow second. So a run is cut into five stretches
//! of equal length, and the spread of their means is the spread of the run's mean (batch means). A dependence that is
//! much shorter than a stretch does not narrow the interval.

/// Stretches of a run.
const BATCHES: usize = 5;
/// The quantile 0.975 of Student's t for four degrees of freedom. The difference of two runs has more, up to eight, if
/// both spreads are equal; four are safe, also for dependences that are as long as a third of a stretch.
const T: f64 = 2.776;
/// Least number of values on each side.
pub(super) const VALUES_MIN: usize = 2 * BATCHES;

/// A difference with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shift {
    pub(super) shift: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The mean of a series; `None` if it is empty.
pub(super) fn mean(series: &[f64]) -> Option<f64> {
    (!series.is_empty()).then(|| series.iter().sum::<f64>() / series.len() as f64)
}

/// The difference of the means of two series, with 95 % confidence. `None` with fewer than [`VALUES_MIN`] values on a
/// side.
pub(super) fn shift(a: &[f64], b: &[f64]) -> Option<Shift> {
    let (in_a, in_b) = (batches(a)?, batches(b)?);
    let shift = mean(b)? - mean(a)?;
    let reach = T * ((variance(&in_a) + variance(&in_b)) / BATCHES as f64).sqrt();
    Some(Shift { shift, low: shift - reach, high: shift + reach })
}

/// The means of the stretches.
fn batches(series: &[f64]) -> Option<Vec<f64>> {
    let length = series.len() / BATCHES;
    if series.len() < VALUES_MIN {
        return None;
    }
    Some(series.chunks(length).take(BATCHES).filter_map(mean).collect())
}

fn variance(values: &[f64]) -> f64 {
    let middle = mean(values).unwrap_or(0.0);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / (values.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A series in which each value keeps this part of the one before (autoregressive, of order one).
    fn series(random: &mut fastrand::Rng, length: usize, kept: f64) -> Vec<f64> {
        let mut last = 0.0;
        let mut next = || {
            // Twelve uniform numbers add up to a normal one, near enough.
            let noise = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            last = kept * last + noise;
            last
        };
        // The first values still know where the series began.
        (0..50 + length).map(|_| next()).skip(50).collect()
    }

    #[test]
    fn the_interval_covers_the_truth_also_for_dependent_seconds() {
        let mut random = fastrand::Rng::with_seed(7);
        for (length, kept) in [(10, 0.0), (40, 0.5), (60, 0.0), (60, 0.5), (60, 0.7), (120, 0.8), (600, 0.9)] {
            let runs = 2_000;
            let covers = |random: &mut fastrand::Rng| {
                let (a, b) = (series(random, length, kept), series(random, length, kept));
                shift(&a, &b).is_some_and(|shift| shift.low <= 0.0 && shift.high >= 0.0)
            };
            let covered = (0..runs).filter(|_| covers(&mut random)).count() as f64 / f64::from(runs);
            assert!(covered >= 0.92, "{length} values that keep {kept}: {covered}");
        }
    }

    #[test]
    fn a_difference_is_found_and_short_series_have_none() {
        let mut random = fastrand::Rng::with_seed(1);
        let a = series(&mut random, 100, 0.5);
        let b: Vec<f64> = series(&mut random, 100, 0.5).iter().map(|value| value + 10.0).collect();
        let found = shift(&a, &b).unwrap();
        assert!(found.low > 5.0 && found.high < 15.0, "{found:?}");
        assert_eq!(shift(&a[..VALUES_MIN - 1], &b), None);
        assert_eq!(shift(&[1.0; 10], &[2.0; 10]), Some(Shift { shift: 1.0, low: 1.0, high: 1.0 }));
    }
}
