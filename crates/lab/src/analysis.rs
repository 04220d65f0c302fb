//! From blocks to a conclusion: pairs, estimates, verdicts.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::block::Block;
use crate::metric::{METRICS, Metric, Scale};
use crate::said::{Said, say};
use crate::schedule::{ComparedSide, Looks};
use crate::stats;
use crate::verdict::{self, Basis, Estimate, Pair, Run, Situation, Verdict};

/// The question that an analysis answers.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The primary metric, declared before the run.
    pub primary: &'static Metric,
    /// Changes of the primary metric below this are negligible.
    pub threshold: f64,
    /// When the lab looks.
    pub looks: &'a Looks,
    /// Why the change can have no effect.
    pub no_effect: &'a [Said],
    /// Why no conclusion is allowed, if so.
    pub gate: Option<Said>,
    /// Minutes for a pair.
    pub minutes_a_pair: f64,
}

/// The result of an analysis.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The verdict on the primary metric.
    pub verdict: Verdict,
    /// All metrics, as a run stores them.
    pub metrics: Vec<Value>,
    /// Whether further blocks would add nothing.
    pub is_decided: bool,
}

/// Estimates a metric from blocks. `None` if no block has its figure.
type Estimator = fn(&[Block], &'static Metric, f64) -> Option<Estimate>;

/// Analyses the usable blocks, in their pairs.
pub fn analyse(blocks: &[Block], question: &Question<'_>) -> Analysis {
    analyse_by(of_pairs, blocks, question)
}

/// Analyses pairs of blocks that ran at the same time.
pub fn analyse_duets(blocks: &[Block], question: &Question<'_>) -> Analysis {
    let of_duets: Estimator = |blocks, metric, alpha| {
        of_pairs(blocks, metric, alpha).map(|estimate| Estimate { basis: Basis::Duets, ..estimate })
    };
    analyse_by(of_duets, blocks, question)
}

/// Analyses blocks without pairs: runs that were made elsewhere.
pub fn analyse_runs(blocks: &[Block], question: &Question<'_>) -> Analysis {
    analyse_by(of_runs, blocks, question)
}

fn of_pairs(blocks: &[Block], metric: &'static Metric, alpha: f64) -> Option<Estimate> {
    let pairs = pairs(blocks, metric);
    (!pairs.is_empty()).then(|| Estimate::of(metric, &pairs, alpha))
}

fn of_runs(blocks: &[Block], metric: &'static Metric, alpha: f64) -> Option<Estimate> {
    let runs = |arm: ComparedSide| -> Vec<Run> {
        let usable = blocks.iter().filter(|block| block.arm == arm && block.spoiled.is_empty());
        let run = |block: &Block| {
            Some(Run { value: *block.values.get(metric.key)?, failed: (block.failed(), block.requests) })
        };
        usable.filter_map(run).collect()
    };
    let (before, after) = (runs(ComparedSide::Before), runs(ComparedSide::After));
    (!before.is_empty() && !after.is_empty()).then(|| Estimate::of_runs(metric, &before, &after, alpha))
}

fn analyse_by(estimator: Estimator, blocks: &[Block], question: &Question<'_>) -> Analysis {
    let threshold =
        |metric: &Metric| if metric.key == question.primary.key { question.threshold } else { metric.threshold };
    let estimates: Vec<(&'static Metric, Option<Estimate>)> = METRICS
        .iter()
        .map(|metric| {
            let is_least =
                (is_least(blocks, metric, ComparedSide::Before), is_least(blocks, metric, ComparedSide::After));
            let estimate = estimator(blocks, metric, question.looks.alpha);
            (metric, estimate.map(|estimate| Estimate { is_least, ..estimate }))
        })
        .collect();
    let worse: Vec<String> = estimates
        .iter()
        .filter_map(|(metric, estimate)| {
            let estimate =
                estimate.as_ref().filter(|estimate| metric.is_guard && estimate.is_worse(metric, threshold(metric)))?;
            let change = verdict::signed(metric, estimate.amount(metric, estimate.effect));
            (metric.key != question.primary.key).then(|| format!("{} {change}", metric.key))
        })
        .collect();
    let reclassified = reclassified(estimator, blocks, question.looks.alpha);
    let empty = Estimate::of(question.primary, &[], question.looks.alpha);
    let primary = estimates
        .iter()
        .find(|(metric, _)| metric.key == question.primary.key)
        .and_then(|(_, estimate)| estimate.as_ref());
    let pairs_done = primary.map_or(0, |estimate| estimate.pairs);
    let gate = question.gate.clone().or_else(|| too_few(blocks, question.primary));
    let judged = |metric: &'static Metric, estimate: &Estimate| {
        verdict::judge(&Situation {
            metric,
            threshold: threshold(metric),
            estimate,
            gate: gate.as_ref(),
            pairs_min: question.looks.pairs_min(),
            worse: if metric.is_guard { &[] } else { &worse },
            reclassified: if metric.scale == Scale::Share { &reclassified } else { &[] },
            no_effect: question.no_effect,
            minutes_a_pair: question.minutes_a_pair,
        })
    };
    let others: Vec<f64> = estimates
        .iter()
        .filter(|(metric, _)| metric.key != question.primary.key)
        .filter_map(|(_, estimate)| estimate.as_ref().map(|estimate| estimate.p))
        .collect();
    let mut adjusted = stats::holm(&others).into_iter();
    let metrics = estimates
        .iter()
        .filter_map(|(metric, estimate)| {
            let estimate = estimate.as_ref()?;
            let holm = if metric.key == question.primary.key { estimate.p } else { adjusted.next().unwrap_or(1.0) };
            Some(kept(metric, estimate, holm, threshold(metric), &judged(metric, estimate)))
        })
        .collect();
    Analysis {
        verdict: judged(question.primary, primary.unwrap_or(&empty)),
        metrics,
        is_decided: pairs_done >= question.looks.pairs_min()
            && primary.is_some_and(|estimate| verdict::is_decided(estimate, question.primary, question.threshold)),
    }
}

/// Whether the figure of an arm's middle block is only a lower bound.
fn is_least(blocks: &[Block], metric: &Metric, arm: ComparedSide) -> bool {
    let usable: Vec<&Block> = blocks.iter().filter(|block| block.arm == arm && block.spoiled.is_empty()).collect();
    let least = usable.iter().filter(|block| block.censored.iter().any(|key| key == metric.key));
    least.count() * 2 > usable.len()
}

/// Why the primary metric will have no figure: each arm has a good block, and none of them has enough requests.
pub(crate) fn none_is_enough(blocks: &[Block], metric: &Metric) -> Option<Said> {
    let usable = || blocks.iter().filter(|block| block.spoiled.is_empty());
    let has = |arm: ComparedSide| usable().any(|block| block.arm == arm);
    let is_none = usable().all(|block| !block.values.contains_key(metric.key) && block.requests < metric.requests_min);
    (is_none && has(ComparedSide::Before) && has(ComparedSide::After)).then(|| too_few(blocks, metric))?
}

/// Why the primary metric has no figure, if no block has enough requests.
fn too_few(blocks: &[Block], metric: &Metric) -> Option<Said> {
    let usable = blocks.iter().filter(|block| block.spoiled.is_empty());
    let least = usable.filter(|block| !block.values.contains_key(metric.key)).map(|block| block.requests).min()?;
    Some(say!(TOO_FEW_REQUESTS, metric.key, metric.requests_min, least))
}

/// A metric's figures in both blocks of each complete pair.
fn pairs(blocks: &[Block], metric: &Metric) -> Vec<Pair> {
    let usable = |pair: usize, arm: ComparedSide| {
        blocks.iter().find(|block| block.pair == pair && block.arm == arm && block.spoiled.is_empty())
    };
    let numbers: BTreeSet<usize> = blocks.iter().map(|block| block.pair).collect();
    let pair = |number: usize| {
        let (before, after) = (usable(number, ComparedSide::Before)?, usable(number, ComparedSide::After)?);
        Some(Pair {
            before: *before.values.get(metric.key)?,
            after: *after.values.get(metric.key)?,
            failed_before: (before.failed(), before.requests),
            failed_after: (after.failed(), after.requests),
        })
    };
    numbers.into_iter().filter_map(pair).collect()
}

/// Kinds of errors that became rarer with certainty.
fn reclassified(estimator: Estimator, blocks: &[Block], alpha: f64) -> Vec<String> {
    let kinds: BTreeSet<&String> = blocks.iter().flat_map(|block| block.errors.keys()).collect();
    let is_rarer = |kind: &&String| {
        let only: Vec<Block> = blocks
            .iter()
            .map(|block| {
                let count = block.errors.get(*kind).copied().unwrap_or(0);
                Block { errors: [((*kind).clone(), count)].into(), ..block.clone() }
            })
            .collect();
        let Some(metric) = crate::metric::of("errors") else { return false };
        let interval = estimator(&only, metric, alpha).and_then(|estimate| estimate.interval);
        interval.is_some_and(|interval| interval.high < 0.0)
    };
    kinds.into_iter().filter(is_rarer).cloned().collect()
}

fn kept(metric: &Metric, estimate: &Estimate, holm: f64, threshold: f64, verdict: &Verdict) -> Value {
    let amount = |difference: f64| estimate.amount(metric, difference);
    // Without failures there is no size. A few pairs have no meaningful spread.
    let has_size = !estimate.has_no_errors(metric);
    let interval = estimate.interval.filter(|_| has_size).map(|interval| [amount(interval.low), amount(interval.high)]);
    let detectable = Some(estimate.detectable(metric)).filter(|_| has_size && estimate.pairs >= stats::PAIRS_MIN);
    json!({
        "key": metric.key,
        "pairs": estimate.pairs,
        "before": finite(estimate.middles.0),
        "after": finite(estimate.middles.1),
        "is_least": [estimate.is_least.0, estimate.is_least.1],
        "effect": finite(amount(estimate.effect)).filter(|_| has_size),
        "interval": interval,
        "confidence": estimate.confidence,
        "detectable": detectable.and_then(finite),
        "deviation": finite(estimate.deviation),
        "p": finite(estimate.p),
        "p_holm": finite(holm),
        "threshold": threshold,
        "failed": [estimate.failed.0, estimate.failed.1],
        "over_dispersion": if metric.scale == Scale::Share { estimate.dispersion } else { None },
        "verdict": verdict.name,
        "text": verdict.text.en(),
        "text_said": verdict.text,
    })
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::metric::of;
    use crate::stats::chance::normal;
    use std::collections::BTreeMap;

    fn block(pair: usize, arm: ComparedSide, p95: f64, errors: &[(&str, u64)]) -> Block {
        let values: BTreeMap<String, f64> =
            [("throughput", 1000.0), ("p95", p95), ("cpu", 10.0)].map(|(key, value)| (key.to_owned(), value)).into();
        let errors: BTreeMap<String, u64> = errors.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        let share = errors.values().sum::<u64>() as f64 / 10_000.0;
        let mut block = Block { pair, arm, requests: 10_000, errors, values, ..crate::block::tests::empty() };
        block.values.insert("errors".to_owned(), share);
        block
    }

    fn ask(blocks: &[Block], looks: &Looks) -> Analysis {
        let question = Question {
            primary: of("p95").unwrap(),
            threshold: 0.05,
            looks,
            no_effect: &[],
            gate: None,
            minutes_a_pair: 1.0,
        };
        analyse(blocks, &question)
    }

    fn blocks(after: f64, errors: &[(&str, u64)], pairs: usize) -> Vec<Block> {
        let mut rng = fastrand::Rng::with_seed(9);
        (0..pairs)
            .flat_map(|pair| {
                let mut near = |value: f64| value * (0.01 * normal(&mut rng)).exp();
                [
                    block(pair, ComparedSide::Before, near(40.0), &[("502", 100)]),
                    block(pair, ComparedSide::After, near(after), errors),
                ]
            })
            .collect()
    }

    #[test]
    fn better_alone_is_better_and_with_more_errors_it_is_not() {
        let analysis = ask(&blocks(34.0, &[("502", 100)], 8), &Looks::three());
        assert_eq!(analysis.verdict.name, "better", "{}", analysis.verdict.text);
        assert!(analysis.is_decided && analysis.metrics.len() == 4);
        let traded = ask(&blocks(34.0, &[("502", 400)], 8), &Looks::three());
        assert_eq!(traded.verdict.name, "trade-off");
        assert!(traded.verdict.text.contains("errors +3.0 pp"), "{}", traded.verdict.text);
    }

    #[test]
    fn errors_under_another_name_are_no_fewer() {
        let analysis = ask(&blocks(40.0, &[("502", 10), ("ETIMEDOUT", 90)], 8), &Looks::three());
        let errors = analysis.metrics.iter().find(|metric| metric["key"] == "errors").unwrap();
        assert_eq!(errors["verdict"], "reclassified", "{errors}");
        assert!(errors["text"].as_str().unwrap().contains("fewer 502"));
    }

    #[test]
    fn who_never_got_an_answer_makes_a_lower_bound() {
        let mut blocks = blocks(34.0, &[], 8);
        for block in blocks.iter_mut().filter(|block| block.arm == ComparedSide::After) {
            block.values.insert("p95".to_owned(), 10_000.0);
            block.censored.push("p95".to_owned());
        }
        let analysis = ask(&blocks, &Looks::three());
        assert!(analysis.verdict.text.contains("→≥ 10000 ms"), "{}", analysis.verdict.text);
        assert_eq!(analysis.metrics[1]["is_least"], json!([false, true]));
    }

    #[test]
    fn runs_made_elsewhere_are_compared_without_pairs() {
        let question = |looks| Question {
            primary: of("p95").unwrap(),
            threshold: 0.05,
            looks,
            no_effect: &[],
            gate: None,
            minutes_a_pair: 0.0,
        };
        let looks = Looks::one(stats::RUNS_MIN);
        let of_runs = |runs: &[Block]| analyse_runs(runs, &question(&looks)).verdict;
        let many = of_runs(&blocks(34.0, &[("502", 100)], 8));
        assert_eq!(many.name, "better");
        assert!(many.text.ends_with("8 and 8 runs"), "{}", many.text);
        assert_eq!(of_runs(&blocks(34.0, &[], 1)).text, "not comparable: one run per arm");
        let few = of_runs(&blocks(34.0, &[], 5)).text;
        assert_eq!(few, "not comparable: there are 5 and 5 runs, and an interval needs 6 of each");
    }

    #[test]
    fn spoiled_blocks_and_half_pairs_do_not_count() {
        let mut blocks = blocks(34.0, &[], 9);
        blocks[3].spoiled.push("x".to_owned());
        assert_eq!(ask(&blocks, &Looks::three()).metrics[0]["pairs"], 8);
        blocks[5].spoiled.push("x".to_owned());
        let analysis = ask(&blocks, &Looks::three());
        assert_eq!((analysis.verdict.name, analysis.is_decided), ("not comparable", false));
        assert_eq!(ask(&[], &Looks::three()).verdict.text, "not comparable: one run per arm");
    }

    #[test]
    fn a_quantile_without_enough_requests_is_no_figure() {
        let mut blocks = blocks(34.0, &[], 8);
        blocks[2].values.remove("p95");
        let analysis = ask(&blocks, &Looks::three());
        assert_eq!(analysis.verdict.name, "no verdict");
        assert!(analysis.verdict.text.contains("p95 needs 2000 requests in a block"), "{}", analysis.verdict.text);
    }
}
