//! Compares runs that were made elsewhere, without pairs, and says what they cannot show.

use serde_json::{Value, json};
use weir_words::Language;

use crate::ab::now_ms;
use crate::analysis::{Question, analyse_runs};
use crate::block::Block;
use crate::import::Imported;
use crate::metric::{Metric, digits};
use crate::said::{Said, say, shown};
use crate::schedule::{ComparedSide, Looks};
use crate::stats;
use crate::store;

/// Two kinds of runs.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// The directory or file of the runs before, and the runs.
    pub before: (String, Vec<Imported>),
    /// The directory or file of the runs after, and the runs.
    pub after: (String, Vec<Imported>),
    /// The primary metric.
    pub primary: &'static Metric,
    /// Changes below this are negligible.
    pub threshold: f64,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// The comparison, as a run that can be stored.
pub fn compare(it: &Elsewhere) -> Value {
    let blocks: Vec<Block> = it.before.1.iter().chain(&it.after.1).map(|run| run.block.clone()).collect();
    let looks = Looks::one(stats::RUNS_MIN);
    let question = Question {
        primary: it.primary,
        threshold: it.threshold,
        looks: &looks,
        no_effect: &[],
        gate: gate(it),
        minutes_a_pair: 0.0,
    };
    let analysis = analyse_runs(&blocks, &question);
    let now = now_ms();
    let side = |(name, runs): &(String, Vec<Imported>)| json!({"file": name, "runs": runs.iter().map(|run| json!({"file": run.name, "by": run.by})).collect::<Vec<_>>()});
    json!({
        "version": 1,
        "id": store::new_id(),
        "kind": "elsewhere",
        "started_ms": now,
        "ended_ms": now,
        "seed": it.seed,
        "load": say!(ELSEWHERE).en(),
        "load_said": say!(ELSEWHERE),
        "before": side(&it.before),
        "after": side(&it.after),
        "environment": {
            "before": counted(&it.before.1).en(), "before_said": counted(&it.before.1),
            "after": counted(&it.after.1).en(), "after_said": counted(&it.after.1),
        },
        "design": {"primary": it.primary.key, "threshold": it.threshold, "looks": looks.at, "alpha": looks.alpha},
        "blocks": blocks.iter().map(Block::to_json).collect::<Vec<_>>(),
        "within": within(it),
        "metrics": analysis.metrics,
        "gate": question.gate.as_ref().map(Said::en),
        "gate_said": question.gate,
        "verdict": analysis.verdict.to_json(),
    })
}

/// If every run of a kind is unusable, no conclusion is possible. Otherwise the unusable runs are reported and left
/// out.
fn gate(it: &Elsewhere) -> Option<Said> {
    let runs = it.before.1.iter().chain(&it.after.1);
    let all_spoiled = |runs: &[Imported]| runs.iter().all(|run| !run.block.spoiled.is_empty());
    if !all_spoiled(&it.before.1) && !all_spoiled(&it.after.1) {
        return None;
    }
    let spoiled = runs.into_iter().find(|run| !run.block.spoiled.is_empty())?;
    Some(say!(NAMED, &spoiled.name, Said::list(&spoiled.block.why_spoiled(), "; ")))
}

fn counted(runs: &[Imported]) -> Said {
    let mut by: Vec<&str> = runs.iter().map(|run| run.by).collect();
    by.sort_unstable();
    by.dedup();
    let by = by.into_iter().map(Said::from).reduce(|one, other| say!(AND, one, other)).unwrap_or_default();
    match runs.len() {
        1 => say!(ONE_RUN_BY, by),
        count => say!(RUNS_BY, count, by),
    }
}

/// For a kind with a single run: the variation within that run.
fn within(it: &Elsewhere) -> Vec<Value> {
    let alone = |(arm, runs): (ComparedSide, &Vec<Imported>)| {
        let [run] = runs.as_slice() else { return None };
        let found = stats::moving_block(&run.windows, it.seed)?;
        let throughput = stats::mean(&run.windows);
        Some(json!({
            "arm": arm.letter().to_string(), "throughput": throughput, "interval": [found.low, found.high],
            "windows": run.windows.len(), "label": say!(WITHIN).en(), "label_said": say!(WITHIN),
        }))
    };
    [(ComparedSide::Before, &it.before.1), (ComparedSide::After, &it.after.1)].into_iter().filter_map(alone).collect()
}

/// Notes beside the table: kinds with a single run, and parts of runs that were not used.
pub fn notes(run: &Value, language: Language) -> Vec<String> {
    let ends = |json: &Value| Some((json["interval"][0].as_f64()?, json["interval"][1].as_f64()?));
    let alone = run["within"].as_array().into_iter().flatten().filter_map(|json| {
        let (low, high) = ends(json)?;
        let (arm, label) = (json["arm"].as_str()?, shown(json, "label", language));
        let mean = digits(json["throughput"].as_f64()?);
        Some(say!(ALONE, arm, mean, digits(low), digits(high), label).say(language).to_owned())
    });
    alone.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::import::read;
    use crate::metric::of;

    fn runs(count: usize, p95: f64, arm: ComparedSide) -> Vec<Imported> {
        let one = |number: usize| {
            let period = json!({"counters": {"http.responses": 9_000 + 37 * (number % 5)}});
            let text = json!({
                "aggregate": {
                    "counters": {"http.requests": 20_000, "http.codes.200": 20_000},
                    "summaries": {"http.response_time": {"count": 20_000, "p50": 1, "p95": p95 + 0.01 * number as f64, "p99": 9}},
                    "firstMetricAt": 0, "lastMetricAt": 20_000,
                },
                "intermediate": vec![period; 12],
            });
            read(&format!("{number}.json"), &text.to_string(), number, arm).unwrap()
        };
        (0..count).map(one).collect()
    }

    fn of_two(before: Vec<Imported>, after: Vec<Imported>) -> Value {
        compare(&Elsewhere {
            before: ("a".to_owned(), before),
            after: ("b".to_owned(), after),
            primary: of("p95").unwrap(),
            threshold: 0.05,
            seed: 1,
        })
    }

    #[test]
    fn six_of_each_may_be_compared_and_single_runs_may_not() {
        let run = of_two(runs(6, 40.0, ComparedSide::Before), runs(7, 30.0, ComparedSide::After));
        let text = crate::report::text(&run, Language::English);
        assert_eq!(run["verdict"]["name"], "better", "{text}");
        assert!(text.contains("6 and 7 runs") && text.contains("6 runs of Artillery 2"), "{text}");
        let single = of_two(runs(1, 40.0, ComparedSide::Before), runs(1, 30.0, ComparedSide::After));
        let text = crate::report::text(&single, Language::English);
        assert!(text.contains("Verdict: not comparable: one run per arm"), "{text}");
        assert!(text.contains("A alone: 900/s, 95 % 900 to 900/s (within-run only"), "{text}");
    }

    #[test]
    fn a_saturated_generator_is_no_run() {
        let mut before = runs(1, 40.0, ComparedSide::Before);
        before[0].block.spoiled.push("load generator saturated (core 97 %)".to_owned());
        let run = of_two(before, runs(6, 40.0, ComparedSide::After));
        assert_eq!(run["verdict"]["text"], "no verdict: 0.json: load generator saturated (core 97 %)");
    }
}
