//! A field section becomes the request of an exchange, in the memory that exchanges have.

use weir_wire::h2::connection::Connection;
use weir_wire::h2::message::{self, Malformed};
use weir_wire::{Field, HeadPolicy, InvalidFields, Known, Span, Version, Violation};

use crate::base64;
use crate::exchange::{Parts, Request};

/// A request as it comes to be served.
pub struct Begun {
    /// The request's head is in them.
    pub parts: Parts,
    /// A rule that it breaks, for which it gets an answer.
    pub refusal: Option<Violation>,
}

/// Reads the section that just came, and what of it is malformed. `ends` when no body follows; `key` serves a request
/// for a WebSocket.
pub fn read(
    wire: &mut Connection,
    mut parts: Parts,
    ends: bool,
    policy: &HeadPolicy,
    key: [u8; 16],
) -> (Begun, Option<Malformed>) {
    let request = parts.request();
    let block = wire.block();
    // Pseudo-header fields are not counted (nginx), nor is what is made of them.
    let fields = block.iter().filter(|(name, _)| name.first() != Some(&b':')).count();
    let is_too_large = block.is_too_large;
    let said = message::request(block, true, &mut request.head);
    std::mem::swap(&mut request.bytes, &mut block.bytes);
    request.sent = block.sent;
    request.is_open_ended = !ends;
    let refusal = match said {
        // What did not fit is not there: without it there may be no target.
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
        request.head.version = Version::Http2;
    }
    request.used = request.head.len;
    (Begun { parts, refusal }, malformed)
}

/// A WebSocket over HTTP/2 (RFC 8441) becomes the request for an upgrade that phases and origins know: GET, with the
/// fields that HTTP/1.1 wants. What its client sends on the stream are the WebSocket's bytes, and no body.
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

/// What nginx has rules for and HTTP/2 has none: strange names.
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

/// nginx: letters, digits and hyphens, and underscores where they are allowed.
fn is_usual(name: &[u8], underscores: bool) -> bool {
    name.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-') || underscores && *byte == b'_')
}

/// Name and value as they lie in the block.
fn line(field: &Field) -> weir_wire::Span {
    weir_wire::Span { start: field.name.start, end: field.value.end.max(field.name.end) }
}
