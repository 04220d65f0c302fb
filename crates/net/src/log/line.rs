//! Composes one line of the error log: its beginning and its end.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Write};

use crate::log::level::Level;
use crate::log::time;

/// Longer lines are cut (nginx: `NGX_MAX_ERROR_STR`).
pub const LINE_MAX: usize = 2048;

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

pub(super) fn with_line(write: impl FnOnce(&mut Vec<u8>)) {
    // A worker that ends may still log while its thread-local values are destroyed; then the line has memory of its
    // own.
    let mut line = LINE.try_with(Cell::take).unwrap_or_default();
    line.clear();
    write(&mut line);
    let _ = LINE.try_with(|kept| kept.set(line));
}

/// `DATE [level] PID#TID: `.
pub(super) fn begin(line: &mut Vec<u8>, level: Level) {
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

/// Appends to a line.
pub fn push(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Writing to memory fails only if a Display does; the line is then shorter.
    let _ = line.write_fmt(text);
}

/// Escapes the line, cuts it to the maximum length and ends it: every error line passes here once.
pub(super) fn end(line: &mut Vec<u8>) {
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
pub(super) fn stderr(line: &[u8]) {
    let _ = io::stderr().write_all(line);
}

#[cfg(test)]
mod tests {
    use super::*;

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
