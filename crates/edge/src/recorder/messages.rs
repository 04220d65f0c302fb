//! The messages of a WebSocket, as they pass: `websocket=on`.
//!
//! The peers check the rules of RFC 6455, and weir changes no byte. If a frame cannot be read, no more messages of that
//! direction are recorded. Invariant: the memory of a direction is bounded by the largest body that is kept.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_http::exchange::Exchange;
use weir_net::clock;
use weir_recording::{LiveBody, LiveMessage};
use weir_wire::websocket::{FRAME_HEAD_BYTES_MAX, FrameHead, FrameSender, Mask, Opcode};

use super::noted::Noted;
use super::options::BODY_BYTES_MAX;
use super::worker::{self, RunHere};

/// The number of the newest WebSocket that is recorded.
static TUNNELS: AtomicU64 = AtomicU64::new(0);

/// Both directions of a WebSocket.
pub struct MessageTap {
    run: RunHere,
    tunnel: u64,
    keeps: bool,
    up: MessageSide,
    down: MessageSide,
}

/// One direction.
#[derive(Default)]
struct MessageSide {
    /// The beginning of a head that is not complete.
    head: Vec<u8>,
    /// Bytes of the frame's payload that are still to come.
    left: u64,
    /// The frame is a part of a message, and not a control frame.
    is_data: bool,
    is_last: bool,
    mask: Option<Mask>,
    message: Option<PassingMessage>,
    /// A frame could not be read.
    is_lost: bool,
}

/// A message that has begun.
struct PassingMessage {
    is_binary: bool,
    length: u64,
    /// Its bytes, if they are kept.
    bytes: Option<Vec<u8>>,
}

impl MessageTap {
    /// For an exchange that has become a WebSocket, if its messages are recorded.
    pub fn of(exchange: &mut Exchange<'_>) -> Option<Box<MessageTap>> {
        let place =
            crate::values(exchange.location).record.place.as_ref().filter(|place| place.options.has_messages)?;
        let run = worker::run_of(&place.recorder)?;
        let client = worker::client(exchange, place, &run);
        let tunnel = if client.is_some() { TUNNELS.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        exchange.own.set(Noted { run: run.number, client, answer: None, tunnel });
        client?;
        let keeps = place.options.has_bodies;
        Some(Box::new(MessageTap { run, tunnel, keeps, up: MessageSide::default(), down: MessageSide::default() }))
    }

    /// Whether nothing more is recorded.
    pub fn is_over(&self) -> bool {
        self.run.is_closing() || self.up.is_lost && self.down.is_lost
    }

    /// Reads bytes on their way.
    pub fn came(&mut self, is_of_client: bool, bytes: &[u8]) {
        let (side, from) =
            if is_of_client { (&mut self.up, FrameSender::Client) } else { (&mut self.down, FrameSender::Server) };
        let (run, tunnel) = (&self.run, self.tunnel);
        side.take(bytes, from, self.keeps, |message| {
            let content = LiveBody {
                length: message.length,
                hash: None,
                content_type: b"text/plain",
                kept: message.bytes.as_deref(),
            };
            let at_us = clock::now().us_since(run.begun);
            worker::put_message(
                run,
                &LiveMessage { at_us, tunnel, is_of_client, is_binary: message.is_binary, content },
            );
        });
    }
}

impl MessageSide {
    fn take(&mut self, mut bytes: &[u8], from: FrameSender, keeps: bool, mut tell: impl FnMut(&PassingMessage)) {
        while !bytes.is_empty() && !self.is_lost {
            if self.left > 0 {
                let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                let (payload, rest) = bytes.split_at(count);
                self.payload(payload);
                bytes = rest;
            } else {
                bytes = self.begin(bytes, from, keeps);
            }
            if self.left == 0
                && self.head.is_empty()
                && self.is_data
                && self.is_last
                && let Some(message) = self.message.take()
            {
                tell(&message);
            }
        }
    }

    /// Reads the head of a frame; returns the bytes behind it.
    fn begin<'b>(&mut self, bytes: &'b [u8], from: FrameSender, keeps: bool) -> &'b [u8] {
        let before = self.head.len();
        self.head.extend_from_slice(bytes.get(..FRAME_HEAD_BYTES_MAX.min(bytes.len())).unwrap_or_default());
        self.head.truncate(FRAME_HEAD_BYTES_MAX);
        let (head, length) = match FrameHead::parse(&self.head, from, true) {
            Ok(Some(found)) => found,
            Ok(None) => return &[],
            Err(_) => {
                self.is_lost = true;
                self.message = None;
                return &[];
            }
        };
        self.head.clear();
        self.left = head.payload_bytes;
        self.mask = head.mask.map(Mask::new);
        self.is_data = !head.opcode.is_control();
        self.is_last = head.is_last;
        if matches!(head.opcode, Opcode::Text | Opcode::Binary) {
            let is_binary = head.opcode == Opcode::Binary;
            // A compressed message would hide its secrets from the recorder.
            let is_kept = keeps && !is_binary && !head.is_compressed;
            self.message = Some(PassingMessage { is_binary, length: 0, bytes: is_kept.then(Vec::new) });
        }
        bytes.get(length.saturating_sub(before)..).unwrap_or_default()
    }

    fn payload(&mut self, payload: &[u8]) {
        self.left -= payload.len() as u64;
        let Some(message) = self.message.as_mut().filter(|_| self.is_data) else { return };
        message.length += payload.len() as u64;
        if message.length > BODY_BYTES_MAX {
            message.bytes = None;
        }
        if let Some(kept) = &mut message.bytes {
            let at = kept.len();
            kept.extend_from_slice(payload);
            if let (Some(mask), Some(new)) = (&mut self.mask, kept.get_mut(at..)) {
                mask.apply(new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use weir_wire::websocket::{push_frame, push_masked_frame};

    use super::*;

    /// Whether it is binary, its length, its bytes.
    type SeenMessage = (bool, u64, Option<Vec<u8>>);

    fn seen(bytes: &[u8], step: usize, from: FrameSender) -> (Vec<SeenMessage>, bool) {
        let (mut side, mut found) = (MessageSide::default(), Vec::new());
        for piece in bytes.chunks(step) {
            side.take(piece, from, true, |message| {
                found.push((message.is_binary, message.length, message.bytes.clone()));
            });
        }
        (found, side.is_lost)
    }

    #[test]
    fn messages_are_whole_however_they_are_cut() {
        let mut bytes = Vec::new();
        push_frame(&mut bytes, Opcode::Text, false, b"hello");
        push_frame(&mut bytes, Opcode::Ping, false, b"ping");
        push_frame(&mut bytes, Opcode::Text, false, b"");
        push_frame(&mut bytes, Opcode::Binary, false, &[0; 300]);
        push_frame(&mut bytes, Opcode::Text, true, b"deflated");
        // Two frames of one message, and a ping between them.
        bytes.extend_from_slice(&[0x01, 2, b'a', b'b']);
        push_frame(&mut bytes, Opcode::Ping, false, b"");
        bytes.extend_from_slice(&[0x80, 1, b'c']);
        let expected = [
            (false, 5, Some(b"hello".to_vec())),
            (false, 0, Some(Vec::new())),
            (true, 300, None),
            (false, 8, None),
            (false, 3, Some(b"abc".to_vec())),
        ];
        for step in [1, 2, 3, 7, 13, 64, 1000] {
            assert_eq!(seen(&bytes, step, FrameSender::Server), (expected.to_vec(), false), "{step}");
        }
    }

    #[test]
    fn a_mask_is_taken_away_and_garbage_ends_the_direction() {
        let mut bytes = Vec::new();
        push_masked_frame(&mut bytes, Opcode::Text, false, [1, 2, 3, 4], b"secret text");
        for step in [1, 3, 100] {
            let expected = vec![(false, 11, Some(b"secret text".to_vec()))];
            assert_eq!(seen(&bytes, step, FrameSender::Client), (expected, false), "{step}");
        }
        assert_eq!(seen(b"SSH-2.0-x", 1, FrameSender::Server), (Vec::new(), true));
        let large = vec![b'a'; BODY_BYTES_MAX as usize + 1];
        let mut bytes = Vec::new();
        push_frame(&mut bytes, Opcode::Text, false, &large);
        assert_eq!(seen(&bytes, 4096, FrameSender::Server), (vec![(false, BODY_BYTES_MAX + 1, None)], false));
    }
}
