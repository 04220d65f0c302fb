//! The error log of a process: levels, targets, and the beginning and end of a line.
//!
//! ```text
//!  2026/11/21 12:00:00 [error] PID#TID: MESSAGE
//! ```
//!
//! A line is one `write(2)`. Nothing here waits: a syslog server that does not accept a line loses it, and the loss
//! is counted. The caller opens files when it puts a configuration in force.

pub mod file;
pub mod sink;
pub mod syslog;
pub mod time;

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::log::file::LogFile;
use crate::log::sink::Sinks;

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

/// Longer lines are cut (nginx: `NGX_MAX_ERROR_STR`).
pub const LINE_MAX: usize = 2048;

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
    /// The file of `-e`; `None` for stderr.
    standard: Option<Arc<LogFile>>,
    /// Grave lines also go to the terminal.
    terminal: bool,
}

static PROCESS: LazyLock<RwLock<Process>> =
    LazyLock::new(|| RwLock::new(Process { sinks: None, standard: None, terminal: true }));

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
                        stderr(format!("      = mkdir -p {directory}, or start with: -e stderr\n").as_bytes());
                    }
                    None
                }
            }
        }
    };
    PROCESS.write().unwrap_or_else(PoisonError::into_inner).standard = standard;
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

/// The file of `-e`, if that is a file.
pub(crate) fn standard() -> Option<Arc<LogFile>> {
    PROCESS.read().unwrap_or_else(PoisonError::into_inner).standard.clone()
}

/// This machine's name, lower case.
pub fn hostname() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = name.trim();
        if name.is_empty() { "localhost".to_owned() } else { name.to_ascii_lowercase() }
    });
    &NAME
}

/// An error of the OS as nginx shows it: `(111: Connection refused)`.
pub struct Os<'e>(pub &'e io::Error);

impl fmt::Display for Os<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(code) = self.0.raw_os_error().or_else(|| code_of(self.0.kind())) else {
            return write!(f, "({})", self.0);
        };
        // std takes libc's text and appends " (os error N)".
        let text = io::Error::from_raw_os_error(code).to_string();
        let text = text.rsplit_once(" (os error").map_or(text.as_str(), |(text, _)| text);
        write!(f, "({code}: {text})")
    }
}

/// Linux's number for an error that std or weir made without a number.
fn code_of(kind: io::ErrorKind) -> Option<i32> {
    match kind {
        io::ErrorKind::NotADirectory => Some(20),
        io::ErrorKind::BrokenPipe | io::ErrorKind::WriteZero => Some(32),
        io::ErrorKind::ConnectionAborted => Some(103),
        io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Some(104),
        io::ErrorKind::TimedOut => Some(110),
        io::ErrorKind::ConnectionRefused => Some(111),
        _ => None,
    }
}

thread_local! {
    /// The memory of the current line, reused for the next line.
    static LINE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static THREAD: Cell<u32> = const { Cell::new(0) };
}

/// Composes a line: it begins with the date, the level, the process and the thread, and `write` adds the rest. The
/// memory of the line is reused.
pub fn compose(level: Level, write: impl FnOnce(&mut Vec<u8>)) {
    with_line(|line| {
        begin(line, level);
        write(line);
    });
}

fn with_line(write: impl FnOnce(&mut Vec<u8>)) {
    // A worker that ends may still log while its thread-local values are destroyed; then the line has memory of its
    // own.
    let mut line = LINE.try_with(Cell::take).unwrap_or_default();
    line.clear();
    write(&mut line);
    let _ = LINE.try_with(|kept| kept.set(line));
}

/// `DATE [level] PID#TID: `.
fn begin(line: &mut Vec<u8>, level: Level) {
    line.extend_from_slice(&time::error_log());
    let thread = THREAD
        .try_with(|thread| {
            if thread.get() == 0 {
                thread.set(crate::worker::thread_id());
            }
            thread.get()
        })
        .unwrap_or(0);
    push(line, format_args!(" [{}] {}#{thread}: ", level.name(), std::process::id()));
}

fn line_about_process(level: Level, message: fmt::Arguments<'_>, may_show: bool) {
    let (sinks, standard, terminal) = {
        let process = PROCESS.read().unwrap_or_else(PoisonError::into_inner);
        (process.sinks.clone(), process.standard.clone(), process.terminal)
    };
    with_line(|line| {
        let mut shown = false;
        begin(line, level);
        push(line, format_args!("{message}"));
        match sinks {
            Some(sinks) => shown = sinks.write(level, line),
            // nginx: before there is a configuration the level is notice.
            None if level <= Level::Notice => {
                if let Some(standard) = standard {
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

/// Appends to a line.
pub fn push(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory fails only if a Display does; the line is then shorter.
    let _ = line.write_fmt(text);
}

/// Escapes the line, cuts it to the maximum length and ends it: every error line passes here once.
pub(crate) fn end(line: &mut Vec<u8>) {
    escape_controls(line);
    line.truncate(LINE_MAX - 1);
    line.push(b'\n');
}

/// Writes control bytes as `\x0A`, as nginx's access log does.
///
/// Clients choose parts of many lines: a decoded URI, the name of a user. A newline among those bytes would begin a
/// line that weir never wrote, and an escape byte would control the terminal of the person who reads the log.
fn escape_controls(line: &mut Vec<u8>) {
    let Some(first) = line.iter().position(u8::is_ascii_control) else { return };
    for byte in line.split_off(first) {
        if byte.is_ascii_control() {
            push(line, format_args!("\\x{byte:02X}"));
        } else {
            line.push(byte);
        }
        if line.len() >= LINE_MAX {
            return;
        }
    }
}

/// Writes to stderr; a failure cannot be reported anywhere.
pub(crate) fn stderr(line: &[u8]) {
    let _ = io::stderr().write_all(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_os_read_as_in_nginx() {
        for (error, text) in [
            (io::Error::from_raw_os_error(111), "(111: Connection refused)"),
            (io::Error::from_raw_os_error(2), "(2: No such file or directory)"),
            (io::Error::from(io::ErrorKind::TimedOut), "(110: Connection timed out)"),
            (io::Error::from(io::ErrorKind::ConnectionReset), "(104: Connection reset by peer)"),
        ] {
            assert_eq!(Os(&error).to_string(), text);
        }
    }

    #[test]
    fn levels_have_nginx_names_and_order() {
        assert_eq!(Level::of("warn"), Some(Level::Warn));
        assert_eq!(Level::of("off"), None);
        assert!(Level::Error < Level::Info);
    }

    #[test]
    fn long_lines_are_cut() {
        let mut line = vec![b'x'; 5000];
        end(&mut line);
        assert_eq!(line.len(), LINE_MAX);
        assert_eq!(line.last(), Some(&b'\n'));
    }

    #[test]
    fn control_bytes_are_escaped() {
        let mut line = b"open() \"/a\nb\x1b[2J\r\x7f\tc\" failed, \xc3\xa9 \\".to_vec();
        end(&mut line);
        assert_eq!(line, b"open() \"/a\\x0Ab\\x1B[2J\\x0D\\x7F\\x09c\" failed, \xc3\xa9 \\\n");
        let mut line = vec![b'\n'; 5000];
        end(&mut line);
        assert_eq!(line.len(), LINE_MAX);
    }

    #[test]
    fn a_line_begins_with_date_level_and_thread() {
        let mut line = Vec::new();
        begin(&mut line, Level::Warn);
        let text = String::from_utf8_lossy(&line).into_owned();
        assert_eq!(text.get(4..5), Some("/"));
        assert_eq!(text.get(19..27), Some(" [warn] "));
        assert!(text.contains(&format!(" {}#", std::process::id())), "{text}");
        assert!(text.ends_with(": "), "{text}");
    }
}
