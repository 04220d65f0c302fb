//! Texts of the operating system in lines of a log: its errors, and the name of the machine.

use std::fmt;
use std::io;
use std::sync::LazyLock;

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
}
