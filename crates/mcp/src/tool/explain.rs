//! `explain`: the values in force, each with its origin.

use serde_json::json;
use weir_words::say;

use super::shared::{Prepared, RefusedCall, ToolCall, tell_outside};
use crate::answer::Evidence;
use crate::texts;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    let conf = call.conf("conf")?;
    let (target, is_told) = call.target(&conf.tree)?;
    let language = call.language();
    let rows = weir_doctor::explain::rows(&conf.tree, target, call.arguments.text("directive"), language);
    let mut answer = match rows.is_empty() {
        true => call.answer("nothing", say!(texts::NO_VALUES)),
        false => call.answer("values", say!(texts::VALUES, rows.len(), target.to_string())),
    };
    for [directive, value, origin] in &rows {
        let data = json!({"directive": directive, "value": value, "origin": origin});
        answer.evidence(Evidence::new("value", texts::A_VALUE.say(language)).data(&data));
    }
    if !is_told {
        answer.not_measured(say!(texts::VERSION_ASSUMED, target.to_string()));
    }
    tell_outside(&mut answer, conf.outside);
    answer.next("doctor", call.arguments.only(&["conf", "reader", "nginx_version"]), texts::NEXT_DOCTOR);
    Ok(Prepared::Answer(answer.json()))
}
