//! Chooses the next rate of a search for the largest rate that holds. Pure arithmetic.
//!
//! The rate rises by half until one fails. Then the search halves the interval until its ends are 5 % apart. Then it
//! runs each end three times. An end is confirmed if two of three tries pass.

/// The factor of each step upward.
const CLIMB: f64 = 1.5;
/// The largest ratio of the lowest failing rate to the highest passing one at the end.
const BRACKET: f64 = 1.05;
/// How often each end is confirmed, and how many tries have to pass.
pub const CONFIRMATIONS: usize = 3;
const PASSES_MIN: usize = 2;
/// Most tries of a search.
pub const TRIES_MAX: usize = 60;
/// The lowest and the highest rate of a search.
pub const RATES: (f64, f64) = (1.0, 1_000_000.0);

/// One try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchTry {
    /// Requests a second.
    pub rate: f64,
    /// Whether the objective held.
    pub passed: bool,
    /// It was a confirmation at the end.
    pub is_confirmation: bool,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchNext {
    /// Try this rate.
    Try(f64),
    /// Try this rate, to confirm.
    Confirm(f64),
    /// This rate holds, and 5 % more does not.
    Found(f64),
    /// Not even the lowest rate holds.
    Nothing,
    /// Every allowed rate holds.
    Everything(f64),
    /// The tries up to the limit show nothing clear: passes and failures overlap.
    Unclear,
}

/// The scale of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The largest value that is tried.
    pub most: f64,
    /// Values are whole numbers.
    pub is_whole: bool,
}

/// Requests a second.
pub const BY_RATE: Axis = Axis { most: RATES.1, is_whole: false };

impl Axis {
    fn round(self, value: f64) -> f64 {
        if self.is_whole { value.round() } else { round(value) }
    }
}

/// Chooses the next step from the tries so far.
pub fn next(tries: &[SearchTry], from: f64, axis: Axis) -> SearchNext {
    if tries.len() >= TRIES_MAX {
        return SearchNext::Unclear;
    }
    // The majority of its tries decides about a rate.
    let holds = |rate: f64| {
        let at: Vec<&SearchTry> = tries.iter().filter(|one| one.rate == rate).collect();
        at.iter().filter(|one| one.passed).count() * 2 > at.len()
    };
    let mut rates: Vec<f64> = tries.iter().map(|one| one.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let high = rates.iter().copied().find(|rate| !holds(*rate));
    let low = rates.iter().copied().rfind(|rate| holds(*rate) && high.is_none_or(|high| *rate < high));
    match (low, high) {
        (None, None) => SearchNext::Try(axis.round(from).clamp(RATES.0, axis.most)),
        (Some(low), None) if low >= axis.most => SearchNext::Everything(low),
        (Some(low), None) => SearchNext::Try(axis.round(low * CLIMB).min(axis.most)),
        (None, Some(high)) if high <= RATES.0 => SearchNext::Nothing,
        (None, Some(high)) => SearchNext::Try(axis.round(high / CLIMB).max(RATES.0)),
        (Some(low), Some(high)) => {
            let middle = axis.round((low * high).sqrt());
            let is_between = middle > low && middle < high;
            if high / low > BRACKET && is_between { SearchNext::Try(middle) } else { confirm(tries, low, high) }
        }
    }
}

/// Confirms both ends alternately. If an end is not confirmed, the bracket moves, and the next call takes that into
/// account.
fn confirm(tries: &[SearchTry], low: f64, high: f64) -> SearchNext {
    let confirmed = |rate: f64| tries.iter().filter(|one| one.rate == rate && one.is_confirmation).count();
    match (confirmed(low), confirmed(high)) {
        (one, other) if one < CONFIRMATIONS && one <= other => SearchNext::Confirm(low),
        (_, other) if other < CONFIRMATIONS => SearchNext::Confirm(high),
        (one, _) if one < CONFIRMATIONS => SearchNext::Confirm(low),
        _ if passes(tries, low) >= PASSES_MIN => SearchNext::Found(low),
        _ => SearchNext::Unclear,
    }
}

/// Number of confirmations of a rate that passed.
pub fn passes(tries: &[SearchTry], rate: f64) -> usize {
    tries.iter().filter(|one| one.rate == rate && one.is_confirmation && one.passed).count()
}

/// Three digits, so that the rate can be printed and used again.
fn round(rate: f64) -> f64 {
    let scale = 10f64.powf((rate.log10().floor() - 3.0).max(-1.0));
    (rate / scale).round() * scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_end_beside_each_other() {
        let axis = Axis { most: 1200.0, is_whole: true };
        for (limit, wanted) in
            [(7.0, SearchNext::Found(7.0)), (2000.0, SearchNext::Everything(1200.0)), (0.0, SearchNext::Nothing)]
        {
            let mut tries: Vec<SearchTry> = Vec::new();
            let end = loop {
                let (rate, is_confirmation) = match next(&tries, 10.0, axis) {
                    SearchNext::Try(rate) => (rate, false),
                    SearchNext::Confirm(rate) => (rate, true),
                    end => break end,
                };
                assert_eq!(rate.fract(), 0.0);
                tries.push(SearchTry { rate, passed: rate <= limit, is_confirmation });
            };
            assert_eq!(end, wanted);
        }
    }

    fn search(from: f64, holds: &mut dyn FnMut(f64) -> bool) -> (SearchNext, Vec<SearchTry>) {
        let mut tries = Vec::new();
        loop {
            let (rate, is_confirmation) = match next(&tries, from, BY_RATE) {
                SearchNext::Try(rate) => (rate, false),
                SearchNext::Confirm(rate) => (rate, true),
                end => return (end, tries),
            };
            tries.push(SearchTry { rate, passed: holds(rate), is_confirmation });
            assert!(tries.len() <= TRIES_MAX, "{tries:?}");
        }
    }

    #[test]
    fn a_clear_limit_is_found_and_confirmed() {
        let (end, tries) = search(100.0, &mut |rate| rate <= 4_321.0);
        let SearchNext::Found(rate) = end else { panic!("{end:?}") };
        assert!(rate <= 4_321.0 && rate * BRACKET * 1.01 >= 4_321.0, "{rate}");
        assert_eq!(tries.iter().filter(|one| one.is_confirmation).count(), 2 * CONFIRMATIONS);
        assert!(tries.len() < 25, "{}", tries.len());
    }

    #[test]
    fn ends_that_are_not_there() {
        assert_eq!(search(100.0, &mut |_| false).0, SearchNext::Nothing);
        assert_eq!(search(100.0, &mut |_| true).0, SearchNext::Everything(RATES.1));
        assert_eq!(search(1e9, &mut |_| true).0, SearchNext::Everything(RATES.1));
        let mut turn = false;
        let end = search(100.0, &mut |_| {
            turn = !turn;
            turn
        })
        .0;
        assert!(!matches!(end, SearchNext::Nothing | SearchNext::Everything(_)), "{end:?}");
    }

    /// Near the limit, chance decides. The result is still near the limit.
    #[test]
    fn a_blurred_limit_is_found_nearly() {
        for seed in 0..50 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut holds = |rate: f64| rng.f64() < 1.0 / (1.0 + (60.0 * (rate / 1000.0).ln()).exp());
            if let (SearchNext::Found(rate), tries) = search(50.0, &mut holds) {
                assert!((880.0..1_080.0).contains(&rate), "{seed}: {rate}");
                assert!(passes(&tries, rate) >= PASSES_MIN);
            }
        }
    }

    proptest! {
        #[test]
        fn every_limit_is_found_from_anywhere(limit in 2.0f64..500_000.0, from in 1.0f64..100_000.0) {
            let (end, _) = search(from, &mut |rate| rate <= limit);
            let SearchNext::Found(rate) = end else { return Err(TestCaseError::fail(format!("{end:?}"))) };
            prop_assert!(rate <= limit && (rate * 1.07 >= limit || rate + 0.2 >= limit), "{} of {}", rate, limit);
        }
    }
}
