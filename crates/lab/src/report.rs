//! A stored run as text for a terminal, in the reader's language.

pub(crate) mod parts;

use serde_json::Value;
use weir_words::Language;

use crate::metric::{self, Metric};
use crate::said::{Said, left, right, say, shown, shown_list, width};
use crate::texts;
use crate::verdict::{plain, signed};
pub(crate) use parts::{INDENT, interval, notes, title, verdict};
use parts::{LISTED_MAX, cautions, is_used, word};

/// The whole report.
pub fn text(run: &Value, language: Language) -> String {
    match run["kind"].as_str() {
        Some("capacity") => return capacity(run, language),
        Some("why") => return cause(run, language),
        Some("tune") => return crate::tune::text(run, language),
        Some("factorial") => return crate::factorial::text(run, language),
        Some("lab") => return crate::experiment::report::text(run, language),
        _ => {}
    }
    let mut lines = head(run, language);
    lines.push(String::new());
    lines.push(strips(run, language));
    lines.push(table(run, language));
    lines.extend(notes(run, language));
    lines.push(verdict(run, language));
    if run["kind"] == "aa" {
        lines.push(calibration(run, language));
    }
    lines.join("\n") + "\n"
}

/// The verdict of `weir lab why`, with its evidence.
fn cause(run: &Value, language: Language) -> String {
    let caution = |caution: &String| say!(CAUTION, caution).say(language).to_owned() + "\n";
    let cautions: String = shown_list(run, "cautions", language).iter().map(caution).collect();
    format!("{}\n\n{}{cautions}", title(run, language), crate::why::say::text(run, language))
}

/// The report of a search: its tries, in order.
fn capacity(run: &Value, language: Language) -> String {
    let (id, file) = (word(&run["id"]), word(&run["before"]["file"]));
    let mut lines = vec![
        say!(RUN_OF_CONF, id, file, word(&run["environment"]["before"])).say(language).to_owned(),
        say!(OBJECTIVE_LINE, shown(run, "objective", language)).say(language).to_owned(),
        String::new(),
    ];
    if let Some(think) = run["think_s"].as_f64() {
        lines.insert(2, say!(THINKING, metric::digits(think)).say(language).to_owned());
    }
    for step in run["steps"].as_array().into_iter().flatten() {
        let rate = level(run, step);
        let confirmed = if step["is_confirmation"] == true { texts::CONFIRMATION.say(language) } else { "" };
        lines.push(format!("{}  {}{confirmed}", right(rate.say(language), STEP_COLUMNS), held(step, language)));
    }
    lines.extend(law(&run["usl"], language));
    lines.extend(cautions(run, language));
    lines.push(verdict(run, language));
    lines.join("\n") + "\n"
}

/// The rate of a step, or its number of users.
pub(crate) fn level(run: &Value, step: &Value) -> Said {
    let level = step["rate"].as_f64().unwrap_or(f64::NAN);
    if run["axis"] == "users" { say!(USERS, format!("{level:.0}")) } else { say!(RATE, metric::digits(level)) }
}

/// The width of the column for rates.
const STEP_COLUMNS: usize = 12;

/// Whether the objective held at a rate, and if not, why.
pub(crate) fn held(step: &Value, language: Language) -> String {
    match step["why"].is_null() {
        true => texts::HOLDS.say(language).to_owned(),
        false => say!(FAILS, shown(step, "why", language)).say(language).to_owned(),
    }
}

fn law(usl: &Value, language: Language) -> Option<String> {
    let sigma = usl["sigma"].as_f64()?;
    let peak = match usl["peak_in_flight"].as_f64() {
        None => say!(NO_PEAK),
        Some(peak) => {
            let high = usl["peak_interval"][1].as_f64();
            let high = high.map_or(say!(BEYOND), |high| metric::digits(high).into());
            let low = usl["peak_interval"][0].as_f64();
            let ends = low.map(|low| say!(PEAK_ENDS, metric::digits(low), high)).unwrap_or_default();
            say!(PEAK, metric::digits(peak), ends)
        }
    };
    let kappa = usl["kappa"].as_f64().unwrap_or(0.0);
    Some(say!(LAW, metric::digits(sigma), metric::digits(kappa), peak).say(language).to_owned())
}

fn head(run: &Value, language: Language) -> Vec<String> {
    // HTTP/1.1 is what is asked in if nothing is said.
    let protocol =
        |key: &str| run[key]["protocol"].as_str().filter(|name| *name != "HTTP/1.1").map(|name| format!(", {name}"));
    let side = |key: &str| {
        let version = shown(&run["environment"], key, language);
        format!("{} ({version}){}", word(&run[key]["file"]), protocol(key).unwrap_or_default())
    };
    let mut said = vec![say!(RUN, word(&run["id"]), shown(run, "load", language))];
    if run["kind"] == "aa" {
        said.push(say!(A_TWICE, side("before")));
    } else {
        said.extend([say!(A_BEFORE, side("before")), say!(B_AFTER, side("after"))]);
    }
    let mut lines: Vec<String> = said.iter().map(|one| one.say(language).to_owned()).collect();
    if run["kind"] != "aa" {
        lines.extend(shown_list(run, "changes", language).iter().take(LISTED_MAX).map(|one| format!("{INDENT}{one}")));
    }
    if run["kind"] == "elsewhere" {
        lines.push(texts::UNPAIRED.say(language).to_owned());
        return lines;
    }
    let asked = &run["asked"];
    lines.extend(asked["link"].as_str().map(|link| say!(CLIENT_LINK, link).say(language).to_owned()));
    let isolated = if asked["is_isolated"] == true { say!(OWN_NAMESPACES) } else { say!(PLAIN_PROCESSES) };
    let each = match () {
        () if run["is_duet"] == true => say!(EACH_DUET),
        () if run["is_kept_warm"] == true => say!(EACH_QUARTET),
        () => say!(EACH_BLOCK),
    };
    let cpus = |who: &str| list(&asked["cpus"][who]);
    let (block, seed) = (asked["block_s"].to_string(), run["seed"].to_string());
    let blocks = say!(BLOCKS_OF, block, seed, each, isolated, cpus("edge"), cpus("client"), cpus("origin"));
    lines.push(blocks.say(language).to_owned());
    lines
}

/// The blocks in order, each as a letter. A lower-case letter is a block that was not used.
fn strips(run: &Value, language: Language) -> String {
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let key = run["design"]["primary"].as_str().unwrap_or_default();
    let letters: String = blocks
        .iter()
        .map(|block| {
            let letter = block["arm"].as_str().unwrap_or("?");
            if is_used(block) { letter.to_owned() } else { letter.to_lowercase() }
        })
        .collect();
    let values = |arm: &str| {
        let of = blocks.iter().filter(|block| block["arm"] == arm && is_used(block));
        of.filter_map(|block| block["values"][key].as_f64()).map(metric::digits).collect::<Vec<_>>().join(" ")
    };
    let unit = metric::of(key).map_or("", |metric| metric.unit);
    let lines = [
        say!(ORDER, letters),
        say!(FIGURES_OF, key, "A", unit, values("A")),
        say!(FIGURES_OF, key, "B", unit, values("B")),
    ];
    lines.iter().map(|line| format!("{}\n", line.say(language))).collect()
}

fn table(run: &Value, language: Language) -> String {
    let heads = [texts::BEFORE, texts::AFTER, texts::CHANGED, texts::INTERVAL, texts::DETECTABLE];
    let mut rows =
        vec![[""].into_iter().chain(heads.iter().map(|head| head.say(language))).map(str::to_owned).collect()];
    for json in run["metrics"].as_array().into_iter().flatten() {
        let Some(metric) = json["key"].as_str().and_then(metric::of) else { continue };
        rows.push(row(json, metric, run["design"]["primary"] == metric.key, language));
    }
    let column = |column: usize| {
        rows.iter().filter_map(|row: &Vec<String>| row.get(column)).map(|text| width(text)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(column).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (text, width))| match at {
                0 => left(text, *width),
                _ => right(text, *width),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        })
        .collect()
}

fn row(json: &Value, metric: &Metric, is_primary: bool, language: Language) -> Vec<String> {
    let show = |key: &str, at: usize| {
        let least = if json["is_least"][at] == true { "≥ " } else { "" };
        json[key].as_f64().map_or("–".to_owned(), |value| format!("{least}{}", metric.show(value)))
    };
    vec![
        format!("{}{}", metric.key, if is_primary { " *" } else { "" }),
        show("before", 0),
        show("after", 1),
        json["effect"].as_f64().map_or("–".to_owned(), |effect| signed(metric, effect)),
        interval(json, metric, language),
        json["detectable"].as_f64().map_or("–".to_owned(), |amount| plain(metric, amount)),
    ]
}

/// The result of comparing a configuration with itself.
fn calibration(run: &Value, language: Language) -> String {
    let alarms: Vec<&str> = run["metrics"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|json| {
            json["interval"].as_array().is_some_and(|ends| {
                ends.iter().all(|end| end.as_f64() > Some(0.0)) || ends.iter().all(|end| end.as_f64() < Some(0.0))
            })
        })
        .filter(|json| json["p_holm"].as_f64().is_some_and(|p| p < 0.05))
        .filter_map(|json| json["key"].as_str())
        .collect();
    let sentence = if alarms.is_empty() { say!(CALIBRATED) } else { say!(FALSE_ALARM, alarms.join(", ")) };
    let heads = [say!(DETECTABLE), say!(SPREAD), say!(PAIRS, 8u32), say!(PAIRS, 16u32), say!(PAIRS, 24u32)];
    let line = |[name, cells @ ..]: [&str; 5]| {
        let cells = cells.iter().zip([10, 12, 12, 12]).map(|(cell, columns)| right(cell, columns));
        left(name, 12) + &cells.collect::<String>()
    };
    let mut lines = vec![sentence.say(language).to_owned(), line(heads.each_ref().map(|head| head.say(language)))];
    for json in run["metrics"].as_array().into_iter().flatten() {
        let (Some(metric), Some(deviation)) = (json["key"].as_str().and_then(metric::of), json["deviation"].as_f64())
        else {
            continue;
        };
        if metric.scale == metric::Scale::Share {
            continue;
        }
        let at = |pairs| plain(metric, crate::stats::detectable(deviation, pairs, crate::stats::LOOK_ALPHA).exp_m1());
        lines.push(line([metric.key, &plain(metric, deviation), &at(8), &at(16), &at(24)]));
    }
    lines.join("\n")
}

fn list(json: &Value) -> String {
    json.as_array().into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;
    use weir_words::{english_in, is_korean};

    pub(crate) fn run() -> Value {
        json!({
            "id": "20260101-000000-000", "kind": "ab", "seed": 7, "load": "/1k at 500 a second over 16 connections",
            "before": {"file": "/a.conf"}, "after": {"file": "/b.conf"},
            "environment": {"before": "nginx/1.22.1", "after": "nginx/1.22.1"},
            "changes": ["keepalive (in http/upstream app): none → 64"],
            "asked": {"block_s": 20.0, "is_isolated": true, "cpus": {"edge": [0], "client": [1], "origin": [1]}},
            "design": {"primary": "p95", "looks": [8], "alpha": 0.05},
            "blocks": [
                {"pair": 0, "arm": "A", "values": {"p95": 41.0}, "spoiled": [], "cautions": []},
                {"pair": 0, "arm": "B", "values": {"p95": 30.0}, "spoiled": ["other work used 20 %"], "cautions": []},
                {"pair": 0, "arm": "B", "values": {"p95": 35.0}, "spoiled": [], "cautions": ["drift"]},
            ],
            "metrics": [{"key": "p95", "before": 41.0, "after": 35.0, "effect": -0.15, "interval": [-0.18, -0.12], "detectable": 0.04, "deviation": 0.03, "p_holm": 0.01}],
            "verdict": {"text": "faster by 12–18 %"},
        })
    }

    #[test]
    fn a_run_can_be_read() {
        let text = text(&run(), Language::English);
        for part in [
            "Order   AbB",
            "p95 *",
            "−15 %",
            "−18 % to −12 %",
            "4.0 %",
            "Not used: B of pair 1: other work",
            "keepalive",
            "Verdict: faster by 12–18 %",
            "1 of 3 blocks",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn counts_of_errors_say_what_they_leave_open() {
        let mut run = run();
        run["metrics"] =
            json!([{"key": "errors", "before": 0.1, "failed": [[132, 930], [0, 930]], "over_dispersion": 5.7}]);
        let text = text(&run, Language::English);
        assert!(text.contains("Errors after: 0 of 930; 95 % upper bound 0.322 %"), "{text}");
        assert!(text.contains("5.70 times as much as by chance"), "{text}");
    }

    #[test]
    fn a_search_is_told_in_its_order() {
        let run = json!({
            "kind": "capacity", "id": "x", "objective": "p95 ≤ 20 ms", "verdict": {"text": "capacity 400/s"},
            "steps": [{"rate": 400.0, "passed": true}, {"rate": 600.0, "passed": false, "why": "p95 30 ms", "is_confirmation": true}],
            "usl": {"sigma": 0.05, "kappa": 0.001, "peak_in_flight": 30.0, "peak_interval": [25.0, 40.0]},
        });
        let text = text(&run, Language::English);
        for part in [
            "400/s  holds",
            "600/s  fails: p95 30 ms (confirmation)",
            "peak at 30.0 in flight (95 %: 25.0 to 40.0)",
            "capacity 400/s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_calibration_names_false_alarms_and_what_can_be_seen() {
        let mut run = run();
        run["kind"] = json!("aa");
        assert!(text(&run, Language::English).contains("false alarm of p95"));
        run["metrics"][0]["interval"] = json!([-0.01, 0.02]);
        let text = text(&run, Language::English);
        assert!(text.contains("no false alarm") && text.contains("p95              3.0 %       4.1 %"), "{text}");
        assert!(super::text(&Value::Null, Language::English).contains("Verdict: none"));
    }

    /// One run of each kind, with its texts stored by name.
    fn runs() -> Vec<Value> {
        let verdict = |said: Said| json!({"text": said.en(), "text_said": said});
        let mut ab = run();
        ab["verdict"] = verdict(say!(NO_DIFFERENCE, "5.0 %", say!(PAIRS, 8u32)));
        ab["load_said"] = json!(say!(LOAD_AT_RATE, "/1k", 500u32, 16u32));
        ab["changes_said"] = json!([say!(CHANGE, "keepalive", "http/upstream app", say!(NONE), "64")]);
        ab["blocks"][1]["spoiled"] = json!([say!(FOREIGN, "20", "5").en()]);
        ab["blocks"][1]["spoiled_said"] = json!([say!(FOREIGN, "20", "5")]);
        ab["blocks"][2]["cautions"] = json!([say!(CORE_BUSY, "99").en()]);
        ab["blocks"][2]["cautions_said"] = json!([say!(CORE_BUSY, "99")]);
        ab["metrics"]
            .as_array_mut()
            .unwrap()
            .push(json!({"key": "errors", "before": 0.1, "failed": [[132, 930], [0, 930]], "over_dispersion": 5.7}));
        ab["throttled"] = json!({"throttled": 3, "periods": 9});
        ab["is_interrupted"] = json!(true);
        let mut aa = ab.clone();
        aa["kind"] = json!("aa");
        let mut elsewhere = ab.clone();
        elsewhere["kind"] = json!("elsewhere");
        elsewhere["within"] = json!([{
            "arm": "A", "throughput": 900.0, "interval": [890.0, 910.0],
            "label": say!(WITHIN).en(), "label_said": say!(WITHIN),
        }]);
        let objective = say!(OBJECTIVE, "p95", 20u32, "0.1");
        let capacity = json!({
            "kind": "capacity", "id": "x", "before": {"file": "/a"}, "environment": {"before": "weir/0.1.0"},
            "objective": objective.en(), "objective_said": objective, "verdict": verdict(say!(NO_LIMIT, 400u32, objective)),
            "steps": [{"rate": 400.0}, {"rate": 600.0, "why": "10 % failed", "why_said": say!(SHARE_FAILED, 10u32), "is_confirmation": true}],
            "usl": {"sigma": 0.05, "kappa": 0.001, "peak_in_flight": 30.0, "peak_interval": [25.0, null]},
        });
        let tune = json!({
            "kind": "tune", "id": "x", "before": {"file": "/a"}, "environment": {"before": "weir/0.1.0"}, "load": "/1k",
            "tries": [{"knob": "k", "says": "asked for", "says_said": say!(ASKED_FOR), "run": "7", "is_kept": true,
                "verdict": verdict(say!(POINTLESS, Said::of_both("60s is the default", "60s가 기본값입니다")))}],
            "files": [{"name": "/a"}], "verdict": verdict(say!(TUNED, 1u32, 1u32, "k", say!(TOGETHER_UNMEASURED))),
        });
        let of = say!(WITH, "gzip", "keepalive");
        let factorial = json!({
            "kind": "factorial", "id": "x", "before": {"file": "/a"}, "environment": {"before": "weir/0.1.0"}, "load": "/1k",
            "cells": ["nothing"], "cells_said": [say!(NOTHING)], "factors": [{"name": "gzip"}], "seed": 1,
            "asked": {"block_s": 1.0}, "design": {"primary": "p95", "rounds": 8, "alpha": 0.0167}, "blocks": [],
            "effects": [{"metric": "p95", "mask": 3, "of": of.en(), "of_said": of, "effect": 0.1, "interval": [0.0, 0.2]}],
            "verdict": verdict(say!(NOT_COMPARABLE, say!(NO_ROUND))),
        });
        let lab = json!({
            "kind": "lab", "name": "s0", "title": "", "prior": "x", "edges": [{"edge": "weir", "version": "1"}],
            "expected": [{"edge": "weir", "variant": "v", "says": "p95", "holds": false,
                "found": "not measured: x", "found_said": say!(NOT_MEASURED, "x"),
                "wanted": "1 to 2", "wanted_said": say!(FROM_TO, 1u32, 2u32)}],
            "blocks": [{"edge": "weir", "variant": "v", "answer": {"load": {"weir": {"response": {"p50": 1.5}}}}}],
            "verdict": verdict(say!(NAMED, "s0", say!(SOME_FAIL, 1u32, 1u32))),
        });
        vec![ab, aa, elsewhere, capacity, tune, factorial, lab]
    }

    #[test]
    fn every_kind_of_run_is_told_in_korean() {
        for run in runs() {
            let (korean, english) = (text(&run, Language::Korean), text(&run, Language::English));
            assert_eq!(english_in(&korean), None, "{korean}");
            // If an English line has words, its Korean line has Korean ones.
            for (ko, en) in korean.lines().zip(english.lines()) {
                let has_words = english_in(&format!("{en} ")).is_some();
                assert!(!has_words || is_korean(ko), "{ko}");
            }
            assert_eq!(korean.lines().count(), english.lines().count(), "{korean}");
            assert!(!english.lines().any(is_korean), "{english}");
            let page = crate::html::page(&run, Language::Korean);
            assert!(page.contains("<html lang=\"ko\">"), "{page}");
            let body = page.split("</style>").nth(1).and_then(|body| body.split("<script").next()).unwrap_or_default();
            let words: String =
                body.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| format!("{text}\n")).collect();
            assert!(english_in(&words).is_none(), "{:?} in {words}", english_in(&words));
        }
    }

    #[test]
    fn a_run_that_was_kept_without_names_stays_as_it_is() {
        let korean = text(&run(), Language::Korean);
        for part in ["판정: faster by 12–18 %", "쓰지 않은 블록: 1번째 쌍의 B: other work used 20 %", "변경 전"]
        {
            assert!(korean.contains(part), "{part}: {korean}");
        }
    }
}
