//! The file format of an object: weir's own, not nginx's. Pure: bytes in, bytes out.
//!
//! ```text
//!    0  magic "weircach", version u16, soft-purged u8, 0
//!   12  crc32 of bytes 16..B, B u32 (where the body begins), crc32 of the body, length of the body u64
//!   32  purges u32, status u16, 0 u16, five times u64, flags u32
//!   84  lengths u32: key, vary, tags, head, shown part of head; range of ETag 2 x u32; Last-Modified i64
//!  120  variant 16 bytes, then key, vary, tags 8 bytes each, head, zeros up to B, body
//! ```
//!
//! Numbers are little-endian. The soft-purge mark is changed in place and is outside the checksum. A file that fails
//! the check is dropped; its bytes have no other effect.

use std::sync::Arc;

use super::label::{KEY_BYTES_MAX, Label, TAGS_MAX, Tag, VARY_BYTES_MAX, Variant};
use super::object::{StoredHead, Times};

const MAGIC: [u8; 8] = *b"weircach";

/// Raised with every change of the format; files of other versions are dropped.
const VERSION: u16 = 1;

/// The position of the soft-purge mark.
pub(super) const SOFT_AT: u64 = 10;

/// The length of the header before its texts.
pub(super) const FIXED_BYTES: usize = 136;

/// The longest stored head.
pub(super) const HEAD_BYTES_MAX: usize = 1 << 20;

/// The longest header.
const HEADER_BYTES_MAX: usize = FIXED_BYTES + KEY_BYTES_MAX + VARY_BYTES_MAX + TAGS_MAX * 8 + HEAD_BYTES_MAX + ROOM;

/// The length of a header is a multiple of this, so that a refreshed head usually fits in place of the old one.
const ROOM: usize = 256;

const NO_DATE: i64 = i64::MIN;

/// The content of a file except the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileRecord {
    pub label: Arc<Label>,
    pub head: StoredHead,
    pub times: Times,
    /// The number of purges that have been applied to it.
    pub purges: u32,
    pub soft_purged: bool,
    pub body_at: u64,
    pub body_len: u64,
    pub body_crc: u32,
}

/// Why a file is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corrupt {
    /// The file is shorter or longer than its header says.
    Length,
    /// Not a file of weir, or of another version.
    Form,
    /// The checksum of the header or of the body is wrong.
    Checksum,
    /// Impossible lengths.
    Bounds,
    /// The file has the name of another key.
    Name,
}

impl Corrupt {
    pub fn as_str(self) -> &'static str {
        match self {
            Corrupt::Length => "the file has the wrong length",
            Corrupt::Form => "another program, or another version of weir, wrote it",
            Corrupt::Checksum => "the checksum is wrong",
            Corrupt::Bounds => "a length in the file is out of bounds",
            Corrupt::Name => "its name belongs to another key",
        }
    }
}

/// The start of the body of such an object; it includes room for a longer head.
pub(super) fn header_len(label: &Label, head: &StoredHead) -> usize {
    let texts = label.key.len() + label.vary.len() + label.tags.len() * 8 + head.bytes.len();
    (FIXED_BYTES + texts).next_multiple_of(ROOM)
}

/// Encodes the header in `record.body_at` bytes. `None` if it does not fit, or is out of bounds.
pub(super) fn encode(record: &FileRecord) -> Option<Vec<u8>> {
    let (label, head, times) = (&record.label, &record.head, &record.times);
    let body_at = usize::try_from(record.body_at).ok()?;
    let is_bounded = label.key.len() <= KEY_BYTES_MAX
        && label.vary.len() <= VARY_BYTES_MAX
        && label.tags.len() <= TAGS_MAX
        && head.bytes.len() <= HEAD_BYTES_MAX;
    if !is_bounded || header_len(label, head) > body_at || body_at > HEADER_BYTES_MAX {
        return None;
    }
    let mut out = Vec::with_capacity(body_at);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[u8::from(record.soft_purged), 0, 0, 0, 0, 0]);
    out.extend_from_slice(&(body_at as u32).to_le_bytes());
    out.extend_from_slice(&record.body_crc.to_le_bytes());
    out.extend_from_slice(&record.body_len.to_le_bytes());
    out.extend_from_slice(&record.purges.to_le_bytes());
    out.extend_from_slice(&head.status.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    let moments = [times.stored_ms, times.age_ms, times.fresh_until_ms, times.updating_until_ms, times.error_until_ms];
    moments.iter().for_each(|moment| out.extend_from_slice(&moment.to_le_bytes()));
    let lengths = [label.key.len(), label.vary.len(), label.tags.len(), head.bytes.len()].map(|length| length as u32);
    let places = [head.hidden_from, head.etag.start, head.etag.end];
    let words = std::iter::once(times.flags).chain(lengths).chain(places);
    words.for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.extend_from_slice(&head.last_modified.unwrap_or(NO_DATE).to_le_bytes());
    out.extend_from_slice(&label.variant.0);
    out.extend_from_slice(&label.key);
    out.extend_from_slice(&label.vary);
    label.tags.iter().for_each(|tag| out.extend_from_slice(&tag.0.to_le_bytes()));
    out.extend_from_slice(&head.bytes);
    out.resize(body_at, 0);
    let sum = crc32fast::hash(out.get(16..)?);
    out.get_mut(12..16)?.copy_from_slice(&sum.to_le_bytes());
    Some(out)
}

/// The length of the header, from a file's first bytes; `FIXED_BYTES` of them are enough.
pub(super) fn header_len_of(bytes: &[u8]) -> Result<usize, Corrupt> {
    let mut at = Cursor(bytes);
    if at.array::<8>()? != MAGIC || u16::from_le_bytes(at.array()?) != VERSION {
        return Err(Corrupt::Form);
    }
    at.array::<6>()?;
    let length = at.u32()? as usize;
    if !(FIXED_BYTES..=HEADER_BYTES_MAX).contains(&length) {
        return Err(Corrupt::Bounds);
    }
    Ok(length)
}

/// Reads a header; the body may follow in `bytes`.
pub(super) fn decode(bytes: &[u8]) -> Result<FileRecord, Corrupt> {
    let length = header_len_of(bytes)?;
    let bytes = bytes.get(..length).ok_or(Corrupt::Length)?;
    let soft_purged = bytes.get(SOFT_AT as usize).is_some_and(|mark| *mark != 0);
    let mut at = Cursor(bytes.get(12..).ok_or(Corrupt::Length)?);
    if at.u32()? != crc32fast::hash(at.0) {
        return Err(Corrupt::Checksum);
    }
    let body_at = u64::from(at.u32()?);
    let (body_crc, body_len, purges) = (at.u32()?, at.u64()?, at.u32()?);
    let status = u16::from_le_bytes(at.array()?);
    at.array::<2>()?;
    let times = Times {
        stored_ms: at.u64()?,
        age_ms: at.u64()?,
        fresh_until_ms: at.u64()?,
        updating_until_ms: at.u64()?,
        error_until_ms: at.u64()?,
        flags: at.u32()?,
    };
    let lengths = (at.u32()? as usize, at.u32()? as usize, at.u32()? as usize, at.u32()? as usize);
    let (key_len, vary_len, tags, head_len) = lengths;
    if key_len > KEY_BYTES_MAX || vary_len > VARY_BYTES_MAX || tags > TAGS_MAX || head_len > HEAD_BYTES_MAX {
        return Err(Corrupt::Bounds);
    }
    let (hidden_from, etag) = (at.u32()?, at.u32()?..at.u32()?);
    let last_modified = Some(i64::from_le_bytes(at.array()?)).filter(|date| *date != NO_DATE);
    let variant = Variant(at.array()?);
    let key = at.take(key_len)?.into();
    let vary = at.take(vary_len)?.into();
    let tags = (0..tags).map(|_| at.u64().map(Tag)).collect::<Result<_, _>>()?;
    let head = StoredHead { status, bytes: at.take(head_len)?.into(), hidden_from, etag, last_modified };
    let label = Arc::new(Label { key, variant, vary, tags });
    Ok(FileRecord { label, head, times, purges, soft_purged, body_at, body_len, body_crc })
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Corrupt> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Corrupt::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Corrupt::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32, Corrupt> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Corrupt> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    fn record(key: Vec<u8>, head: Vec<u8>, tags: Vec<u64>, numbers: (u64, u32, u16)) -> FileRecord {
        let label = Label {
            key: key.into(),
            variant: Variant::of(&numbers.0.to_le_bytes()),
            vary: b"accept-encoding".as_slice().into(),
            tags: tags.into_iter().map(Tag).collect(),
        };
        let head = StoredHead {
            status: numbers.2,
            hidden_from: head.len() as u32,
            bytes: head.into(),
            etag: 1..numbers.1,
            last_modified: numbers.1.is_multiple_of(2).then_some(-5),
        };
        let times = Times { stored_ms: numbers.0, fresh_until_ms: 7, flags: 3, ..Times::default() };
        let body_at = header_len(&label, &head) as u64;
        let soft_purged = numbers.2.is_multiple_of(2);
        FileRecord {
            label: Arc::new(label),
            head,
            times,
            purges: numbers.1,
            soft_purged,
            body_at,
            body_len: numbers.0,
            body_crc: numbers.1,
        }
    }

    fn sample() -> FileRecord {
        record(b"/key".to_vec(), b"HTTP/1.1 200 OK\r\n".to_vec(), vec![1, 2], (99, 4, 200))
    }

    mod mutate {
        use super::*;

        /// A file of another program, or one that was changed: it is refused by name, or it is read and written as the
        /// same header. The checksum is mended first, so that the fields behind it are read.
        #[test]
        fn headers_of_files() {
            let whole = encode(&sample()).unwrap();
            let words: [&[u8]; 6] = [&[0; 4], &[255; 4], &[0, 1, 0, 0], &[136, 0, 0, 0], &[0, 0, 16, 0], &[127; 8]];
            weir_mutate::mutate(&[whole], &words, |bytes| {
                let _ = decode(bytes);
                let mut bytes = bytes.to_vec();
                let Ok(length) = header_len_of(&bytes) else { return };
                if bytes.len() < length {
                    return;
                }
                let sum = crc32fast::hash(&bytes[16..length]);
                bytes[12..16].copy_from_slice(&sum.to_le_bytes());
                if let Ok(record) = decode(&bytes) {
                    let texts = record.label.key.len() + record.label.vary.len() + record.head.bytes.len();
                    assert!(texts + record.label.tags.len() * 8 <= length);
                    if let Some(again) = encode(&record) {
                        assert_eq!(decode(&again), Ok(record));
                    }
                }
            });
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            key in prop::collection::vec(any::<u8>(), 0..300),
            head in prop::collection::vec(any::<u8>(), 0..3000),
            tags in prop::collection::vec(any::<u64>(), 0..9),
            numbers in any::<(u64, u32, u16)>(),
        ) {
            let record = record(key, head, tags, numbers);
            let bytes = encode(&record).unwrap();
            prop_assert_eq!(bytes.len() as u64, record.body_at);
            prop_assert_eq!(decode(&bytes), Ok(record));
        }

        #[test]
        fn any_bytes_are_refused_by_name(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(decode(&bytes).is_err());
        }

        #[test]
        fn bytes_with_a_right_checksum_harm_nobody(
            rest in prop::collection::vec(any::<u8>(), FIXED_BYTES..600),
            lengths in any::<[u8; 4]>(),
        ) {
            let mut bytes = encode(&sample()).unwrap();
            bytes.splice(20.., rest.into_iter().skip(20));
            for (at, length) in [84, 88, 92, 96].into_iter().zip(lengths) {
                bytes[at..at + 4].copy_from_slice(&u32::from(length).to_le_bytes());
            }
            let length = bytes.len() as u32;
            bytes[16..20].copy_from_slice(&length.to_le_bytes());
            let sum = crc32fast::hash(&bytes[16..]);
            bytes[12..16].copy_from_slice(&sum.to_le_bytes());
            // The header is read or refused: wrong positions in the head name nothing.
            if let Ok(record) = decode(&bytes) {
                prop_assert!(record.head.etag().len() + record.head.shown().len() <= 2 * record.head.bytes.len());
            }
        }

        #[test]
        fn one_changed_byte_is_noticed(at in 0usize..256, flip in 1u8..) {
            let mut bytes = encode(&sample()).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= flip;
            // The soft-purge mark and the next byte are outside the checksum.
            prop_assert_eq!(decode(&bytes).is_ok(), (10..12).contains(&at));
        }
    }

    #[test]
    fn a_short_header_and_one_too_long_are_refused() {
        let bytes = encode(&sample()).unwrap();
        for count in 0..bytes.len() {
            assert!(decode(&bytes[..count]).is_err());
        }
        let mut long = sample();
        long.head.bytes = vec![0; HEAD_BYTES_MAX + 1].into();
        long.body_at = header_len(&long.label, &long.head) as u64;
        assert_eq!(encode(&long), None);
    }
}
