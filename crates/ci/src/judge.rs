//! One outcome from all figures of a run.
//!
//! A pipeline runs on each change, so a false "worse" costs the trust of everybody. Each figure that decides has an exact
//! interval (signed-rank test) at [`ALPHA`], and the run looks at most twice: after 12 pairs, and at its end. By Bonferroni's
//! inequality, a comparison of two equal revisions says "better" or "worse" with a probability of at most
//! `LOOKS · figures · ALPHA`, 0.4 % for four figures.

use serde_json::Value;
use weir_lab::metric::{self, Metric};
use weir_lab::verdict::plain;
use weir_words::{Said, Text, say};

use crate::texts;

/// The probability with which one look at one figure sees a difference where there is none.
pub const ALPHA: f64 = 0.0005;
/// The most looks of a run.
pub const LOOKS: usize = 2;
/// The figures that decide, beside the chosen one: failures, and the CPU time of a request, which a busy machine disturbs least.
const ALWAYS: [&str; 3] = ["errors", "cpu", "app_cpu"];

/// The answer to a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CiOutcome {
    /// A figure is better, and none is worse.
    Better,
    /// A figure is worse.
    Worse,
    /// The chosen figure has no difference that matters.
    NoDifference,
    /// The data does not decide, or nothing could be measured.
    Undecided,
}

impl CiOutcome {
    /// All outcomes.
    pub const ALL: [CiOutcome; 4] =
        [CiOutcome::Better, CiOutcome::Worse, CiOutcome::NoDifference, CiOutcome::Undecided];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            CiOutcome::Better => "better",
            CiOutcome::Worse => "worse",
            CiOutcome::NoDifference => "no-difference",
            CiOutcome::Undecided => "undecided",
        }
    }

    /// The outcome of a name.
    pub fn of(name: &str) -> Option<CiOutcome> {
        CiOutcome::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its words.
    pub const fn words(self) -> Text {
        match self {
            CiOutcome::Better => texts::OUTCOME_BETTER,
            CiOutcome::Worse => texts::OUTCOME_WORSE,
            CiOutcome::NoDifference => texts::OUTCOME_NONE,
            CiOutcome::Undecided => texts::OUTCOME_UNDECIDED,
        }
    }

    /// Its own exit code. 2 means that the run failed.
    pub const fn code(self) -> u8 {
        match self {
            CiOutcome::NoDifference => 0,
            CiOutcome::Worse => 1,
            CiOutcome::Undecided => 3,
            CiOutcome::Better => 4,
        }
    }
}

/// How one figure ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FigureEnd {
    Better,
    Worse,
    None,
    Open,
}

fn end_of(verdict: &str) -> FigureEnd {
    match verdict {
        "better" => FigureEnd::Better,
        // A trade-off is an improvement that a worse figure pays for.
        "worse" | "trade-off" => FigureEnd::Worse,
        "no difference" | "negligible" | "as expected" | "no errors" => FigureEnd::None,
        _ => FigureEnd::Open,
    }
}

/// The conclusion of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CiVerdict {
    /// The outcome.
    pub outcome: CiOutcome,
    /// The sentence with the figures, or the reason.
    pub text: Said,
    /// The keys of the figures that decide.
    pub figures: Vec<&'static str>,
}

/// The figures of a run that decide, the chosen one first.
fn deciding(run: &Value) -> Vec<(&'static Metric, &Value)> {
    let primary = run["design"]["primary"].as_str().unwrap_or_default();
    let all = [primary].into_iter().chain(ALWAYS.into_iter().filter(|key| *key != primary));
    let figures = || run["metrics"].as_array().into_iter().flatten();
    all.filter_map(|key| Some((metric::of(key)?, figures().find(|figure| figure["key"] == key)?))).collect()
}

/// Concludes from a run of `weir lab ab`.
pub fn judge(run: &Value) -> CiVerdict {
    let figures = deciding(run);
    let keys: Vec<&'static str> = figures.iter().map(|(metric, _)| metric.key).collect();
    let primary = run["verdict"]["name"].as_str().unwrap_or_default();
    let said = |json: &Value| weir_lab::said::read(&json["text_said"]).unwrap_or_else(|| text_of(json));
    let verdict = |outcome, text| CiVerdict { outcome, text, figures: keys.clone() };
    if matches!(primary, "" | "no verdict" | "not comparable") {
        return verdict(CiOutcome::Undecided, said(&run["verdict"]));
    }
    let with = |wanted: FigureEnd| -> Vec<Said> {
        let found = figures.iter().filter(|(_, json)| end_of(json["verdict"].as_str().unwrap_or_default()) == wanted);
        found.map(|(_, json)| said(json)).collect()
    };
    let (worse, better) = (with(FigureEnd::Worse), with(FigureEnd::Better));
    if !worse.is_empty() {
        let all: Vec<Said> = worse.into_iter().chain(better).collect();
        return verdict(CiOutcome::Worse, Said::list(&all, "; "));
    }
    if !better.is_empty() {
        return verdict(CiOutcome::Better, Said::list(&better, "; "));
    }
    let outcome = if end_of(primary) == FigureEnd::None { CiOutcome::NoDifference } else { CiOutcome::Undecided };
    verdict(outcome, said(&run["verdict"]))
}

fn text_of(json: &Value) -> Said {
    json["text"].as_str().unwrap_or_default().into()
}

/// The smallest difference of each deciding figure that the run could have seen.
pub fn detectable(run: &Value) -> Vec<Said> {
    let of = |(metric, json): &(&'static Metric, &Value)| {
        let amount = json["detectable"].as_f64().filter(|amount| *amount > 0.0)?;
        Some(say!(texts::SEEN_ABOVE, metric.key, plain(metric, amount)))
    };
    deciding(run).iter().filter_map(of).collect()
}

/// Of how many comparisons of equal revisions at most one says better or worse.
pub fn one_in(figures: usize) -> usize {
    (1.0 / (ALPHA * (LOOKS * figures.max(1)) as f64)).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(primary: &str, others: &[(&str, &str)]) -> Value {
        let figure = |(key, verdict): (&str, &str)| json!({"key": key, "verdict": verdict, "text": format!("{key} {verdict}"), "detectable": 0.04});
        let all = [("p50", primary)].into_iter().chain(others.iter().copied()).map(figure);
        json!({
            "design": {"primary": "p50"}, "metrics": all.collect::<Vec<_>>(),
            "verdict": {"name": primary, "text": format!("p50 {primary}")},
        })
    }

    #[test]
    fn one_worse_figure_decides_and_a_better_one_beside_it_is_told() {
        for (primary, others, outcome, text) in [
            ("better", &[][..], CiOutcome::Better, "p50 better"),
            ("better", &[("errors", "worse")], CiOutcome::Worse, "errors worse; p50 better"),
            ("no difference", &[("app_cpu", "worse")], CiOutcome::Worse, "app_cpu worse"),
            ("inconclusive", &[("app_cpu", "better"), ("cpu", "inconclusive")], CiOutcome::Better, "app_cpu better"),
            ("inconclusive", &[("errors", "no errors")], CiOutcome::Undecided, "p50 inconclusive"),
            ("negligible", &[("cpu", "inconclusive")], CiOutcome::NoDifference, "p50 negligible"),
            // A figure that nobody chose does not decide.
            ("no difference", &[("p99", "worse"), ("mean", "worse")], CiOutcome::NoDifference, "p50 no difference"),
            // Without a verdict on the chosen figure, the blocks are not trusted.
            ("no verdict", &[("errors", "worse")], CiOutcome::Undecided, "p50 no verdict"),
            ("not comparable", &[("errors", "worse")], CiOutcome::Undecided, "p50 not comparable"),
        ] {
            let verdict = judge(&run(primary, others));
            assert_eq!((verdict.outcome, verdict.text.en()), (outcome, text), "{primary} {others:?}");
        }
        assert_eq!(judge(&json!({})).outcome, CiOutcome::Undecided);
    }

    #[test]
    fn every_word_of_the_lab_has_an_end() {
        for row in weir_lab::verdict::ROWS {
            let is_open = matches!(row.name, "inconclusive" | "reclassified" | "no verdict" | "not comparable");
            assert_eq!(end_of(row.name) == FigureEnd::Open, is_open, "{}", row.name);
            assert_eq!(end_of(row.name) == FigureEnd::Worse, row.is_regression, "{}", row.name);
        }
    }

    #[test]
    fn the_error_probability_is_the_sum_over_looks_and_figures() {
        assert_eq!((one_in(4), one_in(2), one_in(0)), (250, 500, 1000));
        // The least pairs can reach the level: all differences have one sign.
        assert!(2.0 / 2f64.powi(crate::plan::PAIRS_LEAST as i32) <= ALPHA);
    }

    #[test]
    fn what_could_have_been_seen_is_told_for_each_deciding_figure() {
        let said = detectable(&run("inconclusive", &[("app_cpu", "inconclusive"), ("p99", "inconclusive")]));
        let said: Vec<&str> = said.iter().map(Said::en).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("p50 from 4.0 % on") && said[1].contains("app_cpu"), "{said:?}");
    }

    #[test]
    fn codes_and_names_are_different() {
        for (at, one) in CiOutcome::ALL.into_iter().enumerate() {
            assert_eq!(CiOutcome::of(one.name()), Some(one));
            assert!(CiOutcome::ALL.into_iter().skip(at + 1).all(|other| other.code() != one.code() && one.code() != 2));
        }
    }
}
