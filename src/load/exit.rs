//! Exit codes of `weir load`. If Artillery has a code for the same end, weir uses that code.

use weir_words::{Language, Said};

/// The script cannot be run, a check failed, or not one request to a URL was answered.
pub const FAILED: u8 = 1;
/// The command line is invalid.
pub const USAGE: u8 = 2;
/// The load generator was the limit, and the user passed `--fail-if-limited`.
pub const LIMITED: u8 = 3;
/// A worker could not run.
pub const WORKER: u8 = 11;
/// An expectation failed.
pub const EXPECT: u8 = 21;
/// Ended by SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Says what is wrong with the command line; returns the exit code.
pub fn usage(message: &Said, language: Language) -> u8 {
    eprintln!("weir load: {}", message.say(language));
    USAGE
}
