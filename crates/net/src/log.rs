//! The error log of a process: levels, targets, and the beginning and end of a line.
//!
//! ```text
//!  2026/11/21 12:00:00 [error] PID#TID: MESSAGE
//! ```
//!
//! A line is one `write(2)`. Nothing here waits: a syslog server that does not accept a line loses it, and the loss
//! is counted. The caller opens files when it puts a configuration in force.

pub mod file;
mod level;
mod line;
mod os;
pub mod sink;
pub mod syslog;
pub mod time;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

pub use level::Level;
pub use line::{LINE_MAX, compose, push};
use line::{begin, end, stderr, with_line};
pub use os::{Os, hostname};

use crate::log::file::LogFile;
use crate::log::sink::{Sinks, standard};

/// A line about the process: to the main level's sinks, and while weir starts also to the terminal as
/// `nginx: [emerg] MESSAGE`.
pub fn global(level: Level, message: fmt::Arguments<'_>) {
    line_about_process(level, message, true);
}

/// As `global`, for messages that the terminal already shows (problems of a configuration).
pub fn note(level: Level, message: fmt::Arguments<'_>) {
    line_about_process(level, message, false);
}

/// The targets of lines about the process.
struct Process {
    /// The sinks of the configuration in force; `None` until there is one.
    sinks: Option<Arc<Sinks>>,
    /// Grave lines also go to the terminal.
    terminal: bool,
}

static PROCESS: RwLock<Process> = RwLock::new(Process { sinks: None, terminal: true });

/// Opens the log used until a configuration is in force: the file of `-e`, or stderr if that is `stderr` or empty.
///
/// If the file cannot be opened, weir reports this on stderr, and stderr takes its place, as in nginx.
pub fn open_default(path: &Path) {
    let standard = match path.to_str().unwrap_or_default() {
        "" | "stderr" => None,
        path => {
            let file = LogFile::shared(path);
            match file.open() {
                Ok(()) => Some(file),
                Err(what) => {
                    global(Level::Alert, format_args!("could not open error log file: {what}"));
                    if let Some(directory) = file.missing_directory() {
                        let todo = format!("create the directory with mkdir -p {directory}, or start with: -e stderr");
                        stderr(format!("      = {todo}\n").as_bytes());
                    }
                    None
                }
            }
        }
    };
    sink::set_standard(standard);
}

/// Puts the main level's sinks in force: `conf.main.error_log.main`. If no sink is a file, it adds the default file,
/// as nginx does.
pub fn install(mut main: Arc<Sinks>) {
    if !main.has_file() {
        Arc::make_mut(&mut main).add(Sinks::default_file());
    }
    PROCESS.write().unwrap_or_else(PoisonError::into_inner).sinks = Some(main);
}

/// Stops the copies on the terminal: weir runs, or has gone into the background.
pub fn leave_terminal() {
    PROCESS.write().unwrap_or_else(PoisonError::into_inner).terminal = false;
}

/// The target of standard error in the background: the file of `-e`, or nothing.
pub fn last_words() -> Option<Arc<std::fs::File>> {
    let file = standard().and_then(|file| file.handle());
    file.or_else(|| std::fs::OpenOptions::new().write(true).open("/dev/null").ok().map(Arc::new))
}

fn line_about_process(level: Level, message: fmt::Arguments<'_>, may_show: bool) {
    let (sinks, terminal) = {
        let process = PROCESS.read().unwrap_or_else(PoisonError::into_inner);
        (process.sinks.clone(), process.terminal)
    };
    with_line(|line| {
        let mut shown = false;
        begin(line, level);
        push(line, format_args!("{message}"));
        match sinks {
            Some(sinks) => shown = sinks.write(level, line),
            // nginx: before there is a configuration the level is notice.
            None if level <= Level::Notice => {
                if let Some(standard) = standard() {
                    end(line);
                    standard.write(line);
                }
            }
            None => {}
        }
        if terminal && may_show && !shown && level <= Level::Warn {
            line.clear();
            push(line, format_args!("nginx: [{}] {message}", level.name()));
            end(line);
            stderr(line);
        }
    });
}
