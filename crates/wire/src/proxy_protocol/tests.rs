#![allow(clippy::unwrap_used)]
use super::*;

fn ends_of(bytes: &[u8]) -> Option<(String, String)> {
    match parse(bytes) {
        Ok(Parsed::Done { ends, .. }) => ends.map(|ends| (ends.source.to_string(), ends.destination.to_string())),
        other => unreachable!("{other:?}"),
    }
}

/// A header of version 2 with these bytes after the length.
fn v2(version_and_command: u8, family_and_transport: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [SIGNATURE.as_slice(), &[version_and_command, family_and_transport], &length, rest].concat()
}

const V4_ENDS: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2, 0, 123, 0x16, 0x2e];

#[test]
fn lines_of_version_1() {
    for (line, expected) in [
        ("PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n", Some(("192.0.2.1:123", "192.0.2.2:5678"))),
        ("PROXY TCP6 2001:Db8::1 2001:dB8::2 0 65535\r\n", Some(("[2001:db8::1]:0", "[2001:db8::2]:65535"))),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN ffff::1 what ever 1 2 3\r\n", None),
    ] {
        let got = ends_of(line.as_bytes());
        assert_eq!(got, expected.map(|(a, b)| (a.to_owned(), b.to_owned())), "{line:?}");
    }
}

#[test]
fn what_version_1_refuses() {
    let long = format!("PROXY UNKNOWN {}", "x".repeat(V1_BYTES_MAX));
    let long_line = format!("{long}\r\n");
    for (line, fault) in [
        ("GET / HTTP/1.1\r\n", ProxyProtocolFault::Broken),
        ("PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n", ProxyProtocolFault::Broken),
        ("PROXY INVALID", ProxyProtocolFault::Broken),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n", ProxyProtocolFault::Broken),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n", ProxyProtocolFault::Broken),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n", ProxyProtocolFault::Broken),
        ("PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n", ProxyProtocolFault::Address),
        ("PROXY TCP4 1.2.3.4.5 1.2.3.4 1 2\r\n", ProxyProtocolFault::Address),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n", ProxyProtocolFault::Address),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n", ProxyProtocolFault::Address),
        ("PROXY TCP4 1.2.3.4 1.2.3.4  2\r\n", ProxyProtocolFault::Address),
        (long.as_str(), ProxyProtocolFault::LineTooLong),
        (long_line.as_str(), ProxyProtocolFault::LineTooLong),
    ] {
        assert_eq!(parse(line.as_bytes()), Err(fault), "{line:?}");
    }
}

#[test]
fn headers_of_version_2() {
    let v4 = ("192.0.2.1:123".to_owned(), "192.0.2.2:5678".to_owned());
    assert_eq!(ends_of(&v2(0x21, 0x11, V4_ENDS)), Some(v4));
    let v6 = [[0x20; 16], [0x21; 16]].concat();
    assert_eq!(
        ends_of(&v2(0x21, 0x21, &[v6.as_slice(), &[0, 1, 0, 2]].concat())),
        Some((
            "[2020:2020:2020:2020:2020:2020:2020:2020]:1".into(),
            "[2121:2121:2121:2121:2121:2121:2121:2121]:2".into()
        ))
    );
    // The balancer's own connection, no family, datagrams, unix sockets.
    for (command, family) in [(0x20, 0x11), (0x21, 0), (0x21, 0x12), (0x21, 0x31), (0x22, 0x11)] {
        assert_eq!(ends_of(&v2(command, family, V4_ENDS)), None);
    }
}

#[test]
fn what_version_2_refuses() {
    assert_eq!(parse(&v2(0x11, 0x11, V4_ENDS)), Err(ProxyProtocolFault::Version(1)));
    assert_eq!(parse(&v2(0x21, 0x11, &V4_ENDS[1..])), Err(ProxyProtocolFault::AddressesCut));
    assert_eq!(parse(&v2(0x21, 0x21, V4_ENDS)), Err(ProxyProtocolFault::AddressesCut));
    assert_eq!(parse(&v2(0x21, 0x11, &[0; V2_BYTES_MAX])), Err(ProxyProtocolFault::TooLarge));
}

#[test]
fn every_part_of_a_header_is_partial_and_what_follows_is_left() {
    let text = b"PROXY TCP4 192.0.2.1 192.0.2.2 123 5678\r\n".to_vec();
    for header in [text, v2(0x21, 0x11, V4_ENDS), v2(0x20, 0, b"")] {
        for end in 0..header.len() {
            assert_eq!(parse(&header[..end]), Ok(Parsed::Partial), "{end}");
        }
        let followed = [header.as_slice(), b"GET / HTTP/1.1\r\n"].concat();
        let Ok(Parsed::Done { length, .. }) = parse(&followed) else { unreachable!() };
        assert_eq!(length, header.len());
    }
}

#[test]
fn typed_values_by_name() {
    let value = |kind: u8, value: &[u8]| [&[kind, 0, value.len() as u8], value].concat();
    let ssl = [b"\x01\0\0\x01\x02".to_vec(), value(0x21, b"TLSv1.3"), value(0x22, b"cn")].concat();
    let tlvs =
        [value(1, b"h2"), value(2, b"example.com"), value(0x20, &ssl), value(0xae, b"own"), vec![9, 9, 9]].concat();
    let header = v2(0x21, 0x11, &[V4_ENDS, &tlvs].concat());
    let Ok(Parsed::Done { ends: Some(ends), .. }) = parse(&header) else { unreachable!() };
    for (name, expected) in [
        ("alpn", Some("h2")),
        ("0x1", Some("h2")),
        ("0x0001", Some("h2")),
        ("authority", Some("example.com")),
        ("ssl_version", Some("TLSv1.3")),
        ("ssl_0x22", Some("cn")),
        ("ssl_verify", Some("258")),
        ("0xAE", Some("own")),
        ("ssl_cipher", None),
        ("netns", None),
        ("0x1ff", None),
        ("0x", None),
        ("0x+1", None),
        ("what", None),
    ] {
        let mut out = Vec::new();
        let found = tlv(ends.tlvs.of(&header), name, &mut out);
        assert_eq!(found.then_some(out), expected.map(|text| text.as_bytes().to_vec()), "{name}");
    }
}

#[test]
fn a_written_header_is_read_back() {
    let ends = |source: &str, destination: &str| Some((source.parse().unwrap(), destination.parse().unwrap()));
    for both in [ends("192.0.2.1:5000", "192.0.2.2:443"), ends("[2001:db8::1]:1", "[2001:db8::2]:2"), None] {
        for write in [write_text, write_binary] {
            let mut out = Vec::new();
            write(both, &mut out);
            let length = out.len();
            out.extend_from_slice(b"rest");
            let Ok(Parsed::Done { length: read, ends }) = parse(&out) else { panic!("{both:?}") };
            assert_eq!((read, ends.map(|ends| (ends.source, ends.destination))), (length, both));
        }
    }
}
