//! The folder in which `weir lab` keeps its runs: `ID.json` for each run, and `ID.running` while a run goes on.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use weir_dash::runs::{self, LISTED_MAX, RUN_BYTES_MAX};
use weir_net::log;
use weir_net::opening;

use super::JsonAnswer;

/// Names in the folder that are read, at most.
const NAMES_MAX: usize = 100_000;

/// Runs that were already read: the file of a run never changes.
#[derive(Default)]
pub(super) struct Lab {
    known: HashMap<String, Value>,
}

impl Lab {
    /// The newest runs, newest first.
    pub(super) fn list(&mut self, folder: &Path) -> JsonAnswer {
        let names = match opening::names(folder.as_os_str().as_bytes()) {
            Ok(names) => names,
            Err(error) => return (200, bytes(&json!({"runs": [], "more": 0, "note": trouble(folder, &error)}))),
        };
        let names = names.take(NAMES_MAX).flatten().filter_map(|name| String::from_utf8(name).ok());
        let is_run = |name: &String| {
            let stem = name.strip_suffix(".json").or_else(|| name.strip_suffix(".running"));
            stem.is_some_and(runs::is_id)
        };
        let mut names: Vec<String> = names.filter(is_run).collect();
        // A run that has just ended may still have its `ID.running` file.
        let kept: HashSet<String> =
            names.iter().filter_map(|name| name.strip_suffix(".json").map(str::to_owned)).collect();
        names.retain(|name| name.strip_suffix(".running").is_none_or(|id| !kept.contains(id)));
        // A name begins with the time of its run.
        names.sort_unstable_by(|one, other| other.cmp(one));
        let more = names.len().saturating_sub(LISTED_MAX);
        names.truncate(LISTED_MAX);
        let list: Vec<Value> = names.iter().map(|name| self.summary(folder, name)).collect();
        self.known.retain(|name, _| names.contains(name));
        (200, bytes(&json!({"runs": list, "more": more})))
    }

    fn summary(&mut self, folder: &Path, name: &str) -> Value {
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let is_running = name.ends_with(".running");
        let id = name.rsplit_once('.').map_or(name, |(id, _)| id);
        match read(&folder.join(name)) {
            Ok((run, changed_ms)) => {
                let mut summary = runs::summary(&run);
                if let (true, Value::Object(members)) = (is_running, &mut summary) {
                    members.insert("running".to_owned(), json!(true));
                    members.insert("changed_ms".to_owned(), json!(changed_ms));
                } else {
                    self.known.insert(name.to_owned(), summary.clone());
                }
                summary
            }
            Err(note) => json!({"id": id, "note": note}),
        }
    }
}

/// One run, while it goes on or after.
pub(super) fn show(folder: &Path, id: &str) -> JsonAnswer {
    let kept = read(&folder.join(format!("{id}.json")));
    let (run, is_running) = match kept {
        Ok(run) => (Ok(run), false),
        Err(note) => match read(&folder.join(format!("{id}.running"))) {
            Ok(run) => (Ok(run), true),
            Err(_) => (Err(note), false),
        },
    };
    match run {
        Ok((run, changed_ms)) => {
            let mut view = runs::view(&run);
            if let (true, Value::Object(members)) = (is_running, &mut view) {
                members.insert("running".to_owned(), json!(true));
                members.insert("changed_ms".to_owned(), json!(changed_ms));
            }
            (200, bytes(&view))
        }
        Err(note) => (404, bytes(&json!({"id": id, "note": note}))),
    }
}

/// A run, and the time when its file was last written.
fn read(path: &Path) -> Result<(Value, u64), String> {
    let failed = |error: io::Error| trouble(path, &error);
    let facts = fs::metadata(path).map_err(failed)?;
    if !facts.is_file() {
        return Err(format!("\"{}\" is not a regular file", path.display()));
    }
    let mut text = Vec::new();
    let file = opening::open(path.as_os_str().as_bytes(), None).map_err(failed)?;
    file.take(RUN_BYTES_MAX + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > RUN_BYTES_MAX {
        let most = RUN_BYTES_MAX >> 20;
        return Err(format!("\"{}\" has more than {most} MiB: read it with weir lab report", path.display()));
    }
    let run: Value = serde_json::from_slice(&text).map_err(|error| format!("\"{}\": {error}", path.display()))?;
    let changed = facts.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    if runs::is_run(&run) {
        Ok((run, u64::try_from(changed.as_millis()).unwrap_or(u64::MAX)))
    } else {
        Err(format!("\"{}\" is not a run of a lab", path.display()))
    }
}

fn trouble(path: &Path, error: &io::Error) -> String {
    format!("weir cannot read \"{}\" {}", path.display(), log::Os(error))
}

fn bytes(json: &Value) -> Vec<u8> {
    serde_json::to_vec(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn json_of((_, bytes): JsonAnswer) -> Value {
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn runs_are_listed_newest_first_and_what_is_none_is_said() {
        let folder = std::env::temp_dir().join(format!("weir-runs-{}", std::process::id()));
        let mut lab = Lab::default();
        assert!(json_of(lab.list(&folder))["note"].as_str().unwrap().contains("No such file"));
        fs::create_dir_all(&folder).unwrap();
        let run = |id: &str| json!({"id": id, "kind": "ab", "blocks": [{"pair": 0}]}).to_string();
        fs::write(folder.join("20260101-1.json"), run("20260101-1")).unwrap();
        fs::write(folder.join("20260102-1.json"), "{}").unwrap();
        fs::write(folder.join("20260103-1.running"), run("20260103-1")).unwrap();
        fs::write(folder.join("notes.txt"), "mine").unwrap();
        let list = json_of(lab.list(&folder));
        let ids: Vec<&str> = list["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["20260103-1", "20260102-1", "20260101-1"]);
        assert_eq!((&list["runs"][0]["running"], &list["runs"][2]["running"]), (&json!(true), &Value::Null));
        assert!(list["runs"][1]["note"].as_str().unwrap().contains("is not a run of a lab"));
        assert_eq!(lab.known.len(), 1, "what goes on is read again");
        assert_eq!(json_of(show(&folder, "20260103-1"))["running"], true);
        // A run with an `ID.json` has ended.
        fs::write(folder.join("20260103-1.json"), run("20260103-1")).unwrap();
        assert_eq!(json_of(show(&folder, "20260103-1"))["running"], Value::Null);
        assert_eq!(show(&folder, "20260104-1").0, 404);
        assert_eq!(json_of(lab.list(&folder))["runs"].as_array().unwrap().len(), 3);
        fs::write(folder.join("20260105-1.json"), vec![b' '; RUN_BYTES_MAX as usize + 9]).unwrap();
        assert!(json_of(show(&folder, "20260105-1"))["note"].as_str().unwrap().contains("more than 8 MiB"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
