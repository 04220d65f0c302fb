//! `check`: whether weir accepts a configuration, as `weir edge -t` does, without its look at the machine.

use serde_json::json;
use weir_conf::{Level, Problem};
use weir_words::say;

use super::shared::{Prepared, RefusedCall, ToolCall, is_about_outside, joined, place_of, tell_outside};
use crate::answer::Evidence;
use crate::texts;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    let conf = call.conf("conf")?;
    let checked = weir_edge::load::checked(&conf.tree);
    let all = checked.len();
    let kept: Vec<Problem> = checked.into_iter().filter(|problem| !is_about_outside(problem, &call.guard)).collect();
    let outside = conf.outside + all - kept.len();
    let mut problems = conf.problems;
    problems.extend(kept);
    weir_conf::sort_as_read(&mut problems, &conf.tree);
    let grave = problems.iter().filter(|problem| problem.level == Level::Emerg).count();
    let warnings = problems.len() - grave;
    let mut answer = match (grave, outside) {
        (0, 0) => call.answer("valid", say!(texts::VALID, warnings)),
        (0, _) => call.answer("incomplete", say!(texts::INCOMPLETE)),
        _ => call.answer("invalid", say!(texts::INVALID)),
    };
    for problem in &problems {
        let text = if problem.level == Level::Emerg { texts::A_PROBLEM } else { texts::A_WARNING };
        let also = problem.also.iter().filter_map(|at| Some(format!("{}:{}", conf.tree.source(at)?.name, at.line)));
        let also: Vec<String> = also.collect();
        let said = json!({"what": problem.what, "remedy": problem.todo, "also": also});
        answer.evidence(
            Evidence::new("problem", text.say(call.language()))
                .with("level", problem.level.name())
                .data(&joined(place_of(&conf.tree, problem.at), said)),
        );
    }
    answer.not_measured(texts::NAMES_NOT_RESOLVED);
    tell_outside(&mut answer, outside);
    if grave == 0 {
        answer.next("doctor", call.arguments.only(&["conf"]), texts::NEXT_DOCTOR);
    }
    Ok(Prepared::Answer(answer.json()))
}
