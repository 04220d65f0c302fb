//! Where error lines go: files, stderr, syslog servers, each from a level upwards.

use std::sync::{Arc, PoisonError, RwLock};

use crate::log::file::LogFile;
use crate::log::level::Level;
use crate::log::line::{end, stderr};
use crate::log::syslog::Syslog;

/// The file of `-e`; none for stderr.
static STANDARD: RwLock<Option<Arc<LogFile>>> = RwLock::new(None);

/// The file of `-e`, if it is one.
pub(super) fn standard() -> Option<Arc<LogFile>> {
    STANDARD.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Sets the file of `-e`.
pub(super) fn set_standard(file: Option<Arc<LogFile>>) {
    *STANDARD.write().unwrap_or_else(PoisonError::into_inner) = file;
}

/// Where one `error_log` writes.
#[derive(Clone)]
pub enum Target {
    /// A file.
    File(Arc<LogFile>),
    /// The terminal, or what stands in its place.
    Stderr,
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// The file of `-e`: what nginx falls back to when no file is configured.
    Standard,
}

/// One `error_log`.
#[derive(Clone)]
pub struct Sink {
    /// Where.
    pub target: Target,
    /// This level and all above.
    pub level: Level,
}

/// All `error_log`s of one place.
#[derive(Clone, Default)]
pub struct Sinks {
    list: Vec<Sink>,
    /// The most talkative level among them: the one test a line that nobody wants costs.
    lowest: Option<Level>,
}

impl Sinks {
    /// What is in force where nothing is configured.
    pub fn standard() -> Sinks {
        let mut sinks = Sinks::default();
        sinks.add(Sinks::default_file());
        sinks
    }

    /// nginx's default: the file of `-e`, errors and above.
    pub fn default_file() -> Sink {
        Sink { target: Target::Standard, level: Level::Error }
    }

    /// Adds one.
    pub fn add(&mut self, sink: Sink) {
        self.lowest = self.lowest.max(Some(sink.level));
        self.list.push(sink);
    }

    /// Whether any sink is a file or stderr; nginx adds the default file when none is.
    pub fn has_file(&self) -> bool {
        self.list.iter().any(|sink| !matches!(sink.target, Target::Syslog(_)))
    }

    /// Whether a line of this level would be written.
    #[inline]
    pub fn takes(&self, level: Level) -> bool {
        self.lowest >= Some(level)
    }

    /// Ends the line and writes it to every sink that takes the level; `true` when stderr was one.
    pub fn write(&self, level: Level, line: &mut Vec<u8>) -> bool {
        end(line);
        let mut shown = false;
        for sink in self.list.iter().filter(|sink| sink.level >= level) {
            match &sink.target {
                Target::File(file) => file.write(line),
                Target::Stderr => {
                    stderr(line);
                    shown = true;
                }
                Target::Syslog(syslog) => syslog.error_line(level, line.trim_ascii_end()),
                Target::Standard => match standard() {
                    Some(file) => file.write(line),
                    None => {
                        stderr(line);
                        shown = true;
                    }
                },
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_level_decides_whether_a_line_is_composed() {
        let mut sinks = Sinks::default();
        assert!(!sinks.takes(Level::Emerg));
        assert!(!sinks.has_file());
        sinks.add(Sink { target: Target::Stderr, level: Level::Crit });
        assert!(sinks.takes(Level::Alert) && !sinks.takes(Level::Error));
        sinks.add(Sink { target: Target::Stderr, level: Level::Info });
        sinks.add(Sink { target: Target::Stderr, level: Level::Warn });
        assert!(sinks.takes(Level::Info) && !sinks.takes(Level::Debug));
        assert!(Sinks::standard().takes(Level::Error) && !Sinks::standard().takes(Level::Warn));
    }
}
