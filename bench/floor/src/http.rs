//! As much of HTTP/1.1 as a relay cannot do without: where a head ends, how long its body is,
//! and the hop-by-hop fields rewritten on the way through.
//!
//! Trusts its peers (wrk and our own origin): no chunked bodies, no limits but `HEAD_MAX`.

/// A head longer than this is refused.
pub const HEAD_MAX: usize = 16 * 1024;

/// A complete head could not be made of the bytes.
pub enum Unfinished {
    /// More bytes may finish it.
    Partial,
    /// Nothing will: too long, or a body this relay does not carry.
    Bad,
}

/// What a relay needs to know of a request.
pub struct Request {
    /// Bytes of the head, the empty line included.
    pub len: usize,
    pub body: u64,
    pub close: bool,
    pub upgrade: bool,
    /// A HEAD request: the answer has no body whatever its Content-Length says.
    pub bodiless: bool,
}

/// How the body of an answer ends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    Exact(u64),
    UntilClose,
}

/// What a relay needs to know of an answer.
pub struct Response {
    pub len: usize,
    pub status: u16,
    pub length: Length,
    /// The sender will close: the connection cannot be pooled.
    pub close: bool,
}

/// Reads a request head and writes it to `out` as the origin shall see it.
pub fn rewrite_request(buf: &[u8], host: &str, out: &mut Vec<u8>) -> Result<Request, Unfinished> {
    let mut lines = Lines::of(buf);
    let line = lines.next().ok_or_else(|| unfinished(buf))?;
    let bodiless = line.starts_with(b"HEAD ");
    let mut request = Request { len: 0, body: 0, close: line.ends_with(b"1.0\r\n"), upgrade: false, bodiless };
    out.extend_from_slice(line);
    out.extend_from_slice(b"Host: ");
    out.extend_from_slice(host.as_bytes());
    out.extend_from_slice(b"\r\n");
    for line in lines.by_ref() {
        if line.len() <= 2 {
            if request.upgrade {
                out.extend_from_slice(b"Connection: upgrade\r\n");
            }
            out.extend_from_slice(b"\r\n");
            request.len = lines.at;
            return Ok(request);
        }
        match Field::of(line) {
            Field::Host | Field::KeepAlive => continue,
            Field::Connection => {
                request.close |= has_token(line, b"close");
                continue;
            }
            Field::Length => request.body = number(line),
            Field::Coding => return Err(Unfinished::Bad),
            Field::Upgrade => request.upgrade = true,
            Field::Other => {}
        }
        out.extend_from_slice(line);
    }
    Err(unfinished(buf))
}

/// Reads an answer's head and writes it to `out` as the client shall see it.
pub fn rewrite_response(buf: &[u8], client_closes: bool, out: &mut Vec<u8>) -> Result<Response, Unfinished> {
    let mut lines = Lines::of(buf);
    let line = lines.next().ok_or_else(|| unfinished(buf))?;
    let status = line.get(9..12).map_or(0, number);
    let mut response = Response { len: 0, status: status as u16, length: Length::UntilClose, close: false };
    out.extend_from_slice(line);
    for line in lines.by_ref() {
        if line.len() <= 2 {
            if matches!(response.status, 101 | 204 | 304) {
                response.length = Length::Exact(0);
            }
            let closes = client_closes || response.length == Length::UntilClose;
            out.extend_from_slice(match (response.status, closes) {
                (101, _) => b"Connection: upgrade\r\n\r\n".as_slice(),
                (_, true) => b"Connection: close\r\n\r\n",
                (_, false) => b"Connection: keep-alive\r\n\r\n",
            });
            response.len = lines.at;
            return Ok(response);
        }
        match Field::of(line) {
            Field::KeepAlive => continue,
            Field::Connection => {
                response.close |= has_token(line, b"close");
                continue;
            }
            Field::Length => response.length = Length::Exact(number(line)),
            Field::Coding => return Err(Unfinished::Bad),
            Field::Host | Field::Upgrade | Field::Other => {}
        }
        out.extend_from_slice(line);
    }
    Err(unfinished(buf))
}

/// The bytes of the head at the start of `buf`, if it is complete.
pub fn head_len(buf: &[u8]) -> Option<usize> {
    let mut lines = Lines::of(buf);
    lines.by_ref().find(|line| line.len() <= 2)?;
    Some(lines.at)
}

/// Whether a complete request head asks to change protocols.
pub fn asks_upgrade(head: &[u8]) -> bool {
    Lines::of(head).any(|line| Field::of(line) == Field::Upgrade)
}

/// For a client: the status of an answer and the bytes it takes with its body, once the head
/// is there. An answer without Content-Length counts as its head alone.
pub fn answer_len(buf: &[u8]) -> Option<(u16, u64)> {
    let head = buf.get(..head_len(buf)?)?;
    let length = Lines::of(head).find(|line| Field::of(line) == Field::Length).map_or(0, number);
    Some((head.get(9..12).map_or(0, number) as u16, head.len() as u64 + length))
}

fn unfinished(buf: &[u8]) -> Unfinished {
    if buf.len() < HEAD_MAX { Unfinished::Partial } else { Unfinished::Bad }
}

/// The complete lines of a buffer, each with its line feed.
struct Lines<'a> {
    buf: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn of(buf: &'a [u8]) -> Self {
        Lines { buf, at: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.buf.get(self.at..)?;
        let end = rest.iter().position(|&b| b == b'\n')? + 1;
        self.at += end;
        rest.get(..end)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Field {
    Host,
    Connection,
    KeepAlive,
    Length,
    Coding,
    Upgrade,
    Other,
}

impl Field {
    /// Tells a field by its name's length first: most lines need no comparison at all.
    fn of(line: &[u8]) -> Field {
        let Some(colon) = line.iter().take(32).position(|&b| b == b':') else {
            return Field::Other;
        };
        let name = line.get(..colon).unwrap_or_default();
        let is = |text: &str| name.eq_ignore_ascii_case(text.as_bytes());
        match colon {
            4 if is("host") => Field::Host,
            7 if is("upgrade") => Field::Upgrade,
            10 if is("connection") => Field::Connection,
            10 if is("keep-alive") => Field::KeepAlive,
            14 if is("content-length") => Field::Length,
            17 if is("transfer-encoding") => Field::Coding,
            _ => Field::Other,
        }
    }
}

fn has_token(line: &[u8], token: &[u8]) -> bool {
    line.windows(token.len()).any(|part| part.eq_ignore_ascii_case(token))
}

/// The digits of a line as one number; everything else is skipped.
fn number(line: &[u8]) -> u64 {
    line.iter()
        .filter(|b| b.is_ascii_digit())
        .fold(0, |n: u64, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_loses_its_hop_by_hop_fields() {
        let raw = b"GET /1k HTTP/1.1\r\nHost: a\r\nConnection: Close\r\nKeep-Alive: 5\r\nX: y\r\n\r\nrest";
        let mut out = Vec::new();
        let Ok(request) = rewrite_request(raw, "o:1", &mut out) else { panic!("complete head refused") };
        assert_eq!(out, b"GET /1k HTTP/1.1\r\nHost: o:1\r\nX: y\r\n\r\n");
        assert_eq!((request.len, request.close, request.upgrade), (raw.len() - 4, true, false));
    }

    #[test]
    fn upgrade_stays_an_upgrade() {
        let raw = b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let mut out = Vec::new();
        let Ok(request) = rewrite_request(raw, "o", &mut out) else { panic!("complete head refused") };
        assert!(request.upgrade && !request.close);
        assert_eq!(out, b"GET / HTTP/1.1\r\nHost: o\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    }

    #[test]
    fn every_prefix_is_partial() {
        let raw = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n";
        for end in 0..raw.len() {
            assert!(matches!(rewrite_response(&raw[..end], false, &mut Vec::new()), Err(Unfinished::Partial)));
        }
        let mut out = Vec::new();
        let Ok(response) = rewrite_response(raw, false, &mut out) else { panic!("complete head refused") };
        assert_eq!((response.len, response.status, response.close), (raw.len(), 200, true));
        assert_eq!(response.length, Length::Exact(12));
        assert_eq!(out, b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: keep-alive\r\n\r\n");
    }

    #[test]
    fn answers_are_measured_with_their_bodies() {
        assert_eq!(answer_len(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nab"), Some((200, 45)));
        assert_eq!(answer_len(b"HTTP/1.1 200 OK\r\nContent-"), None);
    }

    #[test]
    fn chunked_is_refused() {
        let raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(matches!(rewrite_response(raw, false, &mut Vec::new()), Err(Unfinished::Bad)));
    }
}
