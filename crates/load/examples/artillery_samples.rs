//! Reads reports that Artillery 2.0.34 wrote, and writes them again: the JSON must be equal byte for byte, and the
//! console text made from it must occur in Artillery's own output. Ends with an error at the first difference.
//!
//! The reports are not part of the project: `cargo run -p weir-load --example artillery_samples DIR`, with a folder
//! of `NAME.json` and `NAME.stdout.txt`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use weir_load::output::console::Console;
use weir_load::output::{RunFacts, json};
use weir_load::record::{Period, RunResults};

fn main() {
    for path in samples(&std::env::args().nth(1).expect("the folder of the reports")) {
        json_comes_back(&path);
        console_comes_back(&path);
    }
}

fn samples(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in [PathBuf::from(folder), Path::new(folder).join("think")] {
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "json")));
    }
    assert!(!files.is_empty(), "no reports there");
    files
}

fn read(path: &Path) -> (String, RunResults) {
    let text = fs::read_to_string(path).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let periods = report["intermediate"].as_array().unwrap().iter().map(|at| json::read_period(at).unwrap()).collect();
    let whole = json::read_period(&report["aggregate"]).unwrap();
    (text, RunResults { whole, periods, ..RunResults::default() })
}

fn json_comes_back(path: &Path) {
    let (text, outcome) = read(path);
    let mut document = json::document(&outcome, &RunFacts::default());
    document.as_object_mut().unwrap().remove("weir");
    assert!(json::text(&document) == text, "{}", path.display());
    println!("{}: {} bytes of JSON the same", path.display(), text.len());
}

fn console_comes_back(path: &Path) {
    let Ok(printed) = fs::read_to_string(path.with_extension("stdout.txt")) else { return };
    let (_, outcome) = read(path);
    let is_hidden = !printed.contains("plugins.metrics-by-endpoint");
    let suppressed = if is_hidden { vec!["plugins.metrics-by-endpoint".to_owned()] } else { Vec::new() };
    let console = Console { suppressed, zone: |_| 0, ..Console::default() };
    let mut bytes = 0;
    for period in &outcome.periods {
        let block = console.period(period);
        assert!(printed.contains(&block), "{}:\n{block}", path.display());
        bytes += block.len();
    }
    let block = summary(&console, &outcome.whole, &printed).unwrap_or_else(|| panic!("{}", path.display()));
    println!("{}: {} bytes of console the same", path.display(), bytes + block.len());
}

/// The summary as printed: it ended at some millisecond of the minute after the last metric.
fn summary(console: &Console, whole: &Period, printed: &str) -> Option<String> {
    let (first, last) = (whole.stamps.first()?, whole.stamps.last()?);
    let blocks = (last..last + 60_000).step_by(50).map(|now_ms| console.summary(whole, Some(first), now_ms));
    blocks.into_iter().find(|block| printed.contains(block))
}
