//! Canaries of nothing and of harm, with clients that differ more from each other than their requests do.

use crate::judge::{CanaryJudge, CanaryQuestion, Judgement};
use crate::outcome::{ClientOutcome, QUANTILES};

/// A normal number (Box and Muller).
pub(crate) fn normal(rng: &mut fastrand::Rng) -> f64 {
    let (one, two) = (1.0 - rng.f64(), rng.f64());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos()
}

/// The harm that the new configuration does.
#[derive(Clone, Copy)]
pub(crate) struct Planted {
    /// Latencies are this many times as long.
    pub(crate) slower: f64,
    /// Clients fail this many times as often.
    pub(crate) failing: f64,
}

pub(crate) const NOTHING: Planted = Planted { slower: 1.0, failing: 1.0 };
/// A client fails with this probability.
const FAILING: f64 = 0.004;

/// The latencies of the old configuration, as the edge keeps them: counts by their logarithm.
struct Old {
    counts: [u64; 400],
    all: u64,
}

impl Old {
    fn place(latency: f64) -> usize {
        (((latency.ln() + 8.0) * 25.0).clamp(0.0, 399.0)) as usize
    }

    fn take(&mut self, latency: f64) {
        if let Some(count) = self.counts.get_mut(Old::place(latency)) {
            *count += 1;
            self.all += 1;
        }
    }

    /// The part of the requests that were faster; half of those in the same place.
    fn rank(&self, latency: f64) -> f64 {
        let place = Old::place(latency);
        let below: u64 = self.counts.iter().take(place).sum();
        let same = self.counts.get(place).copied().unwrap_or_default();
        if self.all == 0 { 0.5 } else { (below as f64 + same as f64 / 2.0) / self.all as f64 }
    }

    fn quantile(&self, part: f64) -> usize {
        let mut sum = 0;
        for (place, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum as f64 >= part * self.all as f64 {
                return place;
            }
        }
        399
    }
}

/// The judgement after at most `most` clients, with the number of clients and of harmed clients.
pub(crate) fn canary(seed: u64, share: f64, planted: Planted, most: u64) -> (Judgement, u64, u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut judge = CanaryJudge::new(CanaryQuestion::default());
    let mut old = Old { counts: [0; 400], all: 0 };
    let mut harmed = 0;
    for client in 0..most {
        let is_new = rng.f64() < share;
        // A drift over time, a client's own network, and the request's own chance: a third of the variance is the client's.
        let drift = 0.3 * (client as f64 / 700.0).sin();
        let own = drift + 0.57 * normal(&mut rng);
        let requests = ((1.0 - rng.f64()).powf(-0.8).min(60.0)) as u32;
        let limits = QUANTILES.map(|part| old.quantile(part));
        let (mut slow, mut ranks) = ([0; 3], 0.0);
        let mut own_latencies = Vec::new();
        for _ in 0..requests {
            let latency = (own + 0.81 * normal(&mut rng)).exp() * if is_new { planted.slower } else { 1.0 };
            ranks += old.rank(latency);
            for (limit, count) in limits.iter().zip(&mut slow) {
                *count += u32::from(Old::place(latency) > *limit);
            }
            own_latencies.push(latency);
        }
        if !is_new {
            own_latencies.iter().for_each(|latency| old.take(*latency));
        }
        let failing = FAILING * if is_new { planted.failing } else { 1.0 };
        let failed = u32::from(rng.f64() < failing);
        harmed += u64::from(is_new && failed > 0);
        judge.take(&ClientOutcome { is_new, share, requests, failed, refused: 0, resets: 0, ranks, slow });
        match judge.judgement() {
            Judgement::Undecided => {}
            judgement => return (judgement, client + 1, harmed),
        }
    }
    (Judgement::Undecided, most, harmed)
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
