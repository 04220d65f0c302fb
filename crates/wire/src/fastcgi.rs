//! FastCGI: the records of a request, and those of its answer.
//!
//! ```text
//!  BEGIN_REQUEST ─ PARAMS … ─ PARAMS (empty) ─ STDIN … ─ STDIN (empty) ─►
//!                                    ◄─ STDOUT / STDERR … ─ END_REQUEST
//! ```
//!
//! A connection carries one request at a time, always with the number 1, as with nginx.
//! <https://fastcgi-archives.github.io/FastCGI_Specification.html>

use std::fmt;

/// Bytes of a record before its content.
pub const HEADER_BYTES: usize = 8;

/// The most bytes of content in one record.
pub const CONTENT_BYTES_MAX: usize = 65_535;

/// Bytes of a request's body that weir puts into one record (nginx: 32 KiB).
const PIECE_BYTES: usize = 32 << 10;

/// The most bytes of records that bring no byte of the answer, between two that bring some. A million warnings of PHP
/// fit; an application that never answers does not occupy weir forever.
pub const SILENT_BYTES_MAX: u64 = 64 << 20;

const VERSION: u8 = 1;
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const RESPONDER: u8 = 1;
const KEEP_CONN: u8 = 1;

/// Appends the record that begins a request; `keeps` asks the application to leave the connection open.
pub fn push_begin(out: &mut Vec<u8>, keeps: bool) {
    push_header(out, BEGIN_REQUEST, HEADER_BYTES, 0);
    out.extend_from_slice(&[0, RESPONDER, if keeps { KEEP_CONN } else { 0 }, 0, 0, 0, 0, 0]);
}

/// The parameters do not fit one record, or one packet of [`uwsgi`](crate::uwsgi); the number of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig(pub usize);

/// Begins the record of the parameters; [`push_param`] appends each, and [`end_params`] gets this position.
pub fn begin_params(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    push_header(out, PARAMS, 0, 0);
    at
}

/// Ends the record of the parameters, which began at `at`, and the stream of the parameters.
pub fn end_params(out: &mut Vec<u8>, at: usize) -> Result<(), TooBig> {
    let length = out.len().saturating_sub(at + HEADER_BYTES);
    if length > CONTENT_BYTES_MAX {
        return Err(TooBig(length));
    }
    let padding = padding(length);
    if let Some(header) = out.get_mut(at..at + HEADER_BYTES) {
        header.copy_from_slice(&self::header(PARAMS, length, padding));
    }
    out.resize(out.len() + padding, 0);
    push_header(out, PARAMS, 0, 0);
    Ok(())
}

/// Appends one parameter.
pub fn push_param(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    push_length(out, name.len());
    push_length(out, value.len());
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out.push(short),
        // Longer texts than 2 GiB do not fit a record: `end_params` refuses them.
        _ => out.extend_from_slice(&(length as u32 | 0x8000_0000).to_be_bytes()),
    }
}

/// Appends a part of a request's body, in as many records as it needs. An empty part appends nothing: an empty record
/// would end the body.
pub fn push_stdin(out: &mut Vec<u8>, bytes: &[u8]) {
    for piece in bytes.chunks(PIECE_BYTES) {
        let padding = padding(piece.len());
        push_header(out, STDIN, piece.len(), padding);
        out.extend_from_slice(piece);
        out.resize(out.len() + padding, 0);
    }
}

/// Bytes that [`push_stdin`] appends for this many bytes, at most.
pub fn stdin_bytes(length: usize) -> usize {
    length + (length / PIECE_BYTES + 1) * (HEADER_BYTES + 7)
}

/// The record that ends a request's body.
pub const END_OF_STDIN: [u8; HEADER_BYTES] = header(STDIN, 0, 0);

fn push_header(out: &mut Vec<u8>, kind: u8, length: usize, padding: usize) {
    out.extend_from_slice(&header(kind, length, padding));
}

const fn header(kind: u8, length: usize, padding: usize) -> [u8; HEADER_BYTES] {
    [VERSION, kind, 0, 1, (length >> 8) as u8, length as u8, padding as u8, 0]
}

/// The padding that makes a record's length a multiple of eight.
fn padding(length: usize) -> usize {
    length.wrapping_neg() % 8
}

/// The fault of an answer's records; nginx's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastCgiFault {
    /// The record has another version.
    Version(u8),
    /// The record is not one that an application sends.
    Kind(u8),
    /// The record belongs to another request: the high byte of the number.
    IdHigh(u8),
    /// The record belongs to another request: the low byte of the number.
    IdLow(u8),
    /// The end of the request came in place of the answer's head.
    Unexpected(u8),
    /// The answer ended before its head or its body did.
    StdoutClosed,
    /// The request ended before the answer's body did.
    RequestClosed,
    /// More than [`SILENT_BYTES_MAX`] without a byte of the answer.
    Silent,
}

impl fmt::Display for FastCgiFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FastCgiFault::Version(version) => {
                write!(f, "upstream sent unsupported FastCGI protocol version: {version}")
            }
            FastCgiFault::Kind(kind) => write!(f, "upstream sent invalid FastCGI record type: {kind}"),
            FastCgiFault::IdHigh(byte) => write!(f, "upstream sent unexpected FastCGI request id high byte: {byte}"),
            FastCgiFault::IdLow(byte) => write!(f, "upstream sent unexpected FastCGI request id low byte: {byte}"),
            FastCgiFault::Unexpected(kind) => write!(f, "upstream sent unexpected FastCGI record: {kind}"),
            FastCgiFault::StdoutClosed => f.write_str("upstream prematurely closed FastCGI stdout"),
            FastCgiFault::RequestClosed => f.write_str("upstream prematurely closed FastCGI request"),
            FastCgiFault::Silent => f.write_str("upstream sent too many FastCGI records without a part of the answer"),
        }
    }
}

/// One step through an answer's records; the ranges are those of the buffer given to [`FastCgiDecoder::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastCgiEvent {
    /// Bytes of the answer.
    Stdout {
        /// Their first byte.
        start: usize,
        /// One past their last byte.
        end: usize,
    },
    /// Bytes that the application wrote to its standard error.
    Stderr {
        /// Their first byte.
        start: usize,
        /// One past their last byte.
        end: usize,
    },
    /// No further bytes of the answer follow; standard error and the end of the request may.
    Closed,
    /// The request is over: the next byte belongs to another request.
    End,
    /// The buffer is used up.
    NeedMore,
}

/// Reads the records of one answer, over several buffers if needed.
#[derive(Clone, Debug, Default)]
pub struct FastCgiDecoder {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header so far.
    have: usize,
    kind: u8,
    /// Bytes of the content that are still to come.
    left: usize,
    /// Bytes of padding after it.
    padding: usize,
    /// Bytes of records since the last byte of the answer.
    silent: u64,
    is_over: bool,
}

impl FastCgiDecoder {
    /// A decoder at the start of an answer.
    pub fn new() -> FastCgiDecoder {
        FastCgiDecoder::default()
    }

    /// Whether no record is half read: the application may close here without losing a record.
    pub fn is_between(&self) -> bool {
        self.have == 0 && self.left == 0 && self.padding == 0
    }

    /// Takes back the last `count` bytes of the last [`FastCgiEvent::Stdout`]: the next buffer begins with them.
    pub fn give_back(&mut self, count: usize) {
        self.left += count;
    }

    /// The next event in `buf`, from `at`; moves `at` behind it.
    pub fn next(&mut self, buf: &[u8], at: &mut usize) -> Result<FastCgiEvent, FastCgiFault> {
        loop {
            if self.is_over {
                return Ok(FastCgiEvent::End);
            }
            let rest = buf.get(*at..).unwrap_or_default();
            if self.left > 0 {
                let count = self.left.min(rest.len());
                if count == 0 {
                    return Ok(FastCgiEvent::NeedMore);
                }
                let (start, end) = (*at, *at + count);
                (*at, self.left) = (end, self.left - count);
                match self.kind {
                    STDOUT => {
                        self.silent = 0;
                        return Ok(FastCgiEvent::Stdout { start, end });
                    }
                    STDERR => {
                        self.keep_silent(count)?;
                        return Ok(FastCgiEvent::Stderr { start, end });
                    }
                    // The codes in the body of END_REQUEST change nothing (nginx).
                    _ => self.keep_silent(count)?,
                }
                self.end_if_over();
                continue;
            }
            if self.padding > 0 {
                let count = self.padding.min(rest.len());
                if count == 0 {
                    return Ok(FastCgiEvent::NeedMore);
                }
                *at += count;
                self.padding -= count;
                self.end_if_over();
                continue;
            }
            let Some(byte) = rest.first() else { return Ok(FastCgiEvent::NeedMore) };
            *at += 1;
            if self.read_header(*byte)? {
                self.keep_silent(HEADER_BYTES)?;
                self.end_if_over();
                if self.kind == STDOUT && self.left == 0 {
                    return Ok(FastCgiEvent::Closed);
                }
            }
        }
    }

    /// Takes one byte of a header; `true` if it was the last. Each byte is checked as it comes, as nginx does.
    fn read_header(&mut self, byte: u8) -> Result<bool, FastCgiFault> {
        match self.have {
            0 if byte != VERSION => return Err(FastCgiFault::Version(byte)),
            1 if !matches!(byte, STDOUT | STDERR | END_REQUEST) => return Err(FastCgiFault::Kind(byte)),
            2 if byte != 0 => return Err(FastCgiFault::IdHigh(byte)),
            3 if byte != 1 => return Err(FastCgiFault::IdLow(byte)),
            _ => {}
        }
        if let Some(place) = self.header.get_mut(self.have) {
            *place = byte;
        }
        self.have += 1;
        if self.have < HEADER_BYTES {
            return Ok(false);
        }
        let [_, kind, _, _, high, low, padding, _] = self.header;
        (self.kind, self.have) = (kind, 0);
        (self.left, self.padding) = (usize::from(u16::from_be_bytes([high, low])), usize::from(padding));
        Ok(true)
    }

    fn keep_silent(&mut self, count: usize) -> Result<(), FastCgiFault> {
        self.silent += count as u64;
        if self.silent > SILENT_BYTES_MAX { Err(FastCgiFault::Silent) } else { Ok(()) }
    }

    fn end_if_over(&mut self) {
        self.is_over = self.kind == END_REQUEST && self.left == 0 && self.padding == 0;
    }
}

/// The number of the record that ends a request, for [`FastCgiFault::Unexpected`].
pub const END_OF_REQUEST: u8 = END_REQUEST;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        let mut out = Vec::new();
        push_header(&mut out, kind, content.len(), padding);
        out.extend_from_slice(content);
        out.resize(out.len() + padding, b'x');
        out
    }

    #[test]
    fn a_request() {
        let mut out = Vec::new();
        push_begin(&mut out, true);
        assert_eq!(out, [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        out.clear();
        let at = begin_params(&mut out);
        push_param(&mut out, b"A", b"bc");
        end_params(&mut out, at).unwrap();
        assert_eq!(out, [1, 4, 0, 1, 0, 5, 3, 0, 1, 2, b'A', b'b', b'c', 0, 0, 0, 1, 4, 0, 1, 0, 0, 0, 0]);
        out.clear();
        push_param(&mut out, &[b'n'; 127], &[b'v'; 128]);
        assert_eq!(out.get(..5), Some(&[127, 0x80, 0, 0, 128][..]));
        out.clear();
        let at = begin_params(&mut out);
        push_param(&mut out, b"A", &vec![0; CONTENT_BYTES_MAX]);
        assert_eq!(end_params(&mut out, at), Err(TooBig(CONTENT_BYTES_MAX + 6)));
    }

    #[test]
    fn a_body_is_cut_into_records() {
        let mut out = Vec::new();
        push_stdin(&mut out, b"");
        assert_eq!(out, b"");
        push_stdin(&mut out, b"abc");
        assert_eq!(out, [1, 5, 0, 1, 0, 3, 5, 0, b'a', b'b', b'c', 0, 0, 0, 0, 0]);
        for length in [1, 8, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * PIECE_BYTES] {
            out.clear();
            push_stdin(&mut out, &vec![200; length]);
            assert!(out.len() % 8 == 0 && out.len() <= stdin_bytes(length), "{length}");
            assert_eq!(out.iter().filter(|byte| **byte == 200).count(), length);
        }
    }

    #[test]
    fn an_answer() {
        let mut input = record(STDERR, b"oops", 4);
        input.extend(record(STDOUT, b"hello", 3));
        input.extend(record(STDOUT, b"", 0));
        input.extend(record(END_REQUEST, &[0; 8], 2));
        input.extend_from_slice(b"more");
        let (mut decoder, mut at) = (FastCgiDecoder::new(), 0);
        assert_eq!(decoder.next(&input, &mut at), Ok(FastCgiEvent::Stderr { start: 8, end: 12 }));
        assert_eq!(decoder.next(&input, &mut at), Ok(FastCgiEvent::Stdout { start: 24, end: 29 }));
        assert_eq!(decoder.next(&input, &mut at), Ok(FastCgiEvent::Closed));
        assert_eq!(decoder.next(&input, &mut at), Ok(FastCgiEvent::End));
        assert_eq!(input.get(at..), Some(&b"more"[..]));
    }

    #[test]
    fn bytes_that_are_given_back_come_again() {
        let input = record(STDOUT, b"hello", 3);
        let (mut decoder, mut at) = (FastCgiDecoder::new(), 0);
        assert_eq!(decoder.next(&input, &mut at), Ok(FastCgiEvent::Stdout { start: 8, end: 13 }));
        decoder.give_back(2);
        let (rest, mut at) = (input.get(11..).unwrap(), 0);
        assert_eq!(decoder.next(rest, &mut at), Ok(FastCgiEvent::Stdout { start: 0, end: 2 }));
        assert_eq!(decoder.next(rest, &mut at), Ok(FastCgiEvent::NeedMore));
        assert!(decoder.is_between());
    }

    #[test]
    fn faults_have_nginx_s_words() {
        for (input, fault) in [
            (&b"HTTP"[..], "upstream sent unsupported FastCGI protocol version: 72"),
            (&[1, 1], "upstream sent invalid FastCGI record type: 1"),
            (&[1, 6, 2], "upstream sent unexpected FastCGI request id high byte: 2"),
            (&[1, 6, 0, 9], "upstream sent unexpected FastCGI request id low byte: 9"),
        ] {
            let fault_found = FastCgiDecoder::new().next(input, &mut 0).unwrap_err();
            assert_eq!(fault_found.to_string(), fault);
        }
    }

    #[test]
    fn silence_has_an_end() {
        let mut decoder = FastCgiDecoder::new();
        let input = record(STDERR, &vec![b'e'; CONTENT_BYTES_MAX], 1);
        let rounds = SILENT_BYTES_MAX as usize / input.len();
        let mut result = Ok(FastCgiEvent::NeedMore);
        for _ in 0..=rounds {
            let mut at = 0;
            while at < input.len() && result.is_ok() {
                result = decoder.next(&input, &mut at);
            }
        }
        assert_eq!(result, Err(FastCgiFault::Silent));
    }
}
