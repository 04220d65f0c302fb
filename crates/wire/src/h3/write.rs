//! Writes the frames of a request stream.

use super::frame::{H3FrameHead, H3Kind};
use super::qpack::QpackEncoder;
use super::varint;

/// Bytes that are kept free for the length of a section; most need two.
const LENGTH_BYTES: usize = 2;

/// Appends a HEADERS frame: a request, an answer, an interim answer, or trailers. `write` adds the fields, pseudo-header
/// fields first.
pub fn section(out: &mut Vec<u8>, write: impl FnOnce(&mut QpackEncoder, &mut Vec<u8>)) {
    out.push(1);
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    let mut encoder = QpackEncoder;
    encoder.begin(out);
    write(&mut encoder, out);
    let length = (out.len() - start - LENGTH_BYTES) as u64;
    if varint::length(length) == LENGTH_BYTES {
        let bytes = (length as u16 | 1 << 14).to_be_bytes();
        out.iter_mut().skip(start).zip(bytes).for_each(|(place, byte)| *place = byte);
        return;
    }
    let mut form = Vec::with_capacity(varint::VARINT_BYTES_MAX);
    varint::push(length, &mut form);
    out.splice(start..start + LENGTH_BYTES, form);
}

/// Appends the head of a DATA frame; the caller must send `length` bytes directly after it.
pub fn data_head(length: u64, out: &mut Vec<u8>) {
    H3FrameHead { kind: H3Kind::Data, length }.push(out);
}
