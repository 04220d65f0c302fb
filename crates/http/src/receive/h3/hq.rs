//! HTTP/0.9 over QUIC (`hq-interop`, nginx: `http3_hq`), by which implementations of QUIC test each other.
//!
//! A client sends `GET /path` and ends the stream; the answer is a body alone. There is no other frame and no other stream. weir
//! reads the line as the section that HTTP/3 would have, so the rest of a stream is as in HTTP/3.

use weir_wire::h3::write;
use weir_wire::section::SectionEncoder;

/// The HEADERS frame of a request line to a host; `None` for other bytes.
pub(super) fn frame_of(line: &[u8], authority: &str) -> Option<Vec<u8>> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let target = line.strip_suffix(b"\r").unwrap_or(line).strip_prefix(b"GET ")?;
    let mut frame = Vec::with_capacity(target.len() + 16);
    write::section(&mut frame, |encoder, out| {
        let fields =
            [(":method", &b"GET"[..]), (":scheme", b"https"), (":authority", authority.as_bytes()), (":path", target)];
        fields.into_iter().for_each(|(name, value)| encoder.pseudo(name, value, out));
    });
    Some(frame)
}

#[cfg(test)]
mod tests {
    use super::frame_of;

    #[test]
    fn a_line_becomes_a_frame_and_other_bytes_do_not() {
        let frame_of = |line| frame_of(line, "a.test");
        let frame = frame_of(&b"GET /a\r\n"[..]).unwrap();
        assert_eq!(frame.first(), Some(&1));
        for line in [&b"GET /a\n"[..], b"GET /a"] {
            assert_eq!(frame_of(line).as_ref(), Some(&frame));
        }
        for other in [&b""[..], b"GET", b"POST /a\r\n", b"get /a"] {
            assert_eq!(frame_of(other), None);
        }
    }
}
