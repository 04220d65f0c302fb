//! A kind of program that can be probed, and one program of that kind.

use std::path::PathBuf;

use super::detail::Detail;
use super::ways::Reading;

/// A kind of program that can be probed.
pub struct ProgramKind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its figures in words, for the guide.
    pub says: &'static str,
    /// The names of its processes, if the lab can find it by them.
    pub(super) programs: &'static [&'static str],
    /// The names of its counters. All other figures are levels.
    pub counters: &'static [&'static str],
    pub(super) read: fn(&Probe, &mut Detail) -> Result<Reading, String>,
}

/// One program, and how to probe it.
pub struct Probe {
    pub(super) kind: &'static ProgramKind,
    /// The process of the stack.
    pub(super) process: String,
    /// Its process id.
    pub(super) pid: u32,
    /// Its address or place.
    pub(super) at: String,
    /// The directory of the block.
    pub(super) dir: PathBuf,
}

impl Probe {
    /// Whether the program gets no request: its figures are in a file.
    pub fn is_silent(&self) -> bool {
        self.kind.name == "jvm"
    }
}
