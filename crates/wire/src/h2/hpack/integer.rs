//! Integers with a prefix (RFC 7541 §5.1).

/// Reads an integer whose first byte has `prefix` bits of it; returns the value and the bytes after it. `None` if it
/// is cut off or does not fit 32 bits: every valid index or length fits.
pub(super) fn decode(bytes: &[u8], prefix: u32) -> Option<(usize, &[u8])> {
    let (&first, mut rest) = bytes.split_first()?;
    let full = (1usize << prefix) - 1;
    let mut value = usize::from(first) & full;
    if value < full {
        return Some((value, rest));
    }
    for shift in (0..35).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return (value <= u32::MAX as usize).then_some((value, rest));
        }
    }
    None
}

/// Appends an integer whose first byte has `prefix` bits of it and `flags` before them.
pub(super) fn encode(value: usize, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    let full = (1usize << prefix) - 1;
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
        let cases: [(usize, u32, &[u8]); 6] = [
            (10, 5, &[10]),
            (1337, 5, &[31, 0x9a, 10]),
            (42, 8, &[42]),
            (30, 5, &[30]),
            (31, 5, &[31, 0]),
            (u32::MAX as usize, 7, &[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f]),
        ];
        for (value, prefix, bytes) in cases {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(decode(bytes, prefix), Some((value, &b""[..])), "{value}");
        }
        let refused: [&[u8]; 4] = [&[], &[0x7f], &[0x7f, 0x80], &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]];
        for bytes in refused {
            assert_eq!(decode(bytes, 7), None, "{bytes:x?}");
        }
    }
}
