//! Fits curves to few points: the rate at which half of the tries pass, and the growth of throughput with load.

use super::middle::{mean, median};

/// Most steps of Newton's method.
const STEPS: usize = 50;
/// A weak pull of the slope towards 0. It keeps the fit finite if passes and failures do not overlap.
const RIDGE: f64 = 1e-3;
/// Least number of load levels for a fit of the scalability law.
pub const LEVELS_MIN: usize = 6;
/// Samples drawn for the interval of a fit.
const DRAWS: usize = 400;

/// The probability to pass, as a function of the logarithm of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logistic {
    /// The rate at which half of the tries pass.
    pub half: f64,
    /// The lower end of its 95 % interval, by the delta method: a rate.
    pub low: f64,
    /// The upper end, a larger rate.
    pub high: f64,
}

/// Fits the probability to pass. `None` unless some tries passed and some failed, and more pass at lower rates.
pub fn logistic(tries: &[(f64, bool)]) -> Option<Logistic> {
    let passed = tries.iter().filter(|(_, passed)| *passed).count();
    if passed == 0 || passed == tries.len() || tries.iter().any(|(rate, _)| rate.is_nan() || *rate <= 0.0) {
        return None;
    }
    let centre = mean(&tries.iter().map(|(rate, _)| rate.ln()).collect::<Vec<_>>());
    let spread = tries.iter().map(|(rate, _)| (rate.ln() - centre).abs()).fold(0.0, f64::max);
    if spread <= 0.0 {
        return None;
    }
    let points: Vec<(f64, f64)> =
        tries.iter().map(|(rate, passed)| ((rate.ln() - centre) / spread, f64::from(u8::from(*passed)))).collect();
    let (mut level, mut slope) = (0.0f64, 0.0f64);
    let mut curvature = [0.0; 3];
    for _ in 0..STEPS {
        let (mut pull, mut bend) = ([0.0, -RIDGE * slope], [0.0, 0.0, RIDGE]);
        for (x, y) in &points {
            let chance = 1.0 / (1.0 + (-(level + slope * x)).exp());
            let weight = (chance * (1.0 - chance)).max(1e-12);
            pull = [pull[0] + (y - chance), pull[1] + (y - chance) * x];
            bend = [bend[0] + weight, bend[1] + weight * x, bend[2] + weight * x * x];
        }
        let det = bend[0] * bend[2] - bend[1] * bend[1];
        if det <= 0.0 || det.is_nan() {
            return None;
        }
        curvature = bend;
        // Damped, because a step of Newton's method from far away overshoots.
        let step = [(bend[2] * pull[0] - bend[1] * pull[1]) / det, (bend[0] * pull[1] - bend[1] * pull[0]) / det];
        let damp = (4.0 / step[0].hypot(step[1])).min(1.0);
        (level, slope) = (level + damp * step[0], slope + damp * step[1]);
        if step[0].hypot(step[1]) < 1e-10 {
            break;
        }
    }
    if slope >= 0.0 || slope.is_nan() {
        return None;
    }
    let at = -level / slope;
    let det = curvature[0] * curvature[2] - curvature[1] * curvature[1];
    // The variance of -level/slope, from the inverse of the curvature.
    let variance =
        (curvature[2] / det - 2.0 * at * curvature[1] / det + at * at * curvature[0] / det).max(0.0) / (slope * slope);
    let rate = |x: f64| (centre + spread * x).exp();
    let reach = 1.96 * variance.sqrt();
    Some(Logistic { half: rate(at), low: rate(at - reach), high: rate(at + reach) })
}

/// The universal scalability law (Gunther): X(N) = λN / (1 + σ(N-1) + κN(N-1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// λ: the throughput of one unit of load alone.
    pub lambda: f64,
    /// σ: contention, the share of work that is serial.
    pub sigma: f64,
    /// κ: the cost of keeping units consistent with each other.
    pub kappa: f64,
    /// The load with the largest throughput. `None` if throughput never falls.
    pub peak: Option<f64>,
    /// The 95 % interval of the peak, by resampling the levels. `None` if most samples have no peak.
    pub peak_interval: Option<(f64, f64)>,
}

/// Fits the law to loads and throughputs. `None` for fewer than [`LEVELS_MIN`] different loads. `seed` starts the
/// random numbers.
pub fn usl(points: &[(f64, f64)], seed: u64) -> Option<Usl> {
    let mut levels: Vec<u64> = points.iter().map(|(load, _)| load.to_bits()).collect();
    levels.sort_unstable();
    levels.dedup();
    if levels.len() < LEVELS_MIN {
        return None;
    }
    let fitted = usl_once(points)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut peaks: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let drawn: Vec<(f64, f64)> =
                (0..points.len()).filter_map(|_| points.get(rng.usize(..points.len())).copied()).collect();
            usl_once(&drawn)?.peak
        })
        .collect();
    peaks.sort_by(f64::total_cmp);
    let at = |part: f64| peaks.get((part * (peaks.len() - 1) as f64) as usize).copied();
    let peak_interval = (peaks.len() * 2 > DRAWS).then(|| at(0.025).zip(at(0.975))).flatten();
    Some(Usl { peak_interval, ..fitted })
}

/// N/X = (1 + σ(N-1) + κN(N-1)) / λ is linear in its three coefficients. Solved by weighted least squares; the
/// weights make relative errors of X count alike.
fn usl_once(points: &[(f64, f64)]) -> Option<Usl> {
    let scale = median(&points.iter().map(|(load, x)| load / x).collect::<Vec<_>>());
    let mut normal = [[0.0f64; 4]; 3];
    for (load, throughput) in points {
        if *load <= 0.0 || *throughput <= 0.0 {
            return None;
        }
        let (y, row) = (load / throughput / scale, [1.0, load - 1.0, load * (load - 1.0)]);
        let weight = 1.0 / (y * y);
        for (one, line) in row.iter().zip(&mut normal) {
            for (other, slot) in row.iter().chain([&y]).zip(line.iter_mut()) {
                *slot += weight * one * other;
            }
        }
    }
    let [base, sigma, kappa] = solve(normal)?;
    // Negative shares have no meaning: the smallest share is 0.
    let (sigma, kappa) = ((sigma / base).max(0.0), (kappa / base).max(0.0));
    let peak = (kappa > 1e-12 && sigma < 1.0).then(|| ((1.0 - sigma) / kappa).sqrt());
    (base > 0.0).then(|| Usl { lambda: 1.0 / (base * scale), sigma, kappa, peak, peak_interval: None })
}

/// Solves three equations by elimination with the largest pivot. `None` if they depend on each other.
fn solve(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for at in 0..3 {
        let pivot = (at..3).max_by(|one, other| rows[*one][at].abs().total_cmp(&rows[*other][at].abs()))?;
        rows.swap(at, pivot);
        if rows[at][at].abs() < 1e-12 {
            return None;
        }
        for row in 0..3 {
            if row != at {
                let factor = rows[row][at] / rows[at][at];
                let from = rows[at];
                rows[row].iter_mut().zip(from).for_each(|(slot, value)| *slot -= factor * value);
            }
        }
    }
    Some([rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::chance::normal;
    use super::*;

    #[test]
    fn half_of_the_tries_pass_where_they_do() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut held = 0;
        for _ in 0..200 {
            let tries: Vec<(f64, bool)> = (0..60)
                .map(|at| {
                    let rate: f64 = 900.0 + 200.0 * f64::from(at) / 59.0;
                    (rate, rng.f64() < 1.0 / (1.0 + (40.0 * (rate.ln() - 1000f64.ln())).exp()))
                })
                .collect();
            held += i32::from(logistic(&tries).is_some_and(|fit| fit.low <= 1000.0 && 1000.0 <= fit.high));
        }
        assert!((180..=200).contains(&held), "{held} of 200");
        assert_eq!(logistic(&[(1.0, true), (2.0, true)]), None);
        assert_eq!(logistic(&[(1.0, false), (2.0, true)]), None, "more pass at higher rates");
        let apart = logistic(&[(100.0, true), (100.0, true), (105.0, false), (105.0, false)]).unwrap();
        assert!(apart.half > 100.0 && apart.half < 105.0 && apart.low < apart.half, "{apart:?}");
    }

    #[test]
    fn the_law_is_found_again() {
        let law = |n: f64| 100.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.001 * n * (n - 1.0));
        let mut rng = fastrand::Rng::with_seed(6);
        let points: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
            .into_iter()
            .flat_map(|n| [n, n])
            .map(|n| (n, law(n) * (1.0 + 0.01 * normal(&mut rng))))
            .collect();
        let fit = usl(&points, 1).unwrap();
        assert!((fit.lambda - 100.0).abs() < 4.0 && (fit.kappa - 0.001).abs() < 0.0003, "{fit:?}");
        let (peak, (low, high)) = (fit.peak.unwrap(), fit.peak_interval.unwrap());
        assert!(low <= peak && peak <= high && low < 30.8 && high > 30.0, "{fit:?}");
        assert_eq!(usl(&points[..8], 1), None, "four levels are too few");
    }
}
