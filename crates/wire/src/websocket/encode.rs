//! Writes frames.

use super::frame::{FrameHead, Mask};
use super::opcode::{CONTROL_BYTES_MAX, Opcode};

/// Appends a server's frame: a whole message, or a control frame.
pub fn push_frame(out: &mut Vec<u8>, opcode: Opcode, is_compressed: bool, payload: &[u8]) {
    let head = FrameHead { is_last: true, is_compressed, opcode, mask: None, payload_bytes: payload.len() as u64 };
    head.push(out);
    out.extend_from_slice(payload);
}

/// Appends a client's frame, masked: a whole message, or a control frame.
pub fn push_masked_frame(out: &mut Vec<u8>, opcode: Opcode, is_compressed: bool, mask: [u8; 4], payload: &[u8]) {
    let payload_bytes = payload.len() as u64;
    let head = FrameHead { is_last: true, is_compressed, opcode, mask: Some(mask), payload_bytes };
    head.push(out);
    let from = out.len();
    out.extend_from_slice(payload);
    if let Some(payload) = out.get_mut(from..) {
        Mask::new(mask).apply(payload);
    }
}

/// The payload of a close frame: a code and a reason, which is cut if it does not fit (RFC 6455 §5.5.1).
pub fn close_payload(code: u16, reason: &str) -> Vec<u8> {
    let mut end = reason.len().min(CONTROL_BYTES_MAX - 2);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    [&code.to_be_bytes()[..], reason.as_bytes().get(..end).unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_own_examples() {
        let mut out = Vec::new();
        push_frame(&mut out, Opcode::Text, false, b"Hello");
        assert_eq!(out, b"\x81\x05Hello");
        out.clear();
        push_masked_frame(&mut out, Opcode::Text, false, [0x37, 0xfa, 0x21, 0x3d], b"Hello");
        assert_eq!(out, [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]);
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        let long = close_payload(1000, &"ü".repeat(70));
        assert_eq!(long.len(), 2 + 122);
        assert_eq!(close_payload(1001, ""), [0x03, 0xe9]);
    }
}
