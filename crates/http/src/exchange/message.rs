//! A request as received, and the tries and answers of upstreams.

use std::cell::Cell;
use std::rc::Rc;

use weir_meter::live::cells::Why;
use weir_net::{Instant, Lease, clock};
use weir_wire::fields::Fields;
use weir_wire::{
    BodyLength, ConnectionTokens, Field, Known, LastHost, Parser, RequestHead, ResponseHead, Span, Version,
};

/// The request as received.
#[derive(Default)]
pub struct Request {
    /// The bytes read so far; the head is their beginning.
    pub bytes: Vec<u8>,
    /// Where the parts of the head are in `bytes`.
    pub head: RequestHead,
    /// Reads heads, over several reads if needed.
    pub parser: Parser,
    /// When its first byte arrived.
    pub started: Option<Instant>,
    /// The tokens of its `Connection` field.
    pub tokens: ConnectionTokens,
    /// Bytes of `bytes` already used: the head, then body bytes taken.
    pub used: usize,
    /// How long its body is.
    pub length: Option<BodyLength>,
    /// `Host` without port, lower case; empty if the request has none.
    pub host: Vec<u8>,
    /// The port in `Host`.
    pub port: Option<u16>,
    /// The host of the request before it in this memory.
    pub last_host: LastHost,
    /// Its target may have a fragment (`#`).
    pub may_have_fragment: bool,
    /// Length of its head on the wire, if that differs from the length in `bytes` (HTTP/2); else 0.
    pub sent: usize,
    /// Its stream did not end with its head: a body of unknown length may follow.
    pub is_open_ended: bool,
    /// A directive changed its fields: its bytes are not its head any more.
    pub is_changed: bool,
    /// It arrived together with the request before it.
    pub pipelined: bool,
    /// The method that replaces the client's method after `error_page` or for a subrequest.
    pub method_override: Option<&'static [u8]>,
    /// weir sends the client's request once more, for an answer that its client does not get as such.
    pub is_copy: bool,
    /// The number of its client, and of the coin that gave it: it is asked for several times, and needs the fields as they came.
    pub client_number: Cell<Option<(u64, u64)>>,
}

impl Request {
    /// Resets everything but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.used = 0;
        self.length = None;
        self.host.clear();
        self.port = None;
        self.may_have_fragment = false;
        self.sent = 0;
        self.is_open_ended = false;
        self.is_changed = false;
        self.pipelined = false;
        self.method_override = None;
        self.is_copy = false;
        self.client_number.set(None);
        self.head.clear();
        self.parser.reset();
        self.started = None;
        self.tokens = ConnectionTokens::default();
    }

    /// Removes the fields that the client's `Connection` names, so that variables, the cache and origins see the same
    /// request.
    #[inline]
    pub fn leave_out_named(&mut self) {
        if self.tokens.names {
            self.head.leave_out_named(&self.bytes);
        }
    }

    /// Removes the fields whose names `is_one` finds.
    pub fn remove_fields(&mut self, is_one: impl Fn(&[u8]) -> bool) {
        let Request { head, bytes, .. } = self;
        head.remove_fields(|field| is_one(field.name.of(bytes)));
        self.is_changed = true;
    }

    /// Adds a field. Its text goes between the head and the bytes that follow the head.
    pub fn add_field(&mut self, name: &[u8], value: &[u8], known: Option<Known>) {
        let start = self.head.len.min(self.bytes.len());
        let middle = start + name.len();
        let end = middle + value.len();
        self.bytes.splice(start..start, name.iter().chain(value).copied());
        self.head.len = end;
        self.used += end - start;
        self.head.push(Field { name: Span::new(start, middle), value: Span::new(middle, end), known });
        self.is_changed = true;
    }

    /// The same request without the bytes after its head: for an exchange that sends it once more.
    pub fn head_alone(&self) -> Request {
        Request {
            bytes: self.bytes.get(..self.head.len).unwrap_or_default().to_vec(),
            head: self.head.clone(),
            parser: Parser::default(),
            started: None,
            tokens: self.tokens,
            used: self.head.len,
            length: Some(BodyLength::None),
            host: self.host.clone(),
            port: self.port,
            last_host: LastHost::default(),
            may_have_fragment: self.may_have_fragment,
            sent: 0,
            is_open_ended: false,
            is_changed: self.is_changed,
            pipelined: false,
            method_override: self.method_override,
            is_copy: true,
            client_number: self.client_number.clone(),
        }
    }

    /// A part of the head.
    pub fn text(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// The method in force.
    pub fn method(&self) -> &[u8] {
        self.method_override.unwrap_or_else(|| self.text(self.head.method))
    }

    /// Whether the answer carries no body because of the method.
    pub fn is_head(&self) -> bool {
        self.method() == b"HEAD"
    }

    /// The request target as the client wrote it.
    pub fn target(&self) -> &[u8] {
        self.text(self.head.target)
    }

    /// The request line without its end.
    pub fn line(&self) -> &[u8] {
        self.text(self.head.line)
    }

    /// The version the client speaks.
    pub fn version(&self) -> Version {
        self.head.version
    }

    /// The fields in order.
    pub fn fields(&self) -> &[Field] {
        &self.head.fields
    }

    /// Whether the client asks for another protocol: `Connection` has the token and `Upgrade` names the protocol (RFC
    /// 9110 §7.8; nginx: `headers_in.upgrade`). It does not ask with a copy of its request. The location decides whether
    /// an origin is asked.
    pub fn wants_upgrade(&self) -> bool {
        self.tokens.upgrade && !self.is_copy && self.field(Known::Upgrade).is_some()
    }

    /// The first field of a known name.
    #[inline]
    pub fn field(&self, known: Known) -> Option<&[u8]> {
        self.head.value(&self.bytes, known)
    }

    /// Body bytes that arrived with the head.
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.used..).unwrap_or_default()
    }
}

/// One attempt at one peer (nginx: an upstream state).
#[derive(Clone)]
pub struct Try {
    /// The peer's address, or the group's name when no peer could be chosen.
    pub peer: Rc<str>,
    /// The status of its answer; 0 when there was none.
    pub status: u16,
    /// When it began.
    pub started: Option<Instant>,
    /// Microseconds until the connection was made, an hour at most; `None` when there was none.
    pub connect_us: Option<u32>,
    /// Microseconds until the head arrived.
    pub header_us: Option<u64>,
    /// Microseconds until the end.
    pub response_us: Option<u64>,
    /// Microseconds in the queue of its group before it began.
    pub queue_us: u64,
    /// Bytes of the answer's body.
    pub response_length: u64,
    /// Bytes read from the peer.
    pub bytes_received: u64,
    /// Bytes sent to the peer.
    pub bytes_sent: u64,
    /// The connection uses TLS.
    pub is_tls: bool,
    /// An internal redirect happened before this try: ` : ` joins the lists there.
    pub after_redirect: bool,
    /// It used a kept connection.
    pub reused: bool,
    /// Why it failed.
    pub why: Option<Why>,
    /// Its peer's cell; 0 if no peer was chosen, or if no configuration names the peer.
    pub cell: u32,
}

impl Try {
    /// Microseconds since the try began.
    #[inline]
    pub fn elapsed_us(&self) -> u64 {
        self.started.map_or(0, |started| clock::now().us_since(started))
    }

    /// Records the end of the try.
    #[inline]
    pub fn end(&mut self) {
        if self.response_us.is_none() {
            self.response_us = Some(self.elapsed_us());
        }
    }

    /// A try at a peer, or at the whole group, not yet begun.
    pub fn at(peer: Rc<str>) -> Try {
        Try {
            peer,
            status: 0,
            started: None,
            connect_us: None,
            header_us: None,
            response_us: None,
            queue_us: 0,
            response_length: 0,
            bytes_received: 0,
            bytes_sent: 0,
            is_tls: false,
            after_redirect: false,
            reused: false,
            why: None,
            cell: 0,
        }
    }
}

/// An upstream's answer: its head as received, kept for `$upstream_http_*`.
pub struct Origin {
    /// The bytes; the head is their beginning, body bytes may follow.
    pub bytes: Lease,
    /// Where the parts of the head are.
    pub head: ResponseHead,
    /// Reads the head, over several reads if needed.
    pub parser: Parser,
    /// The fields after the body.
    pub trailers: Fields,
}

/// The room for bytes of an answer before the length of its body is known.
pub const ANSWER_BYTES: usize = 16 << 10;

impl Default for Origin {
    fn default() -> Origin {
        Origin { bytes: Lease::none(), head: ResponseHead::new(), parser: Parser::new(), trailers: Fields::default() }
    }
}

impl Origin {
    /// The first field of a known name.
    #[inline]
    pub fn field(&self, known: Known) -> Option<&[u8]> {
        self.head.value(&self.bytes, known)
    }

    /// Forgets the answer. Keeps the room for its fields, and with it the last head, until the next head is parsed.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.parser.reset();
        self.trailers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::{HeadPolicy, InvalidFields, Progress};

    fn request(text: &str) -> Request {
        let mut request = Request { bytes: text.as_bytes().to_vec(), ..Request::default() };
        let policy = HeadPolicy { invalid_fields: InvalidFields::Keep, underscores: true, fields_max: 100 };
        assert_eq!(request.parser.request(&request.bytes, &policy, &mut request.head), Ok(Progress::Done));
        request.used = request.head.len;
        request.tokens = request.head.tokens(&request.bytes);
        request
    }

    fn fields(request: &Request) -> String {
        let line = |field: &Field| [request.text(field.name), b"=", request.text(field.value)].concat();
        let all: Vec<_> = request.fields().iter().map(|field| String::from_utf8(line(field)).unwrap()).collect();
        all.join(" ")
    }

    #[test]
    fn an_added_field_stands_between_the_head_and_the_bytes_behind_it() {
        let mut request = request("GET / HTTP/1.1\r\nHost: a\r\nX-A: 1\r\n\r\nbody");
        request.add_field(b"X-B", b"2", None);
        request.add_field(b"Via", b"3", None);
        assert_eq!((fields(&request).as_str(), request.unread()), ("Host=a X-A=1 X-B=2 Via=3", &b"body"[..]));
        request.remove_fields(|name| name.starts_with(b"X-"));
        assert_eq!(
            (fields(&request).as_str(), request.unread(), request.is_changed),
            ("Host=a Via=3", &b"body"[..], true)
        );
        let copy = request.head_alone();
        assert_eq!(
            (fields(&copy).as_str(), copy.unread(), copy.length),
            ("Host=a Via=3", &b""[..], Some(BodyLength::None))
        );
    }

    #[test]
    fn fields_that_connection_names_are_for_this_connection_alone() {
        for (connection, expected) in [
            ("close", "Host=a Connection=close X-A=1 X-B=2"),
            ("X-A", "Host=a Connection=X-A X-B=2"),
            ("x-b, close, X-A", "Host=a Connection=x-b, close, X-A"),
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {connection}\r\nX-A: 1\r\nX-B: 2\r\n\r\n");
            let mut request = request(&text);
            request.leave_out_named();
            assert_eq!(fields(&request), expected, "{connection}");
        }
    }

    #[test]
    fn an_upgrade_needs_both_fields_and_the_client_itself() {
        for (lines, wants) in [
            ("Connection: upgrade\r\nUpgrade: x\r\n", true),
            ("Connection: keep-alive, Upgrade\r\nUpgrade: x\r\n", true),
            ("Connection: upgrade\r\n", false),
            ("Upgrade: x\r\n", false),
        ] {
            let request = request(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
            assert_eq!((request.wants_upgrade(), request.head_alone().wants_upgrade()), (wants, false), "{lines}");
        }
    }

    #[test]
    fn the_method_may_be_replaced_and_the_line_stays() {
        let mut request = request("HEAD /a HTTP/1.0\r\n\r\n");
        assert!(request.is_head());
        request.method_override = Some(b"GET");
        assert_eq!(
            (request.is_head(), request.method(), request.line()),
            (false, &b"GET"[..], &b"HEAD /a HTTP/1.0"[..])
        );
        request.clear();
        assert_eq!((request.method_override, request.bytes.len(), request.fields().len()), (None, 0, 0));
    }
}
