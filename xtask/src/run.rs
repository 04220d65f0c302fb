//! Runs other programs: prints each command; an error names the command that failed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The profile of `cargo xtask ci`.
pub const CI: &str = "ci";

/// The target of builds with flags of their own: with a target, build scripts and macros get none of the flags.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Lines that an error repeats of a failed run: its tests' own messages, which stand far above the end of the whole output.
const REPEATED: usize = 60;

/// `cargo WORDS`, with the cargo that runs this xtask.
pub fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split_whitespace());
    command
}

/// `cargo WORDS --profile PROFILE`. With the profile `ci`, clippy compiles: it is the compiler with its lints, so that
/// the code is read once and not twice. Each warning is an error there.
pub fn cargo_with_profile(words: &str, profile: &str) -> Command {
    let mut command = cargo(words);
    command.args(["--profile", profile]);
    if profile == CI {
        // What `cargo clippy -- -D warnings` sets before it calls `cargo check`.
        command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
        command.env("CLIPPY_ARGS", "-Dwarnings");
    }
    command
}

/// Runs a command to its end with this process's output; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<(), String> {
    let said = spoken(command);
    println!("\n$ {said}");
    let began = Instant::now();
    let status = command.status().map_err(|e| format!("{said}: {e}"))?;
    took(&said, began);
    if status.success() { Ok(()) } else { Err(format!("{said}: {status}")) }
}

/// Runs tests as [`run`] does; an ignored or skipped test is an error too. The error of a failed run ends with its last lines.
pub fn run_tests(command: &mut Command) -> Result<(), String> {
    let said = spoken(command);
    println!("\n$ {said}");
    let began = Instant::now();
    let mut tests = command.stdout(Stdio::piped()).spawn().map_err(|e| format!("{said}: {e}"))?;
    let (mut not_run, mut all) = (0, String::new());
    for line in tests.stdout.take().into_iter().flat_map(|out| BufReader::new(out).split(b'\n')) {
        let line = line.map_err(|e| format!("{said}: {e}"))?;
        let line = String::from_utf8_lossy(&line);
        not_run += tests_not_run(&line);
        println!("{line}");
        all += &line;
        all.push('\n');
    }
    let status = tests.wait().map_err(|e| format!("{said}: {e}"))?;
    took(&said, began);
    match (status.success(), not_run) {
        (true, 0) => Ok(()),
        (true, _) => Err(format!("{said}: {not_run} tests were ignored or skipped; all of them must run here")),
        (false, _) => Err(format!("{said}: {status}\n{}", last_lines(&all))),
    }
}

/// The last lines of a failed run's output, for its error.
pub fn last_lines(output: &str) -> String {
    let lines = output.lines().collect::<Vec<_>>();
    lines[lines.len().saturating_sub(REPEATED)..].join("\n")
}

/// Says how long a step took: the whole has a limit of 20 minutes, and a reader wants to know where they go. Steps run
/// beside each other, so the line repeats the name of the step.
pub fn took(said: &str, began: Instant) {
    println!("({} s: {said})", began.elapsed().as_secs());
}

/// Number of tests that a summary line of libtest, libtest-mimic or `node --test` counts as ignored, skipped or todo.
pub fn tests_not_run(line: &str) -> u64 {
    if let Some((_, counts)) = line.split_once("test result: ") {
        let ignored = counts.split(';').find_map(|count| count.trim().strip_suffix(" ignored"));
        return ignored.and_then(|count| count.parse().ok()).unwrap_or(0);
    }
    let Some((mark, count)) = line.split_once(' ') else { return 0 };
    let left_out = count.strip_prefix("skipped ").or_else(|| count.strip_prefix("todo "));
    left_out.filter(|_| ["#", "ℹ"].contains(&mark)).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Runs a command to its end and returns its output.
pub fn output(command: &mut Command) -> Result<String, String> {
    let said = spoken(command);
    let output = command.output().map_err(|e| format!("{said}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{said}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// The command as a person would type it; cargo without its path.
pub fn spoken(command: &Command) -> String {
    let settings = command.get_envs().filter_map(|(name, value)| {
        value.map(|value| format!("{}={} ", name.to_string_lossy(), value.to_string_lossy()))
    });
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy()));
    settings.chain([program]).chain(arguments).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn tests_that_did_not_run_are_counted_from_the_closing_line() {
        for (line, count) in [
            ("test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s", 0),
            ("test result: ok. 12 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s", 2),
            ("test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 7 filtered out", 1),
            ("# skipped 0", 0),
            ("# skipped 3", 3),
            ("\u{2139} skipped 1", 1),
            ("# todo 1", 1),
            ("# pass 9", 0),
            ("a page says: skipped 4", 0),
            ("", 0),
        ] {
            assert_eq!(tests_not_run(line), count, "{line}");
        }
    }

    #[test]
    fn a_run_with_an_ignored_test_fails_and_a_whole_one_does_not() {
        let says = |closing: &str| run_tests(Command::new("echo").arg(closing));
        assert_eq!(says("test result: ok. 1 passed; 0 failed; 0 ignored"), Ok(()));
        assert!(says("test result: ok. 1 passed; 0 failed; 1 ignored").unwrap_err().contains("1 tests were ignored"));
        assert!(run_tests(&mut Command::new("false")).is_err());
    }

    #[test]
    fn the_error_of_a_failed_run_has_its_last_lines() {
        let error = run_tests(Command::new("sh").args(["-c", "seq 1 1000; exit 3"])).unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with("\n999\n1000"), "{error}");
        assert_eq!(error.lines().count(), 1 + REPEATED);
        let numbers = (1..=1000).map(|number| number.to_string()).collect::<Vec<_>>().join("\n");
        assert_eq!(error.split_once('\n').unwrap().1, last_lines(&numbers));
    }
}
