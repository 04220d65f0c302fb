//! memcached's text protocol, as far as nginx uses it: `get` of one key.
//!
//! ```text
//!  get KEY ─►          ◄─ VALUE KEY FLAGS LENGTH ─ the value ─ END
//!                      ◄─ END, if there is no such key
//! ```
//! <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>

use crate::framing::content_length;

/// The bytes after a value.
pub const TRAILER: &[u8] = b"\r\nEND\r\n";

/// Appends a request for a key, which is escaped already.
pub fn push_get(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(b"get ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// Appends a key without the bytes that would end it: control bytes, spaces and `%` become `%XX` (nginx).
pub fn push_key(out: &mut Vec<u8>, key: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in key {
        if byte <= b' ' || byte == b'%' {
            let digit = |part: u8| HEX.get(usize::from(part)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.push(byte);
        }
    }
}

/// The first line of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A value follows.
    Value {
        /// The flags that its writer gave it; 0 if they are not asked for.
        flags: u64,
        /// Its length.
        length: u64,
    },
    /// There is no value under the key.
    NotFound,
}

/// The fault of a first line; nginx's words are in the log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedFault {
    /// It is neither a value nor its absence.
    Response,
    /// It names another key.
    Key,
    /// Its flags are not a number.
    Flags,
    /// Its length is not a number.
    Length,
}

/// Reads a first line without its LF, for a request of this key; flags only if `reads_flags`, as nginx does.
pub fn answer(line: &[u8], key: &[u8], reads_flags: bool) -> Result<Answer, MemcachedFault> {
    let line = line.strip_suffix(b"\r").ok_or(MemcachedFault::Response)?;
    if line == b"END" {
        return Ok(Answer::NotFound);
    }
    let rest = line.strip_prefix(b"VALUE ").ok_or(MemcachedFault::Response)?;
    let rest = rest.strip_prefix(key).ok_or(MemcachedFault::Key)?;
    let rest = rest.strip_prefix(b" ").ok_or(MemcachedFault::Response)?;
    let space = memchr::memchr(b' ', rest).ok_or(MemcachedFault::Response)?;
    let (flags, length) = rest.split_at(space);
    let flags = if reads_flags { content_length(flags).ok_or(MemcachedFault::Flags)? } else { 0 };
    let length = length.get(1..).and_then(content_length).ok_or(MemcachedFault::Length)?;
    Ok(Answer::Value { flags, length })
}

/// The rest of a value that arrives in parts.
#[derive(Clone, Debug)]
pub struct Value {
    left: u64,
    /// Bytes of the trailer so far.
    trailer: usize,
}

/// The state after some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemcachedProgress {
    /// More bytes are needed.
    NeedMore,
    /// Value and trailer are complete.
    Done,
    /// Other bytes than the trailer follow the value.
    BadTrailer,
}

impl Value {
    /// A value of this length.
    pub fn new(length: u64) -> Value {
        Value { left: length, trailer: 0 }
    }

    /// Takes the next bytes: returns how many of them, from the first, belong to the value.
    pub fn take(&mut self, bytes: &[u8]) -> (usize, MemcachedProgress) {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        self.left -= count as u64;
        let behind = bytes.get(count..).unwrap_or_default();
        let expected = TRAILER.get(self.trailer..).unwrap_or_default();
        if behind.len() > expected.len() || !expected.starts_with(behind) {
            return (count, MemcachedProgress::BadTrailer);
        }
        self.trailer += behind.len();
        (count, if self.trailer == TRAILER.len() { MemcachedProgress::Done } else { MemcachedProgress::NeedMore })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hold_no_byte_that_ends_them() {
        let mut key = Vec::new();
        push_key(&mut key, b"/a b%\r\n\x7f\xff");
        assert_eq!(key, b"/a%20b%25%0D%0A\x7f\xff");
        let mut out = Vec::new();
        push_get(&mut out, &key);
        assert_eq!(out, b"get /a%20b%25%0D%0A\x7f\xff\r\n");
    }

    #[test]
    fn first_lines() {
        let value = |flags, length| Ok(Answer::Value { flags, length });
        for (line, reads_flags, expected) in [
            ("END\r", true, Ok(Answer::NotFound)),
            ("VALUE k 0 8\r", true, value(0, 8)),
            ("VALUE k 2 0\r", true, value(2, 0)),
            ("VALUE k x 8\r", false, value(0, 8)),
            ("VALUE k x 8\r", true, Err(MemcachedFault::Flags)),
            ("VALUE other 0 8\r", true, Err(MemcachedFault::Key)),
            ("VALUE kk 0 8\r", true, Err(MemcachedFault::Response)),
            ("VALUE k 0\r", true, Err(MemcachedFault::Response)),
            ("VALUE k 0 \r", true, Err(MemcachedFault::Length)),
            ("VALUE k 0 8 \r", true, Err(MemcachedFault::Length)),
            ("VALUE k 0 99999999999999999999\r", true, Err(MemcachedFault::Length)),
            ("VALUE k 0 8", true, Err(MemcachedFault::Response)),
            ("ERROR\r", true, Err(MemcachedFault::Response)),
            ("\r", true, Err(MemcachedFault::Response)),
            ("", true, Err(MemcachedFault::Response)),
        ] {
            assert_eq!(answer(line.as_bytes(), b"k", reads_flags), expected, "{line:?}");
        }
    }

    #[test]
    fn a_value_and_its_trailer() {
        for (parts, expected) in [
            (&["abc\r\nEND\r\n"][..], (3, MemcachedProgress::Done)),
            (&["a", "bc\r", "\nEND", "\r\n"], (3, MemcachedProgress::Done)),
            (&["abc", "\r\nEND\r"], (3, MemcachedProgress::NeedMore)),
            (&["abc\r\nEND\r\nx"], (3, MemcachedProgress::BadTrailer)),
            (&["abcd"], (3, MemcachedProgress::BadTrailer)),
            (&["ab"], (2, MemcachedProgress::NeedMore)),
        ] {
            let (mut value, mut got, mut last) = (Value::new(3), 0, MemcachedProgress::NeedMore);
            for part in parts {
                let (count, progress) = value.take(part.as_bytes());
                (got, last) = (got + count, progress);
            }
            assert_eq!((got, last), expected, "{parts:?}");
        }
    }
}
