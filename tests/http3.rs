//! HTTP/3 for clients, with aioquic: what a user does, what HTTP/2 answers, clients that break rules, bad paths, and
//! what weir counts and logs of all that.
//!
//! `tests/http3/` has the programs. They need the packages of `http3/python.txt`, which `cargo xtask ci` installs in
//! `target/python`.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;

use std::path::Path;
use std::process::{Command, ExitCode};

use needs::{Need, cases};

/// The Python of `cargo xtask ci`.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/target/python/bin/python");

fn main() -> ExitCode {
    needs::run(cases![
        [Need::Root, Need::Program("openssl"), Need::Program(PYTHON)] =>
            requests_limits_and_ends, the_answers_of_http2, clients_that_break_rules, every_byte_over_bad_paths;
        [Need::Root, Need::Program("openssl"), Need::Program("curl"), Need::Program(PYTHON)] => what_is_counted_and_logged
    ])
}

fn requests_limits_and_ends() {
    run("user.py", &[]);
}

fn the_answers_of_http2() {
    run("alike.py", &[]);
}

fn clients_that_break_rules() {
    run("hostile.py", &[]);
}

fn every_byte_over_bad_paths() {
    run("paths.py", &["--short"]);
}

fn what_is_counted_and_logged() {
    run("seen.py", &[]);
}

fn run(program: &str, words: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http3").join(program);
    let output =
        Command::new(PYTHON).arg(script).args(["--weir", env!("CARGO_BIN_EXE_weir")]).args(words).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}", said.concat());
}
