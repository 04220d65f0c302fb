//! The WebSocket echo (RFC 6455): every data frame comes back as it was, unmasked.
//!
//! Frames are echoed while they arrive, so their length needs no bound; pings are
//! answered, a close is returned. No extension is agreed to; text is not checked for
//! UTF-8, since nothing here reads it.

use std::io;
use std::time::Duration;

use sha1::{Digest, Sha1};
use weir_net::buffer;
use weir_wire::encode::{CRLF, push_field, push_status_line};
use weir_wire::{Known, RequestHead, Version};

use super::add;
use super::connection::{Connection, Next};

/// Silence after which an idle WebSocket is closed.
const IDLE: Duration = Duration::from_secs(3600);
/// A key is 16 bytes in base64: 24 characters (RFC 6455 §4.1).
const KEY_BYTES: usize = 24;
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest payload of a control frame (RFC 6455 §5.5).
const CONTROL_BYTES_MAX: u64 = 125;
/// The longest frame head: two bytes, eight of length, four of mask.
const FRAME_HEAD_BYTES_MAX: usize = 14;
/// A close frame with status 1002, protocol error.
const CLOSE_PROTOCOL_ERROR: [u8; 4] = [0x88, 2, 0x03, 0xea];

/// A handshake that can be accepted.
pub(super) struct Offer {
    accept: String,
    protocol: Option<Vec<u8>>,
}

impl Offer {
    /// The offer in a request with `Connection: upgrade`; `None` if it is for another
    /// protocol, and a reason if it is a faulty one.
    pub(super) fn of(buf: &[u8], head: &RequestHead) -> Result<Option<Offer>, &'static str> {
        let is_websocket =
            head.value(buf, Known::Upgrade).is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"));
        if !is_websocket || head.version != Version::Http11 || head.method.of(buf) != b"GET" {
            return Ok(None);
        }
        if head.value(buf, Known::SecWebSocketVersion) != Some(b"13") {
            return Err("Sec-WebSocket-Version must be 13");
        }
        let key = head.value(buf, Known::SecWebSocketKey).filter(|key| key.len() == KEY_BYTES);
        let key = key.ok_or("Sec-WebSocket-Key must be 16 bytes in base64")?;
        // A browser that offers protocols fails unless one is chosen.
        let offered = head.value(buf, Known::SecWebSocketProtocol);
        let first = offered.and_then(|list| list.split(|&byte| byte == b',').next());
        Ok(Some(Offer { accept: accept(key), protocol: first.map(|name| name.trim_ascii().to_vec()) }))
    }
}

/// Sec-WebSocket-Accept for a key (RFC 6455 §4.2.2).
fn accept(key: &[u8]) -> String {
    let digest = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    base64(&digest)
}

/// Base64 with padding (RFC 4648 §4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place > three.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

impl Connection<'_> {
    /// Accepts, then echoes until either side closes.
    pub(super) async fn websocket(&mut self, offer: &Offer) -> io::Result<Next> {
        add(&self.tally.websockets, 1);
        let mut out = Vec::new();
        push_status_line(&mut out, b"101 Switching Protocols");
        push_field(&mut out, b"Upgrade", b"websocket");
        push_field(&mut out, b"Connection", b"Upgrade");
        push_field(&mut out, b"Sec-WebSocket-Accept", offer.accept.as_bytes());
        if let Some(protocol) = &offer.protocol {
            push_field(&mut out, b"Sec-WebSocket-Protocol", protocol);
        }
        out.extend_from_slice(CRLF);
        self.send(&out, 0, b"").await?;
        let mut echo = Echo::default();
        loop {
            if self.unread().is_empty() {
                self.deadline.set(IDLE);
                if self.read_more().await? == 0 {
                    return Ok(Next::Close);
                }
            }
            let mut out = buffer::lease(self.unread().len() + FRAME_HEAD_BYTES_MAX);
            let ends = echo.feed(self.unread(), &mut out);
            self.consume(self.unread().len());
            add(&self.tally.frames, std::mem::take(&mut echo.frames));
            if ends == Err(ProtocolError) {
                out.extend_from_slice(&CLOSE_PROTOCOL_ERROR);
            }
            self.send(&out, 0, b"").await?;
            if ends != Ok(false) {
                return Ok(Next::Close);
            }
        }
    }
}

/// A client broke RFC 6455.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProtocolError;

/// Client frames in, server frames out.
#[derive(Default)]
struct Echo {
    /// The bytes of a frame head that is not complete.
    head: Vec<u8>,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// Data frames and pings answered since the last look.
    frames: u64,
}

#[derive(Clone, Copy)]
struct Frame {
    first: u8,
    left: u64,
    mask: [u8; 4],
}

const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

impl Echo {
    /// Appends the answer to `input`; true when the client has said goodbye.
    fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<bool, ProtocolError> {
        loop {
            let mut frame = match self.frame.take() {
                Some(frame) => frame,
                None => {
                    let Some(frame) = self.next_frame(&mut input)? else {
                        return Ok(false);
                    };
                    frame.push_head(out);
                    frame
                }
            };
            let len = usize::try_from(frame.left).unwrap_or(usize::MAX).min(input.len());
            let (payload, rest) = input.split_at_checked(len).unwrap_or((input, &[]));
            input = rest;
            frame.unmask(payload, out);
            if frame.left > 0 {
                self.frame = Some(frame);
                return Ok(false);
            }
            match frame.opcode() {
                CLOSE => return Ok(true),
                PONG => {}
                _ => self.frames += 1,
            }
        }
    }

    /// The head of the next frame, when all of it is there.
    fn next_frame(&mut self, input: &mut &[u8]) -> Result<Option<Frame>, ProtocolError> {
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            self.head.push(byte);
            if let Some(frame) = parse_head(&self.head)? {
                self.head.clear();
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }
}

/// A client's frame head (RFC 6455 §5.2); `None` if it is not complete.
fn parse_head(head: &[u8]) -> Result<Option<Frame>, ProtocolError> {
    let &[first, second, ref rest @ ..] = head else {
        return Ok(None);
    };
    let opcode = first & 0x0f;
    let is_control = opcode & 0x8 != 0;
    let is_known = matches!(opcode, 0..=2 | CLOSE | PING | PONG);
    if first & 0x70 != 0 || second & 0x80 == 0 || !is_known {
        return Err(ProtocolError);
    }
    let (length_bytes, short) = match second & 0x7f {
        126 => (2, 0),
        127 => (8, 0),
        short => (0, u64::from(short)),
    };
    if is_control && (length_bytes > 0 || first & 0x80 == 0 || short > CONTROL_BYTES_MAX) {
        return Err(ProtocolError);
    }
    let Some((length, mask)) = rest.split_at_checked(length_bytes) else {
        return Ok(None);
    };
    let Ok(mask) = <[u8; 4]>::try_from(mask) else {
        return Ok(None);
    };
    let left = length.iter().fold(short, |length, &byte| length << 8 | u64::from(byte));
    if left > i64::MAX as u64 {
        return Err(ProtocolError);
    }
    Ok(Some(Frame { first, left, mask }))
}

impl Frame {
    fn opcode(self) -> u8 {
        self.first & 0x0f
    }

    /// The head of the frame that answers it; a pong needs no answer.
    fn push_head(self, out: &mut Vec<u8>) {
        let first = match self.opcode() {
            PONG => return,
            PING => 0x80 | PONG,
            _ => self.first,
        };
        out.push(first);
        match self.left {
            short @ 0..=125 => out.push(short as u8),
            medium @ 126..=0xffff => {
                out.push(126);
                out.extend_from_slice(&(medium as u16).to_be_bytes());
            }
            long => {
                out.push(127);
                out.extend_from_slice(&long.to_be_bytes());
            }
        }
    }

    /// Appends the payload without its mask, and turns the mask to where the next
    /// piece begins.
    fn unmask(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.left -= payload.len() as u64;
        if self.opcode() == PONG {
            return;
        }
        let from = out.len();
        out.extend_from_slice(payload);
        for four in out.get_mut(from..).unwrap_or_default().chunks_mut(4) {
            for (byte, mask) in four.iter_mut().zip(self.mask) {
                *byte ^= mask;
            }
        }
        self.mask.rotate_left(payload.len() % 4);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![first];
        match payload.len() {
            short @ 0..=125 => frame.push(0x80 | short as u8),
            medium @ 126..=0xffff => {
                frame.push(0x80 | 126);
                frame.extend_from_slice(&(medium as u16).to_be_bytes());
            }
            long => {
                frame.push(0x80 | 127);
                frame.extend_from_slice(&(long as u64).to_be_bytes());
            }
        }
        frame.extend_from_slice(&mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    fn check(input: &[u8], expect: &[u8], expect_end: Result<bool, ProtocolError>) {
        for step in [1, 3, 7, input.len()] {
            let (mut echo, mut out, mut end) = (Echo::default(), Vec::new(), Ok(false));
            for piece in input.chunks(step) {
                end = echo.feed(piece, &mut out);
                if end != Ok(false) {
                    break;
                }
            }
            assert_eq!((out.as_slice(), end), (expect, expect_end), "in steps of {step}");
        }
    }

    #[test]
    fn the_rfcs_own_example_of_a_key() {
        assert_eq!(accept(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn base64_of_the_rfcs_examples() {
        for (plain, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64(plain.as_bytes()), text);
        }
    }

    #[test]
    fn data_comes_back_unmasked() {
        let mut both = masked(0x81, b"hello");
        both.extend(masked(0x82, b""));
        check(&both, b"\x81\x05hello\x82\x00", Ok(false));
    }

    #[test]
    fn lengths_of_all_three_forms() {
        for (len, head) in
            [(125, vec![0x82, 125]), (126, vec![0x82, 126, 0, 126]), (65_536, vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0])]
        {
            let payload: Vec<u8> = (0..len).map(|n: u32| n as u8).collect();
            let mut expect = head;
            expect.extend_from_slice(&payload);
            check(&masked(0x82, &payload), &expect, Ok(false));
        }
    }

    #[test]
    fn control_frames() {
        let mut input = masked(0x01, b"a");
        input.extend(masked(0x89, b"ping"));
        input.extend(masked(0x8a, b"pong"));
        input.extend(masked(0x80, b"b"));
        input.extend(masked(0x88, b"\x03\xe8"));
        check(&input, b"\x01\x01a\x8a\x04ping\x80\x01b\x88\x02\x03\xe8", Ok(true));
    }

    #[test]
    fn broken_frames_are_refused() {
        let not_masked: &[u8] = b"\x81\x05hello";
        let reserved_bit: &[u8] = b"\xc1\x80";
        let reserved_opcode: &[u8] = b"\x83\x80";
        let long_ping: &[u8] = b"\x89\xfe\x00\x80";
        let fragmented_close: &[u8] = b"\x08\x80";
        let beyond_63_bits: &[u8] = b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00";
        for input in [not_masked, reserved_bit, reserved_opcode, long_ping, fragmented_close, beyond_63_bits] {
            check(input, b"", Err(ProtocolError));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_in_any_pieces_mean_the_same(bytes: Vec<u8>, payload: Vec<u8>, step in 1usize..20) {
            let input = [masked(0x82, &payload), bytes].concat();
            let (mut whole, mut whole_out) = (Echo::default(), Vec::new());
            let whole_end = whole.feed(&input, &mut whole_out);
            let (mut pieces, mut out, mut end) = (Echo::default(), Vec::new(), Ok(false));
            for piece in input.chunks(step) {
                end = pieces.feed(piece, &mut out);
                if end != Ok(false) {
                    break;
                }
            }
            assert_eq!((out, end), (whole_out, whole_end));
        }
    }
}
