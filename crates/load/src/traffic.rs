//! From access logs to an Artillery script with the same mix: `weir load from`.
//!
//! ```text
//!   lines ─► read ─► Log ─► window ─► routes ─► sessions ─► fit ─► write ─► script, rows
//! ```
//! Not here: files. The caller opens them, and writes the script.
//!
//! Invariants: every table has a bound with a name. A part of the log that the script does not have is counted, and
//! both the script and [`MadeScript::notes`] say so.

mod fit;
mod phases;
mod read;
mod routes;
mod said;
mod sessions;
mod wish;
mod write;

use std::io::Read;

pub use read::{LINE_BYTES_MAX, each_line};
pub use routes::routes_of;
pub use wish::{MINUTES_MAX, MadeScript, SPEEDS, Wish};

/// Makes a script from logs; each has its name for messages.
///
/// # Errors
/// A sentence for the user: a log cannot be read, or it has nothing to make a script from.
pub fn make(wish: &Wish, logs: Vec<(String, Box<dyn Read>)>) -> Result<MadeScript, String> {
    let mut reader = read::AccessLogReader::new(wish);
    for (name, bytes) in logs {
        reader.log(&name, bytes)?;
    }
    let log = reader.finish()?;
    let window = phases::window(&log, wish);
    let kept = log.within(window.from_ms, window.to_ms);
    let routes = routes::find(&log, &kept);
    let sessions = sessions::find(&kept, &routes);
    let phases = phases::divide(&sessions.starts(), &window);
    let scenarios = fit::scenarios(&sessions, &routes);
    let parts = write::ScriptParts { wish, log: &log, window: &window, routes: &routes, sessions: &sessions };
    Ok(parts.write(&phases, &scenarios))
}

#[cfg(test)]
mod tests;
