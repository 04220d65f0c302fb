//! From access logs and recordings to an Artillery script with the same mix: `weir load from`.
//!
//! ```text
//!   lines ─► read ─► gather ─► window ─► routes ─► sessions ─► fit ─► write ─► script, rows
//! ```
//! Not here: files. The caller opens them, and writes the script.
//!
//! Invariants: every table has a bound with a name. A part of the log that the script does not have is counted, and
//! both the script and [`MadeScript::notes`] say so.

mod account;
mod detail;
mod fit;
mod gather;
mod notes;
mod parts;
mod phases;
mod read;
mod recorded;
mod routes;
mod said;
mod sessions;
mod step;
mod websocket;
mod wish;
mod write;

use std::io::Read;

pub use read::{LINE_BYTES_MAX, each_line};
pub use routes::routes_of;
pub use wish::{MINUTES_MAX, MadeScript, SPEEDS, Wish};

/// Makes a script from logs and recordings; each has its name for messages.
///
/// # Errors
/// A sentence for the user: a file cannot be read, or it has nothing to make a script from.
pub fn make(wish: &Wish, files: Vec<(String, Box<dyn Read>)>) -> Result<MadeScript, String> {
    let mut gatherer = gather::TrafficGatherer::new(wish);
    for (name, bytes) in files {
        gatherer.file(&name, bytes)?;
    }
    let log = gatherer.finish()?;
    let window = phases::window(&log, wish);
    let kept = log.within(window.from_ms, window.to_ms);
    let routes = routes::find(&log, &kept);
    let sessions = sessions::find(&kept, &routes, &log.details);
    let starts = sessions.starts();
    // The lines of a log have the ends of requests, often in whole seconds. A recording has each arrival.
    let (phases, bursts) = match log.has_lines() {
        true => (phases::divide(&starts, &window), 0),
        false => phases::divide_exactly(&starts, &window),
    };
    let scenarios = fit::scenarios(&sessions, &routes);
    let parts = parts::ScriptParts { wish, log: &log, window: &window, routes: &routes, sessions: &sessions, bursts };
    Ok(parts.write(&phases, &scenarios))
}

#[cfg(test)]
mod tests;
