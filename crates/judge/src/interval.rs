//! An interval for the harm that is valid at every moment.

use crate::bet::Running;

/// The mean difference that the new configuration makes, in the units of the number, with an interval that holds at
/// all moments together: an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2021).
#[derive(Clone, Debug)]
pub struct Difference {
    /// The numbers until now, if their middle is taken away.
    numbers: Option<Running>,
    count: f64,
    sum: f64,
    squares: f64,
    /// The largest square of one client, in place of a client that has not come yet.
    unseen: f64,
    tuning: f64,
}

impl Difference {
    /// An interval that is tightest after `planned` clients; `alpha` is the probability that it is ever wrong.
    pub fn new(planned: u64, alpha: f64) -> Difference {
        let ln = -2.0 * alpha.ln();
        let tuning = (ln + (1.0 + ln).ln()) / planned.max(1) as f64;
        Difference { numbers: Some(Running::default()), count: 0.0, sum: 0.0, squares: 0.0, unseen: 0.0, tuning }
    }

    /// The same for something rare: the order of the clients may depend on their numbers.
    pub fn of_rare(planned: u64, alpha: f64) -> Difference {
        Difference { numbers: None, ..Difference::new(planned, alpha) }
    }

    /// Takes the number of a client, between 0 and 1. `share` is the coin's probability for the new configuration.
    pub fn take(&mut self, number: f64, is_new: bool, share: f64) {
        let weight = if is_new { 1.0 / share } else { -1.0 / (1.0 - share) };
        // The middle takes a part of the noise away and adds no error: the coin does not depend on it.
        let middle = self.numbers.as_ref().map_or(0.0, Running::mean);
        let one = weight * (number - middle);
        if let Some(numbers) = &mut self.numbers {
            numbers.take(number);
        }
        self.count += 1.0;
        self.sum += one;
        self.squares += one * one;
        self.unseen = (1.0 / share).max(1.0 / (1.0 - share)).powi(2);
    }

    /// The estimate. 0 without clients.
    pub fn estimate(&self) -> f64 {
        if self.count > 0.0 { self.sum / self.count } else { 0.0 }
    }

    /// The upper end of the interval, one-sided. Infinite without clients.
    pub fn upper(&self, alpha: f64) -> f64 {
        self.estimate() + self.reach(alpha)
    }

    /// The standard error of the estimate. `None` without clients.
    pub fn error(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.deviation() / self.count.sqrt())
    }

    /// The spread of a client's contribution, as if one more client had met the rarest thing: never 0, so that no harm in
    /// few clients is no proof.
    fn deviation(&self) -> f64 {
        let estimate = self.estimate();
        let squares = self.squares + self.unseen;
        (squares / (self.count + 1.0) - estimate * estimate).max(self.unseen / (self.count + 1.0)).sqrt()
    }

    fn reach(&self, alpha: f64) -> f64 {
        if self.count <= 0.0 {
            return f64::INFINITY;
        }
        let grown = self.count * self.tuning + 1.0;
        let width = 2.0 * grown / (self.count * self.count * self.tuning) * (grown.sqrt() / alpha).ln();
        self.deviation() * width.max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_the_difference_of_means() {
        let mut difference = Difference::new(1000, 0.05);
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..200_000 {
            let is_new = rng.f64() < 0.3;
            let number = f64::from(u8::from(rng.f64() < if is_new { 0.25 } else { 0.2 }));
            difference.take(number, is_new, 0.3);
        }
        assert!((difference.estimate() - 0.05).abs() < 0.01, "{}", difference.estimate());
        assert!(difference.upper(0.05) > 0.05 && difference.upper(0.05) < 0.07, "{}", difference.upper(0.05));
    }

    #[test]
    fn failures_that_come_first_count_as_much() {
        let after = |mut difference: Difference| {
            // Of 1,000 clients of each configuration, 100 of the new one fail, and they come first.
            (0..100).for_each(|_| difference.take(1.0, true, 0.5));
            (0..900).for_each(|_| difference.take(0.0, true, 0.5));
            (0..1000).for_each(|_| difference.take(0.0, false, 0.5));
            difference.estimate()
        };
        assert!((after(Difference::of_rare(1000, 0.05)) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn no_failure_in_few_clients_is_no_proof() {
        let mut difference = Difference::new(1000, 0.05);
        assert!(difference.upper(0.05).is_infinite());
        for client in 0..100 {
            difference.take(0.0, client % 2 == 0, 0.5);
        }
        // Three of fifty is what an exact bound would still allow.
        assert!(difference.upper(0.05) > 0.03, "{}", difference.upper(0.05));
    }
}
