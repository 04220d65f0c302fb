//! Shares: the number of failures among a number of requests.

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

/// The largest share that is still likely (95 %) if none of `of` requests failed: the rule of three. 1 for no requests.
pub fn zero_bound(of: u64) -> f64 {
    (3.0 / of as f64).min(1.0)
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

    // scipy and pencil: 1-0.05**(1/930) = 0.003216; the rule of three says 3/930 = 0.003226.
    #[test]
    fn nothing_seen_is_not_nothing() {
        assert!((zero_bound(930) - 0.003_216).abs() < 2e-5);
        assert_eq!((zero_bound(0), zero_bound(2)), (1.0, 1.0));
    }
}
