//! `ab`: two configurations in alternating blocks, or one beside itself.

use std::path::PathBuf;

use serde_json::{Value, json};
use weir_words::say;

use super::lab::{self, VerdictRow};
use super::shared::{Concluded, Prepared, RefusedCall, ToolCall, joined};
use crate::answer::{Evidence, ToolAnswer};
use crate::texts;

/// Most pairs of blocks.
const PAIRS_MAX: u64 = 24;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    lab::permission(call)?;
    let before = lab::startable(call, "before")?;
    let after = call.arguments.text("after").map(|_| lab::startable(call, "after")).transpose()?;
    let is_alone = after.is_none();
    let confs: Vec<PathBuf> = [before].into_iter().chain(after).collect();
    let mut words = lab::words(call, "ab", &confs)?;
    if is_alone {
        words.push("--aa".to_owned());
    }
    words.extend(call.arguments.text("metric").map(|metric| format!("--metric={metric}")));
    words.extend(call.arguments.whole("pairs").map(|pairs| format!("--pairs={pairs}")));
    for names in call.arguments.texts("together") {
        let is_plain =
            names.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_,".contains(&byte));
        if !is_plain {
            return Err(call.refused("bad_argument", say!(texts::TOGETHER_FORM), texts::REMEDY_ARGUMENT));
        }
        words.push(format!("--together={names}"));
    }
    Ok(lab::experiment(call, words))
}

/// The verdicts of the lab.
const WORDS: [VerdictRow; 11] = [
    ("no verdict", "no_verdict", texts::AB_NO_VERDICT),
    ("not comparable", "not_comparable", texts::AB_NOT_COMPARABLE),
    ("no errors", "no_errors", texts::AB_NO_ERRORS),
    ("trade-off", "trade_off", texts::AB_TRADE_OFF),
    ("reclassified", "reclassified", texts::AB_RECLASSIFIED),
    ("negligible", "negligible", texts::AB_NEGLIGIBLE),
    ("better", "better", texts::AB_BETTER),
    ("worse", "worse", texts::AB_WORSE),
    ("as expected", "as_expected", texts::AB_AS_EXPECTED),
    ("no difference", "no_difference", texts::AB_NO_DIFFERENCE),
    ("inconclusive", "inconclusive", texts::AB_INCONCLUSIVE),
];

pub(super) fn conclude(it: &Concluded<'_>) -> ToolAnswer {
    let run = it.json;
    let (name, mut answer) = lab::begin(it, &WORDS);
    answer.evidence(lab::sentence(it));
    let changes = weir_lab::said::shown_list(run, "changes", it.language);
    if !changes.is_empty() {
        answer.evidence(Evidence::new("changes", texts::THE_CHANGES.say(it.language)).data(&json!({"lines": changes})));
    }
    let idle = weir_lab::said::shown_list(run, "no_effect", it.language);
    if !idle.is_empty() {
        answer
            .evidence(Evidence::new("no_effect", texts::EXPECTED_IDLE.say(it.language)).data(&json!({"lines": idle})));
    }
    let primary = run["design"]["primary"].as_str().unwrap_or_default();
    for metric in run["metrics"].as_array().into_iter().flatten() {
        answer.evidence(measure(it, metric, metric["key"] == primary));
    }
    if let Some(metric) = run["metrics"].as_array().into_iter().flatten().find(|metric| metric["key"] == primary)
        && let (Some(low), Some(high)) = (metric["interval"][0].as_f64(), metric["interval"][1].as_f64())
    {
        let confidence = metric["confidence"].as_f64().unwrap_or_default();
        answer.interval(
            "primary metric",
            "relative change (0.1 is 10 %); percentage points for errors",
            (low, high),
            confidence,
        );
    }
    answer.not_measured(texts::OTHER_LOADS);
    if !lab::is_isolated(run) {
        answer.not_measured(texts::NOT_ISOLATED);
    }
    if run["is_interrupted"] == true {
        answer.not_measured(texts::INTERRUPTED);
    }
    next(it, name, &mut answer);
    answer
}

fn measure(it: &Concluded<'_>, metric: &Value, is_primary: bool) -> Evidence {
    const KEYS: [&str; 8] = ["throughput", "mean", "p50", "p95", "p99", "errors", "cpu", "app_cpu"];
    let text = if is_primary { texts::PRIMARY_METRIC } else { texts::OTHER_METRIC };
    let key = KEYS.into_iter().find(|known| metric["key"] == *known).unwrap_or("other");
    Evidence::new("metric", text.say(it.language)).with("metric", key).figures(json!({
        "before": metric["before"], "after": metric["after"], "effect": metric["effect"],
        "low": metric["interval"][0], "high": metric["interval"][1], "confidence": metric["confidence"],
        "pairs": metric["pairs"], "detectable": metric["detectable"], "threshold": metric["threshold"],
    }))
}

fn next(it: &Concluded<'_>, name: &str, answer: &mut ToolAnswer) {
    let load = it.arguments.only(&["path", "rate", "connections", "script"]);
    let is_script = it.arguments.text("script").is_some();
    let after = it.arguments.text("after");
    match (name, after) {
        ("inconclusive" | "not_comparable", _) if it.arguments.whole("pairs").is_none_or(|pairs| pairs < PAIRS_MAX) => {
            answer.next("ab", it.arguments.with("pairs", PAIRS_MAX), texts::NEXT_MORE_PAIRS);
        }
        ("no_verdict" | "inconclusive", _) => {
            if let Some(seconds) = lab::longer(it.json).filter(|_| !is_script) {
                answer.next("ab", it.arguments.with("seconds", seconds), texts::NEXT_LONGER);
            }
        }
        ("worse" | "trade_off", Some(after)) => {
            answer.next("why", joined(json!({"conf": after}), load), texts::NEXT_WHY_WORSE);
        }
        ("better" | "as_expected" | "no_difference" | "negligible", Some(after)) => {
            let load = it.arguments.only(&["path", "script"]);
            answer.next("capacity", joined(json!({"conf": after}), load), texts::NEXT_CAPACITY);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::input::Arguments;
    use crate::settings::ServerSettings;
    use crate::tools;

    #[test]
    fn every_word_of_the_lab_has_a_verdict_and_a_metric_its_interval() {
        let row = tools::find("ab").unwrap();
        let settings = ServerSettings::of_parent(&json!({}));
        for verdict in weir_lab::verdict::ROWS {
            let run = json!({
                "verdict": {"name": verdict.name, "text": "t"}, "design": {"primary": "p95"}, "asked": {"block_s": 20.0},
                "metrics": [{"key": "p95", "before": 1.0, "after": 2.0, "interval": [0.1, 0.2], "confidence": 0.95, "pairs": 8}],
            });
            let arguments = Arguments::read(row.parameters, &json!({"before": "a", "after": "b", "rate": 50})).unwrap();
            let it =
                Concluded { row, arguments: &arguments, settings: &settings, language: settings.language, json: &run };
            let answer = conclude(&it).json();
            let name = answer["verdict"]["name"].as_str().unwrap();
            assert_eq!(name, verdict.name.replace([' ', '-'], "_"));
            assert!(row.verdicts.contains(&name), "{name}");
            assert_eq!(
                (answer["interval"]["low"].as_f64(), answer["interval"]["confidence"].as_f64()),
                (Some(0.1), Some(0.95))
            );
            if let Some(tool) = answer["next"]["tool"].as_str() {
                let next = tools::find(tool).unwrap();
                assert!(Arguments::read(next.parameters, &answer["next"]["arguments"]).is_ok(), "{answer}");
            }
        }
    }
}
