//! A test with an unmet need is reported as ignored by name, and fails if every need must be met
//! (`support/needs.rs`).
//!
//! This program runs itself with a list that contains such a test.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic)]

#[path = "support/needs.rs"]
mod needs;

use std::process::{Command, ExitCode, Output};

use needs::{Need, STRICT, cases};

/// Set in the inner run.
const INNER: &str = "WEIR_NEEDS_INNER";

fn main() -> ExitCode {
    if std::env::var_os(INNER).is_some() {
        return needs::run(cases![
            [] => needs_nothing;
            [Need::Program("sh"), Need::Program("no-such-program")] => needs_a_program_that_nobody_has;
        ]);
    }
    needs::run(cases![
        [] => an_unmet_need_is_ignored_by_name, an_unmet_need_fails_where_all_have_to_be_met;
    ])
}

fn needs_nothing() {}

fn needs_a_program_that_nobody_has() {
    panic!("it ran all the same");
}

fn an_unmet_need_is_ignored_by_name() {
    let output = inner(Command::new(own()).env_remove(STRICT));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    let case = said.lines().find(|line| line.contains("needs_a_program_that_nobody_has")).unwrap();
    assert!(case.contains("[needs no-such-program]") && case.ends_with("ignored"), "{said}");
    assert!(said.contains("test result: ok. 1 passed; 0 failed; 1 ignored;"), "{said}");
}

fn an_unmet_need_fails_where_all_have_to_be_met() {
    let output = inner(Command::new(own()).env(STRICT, "1"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("needs no-such-program, and WEIR_CI is set"), "{said}");
    assert!(said.contains("test result: FAILED. 1 passed; 1 failed; 0 ignored;"), "{said}");
}

fn own() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

fn inner(command: &mut Command) -> Output {
    command.env(INNER, "1").output().unwrap()
}
