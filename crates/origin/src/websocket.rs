//! The WebSocket echo (RFC 6455): every data frame comes back unchanged and unmasked.
//!
//! Frames are echoed while they arrive, so their length needs no limit. Pings are answered, and a close is returned.
//! No extension is accepted. Text is not checked for UTF-8, because the origin does not use it.

use std::io;
use std::time::Duration;

use weir_net::buffer;
use weir_wire::encode::{CRLF, push_field, push_status_line};
use weir_wire::websocket::{FRAME_HEAD_BYTES_MAX, FrameHead, FrameSender, Mask, Opcode, Violation};

use crate::add;
use crate::connection::{Connection, NextStep};
use crate::offer::Offer;

/// An idle WebSocket is closed after this time.
const IDLE: Duration = Duration::from_secs(3600);
/// A close frame with status 1002, protocol error.
const CLOSE_PROTOCOL_ERROR: [u8; 4] = [0x88, 2, 0x03, 0xea];

impl Connection<'_> {
    /// Accepts, then echoes until either side closes.
    pub(super) async fn websocket(&mut self, offer: &Offer) -> io::Result<NextStep> {
        add(&self.tally.websockets, 1);
        let mut out = Vec::new();
        push_status_line(&mut out, b"101 Switching Protocols");
        push_field(&mut out, b"Upgrade", b"websocket");
        push_field(&mut out, b"Connection", b"Upgrade");
        push_field(&mut out, b"Sec-WebSocket-Accept", &offer.accept);
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
                    return Ok(NextStep::Close);
                }
            }
            let mut out = buffer::lease(self.unread().len() + FRAME_HEAD_BYTES_MAX);
            let ends = echo.feed(self.unread(), &mut out);
            self.consume(self.unread().len());
            add(&self.tally.frames, std::mem::take(&mut echo.frames));
            if ends.is_err() {
                out.extend_from_slice(&CLOSE_PROTOCOL_ERROR);
            }
            self.send(&out, 0, b"").await?;
            if ends != Ok(false) {
                return Ok(NextStep::Close);
            }
        }
    }
}

/// Turns client frames into server frames.
#[derive(Default)]
struct Echo {
    /// The bytes of an incomplete frame head.
    head: Vec<u8>,
    /// The frame with the payload that is being read.
    frame: Option<Frame>,
    /// Data frames and pings answered since the last check.
    frames: u64,
}

#[derive(Clone, Copy)]
struct Frame {
    opcode: Opcode,
    mask: Mask,
    left: u64,
}

impl Echo {
    /// Appends the answer to `input`. True after the client's close frame.
    fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<bool, Violation> {
        loop {
            let mut frame = match self.frame.take() {
                Some(frame) => frame,
                None => {
                    let Some(head) = self.next_head(&mut input)? else {
                        return Ok(false);
                    };
                    begin(head, out)
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
            match frame.opcode {
                Opcode::Close => return Ok(true),
                Opcode::Pong => {}
                _ => self.frames += 1,
            }
        }
    }

    /// The head of the next frame, once it is complete.
    fn next_head(&mut self, input: &mut &[u8]) -> Result<Option<FrameHead>, Violation> {
        while let Some((&byte, rest)) = input.split_first() {
            *input = rest;
            self.head.push(byte);
            if let Some((head, _)) = FrameHead::parse(&self.head, FrameSender::Client, false)? {
                self.head.clear();
                return Ok(Some(head));
            }
        }
        Ok(None)
    }
}

/// Appends the head of the answering frame. A pong needs no answer.
fn begin(head: FrameHead, out: &mut Vec<u8>) -> Frame {
    match head.opcode {
        Opcode::Pong => {}
        Opcode::Ping => FrameHead { opcode: Opcode::Pong, mask: None, ..head }.push(out),
        _ => FrameHead { mask: None, ..head }.push(out),
    }
    Frame { opcode: head.opcode, mask: Mask::new(head.mask.unwrap_or_default()), left: head.payload_bytes }
}

impl Frame {
    /// Appends the payload without its mask, and rotates the mask to the start of the next piece.
    fn unmask(&mut self, payload: &[u8], out: &mut Vec<u8>) {
        self.left -= payload.len() as u64;
        if self.opcode == Opcode::Pong {
            return;
        }
        let from = out.len();
        out.extend_from_slice(payload);
        self.mask.apply(out.get_mut(from..).unwrap_or_default());
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

    fn check(input: &[u8], expect: &[u8], expect_end: Result<bool, Violation>) {
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
        check(b"\x81\x05hello", b"", Err(Violation::NotMasked));
        check(b"\xc1\x80", b"", Err(Violation::ReservedBit));
        check(b"\x89\xfe\x00\x80", b"", Err(Violation::LongControl));
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
