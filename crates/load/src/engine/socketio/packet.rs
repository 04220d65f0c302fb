//! Packets of Engine.IO 4 and Socket.IO 5, to and from bytes.
//!
//! An Engine.IO packet is a digit and its data. A WebSocket message holds one packet, the body of a long poll
//! several. Packets of kind 4 carry a Socket.IO packet: `2/chat,17["event",{"a":1}]` is an event of the namespace
//! `/chat` that asks for an acknowledgement with number 17. JSON stays text here. Binary attachments are counted and
//! not kept: scripts neither send nor read them.

use crate::value::Value;

/// Separates the packets in a long poll's body.
pub(super) const SEPARATOR: u8 = 0x1e;
/// Most attachments of one packet, as in socket.io-parser.
const ATTACHMENTS_MAX: u32 = 10;

/// A packet of Engine.IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnginePacket<'p> {
    /// The handshake, as JSON.
    Open(&'p str),
    Close,
    /// Must be answered by a pong with the same data.
    Ping,
    /// The answer to a ping; its data is `probe` for a probe.
    Pong(&'p str),
    /// A packet of Socket.IO.
    Message(&'p str),
    /// A binary attachment.
    Binary,
    Upgrade,
    /// No content: it ends a poll.
    Noop,
}

/// The bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl EnginePacket<'_> {
    /// Parses a text packet.
    pub(super) fn parse(text: &str) -> Result<EnginePacket<'_>, Malformed> {
        let mut rest = text.chars();
        let kind = rest.next().ok_or(Malformed)?;
        let rest = rest.as_str();
        Ok(match kind {
            '0' => EnginePacket::Open(rest),
            '1' => EnginePacket::Close,
            '2' => EnginePacket::Ping,
            '3' => EnginePacket::Pong(rest),
            '4' => EnginePacket::Message(rest),
            '5' => EnginePacket::Upgrade,
            '6' => EnginePacket::Noop,
            // Binary data as Base64, in a long poll.
            'b' => EnginePacket::Binary,
            _ => return Err(Malformed),
        })
    }
}

/// The kind of a Socket.IO packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketType {
    Connect,
    Disconnect,
    Event,
    Ack,
    ConnectError,
}

/// A packet of Socket.IO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'p> {
    pub(super) kind: PacketType,
    /// Number of binary messages that belong to this packet and follow it.
    pub(super) attachments: u32,
    /// The namespace; `/` if the packet names none.
    pub(super) namespace: &'p str,
    /// The number that an event wants acknowledged, or that an acknowledgement answers.
    pub(super) id: Option<u64>,
    /// JSON, or the empty text.
    pub(super) payload: &'p str,
}

impl Packet<'_> {
    /// Parses the data of an Engine.IO message.
    pub(super) fn parse(text: &str) -> Result<Packet<'_>, Malformed> {
        let (kind, has_attachments) = match text.as_bytes().first() {
            Some(b'0') => (PacketType::Connect, false),
            Some(b'1') => (PacketType::Disconnect, false),
            Some(b'2') => (PacketType::Event, false),
            Some(b'3') => (PacketType::Ack, false),
            Some(b'4') => (PacketType::ConnectError, false),
            Some(b'5') => (PacketType::Event, true),
            Some(b'6') => (PacketType::Ack, true),
            _ => return Err(Malformed),
        };
        let mut rest = text.get(1..).unwrap_or_default();
        let mut attachments = 0;
        if has_attachments {
            let (count, after) = rest.split_once('-').ok_or(Malformed)?;
            attachments = count.parse().ok().filter(|count| (1..=ATTACHMENTS_MAX).contains(count)).ok_or(Malformed)?;
            rest = after;
        }
        let mut namespace = "/";
        if rest.starts_with('/') {
            (namespace, rest) = rest.split_once(',').unwrap_or((rest, ""));
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (id, payload) = rest.split_at_checked(digits).ok_or(Malformed)?;
        let id = if id.is_empty() { None } else { Some(id.parse().map_err(|_| Malformed)?) };
        let is_right = match kind {
            PacketType::Event | PacketType::Ack => payload.starts_with('['),
            PacketType::Connect => payload.is_empty() || payload.starts_with('{'),
            PacketType::ConnectError => payload.starts_with(['{', '"']),
            PacketType::Disconnect => payload.is_empty(),
        };
        if !is_right || (kind == PacketType::Ack && id.is_none()) {
            return Err(Malformed);
        }
        // A namespace may have a query, which is not part of the name.
        let namespace = namespace.split('?').next().unwrap_or(namespace);
        Ok(Packet { kind, attachments, namespace, id, payload })
    }
}

/// Appends the beginning of a message: kind, namespace, number.
pub(super) fn push_head(out: &mut Vec<u8>, kind: PacketType, namespace: &str, id: Option<u64>) {
    let digit = match kind {
        PacketType::Connect => b'0',
        PacketType::Disconnect => b'1',
        PacketType::Event => b'2',
        PacketType::Ack => b'3',
        PacketType::ConnectError => b'4',
    };
    out.extend_from_slice(&[b'4', digit]);
    if namespace != "/" {
        out.extend_from_slice(namespace.as_bytes());
        out.push(b',');
    }
    if let Some(id) = id {
        weir_wire::encode::push_decimal(out, id);
    }
}

/// Appends one element of an event's list; in a list `undefined` is `null`.
pub(super) fn push_argument(out: &mut Vec<u8>, value: &Value) {
    if !value.write_json(out) {
        out.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn frames() {
        for (text, expect) in [
            ("0{\"sid\":\"a\"}", Ok(EnginePacket::Open("{\"sid\":\"a\"}"))),
            ("1", Ok(EnginePacket::Close)),
            ("2", Ok(EnginePacket::Ping)),
            ("3probe", Ok(EnginePacket::Pong("probe"))),
            ("40", Ok(EnginePacket::Message("0"))),
            ("bAQID", Ok(EnginePacket::Binary)),
            ("6", Ok(EnginePacket::Noop)),
            ("", Err(Malformed)),
            ("7", Err(Malformed)),
            ("ü", Err(Malformed)),
        ] {
            assert_eq!(EnginePacket::parse(text), expect, "{text}");
        }
    }

    #[test]
    fn packets() {
        let check = |text: &str, kind, attachments, namespace: &str, id, payload: &str| {
            let packet = Packet::parse(text).unwrap();
            let seen = (packet.kind, packet.attachments, packet.namespace, packet.id, packet.payload);
            assert_eq!(seen, (kind, attachments, namespace, id, payload), "{text}");
        };
        check("0", PacketType::Connect, 0, "/", None, "");
        check("0{\"sid\":\"x\"}", PacketType::Connect, 0, "/", None, "{\"sid\":\"x\"}");
        check("0/chat,{\"sid\":\"x\"}", PacketType::Connect, 0, "/chat", None, "{\"sid\":\"x\"}");
        check("0/chat?a=b,", PacketType::Connect, 0, "/chat", None, "");
        check("1/chat,", PacketType::Disconnect, 0, "/chat", None, "");
        check("2[\"a\",1]", PacketType::Event, 0, "/", None, "[\"a\",1]");
        check("2/chat,17[\"a/b,c\"]", PacketType::Event, 0, "/chat", Some(17), "[\"a/b,c\"]");
        check("30[]", PacketType::Ack, 0, "/", Some(0), "[]");
        check(
            "51-[\"a\",{\"_placeholder\":true,\"num\":0}]",
            PacketType::Event,
            1,
            "/",
            None,
            "[\"a\",{\"_placeholder\":true,\"num\":0}]",
        );
        check("61-/n,5[1]", PacketType::Ack, 1, "/n", Some(5), "[1]");
        check("4/admin,{\"message\":\"no\"}", PacketType::ConnectError, 0, "/admin", None, "{\"message\":\"no\"}");
    }

    #[test]
    fn what_is_no_packet() {
        for text in [
            "",
            "7",
            "x",
            "2",
            "2{}",
            "3[]",
            "1[]",
            "0[]",
            "4",
            "5[\"a\"]",
            "50-[]",
            "511-[]",
            "5x-[]",
            "2999999999999999999999[]",
            "ü",
        ] {
            assert_eq!(Packet::parse(text), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn heads_as_written() {
        for (kind, namespace, id, expect) in [
            (PacketType::Event, "/", None, "42"),
            (PacketType::Event, "/chat", Some(3), "42/chat,3"),
            (PacketType::Connect, "/chat", None, "40/chat,"),
            (PacketType::Disconnect, "/", None, "41"),
        ] {
            let mut out = Vec::new();
            push_head(&mut out, kind, namespace, id);
            assert_eq!(String::from_utf8(out).unwrap(), expect);
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_strange(text: String) {
            let _ = EnginePacket::parse(&text);
            if let Ok(packet) = Packet::parse(&text) {
                assert!(packet.attachments <= ATTACHMENTS_MAX && packet.namespace.starts_with('/'));
            }
        }
    }

    mod mutate {
        use super::*;
        /// Packets of a server: the parts are parts of the text.
        #[test]
        fn packets() {
            let seeds = [
                "0{\"sid\":\"a\"}",
                "42/chat,3[\"a\",1]",
                "451-/b,[{\"_placeholder\":true,\"num\":0}]",
                "44{\"message\":\"no\"}",
                "b4aGk=",
            ];
            weir_mutate::mutate(&seeds, &["4", "5", "-", ",", "/", "[", "99999999999999999999", "é", "\0"], |bytes| {
                let text = String::from_utf8_lossy(bytes);
                let _ = EnginePacket::parse(&text);
                if let Ok(packet) = Packet::parse(&text) {
                    assert!(packet.attachments <= ATTACHMENTS_MAX && packet.namespace.starts_with('/'));
                    assert!(packet.payload.len() < text.len());
                }
            });
        }
    }
}
