//! The common part of the experiments: the permission, the configuration that may be started, the load, and the words of `weir lab`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_conf::{Level, Statement, Tree};
use weir_words::{Text, say};

use super::shared::{Concluded, Prepared, RefusedCall, ToolCall, VerbRun};
use super::{copies, load_check};
use crate::answer::{Evidence, ToolAnswer};
use crate::texts;

/// The connections of a first experiment, if nothing says how much load there is.
pub(super) const FIRST_LOAD: u64 = 32;
/// The directory of the room in which the lab of a call keeps its run.
pub(crate) fn store_of(room: &Path, made: u64) -> PathBuf {
    room.join(format!("run-{made}"))
}

/// Directives with which a configuration starts programs or loads code. The model may have written the file, so the lab starts
/// no such file for it.
const PROGRAMS: [&str; 2] = ["load_module", "dns_hook"];
/// Beginnings of such directives.
const LANGUAGES: [&str; 4] = ["perl", "js_", "lua_", "njs_"];

/// A word of the lab, the name that the answer has, and weir's sentence.
pub(super) type VerdictRow = (&'static str, &'static str, Text);

/// The name of a run's verdict, and the answer that begins with it. The first row stands for a word that the table lacks.
pub(super) fn begin<const N: usize>(it: &Concluded<'_>, rows: &[VerdictRow; N]) -> (&'static str, ToolAnswer) {
    const { assert!(N > 0) };
    let word = it.json["verdict"]["name"].as_str().unwrap_or_default();
    let (_, name, text) = rows.iter().copied().find(|(known, ..)| *known == word).unwrap_or(rows[0]);
    (name, ToolAnswer::new(it.row.name, it.language, name, say!(text)))
}

/// The sentence of a run's verdict.
pub(super) fn sentence(it: &Concluded<'_>) -> Evidence {
    let text = weir_lab::said::shown(&it.json["verdict"], "text", it.language);
    Evidence::new("sentence", texts::THE_SENTENCE.say(it.language)).data(&json!({"text": text}))
}

/// Refuses an experiment that the person did not allow.
pub(super) fn permission(call: &ToolCall<'_>) -> Result<(), RefusedCall> {
    match call.settings.allows_experiments {
        true => Ok(()),
        false => Err(call.refused("experiments_not_allowed", say!(texts::NOT_ALLOWED), texts::REMEDY_EXPERIMENTS)),
    }
}

/// The copy of a configuration that the lab may start.
pub(super) fn startable(call: &ToolCall<'_>, argument: &str) -> Result<PathBuf, RefusedCall> {
    let conf = call.conf(argument)?;
    if let Some(name) = program(&conf.tree) {
        return Err(call.refused("starts_programs", say!(texts::STARTS_PROGRAMS, name), texts::REMEDY_PROGRAMS));
    }
    if conf.outside > 0 {
        return Err(call.refused("file_refused", say!(texts::NAMES_OUTSIDE, conf.outside), texts::REMEDY_DIR));
    }
    // A file that could not be read would be missing in the copy.
    let grave = conf.problems.iter().filter(|problem| problem.level != Level::Warn).count();
    if grave > 0 {
        let mut refused = call.refused("invalid_conf", say!(texts::CONF_BROKEN, grave), texts::REMEDY_CHECK);
        refused.next("check", json!({"conf": call.arguments.text(argument)}), texts::REMEDY_CHECK);
        return Err(refused);
    }
    copies::of_conf(call, argument, &conf)
}

/// The name of the first directive with which a configuration starts a program or loads code.
fn program(tree: &Tree) -> Option<&'static str> {
    let is_language =
        |name: &str| LANGUAGES.iter().any(|beginning| name.starts_with(beginning)) || name.contains("_by_lua");
    let known = |statement: &Statement| {
        let name = statement.name.text.as_str();
        PROGRAMS.iter().copied().find(|known| *known == name).or_else(|| is_language(name).then_some("perl, njs, lua"))
    };
    tree.first(&|statement| known(statement).is_some()).and_then(known)
}

/// The words of an experiment: its kind, its files, the load, and the flags of the person.
pub(super) fn words(call: &ToolCall<'_>, kind: &str, confs: &[PathBuf]) -> Result<Vec<String>, RefusedCall> {
    let mut words = vec!["lab".to_owned(), kind.to_owned()];
    words.extend(confs.iter().map(|conf| conf.display().to_string()));
    let script = call.arguments.text("script").map(|named| load_check::script(call, named)).transpose()?;
    match script {
        Some(script) => {
            let copy = copies::of_script(call, &script)?;
            words.extend(["--load".to_owned(), copy.display().to_string()]);
        }
        None => {
            words.push(path(call)?);
            let rate = call.arguments.number("rate").map(|rate| format!("--{}={rate}", rate_flag(kind)));
            let connections = call.arguments.whole("connections").map(|count| format!("--connections={count}"));
            words.extend(rate.into_iter().chain(connections));
            words.extend(
                call.arguments.number("seconds").map(|seconds| format!("--block={}ms", (seconds * 1000.0).round())),
            );
        }
    }
    words.extend(call.settings.lab_flags.iter().cloned());
    words.extend(["--store".to_owned(), store_of(&call.room, call.made).display().to_string()]);
    Ok(words)
}

fn rate_flag(kind: &str) -> &'static str {
    if kind == "capacity" { "from" } else { "rate" }
}

/// The path that gets the load. It begins with a slash, so it is no flag.
fn path(call: &ToolCall<'_>) -> Result<String, RefusedCall> {
    let path = call.arguments.text("path").unwrap_or("/");
    let is_plain = path.starts_with('/') && path.chars().all(|c| c.is_ascii_graphic());
    // A path of the file system would be taken for a third configuration.
    match is_plain && !Path::new(path).is_file() {
        true => Ok(path.to_owned()),
        false => Err(call.refused("bad_argument", say!(texts::PATH_FORM), texts::REMEDY_ARGUMENT)),
    }
}

/// The latency limit of a quantile, as `p95=50ms`.
pub(super) fn slo(call: &ToolCall<'_>) -> Result<Option<String>, RefusedCall> {
    let Some(text) = call.arguments.text("slo") else { return Ok(None) };
    let is_good = text.split_once('=').is_some_and(|(quantile, time)| {
        let digits = time.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let unit = time.get(digits.len()..).unwrap_or_default();
        ["p50", "p95", "p99"].contains(&quantile)
            && (1..=6).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && ["ms", "s"].contains(&unit)
    });
    match is_good {
        true => Ok(Some(format!("--slo={text}"))),
        false => Err(call.refused("bad_argument", say!(texts::SLO_FORM), texts::REMEDY_ARGUMENT)),
    }
}

/// A run of these words as an experiment.
pub(super) fn experiment(call: &ToolCall<'_>, words: Vec<String>) -> Prepared {
    Prepared::Run(VerbRun { words, is_experiment: true, limit: call.settings.experiment_max })
}

/// The run that the lab kept in its store. `None`: it kept none, or a larger one than `bytes_max`.
pub(crate) fn kept(store: &Path, bytes_max: u64) -> Option<(PathBuf, Value)> {
    let entries = std::fs::read_dir(store).ok()?.flatten().take(16);
    let path = entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "json"))?;
    let bytes = weir_net::whole_file::read(&path, bytes_max).ok()?;
    Some((path, serde_json::from_slice(&bytes).ok()?))
}

/// Whether the blocks ran in network namespaces of their own.
pub(super) fn is_isolated(run: &Value) -> bool {
    run["asked"]["is_isolated"] == true
}

/// A longer time of a block than that of a run. `None`: it is long enough already.
pub(super) fn longer(run: &Value) -> Option<f64> {
    let block = run["asked"]["block_s"].as_f64().unwrap_or(8.0);
    (block * 2.0 <= BLOCK_S_MAX).then(|| (block * 2.0).ceil())
}

/// The longest block that an answer recommends, s.
const BLOCK_S_MAX: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_starts_programs_is_told() {
        let of = |text: &str| {
            let files = weir_conf::MemoryFiles::new().with("/n", text);
            program(&weir_doctor::load(&files, "/n", "/").0)
        };
        assert_eq!(of("events { } http { server { listen 80; } }"), None);
        assert_eq!(of("load_module m.so; events { }"), Some("load_module"));
        assert_eq!(of("http { acme_issuer x { dns_hook /bin/sh; } }"), Some("dns_hook"));
        assert_eq!(
            of("http { server { location / { content_by_lua_block { os.execute('x') } } } }"),
            Some("perl, njs, lua")
        );
        assert_eq!(of("http { js_import a.js; }"), Some("perl, njs, lua"));
    }

    #[test]
    fn blocks_become_longer_up_to_a_bound() {
        let of = |block: f64| longer(&serde_json::json!({"asked": {"block_s": block}}));
        assert_eq!((of(8.0), of(30.0), of(31.0)), (Some(16.0), Some(60.0), None));
    }
}
