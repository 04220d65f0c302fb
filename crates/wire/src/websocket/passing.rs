//! Reports frames while they pass: it keeps, changes and delays no byte of them.
//!
//! A relay uses it to count the messages of a connection. The peers themselves check the rules of the RFC, so this
//! module checks little. Invariant: the reports do not depend on how the bytes are split into pieces.

use super::opcode::Opcode;

/// One direction of a connection; 16 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passing {
    /// Bytes of payload that are still to come; while the head is read, the known part of that number.
    left: u64,
    /// The frame's mask; then, byte by byte, the unmasked payload.
    first: [u8; NOTED_BYTES],
    /// FIN, whether it is masked, whether it is compressed, and the opcode.
    kind: u8,
    stage: Stage,
}

/// An event of the passing frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The last frame of a message begins. If the message is one byte of text, this is the byte.
    Message(Option<u8>),
    /// A ping, with a mark to recognise its pong.
    Ping(Mark),
    /// A pong.
    Pong(Mark),
    /// A close and its code, if it has one.
    Close(Option<u16>),
    /// No frame can begin like this: nothing more will be reported.
    Lost,
}

/// The beginning of a payload and its length: enough to distinguish a ping from the one before, if they differ in
/// these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// Its length; a length above that of a control frame becomes [`u8::MAX`].
    pub bytes: u8,
    /// Its first bytes, unmasked; zero if there are fewer.
    pub first: [u8; NOTED_BYTES],
}

/// Bytes of a control frame's payload that are read.
const NOTED_BYTES: usize = 4;

const LAST: u8 = 0x80;
const COMPRESSED: u8 = 0x40;
const MASKED: u8 = 0x10;
const OPCODE: u8 = 0x0f;

/// The meaning of the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    First,
    Second,
    /// This many bytes of the length are still to come.
    Length(u8),
    /// This many bytes of the mask are still to come.
    Mask(u8),
    /// A byte of the payload that is read: its number.
    Note(u8),
    Payload,
    Lost,
}

impl Passing {
    /// Takes the next bytes.
    #[inline]
    pub fn take(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Seen)) {
        loop {
            let here = usize::try_from(self.unread()).unwrap_or(usize::MAX).min(bytes.len());
            self.skip(here as u64);
            bytes = bytes.get(here..).unwrap_or_default();
            let Some((&byte, rest)) = bytes.split_first() else { return };
            bytes = rest;
            if let Some(seen) = self.step(byte) {
                tell(seen);
            }
            if self.stage == Stage::Lost {
                return;
            }
        }
    }

    /// How many of the next bytes report nothing: the rest of a payload, or all after [`Seen::Lost`].
    pub fn unread(&self) -> u64 {
        match self.stage {
            Stage::Payload => self.left,
            Stage::Lost => u64::MAX,
            _ => 0,
        }
    }

    /// Takes so many of these bytes, which the caller need not have.
    pub fn skip(&mut self, count: u64) {
        if self.stage == Stage::Payload {
            self.left = self.left.saturating_sub(count);
            if self.left == 0 {
                self.stage = Stage::First;
            }
        }
    }

    fn step(&mut self, byte: u8) -> Option<Seen> {
        match self.stage {
            Stage::First => {
                if Opcode::of(byte & OPCODE).is_none() {
                    return self.lose();
                }
                (self.kind, self.stage) = (byte & (LAST | COMPRESSED | OPCODE), Stage::Second);
            }
            Stage::Second => {
                if byte & 0x80 != 0 {
                    self.kind |= MASKED;
                }
                (self.left, self.first) = (0, [0; NOTED_BYTES]);
                match byte & 0x7f {
                    126 => self.stage = Stage::Length(2),
                    127 => self.stage = Stage::Length(8),
                    short => {
                        self.left = u64::from(short);
                        return self.after_length();
                    }
                }
            }
            Stage::Length(left) => {
                self.left = self.left << 8 | u64::from(byte);
                if left > 1 {
                    self.stage = Stage::Length(left - 1);
                } else if self.left > i64::MAX as u64 {
                    return self.lose();
                } else {
                    return self.after_length();
                }
            }
            Stage::Mask(left) => {
                if let Some(place) = self.first.get_mut(NOTED_BYTES.saturating_sub(usize::from(left))) {
                    *place = byte;
                }
                if left <= 1 {
                    return self.begin();
                }
                self.stage = Stage::Mask(left - 1);
            }
            Stage::Note(at) => {
                if let Some(place) = self.first.get_mut(usize::from(at)) {
                    *place ^= byte;
                }
                self.stage = Stage::Note(at + 1);
                if usize::from(at) + 1 >= self.noted() {
                    let seen = self.tell();
                    self.left = self.left.saturating_sub(u64::from(at) + 1);
                    self.stage = Stage::Payload;
                    return seen;
                }
            }
            // `take` skips a payload itself, and passes no bytes here in the state `Lost`.
            Stage::Payload | Stage::Lost => {}
        }
        None
    }

    fn lose(&mut self) -> Option<Seen> {
        self.stage = Stage::Lost;
        Some(Seen::Lost)
    }

    fn after_length(&mut self) -> Option<Seen> {
        if self.kind & MASKED != 0 {
            self.stage = Stage::Mask(NOTED_BYTES as u8);
            return None;
        }
        self.begin()
    }

    /// The head is complete.
    fn begin(&mut self) -> Option<Seen> {
        let is_looked_at = self.is_control() || self.is_one_byte_of_text();
        if is_looked_at && self.left > 0 {
            self.stage = Stage::Note(0);
            return None;
        }
        self.stage = Stage::Payload;
        self.tell()
    }

    fn tell(&self) -> Option<Seen> {
        match Opcode::of(self.kind & OPCODE)? {
            Opcode::Continuation | Opcode::Text | Opcode::Binary if self.kind & LAST == 0 => None,
            Opcode::Text if self.is_one_byte_of_text() => Some(Seen::Message(Some(self.first[0]))),
            Opcode::Continuation | Opcode::Text | Opcode::Binary => Some(Seen::Message(None)),
            Opcode::Close => {
                Some(Seen::Close((self.left >= 2).then(|| u16::from_be_bytes([self.first[0], self.first[1]]))))
            }
            Opcode::Ping => Some(Seen::Ping(self.mark())),
            Opcode::Pong => Some(Seen::Pong(self.mark())),
        }
    }

    fn mark(&self) -> Mark {
        let mut first = self.first;
        // After the payload's bytes, the array still contains the mask.
        first.iter_mut().skip(self.noted()).for_each(|byte| *byte = 0);
        Mark { bytes: u8::try_from(self.left).unwrap_or(u8::MAX), first }
    }

    fn noted(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(NOTED_BYTES)
    }

    fn is_control(&self) -> bool {
        self.kind & 8 != 0
    }

    fn is_one_byte_of_text(&self) -> bool {
        self.left == 1 && self.kind & !MASKED == LAST | Opcode::Text as u8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{FrameHead, Mask};
    use super::*;

    fn frame(opcode: Opcode, is_last: bool, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let payload_bytes = payload.len() as u64;
        FrameHead { is_last, is_compressed: false, opcode, mask, payload_bytes }.push(&mut out);
        let from = out.len();
        out.extend_from_slice(payload);
        Mask::new(mask.unwrap_or_default()).apply(&mut out[from..]);
        out
    }

    fn seen(bytes: &[u8], step: usize) -> Vec<Seen> {
        let (mut passing, mut all) = (Passing::default(), Vec::new());
        for piece in bytes.chunks(step) {
            passing.take(piece, |seen| all.push(seen));
        }
        all
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<Passing>(), 16);
    }

    #[test]
    fn what_passes_is_told_however_it_is_cut() {
        let mask = Some([9, 8, 7, 6]);
        let long = vec![b'x'; 70_000];
        let frames = [
            frame(Opcode::Text, true, mask, b"hello"),
            frame(Opcode::Binary, false, mask, &long),
            frame(Opcode::Ping, true, mask, b""),
            frame(Opcode::Continuation, false, mask, b""),
            frame(Opcode::Pong, true, mask, b"ab"),
            frame(Opcode::Continuation, true, mask, &long[..300]),
            frame(Opcode::Text, true, mask, b"3"),
            frame(Opcode::Text, true, None, b"2"),
            frame(Opcode::Text, false, None, b"2"),
            frame(Opcode::Continuation, true, None, b""),
            frame(Opcode::Ping, true, None, b"abcdefg"),
            frame(Opcode::Close, true, None, b""),
            frame(Opcode::Close, true, mask, b"\x03\xe9going away"),
        ];
        let expect = [
            Seen::Message(None),
            Seen::Ping(Mark::default()),
            Seen::Pong(Mark { bytes: 2, first: *b"ab\0\0" }),
            Seen::Message(None),
            Seen::Message(Some(b'3')),
            Seen::Message(Some(b'2')),
            Seen::Message(None),
            Seen::Ping(Mark { bytes: 7, first: *b"abcd" }),
            Seen::Close(None),
            Seen::Close(Some(1001)),
        ];
        let bytes = frames.concat();
        for step in [1, 2, 3, 5, 7, 13, 1000, bytes.len()] {
            assert_eq!(seen(&bytes, step), expect, "in pieces of {step}");
        }
    }

    #[test]
    fn what_is_no_frame_is_told_once() {
        assert_eq!(seen(b"\x83\x00\x81\x00", 1), [Seen::Lost]);
        assert_eq!(seen(b"\x82\x7f\xff\0\0\0\0\0\0\0more", 3), [Seen::Lost]);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(bytes: Vec<u8>, step in 1usize..20) {
            prop_assert_eq!(seen(&bytes, step), seen(&bytes, usize::MAX));
        }

        #[test]
        fn unread_bytes_make_no_difference(bytes: Vec<u8>, step in 1usize..20) {
            let (mut passing, mut all, mut rest) = (Passing::default(), Vec::new(), &bytes[..]);
            while !rest.is_empty() {
                let unread = usize::try_from(passing.unread()).unwrap_or(usize::MAX);
                let (piece, after) = rest.split_at(step.min(rest.len()));
                rest = after;
                match unread >= piece.len() {
                    true => passing.skip(piece.len() as u64),
                    false => passing.take(piece, |seen| all.push(seen)),
                }
            }
            prop_assert_eq!(all, seen(&bytes, usize::MAX));
        }
    }
}
