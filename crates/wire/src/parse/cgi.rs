//! The head of a CGI answer (RFC 3875 §6.3): fields without a status line; the field `Status` has the status.
//!
//! As nginx reads it: lines may end with a bare LF; an application of uWSGI or SCGI may send an HTTP status line first;
//! `Location` without `Status` means 302, neither means 200. Stricter than nginx: the status is a final one.

use super::{HEAD_BYTES_MAX, Parser, Progress, STATUS_LINE_EARLY, Stage, status_line};
use crate::head::{ResponseHead, Version};
use crate::known::Known;
use crate::span::Span;
use crate::violation::Violation;

/// The status of an answer that names another place and no status.
const FOUND: u16 = 302;

impl Parser {
    /// Parses the head of a CGI answer; `may_have_status_line` if it may also be one of HTTP. Its version is
    /// [`Version::Http10`]: the connection is not kept for another answer.
    pub fn cgi(
        &mut self,
        buf: &[u8],
        may_have_status_line: bool,
        out: &mut ResponseHead,
    ) -> Result<Progress, Violation> {
        if buf.len() > HEAD_BYTES_MAX {
            return Err(Violation::UpstreamHeadTooLarge);
        }
        if self.stage == Stage::Start {
            out.clear();
            self.stage = if may_have_status_line { Stage::FirstLine } else { Stage::Fields };
        }
        if self.stage == Stage::FirstLine && !self.status_line_or_none(buf, out) {
            return Ok(self.partial());
        }
        let progress = self.response_fields(buf, out)?;
        if progress == Progress::Done {
            self.meaning(buf, out)?;
        }
        Ok(progress)
    }

    /// Reads the first line, if it is a status line; `false` if weir cannot know yet.
    fn status_line_or_none(&mut self, buf: &[u8], out: &mut ResponseHead) -> bool {
        match self.line_end(buf) {
            None => {
                self.searched = buf.len();
                let early = buf.get(..STATUS_LINE_EARLY).unwrap_or(buf);
                if status_line::may_become_one(early) {
                    return false;
                }
            }
            Some(end) => {
                let line = buf.get(..end).unwrap_or_default();
                if status_line::parse(line.strip_suffix(b"\r").unwrap_or(line), out).is_some() {
                    self.step(end + 1);
                }
            }
        }
        self.stage = Stage::Fields;
        true
    }

    /// Finds the status of a complete head.
    fn meaning(&mut self, buf: &[u8], out: &mut ResponseHead) -> Result<(), Violation> {
        out.version = Version::Http10;
        if out.status == 0 {
            match out.field(Known::Status).map(|field| field.value) {
                Some(value) => {
                    let (status, has_reason) =
                        code(value.of(buf)).ok_or_else(|| self.refuse(out.len, Violation::UpstreamStatus))?;
                    out.status = status;
                    if has_reason {
                        out.status_line = value;
                        out.reason = Span { start: value.start + 4, end: value.end };
                    }
                }
                None if out.field(Known::Location).is_some() => out.status = FOUND,
                None => out.status = 200,
            }
        }
        // 101 begins a tunnel. Other interim statuses have no meaning here: no second head follows.
        if out.status < 200 && out.status != 101 {
            return Err(self.refuse(out.len, Violation::UpstreamStatus));
        }
        Ok(())
    }
}

/// The code at the start of a `Status`, and whether a space and a reason follow it.
fn code(value: &[u8]) -> Option<(u16, bool)> {
    let [a @ b'0'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', rest @ ..] = value else { return None };
    let code = [a, b, c].iter().fold(0, |code, digit| code * 10 + u16::from(**digit - b'0'));
    Some((code, matches!(rest, [b' ', _, ..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status, status line, whether a body follows "x".
    fn read(text: &str, may_have_status_line: bool) -> Result<(u16, String, usize), Violation> {
        let (mut parser, mut head) = (Parser::new(), ResponseHead::new());
        match parser.cgi(text.as_bytes(), may_have_status_line, &mut head)? {
            Progress::Done => {
                assert_eq!(text.as_bytes().get(head.len..), Some(&b"body"[..]));
                assert_eq!(head.version, Version::Http10);
                let line = String::from_utf8_lossy(head.status_line.of(text.as_bytes())).into_owned();
                Ok((head.status, line, head.fields.len()))
            }
            Progress::Partial { .. } => Ok((0, String::new(), 0)),
        }
    }

    #[test]
    fn heads_of_applications() {
        let is = |status, line: &str, fields| Ok((status, line.to_owned(), fields));
        for (text, expected) in [
            ("Content-Type: a/b\n\nbody", is(200, "", 1)),
            ("Content-Type: a/b\r\n\r\nbody", is(200, "", 1)),
            ("\nbody", is(200, "", 0)),
            ("Status: 404 Not Here\nX: y\n\nbody", is(404, "404 Not Here", 2)),
            ("Status: 404\n\nbody", is(404, "", 1)),
            ("Status: 404 \n\nbody", is(404, "", 1)),
            ("Status: 404x\n\nbody", is(404, "", 1)),
            ("Location: /x\n\nbody", is(302, "", 1)),
            ("Location: /x\nStatus: 201 Made\n\nbody", is(201, "201 Made", 2)),
            ("Status: 200 a\nStatus: 500 b\n\nbody", is(200, "200 a", 2)),
            // nginx skips such a line where it is not the status line.
            ("HTTP/1.1 404 Gone\nX: y\n\nbody", is(200, "", 1)),
            ("Status: 101 Switch\n\nbody", is(101, "101 Switch", 1)),
            ("Status: 40\n\nbody", Err(Violation::UpstreamStatus)),
            ("Status: none\n\nbody", Err(Violation::UpstreamStatus)),
            ("Status:\n\nbody", Err(Violation::UpstreamStatus)),
            ("Status: 000\n\nbody", Err(Violation::UpstreamStatus)),
            ("Status: 103 Early\n\nbody", Err(Violation::UpstreamStatus)),
            ("a b\n\nbody", Err(Violation::UpstreamInvalidField)),
            ("X: y\n", is(0, "", 0)),
        ] {
            assert_eq!(read(text, false), expected, "{text:?}");
        }
    }

    #[test]
    fn a_status_line_may_come_first() {
        let is = |status, line: &str, fields| Ok((status, line.to_owned(), fields));
        for (text, expected) in [
            ("HTTP/1.1 404 Gone\r\nX: y\r\n\r\nbody", is(404, "404 Gone", 1)),
            ("HTTP/1.0 200 OK\nStatus: 404 x\n\nbody", is(200, "200 OK", 1)),
            ("Status: 404 Gone\nX: y\n\nbody", is(404, "404 Gone", 2)),
            ("HTTPX: y\n\nbody", is(200, "", 1)),
            ("HTTP/1.1 100 Continue\r\n\r\nbody", Err(Violation::UpstreamStatus)),
            ("HTTP/1", is(0, "", 0)),
        ] {
            assert_eq!(read(text, true), expected, "{text:?}");
        }
    }
}
