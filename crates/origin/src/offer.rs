//! The offer of a WebSocket in a request (RFC 6455 §4).

use weir_wire::websocket::{HandshakeKey, accept};
use weir_wire::{Known, RequestHead, Version};

/// A handshake that the origin can accept.
pub(super) struct Offer {
    pub(super) accept: [u8; 28],
    pub(super) protocol: Option<Vec<u8>>,
}

impl Offer {
    /// The offer in a request with `Connection: upgrade`. `None` if it is for another protocol. The error is a reason
    /// if the offer is faulty.
    pub(super) fn of(buf: &[u8], head: &RequestHead) -> Result<Option<Offer>, &'static str> {
        let is_websocket =
            head.value(buf, Known::Upgrade).is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"));
        if !is_websocket || head.version != Version::Http11 || head.method.of(buf) != b"GET" {
            return Ok(None);
        }
        if head.value(buf, Known::SecWebSocketVersion) != Some(b"13") {
            return Err("Sec-WebSocket-Version must be 13");
        }
        let key = head.value(buf, Known::SecWebSocketKey).and_then(HandshakeKey::of);
        let key = key.ok_or("Sec-WebSocket-Key must be 16 bytes in base64")?;
        // A browser that offers subprotocols fails unless the server chooses one.
        let offered = head.value(buf, Known::SecWebSocketProtocol);
        let first = offered.and_then(|list| list.split(|&byte| byte == b',').next());
        Ok(Some(Offer { accept: accept(&key), protocol: first.map(|name| name.trim_ascii().to_vec()) }))
    }
}
