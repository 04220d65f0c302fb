//! Bounds for a canary whose looks are planned: group-sequential, by the spending of O'Brien and Fleming in calendar time
//! (Lan and DeMets 1983 and 1989). They need fewer clients than bets, and they hold only at the planned looks.

use statrs::distribution::{Binomial, Continuous, ContinuousCDF, DiscreteCDF, Normal};

use crate::judge::{CanaryJudge, CanaryQuestion, Judgement, WEIGHTS};
use crate::outcome::{ASPECTS, Aspect};

/// Looks of a canary with a planned length.
pub const LOOKS: u32 = 5;
/// Points of the grid on which the density of earlier looks is kept.
const POINTS: usize = 801;
/// The grid reaches this many standard deviations.
const REACH: f64 = 8.0;
const STEP: f64 = 2.0 * REACH / (POINTS - 1) as f64;

/// The bounds of one look, in standard deviations of the estimate at that look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookBounds {
    /// For each aspect, in the order of [`Aspect::ALL`]: harm beyond it is shown.
    harm: [f64; ASPECTS],
    /// A margin that is further away than this is excluded.
    no_harm: f64,
}

/// The bounds of all looks, one after another.
#[derive(Clone, Debug)]
pub struct Horizon {
    harm: Vec<(f64, Spent)>,
    no_harm: Spent,
}

impl Horizon {
    /// Bounds that keep the errors of a question, over all looks and aspects together.
    pub fn new(question: &CanaryQuestion) -> Horizon {
        let mut weights = WEIGHTS.to_vec();
        weights.sort_by(f64::total_cmp);
        weights.dedup();
        let harm = weights.into_iter().map(|weight| (weight, Spent::new(question.alpha * weight))).collect();
        Horizon { harm, no_harm: Spent::new(question.beta) }
    }

    /// The bounds of the next look: `part` of the planned time is over, and `clients` have been judged.
    pub fn next(&mut self, part: f64, clients: u64) -> LookBounds {
        self.harm.iter_mut().for_each(|(_, spent)| spent.look(part, clients as f64));
        self.no_harm.look(part, clients as f64);
        let of = |weight: f64| {
            self.harm.iter().find(|(own, _)| *own == weight).map_or(f64::INFINITY, |(_, spent)| spent.bound)
        };
        LookBounds { harm: WEIGHTS.map(of), no_harm: self.no_harm.bound }
    }
}

/// The bounds of looks after these numbers of clients, evenly spread in time.
pub fn planned(looks: &[u64]) -> Vec<(u64, LookBounds)> {
    let mut horizon = Horizon::new(&CanaryQuestion::default());
    let part = |number: usize| (number + 1) as f64 / looks.len() as f64;
    looks.iter().enumerate().map(|(number, clients)| (*clients, horizon.next(part(number), *clients))).collect()
}

impl LookBounds {
    /// The judgement at this look. The coin has had one `share` all the time.
    pub fn judge(&self, judge: &CanaryJudge, share: f64) -> Judgement {
        if let harm @ Judgement::Harm(_) = judge.gross() {
            return harm;
        }
        if !judge.is_enough() {
            return Judgement::Undecided;
        }
        let each = || Aspect::ALL.into_iter().zip(self.harm).zip(judge.margins());
        let beyond = |aspect: Aspect, bound: f64| {
            let standard = match aspect {
                Aspect::Errors | Aspect::Resets => {
                    let [old, new] = judge.tallies().map(|tally| tally.met(aspect));
                    score(new, old, share)
                }
                _ => judge.standing(aspect).map_or(0.0, |(estimate, error)| estimate / error),
            };
            standard - bound
        };
        let shown = each()
            .map(|((aspect, bound), _)| (aspect, beyond(aspect, bound)))
            .filter(|(_, beyond)| *beyond >= 0.0)
            .max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((aspect, _)) = shown {
            return judge.harm_at_look(aspect);
        }
        let is_excluded = |aspect: Aspect, margin: f64| {
            let standing = judge.standing(aspect);
            standing.is_some_and(|(estimate, error)| estimate + self.no_harm * error < margin)
        };
        if each().all(|((aspect, _), margin)| is_excluded(aspect, margin)) {
            Judgement::NoHarm
        } else {
            Judgement::Undecided
        }
    }
}

/// How far `new` of all clients that met something are from the coin, in standard deviations of a normal number with the same
/// probability. Exact for few clients: a normal approximation would not be.
fn score(new: u64, old: u64, share: f64) -> f64 {
    let (Ok(coin), Ok(normal)) = (Binomial::new(share, new + old), Normal::new(0.0, 1.0)) else { return 0.0 };
    if new == 0 {
        return 0.0;
    }
    let chance = coin.sf(new - 1).clamp(1e-15, 1.0 - 1e-15);
    -normal.inverse_cdf(chance)
}

/// The error that is spent until now, and the paths that have crossed no bound.
#[derive(Clone, Debug)]
struct Spent {
    alpha: f64,
    spent: f64,
    clients: f64,
    /// Of the standardised score at the last look; empty before the first one.
    density: Vec<f64>,
    bound: f64,
}

impl Spent {
    fn new(alpha: f64) -> Spent {
        Spent { alpha, spent: 0.0, clients: 0.0, density: Vec::new(), bound: f64::INFINITY }
    }

    fn look(&mut self, part: f64, clients: f64) {
        self.bound = f64::INFINITY;
        let Ok(normal) = Normal::new(0.0, 1.0) else { return };
        // A look that nobody came before spends nothing.
        if clients <= self.clients {
            return;
        }
        self.density = if self.density.is_empty() {
            (0..POINTS).map(|index| normal.pdf(at(index))).collect()
        } else {
            grown(&self.density, (self.clients / clients).sqrt(), &normal)
        };
        let due = (spending(part.min(1.0), self.alpha, &normal) - self.spent).max(0.0);
        let bound = tail_bound(&self.density, due);
        (self.spent, self.clients, self.bound) = (self.spent + due, clients, at(bound));
        // A path that crosses the bound ends there.
        self.density.iter_mut().skip(bound).for_each(|one| *one = 0.0);
    }
}

fn at(index: usize) -> f64 {
    -REACH + STEP * index as f64
}

/// The part of `alpha` that may be spent until `part` of the time is over.
fn spending(part: f64, alpha: f64, normal: &Normal) -> f64 {
    2.0 * (1.0 - normal.cdf(normal.inverse_cdf(1.0 - alpha / 2.0) / part.sqrt()))
}

/// The density of the next standardised score: `kept` of it is the score before.
fn grown(density: &[f64], kept: f64, normal: &Normal) -> Vec<f64> {
    let spread = (1.0 - kept * kept).sqrt();
    let value = |index: usize| {
        let parts = density.iter().enumerate().filter(|(_, one)| **one > 1e-12);
        let sum: f64 = parts.map(|(from, one)| one * normal.pdf((at(index) - kept * at(from)) / spread)).sum();
        sum * STEP / spread
    };
    (0..POINTS).map(value).collect()
}

/// The first point beyond which at most `due` lies.
fn tail_bound(density: &[f64], due: f64) -> usize {
    let mut sum = 0.0;
    for (index, one) in density.iter().enumerate().rev() {
        sum += one * STEP;
        if sum > due {
            return (index + 1).min(POINTS - 1);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::normal;

    fn bounds(looks: u32, alpha: f64) -> Vec<f64> {
        let mut spent = Spent::new(alpha);
        let each = (1..=looks).map(|look| {
            spent.look(f64::from(look) / f64::from(looks), f64::from(look) * 1000.0);
            spent.bound
        });
        each.collect()
    }

    // R, gsDesign: gsDesign(k = 4, test.type = 1, alpha = 0.025, sfu = sfLDOF)$upper$bound.
    #[test]
    fn bounds_are_those_of_lan_and_demets() {
        let found = bounds(4, 0.025);
        for (one, known) in found.iter().zip([4.332_63, 2.963_13, 2.359_02, 2.014_04]) {
            assert!((one - known).abs() < 0.03, "{found:?}");
        }
        let one = bounds(1, 0.025);
        assert!((one.first().copied().unwrap_or_default() - 1.96).abs() < 0.03, "{one:?}");
    }

    #[test]
    fn a_walk_of_nothing_crosses_as_seldom_as_promised_however_clients_come() {
        // Many clients in the beginning, few later; and a look without any.
        let clients = [3_000.0, 3_000.0, 3_500.0, 3_600.0, 9_000.0];
        let mut spent = Spent::new(0.05);
        let bounds: Vec<(f64, f64)> = clients
            .iter()
            .zip(1..)
            .map(|(clients, look)| {
                spent.look(f64::from(look) / 5.0, *clients);
                (*clients, spent.bound)
            })
            .collect();
        assert_eq!(bounds.get(1).map(|one| one.1), Some(f64::INFINITY));
        let mut rng = fastrand::Rng::with_seed(11);
        let mut crossed = 0;
        for _ in 0..20_000 {
            let (mut score, mut before) = (0.0, 0.0);
            for (clients, bound) in &bounds {
                score += normal(&mut rng) * (clients - before).sqrt();
                before = *clients;
                if score / clients.sqrt() >= *bound {
                    crossed += 1;
                    break;
                }
            }
        }
        assert!((800..1_150).contains(&crossed), "{crossed}");
    }

    #[test]
    fn few_failures_are_judged_exactly() {
        // Five of five at a share of 10 %: one in 100,000.
        assert!((score(5, 0, 0.1) - 4.265).abs() < 0.01, "{}", score(5, 0, 0.1));
        assert!(score(1, 9, 0.1) < 0.5 && score(0, 9, 0.1) <= 0.0);
    }
}
