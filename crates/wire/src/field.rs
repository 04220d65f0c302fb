//! Reads one field line from a buffer: the inner loop of both head parsers and of the trailer section.
//!
//! It scans only twice: once to the colon, and once through the value, which finds the end of the value and every
//! forbidden byte. A name in the table needs no other check. A line that is cut off, odd or bad takes a second,
//! slower path.

use crate::known::Known;
use crate::span::{Field, Span};
use crate::word;

/// The result of reading one line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldLine {
    /// A field; `next` is the position of the next line. `is_clean` if its value is known to have no control byte.
    Field { field: Field, spelling: Spelling, is_clean: bool, next: usize },
    /// A line to be skipped (a repeated status line, see [`SectionSender::Origin`]).
    Skipped { next: usize },
    /// The empty line that ends the section.
    End { next: usize },
    /// The line is not complete yet, and nothing is wrong with it so far.
    Need,
    /// The byte at this position is not allowed.
    Bad { at: usize },
}

/// How a name is spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `[0-9A-Za-z-]+`
    Plain,
    /// As plain, and also `_`.
    Underscore,
    /// Another byte above space: nginx calls the header invalid.
    Odd,
}

/// The sender of the section: nginx is more lenient with origins in two cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionSender {
    /// RFC 9112 §2.2: a bare CR is refused.
    Client,
    /// nginx: `\r\r\n` ends a line, and a line starting with `HTTP/` (old IIS
    /// repeats its status line) is skipped.
    Origin,
}

const ODD: u8 = 1;
const UNDERSCORE: u8 = 2;
/// The name ends here, correctly or not.
const STOP: u8 = 4;

static NAME: [u8; 256] = name_classes();

const fn name_classes() -> [u8; 256] {
    let mut table = [ODD; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'-' => 0,
            b'_' => UNDERSCORE,
            0..=0x20 | 0x7f | b':' => STOP,
            _ => ODD,
        };
        byte += 1;
    }
    table
}

/// The progress in a line when the buffer ended in the middle of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Resume {
    /// The next byte to read.
    at: usize,
    /// The classes of the name's bytes so far.
    class: u8,
    /// The end of the name, once it is known.
    name_end: Option<usize>,
}

impl Resume {
    /// At the start of a line.
    #[inline]
    pub(crate) fn at(start: usize) -> Resume {
        Resume { at: start, class: 0, name_end: None }
    }
}

/// Reads the line that begins at `start`, from the position in `resume`.
#[inline]
pub(crate) fn line(buf: &[u8], start: usize, resume: &mut Resume, side: SectionSender) -> FieldLine {
    if resume.at == start
        && let Some(line) = usual(buf, start)
    {
        return line;
    }
    unusual(buf, start, resume, side)
}

/// Longer names (in bytes) are read byte by byte.
const USUAL_NAME_MAX: usize = 64;

/// Reads the kind of line that nearly all lines are: complete, in plain spelling, with nothing to tolerate or to
/// refuse; or the empty line at the end of the section. `None` for any other line.
#[inline(always)] // handing the line over from a call would cost as much as a part of reading it
fn usual(buf: &[u8], start: usize) -> Option<FieldLine> {
    let rest = buf.get(start..)?;
    if rest.starts_with(b"\r\n") {
        return Some(FieldLine::End { next: start + 2 });
    }
    let (name, after) = rest.split_at_checked(word::find(rest, b':', USUAL_NAME_MAX)?)?;
    let known = Known::of(name);
    // A name that was found in the table has plain spelling.
    if known.is_none() && (name.is_empty() || !word::has_only_plain(name, |byte| class(byte) == 0)) {
        return None;
    }
    let value = after.get(1..)?;
    let (end, is_clean) = value_end(value)?;
    if !value.get(end..)?.starts_with(b"\r\n") {
        return None;
    }
    let colon = start + name.len();
    let field = Field { name: Span::new(start, colon), value: trimmed(buf, colon + 1, colon + 1 + end), known };
    Some(FieldLine::Field { field, spelling: Spelling::Plain, is_clean, next: colon + 1 + end + 2 })
}

/// Values up to this many bytes are searched here: a call of `memchr` would cost more than the search.
const SHORT_VALUE_MAX: usize = 48;

/// The position of the first LF, CR or NUL, and whether no other control byte is known to be before it.
#[inline(always)] // as above
fn value_end(value: &[u8]) -> Option<(usize, bool)> {
    match word::find_control(value, SHORT_VALUE_MAX) {
        Some(at) if value.get(at) == Some(&b'\r') => Some((at, true)),
        Some(_) | None => memchr::memchr3(b'\n', b'\r', 0, value).map(|at| (at, false)),
    }
}

/// The class of a byte in a name: 0 for the bytes of a plain spelling.
#[inline]
fn class(byte: u8) -> u8 {
    NAME.get(byte as usize).copied().unwrap_or(STOP)
}

/// As `line`, byte by byte, for every kind of line.
fn unusual(buf: &[u8], start: usize, resume: &mut Resume, side: SectionSender) -> FieldLine {
    let name_end = match resume.name_end {
        Some(end) => end,
        None => match name(buf, start, resume, side) {
            Ok(end) => end,
            Err(line) => return line,
        },
    };
    let (value, next) = match value(buf, resume, side) {
        Value::Found { value, next } => (value, next),
        Value::Need => return FieldLine::Need,
        Value::Bad { at } => return FieldLine::Bad { at },
    };
    let value_start = match buf.get(name_end) {
        Some(b':') => name_end + 1,
        _ => name_end,
    };
    let name = Span::new(start, name_end);
    let known = Known::of(name.of(buf));
    FieldLine::Field {
        field: Field { name, value: trimmed(buf, value_start, value), known },
        spelling: match resume.class {
            0 => Spelling::Plain,
            UNDERSCORE => Spelling::Underscore,
            _ => Spelling::Odd,
        },
        is_clean: false,
        next,
    }
}

/// Reads a name up to the byte that ends it; `Err` if the line has no name, or is not complete yet.
#[inline]
fn name(buf: &[u8], start: usize, resume: &mut Resume, side: SectionSender) -> Result<usize, FieldLine> {
    let mut at = resume.at;
    let mut class = resume.class;
    let stop = loop {
        let Some(&byte) = buf.get(at) else {
            *resume = Resume { at, class, name_end: None };
            return Err(FieldLine::Need);
        };
        let found = NAME[byte as usize];
        if found & STOP != 0 {
            break byte;
        }
        class |= found;
        at += 1;
    };
    if at == start {
        return Err(no_name(buf, start, stop));
    }
    if side == SectionSender::Origin && buf.get(start..start + 5) == Some(b"HTTP/") {
        return Err(skip(buf, at, resume));
    }
    resume.at = match stop {
        b':' => at + 1,
        // nginx: a line without a colon is a field with an empty value. From a client it is not a field line (RFC
        // 9112 §5): different servers read it differently.
        b'\r' | b'\n' if side == SectionSender::Origin => at,
        _ => return Err(FieldLine::Bad { at }),
    };
    resume.class = class;
    resume.name_end = Some(at);
    Ok(at)
}

fn skip(buf: &[u8], from: usize, resume: &mut Resume) -> FieldLine {
    match memchr::memchr(b'\n', buf.get(from..).unwrap_or_default()) {
        Some(length) => FieldLine::Skipped { next: from + length + 1 },
        None => {
            resume.at = buf.len();
            FieldLine::Need
        }
    }
}

/// A line whose first byte ends a name: the end of the section, or a fold.
fn no_name(buf: &[u8], start: usize, first: u8) -> FieldLine {
    match (first, buf.get(start + 1)) {
        (b'\n', _) => FieldLine::End { next: start + 1 },
        (b'\r', Some(b'\n')) => FieldLine::End { next: start + 2 },
        (b'\r', None) => FieldLine::Need,
        (_, _) => FieldLine::Bad { at: start },
    }
}

enum Value {
    /// The value ends before this byte; the line ends before `next`.
    Found {
        value: usize,
        next: usize,
    },
    Need,
    Bad {
        at: usize,
    },
}

/// Finds the end of a value.
#[inline]
fn value(buf: &[u8], resume: &mut Resume, side: SectionSender) -> Value {
    let rest = buf.get(resume.at..).unwrap_or_default();
    let Some(length) = memchr::memchr3(b'\n', b'\r', 0, rest) else {
        resume.at = buf.len();
        return Value::Need;
    };
    let value = resume.at + length;
    let mut at = value;
    loop {
        match (buf.get(at), buf.get(at + 1)) {
            (Some(b'\n'), _) => break,
            (Some(b'\r'), Some(b'\n')) => {
                at += 1;
                break;
            }
            (Some(b'\r'), Some(b'\r')) if side == SectionSender::Origin => at += 1,
            (Some(b'\r'), None) => {
                resume.at = value;
                return Value::Need;
            }
            (_, _) => return Value::Bad { at },
        }
    }
    Value::Found { value, next: at + 1 }
}

/// `start..end` without surrounding OWS.
#[inline]
fn trimmed(buf: &[u8], start: usize, end: usize) -> Span {
    match buf.get(start..end) {
        Some([b' ', first, .., last]) if !is_space(*first) && !is_space(*last) => Span::new(start + 1, end),
        _ => trimmed_by_byte(buf, start, end),
    }
}

/// As `trimmed`, for any space around the value.
fn trimmed_by_byte(buf: &[u8], mut start: usize, mut end: usize) -> Span {
    while start < end && buf.get(start).copied().is_some_and(is_space) {
        start += 1;
    }
    while start < end && buf.get(end - 1).copied().is_some_and(is_space) {
        end -= 1;
    }
    Span::new(start, end)
}

/// RFC 9110 §5.6.3: OWS.
#[inline]
pub(crate) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// RFC 9110 §5.6.2: a byte of a token.
pub(crate) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether a value has a control byte other than a tab (RFC 9110 §5.5).
#[inline]
pub(crate) fn has_control(value: &[u8]) -> bool {
    // The words leave only values with a tab, and very short ones, for the second look.
    !word::none_is_control(value) && value.iter().any(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f)
}

/// `text` without surrounding OWS.
pub(crate) fn trim(text: &[u8]) -> &[u8] {
    let lead = text.iter().take_while(|&&b| is_space(b)).count();
    let text = text.get(lead..).unwrap_or_default();
    let tail = text.iter().rev().take_while(|&&b| is_space(b)).count();
    text.get(..text.len() - tail).unwrap_or_default()
}
