//! Properties that must be true for all inputs, as functions that panic if one is not.
//!
//! Shared by the bounded mutation test (`tests/mutate.rs`, stable, every CI run) and the libFuzzer targets (`fuzz/`,
//! nightly, by hand).

use weir_mutate::splits;
use weir_wire::chunked::{ChunkEvent, Decoder};
use weir_wire::client_hello::{self, Opening};
use weir_wire::encode;
use weir_wire::parse::IGNORED_KEPT;
use weir_wire::proxy_protocol::{self, Parsed as Read};
use weir_wire::target::{Unescape, escape_uri, normalise, unescape_uri};
use weir_wire::websocket::{self, FrameSender, Messages, Opcode, WebSocketEvent};
use weir_wire::{
    BodyLength, ConnectionTokens, Field, HeadPolicy, InvalidFields, LastHost, Parser, Progress, RequestHead,
    ResponseHead, Span, Version, Violation, fastcgi, keeps_alive, memcached, request_body, request_host,
    request_method, response_body,
};

/// Longer inputs are not read byte by byte.
const EVERY_SPLIT_BYTES_MAX: usize = 96;

/// A request head: a split at any place gives the same result, and the forwarded form has only one reading.
pub fn request_head(data: &[u8]) {
    let policies =
        [HeadPolicy::default(), HeadPolicy { invalid_fields: InvalidFields::Keep, underscores: true, fields_max: 8 }];
    for policy in &policies {
        let whole = parse_request(&[data], policy);
        for split in splits(data.len()) {
            let parts = [data.get(..split).unwrap_or_default(), data];
            assert_eq!(parse_request(&parts, policy), whole, "split at {split}");
        }
        let bytes: Vec<&[u8]> = (0..=data.len()).filter_map(|end| data.get(..end)).collect();
        if data.len() <= EVERY_SPLIT_BYTES_MAX {
            assert_eq!(parse_request(&bytes, policy), whole, "byte by byte");
        }
        if let Ok((Progress::Done, head)) = whole {
            sound_request(data, policy, &head);
        }
    }
}

/// A client's first TLS message: more bytes do not change a verdict, and the names are parts of the message.
pub fn client_hello(data: &[u8]) {
    let whole = client_hello::read(data);
    for split in splits(data.len()) {
        let early = client_hello::read(data.get(..split).unwrap_or_default());
        assert!(early == Opening::Partial || early == whole, "split at {split}");
    }
    if let Opening::Hello(found) = whole {
        assert!(found.host.len() + found.protocols.len() <= data.len());
    }
}

/// A PROXY protocol header, in the same way; a header with addresses reads the same after weir writes it again.
pub fn proxy_protocol(data: &[u8]) {
    let whole = proxy_protocol::parse(data);
    for split in splits(data.len()) {
        let early = proxy_protocol::parse(data.get(..split).unwrap_or_default());
        assert!(early == Ok(Read::Partial) || early == whole, "split at {split}");
    }
    let Ok(Read::Done { length, ends }) = whole else { return };
    assert!(length <= data.len());
    let Some(ends) = ends else { return };
    for name in ["alpn", "ssl", "ssl_cn", "ssl_verify", "0x05"] {
        let mut value = Vec::new();
        proxy_protocol::tlv(ends.tlvs.of(data), name, &mut value);
        assert!(value.len() <= data.len().max(10));
    }
    if ends.source.is_ipv4() != ends.destination.is_ipv4() {
        return;
    }
    for write in [proxy_protocol::write_text, proxy_protocol::write_binary] {
        let mut out = Vec::new();
        write(Some((ends.source, ends.destination)), &mut out);
        let Ok(Read::Done { ends: Some(again), .. }) = proxy_protocol::parse(&out) else {
            panic!("written as {}", out.escape_ascii());
        };
        assert_eq!((again.source, again.destination), (ends.source, ends.destination));
    }
}

/// A response head, in the same way.
pub fn response_head(data: &[u8]) {
    let whole = parse_response(&[data]);
    for split in splits(data.len()) {
        let parts = [data.get(..split).unwrap_or_default(), data];
        assert_eq!(parse_response(&parts), whole, "split at {split}");
    }
    let Ok((Progress::Done, head)) = whole else {
        return;
    };
    assert!(head.len <= data.len() && head.status <= 999);
    sound_fields(data, &head.fields);
    assert!(!head.reason.of(data).contains(&b'\n'));
    for method in [&b"GET"[..], b"HEAD", b"CONNECT"] {
        if response_body(data, &head, method) == Ok(BodyLength::Chunked) {
            assert!(head.field(weir_wire::Known::ContentLength).is_none());
        }
    }
    let mut out = Vec::new();
    encode::push_status_line(&mut out, head.status_line.of(data));
    push_fields(&mut out, data, &head.fields);
    let Ok((Progress::Done, again)) = parse_response(&[&out]) else {
        panic!("what was accepted is refused when written anew");
    };
    assert_eq!(response_body(&out, &again, b"GET"), response_body(data, &head, b"GET"));
}

/// WebSocket frames: a split at any place gives the same result, and the messages, written anew, are read as the same
/// messages.
pub fn websocket(data: &[u8]) {
    for from in [FrameSender::Client, FrameSender::Server] {
        for compresses in [false, true] {
            let read = |pieces: &[&[u8]]| read_frames(pieces, from, compresses);
            let whole = read(&[data]);
            for split in splits(data.len()) {
                let (head, tail) = data.split_at(split);
                assert_eq!(read(&[head, tail]), whole, "split at {split}");
            }
            let bytes: Vec<&[u8]> = data.chunks(1).collect();
            assert_eq!(read(&bytes), whole, "byte by byte");
            let (events, again) = (&whole.0, send_anew(&whole.0, from));
            assert_eq!(read(&[&again]), (events.clone(), None), "sent anew");
        }
    }
}

/// The longest message read by [`websocket`].
const MESSAGE_BYTES_MAX: usize = 300;

/// Opcode, whether it is compressed, payload.
type Understood = (Opcode, bool, Vec<u8>);

fn read_frames(
    pieces: &[&[u8]],
    from: FrameSender,
    compresses: bool,
) -> (Vec<Understood>, Option<weir_wire::websocket::Violation>) {
    let mut messages = Messages::new(from, compresses, MESSAGE_BYTES_MAX);
    let mut events = Vec::new();
    for piece in pieces {
        let mut at = 0;
        loop {
            let before = at;
            let event = match messages.next(piece.get(at..).unwrap_or_default(), &mut at) {
                Ok(WebSocketEvent::NeedMore) => break,
                Ok(event) => event,
                Err(violation) => return (events, Some(violation)),
            };
            assert!(at > before && at <= piece.len());
            events.push(match event {
                WebSocketEvent::Message { is_text, is_compressed, payload } => {
                    assert!(payload.len() <= MESSAGE_BYTES_MAX);
                    assert!(!is_text || is_compressed || websocket::check_text(payload).is_ok());
                    (if is_text { Opcode::Text } else { Opcode::Binary }, is_compressed, payload.to_vec())
                }
                WebSocketEvent::Ping(payload) => (Opcode::Ping, false, payload.to_vec()),
                WebSocketEvent::Pong(payload) => (Opcode::Pong, false, payload.to_vec()),
                WebSocketEvent::Close(said) => {
                    let payload = said.map(|(code, reason)| websocket::close_payload(code, reason));
                    (Opcode::Close, false, payload.unwrap_or_default())
                }
                WebSocketEvent::NeedMore => break,
            });
        }
        assert_eq!(at, piece.len(), "input is used up before more is asked for");
    }
    (events, None)
}

fn send_anew(events: &[Understood], from: FrameSender) -> Vec<u8> {
    let mut out = Vec::new();
    for (opcode, is_compressed, payload) in events {
        match from {
            FrameSender::Server => websocket::push_frame(&mut out, *opcode, *is_compressed, payload),
            FrameSender::Client => {
                websocket::push_masked_frame(&mut out, *opcode, *is_compressed, [7, 0, 255, 1], payload)
            }
        }
    }
    out
}

/// A chunked body: a split at any place gives the same result, and encoded anew it has the same payload.
pub fn chunked(data: &[u8]) {
    let whole = decode(Decoder::new(), &[data]);
    let strict = decode(Decoder::of_client(), &[data]);
    if let Ok(Some(body)) = &strict {
        // The decoder for clients is stricter than the one for origins, but never gives another result.
        assert!(matches!(&whole, Ok(Some(lenient)) if lenient == body), "{whole:?}");
    }
    for split in splits(data.len()) {
        let (head, tail) = data.split_at(split);
        assert_eq!(decode(Decoder::new(), &[head, tail]), whole, "split at {split}");
        assert_eq!(decode(Decoder::of_client(), &[head, tail]), strict, "a client's, split at {split}");
    }
    if data.len() <= EVERY_SPLIT_BYTES_MAX {
        let bytes: Vec<&[u8]> = data.chunks(1).collect();
        assert_eq!(decode(Decoder::new(), &bytes), whole, "byte by byte");
        assert_eq!(decode(Decoder::of_client(), &bytes), strict, "a client's, byte by byte");
    }
    let Ok(Some(body)) = whole else { return };
    let mut out = Vec::new();
    for chunk in body.payload.chunks(7) {
        let mut space = [0; encode::CHUNK_HEAD_BYTES];
        out.extend_from_slice(encode::chunk_head(chunk.len() as u64, &mut space));
        out.extend_from_slice(chunk);
        out.extend_from_slice(encode::CRLF);
    }
    out.extend_from_slice(encode::LAST_CHUNK);
    match decode(Decoder::of_client(), &[&out]) {
        Ok(Some(again)) => {
            assert_eq!(again.payload, body.payload);
            assert_eq!(again.consumed, out.len());
        }
        other => panic!("written anew: {other:?}"),
    }
}

/// A target: the normalised path is clean, and normalising its escaped form gives the same path.
pub fn target(data: &[u8]) {
    for merge_slashes in [true, false] {
        let mut out = Vec::new();
        let Ok(normalised) = normalise(data, merge_slashes, &mut out) else {
            continue;
        };
        let path = normalised.path(data, &out).to_vec();
        assert!(normalised.args(data).len() <= data.len());
        if let Some(exten) = &normalised.exten {
            assert!(path.get(exten.clone()).is_some_and(|e| !e.contains(&b'/')));
        }
        if !matches!(data.first(), None | Some(b'/' | b'?')) {
            continue;
        }
        assert_eq!(path.first(), Some(&b'/'));
        for (at, segment) in path.split(|&b| b == b'/').enumerate().skip(1) {
            assert!(segment != b".." && segment != b".", "segment {at}");
        }
        assert!(!(merge_slashes && path.windows(2).any(|pair| pair == b"//")));
        if path.contains(&0) {
            assert!(data.contains(&0), "an escaped NUL was decoded");
            continue;
        }
        let mut escaped = Vec::new();
        escape_uri(&path, &mut escaped);
        let mut again = Vec::new();
        let normalised = normalise(&escaped, merge_slashes, &mut again);
        let normalised = normalised.unwrap_or_else(|v| panic!("{v} of a clean path"));
        assert_eq!(normalised.path(&escaped, &again), path);
        let mut unescaped = Vec::new();
        unescape_uri(&escaped, Unescape::All, &mut unescaped);
        assert_eq!(unescaped, path);
    }
}

/// FastCGI's records: a split at any place gives the same bytes, and the records of a body, written anew, hold it.
pub fn fastcgi(data: &[u8]) {
    let whole = read_records(&[data]);
    for split in splits(data.len()) {
        let (head, tail) = data.split_at(split);
        assert_eq!(read_records(&[head, tail]), whole, "split at {split}");
    }
    if data.len() <= EVERY_SPLIT_BYTES_MAX {
        let bytes: Vec<&[u8]> = data.chunks(1).collect();
        assert_eq!(read_records(&bytes), whole, "byte by byte");
    }
    let mut out = Vec::new();
    fastcgi::push_stdin(&mut out, data);
    assert!(out.len() <= fastcgi::stdin_bytes(data.len()) && out.len().is_multiple_of(8));
    // An application's output has the same form under another type.
    let mut at = 0;
    while let Some([_, kind, _, _, high, low, padding, _]) = out.get_mut(at..at + fastcgi::HEADER_BYTES) {
        *kind = 6;
        at += fastcgi::HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low])) + usize::from(*padding);
    }
    let again = read_records(&[&out]);
    assert_eq!((again.stdout.as_slice(), again.closed, again.end), (data, 0, Ok(None)));
}

/// The answer in some records.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// How often standard output was closed.
    closed: usize,
    /// Bytes after the end of the request, if it has come; or the fault.
    end: Result<Option<usize>, fastcgi::FastCgiFault>,
}

fn read_records(parts: &[&[u8]]) -> Said {
    let mut said = Said { stdout: Vec::new(), stderr: Vec::new(), closed: 0, end: Ok(None) };
    let mut decoder = fastcgi::FastCgiDecoder::new();
    let mut left: usize = parts.iter().map(|part| part.len()).sum();
    for part in parts {
        let mut at = 0;
        loop {
            let before = at;
            match decoder.next(part, &mut at) {
                Ok(fastcgi::FastCgiEvent::Stdout { start, end }) => {
                    assert!(before <= start && start < end && end == at);
                    said.stdout.extend_from_slice(part.get(start..end).unwrap_or_default());
                }
                Ok(fastcgi::FastCgiEvent::Stderr { start, end }) => {
                    assert!(before <= start && start < end && end == at);
                    said.stderr.extend_from_slice(part.get(start..end).unwrap_or_default());
                }
                Ok(fastcgi::FastCgiEvent::Closed) => said.closed += 1,
                Ok(fastcgi::FastCgiEvent::End) => {
                    said.end = Ok(Some(left - at));
                    return said;
                }
                Ok(fastcgi::FastCgiEvent::NeedMore) => {
                    assert_eq!(at, part.len());
                    break;
                }
                Err(fault) => {
                    said.end = Err(fault);
                    return said;
                }
            }
        }
        left -= part.len();
    }
    said
}

/// The head of a CGI answer: a split at any place gives the same result, and a head that was accepted makes sense.
pub fn cgi_head(data: &[u8]) {
    for may_have_status_line in [false, true] {
        let whole = parse_cgi(&[data], may_have_status_line);
        for split in splits(data.len()) {
            let parts = [data.get(..split).unwrap_or_default(), data];
            assert_eq!(parse_cgi(&parts, may_have_status_line), whole, "split at {split}");
        }
        let Ok((Progress::Done, head)) = whole else { continue };
        assert!(head.len <= data.len() && (head.status == 101 || (200..=999).contains(&head.status)));
        assert_eq!(head.version, Version::Http10);
        sound_fields(data, &head.fields);
        let line = head.status_line.of(data);
        assert!(line.is_empty() || line.starts_with(head.status.to_string().as_bytes()));
        assert!(!line.contains(&b'\n'));
    }
}

fn parse_cgi(parts: &[&[u8]], may_have_status_line: bool) -> Parsed<ResponseHead> {
    let (mut parser, mut head) = (Parser::new(), ResponseHead::new());
    let mut last = Progress::Partial { line_done: false, offset: 0 };
    for part in parts {
        last = parser.cgi(part, may_have_status_line, &mut head)?;
    }
    Ok((last, head))
}

/// memcached's answers: a split at any place gives the same value, and a key never ends its line.
pub fn memcached(data: &[u8]) {
    let mut key = Vec::new();
    memcached::push_key(&mut key, data);
    assert!(!key.iter().any(|byte| *byte <= b' '));
    let mut out = Vec::new();
    memcached::push_get(&mut out, &key);
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    let (line, rest) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (data.get(..end).unwrap_or_default(), data.get(end + 1..).unwrap_or_default()),
        None => (data, &[][..]),
    };
    let Ok(memcached::Answer::Value { length, .. }) = memcached::answer(line, b"k", true) else { return };
    let read = |parts: &[&[u8]]| {
        let (mut value, mut got) = (memcached::Value::new(length), Vec::new());
        for part in parts {
            let (count, progress) = value.take(part);
            got.extend_from_slice(part.get(..count).unwrap_or_default());
            if progress != memcached::MemcachedProgress::NeedMore {
                return (got, progress == memcached::MemcachedProgress::Done);
            }
        }
        (got, false)
    };
    let whole = read(&[rest]);
    assert!(whole.0.len() as u64 <= length && rest.starts_with(&whole.0));
    for split in splits(rest.len()) {
        let (head, tail) = rest.split_at(split);
        // A complete value whose trailer is followed by other bytes is told from a clean one only in one piece.
        if head.len() as u64 != length + memcached::TRAILER.len() as u64 {
            assert_eq!(read(&[head, tail]).0, whole.0, "split at {split}");
        }
    }
}

type Parsed<Head> = Result<(Progress, Head), Violation>;

/// Parses a buffer that grows from one part to the next.
fn parse_request(parts: &[&[u8]], policy: &HeadPolicy) -> Parsed<RequestHead> {
    let (mut parser, mut head) = (Parser::new(), RequestHead::new());
    let mut last = Progress::Partial { line_done: false, offset: 0 };
    for part in parts {
        last = parser.request(part, policy, &mut head)?;
    }
    Ok((last, head))
}

fn parse_response(parts: &[&[u8]]) -> Parsed<ResponseHead> {
    let (mut parser, mut head) = (Parser::new(), ResponseHead::new());
    let mut last = Progress::Partial { line_done: false, offset: 0 };
    for part in parts {
        last = parser.response(part, &mut head)?;
    }
    Ok((last, head))
}

fn sound_fields(data: &[u8], fields: &[Field]) {
    for field in fields {
        let (name, value) = (field.name.of(data), field.value.of(data));
        assert!(!name.is_empty() && name.iter().all(|&b| b > b' ' && b != b':' && b != 0x7f));
        assert!(!value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)));
        assert_eq!(value, value.trim_ascii_spaces());
    }
}

trait TrimSpaces {
    fn trim_ascii_spaces(&self) -> &[u8];
}

impl TrimSpaces for [u8] {
    fn trim_ascii_spaces(&self) -> &[u8] {
        let is_text = |b: &u8| !matches!(b, b' ' | b'\t');
        let start = self.iter().position(is_text).unwrap_or(0);
        let end = self.iter().rposition(is_text).map_or(start, |last| last + 1);
        self.get(start..end).unwrap_or_default()
    }
}

fn sound_request(data: &[u8], policy: &HeadPolicy, head: &RequestHead) {
    assert!(head.len <= data.len() && head.fields.len() <= policy.fields_max);
    assert!(head.ignored.len() <= IGNORED_KEPT);
    sound_fields(data, &head.fields);
    let bytes_of = |span: Span| span.of(data);
    let text = [head.method, head.target, head.path, head.protocol].map(bytes_of).concat();
    assert!(text.iter().all(|&b| b > b' ' && b != 0x7f));
    let tokens = ConnectionTokens::of(data, &head.fields);
    let _ = keeps_alive(head.version, tokens);
    if let Ok(Some(host)) = request_host(data, head, &mut LastHost::default()) {
        let name = host.name.of(data);
        assert!(!name.is_empty() && name.iter().all(|&b| b > b' ' && b != b'/' && b != b'@'));
    }
    let body = request_body(data, head);
    if let Ok(length) = body {
        let _ = request_method(data, head, length, true);
        assert!(length != BodyLength::UntilClose);
    }
    if head.version == Version::Http09 {
        return;
    }
    let mut out = Vec::new();
    let protocol = head.protocol.of(data);
    encode::push_request_line(&mut out, head.method.of(data), head.target.of(data), protocol);
    push_fields(&mut out, data, &head.fields);
    out.extend_from_slice(b"rest");
    let Ok((Progress::Done, again)) = parse_request(&[&out], policy) else {
        panic!("what was accepted is refused when written anew");
    };
    assert_eq!(out.get(again.len..), Some(&b"rest"[..]));
    assert_eq!(again.fields.len(), head.fields.len());
    assert_eq!(request_body(&out, &again), body);
    let name = |buf, head: &RequestHead| {
        request_host(buf, head, &mut LastHost::default()).map(|host| host.map(|h| (h.name.of(buf).to_vec(), h.port)))
    };
    assert_eq!(name(&out, &again), name(data, head));
}

fn push_fields(out: &mut Vec<u8>, data: &[u8], fields: &[Field]) {
    for field in fields {
        encode::push_field(out, field.name.of(data), field.value.of(data));
    }
    out.extend_from_slice(encode::CRLF);
}

#[derive(Debug, PartialEq, Eq)]
struct Body {
    payload: Vec<u8>,
    consumed: usize,
    trailers: Vec<u8>,
}

/// Decodes a body that arrives in parts; `None` when it is not complete.
fn decode(mut decoder: Decoder, parts: &[&[u8]]) -> Result<Option<Body>, Violation> {
    let mut payload = Vec::new();
    let mut consumed = 0;
    for part in parts {
        let mut pos = 0;
        loop {
            match decoder.next(part, &mut pos)? {
                ChunkEvent::Data { start, end } => {
                    assert!(start < end && end == pos);
                    payload.extend_from_slice(part.get(start..end).unwrap_or_default());
                }
                ChunkEvent::NeedMore => {
                    assert_eq!(pos, part.len());
                    break;
                }
                ChunkEvent::End => break,
            }
        }
        consumed += pos;
    }
    if !decoder.is_done() {
        return Ok(None);
    }
    let (bytes, fields) = decoder.trailers();
    sound_fields(bytes, fields);
    let mut trailers = Vec::new();
    push_fields(&mut trailers, bytes, fields);
    Ok(Some(Body { payload, consumed, trailers }))
}
