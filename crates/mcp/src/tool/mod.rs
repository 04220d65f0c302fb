//! The tools, a file each. A tool has one or two parts: `prepare` runs in a child that reads files, and gives the answer or the
//! words of a verb; `conclude` runs in the server, and makes the answer of the verb's JSON. It reads nothing.

mod ab;
mod capacity;
mod check;
mod copies;
mod diff;
mod doctor;
mod explain;
mod lab;
mod load_check;
mod logs_to_script;
mod shared;
mod status;
mod why;

use serde_json::Value;
use weir_words::say;

use crate::answer::ToolAnswer;
use crate::input::Arguments;
use crate::settings::ServerSettings;
use crate::texts;
use crate::tools::ToolRow;

pub(crate) use copies::{copies_of, value_with_originals, with_originals};
pub(crate) use lab::{kept, store_of};
use shared::Concluded;
pub use shared::{Prepared, ToolCall, VerbEnd, VerbRun};

/// Does the first part of a call.
pub fn prepare(call: &ToolCall<'_>) -> Prepared {
    let prepared = match call.row.name {
        "check" => check::prepare(call),
        "doctor" => doctor::prepare(call),
        "explain" => explain::prepare(call),
        "diff" => diff::prepare(call),
        "load_check" => load_check::prepare(call),
        "logs_to_script" => logs_to_script::prepare(call),
        "why" => why::prepare(call),
        "ab" => ab::prepare(call),
        "capacity" => capacity::prepare(call),
        "status" => status::prepare(call),
        _ => Err(Box::new(ToolAnswer::failed(call.row.name, call.settings.language, say!(texts::NO_TOOL_CODE), ""))),
    };
    prepared.unwrap_or_else(|refused| Prepared::Answer(refused.json()))
}

/// Makes the answer of a verb's end.
pub fn conclude(row: &'static ToolRow, arguments: &Arguments, settings: &ServerSettings, end: &VerbEnd) -> Value {
    let language = settings.language;
    if !end.json.is_object() {
        return ToolAnswer::failed(row.name, language, say!(texts::VERB_FAILED), &end.said).json();
    }
    let concluded = Concluded { row, arguments, settings, language, json: &end.json };
    match row.name {
        "why" => why::conclude(&concluded),
        "ab" => ab::conclude(&concluded),
        "capacity" => capacity::conclude(&concluded),
        _ => status::conclude(&concluded),
    }
    .json()
}
