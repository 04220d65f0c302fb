//! Valid inputs of the targets in `http3`.

/// A frame of HTTP/3 that is shorter than 64 bytes.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind, payload.len() as u8], payload].concat()
}

/// Frames of HTTP/3: of a request, of the control stream, of unknown kinds.
pub fn frames() -> Vec<Vec<u8>> {
    let update = [&[0x80, 0x0f, 0x07, 0, 5][..], b"\0u=1,i"].concat();
    vec![
        [
            frame(1, b"\0\0\xd1\xd7\xc1\x50\x06a.test"),
            frame(0, b"body"),
            frame(0x21, b""),
            frame(0, b"more"),
            frame(1, b"\0\0"),
        ]
        .concat(),
        [frame(4, b"\x01\x50\x00\x06\x40\xff\x07\x10\x08\x01"), frame(7, b"\x08"), frame(0xd, b"\0"), update].concat(),
        [&b"\x40\x00\x40\x80"[..], &[b'x'; 128], b"\xc0\0\0\0\0\0\0\x01\x80\0\0\x02\0\0"].concat(),
    ]
}

/// Instructions and sections of QPACK: those of RFC 9204 Appendix B; references around a base; a section that comes first.
pub const QPACK: &[&[u8]] = &[
    b"\x03\x0f\0\0\x51\x0b/index.html\
      \0\x22\x3f\xe1\x01\xc0\x0fwww.example.com\xc1\x0c/sample/path\x03\x04\x03\x81\x10\x11\
      \0\x19\x4a\x63ustom-key\x0ccustom-value\0\x01\x02\x0b\x05\x05\0\x80\xc1\x81",
    b"\x03\x04\x03\0\x80\x81\x07\x04\x02\0\x80\x80\0\x0b\x3f\xe1\x01\x41a\x01b\xc5\x01c\x06\0\x0b\x06\x02\0\x50\x01d\x20",
    b"\0\x10\x3f\xe1\x01\x61\x1f\x82\x1c\x64\x80\x01x\x02\x80\0\x01\x03\x0c\x04\x81\x80\x10\x40\x01y\x01\x01z\xd1\x27\x01",
];

/// Connections of HTTP/3: for each piece its stream, its length, its bytes.
pub fn connections() -> Vec<Vec<u8>> {
    let part = |stream: u8, bytes: &[u8]| [&[stream, bytes.len() as u8], bytes].concat();
    let (control, encoder, decoder, last) = (4, 5, 6, 0x80);
    let get = frame(1, b"\0\0\xd1\xd7\xc1\x50\x06a.test");
    let settings = [&[0], frame(4, b"\x06\x40\xff\x08\x01").as_slice()].concat();
    let update = [&[0x80, 0x0f, 0x07, 0, 5][..], b"\x04u=1,i"].concat();
    vec![
        [
            part(control, &settings),
            part(last, &get),
            part(1, &[frame(1, b"\0\0\xd4\xd7\xc1\x50\x06a.test\x54\x015"), frame(0, b"he")].concat()),
            part(control, &update),
            part(1 | last, &[frame(0, b"llo"), frame(0x21, b"x"), frame(1, b"\0\0\x21x\x01y")].concat()),
            part(control, &[frame(7, b"\x08"), frame(0x21, b"")].concat()),
        ]
        .concat(),
        // Sections that come before their insertions.
        [
            part(control, &settings),
            part(last, &frame(1, b"\x02\0\xd1\xd7\xc1\x80")),
            part(1 | last, &[frame(1, b"\x03\0\xd1\xd7\xc1\x81"), frame(0, b"abc")].concat()),
            part(encoder, b"\x02\x3f\xe1\x01\xc0\x06a.test"),
            part(encoder, b"\x41x\x01y"),
            part(decoder, b"\x03\x44"),
            part(7, b"\x40\x21what"),
            part(0x42, b""),
        ]
        .concat(),
        // Interim answers, an answer, its body; and an extended CONNECT.
        [
            part(control, &settings),
            part(last, &[frame(1, b"\0\0\xd8"), frame(1, b"\0\0\xd9\x54\x012"), frame(0, b"ok")].concat()),
            part(1, &frame(1, b"\0\0\xcf\x27\x02:protocol\x09websocket\xd7\xc1\x50\x06a.test")),
            part(1 | last, &frame(0, b"bytes")),
        ]
        .concat(),
    ]
}
