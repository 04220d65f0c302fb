//! The head of a frame, and its mask (RFC 6455 §5.2, §5.3).

use super::opcode::{CONTROL_BYTES_MAX, Opcode};
use super::violation::Violation;

/// The longest frame head: two bytes, eight of length, four of mask.
pub const FRAME_HEAD_BYTES_MAX: usize = 14;

/// The sender of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSender {
    /// Its frames are masked.
    Client,
    /// Its frames are not.
    Server,
}

/// The content of a frame's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// The last frame of its message.
    pub is_last: bool,
    /// RSV1: the message is compressed (RFC 7692 §6).
    pub is_compressed: bool,
    /// The kind of its content.
    pub opcode: Opcode,
    /// The mask of its payload.
    pub mask: Option<[u8; 4]>,
    /// Bytes of payload, below 2^63.
    pub payload_bytes: u64,
}

impl FrameHead {
    /// Reads a head at the beginning of `bytes`, with its length; `None` if it is not complete.
    ///
    /// `from` is the sender; `compresses` is true if permessage-deflate was agreed.
    pub fn parse(bytes: &[u8], from: FrameSender, compresses: bool) -> Result<Option<(FrameHead, usize)>, Violation> {
        let &[first, second, ref rest @ ..] = bytes else {
            return Ok(None);
        };
        let opcode = opcode(first, compresses)?;
        let is_masked = second & 0x80 != 0;
        match from {
            FrameSender::Client if !is_masked => return Err(Violation::NotMasked),
            FrameSender::Server if is_masked => return Err(Violation::Masked),
            _ => {}
        }
        let is_last = first & 0x80 != 0;
        let (length_len, short) = match second & 0x7f {
            126 => (2, 0),
            127 => (8, 0),
            short => (0, u64::from(short)),
        };
        if opcode.is_control() && !is_last {
            return Err(Violation::FragmentedControl);
        }
        if opcode.is_control() && (length_len > 0 || short > CONTROL_BYTES_MAX as u64) {
            return Err(Violation::LongControl);
        }
        let Some((length, rest)) = rest.split_at_checked(length_len) else {
            return Ok(None);
        };
        let payload_bytes = length.iter().fold(short, |length, &byte| length << 8 | u64::from(byte));
        match length_len {
            2 if payload_bytes < 126 => return Err(Violation::LengthNotMinimal),
            8 if payload_bytes > i64::MAX as u64 => return Err(Violation::LengthTooLarge),
            8 if payload_bytes <= 0xffff => return Err(Violation::LengthNotMinimal),
            _ => {}
        }
        let mut mask = None;
        if is_masked {
            let Some((bytes, _)) = rest.split_first_chunk::<4>() else {
                return Ok(None);
            };
            mask = Some(*bytes);
        }
        let head = FrameHead { is_last, is_compressed: first & 0x40 != 0, opcode, mask, payload_bytes };
        Ok(Some((head, 2 + length_len + if is_masked { 4 } else { 0 })))
    }

    /// Appends the head, with the length in the fewest bytes.
    pub fn push(self, out: &mut Vec<u8>) {
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        out.push(bit(self.is_last, 0x80) | bit(self.is_compressed, 0x40) | self.opcode as u8);
        let masked = bit(self.mask.is_some(), 0x80);
        match self.payload_bytes {
            short @ 0..=125 => out.push(masked | short as u8),
            medium @ 126..=0xffff => {
                out.push(masked | 126);
                out.extend_from_slice(&(medium as u16).to_be_bytes());
            }
            long => {
                out.push(masked | 127);
                out.extend_from_slice(&long.to_be_bytes());
            }
        }
        out.extend_from_slice(self.mask.as_ref().map_or(&[][..], |mask| mask));
    }
}

fn opcode(first: u8, compresses: bool) -> Result<Opcode, Violation> {
    if first & 0x30 != 0 || (first & 0x40 != 0 && !compresses) {
        return Err(Violation::ReservedBit);
    }
    let opcode = Opcode::of(first & 0x0f).ok_or(Violation::ReservedOpcode)?;
    if first & 0x40 != 0 && !matches!(opcode, Opcode::Text | Opcode::Binary) {
        return Err(Violation::CompressedControl);
    }
    Ok(opcode)
}

/// A mask, and the position of the next byte in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mask([u8; 4]);

impl Mask {
    /// At the first byte of a payload.
    pub fn new(mask: [u8; 4]) -> Mask {
        Mask(mask)
    }

    /// Masks or unmasks the next bytes of a payload.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        // Both halves are the same, so it is the same in either byte order.
        let four = u64::from(u32::from_ne_bytes(self.0));
        let eight = four << 32 | four;
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            if let Ok(word) = <&mut [u8; 8]>::try_from(word) {
                *word = (u64::from_ne_bytes(*word) ^ eight).to_ne_bytes();
            }
        }
        let rest = words.into_remainder();
        for (byte, mask) in rest.iter_mut().zip(self.0.iter().cycle()) {
            *byte ^= mask;
        }
        self.0.rotate_left(rest.len() % 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_went() {
        for payload_bytes in [0, 1, 125, 126, 0xffff, 0x10000, i64::MAX as u64] {
            for (mask, from) in [(None, FrameSender::Server), (Some([1, 2, 3, 4]), FrameSender::Client)] {
                let head =
                    FrameHead { is_last: false, is_compressed: true, opcode: Opcode::Binary, mask, payload_bytes };
                let mut bytes = Vec::new();
                head.push(&mut bytes);
                assert!(bytes.len() <= FRAME_HEAD_BYTES_MAX);
                assert_eq!(FrameHead::parse(&bytes, from, true), Ok(Some((head, bytes.len()))));
                for cut in 0..bytes.len() {
                    assert_eq!(FrameHead::parse(&bytes[..cut], from, true), Ok(None), "{cut} of {bytes:?}");
                }
            }
        }
    }

    #[test]
    fn refusals() {
        let check = |bytes: &[u8], from, expect| assert_eq!(FrameHead::parse(bytes, from, false), Err(expect));
        check(&[0xc1, 0x80], FrameSender::Client, Violation::ReservedBit);
        check(&[0x83, 0x80], FrameSender::Client, Violation::ReservedOpcode);
        check(&[0x81, 0x05], FrameSender::Client, Violation::NotMasked);
        check(&[0x81, 0x85], FrameSender::Server, Violation::Masked);
        check(&[0x08, 0x80], FrameSender::Client, Violation::FragmentedControl);
        check(&[0x89, 0xfe], FrameSender::Client, Violation::LongControl);
        check(&[0x82, 0x7f, 0xff, 0, 0, 0, 0, 0, 0, 0], FrameSender::Server, Violation::LengthTooLarge);
        check(&[0x82, 0x7e, 0, 125], FrameSender::Server, Violation::LengthNotMinimal);
        check(&[0x82, 0x7f, 0, 0, 0, 0, 0, 0, 0xff, 0xff], FrameSender::Server, Violation::LengthNotMinimal);
        assert_eq!(FrameHead::parse(&[0xc9, 0], FrameSender::Server, true), Err(Violation::CompressedControl));
        assert_eq!(FrameHead::parse(&[0xc0, 0], FrameSender::Server, true), Err(Violation::CompressedControl));
    }

    proptest::proptest! {
        #[test]
        fn a_mask_in_pieces_is_the_mask(bytes: Vec<u8>, mask: [u8; 4], step in 1usize..30) {
            let expect: Vec<u8> = bytes.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            let (mut out, mut pieces) = (bytes, Mask::new(mask));
            for piece in out.chunks_mut(step) {
                pieces.apply(piece);
            }
            assert_eq!(out, expect);
        }
    }
}
