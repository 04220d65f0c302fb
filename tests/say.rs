//! Output of the verbs when nobody reads it or it cannot be written: no panic.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::process::{Command, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

const VERBS: [&[&str]; 16] = [
    &["--help"],
    &["--version"],
    &["edge", "-V"],
    &["edge", "-h"],
    &["load", "--help"],
    &["load", "http://127.0.0.1:1/", "-n", "1", "-c", "1"],
    &["load", "nowhere:1/x"],
    &["agent", "--help"],
    &["doctor", "--help"],
    &["doctor", "no-such-file"],
    &["purge", "http://127.0.0.1:1/"],
    &["status", "127.0.0.1:1"],
    &["top", "--once", "http://127.0.0.1:1/"],
    &["lab", "list"],
    &["lab", "--help"],
    &["demo", "--help"],
];

#[test]
fn no_verb_panics_when_nobody_reads() {
    for verb in VERBS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(WEIR);
        command.args(verb).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped());
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(!said.contains("panicked") && ended.status.code() != Some(101), "{verb:?}: {said}");
        // Also no panic if nobody reads the errors.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = command.stdout(writer.try_clone().unwrap()).stderr(writer).status().unwrap();
        assert_ne!(closed.code(), Some(101), "{verb:?}");
    }
}

#[test]
fn words_that_cannot_be_written_are_told_and_make_the_exit_code() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = Command::new(WEIR).args(["lab", "list"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.contains("weir cannot write to stdout") && !said.contains("panicked"), "{said}");
}
