//! Runs the targets of the parsers: tests whose path has the module `mutate` (`fuzz/README.md` lists them).
//!
//! The programs of tests are those of `cargo test`, or built for release, and each target runs for its part of the time.

use crate::harness::{self, Harness};
use crate::run::{output, took};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const USAGE: &str = "\
usage: cargo xtask fuzz [--seconds N] [--only NAME] [--seed N] [--release]

  --seconds   seconds of each target; default: 10
  --only      the targets whose name has this text
  --seed      a seed; default: the seed of every machine, then one that the clock chooses
  --release   an optimised build, for long runs";

/// Targets that run at the same time.
const LANES: usize = 2;

/// The module of a target.
const MODULE: &str = "mutate::";

/// Seconds of all targets in one run of `ci`.
const CI_SECONDS: f64 = 60.0;

/// A target: a test in a program of tests.
struct Target<'h> {
    harness: &'h Harness,
    /// The path of the test.
    test: String,
}

impl Target<'_> {
    /// Its name for a reader: the crate's folder and the test.
    fn name(&self) -> String {
        let folder = self.harness.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{folder}: {}", self.test)
    }
}

/// Runs the targets that the arguments name.
pub fn fuzz(arguments: &[String]) -> Result<(), String> {
    let asked = Asked::parse(arguments)?;
    let harnesses = harness::build(if asked.is_release { "release" } else { "dev" })?;
    run(&harnesses, &asked, None)
}

/// Runs all targets of these programs for one minute, with the seed of every machine: a change is not refused for an older
/// mistake that chance finds today.
pub fn fuzz_in_ci(harnesses: &[Harness]) -> Result<(), String> {
    run(harnesses, &Asked::default(), Some(CI_SECONDS))
}

/// `seconds` is the time of all targets together; without it, each has the time that was asked for.
fn run(harnesses: &[Harness], asked: &Asked, seconds: Option<f64>) -> Result<(), String> {
    let targets: Vec<Target<'_>> = targets(harnesses)?;
    let targets: Vec<&Target<'_>> = targets.iter().filter(|target| target.name().contains(&asked.only)).collect();
    if targets.is_empty() {
        return Err(format!("no target has \"{}\" in its name", asked.only));
    }
    let seeds = match asked.seed {
        Some(seed) => vec![Some(seed)],
        None if seconds.is_some() => vec![None],
        None => vec![None, Some(seed_of_clock())],
    };
    let runs = (targets.len() * seeds.len()) as f64;
    let each = match seconds {
        Some(all) => all * LANES as f64 / runs,
        None => asked.seconds / seeds.len() as f64,
    };
    let began = Instant::now();
    let said = format!("{} targets, {each:.2} s with each seed, seeds {seeds:?}", targets.len());
    println!("\n$ {said}");
    let work: Vec<(&Target<'_>, Option<u64>)> =
        seeds.iter().flat_map(|seed| targets.iter().map(move |target| (*target, *seed))).collect();
    let rounds = Mutex::new(0);
    let failures = harness::in_lanes(work, LANES, |(target, seed)| {
        let done = one(target, *seed, each)?;
        if let Ok(mut rounds) = rounds.lock() {
            *rounds += done;
        }
        Ok(())
    });
    println!("{} rounds", rounds.into_inner().unwrap_or_default());
    took(&said, began);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Runs a target, and returns its rounds.
fn one(target: &Target<'_>, seed: Option<u64>, seconds: f64) -> Result<u64, String> {
    let mut command = Command::new(&target.harness.program);
    command.current_dir(&target.harness.folder).env("CARGO_MANIFEST_DIR", &target.harness.folder);
    command.args(["--exact", "--nocapture", &target.test]).env("WEIR_FUZZ_SECONDS", format!("{seconds:.3}"));
    command.envs(seed.map(|seed| ("WEIR_FUZZ_SEED", seed.to_string())));
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{}: {e}", target.name()))?;
    let text = [String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)].concat();
    if !done.status.success() {
        return Err(format!("{}: {}\n{}", target.name(), done.status, text.trim()));
    }
    let rounds = rounds_of(&text);
    println!("{}: {rounds} rounds", target.name());
    Ok(rounds)
}

/// The sum of the rounds in lines such as `NAME: 7 rounds, seed 1`; a test may have several, or be no loop.
fn rounds_of(text: &str) -> u64 {
    let of_line = |line: &str| line.split_once(" rounds, seed ")?.0.rsplit(' ').next()?.parse::<u64>().ok();
    text.lines().filter_map(of_line).sum()
}

fn targets(harnesses: &[Harness]) -> Result<Vec<Target<'_>>, String> {
    let mut targets = Vec::new();
    for harness in harnesses {
        // The programs of other tests take no such flag: a program named after the module has nothing but targets.
        let is_whole = harness.name == MODULE.trim_end_matches(':');
        if !is_whole && !is_of_crate(harness) {
            continue;
        }
        let list = output(Command::new(&harness.program).current_dir(&harness.folder).arg("--list"))?;
        let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let tests = tests.filter(|test| is_whole || test.contains(MODULE));
        targets.extend(tests.map(|test| Target { harness, test: test.to_owned() }));
    }
    Ok(targets)
}

/// Whether a program has the unit tests of a crate.
fn is_of_crate(harness: &Harness) -> bool {
    let folder = harness.folder.file_name().unwrap_or_default().to_string_lossy();
    harness.folder.parent().is_some_and(|parent| parent.ends_with(Path::new("crates")))
        && harness.name == format!("weir_{folder}")
}

fn seed_of_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[derive(Debug, PartialEq)]
struct Asked {
    seconds: f64,
    only: String,
    seed: Option<u64>,
    is_release: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Asked { seconds: 10.0, only: String::new(), seed: None, is_release: false }
    }
}

impl Asked {
    fn parse(arguments: &[String]) -> Result<Asked, String> {
        let mut asked = Asked::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(USAGE);
            match word.as_str() {
                "--seconds" => asked.seconds = value()?.parse().map_err(|_| USAGE)?,
                "--only" => value()?.clone_into(&mut asked.only),
                "--seed" => asked.seed = Some(value()?.parse().map_err(|_| USAGE)?),
                "--release" => asked.is_release = true,
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn flags_are_read() {
        let words = ["--seconds", "1.5", "--only", "wire", "--seed", "7", "--release"].map(str::to_owned);
        let asked = Asked { seconds: 1.5, only: "wire".to_owned(), seed: Some(7), is_release: true };
        assert_eq!(Asked::parse(&words), Ok(asked));
        for wrong in [&["--seconds"][..], &["--seconds", "x"], &["--nonsense"]] {
            let words: Vec<String> = wrong.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(Asked::parse(&words), Err(USAGE.to_owned()));
        }
    }

    #[test]
    fn rounds_are_summed() {
        let text = "test requests ... requests: 1200 rounds, seed 24301\nother: 3 rounds, seed 1\nok: 5 rounds\n";
        assert_eq!(rounds_of(text), 1203);
        assert_eq!(rounds_of("test any_frames ... ok"), 0);
    }
}
