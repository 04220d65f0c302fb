//! Evidence of harm as wealth: a bet against the coin, which is fair if the new configuration harms nobody.
//!
//! The wealth begins at 1. Without harm it reaches 1/α with a probability of at most α, however often somebody looks
//! (Ville's inequality).

/// Wealth beyond this is not counted: it is more than anybody asks for, and stays finite.
const WEALTH_MAX: f64 = 1e260;

/// A bet on clients that met something: the new configuration has more of them than its share.
#[derive(Clone, Debug)]
pub struct MoreOften {
    /// The wealth of each ratio in [`RATIOS`].
    wealth: [f64; RATIOS.len()],
}

/// How many times as often a client of the new configuration meets it.
const RATIOS: [f64; 7] = [1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0];

impl MoreOften {
    /// Wealth of 1.
    pub fn new() -> MoreOften {
        MoreOften { wealth: [1.0; RATIOS.len()] }
    }

    /// Takes a client that met it. `share` is the coin's probability for the new configuration.
    pub fn take(&mut self, is_new: bool, share: f64) {
        for (wealth, ratio) in self.wealth.iter_mut().zip(RATIOS) {
            let expected = share * ratio / (share * ratio + 1.0 - share);
            let gain = if is_new { expected / share } else { (1.0 - expected) / (1.0 - share) };
            *wealth = (*wealth * gain).min(WEALTH_MAX);
        }
    }

    /// The mean of all bets.
    pub fn wealth(&self) -> f64 {
        mean(&self.wealth)
    }
}

impl Default for MoreOften {
    fn default() -> MoreOften {
        MoreOften::new()
    }
}

/// A bet on a number between 0 and 1: it is larger for clients of the new configuration.
#[derive(Clone, Debug)]
pub struct Larger {
    wealth: [f64; PACES.len()],
    seen: Running,
}

/// How fast each bet goes.
const PACES: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.4];
/// The largest part of the wealth that may be lost at once.
const LOSS_MAX: f64 = 0.9;

impl Larger {
    /// Wealth of 1.
    pub fn new() -> Larger {
        Larger { wealth: [1.0; PACES.len()], seen: Running::default() }
    }

    /// Takes the number of a client. `share` is the coin's probability for the new configuration.
    pub fn take(&mut self, number: f64, is_new: bool, share: f64) {
        let widest = share.max(1.0 - share);
        // Only earlier clients decide about the stake: a stake that knows this client would not be fair.
        let (middle, spread) = (self.seen.mean(), self.seen.deviation());
        let coin = f64::from(u8::from(is_new)) - share;
        for (wealth, pace) in self.wealth.iter_mut().zip(PACES) {
            let stake = (pace / (2.0 * spread * widest)).min(LOSS_MAX / widest);
            let gain = 1.0 + stake * (number - middle) * coin;
            *wealth = (*wealth * gain).min(WEALTH_MAX);
        }
        self.seen.take(number);
    }

    /// The mean of all bets.
    pub fn wealth(&self) -> f64 {
        mean(&self.wealth)
    }
}

impl Default for Larger {
    fn default() -> Larger {
        Larger::new()
    }
}

fn mean(wealth: &[f64]) -> f64 {
    wealth.iter().sum::<f64>() / wealth.len() as f64
}

/// Mean and spread of the numbers until now (Welford 1962).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Running {
    pub(crate) fn take(&mut self, number: f64) {
        self.count += 1.0;
        let off = number - self.mean;
        self.mean += off / self.count;
        self.squares += off * (number - self.mean);
    }

    /// 0 without numbers.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard deviation, as if one number at each end of 0 to 1 had been seen too: never 0.
    pub(crate) fn deviation(&self) -> f64 {
        ((self.squares + 0.5) / (self.count + 2.0)).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_coin_keeps_the_expected_wealth() {
        // The mean over both sides of the coin is the wealth before, for each share and number.
        for share in [0.01, 0.1, 0.5, 0.9] {
            for number in [0.0, 0.3, 1.0] {
                let mut before = Larger::new();
                for (one, is_new) in [(0.1, true), (0.9, false), (0.4, false), (0.0, true)] {
                    before.take(one, is_new, share);
                }
                let after = |is_new| {
                    let mut copy = before.clone();
                    copy.take(number, is_new, share);
                    copy.wealth()
                };
                let mean = share * after(true) + (1.0 - share) * after(false);
                assert!((mean - before.wealth()).abs() < 1e-12, "{share} {number}");
            }
            let after = |is_new| {
                let mut bet = MoreOften::new();
                bet.take(is_new, share);
                bet.wealth()
            };
            assert!((share * after(true) + (1.0 - share) * after(false) - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn harmed_clients_until_forty_are_few() {
        // Ten times as many failures at a share of 10 %: of the clients that fail, 10 of 19 have the new configuration.
        let mut bet = MoreOften::new();
        let mut harmed = 0;
        for failed in 0.. {
            let is_new = failed % 19 < 10;
            bet.take(is_new, 0.1);
            harmed += i32::from(is_new);
            if bet.wealth() >= 40.0 {
                break;
            }
        }
        assert!(harmed <= 5, "{harmed}");
    }

    #[test]
    fn wealth_stays_finite_whatever_comes() {
        let (mut often, mut larger) = (MoreOften::new(), Larger::new());
        for _ in 0..100_000 {
            often.take(true, 0.001);
            larger.take(1.0, true, 0.001);
            larger.take(0.0, false, 0.001);
        }
        assert!(often.wealth().is_finite() && larger.wealth().is_finite());
        let mut lost = Larger::new();
        for _ in 0..100_000 {
            lost.take(1.0, false, 0.5);
            lost.take(0.0, true, 0.5);
        }
        assert!(lost.wealth() >= 0.0 && lost.wealth() < 1.0);
    }
}
