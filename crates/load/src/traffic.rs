//! From access logs to an Artillery script with the same mix: `weir load from`.
//!
//! ```text
//!   lines ─► read ─► Log ─► window ─► routes ─► sessions ─► fit ─► write ─► script, rows
//! ```
//! Not here: files. The caller opens them, and writes the script.
//!
//! Invariants: every table has a bound with a name. A part of the log that the script does not have is counted, and
//! both the script and [`Made::notes`] say so.

mod fit;
mod phases;
mod read;
mod routes;
mod said;
mod sessions;
mod write;

use std::io::Read;

use weir_conf::language::Language;
use weir_conf::log_format::Format;

pub use read::LINE_BYTES_MAX;

/// Longest script, in minutes.
pub const MINUTES_MAX: u32 = 24 * 60;
/// Fastest and slowest speed.
pub const SPEEDS: (f64, f64) = (0.001, 100_000.0);

/// The choices of the user.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The format of the lines; `None`: weir finds out.
    pub format: Option<Format>,
    /// The host whose requests count, if the lines have hosts; `None`: the host with most requests.
    pub host: Option<String>,
    /// Leave out style sheets, scripts, images and fonts.
    pub without_assets: bool,
    /// The length of the script; `None`: the busiest hour, or the whole log if it is shorter.
    pub minutes: Option<u32>,
    /// How much faster than the log.
    pub speed: f64,
    /// `config.target`.
    pub target: String,
    /// The name of the script without its end, for the files of its rows; `None`: the rows are in the script.
    pub stem: Option<String>,
    /// The language of comments and notes.
    pub language: Language,
}

/// The script and everything that belongs to it.
#[derive(Clone, Debug)]
pub struct Made {
    /// The script, as YAML.
    pub script: String,
    /// The files of rows: names, beside the script, and contents.
    pub rows: Vec<(String, String)>,
    /// Sentences for the user: what the script has, and what it does not have.
    pub notes: Vec<String>,
}

/// Makes a script from logs; each has its name for messages.
///
/// # Errors
/// A sentence for the user: a log cannot be read, or it has nothing to make a script from.
pub fn make(wish: &Wish, logs: Vec<(String, Box<dyn Read>)>) -> Result<Made, String> {
    let mut reader = read::Reader::new(wish);
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
    let parts = write::Parts { wish, log: &log, window: &window, routes: &routes, sessions: &sessions };
    Ok(parts.write(&phases, &scenarios))
}

#[cfg(test)]
mod tests;
