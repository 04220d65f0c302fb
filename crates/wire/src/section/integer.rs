//! Integers with a prefix (RFC 7541 §5.1, RFC 9204 §4.1.1).

/// The bits of an integer of HPACK, at most: every valid index or length fits.
pub const HPACK_BITS: u32 = 32;
/// The bits of an integer of QPACK, at most (RFC 9204 §4.1.1).
pub const QPACK_BITS: u32 = 62;

/// There is no integer at the beginning of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInteger {
    /// More bytes are needed.
    Cut,
    /// It has more bits than allowed, or more bytes than these bits need.
    TooLarge,
}

/// Reads an integer whose first byte has `prefix` bits of it; returns the value and the bytes after it. The value has
/// at most `bits` bits.
pub fn decode(bytes: &[u8], prefix: u32, bits: u32) -> Result<(u64, &[u8]), NotInteger> {
    let (&first, mut rest) = bytes.split_first().ok_or(NotInteger::Cut)?;
    let full = (1u64 << prefix) - 1;
    let mut value = u64::from(first) & full;
    if value < full {
        return Ok((value, rest));
    }
    for shift in (0..bits + 1).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(NotInteger::Cut)?;
        rest = after;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return if value < 1 << bits { Ok((value, rest)) } else { Err(NotInteger::TooLarge) };
        }
    }
    Err(NotInteger::TooLarge)
}

/// Appends an integer whose first byte has `prefix` bits of it and `flags` before them.
pub fn encode(value: u64, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let full = (1u64 << prefix) - 1;
    if value < full {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | full as u8);
    let mut rest = value - full;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_examples_and_the_limits() {
        // RFC 7541 C.1.
        let cases: [(u64, u32, &[u8]); 7] = [
            (10, 5, &[10]),
            (1337, 5, &[31, 0x9a, 10]),
            (42, 8, &[42]),
            (30, 5, &[30]),
            (31, 5, &[31, 0]),
            (u64::from(u32::MAX), 7, &[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f]),
            ((1 << 62) - 1, 6, &[0x3f, 0xc0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f]),
        ];
        for (value, prefix, bytes) in cases {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(decode(bytes, prefix, QPACK_BITS), Ok((value, &b""[..])), "{value}");
            let is_small = value >> HPACK_BITS == 0;
            assert_eq!(decode(bytes, prefix, HPACK_BITS).is_ok(), is_small, "{value}");
        }
        let refused: [(&[u8], NotInteger); 4] = [
            (&[], NotInteger::Cut),
            (&[0x7f], NotInteger::Cut),
            (&[0x7f, 0x80], NotInteger::Cut),
            (&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f], NotInteger::TooLarge),
        ];
        for (bytes, expected) in refused {
            assert_eq!(decode(bytes, 7, HPACK_BITS), Err(expected), "{bytes:x?}");
        }
        let large: [&[u8]; 2] = [
            &[0x3f, 0xc1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x3f],
            &[0x3f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0],
        ];
        for bytes in large {
            assert_eq!(decode(bytes, 6, QPACK_BITS), Err(NotInteger::TooLarge), "{bytes:x?}");
        }
    }
}
