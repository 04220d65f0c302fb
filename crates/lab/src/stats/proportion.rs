//! Shares: the number of failures among a number of requests.

use statrs::distribution::{Beta, ContinuousCDF};
use statrs::function::factorial::ln_binomial;

/// The difference of two shares as empirical logits. It is finite even without failures.
pub fn logit_difference(before: (u64, u64), after: (u64, u64)) -> f64 {
    empirical_logit(after) - empirical_logit(before)
}

/// The logarithm of the odds to fail. Half a failure and half a success are added so that it is finite.
pub fn empirical_logit((failed, of): (u64, u64)) -> f64 {
    let (failed, of) = (failed as f64, of as f64);
    ((failed + 0.5) / ((of - failed).max(0.0) + 0.5)).ln()
}

/// A share after its logit moved by `difference`: 0.01 moved by 0.1 is 0.01104.
pub fn share_moved(share: f64, difference: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return share.clamp(0.0, 1.0);
    }
    let odds = share / (1.0 - share) * difference.exp();
    odds / (1.0 + odds)
}

/// How much more the counts of several runs vary than by chance: their variance divided by the variance of a
/// binomial. 1 is chance alone. `None` if there is too little data.
pub fn over_dispersion(counts: &[(u64, u64)]) -> Option<f64> {
    let (failed, of) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    let share = failed as f64 / of as f64;
    if counts.len() < 2 || failed == 0 || failed == of || of == 0 {
        return None;
    }
    let squares = counts.iter().filter(|count| count.1 > 0).map(|(failed, of)| {
        let expected = share * *of as f64;
        (*failed as f64 - expected).powi(2) / (expected * (1.0 - share))
    });
    Some(squares.sum::<f64>() / (counts.len() - 1) as f64)
}

/// The largest share that is still likely (95 %) if none of `of` requests failed. Exact; the rule of three approximates
/// it. 1 for no requests.
pub fn zero_bound(of: u64) -> f64 {
    1.0 - 0.05f64.powf(1.0 / of as f64)
}

/// The exact interval of a share (Clopper and Pearson 1934).
pub fn exact_interval((failed, of): (u64, u64), confidence: f64) -> (f64, f64) {
    let (failed, rest, tail) = (failed.min(of) as f64, of.saturating_sub(failed) as f64, (1.0 - confidence) / 2.0);
    let quantile = |a: f64, b: f64, part: f64| Beta::new(a, b).map_or(f64::NAN, |beta| beta.inverse_cdf(part));
    let low = if failed == 0.0 { 0.0 } else { quantile(failed, rest + 1.0, tail) };
    let high = if rest == 0.0 { 1.0 } else { quantile(failed + 1.0, rest, 1.0 - tail) };
    (low, high)
}

/// The two-sided p-value of Fisher's exact test that two shares are equal. Tables as likely as the observed one count
/// half (mid-P), which keeps 5 % closer to 5 % for few failures.
pub fn fisher_mid_p(before: (u64, u64), after: (u64, u64)) -> f64 {
    let failed = before.0 + after.0;
    let log = |k: u64| ln_binomial(before.1, k) + ln_binomial(after.1, failed - k);
    let (first, last) = (failed.saturating_sub(after.1), failed.min(before.1));
    if first > last {
        return f64::NAN;
    }
    let seen = log(before.0.clamp(first, last));
    let most = (first..=last).map(log).fold(f64::NEG_INFINITY, f64::max);
    let (mut all, mut far) = (0.0, 0.0);
    for k in first..=last {
        let part = (log(k) - most).exp();
        all += part;
        far += match log(k) - seen {
            difference if difference.abs() < 1e-7 => part / 2.0,
            difference if difference < 0.0 => part,
            _ => 0.0,
        };
    }
    far / all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The three runs of S0 and S1 of the reference: 132, 162 and 111 of 930. φ is 5.7 there.
    #[test]
    fn three_reports_without_an_effect_differ_by_more_than_chance() {
        let dispersion = over_dispersion(&[(132, 930), (162, 930), (111, 930)]).unwrap();
        assert!((dispersion - 5.7).abs() < 0.05, "{dispersion}");
        assert_eq!(over_dispersion(&[(0, 10), (0, 10)]), None);
        assert_eq!(over_dispersion(&[(1, 10)]), None);
    }

    #[test]
    fn logits() {
        let difference = logit_difference((10, 1000), (20, 1000));
        assert!((difference - ((20.5f64 / 980.5).ln() - (10.5f64 / 990.5).ln())).abs() < 1e-12);
        assert!(logit_difference((0, 1000), (0, 1000)).abs() < 1e-12);
        assert!(logit_difference((0, 0), (5, 5)).is_finite());
        assert!((share_moved(0.01, 0.1) - 0.011_04).abs() < 1e-5);
        assert_eq!((share_moved(0.0, 1.0), share_moved(1.0, 1.0)), (0.0, 1.0));
    }

    // 1-0.05**(1/930) = 0.003216; the rule of three says 3/930 = 0.003226.
    #[test]
    fn nothing_seen_is_not_nothing() {
        assert!((zero_bound(930) - 0.003_216).abs() < 2e-6);
        assert!((zero_bound(0) - 1.0).abs() < 1e-12 && (zero_bound(1) - 0.95).abs() < 1e-12);
    }

    // The textbook's example: 1 of 10 has the interval 0.0025 to 0.4450, and 0 of 10 has 0 to 0.3085.
    #[test]
    fn few_failures_have_an_exact_interval() {
        let near =
            |(low, high): (f64, f64), one: f64, other: f64| (low - one).abs() < 1e-4 && (high - other).abs() < 1e-4;
        assert!(near(exact_interval((1, 10), 0.95), 0.0025, 0.4450), "{:?}", exact_interval((1, 10), 0.95));
        assert!(near(exact_interval((0, 10), 0.95), 0.0, 0.3085) && near(exact_interval((10, 10), 0.95), 0.6915, 1.0));
    }

    // The lady tasting tea: of four cups of each kind, three are right. Fisher's p is 34/70 in all, and 16/70 of it is
    // the table itself on this side and 16/70 on the other; half of both leaves 18/70.
    #[test]
    fn two_shares_are_compared_exactly() {
        assert!((fisher_mid_p((3, 4), (1, 4)) - 18.0 / 70.0).abs() < 1e-9, "{}", fisher_mid_p((3, 4), (1, 4)));
        assert!((fisher_mid_p((5, 1000), (5, 1000)) - fisher_mid_p((5, 1000), (5, 1000))).abs() < 1e-12);
        assert!(fisher_mid_p((0, 900), (40, 900)) < 1e-9 && fisher_mid_p((5, 1000), (5, 1000)) > 0.8);
    }
}
