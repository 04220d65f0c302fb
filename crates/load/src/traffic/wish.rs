//! The choices of the user, and the result.

use weir_conf::log_format::Format;
use weir_words::Language;

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
    /// As many arrivals as all clients had, if a recording has a share of them.
    pub all_clients: bool,
    /// `config.target`.
    pub target: String,
    /// The name of the script without its end, for the files of its rows; `None`: the rows are in the script.
    pub stem: Option<String>,
    /// The language of comments and notes.
    pub language: Language,
}

/// The script and everything that belongs to it.
#[derive(Clone, Debug)]
pub struct MadeScript {
    /// The script, as YAML.
    pub script: String,
    /// The files of rows: names, beside the script, and contents.
    pub rows: Vec<(String, String)>,
    /// Sentences for the user: what the script has, and what it does not have.
    pub notes: Vec<String>,
}
