//! Output of the verbs: `print!`, `println!`, `eprint!` and `eprintln!` that never panic.
//!
//! The standard macros panic when the reader has closed the pipe (`weir lab list | head -1`). These macros ignore the
//! closed pipe, so that a lab still stops its processes and stores its result. They report any other failure, such as
//! a full disk, once on stderr, and make the exit code 1.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

static FAILED: AtomicBool = AtomicBool::new(false);

/// Writes to stdout.
pub fn out(text: fmt::Arguments<'_>) {
    if let Err(error) = io::stdout().write_fmt(text) {
        note(&error);
    }
}

/// Writes to stderr; there is nowhere to report a failure.
pub fn err(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// The exit code of a verb: 1 instead of success if stdout could not be written.
pub fn ended(code: ExitCode) -> ExitCode {
    if let Err(error) = io::stdout().flush() {
        note(&error);
    }
    match FAILED.load(Ordering::Relaxed) && code == ExitCode::SUCCESS {
        true => ExitCode::FAILURE,
        false => code,
    }
}

fn note(error: &io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe && !FAILED.swap(true, Ordering::Relaxed) {
        err(format_args!("weir cannot write to stdout: {error}\n"));
    }
}

macro_rules! print {
    ($($text:tt)*) => { $crate::say::out(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::say::out(format_args!("\n")) };
    ($($text:tt)*) => { $crate::say::out(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::say::err(format_args!($($text)*)) };
}

macro_rules! eprintln {
    () => { $crate::say::err(format_args!("\n")) };
    ($($text:tt)*) => { $crate::say::err(format_args!("{}\n", format_args!($($text)*))) };
}
