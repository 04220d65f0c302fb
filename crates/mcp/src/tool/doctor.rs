//! `doctor`: findings about a configuration without any load; with a symptom, its likely causes and what an error log says.

use std::io::{Read, Seek, SeekFrom};

use serde_json::{Value, json};
use weir_doctor::asked::AskedSymptom;
use weir_doctor::error_log::{CountedLogs, LogReader, NameCounts, TAIL_BYTES_MAX};
use weir_doctor::symptom::Symptom;
use weir_doctor::view::View;
use weir_doctor::{Facts, Finding, FindingLevel, rules};
use weir_words::say;

use super::lab::FIRST_LOAD;
use super::shared::{CalledConf, Prepared, RefusedCall, ToolCall, joined, place_of, tell_outside};
use crate::answer::{Evidence, ToolAnswer};
use crate::texts;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    let symptom = call.arguments.text("symptom").and_then(Symptom::of);
    if call.arguments.text("error_log").is_some() && symptom.is_none() {
        return Err(call.refused("bad_argument", say!(texts::LOG_NEEDS_SYMPTOM), texts::REMEDY_ARGUMENT));
    }
    if call.arguments.texts("only").iter().any(|name| rules::lookup(name).is_none()) {
        return Err(call.refused("bad_argument", say!(texts::NO_SUCH_RULE), texts::REMEDY_RULE));
    }
    let conf = call.conf("conf")?;
    let (target, is_told) = call.target(&conf.tree)?;
    let facts = Facts { version_is_told: is_told.then(|| target.version()), ..Facts::default() };
    let mut findings = weir_doctor::examine(&conf.tree, target, &facts);
    let only = call.arguments.texts("only");
    findings.retain(|finding| only.is_empty() || only.contains(&finding.rule));
    let log = symptom.map(|_| log(call, &conf)).transpose()?.unwrap_or_default();
    let asked = symptom.map(|symptom| AskedSymptom { symptom, log: &log, read: &[] });
    if let Some(asked) = &asked {
        asked.choose(&mut findings);
    }
    let mut answer = verdict(call, &findings, asked.as_ref().is_some_and(AskedSymptom::is_explained));
    if let Some(asked) = &asked {
        messages(call, &mut answer, asked);
    }
    for finding in &findings {
        answer.evidence(evidence(call, &conf, finding));
    }
    for problem in conf.problems.iter().take(10) {
        let data = joined(place_of(&conf.tree, problem.at), json!({"what": problem.what}));
        answer.evidence(Evidence::new("problem", texts::SYNTAX_PROBLEM.say(call.language())).data(&data));
    }
    answer.not_measured(texts::HOST_NOT_READ);
    if !is_told {
        answer.not_measured(say!(texts::VERSION_ASSUMED, target.to_string()));
    }
    if symptom.is_some() && call.arguments.text("error_log").is_none() {
        answer.not_measured(texts::NO_ERROR_LOG);
    }
    tell_outside(&mut answer, conf.outside);
    if call.settings.allows_experiments {
        let arguments = joined(call.arguments.only(&["conf"]), json!({"path": "/", "connections": FIRST_LOAD}));
        answer.next("why", arguments, texts::NEXT_WHY);
    } else {
        answer.not_measured(texts::NO_LOAD);
    }
    Ok(Prepared::Answer(answer.json()))
}

fn verdict(call: &ToolCall<'_>, findings: &[Finding], is_explained: bool) -> ToolAnswer {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (wrong, risk, note) = (count(FindingLevel::Wrong), count(FindingLevel::Risk), count(FindingLevel::Note));
    let name = match (wrong, risk, note) {
        (0, 0, 0) if is_explained => "log_explains",
        (0, 0, 0) => "no_finding",
        (0, 0, _) => "notes_only",
        (0, _, _) => "at_risk",
        _ => "wrong",
    };
    call.answer(name, say!(texts::FINDINGS, wrong, risk, note))
}

fn evidence(call: &ToolCall<'_>, conf: &CalledConf, finding: &Finding) -> Evidence {
    let language = call.language();
    let rule = rules::lookup(finding.rule);
    let text =
        rule.map_or_else(String::new, |rule| format!("{}. {}", rule.says.say(language), rule.remedy.say(language)));
    let said = json!({
        "what": finding.what.say(language),
        "write": finding.write,
        "can_fix": !finding.fix.is_empty(),
    });
    Evidence::new("finding", &text)
        .with("rule", finding.rule)
        .with("level", finding.level.name())
        .data(&joined(place_of(&conf.tree, finding.at), said))
}

/// The messages of the error log.
fn messages(call: &ToolCall<'_>, answer: &mut ToolAnswer, asked: &AskedSymptom<'_>) {
    let names = |names: &NameCounts| -> Value {
        names.sorted().iter().map(|(name, count)| json!({"name": name, "count": count})).collect()
    };
    for (seen, cause) in asked.log.seen(|cause| cause.symptoms.contains(&asked.symptom)) {
        let language = call.language();
        let text = format!("{} {}", cause.cause.say(language), cause.remedy.say(language));
        answer.evidence(
            Evidence::new("log_message", &text)
                .with("rule", seen.message.name())
                .figures(json!({"count": seen.count}))
                .data(&json!({
                    "first": seen.times.0, "last": seen.times.1,
                    "servers": names(&seen.peers), "locations": names(&seen.places),
                })),
        );
    }
}

/// The end of the error log that the call names.
fn log(call: &ToolCall<'_>, conf: &CalledConf) -> Result<CountedLogs, RefusedCall> {
    let view = View::new(&conf.tree);
    let mut reader = LogReader::new(&view);
    if let Some(named) = call.arguments.text("error_log") {
        let unread = |why| call.refused("file_refused", why, texts::REMEDY_DIR);
        let failed = |error: std::io::Error| unread(say!(texts::NOT_READ, error.kind().to_string()));
        let (_, mut file) = call.guard.open(named).map_err(unread)?;
        let length = file.metadata().map_err(failed)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX as u64))).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES_MAX as u64).read_to_end(&mut bytes).map_err(failed)?;
        reader.read(&bytes, length > bytes.len() as u64);
    }
    Ok(reader.finish())
}
