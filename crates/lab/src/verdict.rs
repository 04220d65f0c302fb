//! Verdicts on a change, in fixed words.
//!
//! [`ROWS`] is the whole vocabulary. The first row whose condition holds gives the sentence. No other part of weir
//! calls a configuration faster. A sentence has its interval, its units and its number of pairs, or the reason why
//! it has none.

use serde_json::{Value, json};
use weir_words::Language;

use crate::metric::{GoodDirection, Metric, Scale, digits};
use crate::said::{Said, Text, say};
use crate::stats::{self, Interval};
use crate::texts;

/// A figure of a pair, before and after, with the requests and failures of each block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The figure of the block before.
    pub before: f64,
    /// The figure of the block after.
    pub after: f64,
    /// Failures and requests of the block before.
    pub failed_before: (u64, u64),
    /// Failures and requests of the block after.
    pub failed_after: (u64, u64),
}

/// A figure of a run without a pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// The figure.
    pub value: f64,
    /// Failures and requests.
    pub failed: (u64, u64),
}

/// The basis of an estimate, with its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Neighbouring blocks, one of each side.
    Pairs,
    /// Blocks of both sides at the same time.
    Duets,
    /// Blocks of all combinations of several changes.
    Rounds,
    /// Reports of runs that another tool made: the number before and after.
    Runs(usize, usize),
}

impl Basis {
    /// `8 pairs`.
    pub fn count(self, pairs: usize) -> Said {
        match self {
            Basis::Pairs => say!(PAIRS, pairs),
            Basis::Duets => say!(DUETS, pairs),
            Basis::Rounds => say!(ROUNDS, pairs),
            Basis::Runs(before, after) => say!(RUNS, before, after),
        }
    }

    /// `8 more pairs`.
    fn more(self, missing: usize) -> Said {
        match self {
            Basis::Pairs => say!(MORE_PAIRS, missing),
            Basis::Duets => say!(MORE_DUETS, missing),
            Basis::Rounds => say!(MORE_ROUNDS, missing),
            Basis::Runs(..) => say!(MORE_RUNS, missing),
        }
    }

    /// Why this many are too few.
    fn too_few(self, pairs: usize, needed: usize) -> Said {
        match (self, pairs) {
            (Basis::Runs(before, after), 2..) => say!(TOO_FEW_RUNS, before, after, needed),
            (Basis::Pairs, 0 | 1) | (Basis::Runs(..), _) => say!(ONE_RUN),
            _ => say!(BEFORE_FIRST_LOOK, self.count(pairs), needed, self.count(needed)),
        }
    }
}

/// The estimate of one metric from the pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Its basis.
    pub basis: Basis,
    /// Number of pairs. For runs without pairs, the smaller number of runs.
    pub pairs: usize,
    /// The Hodges-Lehmann estimate: a difference of logarithms, or of logits.
    pub effect: f64,
    /// The exact interval. `None` if there are too few pairs.
    pub interval: Option<Interval>,
    /// Its confidence, 0 to 1.
    pub confidence: f64,
    /// The 90 % interval, for showing that there is no difference.
    pub narrow: Option<Interval>,
    /// The spread of the differences.
    pub deviation: f64,
    /// The p-value of the exact sign-flip test.
    pub p: f64,
    /// The figure of the middle block before, and after.
    pub middles: (f64, f64),
    /// Whether the middle block before, and after, has only a lower bound: its quantile lies among requests that were
    /// never answered.
    pub is_least: (bool, bool),
    /// Failures and requests of all blocks before, and after.
    pub failed: ((u64, u64), (u64, u64)),
    /// How much more failures vary from block to block than by chance, before the change.
    pub dispersion: Option<f64>,
}

impl Estimate {
    /// Estimates from pairs, by exact methods, at a confidence of 1 - alpha.
    pub fn of(metric: &Metric, pairs: &[Pair], alpha: f64) -> Estimate {
        let differences: Vec<f64> = pairs.iter().map(|pair| difference(metric, pair)).collect();
        let middle = |of: fn(&Pair) -> f64| stats::median(&pairs.iter().map(of).collect::<Vec<_>>());
        let sum =
            |of: fn(&Pair) -> (u64, u64)| pairs.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Estimate {
            middles: (middle(|pair| pair.before), middle(|pair| pair.after)),
            dispersion: stats::over_dispersion(&pairs.iter().map(|pair| pair.failed_before).collect::<Vec<_>>()),
            failed: (sum(|pair| pair.failed_before), sum(|pair| pair.failed_after)),
            ..Estimate::of_differences(&differences, alpha)
        }
    }

    /// Estimates from differences alone, each from one independent comparison.
    pub fn of_differences(differences: &[f64], alpha: f64) -> Estimate {
        Estimate {
            basis: Basis::Pairs,
            pairs: differences.len(),
            effect: stats::hodges_lehmann(differences),
            interval: stats::interval(differences, 1.0 - alpha),
            confidence: 1.0 - alpha,
            narrow: stats::interval(differences, 0.90),
            deviation: stats::deviation(differences),
            p: stats::sign_flip_p(differences),
            middles: (f64::NAN, f64::NAN),
            dispersion: None,
            is_least: (false, false),
            failed: ((0, 0), (0, 0)),
        }
    }

    /// Estimates from runs without pairs: a figure of each, with its failures and requests.
    pub fn of_runs(metric: &Metric, before: &[Run], after: &[Run], alpha: f64) -> Estimate {
        let on_scale = |runs: &[Run]| -> Vec<f64> {
            let of = |run: &Run| match metric.scale {
                Scale::Ratio => run.value.ln(),
                Scale::Share => stats::empirical_logit(run.failed),
            };
            runs.iter().map(of).collect()
        };
        let middle = |runs: &[Run]| stats::median(&runs.iter().map(|run| run.value).collect::<Vec<_>>());
        let counts = |runs: &[Run]| runs.iter().map(|run| run.failed).collect::<Vec<_>>();
        let sum = |runs: &[Run]| counts(runs).iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let (one, other) = (on_scale(before), on_scale(after));
        Estimate {
            basis: Basis::Runs(before.len(), after.len()),
            pairs: before.len().min(after.len()),
            effect: stats::shift(&one, &other),
            interval: stats::shift_interval(&one, &other, 1.0 - alpha),
            confidence: 1.0 - alpha,
            narrow: stats::shift_interval(&one, &other, 0.90),
            // The spread of a difference between one run of each side.
            deviation: stats::deviation(&one).hypot(stats::deviation(&other)),
            p: stats::rank_sum_p(&one, &other),
            middles: (middle(before), middle(after)),
            dispersion: stats::over_dispersion(&counts(before)),
            is_least: (false, false),
            failed: (sum(before), sum(after)),
        }
    }

    fn alpha(&self) -> f64 {
        1.0 - self.confidence
    }

    /// A difference in the units of the metric: a relative change (0.12 is 12 %), or percentage points.
    pub fn amount(&self, metric: &Metric, difference: f64) -> f64 {
        match metric.scale {
            Scale::Ratio => difference.exp_m1(),
            Scale::Share => {
                let ((failed, of), _) = self.failed;
                let share = (failed as f64 + 0.5) / (of as f64 + 1.0);
                (stats::share_moved(share, difference) - share) * 100.0
            }
        }
    }

    fn amounts(&self, metric: &Metric) -> Option<(f64, f64)> {
        self.interval.map(|interval| (self.amount(metric, interval.low), self.amount(metric, interval.high)))
    }

    /// Whether the interval leaves out 0.
    pub fn excludes_zero(&self) -> bool {
        self.interval.is_some_and(Interval::excludes_zero)
    }

    fn is_within(&self, metric: &Metric, interval: Option<Interval>, bound: f64) -> bool {
        interval.is_some_and(|interval| {
            self.amount(metric, interval.low) > -bound && self.amount(metric, interval.high) < bound
        })
    }

    /// Whether the effect is in the good direction, however small it is.
    pub fn is_good(&self, metric: &Metric) -> bool {
        (self.effect > 0.0) == (metric.good == GoodDirection::More)
    }

    /// Whether it is shown to be worse by more than the threshold.
    pub fn is_worse(&self, metric: &Metric, threshold: f64) -> bool {
        self.excludes_zero()
            && !self.is_good(metric)
            && !self.is_within(metric, self.interval, threshold)
            && !self.has_no_errors(metric)
    }

    /// The smallest effect that such pairs detect, as a relative change or in points.
    pub fn detectable(&self, metric: &Metric) -> f64 {
        self.amount(metric, stats::detectable(self.deviation, self.pairs, self.alpha()))
    }

    /// The number of further pairs until the threshold is detectable. `None` if no number of pairs is enough.
    pub fn pairs_missing(&self, metric: &Metric, threshold: f64) -> Option<usize> {
        let effect = match metric.scale {
            Scale::Ratio => threshold.ln_1p(),
            // The size of a percentage point in logits, at the share before.
            Scale::Share => threshold / self.amount(metric, 1e-3).abs() * 1e-3,
        };
        let needed = stats::pairs_needed(self.deviation, effect, self.alpha())?;
        needed.checked_sub(self.pairs).filter(|missing| *missing > 0)
    }

    /// Whether shares are compared and nothing failed on either side. Then no difference has a size.
    pub fn has_no_errors(&self, metric: &Metric) -> bool {
        metric.scale == Scale::Share && self.failed.0.0 == 0 && self.failed.1.0 == 0
    }
}

fn difference(metric: &Metric, pair: &Pair) -> f64 {
    match metric.scale {
        Scale::Ratio => pair.after.ln() - pair.before.ln(),
        Scale::Share => stats::logit_difference(pair.failed_before, pair.failed_after),
    }
}

/// All inputs of a verdict.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The metric, declared before the run.
    pub metric: &'a Metric,
    /// The threshold: the metric's, unless the user set another.
    pub threshold: f64,
    /// The estimate from the pairs.
    pub estimate: &'a Estimate,
    /// Why no conclusion is allowed, if so.
    pub gate: Option<&'a Said>,
    /// Least number of pairs for a verdict.
    pub pairs_min: usize,
    /// Guard metrics that got worse, each as `errors +2.1 pp`.
    pub worse: &'a [String],
    /// Kinds of errors that became fewer although errors in total did not.
    pub reclassified: &'a [String],
    /// Why the change can have no effect, if a lint knows.
    pub no_effect: &'a [Said],
    /// Minutes for a pair.
    pub minutes_a_pair: f64,
}

/// One row of the vocabulary.
pub struct Row {
    /// Its name in stored runs.
    pub name: &'static str,
    /// Its condition, for readers.
    pub when: Text,
    /// Whether the exit code counts it as a regression: the change is shown to be worse.
    pub is_regression: bool,
    holds: fn(&Situation<'_>) -> bool,
    say: fn(&Situation<'_>) -> Said,
}

/// The vocabulary, in the order of the checks.
pub const ROWS: &[Row] = &[
    Row {
        name: "no verdict",
        when: texts::WHEN_NO_VERDICT,
        is_regression: false,
        holds: |it| it.gate.is_some(),
        say: |it| say!(NO_VERDICT, it.gate.cloned().unwrap_or_default()),
    },
    Row {
        name: "not comparable",
        when: texts::WHEN_NOT_COMPARABLE,
        is_regression: false,
        holds: |it| it.estimate.pairs < it.pairs_min || it.estimate.interval.is_none(),
        say: |it| say!(NOT_COMPARABLE, it.estimate.basis.too_few(it.estimate.pairs, it.pairs_min)),
    },
    Row {
        name: "no errors",
        when: texts::WHEN_NO_ERRORS,
        is_regression: false,
        holds: |it| it.estimate.has_no_errors(it.metric),
        say: |it| {
            let bound = |(_, of)| say!(ERRORS_BOUND, of, digits(stats::zero_bound(of) * 100.0));
            say!(NO_ERRORS, bound(it.estimate.failed.0), bound(it.estimate.failed.1))
        },
    },
    Row {
        name: "trade-off",
        when: texts::WHEN_TRADE_OFF,
        is_regression: true,
        holds: |it| is_shown(it) && it.estimate.is_good(it.metric) && !it.worse.is_empty(),
        say: |it| {
            let change = signed(it.metric, it.estimate.amount(it.metric, it.estimate.effect));
            say!(TRADE_OFF, it.metric.key, change, it.worse.join(", "))
        },
    },
    Row {
        name: "reclassified",
        when: texts::WHEN_RECLASSIFIED,
        is_regression: false,
        holds: |it| {
            let is_reduced = it.estimate.excludes_zero() && it.estimate.is_good(it.metric);
            !it.reclassified.is_empty() && !is_reduced
        },
        say: |it| say!(RECLASSIFIED, it.reclassified.join(", "), range(it)),
    },
    Row {
        name: "negligible",
        when: texts::WHEN_NEGLIGIBLE,
        is_regression: false,
        holds: |it| it.estimate.excludes_zero() && it.estimate.is_within(it.metric, it.estimate.interval, it.threshold),
        say: |it| say!(NEGLIGIBLE, range(it)),
    },
    Row {
        name: "better",
        when: texts::WHEN_BETTER,
        is_regression: false,
        holds: |it| it.estimate.excludes_zero() && it.estimate.is_good(it.metric),
        say: |it| claim(it, it.metric.words.0),
    },
    Row {
        name: "worse",
        when: texts::WHEN_WORSE,
        is_regression: true,
        holds: |it| it.estimate.excludes_zero(),
        say: |it| claim(it, it.metric.words.1),
    },
    Row {
        name: "as expected",
        when: texts::WHEN_AS_EXPECTED,
        is_regression: false,
        holds: |it| !it.no_effect.is_empty(),
        say: |it| say!(AS_EXPECTED, Said::list(it.no_effect, "; ")),
    },
    Row {
        name: "no difference",
        when: texts::WHEN_NO_DIFFERENCE,
        is_regression: false,
        holds: |it| it.estimate.is_within(it.metric, it.estimate.narrow, it.threshold),
        say: |it| {
            let (most, basis) = (plain(it.metric, it.threshold), it.estimate.basis.count(it.estimate.pairs));
            say!(NO_DIFFERENCE, most, basis)
        },
    },
    Row {
        name: "inconclusive",
        when: texts::WHEN_INCONCLUSIVE,
        is_regression: false,
        holds: |_| true,
        say: inconclusive,
    },
];

/// The chosen row and its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The row's name.
    pub name: &'static str,
    /// The sentence.
    pub text: Said,
    /// Whether the change is shown to be worse.
    pub is_regression: bool,
}

impl Verdict {
    /// The verdict, as a run stores it.
    pub fn to_json(&self) -> Value {
        json!({"name": self.name, "text": self.text.en(), "text_said": self.text, "is_regression": self.is_regression})
    }
}

/// The verdict of the first row that holds.
pub fn judge(situation: &Situation<'_>) -> Verdict {
    let row = ROWS.iter().find(|row| (row.holds)(situation));
    row.map_or(Verdict { name: "", text: Said::default(), is_regression: false }, |row| Verdict {
        name: row.name,
        text: (row.say)(situation),
        is_regression: row.is_regression,
    })
}

/// The verdict on an interaction: whether one change alters the effect of another. It is neither good nor bad.
pub fn interaction(it: &Situation<'_>) -> Verdict {
    let said = |name: &'static str, text: Said| Verdict { name, text, is_regression: false };
    let usual = judge(it);
    let basis = it.estimate.basis.count(it.estimate.pairs);
    match () {
        () if matches!(usual.name, "no verdict" | "not comparable" | "no errors") => usual,
        () if is_shown(it) => said("interaction", say!(INTERACTION, range(it), basis)),
        () if it.estimate.is_within(it.metric, it.estimate.narrow, it.threshold) => {
            said("no interaction", say!(NO_INTERACTION, plain(it.metric, it.threshold), basis))
        }
        () => said("inconclusive", inconclusive(it)),
    }
}

/// Whether a look knows enough to stop: an effect, or no effect that matters.
pub fn is_decided(estimate: &Estimate, metric: &Metric, threshold: f64) -> bool {
    estimate.excludes_zero() || estimate.is_within(metric, estimate.narrow, threshold)
}

/// An effect that is more than negligible.
fn is_shown(it: &Situation<'_>) -> bool {
    it.estimate.excludes_zero() && !it.estimate.is_within(it.metric, it.estimate.interval, it.threshold)
}

fn claim(it: &Situation<'_>, word: Text) -> Said {
    let Estimate { pairs, basis, confidence, middles, .. } = it.estimate;
    let least = |is_least: bool| if is_least { "≥ " } else { "" };
    let (before, after) = (least(it.estimate.is_least.0), least(it.estimate.is_least.1));
    let (from, to) = (number(it.metric, middles.0), it.metric.show(middles.1));
    let values = format!("{} {before}{from}→{after}{to}", it.metric.key);
    // A pipeline's confidence has two digits behind the point.
    let scale = if *confidence > 0.999 { 10_000.0 } else { 1000.0 };
    let confidence = (confidence * scale).round() / (scale / 100.0);
    say!(CLAIM, word.with(&[]), size(it), confidence, values, basis.count(*pairs))
}

fn number(metric: &Metric, value: f64) -> String {
    let shown = metric.show(value);
    shown.strip_suffix(metric.unit).map_or(shown.clone(), |number| number.trim_end().to_owned())
}

fn inconclusive(it: &Situation<'_>) -> Said {
    let seen = plain(it.metric, it.estimate.detectable(it.metric));
    let more = match it.estimate.pairs_missing(it.metric, it.threshold) {
        Some(missing) => {
            let minutes = (missing as f64 * it.minutes_a_pair).ceil().max(1.0);
            let least = plain(it.metric, it.threshold);
            // The length of runs that were made elsewhere is unknown.
            let is_known = it.minutes_a_pair > 0.0;
            let time = if is_known { say!(ABOUT_MINUTES, format!("{minutes:.0}")) } else { Said::default() };
            say!(MORE_TO_DETECT, it.estimate.basis.more(missing), time, least)
        }
        None => Said::default(),
    };
    say!(INCONCLUSIVE, range(it), seen, more)
}

/// The size without a sign, smaller end first: `12–18 %`. Both ends of an interval that leaves out 0 have the same
/// sign.
fn size(it: &Situation<'_>) -> String {
    let (low, high) = it.estimate.amounts(it.metric).unwrap_or((f64::NAN, f64::NAN));
    let (low, high) = if low.abs() <= high.abs() { (low, high) } else { (high, low) };
    let unit = unit(it.metric);
    format!("{}–{} {unit}", part(it.metric, low.abs()), part(it.metric, high.abs()))
}

/// The interval with signs: `−4.0…+9.0 %`.
fn range(it: &Situation<'_>) -> String {
    let (low, high) = it.estimate.amounts(it.metric).unwrap_or((f64::NAN, f64::NAN));
    format!("{}…{}", sign(it.metric, low), signed(it.metric, high))
}

fn unit(metric: &Metric) -> &'static str {
    if metric.scale == Scale::Share { "pp" } else { "%" }
}

/// An amount as a number in its unit.
fn part(metric: &Metric, amount: f64) -> String {
    let value = if metric.scale == Scale::Share { amount } else { amount * 100.0 };
    match () {
        () if !value.is_finite() => "?".to_owned(),
        () if value.abs() >= 9.95 => format!("{value:.0}"),
        () if value.abs() >= 0.05 => format!("{value:.1}"),
        // A smaller change has no meaning, and no reader wants its exponent.
        () if value.abs() < 0.000_5 => "0".to_owned(),
        () => digits(value),
    }
}

fn sign(metric: &Metric, amount: f64) -> String {
    let sign = if amount < 0.0 { "−" } else { "+" };
    format!("{sign}{}", part(metric, amount.abs()))
}

/// An amount with its sign and unit: `−12 %`, `+2.1 pp`.
pub fn signed(metric: &Metric, amount: f64) -> String {
    format!("{} {}", sign(metric, amount), unit(metric))
}

/// An amount with its unit.
pub fn plain(metric: &Metric, amount: f64) -> String {
    format!("{} {}", part(metric, amount.abs()), unit(metric))
}

/// The vocabulary as a table, for the guide.
pub fn table(language: Language) -> String {
    rows(&ROWS.iter().map(|row| (row.name, row.when)).collect::<Vec<_>>(), language)
}

/// The vocabulary of `weir lab why` as a table.
pub fn table_of_why(language: Language) -> String {
    rows(&WHY_WORDS, language)
}

/// The vocabulary of `weir lab why`: each word, and its condition.
pub const WHY_WORDS: [(&str, Text); 7] = [
    ("no verdict", texts::WHEN_WHY_NO_VERDICT),
    ("POLICY", texts::WHEN_POLICY),
    ("PROVED", texts::WHEN_PROVED),
    ("SHARED", texts::WHEN_SHARED),
    ("SUSPECTED", texts::WHEN_SUSPECTED),
    ("UNATTRIBUTED", texts::WHEN_UNATTRIBUTED),
    ("NOT SATURATED", texts::WHEN_NOT_SATURATED),
];

fn rows(list: &[(&str, Text)], language: Language) -> String {
    let heading = [texts::VERDICT_HEADING, texts::WHEN_HEADING].map(|text| text.say(language));
    let rows: String = list.iter().map(|(name, when)| format!("| {name} | {} |\n", when.say(language))).collect();
    format!("| {} |\n|---|---|\n{rows}", heading.join(" | "))
}

#[cfg(test)]
mod tests;
