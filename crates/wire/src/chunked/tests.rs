#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;

/// Payload, and how many bytes of the input were consumed; `None` when the body
/// is not complete.
type Decoded = Result<Option<(Vec<u8>, usize)>, Violation>;

fn decode(decoder: &mut Decoder, input: &[u8]) -> Decoded {
    let mut payload = Vec::new();
    let mut pos = 0;
    loop {
        match decoder.next(input, &mut pos)? {
            ChunkEvent::Data { start, end } => {
                assert!(start < end && end <= pos);
                payload.extend_from_slice(&input[start..end]);
            }
            ChunkEvent::NeedMore => {
                assert_eq!(pos, input.len());
                return Ok(None);
            }
            ChunkEvent::End => return Ok(Some((payload, pos))),
        }
    }
}

fn check(input: &str, expect: Result<&str, Violation>) {
    let got = decode(&mut Decoder::new(), input.as_bytes());
    match expect {
        Ok(payload) => {
            let (got, consumed) = got.unwrap().expect("complete");
            assert_eq!(got, payload.as_bytes(), "{input:?}");
            assert_eq!(input.get(consumed..), Some("NEXT"), "{input:?}");
        }
        Err(violation) => assert_eq!(got, Err(violation), "{input:?}"),
    }
}

#[test]
fn bodies() {
    check("0\r\n\r\nNEXT", Ok(""));
    check("5\r\nhello\r\n0\r\n\r\nNEXT", Ok("hello"));
    check("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\nNEXT", Ok("hello!"));
    check("000a\r\n0123456789\r\n000\r\n\r\nNEXT", Ok("0123456789"));
    check("A\r\n0123456789\r\n0\r\n\r\nNEXT", Ok("0123456789"));
    check("2;a=b;c=\"d e\"\r\n\r\n\r\n0;x\r\n\r\nNEXT", Ok("\r\n"));
    check("1 \t ; a\r\nx\r\n0 \r\n\r\nNEXT", Ok("x"));
    check("0\r\nX: y\r\nZ:\r\n\r\nNEXT", Ok(""));
}

#[test]
fn refused_bodies() {
    use Violation::*;
    for (input, expect) in [
        ("", None),
        ("\r\n", Some(ChunkSize)),
        ("x\r\n", Some(ChunkSize)),
        ("-5\r\nhello", Some(ChunkSize)),
        ("+5\r\nhello", Some(ChunkSize)),
        (" 5\r\nhello", Some(ChunkSize)),
        ("0x5\r\nhello", Some(ChunkSize)),
        ("5_\r\nhello", Some(ChunkSize)),
        ("5 5\r\nhello", Some(ChunkExtension)),
        ("10000000000000005\r\nhello", Some(ChunkSizeTooLarge)),
        ("8000000000000000\r\n", Some(ChunkSizeTooLarge)),
        ("7fffffffffffffff\r\n", None),
        ("00000000000000000000000000000000000000005\r\n", Some(ChunkSizeTooLarge)),
        ("5\nhello\r\n", Some(ChunkLineEnd)),
        ("5\r\r\nhello", Some(ChunkLineEnd)),
        ("5\rhello", Some(ChunkLineEnd)),
        ("5;a\nhello\r\n0\r\n\r\n", Some(ChunkLineEnd)),
        ("5 \nhello\r\n0\r\n\r\n", Some(ChunkLineEnd)),
        ("5;a\rb\r\nhello", Some(ChunkLineEnd)),
        ("5;a\0\r\nhello", Some(ChunkExtension)),
        ("5;a\u{7f}\r\nhello", Some(ChunkExtension)),
        ("5\r\nhello\n0\r\n\r\n", Some(ChunkDataEnd)),
        ("5\r\nhello\r0\r\n\r\n", Some(ChunkDataEnd)),
        ("5\r\nhello!\r\n", Some(ChunkDataEnd)),
        ("5\r\nhello0\r\n\r\n", Some(ChunkDataEnd)),
        ("5\r\nhel\r\n0\r\n\r\n", Some(ChunkDataEnd)),
        ("5\r\nhel", None),
        ("0\n\n", Some(ChunkLineEnd)),
        ("0\r\n\n", Some(ChunkLineEnd)),
        ("0\r\n\rX", Some(ChunkLineEnd)),
        ("0\r\nX: y\n\r\n", Some(ChunkLineEnd)),
        ("0\r\nX: y\rz\r\n\r\n", Some(ChunkLineEnd)),
        ("0\r\nBad Name: x\r\n\r\n", Some(TrailerField)),
        ("0\r\nX : x\r\n\r\n", Some(TrailerField)),
        ("0\r\nX: \0\r\n\r\n", Some(TrailerField)),
        ("0\r\nX: y\r\n folded\r\n\r\n", Some(TrailerField)),
        ("0\r\n\0\r\n\r\n", Some(TrailerField)),
    ] {
        match expect {
            Some(violation) => check(input, Err(violation)),
            None => assert_eq!(decode(&mut Decoder::new(), input.as_bytes()), Ok(None), "{input:?}"),
        }
    }
}

#[test]
fn everything_has_a_bound() {
    let extension = |length| format!("1;{}\r\nx\r\n0\r\n\r\nNEXT", "e".repeat(length));
    check(&extension(CHUNK_EXTENSION_BYTES_MAX), Ok("x"));
    check(&extension(CHUNK_EXTENSION_BYTES_MAX + 1), Err(Violation::ChunkExtensionTooLong));
    let spaces = format!("1{}\r\n", " ".repeat(CHUNK_EXTENSION_BYTES_MAX + 2));
    check(&spaces, Err(Violation::ChunkExtensionTooLong));
    let digits = |count: usize| format!("{}1\r\nx\r\n0\r\n\r\nNEXT", "0".repeat(count - 1));
    check(&digits(CHUNK_SIZE_DIGITS_MAX), Ok("x"));
    check(&digits(CHUNK_SIZE_DIGITS_MAX + 1), Err(Violation::ChunkSizeTooLarge));
    let trailer = |length: usize| format!("0\r\nX:{}\r\n\r\nNEXT", "y".repeat(length - 4));
    check(&trailer(TRAILER_BYTES_MAX), Ok(""));
    check(&trailer(TRAILER_BYTES_MAX + 1), Err(Violation::TrailerTooLarge));
    let fields = |count| format!("0\r\n{}\r\nNEXT", "X: y\r\n".repeat(count));
    check(&fields(TRAILER_FIELDS_MAX), Ok(""));
    check(&fields(TRAILER_FIELDS_MAX + 1), Err(Violation::TrailerTooLarge));
}

#[test]
fn trailers_are_kept_but_not_those_that_frame_or_route() {
    let body =
        b"0\r\nX-Sum: 1 \r\nContent-Length: 5\r\nhost: b\r\na_b: c\r\nEtag:\"e\"\r\nTransfer-Encoding: x\r\n\r\n";
    let mut decoder = Decoder::new();
    assert!(decode(&mut decoder, body).unwrap().is_some());
    assert!(decoder.is_done());
    let (bytes, fields) = decoder.trailers();
    let fields: Vec<_> = fields.iter().map(|f| (f.name.of(bytes), f.value.of(bytes))).collect();
    assert_eq!(fields, [(&b"X-Sum"[..], &b"1"[..]), (b"Etag", b"\"e\"")]);
}

#[test]
fn a_split_at_any_byte_changes_nothing() {
    let body: &[u8] = b"5;x=y\r\nhello\r\n1 ;z\r\n!\r\n00\r\nX: y\r\nZ: w\r\n\r\nNEXT";
    let mut decoder = Decoder::new();
    for split in 0..=body.len() {
        decoder.reset();
        let mut payload = Vec::new();
        let mut consumed = 0;
        for part in [&body[..split], &body[split..]] {
            let mut pos = 0;
            while let ChunkEvent::Data { start, end } = decoder.next(part, &mut pos).unwrap() {
                payload.extend_from_slice(&part[start..end]);
            }
            consumed += pos;
        }
        assert_eq!((payload.as_slice(), consumed), (&b"hello!"[..], body.len() - 4));
        assert_eq!(decoder.trailers().1.len(), 2);
    }
}

#[test]
fn a_refusal_stays() {
    let mut decoder = Decoder::new();
    let mut pos = 0;
    for _ in 0..3 {
        assert_eq!(decoder.next(b"0\r\nA: b\r\n c\r\n\r\n", &mut pos), Err(Violation::TrailerField));
    }
    assert!(decoder.trailers().1.len() <= 1);
}

#[test]
fn a_clients_chunk_lines_are_those_of_the_grammar() {
    for (line, is_right) in [
        ("5", true),
        ("5;a", true),
        ("5;a=b", true),
        ("5 ;\ta = b ; c", true),
        ("5;a=\"b \\\" ; c\" ;d", true),
        ("5;a;b=c", true),
        ("5 ", false),
        ("5;", false),
        ("5; ", false),
        ("5;;a", false),
        ("5;a ", false),
        ("5;a=", false),
        ("5;a=b ", false),
        ("5;a=b c", false),
        ("5;=b", false),
        ("5;a=\"b", false),
        ("5;a=\"b\"c", false),
        ("5;bad[=x", false),
        ("5;a=\u{e9}", false),
    ] {
        let input = format!("{line}\r\nhello\r\n0\r\n\r\n");
        let expect = if is_right { Ok(Some((b"hello".to_vec(), input.len()))) } else { Err(Violation::ChunkExtension) };
        assert_eq!(decode(&mut Decoder::of_client(), input.as_bytes()), expect, "{line:?}");
    }
}
