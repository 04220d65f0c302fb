//! The rate, the capacity and the credit of a limit.

/// The least credit covers the requests that a key may send in this time, because a debt needs that long to reach the ledger and back.
const SETTLES_MS: i64 = 20;

/// One request, in thousandths.
pub(crate) const ONE: i64 = 1000;

/// A limit for each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTerms {
    /// Thousandths of a request a second; above 0.
    pub rate: i64,
    /// The size of the bucket, in thousandths of a request: nginx's `burst` and the request itself.
    pub capacity: i64,
    /// The largest debt of one edge, in thousandths of a request.
    pub credit: i64,
}

impl LimitTerms {
    /// The terms of a limit with this rate and this `burst`. Without a credit of its own, an edge has the whole capacity: then
    /// a burst passes at once at one edge, as it does without a fleet.
    pub fn new(rate: i64, burst: i64, credit: Option<i64>) -> LimitTerms {
        let (rate, capacity) = (rate.max(1), burst.saturating_add(ONE));
        let credit = credit.unwrap_or_else(|| capacity.max(rate.saturating_mul(SETTLES_MS) / 1000));
        LimitTerms { rate, capacity, credit: credit.max(ONE) }
    }

    /// The amount that leaks out of a bucket in this time, in microseconds.
    pub(crate) fn leak(&self, time_us: i64) -> i64 {
        let leaked = i128::from(self.rate) * i128::from(time_us.max(0)) / 1_000_000;
        i64::try_from(leaked).unwrap_or(i64::MAX)
    }

    /// The time in which this amount leaks, in microseconds, at least.
    pub(crate) fn time_us(&self, amount: i64) -> i64 {
        let rate = i128::from(self.rate.max(1));
        let time = (i128::from(amount) * 1_000_000 + rate - 1) / rate;
        i64::try_from(time).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credit_is_the_burst_and_enough_for_a_round_trip() {
        let credit = |rate, burst, own| LimitTerms::new(rate, burst, own).credit;
        assert_eq!(credit(10_000, 20_000, None), 21_000);
        assert_eq!(credit(1_000_000, 0, None), 20_000, "twenty milliseconds of 1,000 requests a second");
        assert_eq!(credit(1, 0, None), 1000, "one request at least");
        assert_eq!(credit(10_000, 20_000, Some(2000)), 2000);
        assert_eq!(credit(10_000, 20_000, Some(1)), 1000);
    }

    #[test]
    fn leaks_and_times_fit_together() {
        let terms = LimitTerms::new(1500, 0, None);
        assert_eq!(terms.leak(1_000_000), 1500);
        assert_eq!(terms.leak(terms.time_us(7)), 7);
        assert_eq!(terms.leak(-5), 0);
        assert_eq!(LimitTerms::new(i64::MAX, i64::MAX, None).leak(i64::MAX), i64::MAX);
    }
}
