//! Frames (RFC 9114 §7, RFC 9218 §7.2) and the types of unidirectional streams (RFC 9114 §6.2).

use super::varint::{self, VARINT_BYTES_MAX};
use super::{H3Code, H3Fault};

/// The head of a frame, at most: its type and its length.
pub const HEAD_BYTES_MAX: usize = 2 * VARINT_BYTES_MAX;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum H3Kind {
    /// A piece of a body.
    Data,
    /// A field section.
    Headers,
    /// A push is not wanted.
    CancelPush,
    /// The limits of its sender.
    Settings,
    /// A request that the server makes itself.
    PushPromise,
    /// No new requests may begin.
    GoAway,
    /// How many pushes the server may promise.
    MaxPushId,
    /// The priority of a request (RFC 9218 §7.2).
    PriorityUpdate,
    /// The priority of a push.
    PushPriorityUpdate,
    /// A kind of HTTP/2 that has no meaning here and is an error (RFC 9114 §7.2.8).
    Forbidden,
    /// An unknown kind, which is ignored (RFC 9114 §9).
    Other,
}

impl H3Kind {
    fn of(number: u64) -> H3Kind {
        match number {
            0 => H3Kind::Data,
            1 => H3Kind::Headers,
            3 => H3Kind::CancelPush,
            4 => H3Kind::Settings,
            5 => H3Kind::PushPromise,
            7 => H3Kind::GoAway,
            0xd => H3Kind::MaxPushId,
            0xf_0700 => H3Kind::PriorityUpdate,
            0xf_0701 => H3Kind::PushPriorityUpdate,
            2 | 6 | 8 | 9 => H3Kind::Forbidden,
            _ => H3Kind::Other,
        }
    }

    fn number(self) -> u64 {
        match self {
            H3Kind::Data => 0,
            H3Kind::Headers => 1,
            H3Kind::CancelPush => 3,
            H3Kind::Settings => 4,
            H3Kind::PushPromise => 5,
            H3Kind::GoAway => 7,
            H3Kind::MaxPushId => 0xd,
            H3Kind::PriorityUpdate => 0xf_0700,
            H3Kind::PushPriorityUpdate => 0xf_0701,
            H3Kind::Forbidden => 2,
            H3Kind::Other => GREASE,
        }
    }
}

/// A number of the form `0x1f * N + 0x21`, which is reserved for frames, settings, streams and errors that mean nothing
/// (RFC 9114 §7.2.8).
pub const GREASE: u64 = 0x1f * 27 + 0x21;

/// The bytes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H3FrameHead {
    /// The kind.
    pub kind: H3Kind,
    /// The length of the payload, in bytes.
    pub length: u64,
}

impl H3FrameHead {
    /// Reads the head at the beginning of a buffer; returns it and its length. `None` while it is not complete.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<(H3FrameHead, usize)> {
        let (kind, first) = varint::read(bytes)?;
        let (length, second) = varint::read(bytes.get(first..)?)?;
        Some((H3FrameHead { kind: H3Kind::of(kind), length }, first + second))
    }

    /// Appends it.
    pub fn push(self, out: &mut Vec<u8>) {
        varint::push(self.kind.number(), out);
        varint::push(self.length, out);
    }
}

/// Reads the frames of one stream, whose bytes arrive in any pieces.
///
/// [`FrameReader::head`] comes first, then one of the others until the payload has ended. Only [`FrameReader::keep`]
/// allocates.
#[derive(Debug, Default)]
pub struct FrameReader {
    /// The beginning of a head.
    held: [u8; HEAD_BYTES_MAX],
    held_bytes: u8,
    /// Bytes of the payload that have not come.
    left: u64,
    kept: Vec<u8>,
}

impl FrameReader {
    /// Reads a frame's head; `used` bytes of the input belong to it.
    pub fn head(&mut self, input: &[u8]) -> (usize, Option<H3FrameHead>) {
        let before = usize::from(self.held_bytes);
        if before == 0
            && let Some((head, used)) = H3FrameHead::read(input)
        {
            self.left = head.length;
            return (used, Some(head));
        }
        let room = self.held.get_mut(before..).unwrap_or_default();
        let fits = room.len().min(input.len());
        room.iter_mut().zip(input).for_each(|(place, byte)| *place = *byte);
        match self.held.get(..before + fits).and_then(H3FrameHead::read) {
            Some((head, length)) => {
                (self.held_bytes, self.left) = (0, head.length);
                (length - before, Some(head))
            }
            // A head is complete after 16 bytes.
            None => {
                self.held_bytes = (before + fits) as u8;
                (fits, None)
            }
        }
    }

    /// The length of the next piece of the payload: it may be passed on or left out.
    pub fn pass(&mut self, input: &[u8]) -> usize {
        let piece = usize::try_from(self.left).unwrap_or(usize::MAX).min(input.len());
        self.left -= piece as u64;
        piece
    }

    /// The whole payload, when it has come; `used` bytes of the input belong to it. The caller has checked its length.
    pub fn keep<'a>(&'a mut self, input: &'a [u8]) -> (usize, Option<&'a [u8]>) {
        let used = self.pass(input);
        let piece = input.get(..used).unwrap_or_default();
        if self.kept.is_empty() && self.left == 0 {
            return (used, Some(piece));
        }
        self.kept.extend_from_slice(piece);
        (used, (self.left == 0).then_some(&self.kept))
    }

    /// Keeps a payload that [`FrameReader::keep`] returned from the input.
    pub fn hold(&mut self, payload: &[u8]) {
        if self.kept.is_empty() {
            self.kept.extend_from_slice(payload);
        }
    }

    /// The kept payload; the reader has none any more.
    pub fn take_kept(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    /// Whether a payload has ended.
    pub fn is_payload_over(&self) -> bool {
        self.left == 0
    }

    /// Whether a frame's head has begun but not ended.
    pub fn is_in_head(&self) -> bool {
        self.held_bytes > 0
    }
}

/// The type of a unidirectional stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniKind {
    /// SETTINGS, and frames about the connection.
    Control,
    /// An answer to a request that the server made itself.
    Push,
    /// Instructions for our QPACK decoder (RFC 9204 §4.2).
    Encoder,
    /// Acknowledgments for our QPACK encoder.
    Decoder,
    /// An unknown type.
    Other,
}

impl UniKind {
    /// Its meaning.
    pub fn of(number: u64) -> UniKind {
        match number {
            0 => UniKind::Control,
            1 => UniKind::Push,
            2 => UniKind::Encoder,
            3 => UniKind::Decoder,
            _ => UniKind::Other,
        }
    }
}

/// The integers of a payload that has nothing but them (RFC 9114 §7.1).
pub fn integers<const COUNT: usize>(payload: &[u8]) -> Result<[u64; COUNT], H3Fault> {
    let (mut found, mut rest) = ([0; COUNT], payload);
    for place in &mut found {
        *place = integer(&mut rest)?;
    }
    if rest.is_empty() {
        Ok(found)
    } else {
        Err(H3Fault::connection(H3Code::Frame, "a payload longer than its fields"))
    }
}

/// The next integer of a payload.
pub fn integer(rest: &mut &[u8]) -> Result<u64, H3Fault> {
    let cut = H3Fault::connection(H3Code::Frame, "a payload shorter than its fields");
    let (value, used) = varint::read(rest).ok_or(cut)?;
    *rest = rest.get(used..).unwrap_or_default();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_in_any_pieces() {
        let rows: [(&[u8], H3Kind, u64); 6] = [
            (&[0, 5], H3Kind::Data, 5),
            (&[0x40, 1, 0x40, 5], H3Kind::Headers, 5),
            (&[0xc0, 0, 0, 0, 0, 0, 0, 7, 0xc0, 0, 0, 0, 0, 0, 0, 1], H3Kind::GoAway, 1),
            (&[0x80, 0x0f, 0x07, 0x00, 4], H3Kind::PriorityUpdate, 4),
            (&[0x21, 0x80, 1, 0, 0], H3Kind::Other, 65_536),
            (&[9, 0], H3Kind::Forbidden, 0),
        ];
        for (bytes, kind, length) in rows {
            for split in 0..=bytes.len() {
                let mut reader = FrameReader::default();
                let (head, tail) = bytes.split_at(split);
                let tail = [tail, &[0xff; 20]].concat();
                let (used, found) = reader.head(head);
                assert_eq!(used, split);
                let (used, found) = if found.is_some() { (0, found) } else { reader.head(&tail) };
                assert_eq!(
                    (used + split, found),
                    (bytes.len(), Some(H3FrameHead { kind, length })),
                    "{kind:?} {split}"
                );
                assert!(!reader.is_in_head());
            }
        }
    }

    #[test]
    fn a_payload_is_kept_only_if_it_comes_in_pieces() {
        let mut reader = FrameReader::default();
        assert_eq!(reader.head(&[1, 4]).0, 2);
        assert_eq!(reader.keep(b"abcdef"), (4, Some(&b"abcd"[..])));
        assert_eq!((reader.take_kept(), reader.is_payload_over()), (Vec::new(), true));
        reader.head(&[1, 4]);
        assert_eq!(reader.keep(b"a"), (1, None));
        assert_eq!(reader.keep(b""), (0, None));
        assert_eq!(reader.keep(b"bcdef"), (3, Some(&b"abcd"[..])));
        assert_eq!(reader.take_kept(), b"abcd");
        reader.head(&[0, 4]);
        assert_eq!((reader.pass(b"abc"), reader.pass(b"de"), reader.pass(b"e")), (3, 1, 0));
    }

    #[test]
    fn a_payload_of_integers_has_nothing_else() {
        assert_eq!(integers::<1>(&[0x40, 0x25]), Ok([37]));
        for payload in [&[][..], &[0x40], &[1, 2]] {
            assert_eq!(
                integers::<1>(payload).err().map(|fault| (fault.stream, fault.code)),
                Some((None, H3Code::Frame))
            );
        }
    }
}
