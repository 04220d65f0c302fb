//! Bounds for a canary whose length is known beforehand: group-sequential, by the spending of O'Brien and Fleming
//! (Lan and DeMets 1983). They need fewer clients than bets, and they hold only at the planned looks.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

/// Most looks.
pub const LOOKS_MAX: usize = 20;
/// Points of the grid on which the density of earlier looks is kept.
const POINTS: usize = 1_201;
/// The grid reaches this many standard deviations of the whole.
const REACH: f64 = 8.0;

/// The bound of each look, in standard deviations of the estimate at that look: harm beyond it is shown. One-sided;
/// `alpha` is the probability over all looks. Looks are evenly spread in information; at most [`LOOKS_MAX`].
pub fn bounds(looks: usize, alpha: f64) -> Vec<f64> {
    let looks = looks.clamp(1, LOOKS_MAX);
    let Ok(normal) = Normal::new(0.0, 1.0) else { return Vec::new() };
    let step = 2.0 * REACH / (POINTS - 1) as f64;
    let at = |index: usize| -REACH + step * index as f64;
    // The score of a Brownian motion at time `part`: its variance is `part`.
    let mut density: Vec<f64> = Vec::new();
    let mut bounds = Vec::new();
    let mut spent = 0.0;
    for look in 1..=looks {
        let part = look as f64 / looks as f64;
        let grown = (1.0 / looks as f64).sqrt();
        density = if look == 1 {
            (0..POINTS).map(|index| normal.pdf(at(index) / grown) / grown).collect()
        } else {
            convolved(&density, grown, step, &normal)
        };
        let due = spending(part, alpha, &normal) - spent;
        let bound = tail_bound(&density, due, step);
        spent += due;
        bounds.push(at(bound) / part.sqrt());
        // A path that crosses the bound ends there.
        density.iter_mut().skip(bound).for_each(|one| *one = 0.0);
    }
    bounds
}

/// The part of `alpha` that may be spent until `part` of the information is there.
fn spending(part: f64, alpha: f64, normal: &Normal) -> f64 {
    2.0 * (1.0 - normal.cdf(normal.inverse_cdf(1.0 - alpha / 2.0) / part.sqrt()))
}

fn convolved(density: &[f64], deviation: f64, step: f64, normal: &Normal) -> Vec<f64> {
    let kernel: Vec<f64> =
        (0..POINTS).map(|index| normal.pdf(step * index as f64 / deviation) / deviation * step).collect();
    let value = |index: usize| {
        let parts = density.iter().enumerate().filter(|(_, one)| **one > 0.0);
        parts.map(|(from, one)| one * kernel.get(from.abs_diff(index)).copied().unwrap_or_default()).sum()
    };
    (0..POINTS).map(value).collect()
}

/// The first point beyond which at most `due` lies.
fn tail_bound(density: &[f64], due: f64, step: f64) -> usize {
    let mut sum = 0.0;
    for (index, one) in density.iter().enumerate().rev() {
        sum += one * step;
        if sum > due {
            return (index + 1).min(POINTS - 1);
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    // R, gsDesign: gsDesign(k = 4, test.type = 1, alpha = 0.025, sfu = sfLDOF)$upper$bound.
    #[test]
    fn bounds_are_those_of_lan_and_demets() {
        let found = bounds(4, 0.025);
        for (one, known) in found.iter().zip([4.332_63, 2.963_13, 2.359_02, 2.014_04]) {
            assert!((one - known).abs() < 0.03, "{found:?}");
        }
        let one = bounds(1, 0.025);
        assert!((one.first().copied().unwrap_or_default() - 1.96).abs() < 0.02, "{one:?}");
    }

    #[test]
    fn a_walk_of_nothing_crosses_as_seldom_as_promised() {
        let bounds = bounds(5, 0.05);
        let mut rng = fastrand::Rng::with_seed(11);
        let mut crossed = 0;
        for _ in 0..20_000 {
            let mut score = 0.0;
            for (look, bound) in bounds.iter().enumerate() {
                score += crate::simulation::normal(&mut rng);
                if score / ((look + 1) as f64).sqrt() >= *bound {
                    crossed += 1;
                    break;
                }
            }
        }
        assert!((800..1_150).contains(&crossed), "{crossed}");
    }
}
