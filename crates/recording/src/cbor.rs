//! The part of CBOR (RFC 8949) that a recording uses: definite lengths, no floating point.

use std::ops::Range;

/// Unsigned numbers.
pub(crate) const NUMBER: u8 = 0;
/// Byte strings.
pub(crate) const BYTES: u8 = 2;
/// Texts in UTF-8.
pub(crate) const TEXT: u8 = 3;
/// Arrays.
pub(crate) const ARRAY: u8 = 4;
/// Tags.
pub(crate) const TAG: u8 = 6;
/// `false`, `true`, `null`.
pub(crate) const SIMPLE: u8 = 7;

/// The simple value `false`.
pub(crate) const FALSE: u64 = 20;
/// The simple value `true`.
pub(crate) const TRUE: u64 = 21;
/// The simple value `null`.
pub(crate) const NULL: u64 = 22;

/// A string that occurred before, by its number (<http://cbor.schmorp.de/stringref>).
pub(crate) const TAG_STRING_REF: u64 = 25;
/// A value that may occur again (<http://cbor.schmorp.de/value-sharing>).
pub(crate) const TAG_SHARED: u64 = 28;
/// A shared value, by its number.
pub(crate) const TAG_SHARED_REF: u64 = 29;
/// The scope of the numbers of strings.
pub(crate) const TAG_STRINGS: u64 = 256;

/// The shortest string that gets the number `next`: a shorter one is not longer than its reference.
pub(crate) fn length_of_numbered(next: usize) -> usize {
    match next {
        0..=23 => 3,
        24..=255 => 4,
        256..=65_535 => 5,
        65_536..=0xffff_ffff => 7,
        _ => 11,
    }
}

/// Appends the head of an item, in its shortest form.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, major: u8, value: u64) {
    let major = major << 5;
    match value {
        0..=23 => out.push(major | value as u8),
        24..=0xff => out.extend_from_slice(&[major | 24, value as u8]),
        0x100..=0xffff => {
            let [high, low] = (value as u16).to_be_bytes();
            out.extend_from_slice(&[major | 25, high, low]);
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend_from_slice(&(value as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

/// Appends `true` or `false`.
pub(crate) fn put_bool(out: &mut Vec<u8>, is: bool) {
    put(out, SIMPLE, if is { TRUE } else { FALSE });
}

/// Appends `null`.
pub(crate) fn put_null(out: &mut Vec<u8>) {
    put(out, SIMPLE, NULL);
}

/// Appends an unsigned number, or `null`.
pub(crate) fn put_option(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        Some(value) => put(out, NUMBER, value),
        None => put_null(out),
    }
}

/// A place in bytes, from which heads and strings are read.
pub(crate) struct Items<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Items<'b> {
    /// Reads from `at`.
    pub(crate) fn new(bytes: &'b [u8], at: usize) -> Items<'b> {
        Items { bytes, at }
    }

    /// The place of the next byte.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The kind and the value of the next head. `None`: the bytes end, or the head has no definite value.
    pub(crate) fn head(&mut self) -> Option<(u8, u64)> {
        let first = *self.bytes.get(self.at)?;
        let info = first & 0x1f;
        let length = match info {
            0..=23 => 0,
            24..=27 => 1 << (info - 24),
            _ => return None,
        };
        let from = self.at + 1;
        let more = self.bytes.get(from..from + length)?;
        self.at = from + length;
        let value = if length == 0 {
            u64::from(info)
        } else {
            more.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
        };
        Some((first >> 5, value))
    }

    /// The kind and the value of the next head, which stays.
    pub(crate) fn peek(&self) -> Option<(u8, u64)> {
        Items { bytes: self.bytes, at: self.at }.head()
    }

    /// The place of the next `length` bytes.
    pub(crate) fn take(&mut self, length: u64) -> Option<Range<usize>> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        self.bytes.get(self.at..end)?;
        Some(std::mem::replace(&mut self.at, end)..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_have_the_forms_of_rfc_8949() {
        for (value, bytes) in [
            (0, &[0x00][..]),
            (23, &[0x17]),
            (24, &[0x18, 24]),
            (255, &[0x18, 255]),
            (256, &[0x19, 1, 0]),
            (65_536, &[0x1a, 0, 1, 0, 0]),
            (1 << 32, &[0x1b, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            put(&mut out, NUMBER, value);
            assert_eq!(out, bytes);
            assert_eq!(Items::new(&out, 0).head(), Some((NUMBER, value)));
            assert_eq!(Items::new(&out[..out.len() - 1], 0).head(), None, "a cut head");
        }
        assert_eq!(Items::new(&[0x5f], 0).head(), None, "a string without a definite length");
    }

    #[test]
    fn a_string_longer_than_the_bytes_has_no_place() {
        let mut items = Items::new(b"abc", 1);
        assert_eq!(items.take(u64::MAX), None);
        assert_eq!(items.take(3), None);
        assert_eq!(items.take(2), Some(1..3));
    }
}
