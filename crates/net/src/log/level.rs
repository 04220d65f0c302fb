//! The levels of the error log.

/// Levels, as nginx names them; a sink takes its level and all graver levels.
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

impl Level {
    /// Every level, the gravest first.
    pub const ALL: [Level; 8] =
        [Level::Emerg, Level::Alert, Level::Crit, Level::Error, Level::Warn, Level::Notice, Level::Info, Level::Debug];

    /// Its name, as in a file and in a line.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Emerg => "emerg",
            Level::Alert => "alert",
            Level::Crit => "crit",
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Notice => "notice",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }

    /// The level of that name.
    pub fn of(name: &str) -> Option<Level> {
        Level::ALL.into_iter().find(|level| level.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_nginx_names_and_order() {
        assert_eq!(Level::of("warn"), Some(Level::Warn));
        assert_eq!(Level::of("off"), None);
        assert!(Level::Error < Level::Info);
    }
}
