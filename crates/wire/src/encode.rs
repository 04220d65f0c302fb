//! Writes HTTP/1.1 messages: small functions that append to a `Vec<u8>`.
//!
//! It does not check: names and values come from a parsed head or from the configuration, and neither can contain a
//! line end ([`push_field`] asserts it in debug builds).

use crate::span::Span;

/// Ends a chunked body that has no trailer section.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Follows the data of every chunk.
pub const CRLF: &[u8] = b"\r\n";

/// Bytes [`chunk_head`] needs at most: 16 digits and CRLF.
pub const CHUNK_HEAD_BYTES: usize = 18;

/// Bytes [`decimal`] needs at most: the digits of `u64::MAX`.
pub const DECIMAL_BYTES: usize = 20;

/// Writes the line before a chunk of `length` bytes (RFC 9112 §7.1), lower-case
/// hexadecimal as nginx writes it. A length of 0 would end the body: use
/// [`LAST_CHUNK`] for that.
pub fn chunk_head(length: u64, space: &mut [u8; CHUNK_HEAD_BYTES]) -> &[u8] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut at = CHUNK_HEAD_BYTES - CRLF.len();
    let mut left = length;
    if let Some(end) = space.get_mut(at..) {
        end.copy_from_slice(CRLF);
    }
    loop {
        at -= 1;
        if let (Some(place), Some(&digit)) = (space.get_mut(at), DIGITS.get((left & 15) as usize)) {
            *place = digit;
        }
        left >>= 4;
        if left == 0 || at == 0 {
            return space.get(at..).unwrap_or_default();
        }
    }
}

/// Appends `name: value` and CRLF. A name of known length costs no copy of its own.
#[inline]
pub fn push_field(out: &mut Vec<u8>, name: &(impl AsRef<[u8]> + ?Sized), value: &[u8]) {
    let name = name.as_ref();
    debug_assert!(memchr::memchr2(b'\r', b'\n', name).is_none());
    debug_assert!(memchr::memchr2(b'\r', b'\n', value).is_none());
    out.reserve(name.len() + value.len() + 4);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(CRLF);
}

/// Writes fields of one buffer. Lines that follow each other in the buffer, and that are there as [`push_field`] would write
/// them, are one copy. Ends with [`finish`](FieldWriter::finish).
pub struct FieldWriter<'b> {
    buf: &'b [u8],
    /// The lines that are not copied yet.
    from: usize,
    to: usize,
}

impl<'b> FieldWriter<'b> {
    /// Writes fields of this buffer.
    pub fn of(buf: &'b [u8]) -> FieldWriter<'b> {
        FieldWriter { buf, from: 0, to: 0 }
    }

    /// The next field.
    #[inline]
    pub fn push(&mut self, name: Span, value: Span, out: &mut Vec<u8>) {
        let (start, end) = (name.start as usize, value.end as usize);
        let is_usual = Span { start: name.end, end: value.start }.of(self.buf) == b": "
            && self.buf.get(end..end + CRLF.len()) == Some(CRLF);
        if !is_usual {
            return self.push_alone(name, value, out);
        }
        if start != self.to {
            self.copy(out);
            self.from = start;
        }
        self.to = end + CRLF.len();
    }

    /// A field that is not a line of the buffer.
    #[inline(never)] // keeps the loop over the usual fields small
    fn push_alone(&mut self, name: Span, value: Span, out: &mut Vec<u8>) {
        self.copy(out);
        push_field(out, name.of(self.buf), value.of(self.buf));
    }

    /// Ends the fields.
    #[inline]
    pub fn finish(mut self, out: &mut Vec<u8>) {
        self.copy(out);
    }

    #[inline]
    fn copy(&mut self, out: &mut Vec<u8>) {
        if self.from < self.to {
            out.extend_from_slice(self.buf.get(self.from..self.to).unwrap_or_default());
            self.from = self.to;
        }
    }
}

/// Appends `name: number` and CRLF.
#[inline]
pub fn push_field_decimal(out: &mut Vec<u8>, name: &(impl AsRef<[u8]> + ?Sized), value: u64) {
    push_field(out, name, decimal(value, &mut [0; DECIMAL_BYTES]));
}

/// Appends `HTTP/1.1 `, the status line's rest (`200 OK`) and CRLF. The version is weir's own, not the origin's (RFC
/// 9110 §2.5).
pub fn push_status_line(out: &mut Vec<u8>, status_line: &[u8]) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status_line);
    out.extend_from_slice(CRLF);
}

/// Appends a request line and CRLF; `version` is `HTTP/1.1` or `HTTP/1.0`.
pub fn push_request_line(out: &mut Vec<u8>, method: &[u8], target: &[u8], version: &[u8]) {
    out.extend_from_slice(method);
    out.push(b' ');
    out.extend_from_slice(target);
    out.push(b' ');
    out.extend_from_slice(version);
    out.extend_from_slice(CRLF);
}

/// Appends the number in decimal.
pub fn push_decimal(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(decimal(value, &mut [0; DECIMAL_BYTES]));
}

/// Writes the number in decimal.
pub fn decimal(value: u64, space: &mut [u8; DECIMAL_BYTES]) -> &[u8] {
    let mut at = DECIMAL_BYTES;
    let mut left = value;
    loop {
        at -= 1;
        if let Some(place) = space.get_mut(at) {
            *place = b'0' + (left % 10) as u8;
        }
        left /= 10;
        if left == 0 || at == 0 {
            return space.get(at..).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_heads() {
        for (length, expect) in [
            (1, "1\r\n"),
            (15, "f\r\n"),
            (16, "10\r\n"),
            (0xdead_beef, "deadbeef\r\n"),
            (u64::MAX, "ffffffffffffffff\r\n"),
        ] {
            let mut space = [0; CHUNK_HEAD_BYTES];
            assert_eq!(chunk_head(length, &mut space), expect.as_bytes());
        }
    }

    #[test]
    fn decimals() {
        for value in [0, 1, 9, 10, 99, 100, 65535, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            push_decimal(&mut out, value);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }

    #[test]
    fn a_head() {
        let mut out = Vec::new();
        push_request_line(&mut out, b"GET", b"/a?b", b"HTTP/1.1");
        push_status_line(&mut out, b"200 OK");
        push_field(&mut out, b"Host", b"a");
        push_field_decimal(&mut out, b"Content-Length", 42);
        let expect = "GET /a?b HTTP/1.1\r\nHTTP/1.1 200 OK\r\nHost: a\r\nContent-Length: 42\r\n";
        assert_eq!(out, expect.as_bytes());
    }
}
