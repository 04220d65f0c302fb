//! The error log: levels, sinks, and the one place that composes a line in nginx's form.

use std::fmt;

use crate::exchange::Exchange;

/// Levels by effect, as nginx names them; a sink takes its level and all above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Emerg,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    Debug,
}

/// A line about an exchange.
pub fn exchange_line(exchange: &Exchange<'_>, level: Level, message: fmt::Arguments<'_>) {
    let _ = exchange;
    global(level, message);
}

/// A line about the process.
pub fn global(level: Level, message: fmt::Arguments<'_>) {
    eprintln!("nginx: [{level:?}] {message}");
}

/// This machine's name, lower case.
pub fn hostname() -> &'static str {
    "localhost"
}
