//! Turns a field section of HTTP/2 or HTTP/3 into the request of an exchange, in the memory of exchanges.

use weir_wire::section::Block;
use weir_wire::section::message::{self, Malformed};
use weir_wire::{Field, HeadPolicy, InvalidFields, Known, Span, Version, Violation};

use crate::exchange::Parts;
use crate::exchange::message::Request;
use crate::text::base64;

/// A request that is ready to be served.
pub struct Begun {
    /// They contain the request's head.
    pub parts: Parts,
    /// A rule that it breaks; the refusal is its answer.
    pub refusal: Option<Violation>,
}

/// Reads a section of HTTP/2 or HTTP/3; also returns why it is malformed. `ends` if no body follows; `key` is the
/// WebSocket key for a request to open a WebSocket.
pub fn read(
    block: &mut Block,
    version: Version,
    mut parts: Parts,
    ends: bool,
    policy: &HeadPolicy,
    key: [u8; 16],
) -> (Begun, Option<Malformed>) {
    let request = parts.request();
    // Pseudo-header fields are not counted (nginx), nor are the fields that weir makes from them.
    let fields = block.iter().filter(|(name, _)| name.first() != Some(&b':')).count();
    let is_too_large = block.is_too_large;
    let said = message::request(block, version, true, &mut request.head);
    std::mem::swap(&mut request.bytes, &mut block.bytes);
    request.sent = block.sent;
    request.is_open_ended = !ends;
    let refusal = match said {
        // The section is truncated: it may have lost its target.
        _ if is_too_large => Some(Violation::HeadTooLarge),
        Err(_) => Some(Violation::MalformedRequest),
        Ok(_) if fields > policy.fields_max => Some(Violation::TooManyFields),
        Ok(extended) => {
            judge(request, policy);
            extended.protocol.and_then(|protocol| upgrade(request, protocol, key))
        }
    };
    let malformed = said.err().filter(|_| !is_too_large);
    if said.is_err() {
        request.head.clear();
        request.bytes.clear();
        request.head.version = version;
    }
    request.used = request.head.len;
    (Begun { parts, refusal }, malformed)
}

/// A WebSocket over HTTP/2 (RFC 8441) or HTTP/3 (RFC 9220) becomes the request for an upgrade that phases and origins know: GET, with the
/// fields that HTTP/1.1 needs. The client's bytes on the stream are the WebSocket's bytes, and no body.
fn upgrade(request: &mut Request, protocol: Span, key: [u8; 16]) -> Option<Violation> {
    if protocol.of(&request.bytes) != b"websocket" {
        return Some(Violation::ConnectMethod);
    }
    let key = base64::encode(&key);
    request.head.method = push(&mut request.bytes, b"GET");
    for (name, value, known) in [
        (&b"upgrade"[..], &b"websocket"[..], Some(Known::Upgrade)),
        (b"connection", b"upgrade", Some(Known::Connection)),
        (b"sec-websocket-key", key.as_bytes(), Known::of(b"sec-websocket-key")),
    ] {
        let (name, value) = (push(&mut request.bytes, name), push(&mut request.bytes, value));
        request.head.push(Field { name, value, known });
    }
    request.head.len = request.bytes.len();
    request.is_open_ended = false;
    None
}

fn push(bytes: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(text);
    Span::new(start, bytes.len())
}

/// Strange names: nginx has rules for them, HTTP/2 and HTTP/3 have none.
fn judge(request: &mut Request, policy: &HeadPolicy) {
    if policy.invalid_fields == InvalidFields::Drop {
        let bytes = &request.bytes;
        let ignored = &mut request.head.ignored;
        request.head.fields.retain(|field| {
            let is_good = field.known.is_some() || is_usual(field.name.of(bytes), policy.underscores);
            if !is_good {
                ignored.push(line(field));
            }
            is_good
        });
    }
}

/// nginx: letters, digits and hyphens, and underscores if they are allowed.
fn is_usual(name: &[u8], underscores: bool) -> bool {
    name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-') || underscores && *byte == b'_')
}

/// Name and value as they lie in the block.
fn line(field: &Field) -> weir_wire::Span {
    weir_wire::Span { start: field.name.start, end: field.value.end.max(field.name.end) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::h2::connection::{Connection, Limits, Role, Step};

    const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/x"), (":authority", "a.test")];

    /// The result of a section with these fields, as a client sends it.
    fn sent(fields: &[(&str, &str)], section: usize, policy: &HeadPolicy) -> (Begun, Option<Malformed>) {
        let mut frame = Vec::new();
        for (name, value) in fields {
            frame.extend([0, name.len() as u8]);
            frame.extend_from_slice(name.as_bytes());
            frame.push(value.len() as u8);
            frame.extend_from_slice(value.as_bytes());
        }
        // HEADERS with END_HEADERS, of stream 1.
        let mut bytes = vec![0, 0, frame.len() as u8, 1, 4, 0, 0, 0, 1];
        bytes.append(&mut frame);
        let limits = Limits { section, is_connect_extended: true, ..Limits::default() };
        let mut wire = Connection::new(Role::Server, limits);
        assert!(matches!(wire.next(&bytes), Ok(Step::Took { .. })), "{fields:?}");
        read(wire.block(), Version::Http2, Parts::default(), false, policy, [7; 16])
    }

    fn policy() -> HeadPolicy {
        HeadPolicy { invalid_fields: InvalidFields::Drop, underscores: false, fields_max: 3 }
    }

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        GET.iter().chain(more).copied().collect()
    }

    fn names(request: &Request) -> Vec<String> {
        request.fields().iter().map(|field| String::from_utf8_lossy(request.text(field.name)).into_owned()).collect()
    }

    #[test]
    fn what_nginx_has_rules_for_goes_by_them() {
        let (mut begun, malformed) = sent(&with(&[("a_b", "1"), ("a-b", "2")]), 1000, &policy());
        assert_eq!((begun.refusal, malformed), (None, None));
        let request = begun.parts.request();
        assert_eq!((names(request), request.head.ignored.len()), (vec!["a-b".into(), "host".into()], 1));
        let allowed = HeadPolicy { underscores: true, ..policy() };
        let (mut begun, _) = sent(&with(&[("a_b", "1")]), 1000, &allowed);
        assert_eq!(names(begun.parts.request()), ["a_b", "host"]);
        let three = with(&[("a", "1"), ("b", "2"), ("c", "3")]);
        assert_eq!(sent(&three, 1000, &policy()).0.refusal, None, "neither pseudo-header fields nor Host count");
        let four = with(&[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
        assert_eq!(sent(&four, 1000, &policy()).0.refusal, Some(Violation::TooManyFields));
        let (begun, malformed) = sent(&with(&[("a", "much")]), 45, &policy());
        assert_eq!((begun.refusal, malformed), (Some(Violation::HeadTooLarge), None));
        let (begun, malformed) = sent(&with(&[("Upper", "1")]), 1000, &policy());
        assert_eq!((begun.refusal, malformed.is_some()), (Some(Violation::MalformedRequest), true));
    }

    #[test]
    fn a_websocket_is_an_upgrade_that_origins_know() {
        let mut fields = with(&[("sec-websocket-version", "13")]);
        fields[0] = (":method", "CONNECT");
        fields.insert(1, (":protocol", "websocket"));
        let (mut begun, malformed) = sent(&fields, 1000, &policy());
        assert_eq!((begun.refusal, malformed), (None, None));
        let request = begun.parts.request();
        assert_eq!((request.method(), request.field(Known::Upgrade)), (&b"GET"[..], Some(&b"websocket"[..])));
        assert_eq!((request.field(Known::Connection), request.is_open_ended), (Some(&b"upgrade"[..]), false));
        assert_eq!(request.used, request.bytes.len(), "nothing stands behind the head");
        fields[1] = (":protocol", "connect-udp");
        assert_eq!(sent(&fields, 1000, &policy()).0.refusal, Some(Violation::ConnectMethod));
    }
}
