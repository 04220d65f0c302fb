//! Parts of a report that several kinds of runs have.

use serde_json::Value;
use weir_words::Language;

use crate::metric::{self, Metric};
use crate::said::{say, shown, shown_list};
use crate::stats;
use crate::texts;
use crate::verdict::signed;

/// From this dispersion on, the report says that errors come in bursts, not one by one.
const DISPERSION_TOLD: f64 = 2.0;
/// Most changes, and most spoiled blocks, in a list.
pub(super) const LISTED_MAX: usize = 8;
/// The indent of changes below their side.
pub(crate) const INDENT: &str = "           ";

/// The line with the verdict.
pub(crate) fn verdict(run: &Value, language: Language) -> String {
    let text = shown(&run["verdict"], "text", language);
    let text = if text.is_empty() { texts::NONE.say(language).to_owned() } else { text };
    say!(VERDICT, text).say(language).to_owned()
}

/// A run's id, its configuration, its edge, its load.
pub(crate) fn title(run: &Value, language: Language) -> String {
    let (load, version) = (shown(run, "load", language), shown(&run["environment"], "before", language));
    say!(RUN_OF_CONF_LOAD, word(&run["id"]), word(&run["before"]["file"]), version, load).say(language).to_owned()
}

/// The ends of the interval, if there is one.
pub(crate) fn interval(json: &Value, metric: &Metric, language: Language) -> String {
    match (json["interval"][0].as_f64(), json["interval"][1].as_f64()) {
        (Some(low), Some(high)) => say!(FROM_TO, signed(metric, low), signed(metric, high)).say(language).to_owned(),
        _ => "–".to_owned(),
    }
}

/// Blocks that were not used, and notes that weaken the rest.
pub(crate) fn notes(run: &Value, language: Language) -> Vec<String> {
    let of_errors = of_errors(run, language).into_iter().chain(crate::elsewhere::notes(run, language));
    let of_errors = small(run, language).into_iter().chain(of_errors);
    spoiled(run, language).into_iter().chain(cautions(run, language)).chain(of_errors).collect()
}

/// A small load: the figures that need more requests, and the errors with exact intervals.
fn small(run: &Value, language: Language) -> Vec<String> {
    let requests = run["blocks"].as_array().into_iter().flatten().filter_map(|block| block["requests"].as_u64());
    let Some(most) = requests.max() else { return Vec::new() };
    let has = |key: &str| run["metrics"].as_array().into_iter().flatten().any(|json| json["key"] == key);
    let lacking: Vec<&Metric> =
        metric::METRICS.iter().filter(|metric| !has(metric.key) && metric.requests_min > most).collect();
    // A load with enough requests for the 95th percentile is not small.
    if !lacking.iter().any(|metric| metric.key == "p95") {
        return Vec::new();
    }
    let joined = |all: Vec<String>| all.join(", ");
    let keys = joined(lacking.iter().map(|metric| metric.key.to_owned()).collect());
    let needed = joined(lacking.iter().map(|metric| metric.requests_min.to_string()).collect());
    let mut said = vec![say!(LEFT_OUT_METRICS, keys, needed, most)];
    let errors = run["metrics"].as_array().into_iter().flatten().find(|json| json["key"] == "errors");
    let counts = errors.map(|json| [0, 1].map(|at| [0, 1].map(|of| json["failed"][at][of].as_u64().unwrap_or(0))));
    if let Some([before, after]) = counts.filter(|arms| arms.iter().any(|arm| arm[0] > 0)) {
        for (arm, [failed, of]) in [(say!(BEFORE), before), (say!(AFTER), after)] {
            let (low, high) = stats::exact_interval((failed, of), 0.95);
            let percent = |share: f64| metric::digits(share * 100.0);
            said.push(say!(EXACT_SHARE, arm, failed, of, percent(low), percent(high)));
        }
        let p = stats::fisher_mid_p((before[0], before[1]), (after[0], after[1]));
        said.push(say!(EXACT_DIFFERENCE, metric::digits(p)));
    }
    said.iter().map(|said| said.say(language).to_owned()).collect()
}

/// How far error counts can be trusted: the largest share that zero failures leave possible, and how much more than
/// by chance counts vary.
fn of_errors(run: &Value, language: Language) -> Vec<String> {
    let Some(json) = run["metrics"].as_array().into_iter().flatten().find(|json| json["key"] == "errors") else {
        return Vec::new();
    };
    let failed = |at: usize| (json["failed"][at][0].as_u64().unwrap_or(0), json["failed"][at][1].as_u64().unwrap_or(0));
    let arms = [(say!(BEFORE), failed(0)), (say!(AFTER), failed(1))];
    let has_any = arms.iter().any(|(_, (failed, _))| *failed > 0);
    let none = arms
        .iter()
        .filter(|(_, (failed, of))| has_any && *failed == 0 && *of > 0)
        .map(|(arm, (_, of))| say!(NO_ERRORS_OF, arm, *of, metric::digits(stats::zero_bound(*of) * 100.0)));
    let wide = json["over_dispersion"].as_f64().filter(|phi| *phi >= DISPERSION_TOLD);
    let wide = wide.map(|phi| say!(DISPERSED, metric::digits(phi)));
    none.chain(wide).map(|said| said.say(language).to_owned()).collect()
}

fn spoiled(run: &Value, language: Language) -> Vec<String> {
    let blocks = run["blocks"].as_array().into_iter().flatten().filter(|block| !is_used(block));
    let line = |block: &Value| {
        let (arm, pair) = (shown(block, "arm", language), block["pair"].as_u64().unwrap_or(0) + 1);
        let why = shown_list(block, "spoiled", language).join("; ");
        say!(NOT_USED, arm, pair, why).say(language).to_owned()
    };
    blocks.map(line).take(LISTED_MAX).collect()
}

/// Cautions that weaken the figures, each kind once.
pub(super) fn cautions(run: &Value, language: Language) -> Vec<String> {
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let with = blocks
        .iter()
        .filter(|block| is_used(block) && block["cautions"].as_array().is_some_and(|list| !list.is_empty()))
        .count();
    let mut said = Vec::new();
    if with > 0 {
        let example = blocks.iter().flat_map(|block| shown_list(block, "cautions", language)).next();
        said.push(say!(CAUTION_NOISY, with, blocks.len(), example.unwrap_or_default()));
    }
    if run["is_interrupted"] == true {
        said.push(say!(STOPPED_EARLY));
    }
    if let Some(throttled) = run["throttled"]["throttled"].as_u64() {
        said.push(say!(THROTTLED, throttled, run["throttled"]["periods"].to_string()));
    }
    said.iter().map(|said| said.say(language).to_owned()).collect()
}

pub(super) fn is_used(block: &Value) -> bool {
    block["spoiled"].as_array().is_none_or(Vec::is_empty)
}

/// A text of the run; empty if there is none.
pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
