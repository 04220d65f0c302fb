//! Statistics of blocks: pure functions without a clock. Random numbers come only from a seed that the caller passes
//! in.
//!
//! The unit is the block, never the request. Requests of one run depend on each other; counting them as independent
//! makes noise look certain. Effects are differences of logarithms, so that "10 % more" and "10 % less" weigh the
//! same.

mod fit;
mod power;
mod proportion;
mod rank;
mod series;
mod unpaired;

pub use fit::{LEVELS_MIN, Logistic, Usl, logistic, usl};
pub use power::{ALPHA, LOOK_ALPHA, LOOKS, PAIRS_MAX, POWER, detectable, holm, pairs_needed, t_quantile};
pub use proportion::{
    empirical_logit, exact_interval, fisher_mid_p, logit_difference, over_dispersion, share_moved, zero_bound,
};
pub use rank::{Interval, PAIRS_MIN, hodges_lehmann, interval, is_equivalent, sign_flip_p, signed_rank_k};
pub use series::{Shift, Trend, change_point, lag_one, mann_kendall, warm_up};
pub use unpaired::{RUNS_MAX, RUNS_MIN, moving_block, rank_sum_p, shift, shift_interval};

/// The mean; NaN for an empty list.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sample's standard deviation; NaN for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    let mean = mean(values);
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

/// The median; NaN for an empty list.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (len, half) if len % 2 == 1 => sorted.get(half).copied().unwrap_or(f64::NAN),
        (_, half) => {
            let pair = (sorted.get(half - 1), sorted.get(half));
            if let (Some(low), Some(high)) = pair { (low + high) / 2.0 } else { f64::NAN }
        }
    }
}

#[cfg(test)]
pub(crate) mod chance {
    //! Random numbers for simulations, from a seed.

    /// A normal number (Box and Muller).
    pub(crate) fn normal(rng: &mut fastrand::Rng) -> f64 {
        let (one, two) = (1.0 - rng.f64(), rng.f64());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    /// Student's t with three degrees of freedom: heavy tails, as latencies have them.
    pub(crate) fn heavy(rng: &mut fastrand::Rng) -> f64 {
        let square: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
        normal(rng) / (square / 3.0).sqrt() / 3f64.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_and_spreads() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 2.0, 3.0]), mean(&[1.0, 3.0])), (2.0, 2.5, 2.0));
        assert!((deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - 2.138_089_935).abs() < 1e-8);
        assert!(median(&[]).is_nan() && deviation(&[1.0]).is_nan() && mean(&[]).is_nan());
    }
}
