//! The store of runs: one file for each run, written once and never changed.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;
use weir_net::clock;
use weir_words::Language;

use crate::said::{Said, say, shown};

/// The default directory.
pub const DEFAULT: &str = ".weir/runs";
/// Most bytes of a run.
const RUN_MAX: u64 = 256 << 20;
/// Most runs that are searched for an id.
const RUNS_MAX: usize = 100_000;

/// An id for a new run: its time, and a part that separates two runs in the same second.
pub fn new_id() -> String {
    let since = clock::precise_wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since.as_secs() / 86_400);
    let second = since.as_secs() % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{:03}", since.subsec_millis())
}

/// Year, month and day of a number of days since 1970, UTC (Howard Hinnant's `civil_from_days`).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// Writes a run. Never overwrites a file of the same name.
pub fn keep(store: &Path, id: &str, run: &Value) -> Result<PathBuf, Said> {
    let path = store.join(format!("{id}.json"));
    let written = fs::create_dir_all(store)
        .and_then(|()| fs::OpenOptions::new().write(true).create_new(true).open(&path))
        .and_then(|mut file| file.write_all(format!("{run:#}\n").as_bytes()));
    written.map(|()| path.clone()).map_err(|error| say!(ERR_FILE, path.display().to_string(), error.to_string()))
}

/// Writes the run so far to `ID.running`, for a watching user. The file is replaced as a whole: a reader sees the old
/// or the new state, never a mixture.
pub fn note(store: &Path, id: &str, run: &Value) -> Result<(), Said> {
    let (path, fresh) = (running(store, id), store.join(format!("{id}.running.new")));
    let written = fs::create_dir_all(store)
        .and_then(|()| fs::write(&fresh, format!("{run}\n")))
        .and_then(|()| fs::rename(&fresh, &path));
    written.map_err(|error| say!(ERR_FILE, path.display().to_string(), error.to_string()))
}

/// Removes the file of `note`: the run is stored, or it failed.
pub fn forget(store: &Path, id: &str) {
    // The file may not exist.
    let _ = fs::remove_file(running(store, id));
}

fn running(store: &Path, id: &str) -> PathBuf {
    store.join(format!("{id}.running"))
}

/// Reads a run by its id, by the beginning of its id, or by its file.
pub fn read(store: &Path, id: &str) -> Result<Value, Said> {
    let path = if Path::new(id).is_file() { PathBuf::from(id) } else { find(store, id)? };
    let mut text = String::new();
    let read = fs::File::open(&path).and_then(|file| file.take(RUN_MAX).read_to_string(&mut text));
    read.map_err(|error| say!(ERR_FILE, path.display().to_string(), error.to_string()))?;
    let run: Value =
        serde_json::from_str(&text).map_err(|error| say!(ERR_FILE, path.display().to_string(), error.to_string()))?;
    if run["id"].is_string() && run["kind"].is_string() {
        Ok(run)
    } else {
        Err(say!(ERR_NO_RUN_FILE, path.display().to_string()))
    }
}

fn find(store: &Path, id: &str) -> Result<PathBuf, Said> {
    let entries =
        fs::read_dir(store).map_err(|error| say!(ERR_FILE, store.display().to_string(), error.to_string()))?;
    let names = entries
        .flatten()
        .take(RUNS_MAX)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut found: Vec<PathBuf> = names
        .filter(|path| {
            path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| id == "last" || stem.starts_with(id))
        })
        .collect();
    found.sort();
    match (found.pop(), found.len()) {
        (Some(path), others) if others == 0 || id == "last" => Ok(path),
        (Some(_), others) => Err(say!(ERR_SEVERAL_RUNS, others + 1, id)),
        (None, _) => Err(say!(ERR_NO_RUN, id, store.display().to_string())),
    }
}

/// All runs, oldest first: id, kind, and verdict.
pub fn list(store: &Path, language: Language) -> Vec<(String, String, String)> {
    let mut names: Vec<String> = fs::read_dir(store)
        .into_iter()
        .flatten()
        .flatten()
        .take(RUNS_MAX)
        .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    names
        .into_iter()
        .filter_map(|id| {
            read(store, &id).ok().map(|run| {
                (id, run["kind"].as_str().unwrap_or_default().to_owned(), shown(&run["verdict"], "text", language))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn runs_are_written_once_and_found_by_their_beginning() {
        let store = std::env::temp_dir().join(format!("weir-lab-store-{}", std::process::id()));
        let run = |id: &str| json!({"id": id, "kind": "ab", "verdict": {"text": "x"}});
        keep(&store, "20260101-1", &run("20260101-1")).unwrap();
        keep(&store, "20260102-1", &run("20260102-1")).unwrap();
        assert!(keep(&store, "20260102-1", &run("other")).unwrap_err().contains("exists"));
        assert_eq!(read(&store, "20260102").unwrap()["id"], "20260102-1");
        assert_eq!(read(&store, "last").unwrap()["id"], "20260102-1");
        assert!(read(&store, "2026").unwrap_err().contains("2 runs begin with 2026"));
        assert!(read(&store, "x").unwrap_err().contains("no run x"));
        fs::write(store.join("z.json"), "{}").unwrap();
        assert!(read(&store, "z").unwrap_err().contains("no run of a lab"));
        note(&store, "20260103-1", &run("20260103-1")).unwrap();
        note(&store, "20260103-1", &json!({"id": "20260103-1", "kind": "ab", "blocks": []})).unwrap();
        let told = fs::read_to_string(running(&store, "20260103-1")).unwrap();
        assert!(told.ends_with("}\n") && told.contains("blocks"));
        assert_eq!(
            (list(&store, Language::English).len(), read(&store, "last").unwrap_err().contains("no run of a lab")),
            (2, true)
        );
        forget(&store, "20260103-1");
        assert!(!running(&store, "20260103-1").exists());
        fs::remove_dir_all(store).unwrap();
    }

    #[test]
    fn days_have_dates() {
        assert_eq!((date(0), date(19_782), date(20_779)), ((1970, 1, 1), (2024, 2, 29), (2026, 11, 22)));
        assert_eq!(new_id().len(), 19);
    }
}
