//! How many clients a question needs: the judge itself judges clients that were seen, drawn again and again, with the harm
//! put in.
//!
//! No formula is needed for the law of the latencies and for their clustering. The answer is the number of clients within which
//! nine of ten of these canaries are decided, and it promises eight of ten: clients of an hour differ more than those of a
//! look. Each run draws its clients from a sample of the clients of its own (the bootstrap), because the clients that were seen
//! are chance too.

use crate::horizon::LookBounds;
use crate::judge::{CanaryJudge, CanaryQuestion, Judgement};
use crate::latencies::{Latencies, PER_E, PLACES};
use crate::outcome::{ClientOutcome, SHARE_MIN};

/// Clients that are kept, at most; each further one takes the place of a kept one by chance.
pub const SEEN_MAX: usize = 2_000;
/// Fewer clients are no sample.
const SEEN_MIN: usize = 20;
/// Clients within which an answer is looked for.
pub const CLIENTS_MAX: u64 = 60_000;
/// Canaries of one question.
const RUNS: usize = 40;
/// Decided canaries that make an answer.
const WANTED: usize = 36;

/// A client that was seen while all clients had the old configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenClient {
    /// The places of its latencies.
    pub places: Vec<u16>,
    /// The part of its requests that were refused.
    pub refused: f64,
    /// A request failed.
    pub has_failed: bool,
    /// An answer was cut.
    pub was_reset: bool,
}

/// A difference between the configurations that is put in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlantedHarm {
    /// None: the question is the proof of no harm.
    Nothing,
    /// Clients of the new configuration fail with this probability.
    Failing(f64),
    /// Latencies are this many times as long.
    Slower(f64),
}

/// A share of a ramp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareStep {
    /// The probability of the new configuration.
    pub share: f64,
    /// Clients until the next share; the last one has no end.
    pub clients: u64,
}

/// A sample of the clients.
#[derive(Clone, Debug)]
pub struct Sample {
    seen: Vec<SeenClient>,
    chance: fastrand::Rng,
    /// Clients in all.
    pub clients: u64,
    /// Those that failed.
    pub failed: u64,
}

impl Sample {
    /// No clients. The same `seed` keeps the same clients.
    pub fn new(seed: u64) -> Sample {
        Sample { seen: Vec::new(), chance: fastrand::Rng::with_seed(seed), clients: 0, failed: 0 }
    }

    /// Takes a client. Chance decides whether the client is kept (Vitter's algorithm R).
    pub fn take(&mut self, seen: SeenClient) {
        self.clients += 1;
        self.failed += u64::from(seen.has_failed);
        if self.seen.len() < SEEN_MAX {
            self.seen.push(seen);
        } else if let Some(kept) = self.seen.get_mut(self.chance.u64(..self.clients) as usize) {
            *kept = seen;
        }
    }

    /// Whether clients and latencies are enough to draw from.
    pub fn is_enough(&self, known: &Latencies) -> bool {
        self.seen.len() >= SEEN_MIN && !known.are_few()
    }

    /// The part of the clients that failed.
    pub fn failing(&self) -> f64 {
        if self.clients == 0 { 0.0 } else { self.failed as f64 / self.clients as f64 }
    }

    /// The failures that the announcement names: ten times those that were seen, or 1 % of the clients if there were none.
    pub fn ten_times(&self) -> f64 {
        if self.failed == 0 { 0.01 } else { (self.failing() * 10.0).min(1.0) }
    }

    /// Clients until canaries with this difference are decided: rolled back, or without a difference proven harmless. `None`
    /// beyond [`CLIENTS_MAX`].
    ///
    /// `known` are the latencies of the sample. The same `seed` has the same answer.
    pub fn clients_until(
        &self,
        planted: PlantedHarm,
        known: &Latencies,
        steps: &[ShareStep],
        seed: u64,
    ) -> Option<u64> {
        self.decided(planted, known, steps, None, seed)
    }

    /// The same of canaries that are judged at planned looks only.
    pub fn clients_until_look(
        &self,
        planted: PlantedHarm,
        known: &Latencies,
        share: f64,
        looks: &[(u64, LookBounds)],
        seed: u64,
    ) -> Option<u64> {
        self.decided(planted, known, &[ShareStep { share, clients: u64::MAX }], Some(looks), seed)
    }

    fn decided(
        &self,
        planted: PlantedHarm,
        known: &Latencies,
        steps: &[ShareStep],
        looks: Option<&[(u64, LookBounds)]>,
        seed: u64,
    ) -> Option<u64> {
        let drawn = self.outcomes(planted, known, seed);
        let mut runs: Vec<Run> = (0..RUNS).map(|number| self.run(planted, seed ^ (number as u64 + 1) << 32)).collect();
        let (mut at, mut left) = (0, steps.first()?.clients);
        let most = looks.map_or(CLIENTS_MAX, |looks| looks.last().map_or(0, |last| last.0.min(CLIENTS_MAX)));
        for client in 1..=most {
            if left == 0 && at + 1 < steps.len() {
                at += 1;
                left = steps.get(at)?.clients;
            }
            left = left.saturating_sub(1);
            let share = steps.get(at)?.share.clamp(SHARE_MIN, 1.0 - SHARE_MIN);
            let may_promote = at + 1 == steps.len() && client % LOOK_EVERY == 0;
            let planned = looks.map(|looks| looks.iter().find(|(clients, _)| *clients == client).map(|look| look.1));
            runs.iter_mut().for_each(|run| {
                if run.take(&drawn, share) {
                    run.look(planted, may_promote, planned, share);
                }
            });
            if runs.iter().filter(|run| run.is_found).count() >= WANTED {
                return Some(client);
            }
            if runs.iter().filter(|run| run.has_missed).count() > RUNS - WANTED {
                return None;
            }
        }
        None
    }

    /// The outcome of each client with the old configuration and with the new one.
    fn outcomes(&self, planted: PlantedHarm, known: &Latencies, seed: u64) -> Vec<[ClientOutcome; 2]> {
        let mut chance = fastrand::Rng::with_seed(seed);
        let longer = if let PlantedHarm::Slower(times) = planted { times.max(0.0).ln() * PER_E } else { 0.0 };
        let outcome = |seen: &SeenClient, is_new: bool, chance: &mut fastrand::Rng| {
            let (requests, resets) = (seen.places.len() as u32, u32::from(seen.was_reset));
            let mut outcome = ClientOutcome { is_new, requests, resets, ..ClientOutcome::default() };
            // A place is a range of latencies: where this one was in it is not known.
            let moved = |place: &u16| (f64::from(*place) + longer + chance.f64()).min((PLACES - 1) as f64) as u16;
            match is_new {
                true => outcome.rank(known, &seen.places.iter().map(moved).collect::<Vec<_>>()),
                false => outcome.rank(known, &seen.places),
            }
            outcome.refused = (seen.refused * f64::from(outcome.requests)).round() as u32;
            outcome
        };
        self.seen.iter().map(|seen| [false, true].map(|is_new| outcome(seen, is_new, &mut chance))).collect()
    }

    fn run(&self, planted: PlantedHarm, seed: u64) -> Run {
        let mut chance = fastrand::Rng::with_seed(seed);
        let count = self.seen.len();
        let drawn = (0..count).map(|_| chance.usize(..count.max(1)) as u32).collect();
        // The probability that a client fails is not known. This run draws one that fits the failures that were seen: from the Gamma
        // law, with Jeffreys' prior.
        let gamma: f64 = (0..self.failed.min(FAILED_MAX)).map(|_| -(1.0 - chance.f64()).ln()).sum();
        let half = normal(&mut chance).powi(2) / 2.0;
        let scale = self.failed as f64 / self.failed.clamp(1, FAILED_MAX) as f64;
        let failing = ((gamma * scale.max(1.0) + half) / self.clients.max(1) as f64).min(1.0);
        let harmed = match planted {
            PlantedHarm::Failing(to) if self.failed > 0 => (failing * to / self.failing()).min(1.0),
            PlantedHarm::Failing(to) => (to + failing).min(1.0),
            _ => failing,
        };
        let judge = CanaryJudge::new(CanaryQuestion::default());
        Run { judge, chance, drawn, failing: [failing, harmed], is_found: false, has_missed: false }
    }
}

/// A proof is looked for at each client with a number that this divides.
const LOOK_EVERY: u64 = 8;
/// Failed clients that are drawn one by one.
const FAILED_MAX: u64 = 1_000;

/// A normal number (Box and Muller 1958).
pub fn normal(chance: &mut fastrand::Rng) -> f64 {
    let (one, two) = (1.0 - chance.f64(), chance.f64());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
}

/// One canary.
struct Run {
    judge: CanaryJudge,
    chance: fastrand::Rng,
    /// The clients of the sample that come in this run.
    drawn: Vec<u32>,
    /// The probability that a client fails, with the old configuration and with the new one.
    failing: [f64; 2],
    is_found: bool,
    /// The canary had the other end.
    has_missed: bool,
}

impl Run {
    /// Takes the next client. False if the canary has ended.
    fn take(&mut self, outcomes: &[[ClientOutcome; 2]], share: f64) -> bool {
        if self.is_found || self.has_missed {
            return false;
        }
        let is_new = self.chance.f64() < share;
        let index = self.drawn.get(self.chance.usize(..self.drawn.len().max(1))).copied().unwrap_or_default();
        let lane = usize::from(is_new);
        let failed = u32::from(self.chance.f64() < self.failing.get(lane).copied().unwrap_or_default());
        if let Some(outcome) = outcomes.get(index as usize).and_then(|both| both.get(lane)) {
            self.judge.take(&ClientOutcome { share, failed, ..*outcome });
        }
        true
    }

    /// Asks for the judgement: at each client, or if looks are `planned`, at these only.
    fn look(&mut self, planted: PlantedHarm, may_promote: bool, planned: Option<Option<LookBounds>>, share: f64) {
        let judgement = match planned {
            None if self.judge.is_harm_shown() || may_promote => self.judge.judgement(),
            None => return,
            Some(None) => self.judge.gross(),
            Some(Some(bounds)) => bounds.judge(&self.judge, share),
        };
        let is_harm = matches!(judgement, Judgement::Harm(_));
        match planted {
            PlantedHarm::Nothing => (self.is_found, self.has_missed) = (judgement == Judgement::NoHarm, is_harm),
            _ => (self.is_found, self.has_missed) = (is_harm, judgement == Judgement::NoHarm),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::horizon::planned;
    use crate::latencies::place;

    /// Clients with latencies of their own, some of which fail.
    fn sample(clients: u64, failing: f64, seed: u64) -> (Sample, Latencies) {
        let (mut rng, mut sample, mut known) =
            (fastrand::Rng::with_seed(seed), Sample::new(seed), Latencies::default());
        for _ in 0..clients {
            let own = 0.57 * normal(&mut rng);
            let places: Vec<u16> = (0..rng.usize(1..9))
                .map(|_| place((50_000.0 * (own + 0.81 * normal(&mut rng)).exp()) as u64))
                .collect();
            known.add(&places);
            let seen = SeenClient { places, has_failed: rng.f64() < failing, ..SeenClient::default() };
            sample.take(seen);
        }
        (sample, known)
    }

    const HALF: [ShareStep; 1] = [ShareStep { share: 0.5, clients: u64::MAX }];

    #[test]
    fn larger_harm_needs_fewer_clients() {
        let (sample, known) = sample(500, 0.01, 1);
        let until = |planted| sample.clients_until(planted, &known, &HALF, 7);
        let (slow, slower) = (until(PlantedHarm::Slower(1.3)), until(PlantedHarm::Slower(2.0)));
        assert!(slow.is_some_and(|slow| (200..2_000).contains(&slow)), "{slow:?}");
        assert!(slower < slow && slower.is_some(), "{slower:?} {slow:?}");
        let (failing, worse) = (until(PlantedHarm::Failing(sample.ten_times())), until(PlantedHarm::Failing(1.0)));
        assert!(worse < failing && failing.is_some_and(|failing| failing < 1_000), "{worse:?} {failing:?}");
        assert_eq!(until(PlantedHarm::Slower(1.3)), slow, "the same seed");
    }

    #[test]
    fn a_ramp_needs_more_clients_than_its_last_share() {
        let (sample, known) = sample(500, 0.01, 2);
        let ramp = [ShareStep { share: 0.01, clients: 1_000 }, HALF[0]];
        let (alone, after) = (
            sample.clients_until(PlantedHarm::Slower(1.3), &known, &HALF, 7),
            sample.clients_until(PlantedHarm::Slower(1.3), &known, &ramp, 7),
        );
        assert!(after > alone && after.is_some_and(|after| after > 1_000), "{alone:?} {after:?}");
    }

    #[test]
    fn planned_looks_need_fewer_clients_for_a_proof() {
        let (sample, known) = sample(1_000, 0.002, 6);
        let bets = sample.clients_until(PlantedHarm::Nothing, &known, &HALF, 7);
        let looks = planned(&[800, 1_600, 2_400, 3_200, 4_000]);
        let until = |planted| sample.clients_until_look(planted, &known, 0.5, &looks, 7);
        let sooner = until(PlantedHarm::Nothing);
        assert!(sooner.is_some_and(|sooner| looks.iter().any(|look| look.0 == sooner)), "{sooner:?}");
        assert!(bets.is_none_or(|bets| bets > sooner.unwrap_or_default()), "{bets:?} {sooner:?}");
        assert!(until(PlantedHarm::Failing(1.0)).is_some_and(|gross| gross < 100), "gross harm waits for no look");
    }

    #[test]
    fn few_clients_are_no_sample_and_a_tiny_share_has_no_answer() {
        let (few, known) = sample(SEEN_MIN as u64 - 1, 0.0, 3);
        assert!(!few.is_enough(&known));
        assert_eq!((few.failing(), few.ten_times()), (0.0, 0.01));
        let (sample, known) = sample(200, 0.0, 4);
        assert!(sample.is_enough(&known) && !sample.is_enough(&Latencies::default()));
        let rare = [ShareStep { share: 0.001, clients: u64::MAX }];
        assert_eq!(sample.clients_until(PlantedHarm::Nothing, &known, &rare, 7), None);
    }

    #[test]
    fn a_sample_has_a_bound_and_keeps_late_clients_too() {
        let mut sample = Sample::new(5);
        for number in 0..10 * SEEN_MAX {
            sample.take(SeenClient { refused: f64::from(u8::from(number >= 5 * SEEN_MAX)), ..SeenClient::default() });
        }
        let late = sample.seen.iter().filter(|seen| seen.refused > 0.0).count();
        assert_eq!((sample.seen.len(), sample.clients), (SEEN_MAX, 10 * SEEN_MAX as u64));
        assert!((800..1_200).contains(&late), "{late}");
    }
}
