//! The share of requests that failed, with an exact interval.

use serde_json::Value;

/// Halvings of a bisection: enough for the last bit of a share.
const HALVINGS: usize = 60;

/// Failed requests among all requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FailedShare {
    pub(super) failed: u64,
    pub(super) of: u64,
}

impl FailedShare {
    /// The counts of a whole run: errors, and answers of 400 or more. `None` if it counts no requests.
    pub(super) fn of(report: &Value) -> Option<FailedShare> {
        let counters = report["aggregate"]["counters"].as_object()?;
        let count = |name: &str| counters.get(name).and_then(Value::as_u64).unwrap_or(0);
        let sent: u64 = ["http.requests", "websocket.messages_sent", "socketio.emit"].into_iter().map(count).sum();
        let is_failed = |name: &str| {
            let code = name.strip_prefix("http.codes.").and_then(|code| code.parse::<u16>().ok());
            name.starts_with("errors.") || code.is_some_and(|code| code >= 400)
        };
        let failed: u64 = counters.iter().filter(|(name, _)| is_failed(name)).filter_map(|(_, n)| n.as_u64()).sum();
        // A virtual user may fail without a request, for example in a function.
        (sent > 0).then(|| FailedShare { failed: failed.min(sent), of: sent })
    }

    pub(super) fn share(self) -> f64 {
        self.failed as f64 / self.of as f64
    }

    /// The exact interval of the share (Clopper and Pearson 1934).
    pub(super) fn interval(self, confidence: f64) -> (f64, f64) {
        let tail = (1.0 - confidence) / 2.0;
        let FailedShare { failed, of } = self;
        // P(X >= failed) rises with the share, P(X <= failed) falls.
        let low = if failed == 0 { 0.0 } else { bisect(|share| 1.0 - at_most(failed - 1, of, share) < tail) };
        let high = if failed == of { 1.0 } else { bisect(|share| at_most(failed, of, share) > tail) };
        (low, high)
    }
}

/// The difference of two shares, with at least 95 % confidence: both exact intervals hold at once (Bonferroni).
pub(super) fn difference(a: FailedShare, b: FailedShare) -> (f64, f64) {
    let ((low_a, high_a), (low_b, high_b)) = (a.interval(0.975), b.interval(0.975));
    (low_b - high_a, high_b - low_a)
}

/// The share at which a condition ends that holds for all smaller shares.
fn bisect(holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The probability of at most `failed` among `of`: the sum of the binomial distribution, largest terms first.
fn at_most(failed: u64, of: u64, share: f64) -> f64 {
    let (n, ratio) = (of as f64, share / (1.0 - share));
    // The largest term of the tail is that of the mode or of its end.
    let mode = ((n + 1.0) * share).floor().clamp(0.0, failed as f64);
    let log = ln_choose(n, mode) + mode * share.ln() + (n - mode) * (-share).ln_1p();
    let sum = |mut k: f64, step: f64| {
        let (mut term, mut sum) = (1.0, 0.0);
        loop {
            // From k to the next: a known factor; terms below the precision add nothing.
            term *= if step > 0.0 { (n - k) / (k + 1.0) * ratio } else { k / (n - k + 1.0) / ratio };
            k += step;
            if k < 0.0 || k > failed as f64 || term < 1e-18 * (1.0 + sum) {
                return sum;
            }
            sum += term;
        }
    };
    (log.exp() * (1.0 + sum(mode, 1.0) + sum(mode, -1.0))).min(1.0)
}

fn ln_choose(n: f64, k: f64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Stirling's series; exact sums below the numbers for which it is.
fn ln_factorial(n: f64) -> f64 {
    if n < 32.0 {
        return (2..=n as u32).map(|factor| f64::from(factor).ln()).sum();
    }
    let inverse = 1.0 / n;
    let correction = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0;
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + correction
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn intervals_are_those_of_clopper_and_pearson() {
        // R: binom.test(x, n)$conf.int
        for (failed, of, low, high) in [
            (0, 10, 0.0, 0.3085),
            (10, 10, 0.6915, 1.0),
            (5, 50, 0.0333, 0.2181),
            (134, 600, 0.1906, 0.2588),
            (3, 100_000, 0.000_006_2, 0.000_087_7),
        ] {
            let (found_low, found_high) = FailedShare { failed, of }.interval(0.95);
            let near = |found: f64, wanted: f64| (found - wanted).abs() <= 0.0001_f64.min(wanted.max(1e-6) * 0.02);
            assert!(near(found_low, low) && near(found_high, high), "{failed} of {of}: {found_low} to {found_high}");
        }
        let (low, high) = difference(FailedShare { failed: 134, of: 600 }, FailedShare { failed: 0, of: 600 });
        assert!(low > -0.27 && high < -0.17, "{low} {high}");
    }

    #[test]
    fn failures_are_errors_and_answers_of_400_or_more() {
        let report = json!({"aggregate": {"counters": {
            "http.requests": 100, "http.codes.200": 90, "http.codes.404": 3, "http.codes.503": 2, "errors.ETIMEDOUT": 5,
            "vusers.failed": 5}}});
        assert_eq!(FailedShare::of(&report), Some(FailedShare { failed: 10, of: 100 }));
        assert_eq!(FailedShare::of(&json!({"aggregate": {"counters": {}}})), None);
    }
}
