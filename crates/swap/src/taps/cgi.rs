//! Reads the requests in the bytes that a server sends to a FastCGI application.

use super::kept::{HEAD_MAX, KeptBody};
use crate::request::{OriginRequest, SwapField};

/// Bytes of a record before its content.
const HEADER_BYTES: usize = 8;
const BEGIN_REQUEST: u8 = 1;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;

/// Reads the records of one connection. The server sends one request after another.
#[derive(Debug)]
pub(super) struct CgiReader {
    to: String,
    /// A record's header, as far as it has come.
    header: Vec<u8>,
    kind: u8,
    /// Bytes of the record's content that are still to come.
    content: usize,
    /// Bytes of padding that are still to come.
    padding: usize,
    params: Vec<u8>,
    body: KeptBody,
}

impl CgiReader {
    pub(super) fn new(to: String) -> CgiReader {
        CgiReader {
            to,
            header: Vec::new(),
            kind: 0,
            content: 0,
            padding: 0,
            params: Vec::new(),
            body: KeptBody::default(),
        }
    }

    /// Reads bytes, and adds complete requests to `found`.
    pub(super) fn read(&mut self, mut bytes: &[u8], found: &mut Vec<OriginRequest>) {
        while !bytes.is_empty() {
            if self.content > 0 {
                let (now, rest) = cut(bytes, self.content);
                self.content -= now.len();
                match self.kind {
                    PARAMS if self.params.len() < HEAD_MAX => self.params.extend_from_slice(now),
                    STDIN => self.body.add(now),
                    _ => {}
                }
                bytes = rest;
            } else if self.padding > 0 {
                let (now, rest) = cut(bytes, self.padding);
                self.padding -= now.len();
                bytes = rest;
            } else {
                let (now, rest) = cut(bytes, HEADER_BYTES - self.header.len());
                self.header.extend_from_slice(now);
                bytes = rest;
                self.record(found);
            }
        }
    }

    fn record(&mut self, found: &mut Vec<OriginRequest>) {
        let &[_, kind, _, _, high, low, padding, _] = self.header.as_slice() else { return };
        self.header.clear();
        self.kind = kind;
        self.content = usize::from(u16::from_be_bytes([high, low]));
        self.padding = usize::from(padding);
        match kind {
            BEGIN_REQUEST => {
                self.params.clear();
                self.body = KeptBody::default();
            }
            // An empty record ends the body, and with it the request.
            STDIN if self.content == 0 => found.push(self.whole()),
            _ => {}
        }
    }

    fn whole(&mut self) -> OriginRequest {
        let fields = pairs(&std::mem::take(&mut self.params));
        let value = |name: &[u8]| {
            let named = fields.iter().find(|(known, _)| known == name);
            named.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        OriginRequest {
            to: self.to.clone(),
            line: [value(b"REQUEST_METHOD"), value(b"REQUEST_URI")].join(&b' '),
            version: value(b"SERVER_PROTOCOL"),
            body: std::mem::take(&mut self.body).whole(),
            fields,
        }
    }
}

fn cut(bytes: &[u8], most: usize) -> (&[u8], &[u8]) {
    bytes.split_at_checked(most).unwrap_or((bytes, &[]))
}

/// The parameters; a cut pair at the end is left out.
fn pairs(mut bytes: &[u8]) -> Vec<SwapField> {
    let mut found = Vec::new();
    while let Some((name, value, rest)) = pair(bytes) {
        found.push((name.to_vec(), value.to_vec()));
        bytes = rest;
    }
    found
}

fn pair(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, bytes) = length(bytes)?;
    let (value, bytes) = length(bytes)?;
    let (name, bytes) = bytes.split_at_checked(name)?;
    let (value, rest) = bytes.split_at_checked(value)?;
    Some((name, value, rest))
}

/// A length of one byte, or of four bytes with the highest bit set.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [short @ 0..0x80, rest @ ..] => Some((usize::from(*short), rest)),
        [a, b, c, d, rest @ ..] => {
            let length = u32::from_be_bytes([*a & 0x7f, *b, *c, *d]);
            Some((usize::try_from(length).ok()?, rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::fastcgi;

    fn request(body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        fastcgi::push_begin(&mut out, true);
        let at = fastcgi::begin_params(&mut out);
        fastcgi::push_param(&mut out, b"REQUEST_METHOD", b"POST");
        fastcgi::push_param(&mut out, b"REQUEST_URI", b"/x?y");
        fastcgi::push_param(&mut out, b"LONG", &[b'a'; 200]);
        assert!(fastcgi::end_params(&mut out, at).is_ok());
        fastcgi::push_stdin(&mut out, body);
        out.extend_from_slice(&fastcgi::END_OF_STDIN);
        out
    }

    #[test]
    fn two_requests_on_one_connection_are_read_from_any_pieces() {
        let bytes = [request(b"one"), request(b"")].concat();
        for size in 1..bytes.len() {
            let (mut reader, mut found) = (CgiReader::new("u".to_owned()), Vec::new());
            for piece in bytes.chunks(size) {
                reader.read(piece, &mut found);
            }
            let lines: Vec<&[u8]> = found.iter().map(|one| one.line.as_slice()).collect();
            assert_eq!(lines, [b"POST /x?y", b"POST /x?y"]);
            let bodies: Vec<&[u8]> = found.iter().map(|one| one.body.as_slice()).collect();
            assert_eq!(bodies, [b"one".as_slice(), b""]);
            assert_eq!(found.first().map(|one| one.fields.len()), Some(3));
        }
    }

    #[test]
    fn any_bytes_are_read() {
        let (mut reader, mut found) = (CgiReader::new(String::new()), Vec::new());
        for byte in 0..=255_u8 {
            reader.read(&[byte; 300], &mut found);
        }
        assert!(pair(&[0x80, 0, 0]).is_none() && pair(&[0xff; 9]).is_none());
    }
}
