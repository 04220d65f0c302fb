//! Integers of variable length (RFC 9000 §16).

/// The largest value.
pub const VARINT_MAX: u64 = (1 << 62) - 1;
/// The longest form, in bytes.
pub const VARINT_BYTES_MAX: usize = 8;

/// Reads the integer at the beginning of the bytes, whatever form its writer chose; returns it and its length. `None`
/// while it is not complete.
#[inline]
pub fn read(bytes: &[u8]) -> Option<(u64, usize)> {
    let &first = bytes.first()?;
    let length = 1 << (first >> 6);
    let rest = bytes.get(1..length)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte));
    Some((value, length))
}

/// The bytes of the shortest form of a value.
#[inline]
pub fn length(value: u64) -> usize {
    match value {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Appends a value, at most [`VARINT_MAX`], in its shortest form.
pub fn push(value: u64, out: &mut Vec<u8>) {
    let length = length(value);
    let form = (length as u64).trailing_zeros() as u64;
    let bytes = (value.min(VARINT_MAX) | form << (8 * length - 2)).to_be_bytes();
    out.extend_from_slice(bytes.get(VARINT_BYTES_MAX - length..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_examples() {
        // RFC 9000 A.1.
        let rows: [(&[u8], u64); 5] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (bytes, value) in rows {
            assert_eq!(read(bytes), Some((value, bytes.len())), "{value}");
            assert!((0..bytes.len()).all(|short| read(&bytes[..short]).is_none()), "{value}");
        }
    }

    #[test]
    fn the_shortest_form_is_written() {
        for (value, bytes) in [(0, 1), (63, 1), (64, 2), (16_383, 2), (16_384, 4), ((1 << 30) - 1, 4), (1 << 30, 8)] {
            let mut out = Vec::new();
            push(value, &mut out);
            assert_eq!((out.len(), length(value), read(&out)), (bytes, bytes, Some((value, bytes))), "{value}");
        }
        let mut out = Vec::new();
        push(VARINT_MAX, &mut out);
        assert_eq!((read(&out), out), (Some((VARINT_MAX, 8)), vec![0xff; 8]));
    }
}
