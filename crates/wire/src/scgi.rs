//! SCGI: the netstring before a request's body. The answer is a CGI head, or an HTTP head.
//!
//! Names and values, each with a NUL after it; `CONTENT_LENGTH` is the first. So no value may have a NUL.
//! <https://python.ca/scgi/protocol.txt>

use crate::encode;

/// Appends one parameter. A NUL in the value becomes a space: it would begin another parameter.
pub fn push_param(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.push(0);
    let start = out.len();
    out.extend_from_slice(value);
    for byte in out.iter_mut().skip(start).filter(|byte| **byte == 0) {
        *byte = b' ';
    }
    out.push(0);
}

/// Appends the netstring of these parameters: their length, `CONTENT_LENGTH` first.
pub fn push_request(out: &mut Vec<u8>, content_length: u64, params: &[u8]) {
    let mut first = Vec::with_capacity(b"CONTENT_LENGTH".len() + encode::DECIMAL_BYTES + 2);
    let mut space = [0; encode::DECIMAL_BYTES];
    push_param(&mut first, b"CONTENT_LENGTH", encode::decimal(content_length, &mut space));
    encode::push_decimal(out, (first.len() + params.len()) as u64);
    out.push(b':');
    out.extend_from_slice(&first);
    out.extend_from_slice(params);
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request() {
        let (mut params, mut out) = (Vec::new(), Vec::new());
        push_param(&mut params, b"SCGI", b"1");
        push_param(&mut params, b"A", b"b\0C\0d");
        push_request(&mut out, 27, &params);
        assert_eq!(out, b"33:CONTENT_LENGTH\x0027\0SCGI\x001\0A\0b C d\0,");
    }
}
