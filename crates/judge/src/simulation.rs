//! Canaries of nothing and of harm, with clients that differ more from each other than their requests do.

#[cfg(test)]
use crate::forecast::{self, ShareStep};
use crate::forecast::{Sample, SeenClient, normal};
use crate::horizon::LookBounds;
#[cfg(test)]
use crate::horizon::planned;
use crate::judge::{CanaryJudge, CanaryQuestion, Judgement};
use crate::latencies::{Latencies, place};
use crate::outcome::ClientOutcome;

/// The harm that the new configuration does.
#[derive(Clone, Copy)]
pub(crate) struct Planted {
    /// Latencies are this many times as long.
    pub(crate) slower: f64,
    /// Clients fail this many times as often.
    pub(crate) failing: f64,
}

pub(crate) const NOTHING: Planted = Planted { slower: 1.0, failing: 1.0 };
/// A usual latency.
const USUAL_US: f64 = 50_000.0;
/// A client fails with this probability.
const FAILING: f64 = 0.004;

/// Clients, one after another.
pub(crate) struct Population {
    rng: fastrand::Rng,
    come: u64,
}

impl Population {
    pub(crate) fn new(seed: u64) -> Population {
        Population { rng: fastrand::Rng::with_seed(seed), come: 0 }
    }

    /// The next client: the places of its latencies, and whether it failed.
    pub(crate) fn next(&mut self, harm: Planted) -> (Vec<u16>, bool) {
        let rng = &mut self.rng;
        // A drift over time, a client's own network, and the request's own chance: a third of the variance is the client's.
        let own = 0.3 * (self.come as f64 / 700.0).sin() + 0.57 * normal(rng);
        self.come += 1;
        let requests = ((1.0 - rng.f64()).powf(-0.8).min(60.0)) as u32;
        let latency = |rng: &mut fastrand::Rng| USUAL_US * (own + 0.81 * normal(rng)).exp() * harm.slower;
        let places = (0..requests).map(|_| place(latency(rng) as u64)).collect();
        (places, rng.f64() < FAILING * harm.failing)
    }

    /// A look at this many clients.
    pub(crate) fn look(&mut self, clients: u64) -> (Sample, Latencies) {
        let (mut sample, mut known) = (Sample::new(0), Latencies::default());
        for _ in 0..clients {
            let (places, has_failed) = self.next(NOTHING);
            known.add(&places);
            sample.take(SeenClient { places, has_failed, ..SeenClient::default() });
        }
        (sample, known)
    }

    /// The judgement after at most `most` clients, with the number of clients and of harmed clients. `known` are the latencies
    /// that were seen before.
    pub(crate) fn canary(
        &mut self,
        known: Latencies,
        share: f64,
        planted: Planted,
        most: u64,
    ) -> (Judgement, u64, u64) {
        self.judged(known, share, planted, most, |judge, _| judge.judgement())
    }

    /// The same at planned looks.
    pub(crate) fn canary_with_looks(
        &mut self,
        share: f64,
        planted: Planted,
        looks: &[(u64, LookBounds)],
    ) -> (Judgement, u64, u64) {
        let most = looks.last().map_or(0, |look| look.0);
        self.judged(Latencies::default(), share, planted, most, |judge, client| {
            let bounds = looks.iter().find(|(clients, _)| *clients == client);
            bounds.map_or_else(|| judge.gross(), |(_, bounds)| bounds.judge(judge, share))
        })
    }

    fn judged(
        &mut self,
        mut known: Latencies,
        share: f64,
        planted: Planted,
        most: u64,
        mut look: impl FnMut(&CanaryJudge, u64) -> Judgement,
    ) -> (Judgement, u64, u64) {
        let mut judge = CanaryJudge::new(CanaryQuestion::default());
        let mut harmed = 0;
        for client in 0..most {
            let is_new = self.rng.f64() < share;
            let (places, has_failed) = self.next(if is_new { planted } else { NOTHING });
            let (requests, failed) = (places.len() as u32, u32::from(has_failed));
            let mut met = ClientOutcome { is_new, share, requests, failed, ..ClientOutcome::default() };
            met.rank(&known, &places);
            if !is_new {
                known.add(&places);
            }
            harmed += u64::from(is_new && has_failed);
            judge.take(&met);
            match look(&judge, client + 1) {
                Judgement::Undecided => {}
                judgement => return (judgement, client + 1, harmed),
            }
        }
        (Judgement::Undecided, most, harmed)
    }
}

/// A canary without a look.
pub(crate) fn canary(seed: u64, share: f64, planted: Planted, most: u64) -> (Judgement, u64, u64) {
    Population::new(seed).canary(Latencies::default(), share, planted, most)
}

/// The canaries that were rolled back: after how many clients, and of those that got the new configuration, how many failed.
pub(crate) fn rolled_back(seeds: std::ops::Range<u64>, share: f64, planted: Planted, most: u64) -> Vec<(u64, u64)> {
    let runs = seeds.map(|seed| canary(seed, share, planted, most));
    runs.filter(|(judgement, ..)| matches!(judgement, Judgement::Harm(_)))
        .map(|(_, after, harmed)| (after, harmed))
        .collect()
}

#[test]
fn a_canary_of_nothing_is_seldom_rolled_back() {
    for share in [0.1, 0.5] {
        let found = rolled_back(0..300, share, NOTHING, 2_000);
        assert!(found.len() <= 7, "{share}: {} of 300", found.len());
    }
}

#[test]
fn planned_looks_seldom_roll_back_nothing_and_prove_it_sooner() {
    let looks = planned(&[800, 1_600, 2_400, 3_200, 4_000]);
    let runs: Vec<Judgement> =
        (0..100).map(|seed| Population::new(seed).canary_with_looks(0.5, NOTHING, &looks).0).collect();
    let count = |wanted: fn(&Judgement) -> bool| runs.iter().filter(|judgement| wanted(judgement)).count();
    let (harm, no_harm) = (count(|one| matches!(one, Judgement::Harm(_))), count(|one| *one == Judgement::NoHarm));
    assert!(harm <= 7 && no_harm >= 50, "{harm} {no_harm}");
}

#[test]
fn harm_is_found_and_never_promoted() {
    let slower = |slower| Planted { slower, ..NOTHING };
    let found = rolled_back(0..40, 0.5, slower(1.3), 3_000);
    assert!(found.len() >= 38, "{} of 40", found.len());
    let tenfold = Planted { failing: 10.0, ..NOTHING };
    let mut found = rolled_back(0..40, 0.1, tenfold, 20_000);
    assert!(found.len() >= 39, "{} of 40", found.len());
    found.sort_by_key(|(_, harmed)| *harmed);
    let median = found.get(found.len() / 2).map_or(u64::MAX, |(_, harmed)| *harmed);
    assert!(median <= 8, "{median}");
    for seed in 0..40 {
        let (judgement, after, _) = canary(seed, 0.5, slower(1.5), 6_000);
        assert_ne!(judgement, Judgement::NoHarm, "seed {seed}, after {after}");
    }
}

#[test]
fn a_canary_of_nothing_is_promoted() {
    let runs = (0..20).map(|seed| canary(seed, 0.5, NOTHING, 12_000));
    let promoted = runs.filter(|(judgement, ..)| *judgement == Judgement::NoHarm).count();
    assert!(promoted >= 16, "{promoted} of 20");
}

#[test]
fn an_announced_number_holds() {
    let steps = [ShareStep { share: 0.5, clients: u64::MAX }];
    let holds = |seed| {
        let mut population = Population::new(seed);
        let (sample, known) = population.look(1_000);
        let number = sample.clients_until(forecast::PlantedHarm::Slower(1.3), &known, &steps, seed).unwrap_or_default();
        let slower = Planted { slower: 1.3, ..NOTHING };
        let (judgement, after, _) = population.canary(known, 0.5, slower, 3_000);
        (200..3_000).contains(&number) && matches!(judgement, Judgement::Harm(_)) && after <= number
    };
    let held = (0..20).filter(|seed| holds(*seed)).count();
    assert!(held >= 14, "{held} of 20");
}
