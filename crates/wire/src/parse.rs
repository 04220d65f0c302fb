//! The incremental head parser, for requests and responses.
//!
//! It does not read from a socket: the caller owns the buffer, appends to it and calls again. The work is linear in
//! the number of bytes, however they arrive: if the buffer ends inside a line, the next call continues where the last
//! one stopped.
//!
//! Invariant: the result does not depend on how a head is split over calls.

mod cgi;
mod request_line;
mod status_line;

use crate::field::{self, FieldLine, Resume, SectionSender, Spelling};
use crate::head::{HeadPolicy, InvalidFields, RequestHead, ResponseHead, Version};
use crate::known::Known;
use crate::span::{Field, Span};
use crate::violation::Violation;
use crate::word;

/// The longest buffer that a head is parsed from: spans are `u32`.
pub const HEAD_BYTES_MAX: usize = 1 << 30;

/// Fields of a response, at most; nginx bounds them only by `proxy_buffer_size`.
pub const RESPONSE_FIELDS_MAX: usize = 4096;

/// Left-out lines kept for the log in [`RequestHead::ignored`], at most.
pub const IGNORED_KEPT: usize = 32;

/// The first bytes of an incomplete status line are checked early, so that weir recognises an origin that does not
/// speak HTTP without waiting for a line end.
const STATUS_LINE_EARLY: usize = 64;

/// A first line up to this many bytes is searched here: a call of `memchr` would cost more than the search.
const SHORT_LINE_MAX: usize = 64;

/// The progress of a parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Partial {
        /// Whether the request or status line is complete.
        line_done: bool,
        /// The start of the unfinished line; everything before it is parsed.
        offset: usize,
    },
    /// The head is complete; its `len` bytes are parsed.
    Done,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Start,
    FirstLine,
    Fields,
    Done,
}

/// Parses one head at a time from a growing buffer.
///
/// Give it the same buffer with more bytes until it is done, then [`reset`](Parser::reset) it. It owns no allocation.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    stage: Stage,
    /// The start of the current line.
    line: usize,
    /// Up to this position, the first line has no end.
    searched: usize,
    resume: Resume,
    method_done: bool,
    fault: Span,
}

impl Parser {
    /// A parser at the start of a head.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Starts over with the next head, at the start of a buffer.
    pub fn reset(&mut self) {
        *self = Parser::default();
    }

    /// After a refusal: the bytes from the start of the refused line to the first wrong byte, both included. nginx's
    /// log quotes these bytes.
    pub fn fault(&self) -> Span {
        self.fault
    }

    /// Parses a request head (RFC 9112 §3).
    ///
    /// Leading empty lines are skipped and counted in `len`. The buffer must begin with the same bytes at each call
    /// of one head. Never returns 414 or 494: the caller decides how much to buffer.
    pub fn request(&mut self, buf: &[u8], policy: &HeadPolicy, out: &mut RequestHead) -> Result<Progress, Violation> {
        if buf.len() > HEAD_BYTES_MAX {
            return Err(Violation::HeadTooLarge);
        }
        if self.stage == Stage::Start {
            let rest = buf.get(self.line..).unwrap_or_default();
            self.line += rest.iter().take_while(|&&b| b == b'\r' || b == b'\n').count();
            self.searched = self.line;
            if self.line >= buf.len() {
                return Ok(self.partial());
            }
            out.clear();
            self.stage = Stage::FirstLine;
        }
        if self.stage == Stage::FirstLine && !self.request_line(buf, out)? {
            return Ok(self.partial());
        }
        while self.stage == Stage::Fields {
            match field::line(buf, self.line, &mut self.resume, SectionSender::Client) {
                FieldLine::Field { field, spelling, is_clean, next } => {
                    self.keep_request_field(buf, policy, out, field, (spelling, is_clean))?;
                    self.step(next);
                }
                FieldLine::Skipped { next } => self.step(next),
                FieldLine::End { next } => {
                    out.len = next;
                    self.stage = Stage::Done;
                }
                FieldLine::Need => return Ok(self.partial()),
                FieldLine::Bad { at } => return Err(self.refuse(at, Violation::InvalidField)),
            }
        }
        Ok(Progress::Done)
    }

    /// Parses a response head (RFC 9112 §4).
    ///
    /// [`Violation::NoStatusLine`] as soon as the first bytes cannot become a
    /// status line; the caller may then take the whole stream for an HTTP/0.9
    /// body, as nginx does.
    pub fn response(&mut self, buf: &[u8], out: &mut ResponseHead) -> Result<Progress, Violation> {
        if buf.len() > HEAD_BYTES_MAX {
            return Err(Violation::UpstreamHeadTooLarge);
        }
        if self.stage == Stage::Start {
            out.clear();
            self.stage = Stage::FirstLine;
        }
        if self.stage == Stage::FirstLine && !self.status_line(buf, out)? {
            return Ok(self.partial());
        }
        self.response_fields(buf, out)
    }

    /// Parses the fields of a response.
    #[inline]
    fn response_fields(&mut self, buf: &[u8], out: &mut ResponseHead) -> Result<Progress, Violation> {
        while self.stage == Stage::Fields {
            match field::line(buf, self.line, &mut self.resume, SectionSender::Origin) {
                FieldLine::Field { field, next, .. } => {
                    if out.fields.len() >= RESPONSE_FIELDS_MAX {
                        return Err(self.refuse(next, Violation::UpstreamHeadTooLarge));
                    }
                    if let Some(known) = field.known {
                        out.seen.insert(known);
                    }
                    out.fields.push(field);
                    self.step(next);
                }
                FieldLine::Skipped { next } => self.step(next),
                FieldLine::End { next } => {
                    out.len = next;
                    self.stage = Stage::Done;
                }
                FieldLine::Need => return Ok(self.partial()),
                FieldLine::Bad { at } => return Err(self.refuse(at, Violation::UpstreamInvalidField)),
            }
        }
        Ok(Progress::Done)
    }

    /// Parses the request line when it is complete.
    fn request_line(&mut self, buf: &[u8], out: &mut RequestHead) -> Result<bool, Violation> {
        let Some(end) = self.line_end(buf) else {
            self.check_method(buf)?;
            self.searched = buf.len();
            return Ok(false);
        };
        let start = self.line;
        let line = buf.get(start..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Err(bad) = request_line::parse(line, start, out) {
            return Err(self.refuse(start + bad.at, bad.violation));
        }
        out.line = Span::new(start, start + line.len());
        self.step(end + 1);
        self.stage = Stage::Fields;
        if out.version == Version::Http09 {
            out.len = end + 1;
            self.stage = Stage::Done;
        }
        Ok(true)
    }

    /// Refuses a bad method before its line is complete, as nginx does: a TLS
    /// handshake on a plain port need not contain a line end.
    fn check_method(&mut self, buf: &[u8]) -> Result<(), Violation> {
        if self.method_done {
            return Ok(());
        }
        for (at, &byte) in buf.iter().enumerate().skip(self.searched) {
            if byte == b' ' && at > self.line {
                self.method_done = true;
                break;
            }
            if !request_line::is_method_byte(byte) {
                return Err(self.refuse(at, Violation::InvalidMethod));
            }
        }
        Ok(())
    }

    /// Parses the status line when it is complete.
    fn status_line(&mut self, buf: &[u8], out: &mut ResponseHead) -> Result<bool, Violation> {
        let Some(end) = self.line_end(buf) else {
            self.searched = buf.len();
            let early = buf.get(..STATUS_LINE_EARLY).unwrap_or(buf);
            if !status_line::may_become_one(early) {
                return Err(self.refuse(0, Violation::NoStatusLine));
            }
            return Ok(false);
        };
        let line = buf.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if status_line::parse(line, out).is_none() {
            return Err(self.refuse(0, Violation::NoStatusLine));
        }
        self.step(end + 1);
        self.stage = Stage::Fields;
        Ok(true)
    }

    /// Checks a request's field, and keeps it or leaves it out.
    #[inline]
    fn keep_request_field(
        &mut self,
        buf: &[u8],
        policy: &HeadPolicy,
        out: &mut RequestHead,
        field: Field,
        (spelling, is_clean): (Spelling, bool),
    ) -> Result<(), Violation> {
        let valid = match spelling {
            Spelling::Plain => true,
            Spelling::Underscore => policy.underscores,
            // RFC 9110 §5.1 allows no such names, and different recipients may read them as different texts.
            Spelling::Odd if !field.name.of(buf).is_ascii() => {
                return Err(self.refuse(bad_name_byte(buf, field.name), Violation::InvalidField));
            }
            Spelling::Odd => false,
        };
        let end = field.value.end.max(field.name.end);
        let last = (end as usize).saturating_sub(1);
        if !valid {
            match policy.invalid_fields {
                InvalidFields::Keep => {}
                InvalidFields::Refuse => {
                    let at = bad_name_byte(buf, field.name);
                    return Err(self.refuse(at, Violation::InvalidField));
                }
                InvalidFields::Drop => {
                    if out.ignored.len() < IGNORED_KEPT {
                        out.ignored.push(Span { start: field.name.start, end });
                    }
                    return Ok(());
                }
            }
        }
        if policy.invalid_fields != InvalidFields::Keep && !is_clean && field::has_control(field.value.of(buf)) {
            return Err(self.refuse(last, Violation::InvalidField));
        }
        if out.fields.len() >= policy.fields_max {
            return Err(self.refuse(last, Violation::TooManyFields));
        }
        if let Some(known) = field.known {
            if known.is_single_in_request() && out.seen.contains(known) {
                let violation = match known {
                    Known::Host => Violation::DuplicateHost,
                    _ => Violation::DuplicateField,
                };
                return Err(self.refuse(last, violation));
            }
            out.seen.insert(known);
        }
        out.fields.push(field);
        Ok(())
    }

    /// The position of the LF that ends the current line.
    fn line_end(&self, buf: &[u8]) -> Option<usize> {
        let from = self.searched.max(self.line);
        let rest = buf.get(from..)?;
        let length = word::find(rest, b'\n', SHORT_LINE_MAX).or_else(|| memchr::memchr(b'\n', rest))?;
        Some(from + length)
    }

    #[inline]
    fn step(&mut self, next: usize) {
        self.line = next;
        self.resume = Resume::at(next);
    }

    fn refuse(&mut self, at: usize, violation: Violation) -> Violation {
        self.fault = Span::new(self.line, at.saturating_add(1));
        violation
    }

    fn partial(&self) -> Progress {
        Progress::Partial { line_done: self.stage == Stage::Fields, offset: self.line }
    }
}

fn bad_name_byte(buf: &[u8], name: Span) -> usize {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || *b == b'-';
    name.start as usize + name.of(buf).iter().take_while(|b| plain(b)).count()
}

#[cfg(test)]
mod tests;
