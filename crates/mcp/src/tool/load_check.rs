//! `load_check`: whether an Artillery script is valid, and what it would send. It sends nothing, and runs no code of the script.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_load::plan::Plan;
use weir_load::script::{self, FarReach, Refusal, ScriptOptions};
use weir_words::say;

use super::shared::{Prepared, RefusedCall, ToolCall, joined};
use crate::answer::{Evidence, ToolAnswer};
use crate::settings::authority;
use crate::texts;

/// The beginning of the names of scripts that this server made.
pub(super) const MADE: &str = "made-";

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    let named = call.arguments.text("script").unwrap_or_default();
    let path = script(call, named)?;
    let plan = match plan(&path, call.arguments.text("environment")) {
        Ok(plan) => plan,
        Err(refusal) => return Ok(Prepared::Answer(invalid(call, &refusal).json())),
    };
    reads_inside(call, &plan)?;
    let targets = plan.targets();
    let elsewhere = targets.iter().filter(|target| !is_near(call, target)).count();
    let mut answer = match (plan.vusers(), elsewhere) {
        (0, _) => call.answer("sends_nothing", say!(texts::SCRIPT_IDLE)),
        (users, 0) => call.answer("valid", say!(texts::SCRIPT_VALID, users)),
        (users, others) => call.answer("elsewhere", say!(texts::SCRIPT_ELSEWHERE, users, others)),
    };
    let language = call.language();
    for target in &targets {
        let near = is_near(call, target);
        let text = if near { texts::TARGET_NEAR } else { texts::TARGET_FAR };
        let data = json!({"target": target});
        answer
            .evidence(Evidence::new("target", text.say(language)).figures(json!({"may_be_reached": near})).data(&data));
    }
    let told = plan.told(language);
    answer.evidence(Evidence::new("plan", texts::THE_PLAN.say(language)).figures(figures(&plan)).data(&json!({
        "lines": told.lines().collect::<Vec<_>>(),
    })));
    for warning in &plan.warnings {
        let data = json!({"what": warning.say(language)});
        answer.evidence(Evidence::new("warning", texts::SCRIPT_WARNING.say(language)).data(&data));
    }
    if plan.processor.is_some() {
        answer.not_measured(texts::PROCESSOR_NOT_RUN);
    }
    answer.not_measured(texts::NOTHING_SENT);
    if elsewhere == 0 && plan.vusers() > 0 && call.settings.allows_experiments && call.arguments.text("conf").is_some()
    {
        answer.next("why", call.arguments.only(&["conf", "script"]), texts::NEXT_WHY_SCRIPT);
    }
    Ok(Prepared::Answer(answer.json()))
}

fn invalid(call: &ToolCall<'_>, refusal: &Refusal) -> ToolAnswer {
    let mut answer = call.answer("invalid", say!(texts::SCRIPT_INVALID));
    let language = call.language();
    let lines = refusal.text.say(language).lines().map(str::to_owned);
    let warnings = refusal.warnings.iter().map(|warning| warning.say(language).to_owned());
    let lines: Vec<String> = lines.chain(warnings).filter(|line| !line.trim().is_empty()).collect();
    answer.evidence(Evidence::new("problem", texts::SCRIPT_PROBLEM.say(language)).data(&json!({"lines": lines})));
    answer.not_measured(texts::NOTHING_SENT);
    answer
}

fn figures(plan: &Plan) -> Value {
    let seconds: f64 = plan.phases.iter().map(|phase| phase.duration.as_secs_f64()).sum();
    let figures = json!({
        "virtual_users": plan.vusers(), "seconds": seconds, "phases": plan.phases.len(), "scenarios": plan.scenarios.len(),
    });
    match weir_load::arrive::requests(plan) {
        Some(requests) => joined(figures, json!({"requests": requests})),
        None => figures,
    }
}

/// The file of a script: one that this server made, or one below the directories.
pub(super) fn script(call: &ToolCall<'_>, named: &str) -> Result<PathBuf, RefusedCall> {
    if let Some(number) = named.strip_prefix(MADE).and_then(|number| number.parse::<u64>().ok()) {
        let path = call.room.join(format!("{MADE}{number}.yml"));
        let none = || call.refused("file_refused", say!(texts::NO_MADE_SCRIPT), texts::REMEDY_MADE);
        return path.is_file().then_some(path).ok_or_else(none);
    }
    let path = call.file(named)?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    match ["yml", "yaml", "json"].contains(&ending.as_str()) {
        true => Ok(path),
        // A script in JavaScript is code.
        false => Err(call.refused("file_refused", say!(texts::SCRIPT_ENDING), texts::REMEDY_ARGUMENT)),
    }
}

fn plan(path: &Path, environment: Option<&str>) -> Result<Plan, Refusal> {
    let options = ScriptOptions {
        files: vec![path.to_owned()],
        environment: environment.map(str::to_owned),
        check: true,
        ..ScriptOptions::default()
    };
    script::load(&options, &|_: &Path| Err(texts::SCRIPT_ENDING.en.to_owned()))
}

/// Refuses a script that names files outside of the directories.
pub(super) fn reads_inside(call: &ToolCall<'_>, plan: &Plan) -> Result<(), RefusedCall> {
    let outside = plan.files.iter().filter(|path| !call.guard.has(path) && !call.is_private(path)).count();
    match outside {
        0 => Ok(()),
        _ => Err(call.refused("file_refused", say!(texts::NAMES_OUTSIDE, outside), texts::REMEDY_DIR)),
    }
}

fn is_near(call: &ToolCall<'_>, target: &str) -> bool {
    authority(target).is_some_and(|authority| call.settings.may_reach(&authority))
}

/// The plan of a script that the lab may send: it runs no code, and sends only to hosts that the person named. It is read as the lab
/// reads it.
pub(super) fn sendable(call: &ToolCall<'_>, path: &Path) -> Result<Plan, RefusedCall> {
    // The lab sets the target, so a script may have none.
    let options = ScriptOptions {
        files: vec![path.to_owned()],
        target: Some("http://127.0.0.1:9".to_owned()),
        env: std::env::vars().collect(),
        ..ScriptOptions::default()
    };
    let plan = script::load(&options, &|_: &Path| Err(texts::SCRIPT_ENDING.en.to_owned()));
    let plan = plan.map_err(|refusal| Box::new(invalid(call, &refusal)))?;
    if plan.processor.is_some() {
        return Err(call.refused("runs_code", say!(texts::SCRIPT_CODE), texts::REMEDY_SCRIPT));
    }
    match plan.reaches_beyond(&|url| is_near(call, url)) {
        None => Ok(plan),
        Some(FarReach::Host) => Err(call.refused("target_not_named", say!(texts::SCRIPT_HOST), texts::REMEDY_TARGET)),
        Some(FarReach::File) => Err(call.refused("file_refused", say!(texts::SCRIPT_FILE), texts::REMEDY_COPIED)),
        Some(FarReach::Metrics) => {
            Err(call.refused("target_not_named", say!(texts::SCRIPT_METRICS), texts::REMEDY_METRICS))
        }
    }
}
