//! How many pairs are needed, how small an effect can be detected, and how often the lab may look.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The accepted probability of a false alarm, over all looks.
pub const ALPHA: f64 = 0.05;
/// The probability of detecting an effect as large as the smallest detectable one.
pub const POWER: f64 = 0.80;
/// After each of these numbers of pairs the lab looks, and may stop.
pub const LOOKS: [usize; 3] = [8, 16, 24];
/// The level of each look, so that all looks together have [`ALPHA`] (Pocock 1977, three looks). O'Brien and
/// Fleming's first look would need a p below 0.0005, but eight pairs cannot give less than 0.0078.
pub const LOOK_ALPHA: f64 = 0.0221;
/// Pairs of the longest lab: twelve quartets.
pub const PAIRS_MAX: usize = 24;
/// The largest number of pairs that is computed.
const NEEDED_MAX: usize = 10_000;

/// The quantile of Student's t; NaN without a degree of freedom.
pub fn t_quantile(probability: f64, freedom: usize) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom as f64) {
        Ok(t) if freedom > 0 => t.inverse_cdf(probability),
        _ => f64::NAN,
    }
}

/// The smallest effect, as a difference of logarithms, that this many pairs with this spread detect with [`POWER`]. A
/// smaller effect is mostly missed.
pub fn detectable(deviation: f64, pairs: usize, alpha: f64) -> f64 {
    let freedom = pairs.saturating_sub(1);
    (t_quantile(1.0 - alpha / 2.0, freedom) + t_quantile(POWER, freedom)) * deviation / (pairs as f64).sqrt()
}

/// The number of pairs with this spread that detect `effect`, a difference of logarithms. At least three; `None`
/// beyond ten thousand.
pub fn pairs_needed(deviation: f64, effect: f64, alpha: f64) -> Option<usize> {
    let enough = |pairs: usize| detectable(deviation, pairs, alpha) <= effect;
    if effect.is_nan() || deviation.is_nan() || effect <= 0.0 || !enough(NEEDED_MAX) {
        return None;
    }
    // More pairs always make the detectable effect smaller.
    let (mut low, mut high) = (2, NEEDED_MAX);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// Adjusts several p-values for being tested together (Holm 1979), in their original order.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p.get(*one).unwrap_or(&1.0).total_cmp(p.get(*other).unwrap_or(&1.0)));
    let mut adjusted = vec![1.0; p.len()];
    let mut least = 0.0f64;
    for (rank, at) in order.into_iter().enumerate() {
        least = least.max(p.get(at).copied().unwrap_or(1.0) * (p.len() - rank) as f64).min(1.0);
        if let Some(slot) = adjusted.get_mut(at) {
            *slot = least;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::chance::normal;
    use super::super::interval;
    use super::*;

    // scipy: [stats.t.ppf(p, df) for df in (5, 7, 23)] for p in (.975, .8, .98895).
    #[test]
    fn quantiles_are_scipys() {
        let table = [
            (5, [2.570_581_835_636_314_6, 0.919_543_780_240_827_1, 3.274_023_801_082_069_4]),
            (7, [2.364_624_251_592_784_4, 0.896_029_644_313_765_3, 2.927_588_113_118_056]),
            (23, [2.068_657_610_419_048_6, 0.857_529_553_688_035_6, 2.454_437_413_117_581]),
        ];
        for (freedom, quantiles) in table {
            for (probability, wanted) in [0.975, 0.8, 0.98895].into_iter().zip(quantiles) {
                assert!((t_quantile(probability, freedom) - wanted).abs() < 1e-6, "{probability} {freedom}");
            }
        }
        assert!(t_quantile(0.975, 0).is_nan());
    }

    // scipy: 100*(exp((t.ppf(.975,n-1)+t.ppf(.8,n-1))*sqrt(2)*cv/100/sqrt(n))-1), rounded to a tenth.
    #[test]
    fn what_can_be_seen_is_the_table_of_the_reference() {
        let table = [
            (1.0, [2.0, 1.6, 1.3, 1.1, 0.8]),
            (2.0, [4.1, 3.3, 2.5, 2.1, 1.7]),
            (3.0, [6.2, 5.0, 3.8, 3.2, 2.6]),
            (5.0, [10.6, 8.5, 6.5, 5.4, 4.3]),
            (10.0, [22.3, 17.7, 13.4, 11.2, 8.8]),
        ];
        for (cv, wanted) in table {
            let percent = [6, 8, 12, 16, 24].map(|pairs| {
                let deviation = 2f64.sqrt() * cv / 100.0;
                (detectable(deviation, pairs, ALPHA).exp_m1() * 1000.0).round() / 10.0
            });
            assert_eq!(percent, wanted, "{cv} %");
        }
    }

    #[test]
    fn as_many_pairs_as_it_takes_and_no_more() {
        for (deviation, effect) in [(0.03, 0.03), (0.05, 0.1), (0.1, 0.03)] {
            let pairs = pairs_needed(deviation, effect, LOOK_ALPHA).unwrap();
            assert!(detectable(deviation, pairs, LOOK_ALPHA) <= effect);
            assert!(detectable(deviation, pairs - 1, LOOK_ALPHA) > effect);
        }
        assert_eq!(pairs_needed(0.1, 0.0, ALPHA), None);
        assert_eq!(pairs_needed(f64::NAN, 0.1, ALPHA), None);
        assert_eq!(pairs_needed(100.0, 0.01, ALPHA), None);
        assert_eq!(pairs_needed(0.0, 0.01, ALPHA), Some(3));
    }

    // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") gives 0.03 0.06 0.06 0.02.
    #[test]
    fn many_tests_pay_for_each_other() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let wanted = [0.03, 0.06, 0.06, 0.02];
        assert!(adjusted.iter().zip(wanted).all(|(one, other)| (one - other).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    /// Three looks together must not raise more false alarms than one test at 5 %.
    #[test]
    fn looking_three_times_spends_five_percent() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut alarms = 0;
        let runs = 4000;
        for _ in 0..runs {
            let differences: Vec<f64> = (0..PAIRS_MAX).map(|_| 0.02 * normal(&mut rng)).collect();
            let seen = |pairs: &usize| {
                interval(&differences[..*pairs], 1.0 - LOOK_ALPHA).is_some_and(|interval| interval.excludes_zero())
            };
            alarms += u32::from(LOOKS.iter().any(seen));
        }
        let part = f64::from(alarms) / f64::from(runs);
        assert!(part < 0.05 + 3.0 * (0.05f64 * 0.95 / f64::from(runs)).sqrt() && part > 0.02, "{part}");
    }
}
