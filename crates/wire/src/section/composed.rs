//! Turns a request that was composed for HTTP/1.1 into HTTP/2 or HTTP/3: one place composes requests for all protocols.

use crate::known::Known;

use super::encoder::SectionEncoder;
use super::message::Malformed;

/// Fields of an HTTP/1.1 connection, which HTTP/2 and HTTP/3 forbid (RFC 9113 §8.2.2, RFC 9114 §4.2),
/// and Host, which is `:authority`.
const FORBIDDEN: [Known; 7] = [
    Known::Host,
    Known::Connection,
    Known::KeepAlive,
    Known::ProxyConnection,
    Known::TransferEncoding,
    Known::Upgrade,
    Known::Http2Settings,
];

/// The parts of a request's head in HTTP/1.1's form: `GET /x HTTP/1.1`, its fields, the empty line.
#[derive(Clone, Copy, Debug)]
pub struct Composed<'t> {
    /// The method, such as `GET`.
    pub method: &'t [u8],
    target: &'t [u8],
    authority: Option<&'t [u8]>,
    fields: &'t [u8],
}

impl<'t> Composed<'t> {
    /// Splits a head into its parts; the error names the part that no message of these versions may contain (RFC 9113
    /// §8.2.1).
    pub fn read(head: &'t [u8]) -> Result<Composed<'t>, Malformed> {
        let end = memchr::memmem::find(head, b"\r\n").unwrap_or(head.len());
        let (line, rest) = head.split_at(end);
        let rest = rest.get(2..).unwrap_or_default();
        let (method, target) = words(line).ok_or("its line is none")?;
        if target.iter().any(|byte| byte.is_ascii_control()) || !fields(rest).all(is_field) {
            return Err("a byte that no field may hold");
        }
        let host = fields(rest).find(|(name, _)| Known::of(name) == Some(Known::Host));
        Ok(Composed { method, target, authority: host.map(|(_, value)| value), fields: rest })
    }

    /// Writes it as a field section, without the fields that only HTTP/1.1 has.
    pub fn write(&self, scheme: &[u8], encoder: &mut impl SectionEncoder, out: &mut Vec<u8>) {
        encoder.pseudo(":method", self.method, out);
        encoder.pseudo(":scheme", scheme, out);
        encoder.pseudo(":path", self.target, out);
        if let Some(authority) = self.authority {
            encoder.pseudo(":authority", authority, out);
        }
        for (name, value) in fields(self.fields) {
            let known = Known::of(name);
            let is_te = known == Some(Known::Te) && !value.eq_ignore_ascii_case(b"trailers");
            if !is_te && !known.is_some_and(|known| FORBIDDEN.contains(&known)) {
                encoder.field(name, value, known, out);
            }
        }
    }
}

/// Method and target of a request's line.
fn words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let (method, rest) = line.split_at(space);
    let target = rest.get(1..)?.strip_suffix(b" HTTP/1.1")?;
    (!method.is_empty() && !target.is_empty()).then_some((method, target))
}

/// The fields of a head after its first line: name and value.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        let end = memchr::memmem::find(rest, b"\r\n")?;
        let (line, after) = rest.split_at(end);
        rest = after.get(2..).unwrap_or_default();
        if line.is_empty() {
            return None;
        }
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        Some((name, value.get(1..).unwrap_or_default().trim_ascii()))
    })
}

fn is_field((name, value): (&[u8], &[u8])) -> bool {
    let is_name = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b':');
    is_name && memchr::memchr3(0, b'\r', b'\n', value).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::{Encoder, HpackDecoder};
    use crate::section::Block;

    #[test]
    fn a_head_is_taken_apart() {
        let line = words(b"GET /a b HTTP/1.1");
        assert_eq!(line, Some((&b"GET"[..], &b"/a b"[..])));
        assert!(words(b"GET / HTTP/1.0").is_none() && words(b"GET").is_none() && words(b"GET  HTTP/1.1").is_none());
        let head = b"Host: a\r\nX-Empty:\r\nX: 1:2 \r\n\r\nbody: no\r\n";
        let found: Vec<_> = fields(head).collect();
        assert_eq!(found, [(&b"Host"[..], &b"a"[..]), (b"X-Empty", b""), (b"X", b"1:2")]);
        for broken in [&b"X: a\nb\r\n\r\n"[..], b"no colon\r\n\r\n", b": x\r\n\r\n", b"X: \0\r\n\r\n"] {
            let head = [b"GET / HTTP/1.1\r\n", broken].concat();
            assert!(Composed::read(&head).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn what_only_http1_has_stays_behind() -> Result<(), Malformed> {
        let head = b"POST /x?y HTTP/1.1\r\nAccept: */*\r\nHost: a:81\r\nConnection: keep-alive\r\n\
            TE: gzip\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\nX-Own: 1\r\n\r\n";
        let composed = Composed::read(head)?;
        let (mut out, mut block) = (Vec::new(), Block::default());
        composed.write(b"http", &mut Encoder::default(), &mut out);
        assert_eq!(HpackDecoder::default().decode(&out, 1 << 16, &mut block), Ok(()));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields: Vec<_> = block.iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect();
        let expected = [":method=POST", ":scheme=http", ":path=/x?y", ":authority=a:81", "accept=*/*", "x-own=1"];
        assert_eq!(fields, expected);
        Ok(())
    }
}
