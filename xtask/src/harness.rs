//! The tests of the whole workspace: cargo builds them, and several programs of tests run at a time.
//!
//! `cargo test` runs one program after the other, and many tests spend their time waiting. Each program takes ports of
//! its own (`tests/support`), so two of them do not meet.

use crate::run::{cargo_with_profile, last_lines, spoken, tests_not_run, took};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Programs that run at the same time.
const LANES: usize = 3;

/// Programs whose tests measure, and look at shares of time only on a quiet machine: nothing runs beside them.
const ALONE: [&str; 1] = ["inside"];

/// Programs that run for more than ten seconds, the longest first: they begin first, so that nothing waits for them at
/// the end. `keeper` is not among them: its servers have seconds to answer, and the longest programs need both CPUs.
const LONG: [&str; 22] = [
    "vtc",
    "http3",
    "canary",
    "ci",
    "swap_cause",
    "why",
    "lab",
    "weir_edge",
    "weir_lsp",
    "limits",
    "weir_load",
    "fromlog",
    "fromrecording",
    "engines",
    "ledger",
    "prometheus",
    "purge",
    "adopt",
    "swap",
    "cache_hard",
    "agents",
    "load",
];

/// A program of tests.
#[derive(Debug, PartialEq)]
pub struct Harness {
    /// The target, as in `cargo test --test NAME`; for unit tests, the crate.
    pub name: String,
    pub program: PathBuf,
    /// The folder of its package: cargo runs tests there.
    pub folder: PathBuf,
}

/// Builds every test of the workspace.
pub fn build(profile: &str) -> Result<Vec<Harness>, String> {
    let mut cargo =
        cargo_with_profile("test --quiet --workspace --no-run --message-format json-render-diagnostics", profile);
    let said = spoken(cargo.stderr(Stdio::inherit()));
    println!("\n$ {said}");
    let began = Instant::now();
    let built = cargo.output().map_err(|e| format!("{said}: {e}"))?;
    took(&said, began);
    if !built.status.success() {
        return Err(format!("{said}: {}", built.status));
    }
    let found = harnesses(&String::from_utf8_lossy(&built.stdout));
    if found.is_empty() { Err(format!("{said}: cargo names no tests")) } else { Ok(found) }
}

/// The programs of tests in cargo's messages, one JSON object a line.
fn harnesses(messages: &str) -> Vec<Harness> {
    let is_harness = |message: &Value| message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
    let harness = |message: Value| {
        Some(Harness {
            name: message["target"]["name"].as_str()?.to_owned(),
            program: PathBuf::from(message["executable"].as_str()?),
            folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        })
    };
    messages.lines().filter_map(|line| serde_json::from_str(line).ok()).filter(is_harness).filter_map(harness).collect()
}

/// Runs the programs with this environment variable set; an ignored test is an error too.
pub fn run(harnesses: Vec<Harness>, (variable, value): (&str, &str)) -> Result<(), String> {
    let began = Instant::now();
    let said = format!("{} programs of tests, {LANES} at a time", harnesses.len());
    println!("\n$ {said}");
    let (alone, mut together): (Vec<_>, Vec<_>) =
        harnesses.into_iter().partition(|harness| ALONE.contains(&harness.name.as_str()));
    together.sort_by_key(|harness| place(&harness.name));
    let mut failures = in_lanes(alone, 1, |harness| one(harness, variable, value));
    failures.extend(in_lanes(together, LANES, |harness| one(harness, variable, value)));
    took(&said, began);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The place of a program in the order of the run.
fn place(name: &str) -> usize {
    LONG.iter().position(|long| *long == name).unwrap_or(LONG.len())
}

/// Does the work for every item, a few at the same time; returns the errors.
pub fn in_lanes<T: Send>(items: Vec<T>, lanes: usize, work: impl Fn(&T) -> Result<(), String> + Sync) -> Vec<String> {
    let (waiting, errors) = (Mutex::new(items.into_iter()), Mutex::new(Vec::new()));
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some(item) = next() {
                    if let (Err(error), Ok(mut errors)) = (work(&item), errors.lock()) {
                        errors.push(error);
                    }
                }
            });
        }
    });
    errors.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs a program to its end, and then prints its output in one piece.
fn one(harness: &Harness, variable: &str, value: &str) -> Result<(), String> {
    let began = Instant::now();
    let mut command = Command::new(&harness.program);
    command.current_dir(&harness.folder).env("CARGO_MANIFEST_DIR", &harness.folder).env(variable, value);
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{}: {e}", harness.name))?;
    let text = [String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)].concat();
    println!("{} ({} s)\n{}", harness.name, began.elapsed().as_secs(), text.trim());
    verdict(&harness.name, &done).map_err(|error| format!("{error}\n{}", last_lines(text.trim())))
}

/// A program fails with its exit code, with an ignored test, and without a closing line.
fn verdict(name: &str, done: &Output) -> Result<(), String> {
    let text = String::from_utf8_lossy(&done.stdout);
    match (done.status.success(), text.lines().map(tests_not_run).sum()) {
        (false, _) => Err(format!("{name}: {}", done.status)),
        (true, 0) if !text.contains("test result: ") => Err(format!("{name}: it does not say how many tests it ran")),
        (true, 0) => Ok(()),
        (true, left_out) => Err(format!("{name}: {left_out} tests were ignored; all of them must run here")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::sync::Barrier;

    #[test]
    fn only_programs_of_tests_are_taken_from_the_messages() {
        let message = |reason: &str, name: &str, is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"{reason}","manifest_path":"/w/crates/conf/Cargo.toml","target":{{"name":"{name}"}},"profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let messages = [
            message("compiler-artifact", "weir_conf", false, "null"),
            message("compiler-artifact", "weir", false, "\"/w/target/ci/weir\""),
            message("compiler-artifact", "golden", true, "\"/w/target/ci/deps/golden-1\""),
            message("build-script-executed", "other", true, "\"/w/x\""),
            "not JSON".to_owned(),
        ];
        let golden = Harness {
            name: "golden".to_owned(),
            program: "/w/target/ci/deps/golden-1".into(),
            folder: "/w/crates/conf".into(),
        };
        assert_eq!(harnesses(&messages.join("\n")), [golden]);
    }

    #[test]
    fn every_item_is_worked_on_and_lanes_run_together() {
        let together = Barrier::new(3);
        let errors = in_lanes(vec![1, 2, 3], 3, |item| {
            together.wait();
            if *item == 2 { Err("two".to_owned()) } else { Ok(()) }
        });
        assert_eq!(errors, ["two"]);
        let mut errors = in_lanes((0..50).collect(), 2, |item: &i32| Err(item.to_string()));
        errors.sort_by_key(|error| error.parse::<i32>().unwrap());
        assert_eq!(errors, (0..50).map(|item| item.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn a_program_must_succeed_and_run_all_its_tests() {
        let judged = |script: &str| verdict("x", &Command::new("sh").args(["-c", script]).output().unwrap());
        assert_eq!(judged("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'"), Ok(()));
        assert!(judged("echo 'test result: ok. 1 passed; 0 failed; 2 ignored'").unwrap_err().contains("2 tests"));
        assert!(judged("echo 'test result: ok. 1 passed; 0 failed; 0 ignored'; exit 101").unwrap_err().contains("101"));
        assert!(judged("true").unwrap_err().contains("does not say"));
    }
}
