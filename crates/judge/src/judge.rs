//! All evidence together, and the judgement.

use crate::bet::{Larger, MoreOften};
use crate::interval::Difference;
use crate::outcome::{ASPECTS, Aspect, ClientOutcome};

/// Clients of each configuration before an interval is believed: it is a limit theorem.
pub const CLIENTS_MIN: u64 = 100;
/// Wealth at which harm is gross: nobody waits for another look.
pub const GROSS: f64 = 1_000.0;

/// The weight of each aspect in the evidence of harm, in the order of [`Aspect::ALL`]. They sum to 1: a weighted mean of
/// fair bets is a fair bet, so nothing is corrected for looking at seven of them.
pub(crate) const WEIGHTS: [f64; ASPECTS] = [0.4, 0.1, 0.2, 0.05, 0.05, 0.1, 0.1];

/// The question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanaryQuestion {
    /// The probability of calling harmless harmful, over all moments together.
    pub alpha: f64,
    /// The probability of calling harm beyond a margin harmless.
    pub beta: f64,
    /// The margin of each aspect, in the order of [`Aspect::ALL`]: clients that met it, or slow requests, of all.
    pub margins: [f64; ASPECTS],
    /// The number of clients for which the intervals are tightest.
    pub planned: u64,
}

impl Default for CanaryQuestion {
    fn default() -> CanaryQuestion {
        CanaryQuestion {
            alpha: 0.025,
            beta: 0.05,
            margins: [0.005, 0.03, 0.03, 0.05, 0.025, 0.01, 0.005],
            planned: 4_000,
        }
    }
}

/// The judgement at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judgement {
    /// Neither is shown.
    Undecided,
    /// The new configuration harms clients.
    Harm(Harm),
    /// Harm beyond the margins is excluded.
    NoHarm,
}

/// Harm that was shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// The aspect with the most evidence.
    pub aspect: Aspect,
    /// The evidence: at most 1 client in this many canaries of nothing sees as much.
    pub wealth: f64,
    /// It is beyond [`GROSS`].
    pub is_gross: bool,
}

/// Numbers of one configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Clients whose window has closed.
    pub clients: u64,
    /// Their requests.
    pub requests: u64,
    /// Sums over clients, in the order of [`Aspect::ALL`]; divided by `clients`, the mean.
    pub harm: [f64; ASPECTS],
}

impl Tally {
    /// Clients that met something that a client meets or does not meet.
    pub(crate) fn met(&self, aspect: Aspect) -> u64 {
        Aspect::ALL.iter().zip(self.harm).find(|(own, _)| **own == aspect).map_or(0, |(_, sum)| sum as u64)
    }
}

/// The judge of one canary.
#[derive(Clone, Debug)]
pub struct CanaryJudge {
    question: CanaryQuestion,
    errors: MoreOften,
    resets: MoreOften,
    refused: Larger,
    slower: Larger,
    slow: [Larger; 3],
    differences: [Difference; ASPECTS],
    /// Of the old configuration and of the new one.
    tallies: [Tally; 2],
    /// Clients of each configuration whose latencies were compared.
    ranked: [u64; 2],
    /// Wealth that was once reached stays reached.
    shown: Option<Harm>,
}

impl CanaryJudge {
    /// A judge that has seen nobody.
    pub fn new(question: CanaryQuestion) -> CanaryJudge {
        let difference = |aspect: Aspect| match aspect {
            // A failure closes the window at once, so the order of the clients depends on it: no mean of earlier ones.
            Aspect::Errors | Aspect::Resets => Difference::of_rare(question.planned, question.beta),
            _ => Difference::new(question.planned, question.beta),
        };
        CanaryJudge {
            question,
            errors: MoreOften::new(),
            resets: MoreOften::new(),
            refused: Larger::new(),
            slower: Larger::new(),
            slow: std::array::from_fn(|_| Larger::new()),
            differences: Aspect::ALL.map(difference),
            tallies: [Tally::default(); 2],
            ranked: [0; 2],
            shown: None,
        }
    }

    /// Takes the outcome of a client.
    pub fn take(&mut self, outcome: &ClientOutcome) {
        let (is_new, share) = (outcome.is_new, outcome.coin());
        if outcome.failed > 0 {
            self.errors.take(is_new, share);
        }
        if outcome.resets > 0 {
            self.resets.take(is_new, share);
        }
        self.refused.take(outcome.harm(Aspect::Refused), is_new, share);
        if outcome.is_ranked {
            self.ranked[usize::from(is_new)] += 1;
            self.slower.take(outcome.harm(Aspect::Slower), is_new, share);
            for (quantile, bet) in self.slow.iter_mut().enumerate() {
                bet.take(outcome.harm(Aspect::Slow(quantile)), is_new, share);
            }
        }
        let [old, new] = &mut self.tallies;
        let tally = if is_new { new } else { old };
        tally.clients += 1;
        tally.requests += u64::from(outcome.requests);
        for ((aspect, difference), sum) in Aspect::ALL.iter().zip(&mut self.differences).zip(&mut tally.harm) {
            if aspect.is_of_speed() && !outcome.is_ranked {
                continue;
            }
            let harm = outcome.harm(*aspect);
            difference.take(harm, is_new, share);
            *sum += harm;
        }
        self.look();
    }

    fn look(&mut self) {
        let wealth = self.wealth();
        if wealth < 1.0 / self.question.alpha || self.shown.is_some_and(|shown| shown.is_gross) {
            return;
        }
        if self.shown.is_none() || wealth >= GROSS {
            self.shown = Some(Harm { aspect: self.foremost(), wealth, is_gross: wealth >= GROSS });
        }
    }

    /// The evidence of harm: 1 at first; beyond 1/α it is shown.
    pub fn wealth(&self) -> f64 {
        Aspect::ALL.iter().zip(WEIGHTS).map(|(aspect, weight)| weight * self.wealth_of(*aspect)).sum()
    }

    /// The evidence of harm in one aspect.
    pub fn wealth_of(&self, aspect: Aspect) -> f64 {
        match aspect {
            Aspect::Errors => self.errors.wealth(),
            Aspect::Resets => self.resets.wealth(),
            Aspect::Refused => self.refused.wealth(),
            Aspect::Slower => self.slower.wealth(),
            Aspect::Slow(quantile) => self.slow.get(quantile).map_or(1.0, Larger::wealth),
        }
    }

    fn foremost(&self) -> Aspect {
        let part = |at: usize, aspect: Aspect| WEIGHTS.get(at).copied().unwrap_or_default() * self.wealth_of(aspect);
        let mut found = (Aspect::Errors, f64::NEG_INFINITY);
        for (at, aspect) in Aspect::ALL.into_iter().enumerate() {
            if part(at, aspect) > found.1 {
                found = (aspect, part(at, aspect));
            }
        }
        found.0
    }

    /// The estimate of the harm in one aspect and the upper end of its interval, as parts of 1.
    pub fn difference(&self, aspect: Aspect) -> (f64, f64) {
        let at = Aspect::ALL.iter().position(|one| *one == aspect).and_then(|at| self.differences.get(at));
        at.map_or((0.0, f64::INFINITY), |one| (one.estimate(), one.upper(self.question.beta)))
    }

    /// The numbers of the old configuration and of the new one.
    pub fn tallies(&self) -> [Tally; 2] {
        self.tallies
    }

    /// The aspects whose margin is not excluded yet.
    pub fn open(&self) -> impl Iterator<Item = Aspect> {
        let margins = self.question.margins;
        Aspect::ALL
            .into_iter()
            .zip(margins)
            .filter(|(aspect, margin)| self.difference(*aspect).1 >= *margin)
            .map(|one| one.0)
    }

    /// Whether limit theorems may be believed. A client whose latencies nobody could compare is no proof of speed.
    pub(crate) fn is_enough(&self) -> bool {
        self.ranked.iter().all(|clients| *clients >= CLIENTS_MIN)
    }

    /// Gross harm, which waits for no planned look.
    pub fn gross(&self) -> Judgement {
        self.shown.filter(|harm| harm.is_gross).map_or(Judgement::Undecided, Judgement::Harm)
    }

    /// The judgement of a planned look that has found harm: as unlikely as all looks together.
    pub(crate) fn harm_at_look(&self, aspect: Aspect) -> Judgement {
        Judgement::Harm(Harm { aspect, wealth: 1.0 / self.question.alpha, is_gross: false })
    }

    /// The margin of each aspect, in the order of [`Aspect::ALL`].
    pub(crate) fn margins(&self) -> [f64; ASPECTS] {
        self.question.margins
    }

    /// The estimate of the harm in one aspect, and its standard error; `None` without clients.
    pub(crate) fn standing(&self, aspect: Aspect) -> Option<(f64, f64)> {
        let (_, difference) = Aspect::ALL.iter().zip(&self.differences).find(|(own, _)| **own == aspect)?;
        difference.error().map(|error| (difference.estimate(), error))
    }

    /// Whether harm was shown.
    pub(crate) fn is_harm_shown(&self) -> bool {
        self.shown.is_some()
    }

    /// The judgement now. Harm that was shown once stays shown.
    pub fn judgement(&self) -> Judgement {
        if let Some(harm) = self.shown {
            return Judgement::Harm(harm);
        }
        // Each aspect has to be excluded by itself, so that no correction is due (an intersection-union test).
        if self.is_enough() && self.open().next().is_none() { Judgement::NoHarm } else { Judgement::Undecided }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    fn outcome(is_new: bool, failed: u32) -> ClientOutcome {
        ClientOutcome {
            is_new,
            share: 0.1,
            requests: 10,
            failed,
            refused: 0,
            resets: 0,
            is_ranked: true,
            ranks: 5.0,
            slow: [5, 0, 0],
        }
    }

    #[test]
    fn gross_harm_needs_ten_harmed_clients_at_most() {
        for share in [0.01, 0.1, 0.5] {
            let mut judge = CanaryJudge::new(CanaryQuestion::default());
            let mut harmed = 0;
            while judge.judgement() == Judgement::Undecided {
                judge.take(&ClientOutcome { share, ..outcome(true, 3) });
                harmed += 1;
            }
            let Judgement::Harm(harm) = judge.judgement() else { panic!("{:?}", judge.judgement()) };
            assert_eq!(harm.aspect, Aspect::Errors);
            assert!(harmed <= 10, "{share}: {harmed}");
        }
    }

    #[test]
    fn refused_requests_are_harm() {
        let mut judge = CanaryJudge::new(CanaryQuestion::default());
        let mut clients = 0;
        while judge.judgement() == Judgement::Undecided {
            clients += 1;
            let is_new = clients % 5 == 0;
            let refused = if is_new { 10 } else { clients % 2 };
            judge.take(&ClientOutcome { share: 0.2, refused, ..outcome(is_new, 0) });
        }
        let Judgement::Harm(harm) = judge.judgement() else { panic!("{:?}", judge.judgement()) };
        assert_eq!(harm.aspect, Aspect::Refused);
        assert!(clients < 250, "{clients}");
    }

    #[test]
    fn harm_stays_shown() {
        let mut judge = CanaryJudge::new(CanaryQuestion::default());
        (0..6).for_each(|_| judge.take(&outcome(true, 1)));
        assert!(matches!(judge.judgement(), Judgement::Harm(_)));
        (0..1000).for_each(|_| judge.take(&outcome(false, 1)));
        assert!(judge.wealth() < 1.0);
        assert!(matches!(judge.judgement(), Judgement::Harm(_)));
    }

    #[test]
    fn clients_without_ranks_prove_nothing() {
        let mut judge = CanaryJudge::new(CanaryQuestion { margins: [1.0; ASPECTS], ..CanaryQuestion::default() });
        let unranked = |is_new| ClientOutcome { is_ranked: false, share: 0.5, ..outcome(is_new, 0) };
        (0..10_000).for_each(|client| judge.take(&unranked(client % 2 == 0)));
        assert_eq!(judge.judgement(), Judgement::Undecided);
        assert!(judge.difference(Aspect::Slower).1.is_infinite() && judge.difference(Aspect::Errors).1 < 0.01);
    }

    #[test]
    fn few_clients_prove_nothing() {
        let mut judge = CanaryJudge::new(CanaryQuestion { margins: [1.0; ASPECTS], ..CanaryQuestion::default() });
        (0..99).for_each(|_| judge.take(&outcome(true, 0)));
        (0..5000).for_each(|_| judge.take(&outcome(false, 0)));
        assert_eq!(judge.judgement(), Judgement::Undecided);
        judge.take(&outcome(true, 0));
        assert_ne!(judge.judgement(), Judgement::Undecided);
    }
}
