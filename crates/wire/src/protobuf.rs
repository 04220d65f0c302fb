//! Protobuf, as far as OpenTelemetry's messages and gRPC's health checks need it.
//! <https://protobuf.dev/programming-guides/encoding/>
//!
//! The caller passes the numbers of fields. A message inside another is written in place; at its end, its length is
//! put before it.

/// Varints, also for `bool` and enumerations.
const VARINT: u64 = 0;
/// `fixed64` and `double`.
const FIXED64: u64 = 1;
/// Texts and messages.
const LENGTH: u64 = 2;

/// A message in a field; `fill` writes its content.
pub fn message(field: u64, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    varint(field << 3 | LENGTH, out);
    let start = out.len();
    // Most messages are shorter than 128 bytes, and their length takes one byte; a longer message moves once.
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

/// A number in a field: a `uint64`, a `bool`, an enumeration, or the bits of an `int64`.
pub fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | VARINT, out);
    varint(value, out);
}

/// Eight bytes in a field: `fixed64`, or the bits of a `double`.
pub fn fixed(field: u64, value: u64, out: &mut Vec<u8>) {
    varint(field << 3 | FIXED64, out);
    out.extend_from_slice(&value.to_le_bytes());
}

/// The value of a message's first field, if that field has this number; 0 for a message without fields, which means
/// the same. `None` for anything else.
pub fn first_number(field: u64, mut message: &[u8]) -> Option<u64> {
    if message.is_empty() {
        return Some(0);
    }
    let key = take_varint(&mut message)?;
    if key == field << 3 | VARINT { take_varint(&mut message) } else { None }
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
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
    fn the_first_number_is_read() {
        for value in [0, 1, 127, 128, 150, u64::MAX] {
            let mut out = Vec::new();
            number(1, value, &mut out);
            bytes(2, b"more", &mut out);
            assert_eq!(first_number(1, &out), Some(value));
        }
        assert_eq!(first_number(1, b""), Some(0));
        for other in [&b"\x10\x01"[..], b"\x08", b"\x08\x81\x80", b"\x0a\x01a", &[0x80; 20]] {
            assert_eq!(first_number(1, other), None, "{other:?}");
        }
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
