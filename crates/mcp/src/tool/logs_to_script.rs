//! `logs_to_script`: an Artillery script with the mix of requests of access logs. The server keeps it; no file of the user is
//! written.

use std::io::Read;

use serde_json::json;
use weir_conf::log_format::{COMBINED, COMMON, Format, VHOST_COMBINED};
use weir_load::traffic::{self, Wish};
use weir_words::say;

use super::load_check::MADE;
use super::shared::{Prepared, RefusedCall, ToolCall};
use crate::answer::{Evidence, ToolAnswer};
use crate::texts;

/// Where the script is sent, unless another program decides: to nothing that listens usually.
const TARGET: &str = "http://127.0.0.1:8080";
/// Most bytes of a log that are read; of a compressed log, before it is expanded.
const LOG_BYTES_MAX: u64 = 1 << 30;

pub(super) fn prepare(call: &ToolCall<'_>) -> Result<Prepared, RefusedCall> {
    let mut logs: Vec<(String, Box<dyn Read>)> = Vec::new();
    for named in call.arguments.texts("logs") {
        let opened = call.guard.open(named);
        let (path, file) = opened.map_err(|why| call.refused("file_refused", why, texts::REMEDY_DIR))?;
        logs.push((path.display().to_string(), Box::new(file.take(LOG_BYTES_MAX))));
    }
    let wish = Wish {
        format: format(call)?,
        host: call.arguments.text("host").map(str::to_owned),
        without_assets: call.arguments.flag("without_assets"),
        minutes: call.arguments.whole("minutes").and_then(|minutes| u32::try_from(minutes).ok()),
        speed: call.arguments.number("speed").unwrap_or(1.0),
        all_clients: false,
        target: TARGET.to_owned(),
        stem: Some(call.room.join(format!("{MADE}{}", call.made)).display().to_string()),
        language: call.language(),
    };
    let made = match traffic::make(&wish, logs) {
        Ok(made) => made,
        Err(why) => {
            return Err(Box::new(ToolAnswer::failed(call.row.name, call.language(), say!(texts::NO_SCRIPT), &why)));
        }
    };
    let name = format!("{MADE}{}", call.made);
    let unwritten = |error: std::io::Error| {
        Box::new(ToolAnswer::failed(call.row.name, call.language(), say!(texts::ROOM_FULL), &error.to_string()))
    };
    std::fs::write(call.room.join(format!("{name}.yml")), &made.script).map_err(unwritten)?;
    for (file, rows) in &made.rows {
        // `traffic` makes these names of the stem, which is in the room.
        if std::path::Path::new(file).starts_with(&call.room) {
            std::fs::write(file, rows).map_err(unwritten)?;
        }
    }
    let mut answer = call.answer("made", say!(texts::SCRIPT_MADE, &name));
    for note in &made.notes {
        answer.evidence(Evidence::new("note", texts::SCRIPT_NOTE.say(call.language())).data(&json!({"what": note})));
    }
    answer.block("script", &made.script);
    answer.not_measured(texts::LOG_LACKS);
    answer.not_measured(texts::NOTHING_SENT);
    answer.next("load_check", json!({"script": name}), texts::NEXT_LOAD_CHECK);
    Ok(Prepared::Answer(answer.json()))
}

/// The format of the lines. `None`: weir finds it out.
fn format(call: &ToolCall<'_>) -> Result<Option<Format>, RefusedCall> {
    let Some(text) = call.arguments.text("format") else { return Ok(None) };
    let bad = || call.refused("bad_argument", say!(texts::LOG_FORMAT), texts::REMEDY_ARGUMENT);
    let read = |text: &str| Format::read(&[text]).filter(Format::has_time).ok_or_else(bad);
    if text.contains('$') {
        return read(text).map(Some);
    }
    if call.arguments.text("conf").is_some() {
        let conf = call.conf("conf")?;
        let found = conf.tree.named("http").find_map(|http| Format::named(http, text));
        return found.filter(Format::has_time).ok_or_else(bad).map(Some);
    }
    match text {
        "combined" => read(COMBINED).map(Some),
        "common" => read(COMMON).map(Some),
        "vhost_combined" => read(VHOST_COMBINED).map(Some),
        "json" => Ok(Some(Format::json())),
        _ => Err(bad()),
    }
}
