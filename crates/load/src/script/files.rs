//! The files of a script.

use std::path::{Path, PathBuf};

use weir_words::{Said, say};

use super::merge::{self, Lists};
use super::node::{Node, NodeValue};
use super::notes::Notes;
use super::options::ScriptOptions;
use super::source::{Problem, SourcePlace};
use super::yaml;
use crate::texts::script as texts;
use crate::value::Value;

/// The largest script file, in bytes.
pub(crate) const SCRIPT_BYTES_MAX: u64 = 64 << 20;

/// Most script files of one run.
pub(crate) const FILES_MAX: usize = 1000;

/// Reads all script files in order, the file of `-c` last, and merges each one over the earlier ones.
pub(crate) fn read_all(
    options: &ScriptOptions,
    load_js: &dyn Fn(&Path) -> Result<Value, String>,
    notes: &mut Notes,
) -> Result<Node, Problem> {
    let mut script: Option<Node> = None;
    for path in options.files.iter().chain(&options.config).take(FILES_MAX) {
        let node = read_one(path, load_js, notes)?;
        match &mut script {
            Some(script) => merge::deep(script, &node, Lists::ByIndex),
            None => script = Some(node),
        }
    }
    let script = script.unwrap_or(Node::new(SourcePlace::default(), NodeValue::Undefined));
    if script.map().is_none() {
        return Err(Problem::new(script.at, texts::NO_OBJECT));
    }
    Ok(script)
}

fn read_one(path: &Path, load_js: &dyn Fn(&Path) -> Result<Value, String>, notes: &mut Notes) -> Result<Node, Problem> {
    let name = path.display().to_string();
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "yml" | "yaml" | "json" => {
            let text = read_text(path)?;
            let file = notes.sources.add(&name, &text);
            yaml::read(&text, file)
        }
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => {
            let file = notes.sources.add(&name, "");
            let at = SourcePlace { file, line: 0, column: 0 };
            let path = absolute(path);
            load_js(&path).map(|value| Node::of(&value, at)).map_err(|why| Problem::new(at, why))
        }
        _ => Err(Problem::artillery(None, say!(texts::UNKNOWN_TYPE, name))),
    }
}

/// The text of a file; the error is Node's.
pub(crate) fn read_text(path: &Path) -> Result<String, Problem> {
    let bytes = read_bytes(path, SCRIPT_BYTES_MAX);
    let text =
        bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| say!(texts::NOT_UTF8, path.display().to_string())));
    text.map_err(|why| Problem::artillery(None, say!(texts::ERROR, why)))
}

/// The bytes of a file, at most `bytes_max`.
pub(crate) fn read_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Said> {
    let shown = absolute(path).display().to_string();
    let size = std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
    if size > bytes_max {
        return Err(say!(texts::TOO_LARGE, shown, bytes_max));
    }
    std::fs::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => say!(texts::NO_SUCH_FILE, shown),
        std::io::ErrorKind::PermissionDenied => say!(texts::NOT_PERMITTED, shown),
        std::io::ErrorKind::IsADirectory => say!(texts::IS_DIRECTORY),
        _ => say!(texts::NOT_OPENED, error.to_string(), shown),
    })
}

/// The absolute path, without reading the disk.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
