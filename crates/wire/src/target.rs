//! Normalises request targets, for location matching and for files.
//!
//! It follows nginx's ngx_http_parse_complex_uri: it decodes percent escapes, resolves `.` and `..` segments, merges
//! repeated slashes (if asked), cuts `#` and the text after it, and splits off the arguments at `?`. A target with
//! none of these is used unchanged, without a copy.
//!
//! Invariant: a normalised path begins with the same byte as the target, has no NUL, and never goes above the root.

use std::ops::Range;

use crate::escape::hex_value;
use crate::violation::Violation;

pub use crate::escape::{Unescape, escape_args, escape_html, escape_uri, escape_uri_component, unescape_uri};

/// A normalised target: the places of its path, arguments and extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// Whether the path is in the output buffer; otherwise it is a prefix of
    /// the raw target and nothing was copied.
    pub complex: bool,
    /// Whether the path had a percent escape (nginx: `quoted_uri`).
    pub quoted: bool,
    /// Whether the path has a `+` (nginx: `plus_in_uri`).
    pub plus: bool,
    /// Arguments, as a range of the raw target; `Some` and empty after a `?`
    /// at the end.
    pub args: Option<Range<usize>>,
    /// The text after the last dot of the last segment, as a range of the path.
    pub exten: Option<Range<usize>>,
    path_len: usize,
}

impl Normalised {
    /// The path; `raw` and `out` must be those passed to [`normalise`].
    pub fn path<'a>(&self, raw: &'a [u8], out: &'a [u8]) -> &'a [u8] {
        let from = if self.complex { out } else { raw };
        from.get(..self.path_len).unwrap_or_default()
    }

    /// The arguments without `?`; empty when there are none.
    #[inline]
    pub fn args<'a>(&self, raw: &'a [u8]) -> &'a [u8] {
        let range = self.args.clone().unwrap_or_default();
        raw.get(range).unwrap_or_default()
    }
}

/// Normalises the origin-form part of a target ([`crate::RequestHead::path`]).
///
/// `out` is cleared and written only when `complex`. An empty target and one
/// that begins with `?` get the path `/`. [`Violation::InvalidTarget`] for a
/// broken escape, an escaped NUL, and `..` above the root.
pub fn normalise(raw: &[u8], merge_slashes: bool, out: &mut Vec<u8>) -> Result<Normalised, Violation> {
    out.clear();
    match raw.first() {
        None | Some(b'?') => out.push(b'/'),
        Some(_) => {
            if let Some(clean) = clean(raw) {
                return Ok(clean);
            }
        }
    }
    out.reserve(raw.len());
    Walk { merge_slashes, state: State::Usual, exten: None, quoted: false, plus: false, out }.run(raw)
}

/// Whether a target has only bytes that a URI's path and query may have (RFC 3986 §3.3 and §3.4): no fragment, no
/// byte above 0x7f, none of ``"<>\^`{|}``.
pub fn has_only_uri_bytes(raw: &[u8]) -> bool {
    raw.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?%".contains(byte))
}

/// The parts of the target, if normalising would not change it.
fn clean(raw: &[u8]) -> Option<Normalised> {
    let mut exten = None;
    let mut plus = false;
    let mut after_slash = false;
    let mut path_len = raw.len();
    for (at, &byte) in raw.iter().enumerate() {
        match byte {
            b'/' | b'.' if after_slash => return None,
            b'/' => exten = None,
            b'.' => exten = Some(at + 1),
            b'+' => plus = true,
            b'%' | b'#' => return None,
            b'?' => {
                path_len = at;
                break;
            }
            _ => {}
        }
        after_slash = byte == b'/';
    }
    let args = (path_len < raw.len()).then(|| path_len + 1..raw.len());
    if args.is_some() && memchr::memchr(b'#', raw.get(path_len..)?).is_some() {
        return None;
    }
    Some(Normalised { complex: false, quoted: false, plus, args, exten: range(exten, path_len), path_len })
}

fn range(start: Option<usize>, end: usize) -> Option<Range<usize>> {
    start.filter(|&start| start < end).map(|start| start..end)
}

/// The end of the path written so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Usual,
    /// `/`
    Slash,
    /// `/.`
    Dot,
    /// `/..`
    DotDot,
}

struct Walk<'a> {
    merge_slashes: bool,
    state: State,
    exten: Option<usize>,
    quoted: bool,
    plus: bool,
    out: &'a mut Vec<u8>,
}

impl Walk<'_> {
    fn run(mut self, raw: &[u8]) -> Result<Normalised, Violation> {
        let mut at = 0;
        let mut args = None;
        while let Some(&byte) = raw.get(at) {
            at += 1;
            match byte {
                b'%' => {
                    self.quoted = true;
                    self.escaped(decode(raw.get(at..at + 2))?)?;
                    at += 2;
                }
                b'?' => {
                    let rest = raw.get(at..).unwrap_or_default();
                    let length = memchr::memchr(b'#', rest).unwrap_or(rest.len());
                    args = Some(at..at + length);
                    break;
                }
                b'#' => break,
                _ => self.byte(byte)?,
            }
        }
        self.close_segment()?;
        Ok(Normalised {
            complex: true,
            quoted: self.quoted,
            plus: self.plus,
            args,
            exten: range(self.exten, self.out.len()),
            path_len: self.out.len(),
        })
    }

    /// Adds a decoded byte: bytes that would end the path are plain text if escaped.
    fn escaped(&mut self, byte: u8) -> Result<(), Violation> {
        match byte {
            0 => Err(Violation::InvalidTarget),
            b'%' | b'#' | b'?' => {
                self.state = State::Usual;
                self.out.push(byte);
                Ok(())
            }
            _ => self.byte(byte),
        }
    }

    /// Adds a byte that is neither an escape nor an end.
    #[inline]
    fn byte(&mut self, byte: u8) -> Result<(), Violation> {
        match (byte, self.state) {
            (b'/', State::Usual) => {
                self.exten = None;
                self.state = State::Slash;
                self.out.push(byte);
            }
            (b'/', State::Slash) => {
                if !self.merge_slashes {
                    self.out.push(byte);
                }
            }
            (b'/', State::Dot | State::DotDot) => {
                self.close_segment()?;
                self.state = State::Slash;
            }
            (b'.', State::Usual) => {
                self.out.push(byte);
                self.exten = Some(self.out.len());
            }
            (b'.', State::Slash) => {
                self.state = State::Dot;
                self.out.push(byte);
            }
            (b'.', State::Dot) => {
                self.state = State::DotDot;
                self.out.push(byte);
            }
            (_, _) => {
                self.plus |= byte == b'+';
                self.state = State::Usual;
                self.out.push(byte);
            }
        }
        Ok(())
    }

    /// Removes a last segment of `.` or `..`.
    fn close_segment(&mut self) -> Result<(), Violation> {
        match self.state {
            State::Usual | State::Slash => {}
            State::Dot => {
                self.out.pop();
            }
            State::DotDot => {
                // Removes "/../" and the segment before it, up to the slash that stays.
                let before = self.out.len().saturating_sub(b"/..".len());
                let parent = self
                    .out
                    .get(..before)
                    .and_then(|path| memchr::memrchr(b'/', path))
                    .ok_or(Violation::InvalidTarget)?;
                self.out.truncate(parent + 1);
            }
        }
        Ok(())
    }
}

fn decode(digits: Option<&[u8]>) -> Result<u8, Violation> {
    match digits {
        Some(&[high, low]) => match (hex_value(high), hex_value(low)) {
            (Some(high), Some(low)) => Ok(high << 4 | low),
            _ => Err(Violation::InvalidTarget),
        },
        _ => Err(Violation::InvalidTarget),
    }
}

#[cfg(test)]
mod tests;
