//! Reads the peer's decoder stream (RFC 9204 §4.4).

use crate::h3::{H3Code, H3Fault};

/// Bytes of an integer of 62 bits after its first byte, at most.
const MORE_BYTES_MAX: u8 = 9;

/// The reader. [`super::QpackEncoder`] makes no entries, so there is nothing that the peer could acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerAcks {
    /// Within a Stream Cancellation: the bytes after its first.
    more: Option<u8>,
}

impl PeerAcks {
    /// Takes bytes of the stream; returns the number of whole instructions.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, H3Fault> {
        let wrong = |what| H3Fault::connection(H3Code::QpackDecoderStream, what);
        let mut done = 0;
        for &byte in bytes {
            let is_last = match (self.more, byte) {
                (None, 0x80..) => return Err(wrong("an acknowledgment of a section without references")),
                (None, ..0x40) => return Err(wrong("an increment for entries that do not exist")),
                (None, 0x7f) | (Some(_), 0x80..) => false,
                (None, _) | (Some(_), _) => true,
            };
            self.more = if is_last { None } else { Some(self.more.map_or(0, |more| more + 1)) };
            done += usize::from(is_last);
            if self.more.is_some_and(|more| more >= MORE_BYTES_MAX) {
                return Err(wrong("an integer that is too large"));
            }
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellations_are_read_and_nothing_else_can_be_right() {
        let mut acks = PeerAcks::default();
        assert_eq!(acks.take(&[0x40, 0x44, 0x7f]), Ok(2));
        assert_eq!(acks.take(&[0x81]), Ok(0));
        assert_eq!(acks.take(&[0x00, 0x7f, 0x80, 0]), Ok(2));
        let long = [[0x7f].as_slice(), &[0x80; 9]].concat();
        for bytes in [&[0x84][..], &[0x00], &[0x01], &long] {
            let fault = PeerAcks::default().take(bytes).err();
            assert_eq!(fault.map(|fault| (fault.stream, fault.code)), Some((None, H3Code::QpackDecoderStream)));
        }
    }
}
