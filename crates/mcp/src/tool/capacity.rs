//! `capacity`: the largest rate at which a latency and the errors stay within limits.

use serde_json::json;

use super::lab::{self, VerdictRow};
use super::shared::{Concluded, Prepared, RefusedCall, ToolCall, joined};
use crate::answer::{Evidence, ToolAnswer};
use crate::texts;

/// `why` looks a little above the capacity: there the objective no longer holds.
const ABOVE: f64 = 1.2;
/// Most connections that an answer recommends.
const CONNECTIONS_MAX: u64 = 4_096;
/// Connections of a search, if the call does not say.
const CONNECTIONS: u64 = 256;
/// The confidence of the interval that the lab stores.
const CONFIDENCE: f64 = 0.95;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    lab::permission(call)?;
    let conf = lab::startable(call, "conf")?;
    let mut words = lab::words(call, "capacity", &[conf])?;
    words.extend(lab::slo(call)?);
    Ok(lab::experiment(call, words))
}

/// The verdicts of the lab.
const WORDS: [VerdictRow; 4] = [
    ("no verdict", "no_verdict", texts::CAPACITY_NO_VERDICT),
    ("capacity", "capacity", texts::CAPACITY_FOUND),
    ("nothing", "nothing", texts::CAPACITY_NOTHING),
    ("everything", "everything", texts::CAPACITY_EVERYTHING),
];

pub(super) fn conclude(it: &Concluded<'_>) -> ToolAnswer {
    let run = it.json;
    let (name, mut answer) = lab::begin(it, &WORDS);
    let figures = json!({"rate": run["verdict"]["rate"], "half_of_tries_hold_at": run["verdict"]["half"]});
    answer.evidence(lab::sentence(it).figures(figures));
    for step in run["steps"].as_array().into_iter().flatten() {
        let text = if step["passed"] == true { texts::RATE_HELD } else { texts::RATE_FAILED };
        let figures = json!({"rate": step["rate"], "held": step["passed"], "answered_per_second": step["answered"]});
        let evidence = Evidence::new("rate", text.say(it.language)).figures(figures);
        answer.evidence(match step["why"].as_str() {
            Some(_) => evidence.data(&json!({"why": weir_lab::said::shown(step, "why", it.language)})),
            None => evidence,
        });
    }
    if let (Some(low), Some(high)) = (run["verdict"]["interval"][0].as_f64(), run["verdict"]["interval"][1].as_f64()) {
        answer.interval("rate at which half of the tries hold", "requests a second", (low, high), CONFIDENCE);
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

fn next(it: &Concluded<'_>, name: &str, answer: &mut ToolAnswer) {
    if it.arguments.text("script").is_some() {
        return;
    }
    let why = |rate: f64| joined(it.arguments.only(&["conf", "path"]), json!({"rate": rate}));
    match (name, it.json["verdict"]["rate"].as_f64()) {
        ("capacity", Some(rate)) => answer.next("why", why((rate * ABOVE).ceil()), texts::NEXT_WHY_ABOVE),
        ("nothing", _) => answer.next("why", why(1.0), texts::NEXT_WHY_NOTHING),
        ("everything", _) => {
            let most = it.arguments.whole("connections").unwrap_or(CONNECTIONS) * 4;
            if most <= CONNECTIONS_MAX {
                answer.next("capacity", it.arguments.with("connections", most), texts::NEXT_CONNECTIONS);
            }
        }
        _ => {
            if let Some(seconds) = lab::longer(it.json) {
                answer.next("capacity", it.arguments.with("seconds", seconds), texts::NEXT_LONGER);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::Value;

    use crate::input::Arguments;
    use crate::settings::ServerSettings;
    use crate::tools;

    fn of(word: &str, rate: Value) -> Value {
        let row = tools::find("capacity").unwrap();
        let settings = ServerSettings::of_parent(&json!({}));
        let run = json!({
            "verdict": {"name": word, "text": "t", "rate": rate, "interval": [90.0, 120.0]}, "asked": {"block_s": 10.0},
            "steps": [{"rate": 100.0, "passed": true, "answered": 99.5}, {"rate": 200.0, "passed": false, "why": "p95 80 ms"}],
        });
        let arguments = Arguments::read(row.parameters, &json!({"conf": "n.conf", "path": "/x"})).unwrap();
        conclude(&Concluded {
            row,
            arguments: &arguments,
            settings: &settings,
            language: settings.language,
            json: &run,
        })
        .json()
    }

    #[test]
    fn each_end_of_a_search_leads_on() {
        let found = of("capacity", json!(100.0));
        assert_eq!(found["next"]["arguments"], json!({"conf": "n.conf", "path": "/x", "rate": 120.0}));
        assert_eq!(
            (found["interval"]["low"].as_f64(), found["evidence"][2]["data"]["why"].as_str()),
            (Some(90.0), Some("p95 80 ms"))
        );
        assert_eq!(of("nothing", Value::Null)["next"]["tool"], "why");
        assert_eq!(of("everything", Value::Null)["next"]["arguments"]["connections"], 1024);
        assert_eq!(of("no verdict", Value::Null)["next"]["arguments"]["seconds"], 20.0);
    }
}
