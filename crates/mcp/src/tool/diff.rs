//! `diff`: every change between two configurations, and whether it can have an effect.

use serde_json::json;
use weir_doctor::explain;
use weir_words::say;

use super::lab::FIRST_LOAD;
use super::shared::{Prepared, RefusedCall, ToolCall, joined, tell_outside};
use crate::answer::Evidence;
use crate::texts;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    let (before, after) = (call.conf("before")?, call.conf("after")?);
    let (target, is_told) = call.target(&after.tree)?;
    let changes = weir_doctor::changes(&before.tree, &after.tree, target);
    let acting = changes.iter().filter(|change| change.acts).count();
    let mut answer = match (changes.len(), acting) {
        (0, _) => call.answer("same", say!(texts::DIFF_SAME)),
        (all, 0) => call.answer("no_effect", say!(texts::DIFF_IDLE, all)),
        (all, acting) => call.answer("can_act", say!(texts::DIFF_ACTS, acting, all, target.to_string())),
    };
    for change in &changes {
        let text = if change.acts { texts::CHANGE_ACTS } else { texts::CHANGE_IDLE };
        let at = change.at.map(|at| explain::place(&after.tree, at));
        answer.evidence(
            Evidence::new("change", text.say(call.language()))
                .figures(json!({"can_act": change.acts}))
                .data(&json!({"at": at, "what": change.what.say(call.language())})),
        );
    }
    answer.not_measured(texts::DIFF_NOT_MEASURED);
    if !is_told {
        answer.not_measured(say!(texts::VERSION_ASSUMED, target.to_string()));
    }
    tell_outside(&mut answer, before.outside + after.outside);
    if acting > 0 && call.settings.allows_experiments {
        let arguments =
            joined(call.arguments.only(&["before", "after"]), json!({"path": "/", "connections": FIRST_LOAD}));
        answer.next("ab", arguments, texts::NEXT_AB);
    } else if acting > 0 {
        answer.next("check", json!({"conf": call.arguments.text("after")}), texts::NEXT_CHECK_AFTER);
    }
    Ok(Prepared::Answer(answer.json()))
}
