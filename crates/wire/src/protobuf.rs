//! Protobuf, as far as OpenTelemetry's messages need it to be written. <https://protobuf.dev/programming-guides/encoding/>
//!
//! Fields are given by their numbers; a message within another is written in place, its length put before it at its end.

/// Varints, also of `bool` and enumerations.
const VARINT: u64 = 0;
/// `fixed64` and `double`.
const FIXED64: u64 = 1;
/// Texts and messages.
const LENGTH: u64 = 2;

/// A message in a field; `fill` writes what is in it.
pub fn message(field: u64, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(field << 3 | LENGTH, out);
    let start = out.len();
    // Most are shorter than 128 bytes, whose length is one; what is longer moves once.
    out.push(0);
    fill(out);
    let length = (out.len() - start - 1) as u64;
    let mut bytes = Vec::new();
    match out.get_mut(start) {
        Some(place) if length < 0x80 => *place = length as u8,
        _ => {
            varint(length, &mut bytes);
            out.splice(start..=start, bytes);
        }
    }
}

/// A text or bytes in a field.
pub fn bytes(field: u64, bytes: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | LENGTH, out);
    varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A number in a field: of `uint64`, `bool`, an enumeration, or the bits of an `int64`.
pub fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | VARINT, out);
    varint(value, out);
}

/// Eight bytes in a field: `fixed64`, or the bits of a `double`.
pub fn fixed(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_guide_has_them() {
        let mut out = Vec::new();
        number(1, 150, &mut out);
        bytes(2, b"testing", &mut out);
        message(3, &mut out, |out| number(1, 150, out));
        fixed(4, 1, &mut out);
        assert_eq!(out, b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x21\x01\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        for length in [0, 127, 128, 20_000] {
            let (mut inner, mut plain) = (Vec::new(), Vec::new());
            message(1, &mut inner, |out| message(2, out, |out| out.resize(out.len() + length, 7)));
            let mut text = Vec::new();
            bytes(2, &vec![7; length], &mut text);
            bytes(1, &text, &mut plain);
            assert_eq!(inner, plain, "{length}");
        }
    }
}
