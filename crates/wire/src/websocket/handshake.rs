//! The opening handshake (RFC 6455 §4): a client's key, the server's answer to it, and the agreed parameters.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use super::deflate::{Deflate, DeflateOffer};
use crate::head::ResponseHead;
use crate::known::Known;

/// A key is 16 bytes in base64: 24 characters (RFC 6455 §4.1).
const KEY_BYTES: usize = 24;
/// A SHA-1 in base64.
const ACCEPT_BYTES: usize = 28;
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Sec-WebSocket-Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeKey([u8; KEY_BYTES]);

impl HandshakeKey {
    /// A key from 16 random bytes for this connection.
    pub fn new(random: [u8; 16]) -> HandshakeKey {
        let mut key = [0; KEY_BYTES];
        // 16 bytes are 24 characters: it fits.
        let _ = STANDARD.encode_slice(random, &mut key);
        HandshakeKey(key)
    }

    /// A client's key as received; `None` if it is not 24 characters.
    pub fn of(value: &[u8]) -> Option<HandshakeKey> {
        value.try_into().ok().map(HandshakeKey)
    }

    /// The key as it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Sec-WebSocket-Accept for a key (RFC 6455 §4.2.2).
pub fn accept(key: &HandshakeKey) -> [u8; ACCEPT_BYTES] {
    let digest = Sha1::new().chain_update(key.0).chain_update(GUID).finalize();
    let mut accept = [0; ACCEPT_BYTES];
    // 20 bytes are 28 characters: it fits.
    let _ = STANDARD.encode_slice(digest, &mut accept);
    accept
}

/// The parameters that a server agreed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// The subprotocol chosen.
    pub protocol: Option<String>,
    /// permessage-deflate, if it was agreed.
    pub deflate: Option<Deflate>,
}

/// Why an answer does not accept the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeFault {
    /// A status other than 101 (RFC 6455 §4.1).
    Status(u16),
    /// Not `Upgrade: websocket` (RFC 6455 §4.1).
    Upgrade,
    /// Sec-WebSocket-Accept does not match the key (RFC 6455 §4.1).
    Accept,
    /// A subprotocol, although the client offered none (RFC 6455 §4.1).
    ProtocolUnasked,
    /// A subprotocol that is not one of the offered ones (RFC 6455 §4.1).
    Protocol,
    /// No subprotocol, although the client offered some: the RFC allows it, but npm's `ws` and code in browsers
    /// refuse it.
    NoProtocol,
    /// An extension, although the client offered none (RFC 6455 §9.1).
    ExtensionUnasked,
    /// An extension, or parameters of an extension, that the client did not offer (RFC 7692 §5.1).
    Extension,
}

impl fmt::Display for HandshakeFault {
    /// The words of npm's `ws`, which the reports of scripts show.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandshakeFault::Status(status) => return write!(f, "Unexpected server response: {status}"),
            HandshakeFault::Upgrade => "Invalid Upgrade header",
            HandshakeFault::Accept => "Invalid Sec-WebSocket-Accept header",
            HandshakeFault::ProtocolUnasked => "Server sent a subprotocol but none was requested",
            HandshakeFault::Protocol => "Server sent an invalid subprotocol",
            HandshakeFault::NoProtocol => "Server sent no subprotocol",
            HandshakeFault::ExtensionUnasked => {
                "Server sent a Sec-WebSocket-Extensions header but no extension was requested"
            }
            HandshakeFault::Extension => "Invalid Sec-WebSocket-Extensions header",
        })
    }
}

/// Checks that an answer accepts the client's request with `key`; returns the chosen parameters (RFC 6455 §4.1).
pub fn check_answer(
    buf: &[u8],
    head: &ResponseHead,
    key: &HandshakeKey,
    protocols: &[String],
    deflate: Option<&DeflateOffer>,
) -> Result<Agreed, HandshakeFault> {
    if head.status != 101 {
        return Err(HandshakeFault::Status(head.status));
    }
    let upgrade = head.value(buf, Known::Upgrade).unwrap_or_default();
    if !upgrade.eq_ignore_ascii_case(b"websocket") {
        return Err(HandshakeFault::Upgrade);
    }
    if head.value(buf, Known::SecWebSocketAccept) != Some(&accept(key)) {
        return Err(HandshakeFault::Accept);
    }
    let protocol = match (head.value(buf, Known::SecWebSocketProtocol), protocols) {
        (None, []) => None,
        (None, _) => return Err(HandshakeFault::NoProtocol),
        (Some(_), []) => return Err(HandshakeFault::ProtocolUnasked),
        (Some(chosen), _) => {
            let chosen = protocols.iter().find(|name| name.as_bytes() == chosen);
            Some(chosen.ok_or(HandshakeFault::Protocol)?.clone())
        }
    };
    let deflate = match (head.value(buf, Known::SecWebSocketExtensions), deflate) {
        (None, _) => None,
        (Some(_), None) => return Err(HandshakeFault::ExtensionUnasked),
        (Some(value), Some(offer)) => Some(offer.agreed(value).ok_or(HandshakeFault::Extension)?),
    };
    Ok(Agreed { protocol, deflate })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::parse::{Parser, Progress};

    const KEY: &[u8] = b"dGhlIHNhbXBsZSBub25jZQ==";

    fn check(fields: &str, protocols: &[&str], offer: bool, expect: Result<(Option<&str>, bool), HandshakeFault>) {
        let text = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n");
        let mut head = ResponseHead::new();
        assert_eq!(Parser::new().response(text.as_bytes(), &mut head), Ok(Progress::Done));
        let protocols: Vec<String> = protocols.iter().map(|&name| name.to_owned()).collect();
        let offer = offer.then(DeflateOffer::default);
        let key = HandshakeKey::of(KEY).unwrap();
        let answer = check_answer(text.as_bytes(), &head, &key, &protocols, offer.as_ref());
        let seen = answer.as_ref().map(|agreed| (agreed.protocol.as_deref(), agreed.deflate.is_some()));
        assert_eq!(seen, expect.as_ref().copied(), "{fields}");
    }

    #[test]
    fn the_rfcs_own_example_of_a_key() {
        assert_eq!(&accept(&HandshakeKey::of(KEY).unwrap()), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(HandshakeKey::new(*b"the sample nonce").as_bytes(), KEY);
    }

    #[test]
    fn answers() {
        let good =
            "Upgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
        let with = |more: &str| format!("{good}{more}\r\n");
        check(good, &[], false, Ok((None, false)));
        check(&with("Sec-WebSocket-Protocol: b"), &["a", "b"], false, Ok((Some("b"), false)));
        check(&with("Sec-WebSocket-Extensions: permessage-deflate"), &[], true, Ok((None, true)));
        check(good, &[], true, Ok((None, false)));
        check("Upgrade: h2c\r\n", &[], false, Err(HandshakeFault::Upgrade));
        check("Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n", &[], false, Err(HandshakeFault::Accept));
        check(good, &["a"], false, Err(HandshakeFault::NoProtocol));
        check(&with("Sec-WebSocket-Protocol: a"), &[], false, Err(HandshakeFault::ProtocolUnasked));
        check(&with("Sec-WebSocket-Protocol: c"), &["a"], false, Err(HandshakeFault::Protocol));
        let deflate = with("Sec-WebSocket-Extensions: permessage-deflate");
        check(&deflate, &[], false, Err(HandshakeFault::ExtensionUnasked));
        check(&with("Sec-WebSocket-Extensions: x"), &[], true, Err(HandshakeFault::Extension));
    }

    #[test]
    fn a_refusal_is_in_the_words_of_ws() {
        let text = b"HTTP/1.1 403 Forbidden\r\n\r\n";
        let mut head = ResponseHead::new();
        assert_eq!(Parser::new().response(text, &mut head), Ok(Progress::Done));
        let fault = check_answer(text, &head, &HandshakeKey::new([0; 16]), &[], None).unwrap_err();
        assert_eq!(fault.to_string(), "Unexpected server response: 403");
    }
}
