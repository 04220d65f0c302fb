//! The targets of error lines: files, stderr, syslog servers, each from a level upwards.

use std::sync::{Arc, PoisonError, RwLock};

use crate::log::file::LogFile;
use crate::log::level::Level;
use crate::log::line::{end, stderr};
use crate::log::syslog::Syslog;

/// The file of `-e`; none for stderr.
static STANDARD: RwLock<Option<Arc<LogFile>>> = RwLock::new(None);

/// The file of `-e`, if that is a file.
pub(super) fn standard() -> Option<Arc<LogFile>> {
    STANDARD.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Sets the file of `-e`.
pub(super) fn set_standard(file: Option<Arc<LogFile>>) {
    *STANDARD.write().unwrap_or_else(PoisonError::into_inner) = file;
}

/// The target of one `error_log`.
#[derive(Clone)]
pub enum LogTarget {
    /// A file.
    File(Arc<LogFile>),
    /// The terminal, or its replacement.
    Stderr,
    /// A syslog server.
    Syslog(Arc<Syslog>),
    /// The file of `-e`: nginx's fallback if no file is configured.
    Standard,
}

/// One `error_log`.
#[derive(Clone)]
pub struct Sink {
    /// Its target.
    pub target: LogTarget,
    /// This level and all graver levels.
    pub level: Level,
}

/// All `error_log`s of one block.
#[derive(Clone, Default)]
pub struct Sinks {
    list: Vec<Sink>,
    /// The lowest level of all sinks: if no sink takes a line, this one comparison is the only cost.
    lowest: Option<Level>,
}

impl Sinks {
    /// The sinks in force if nothing is configured.
    pub fn standard() -> Sinks {
        let mut sinks = Sinks::default();
        sinks.add(Sinks::default_file());
        sinks
    }

    /// nginx's default: the file of `-e`, level `error` and graver.
    pub fn default_file() -> Sink {
        Sink { target: LogTarget::Standard, level: Level::Error }
    }

    /// Adds a sink.
    pub fn add(&mut self, sink: Sink) {
        self.lowest = self.lowest.max(Some(sink.level));
        self.list.push(sink);
    }

    /// Whether any sink is a file or stderr; nginx adds the default file if none is.
    pub fn has_file(&self) -> bool {
        self.list.iter().any(|sink| !matches!(sink.target, LogTarget::Syslog(_)))
    }

    /// Whether a line of this level would be written.
    #[inline]
    pub fn takes(&self, level: Level) -> bool {
        self.lowest >= Some(level)
    }

    /// Ends the line and writes it to every sink that takes the level; `true` when stderr was one.
    pub fn write(&self, level: Level, line: &mut Vec<u8>) -> bool {
        self.write_to(|sink| sink.level >= level, level, line)
    }

    /// The same for every sink, whatever level it takes: the line is about a client of `debug_connection`.
    pub fn write_to_all(&self, level: Level, line: &mut Vec<u8>) -> bool {
        self.write_to(|_| true, level, line)
    }

    fn write_to(&self, takes: impl Fn(&Sink) -> bool, level: Level, line: &mut Vec<u8>) -> bool {
        end(line);
        let mut shown = false;
        for sink in self.list.iter().filter(|sink| takes(sink)) {
            match &sink.target {
                LogTarget::File(file) => file.write(line),
                LogTarget::Stderr => {
                    stderr(line);
                    shown = true;
                }
                LogTarget::Syslog(syslog) => syslog.error_line(level, line.trim_ascii_end()),
                LogTarget::Standard => match standard() {
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
        sinks.add(Sink { target: LogTarget::Stderr, level: Level::Crit });
        assert!(sinks.takes(Level::Alert) && !sinks.takes(Level::Error));
        sinks.add(Sink { target: LogTarget::Stderr, level: Level::Info });
        sinks.add(Sink { target: LogTarget::Stderr, level: Level::Warn });
        assert!(sinks.takes(Level::Info) && !sinks.takes(Level::Debug));
        assert!(Sinks::standard().takes(Level::Error) && !Sinks::standard().takes(Level::Warn));
    }
}
