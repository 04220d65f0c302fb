//! uwsgi: the packet before a request's body. The answer is a CGI head, or an HTTP head.
//!
//! `modifier1`, length (16 bits, little-endian), `modifier2`, then names and values, each after its length.
//! <https://uwsgi-docs.readthedocs.io/en/latest/Protocol.html>

use crate::fastcgi::TooBig;

/// Bytes before the parameters.
const HEADER_BYTES: usize = 4;

/// The most bytes of parameters.
pub const PARAMS_BYTES_MAX: usize = 65_535;

/// Begins a packet in an empty buffer.
pub fn begin(out: &mut Vec<u8>, modifier1: u8, modifier2: u8) {
    out.extend_from_slice(&[modifier1, 0, 0, modifier2]);
}

/// Appends one parameter.
pub fn push_param(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for text in [name, value] {
        // Longer texts do not fit a packet: `end` refuses them.
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text);
    }
}

/// Ends the packet: writes the length of its parameters.
pub fn end(out: &mut [u8]) -> Result<(), TooBig> {
    let length = out.len().saturating_sub(HEADER_BYTES);
    let Ok(short) = u16::try_from(length) else { return Err(TooBig(length)) };
    if let Some(place) = out.get_mut(1..3) {
        place.copy_from_slice(&short.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet() {
        let mut out = Vec::new();
        begin(&mut out, 5, 7);
        push_param(&mut out, b"A", b"bc");
        push_param(&mut out, b"D", b"");
        assert_eq!(end(&mut out), Ok(()));
        assert_eq!(out, [5, 12, 0, 7, 1, 0, b'A', 2, 0, b'b', b'c', 1, 0, b'D', 0, 0]);
        push_param(&mut out, b"E", &vec![0; PARAMS_BYTES_MAX]);
        assert_eq!(end(&mut out), Err(TooBig(12 + 5 + PARAMS_BYTES_MAX)));
    }
}
