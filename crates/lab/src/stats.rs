//! Statistics of blocks: pure functions without a clock. Random numbers come only from a seed that the caller passes
//! in.
//!
//! The unit is the block, never the request. Requests of one run depend on each other; counting them as independent
//! makes noise look certain. Effects are differences of logarithms, so that "10 % more" and "10 % less" weigh the
//! same.

mod fit;
mod middle;
mod power;
mod proportion;
mod rank;
mod series;
mod unpaired;

pub use fit::{LEVELS_MIN, Logistic, Usl, logistic, usl};
pub use middle::{deviation, mean, median};
pub use power::{ALPHA, LOOK_ALPHA, LOOKS, PAIRS_MAX, POWER, detectable, holm, pairs_needed, t_quantile};
pub use proportion::{
    empirical_logit, exact_interval, fisher_mid_p, logit_difference, over_dispersion, share_moved, zero_bound,
};
pub use rank::{Interval, PAIRS_MIN, hodges_lehmann, interval, is_equivalent, sign_flip_p, signed_rank_k};
pub use series::{Shift, Trend, change_point, lag_one, mann_kendall, warm_up};
pub use unpaired::{RUNS_MAX, RUNS_MIN, larger_p, moving_block, rank_sum_p, shift, shift_interval};

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
