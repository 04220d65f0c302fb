//! Ranges of a body: `Content-Range` of a 206 (RFC 9110 §14.4).

/// `bytes first-last/length` of a 206.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// Position of the first byte.
    pub first: u64,
    /// Position of the last byte, not before the first.
    pub last: u64,
    /// Length of the whole body, if it is known; more than `last`.
    pub length: Option<u64>,
}

impl ContentRange {
    /// Reads the field; `None` for other units, for `bytes */n`, and for invalid ranges.
    pub fn read(text: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = text.split_at_checked(5)?;
        let rest = rest.strip_prefix(b" ").filter(|_| unit.eq_ignore_ascii_case(b"bytes"))?.trim_ascii_start();
        let slash = memchr::memchr(b'/', rest)?;
        let (range, length) = (rest.get(..slash)?, rest.get(slash + 1..)?);
        let dash = memchr::memchr(b'-', range)?;
        let (first, last) = (number(range.get(..dash)?)?, number(range.get(dash + 1..)?)?);
        let length = if length == b"*" { None } else { Some(number(length)?) };
        (first <= last && length.is_none_or(|length| last < length)).then_some(ContentRange { first, last, length })
    }

    /// The number of bytes in the range.
    pub fn bytes(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }

    /// Whether the range is the whole body: such a 206 may be kept as the whole.
    pub fn is_whole(&self) -> bool {
        self.first == 0 && self.length.is_some_and(|length| length - 1 == self.last)
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |sum, digit| {
        let digit = digit.is_ascii_digit().then_some(u64::from(digit.wrapping_sub(b'0')))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_sense_is_read() {
        for (text, expected) in [
            ("bytes 0-9/10", Some((0, 9, Some(10)))),
            ("Bytes 5-5/*", Some((5, 5, None))),
            ("bytes 0-18446744073709551615/*", Some((0, u64::MAX, None))),
            ("bytes 0-10/10", None),
            ("bytes 5-4/10", None),
            ("bytes */10", None),
            ("bytes 0-/10", None),
            ("bytes 0-18446744073709551616/*", None),
            ("bytes=0-9/10", None),
            ("items 0-9/10", None),
            ("bytes 0-9/0x10", None),
            ("bytes 0-9", None),
            ("", None),
        ] {
            let read = ContentRange::read(text.as_bytes()).map(|range| (range.first, range.last, range.length));
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn a_part_can_be_the_whole() {
        let of = |text: &str| ContentRange::read(text.as_bytes());
        assert!(of("bytes 0-9/10").is_some_and(|range| range.is_whole() && range.bytes() == 10));
        assert!(of("bytes 1-9/10").is_some_and(|range| !range.is_whole() && range.bytes() == 9));
        assert!(of("bytes 0-9/*").is_some_and(|range| !range.is_whole()));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(text: Vec<u8>) {
            ContentRange::read(&text);
        }

        #[test]
        fn near_misses_are_read(text in "bytes [0-9*/-]{0,44}") {
            if let Some(range) = ContentRange::read(text.as_bytes()) {
                prop_assert!(range.bytes() > 0);
                range.is_whole();
            }
        }
    }
}
