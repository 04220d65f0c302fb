//! A request as it was composed for HTTP/1.1 goes out as HTTP/2: one place composes, whatever is spoken.

use std::fmt;
use std::io;

use weir_wire::Known;

use super::stream::Stream;

/// Why a request cannot be sent.
#[derive(Debug)]
pub enum Unsent {
    /// Its connection is gone.
    Io(io::Error),
    /// A variable of it holds what no field may hold.
    Invalid(&'static str),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::Io(error) => error.fmt(f),
            Unsent::Invalid(what) => write!(f, "the request cannot be sent over HTTP/2: {what}"),
        }
    }
}

/// Fields of an HTTP/1.1 connection, which HTTP/2 forbids (RFC 9113 §8.2.2).
const FORBIDDEN: [Known; 7] = [
    Known::Host,
    Known::Connection,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::TransferEncoding,
    Known::Upgrade,
    Known::Http2Settings,
];

/// The line of a request, taken apart.
struct Line<'t> {
    method: &'t [u8],
    target: &'t [u8],
}

impl<'t> Line<'t> {
    fn of(line: &'t [u8]) -> Option<Line<'t>> {
        let space = memchr::memchr(b' ', line)?;
        let (method, rest) = line.split_at(space);
        let target = rest.get(1..)?.strip_suffix(b" HTTP/1.1")?;
        (!method.is_empty() && !target.is_empty()).then_some(Line { method, target })
    }
}

/// The fields of a head behind its line: name and value.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let end = memchr::memmem::find(rest, b"\r\n")?;
        let (line, after) = rest.split_at(end);
        rest = after.get(2..).unwrap_or_default();
        if line.is_empty() {
            return None;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        Some((name, value.get(1..).unwrap_or_default().trim_ascii()))
    })
}

/// Whether no field of the head is one that would break the message (RFC 9113 §8.2.1).
fn is_valid(head: &[u8]) -> bool {
    fields(head).all(|(name, value)| {
        let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':');
        is_name && memchr::memchr3(0, b'\r', b'\n', value).is_none()
    })
}

impl Stream {
    /// Sends a request's head, composed as HTTP/1.1 has it; gives its length as it goes out. `ends` when no body
    /// follows, `length` is the body's where that is known.
    pub fn send_request(&self, text: &[u8], ends: bool, length: Option<u64>) -> Result<usize, Unsent> {
        let end = memchr::memmem::find(text, b"\r\n").unwrap_or(text.len());
        let (line, rest) = text.split_at(end);
        let rest = rest.get(2..).unwrap_or_default();
        let Line { method, target } = Line::of(line).ok_or(Unsent::Invalid("its line is none"))?;
        if !is_valid(rest) || target.iter().any(|byte| byte.is_ascii_control()) {
            return Err(Unsent::Invalid("a byte that no field may hold"));
        }
        if method == b"HEAD"
            && let Some(replies) = self.replies()
        {
            replies.expect_no_body();
        }
        let scheme: &[u8] = if self.session().transport().is_secure() { b"https" } else { b"http" };
        let known = |name: &[u8]| Known::of(name);
        let authority = fields(rest).find(|(name, _)| known(name) == Some(Known::Host)).map(|(_, value)| value);
        let sent = self.send_head(ends, length, |encoder, out| {
            encoder.pseudo(":method", method, out);
            encoder.pseudo(":scheme", scheme, out);
            encoder.pseudo(":path", target, out);
            if let Some(authority) = authority {
                encoder.pseudo(":authority", authority, out);
            }
            for (name, value) in fields(rest) {
                let known = known(name);
                let is_te = known == Some(Known::Te) && !value.eq_ignore_ascii_case(b"trailers");
                if !is_te && !known.is_some_and(|known| FORBIDDEN.contains(&known)) {
                    encoder.field(name, value, known, out);
                }
            }
        });
        sent.map_err(Unsent::Io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_taken_apart() {
        let line = Line::of(b"GET /a b HTTP/1.1").map(|line| (line.method, line.target));
        assert_eq!(line, Some((&b"GET"[..], &b"/a b"[..])));
        assert!(
            Line::of(b"GET / HTTP/1.0").is_none() && Line::of(b"GET").is_none() && Line::of(b"GET  HTTP/1.1").is_none()
        );
        let head = b"Host: a\r\nX-Empty:\r\nX: 1:2 \r\n\r\nbody: no\r\n";
        let found: Vec<_> = fields(head).collect();
        assert_eq!(found, [(&b"Host"[..], &b"a"[..]), (b"X-Empty", b""), (b"X", b"1:2")]);
        assert!(is_valid(head));
        for broken in [&b"X: a\nb\r\n\r\n"[..], b"no colon\r\n\r\n", b": x\r\n\r\n", b"X: \0\r\n\r\n"] {
            assert!(!is_valid(broken), "{broken:?}");
        }
    }
}
