//! `why`: what limits a configuration under load (`weir lab why`), or a system that runs (`weir why`).

use std::time::Duration;

use serde_json::{Value, json};
use weir_lab::why::rules;
use weir_words::say;

use super::lab::{self, VerdictRow};
use super::shared::{Concluded, Prepared, RefusedCall, ToolCall, VerbRun};
use crate::answer::{Evidence, ToolAnswer};
use crate::texts;

/// How long a running system is watched, s, if the call does not say.
const WATCH_S: f64 = 20.0;
/// Time beside the watch itself: to find the edge, to read its files, and to judge.
const BESIDE: Duration = Duration::from_secs(60);
/// The confidence of the interval of an elasticity.
const CONFIDENCE: f64 = 0.95;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    if call.arguments.flag("running") {
        return running(call);
    }
    lab::permission(call)?;
    if call.arguments.text("conf").is_none() {
        return Err(call.refused("bad_argument", say!(texts::WHY_NEEDS), texts::REMEDY_ARGUMENT));
    }
    let conf = lab::startable(call, "conf")?;
    let mut words = lab::words(call, "why", &[conf])?;
    words.extend(call.settings.why_flags.iter().cloned());
    words.extend(lab::slo(call)?);
    for (argument, flag) in [("prove", "--prove"), ("inside", "--inside"), ("try", "--try")] {
        words.extend(call.arguments.flag(argument).then(|| flag.to_owned()));
    }
    if !call.arguments.flag("try") {
        words.extend(["--try-budget".to_owned(), "0".to_owned()]);
    }
    Ok(lab::experiment(call, words))
}

fn running(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    if !call.settings.watches_running {
        return Err(call.refused("running_not_allowed", say!(texts::RUNNING_NOT_ALLOWED), texts::REMEDY_RUNNING));
    }
    let seconds = call.arguments.number("seconds").unwrap_or(WATCH_S).clamp(2.0, 600.0);
    let mut words = vec!["why".to_owned(), "--json".to_owned(), format!("--for={}ms", (seconds * 1000.0).round())];
    words.extend(call.arguments.whole("edge_pid").map(|pid| format!("--edge={pid}")));
    words.extend(call.arguments.flag("inside").then(|| "--inside".to_owned()));
    words.extend(lab::slo(call)?);
    words.extend(call.settings.token.iter().map(|token| format!("--token={}", token.display())));
    Ok(Prepared::Run(VerbRun { words, is_experiment: false, limit: Duration::from_secs_f64(seconds) + BESIDE }))
}

/// The verdicts of the lab.
const WORDS: [VerdictRow; 7] = [
    ("no verdict", "no_verdict", texts::WHY_NO_VERDICT),
    ("POLICY", "policy", texts::WHY_POLICY),
    ("PROVED", "proved", texts::WHY_PROVED),
    ("SHARED", "shared", texts::WHY_SHARED),
    ("SUSPECTED", "suspected", texts::WHY_SUSPECTED),
    ("UNATTRIBUTED", "unattributed", texts::WHY_UNATTRIBUTED),
    ("NOT SATURATED", "not_saturated", texts::WHY_NOT_SATURATED),
];

pub(super) fn conclude(it: &Concluded<'_>) -> ToolAnswer {
    let run = it.json;
    let (name, mut answer) = lab::begin(it, &WORDS);
    answer.evidence(lab::sentence(it));
    let findings = run["findings"].as_array().map_or(&[][..], Vec::as_slice);
    let lead = run["lead"].as_u64().and_then(|at| usize::try_from(at).ok());
    for (at, finding) in findings.iter().enumerate() {
        answer.evidence(suspect(it, finding, lead == Some(at)));
    }
    for arm in run["elasticities"].as_array().into_iter().flatten() {
        answer.evidence(squeezed(it, arm));
        let is_lead = arm["finding"].as_u64().and_then(|at| usize::try_from(at).ok()) == lead && lead.is_some();
        if let (Some(low), Some(high), true, false) =
            (arm["low"].as_f64(), arm["high"].as_f64(), is_lead, arm["is_relaxed"] == true)
        {
            answer.interval("elasticity", "share of the change of the resource", (low, high), CONFIDENCE);
        }
    }
    if let Some(tried) = run["tried"].as_object() {
        let text = tried.get("text").cloned().unwrap_or_default();
        answer.evidence(Evidence::new("tried", texts::LINE_TRIED.say(it.language)).data(&json!({"text": text})));
    }
    let load = figures(run);
    answer.evidence(Evidence::new("load", texts::THE_LOAD.say(it.language)).figures(load));
    let ruled_out = weir_lab::said::shown_list(run, "ruled_out", it.language);
    if !ruled_out.is_empty() {
        answer
            .evidence(Evidence::new("ruled_out", texts::RULED_OUT.say(it.language)).data(&json!({"lines": ruled_out})));
    }
    let unread = weir_lab::said::shown_list(run, "unread", it.language);
    if !unread.is_empty() {
        answer.not_measured(say!(texts::UNREAD, unread.len()));
        answer.evidence(Evidence::new("unread", texts::UNREAD_ARE.say(it.language)).data(&json!({"lines": unread})));
    }
    gaps(it, name, &mut answer);
    next(it, name, &mut answer);
    answer
}

/// A finding. The rule's sentence is weir's; the rest names processes, addresses and lines of the configuration.
fn suspect(it: &Concluded<'_>, finding: &Value, is_lead: bool) -> Evidence {
    let id = finding["rule"].as_str().unwrap_or_default();
    let rule = rules::all().find(|rule| rule.id == id);
    let says = rule.map_or("", |rule| rule.says.say(it.language));
    let shown = |name: &str| weir_lab::said::shown(finding, name, it.language);
    let lines: Vec<String> = finding["evidence"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|line| Some(format!("{}: {}", line[0].as_str()?, line[1].as_str()?)))
        .collect();
    Evidence::new(if is_lead { "suspect" } else { "also" }, says)
        .with("rule", rule.map_or("", |rule| rule.id))
        .figures(json!({"score": finding["score"]}))
        .data(&json!({
            "subject": shown("subject"), "evidence": lines, "change": shown("knob"), "expected": shown("expect"),
        }))
}

fn squeezed(it: &Concluded<'_>, arm: &Value) -> Evidence {
    let text = if arm["is_relaxed"] == true { texts::GIVEN_MORE } else { texts::SQUEEZED };
    let names = ["value", "low", "high", "from", "to", "rounds"];
    let figures: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), arm[*name].clone())).collect();
    Evidence::new("experiment", text.say(it.language)).figures(figures.into()).data(&json!({"resource": arm["name"]}))
}

/// The figures of the load.
fn figures(run: &Value) -> Value {
    let (load, seconds) = (&run["signals"]["load"], run["signals"]["seconds"].as_f64());
    let answered = load["answered"].as_f64().zip(seconds).map(|(answered, seconds)| answered / seconds.max(1e-9));
    json!({
        "offered_per_second": load["offered"], "answered_per_second": answered, "sent": load["sent"], "good": load["well"],
        "p95_ms": load["ms"][2], "largest_rate_that_held": run["knee"],
    })
}

/// The things that the run did not look at.
fn gaps(it: &Concluded<'_>, name: &str, answer: &mut ToolAnswer) {
    let is_running = it.arguments.flag("running");
    let is_full = matches!(name, "suspected" | "proved" | "shared" | "unattributed");
    if is_full && !it.arguments.flag("prove") && !is_running {
        answer.not_measured(texts::NOT_SQUEEZED);
    }
    if is_full && !it.arguments.flag("try") && !is_running {
        answer.not_measured(texts::LINE_NOT_TRIED);
    }
    if name == "unattributed" && !it.arguments.flag("inside") {
        answer.not_measured(texts::NOT_INSIDE);
    }
    if !is_running && !lab::is_isolated(it.json) {
        answer.not_measured(texts::NOT_ISOLATED);
    }
    if is_running {
        answer.not_measured(texts::RUNNING_UNPROVED);
    }
    if it.json["is_interrupted"] == true {
        answer.not_measured(texts::INTERRUPTED);
    }
}

/// The next experiment: one that can change the verdict. A chain of them ends.
fn next(it: &Concluded<'_>, name: &str, answer: &mut ToolAnswer) {
    let has = |flag: &str| it.arguments.flag(flag);
    let is_running = has("running");
    let (can_prove, is_proved) = (!is_running && lab::is_isolated(it.json), has("prove"));
    let again_longer = || {
        let is_script = it.arguments.text("script").is_some();
        let watched = it.arguments.number("seconds").unwrap_or(WATCH_S) * 2.0;
        let longer = if is_running { (watched <= 120.0).then_some(watched) } else { lab::longer(it.json) };
        longer.filter(|_| !is_script).map(|seconds| it.arguments.with("seconds", seconds))
    };
    match name {
        "suspected" if can_prove && !is_proved => {
            answer.next("why", it.arguments.with("prove", true), texts::NEXT_PROVE);
        }
        "suspected" | "proved" | "shared" if !is_running && !has("try") && has_line(it.json) => {
            answer.next("why", it.arguments.with("try", true), texts::NEXT_TRY);
        }
        "unattributed" if !has("inside") => answer.next("why", it.arguments.with("inside", true), texts::NEXT_INSIDE),
        "policy" if !is_running => answer.next("explain", it.arguments.only(&["conf"]), texts::NEXT_EXPLAIN),
        "not_saturated" if !is_running && it.arguments.text("script").is_none() => {
            answer.next("capacity", it.arguments.only(&["conf", "path", "slo"]), texts::NEXT_CAPACITY);
        }
        "no_verdict" => {
            if let Some(arguments) = again_longer() {
                answer.next("why", arguments, texts::NEXT_LONGER);
            }
        }
        _ => {}
    }
}

/// Whether the leading suspect has a line that the lab could try.
fn has_line(run: &Value) -> bool {
    let lead = run["lead"].as_u64().and_then(|at| usize::try_from(at).ok());
    lead.is_some_and(|at| run["findings"][at]["knob"].as_str().is_some_and(|knob| knob.contains(';')))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::input::Arguments;
    use crate::settings::ServerSettings;
    use crate::tools;

    fn of(run: &Value, arguments: &Value) -> Value {
        let row = tools::find("why").unwrap();
        let arguments = Arguments::read(row.parameters, arguments).unwrap();
        let settings = ServerSettings::of_parent(&json!({}));
        conclude(&Concluded { row, arguments: &arguments, settings: &settings, language: settings.language, json: run })
            .json()
    }

    fn run(word: &str) -> Value {
        json!({
            "kind": "why", "verdict": {"name": word, "text": "SUSPECTED x"}, "lead": 0,
            "asked": {"is_isolated": true, "block_s": 8.0},
            "findings": [{
                "rule": "B20", "says": "s", "score": 0.9, "subject": "origin0's CPU", "knob": "worker_processes 2;", "expect": "",
                "evidence": [["CPU", "1.96 CPUs used"]],
            }],
            "elasticities": [], "signals": {"seconds": 8.0, "load": {"answered": 80, "ms": [1.0, 2.0, 3.0]}},
        })
    }

    #[test]
    fn every_word_of_the_lab_has_a_verdict() {
        for (word, _) in weir_lab::verdict::WHY_WORDS {
            let answer = of(&run(word), &json!({"conf": "n.conf"}));
            let name = answer["verdict"]["name"].as_str().unwrap();
            assert_eq!(name, word.to_lowercase().replace(' ', "_"));
            assert!(tools::find("why").unwrap().verdicts.contains(&name));
        }
    }

    #[test]
    fn a_chain_of_next_steps_ends() {
        for (word, _) in weir_lab::verdict::WHY_WORDS {
            let (mut arguments, mut steps) = (json!({"conf": "n.conf", "path": "/"}), 0);
            let mut run = run(word);
            loop {
                let answer = of(&run, &arguments);
                if answer["next"]["tool"] != "why" {
                    break;
                }
                arguments = answer["next"]["arguments"].clone();
                if let Some(seconds) = arguments["seconds"].as_f64() {
                    run["asked"]["block_s"] = json!(seconds);
                }
                steps += 1;
                assert!(steps < 8, "{word}: {arguments}");
            }
        }
        let suspected = of(&run("SUSPECTED"), &json!({"conf": "n.conf"}));
        assert_eq!(suspected["next"]["arguments"], json!({"conf": "n.conf", "prove": true}));
        let mut plain = run("SUSPECTED");
        plain["asked"]["is_isolated"] = json!(false);
        assert_eq!(of(&plain, &json!({"conf": "n.conf"}))["next"]["arguments"]["try"], true);
    }

    #[test]
    fn names_of_the_stack_are_data() {
        let answer = of(&run("SUSPECTED"), &json!({"conf": "n.conf"}));
        let suspect = &answer["evidence"][1];
        assert_eq!((suspect["rule"].as_str(), suspect["kind"].as_str()), (Some("B20"), Some("suspect")));
        assert!(
            suspect["data"]["subject"] == "origin0's CPU" && !suspect["text"].as_str().unwrap().contains("origin0")
        );
    }
}
