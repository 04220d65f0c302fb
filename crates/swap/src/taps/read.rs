//! Reads the requests in the bytes that a server sends to an origin, and the heads in the bytes that come back.
//!
//! Pure. All bytes go on unchanged, but for one name: if the configuration says `proxy_pass http://app:3000`, the copy
//! says the tap's address instead. A request's head then has the tap's address where the origin expects `app:3000`, and
//! gets that name back. A redirect to `app:3000` gets the tap's address, so that `proxy_redirect default` finds it.

use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::framing::{BodyLength, request_body};
use weir_wire::head::{HeadPolicy, InvalidFields, RequestHead};
use weir_wire::known::Known;
use weir_wire::parse::{Parser, Progress};

use super::cgi::CgiReader;
use super::kept::{HEAD_MAX, KeptBody};
use crate::request::OriginRequest;

/// The fields of an answer that name a place.
const PLACES: &[&[u8]] = &[b"location:", b"refresh:"];

/// The name of the tap, and the name of the origin in its place. Both are empty if no name is exchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TapNames {
    /// As the copy of the configuration says it: `127.0.0.1:40123`.
    pub tap: Vec<u8>,
    /// As the configuration says it: `app:3000`.
    pub origin: Vec<u8>,
}

/// Reads the bytes towards an origin.
#[derive(Debug)]
pub struct RequestReader {
    names: TapNames,
    to: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Before the first byte: what kind of protocol it is, is not known.
    New,
    /// Bytes of a head that is not complete.
    Head(Vec<u8>),
    /// The body of a request.
    Body(Box<OpenBody>),
    /// FastCGI.
    Cgi(Box<CgiReader>),
    /// A protocol that is not read: TLS, HTTP/2, a WebSocket.
    Unread,
}

#[derive(Debug)]
struct OpenBody {
    request: OriginRequest,
    /// The bytes that are still to come. `None`: the body is chunked.
    left: Option<u64>,
    decoder: Decoder,
    kept: KeptBody,
    is_upgrade: bool,
}

impl RequestReader {
    /// A reader of one connection to an origin; `to` is its address as the configuration says it.
    pub fn new(names: TapNames, to: String) -> RequestReader {
        RequestReader { names, to, state: State::New }
    }

    /// Reads bytes. Adds the bytes that go on to `out`, and the complete requests to `found`. True if the head of a
    /// request is among them, so that the head of an answer follows.
    pub fn read(&mut self, mut bytes: &[u8], out: &mut Vec<u8>, found: &mut Vec<OriginRequest>) -> bool {
        let mut has_head = false;
        while !bytes.is_empty() {
            match &mut self.state {
                State::New => {
                    self.state = match bytes.first() {
                        Some(1) => State::Cgi(Box::new(CgiReader::new(self.to.clone()))),
                        Some(b'A'..=b'Z') => State::Head(Vec::new()),
                        _ => State::Unread,
                    };
                }
                State::Head(head) => {
                    head.extend_from_slice(bytes);
                    let head = std::mem::take(head);
                    bytes = &[];
                    has_head |= self.head(head, out, found);
                }
                State::Body(body) => {
                    let used = body.read(bytes);
                    out.extend_from_slice(bytes.get(..used).unwrap_or_default());
                    bytes = bytes.get(used..).unwrap_or_default();
                    self.end_of_body(found);
                }
                State::Cgi(reader) => {
                    reader.read(bytes, found);
                    out.extend_from_slice(bytes);
                    return has_head;
                }
                State::Unread => {
                    out.extend_from_slice(bytes);
                    return has_head;
                }
            }
        }
        has_head
    }

    /// The connection has ended: the bytes of an incomplete head go on.
    pub fn end(&mut self, out: &mut Vec<u8>, found: &mut Vec<OriginRequest>) {
        match std::mem::replace(&mut self.state, State::Unread) {
            State::Head(head) => out.extend_from_slice(&head),
            State::Body(body) => found.push(body.whole()),
            State::New | State::Cgi(_) | State::Unread => {}
        }
    }

    fn head(&mut self, bytes: Vec<u8>, out: &mut Vec<u8>, found: &mut Vec<OriginRequest>) -> bool {
        let policy = HeadPolicy { invalid_fields: InvalidFields::Keep, underscores: true, ..HeadPolicy::default() };
        let mut head = RequestHead::new();
        let is_open = match Parser::new().request(&bytes, &policy, &mut head) {
            Ok(Progress::Done) => false,
            Ok(Progress::Partial { .. }) if bytes.len() < HEAD_MAX => {
                self.state = State::Head(bytes);
                return false;
            }
            Ok(Progress::Partial { .. }) | Err(_) => true,
        };
        let length = if is_open { None } else { request_body(&bytes, &head).ok() };
        let Some(length) = length else {
            self.state = State::Unread;
            out.extend_from_slice(&bytes);
            return true;
        };
        let (text, rest) = bytes.split_at_checked(head.len).unwrap_or((&bytes, &[]));
        out.extend_from_slice(&replaced(text, &self.names.tap, &self.names.origin));
        let own = |bytes: &[u8]| replaced(bytes, &self.names.tap, &self.names.origin);
        let line = [head.method.of(text), head.target.of(text)].join(&b' ');
        let request = OriginRequest {
            to: self.to.clone(),
            line: own(&line),
            version: head.protocol.of(text).to_vec(),
            fields: head.fields.iter().map(|field| (field.name.of(text).to_vec(), own(field.value.of(text)))).collect(),
            body: Vec::new(),
        };
        self.state = State::Body(Box::new(OpenBody {
            request,
            left: match length {
                BodyLength::Chunked => None,
                BodyLength::Exact(left) => Some(left),
                BodyLength::None | BodyLength::UntilClose => Some(0),
            },
            decoder: Decoder::new(),
            kept: KeptBody::default(),
            is_upgrade: head.field(Known::Upgrade).is_some(),
        }));
        self.end_of_body(found);
        self.read(rest, out, found);
        true
    }

    /// If the body is complete, the next request follows.
    fn end_of_body(&mut self, found: &mut Vec<OriginRequest>) {
        let is_done = matches!(&self.state, State::Body(body) if body.is_done());
        if !is_done {
            return;
        }
        if let State::Body(body) = std::mem::replace(&mut self.state, State::Head(Vec::new())) {
            if body.is_upgrade {
                self.state = State::Unread;
            }
            found.push(body.whole());
        }
    }
}

impl OpenBody {
    /// The number of bytes that belong to the body.
    fn read(&mut self, bytes: &[u8]) -> usize {
        if let Some(left) = &mut self.left {
            let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
            *left -= used as u64;
            self.kept.add(bytes.get(..used).unwrap_or_default());
            return used;
        }
        let mut used = 0;
        loop {
            match self.decoder.next(bytes, &mut used) {
                Ok(ChunkEvent::Data { start, end }) => self.kept.add(bytes.get(start..end).unwrap_or_default()),
                Ok(ChunkEvent::NeedMore | ChunkEvent::End) => return used,
                // Nothing more is understood.
                Err(_) => {
                    self.left = Some(u64::MAX);
                    return bytes.len();
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.left.map_or(self.decoder.is_done(), |left| left == 0)
    }

    fn whole(self) -> OriginRequest {
        OriginRequest { body: self.kept.whole(), ..self.request }
    }
}

/// Reads the bytes from an origin.
#[derive(Debug, Default)]
pub struct AnswerReader {
    names: TapNames,
    /// The bytes of a head. `None`: no head is expected.
    head: Option<Vec<u8>>,
}

impl AnswerReader {
    /// A reader of one connection to an origin.
    pub fn new(names: TapNames) -> AnswerReader {
        AnswerReader { names, head: None }
    }

    /// A request went to the origin: a head comes back. No request is sent before the answer to the last one is
    /// complete, so the next bytes are that head.
    pub fn expect_head(&mut self) {
        if !self.names.tap.is_empty() {
            self.head.get_or_insert_default();
        }
    }

    /// Reads bytes, and adds the bytes that go on to `out`.
    pub fn read(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(mut head) = self.head.take() else {
            out.extend_from_slice(bytes);
            return;
        };
        head.extend_from_slice(bytes);
        match memchr::memmem::find(&head, b"\r\n\r\n") {
            None if head.len() < HEAD_MAX
                && head.starts_with(b"HTTP/".get(..head.len().min(5)).unwrap_or_default()) =>
            {
                self.head = Some(head);
            }
            None => out.extend_from_slice(&head),
            Some(end) => {
                let (text, rest) = head.split_at_checked(end + 4).unwrap_or((&head, &[]));
                out.extend_from_slice(&self.head_for_server(text));
                // The final answer follows an interim one.
                let status = text.get(9..12).unwrap_or_default();
                if status.starts_with(b"1") && status != b"101" {
                    self.head = Some(Vec::new());
                }
                self.read(rest, out);
            }
        }
    }

    /// The connection has ended.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        out.extend(self.head.take().unwrap_or_default());
    }

    fn head_for_server(&self, head: &[u8]) -> Vec<u8> {
        let is_place = |line: &[u8]| {
            let has_name = |name: &&[u8]| line.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
            PLACES.iter().any(has_name)
        };
        let line = |line: &[u8]| match is_place(line) {
            true => replaced(line, &self.names.origin, &self.names.tap),
            false => line.to_vec(),
        };
        head.split_inclusive(|byte| *byte == b'\n').flat_map(line).collect()
    }
}

/// The bytes with one name in the place of another. A name ends where a letter, a digit or a port would change it.
pub fn replaced(bytes: &[u8], name: &[u8], with: &[u8]) -> Vec<u8> {
    if name.is_empty() {
        return bytes.to_vec();
    }
    let (mut out, mut from) = (Vec::with_capacity(bytes.len()), 0);
    for at in memchr::memmem::find_iter(bytes, name) {
        let is_of_name =
            |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(byte));
        let (before, after) = (at.checked_sub(1).and_then(|at| bytes.get(at)), bytes.get(at + name.len()));
        if is_of_name(before) || is_of_name(after) {
            continue;
        }
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        out.extend_from_slice(with);
        from = at + name.len();
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::super::kept::BODY_MAX;
    use super::*;
    use proptest::prelude::*;

    fn names() -> TapNames {
        TapNames { tap: b"127.0.0.1:4000".to_vec(), origin: b"app:80".to_vec() }
    }

    const REQUESTS: &[u8] =
        b"GET /a HTTP/1.1\r\nHost: 127.0.0.1:4000\r\nX_y: http://127.0.0.1:4000/x 127.0.0.1:40001\r\n\r\n\
        POST /b?c HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody\
        POST /c HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";

    /// The bytes that go on, and the requests.
    fn read(bytes: &[u8], size: usize) -> (Vec<u8>, Vec<OriginRequest>) {
        let mut reader = RequestReader::new(names(), "app:80".to_owned());
        let (mut out, mut found) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            reader.read(piece, &mut out, &mut found);
        }
        reader.end(&mut out, &mut found);
        (out, found)
    }

    #[test]
    fn requests_are_read_and_get_the_name_of_the_origin() {
        for size in 1..REQUESTS.len() {
            let (out, found) = read(REQUESTS, size);
            let text = String::from_utf8_lossy(&out).into_owned();
            let wanted = String::from_utf8_lossy(REQUESTS).replace("127.0.0.1:4000\r", "app:80\r");
            assert_eq!(text, wanted.replace("127.0.0.1:4000/", "app:80/"), "{size}");
            // The third one has a coding that HTTP/1.0 does not have: not read, but forwarded.
            let lines: Vec<&[u8]> = found.iter().map(|one| one.line.as_slice()).collect();
            assert_eq!(lines, [b"GET /a".as_slice(), b"POST /b?c"]);
            assert_eq!(found.get(1).map(|one| one.body.as_slice()), Some(b"body".as_slice()));
            let first: Vec<_> = found.iter().take(1).flat_map(|one| &one.fields).collect();
            let field = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
            assert_eq!(first, [&field("Host", "app:80"), &field("X_y", "http://app:80/x 127.0.0.1:40001")]);
        }
    }

    #[test]
    fn a_chunked_body_is_kept_without_its_framing_and_a_long_one_with_a_hash() {
        let chunked = b"PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n";
        let (out, found) = read(chunked, 7);
        assert_eq!(out, chunked);
        let bodies: Vec<&[u8]> = found.iter().map(|one| one.body.as_slice()).collect();
        assert_eq!(bodies, [b"abc".as_slice(), b""]);
        let long = |last: u8| {
            let head = format!("PUT /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n", BODY_MAX + 1);
            let bytes = [head.into_bytes(), vec![b'a'; BODY_MAX], vec![last]].concat();
            let (out, mut found) = read(&bytes, 5000);
            assert_eq!(out, bytes);
            found.remove(0).body
        };
        let (one, other) = (long(b'a'), long(b'b'));
        assert!(one != other && one.len() == other.len() && one.len() < BODY_MAX + 60);
    }

    #[test]
    fn other_protocols_go_on_unread() {
        for bytes in [
            b"\x16\x03\x01 hello".as_slice(),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\nGET /no HTTP/1.1\r\n\r\n",
            b"GET /cut HTTP/1.1\r\nHost: 127.0",
            b"\0\0",
        ] {
            let (out, found) = read(bytes, 3);
            assert_eq!(out, bytes);
            assert!(found.iter().all(|one| one.line != b"GET /no"), "{found:?}");
        }
        let large = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'a'; 2 * HEAD_MAX]].concat();
        assert_eq!(read(&large, 4096), (large, Vec::new()));
    }

    fn answered(bytes: &[u8], size: usize) -> String {
        let mut reader = AnswerReader::new(names());
        reader.expect_head();
        let mut out = Vec::new();
        for piece in bytes.chunks(size) {
            reader.read(piece, &mut out);
        }
        reader.end(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_redirect_to_the_origin_is_one_to_the_tap() {
        let answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 x\r\nLOCATION: http://app:80/l\r\nX: app:80\r\n\r\nLocation: app:80";
        let wanted = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 x\r\nLOCATION: http://127.0.0.1:4000/l\r\nX: app:80\r\n\r\nLocation: app:80";
        for size in 1..answer.len() {
            assert_eq!(answered(answer, size), wanted, "{size}");
        }
        assert_eq!(answered(b"old answer\n", 2), "old answer\n");
        assert_eq!(answered(b"HTTP/1.1 200", 2), "HTTP/1.1 200");
    }

    proptest! {
        #[test]
        fn without_a_name_all_bytes_go_on(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..50) {
            let mut reader = RequestReader::new(TapNames::default(), String::new());
            let mut answers = AnswerReader::new(TapNames::default());
            let (mut out, mut back, mut found) = (Vec::new(), Vec::new(), Vec::new());
            for piece in bytes.chunks(size) {
                reader.read(piece, &mut out, &mut found);
                answers.expect_head();
                answers.read(piece, &mut back);
            }
            reader.end(&mut out, &mut found);
            answers.end(&mut back);
            prop_assert_eq!(&out, &bytes);
            prop_assert_eq!(&back, &bytes);
        }
    }
}
