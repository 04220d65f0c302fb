//! The host of a request: the authority of the target, or the Host field.
//!
//! It does not resolve names and does not check DNS rules: it accepts the same hosts as nginx's
//! ngx_http_validate_host, including `_`, `%` and sub-delims. Invariant: the returned name has no port, no trailing
//! dot, and no byte that could end the name in a log, a header or a URL.

use crate::head::{RequestHead, Version};
use crate::known::Known;
use crate::span::Span;
use crate::violation::Violation;

/// A validated host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name, IPv6 literals with their brackets, in the case of the request.
    pub name: Span,
    /// The port, when there is one other than 0.
    pub port: Option<u16>,
    /// Whether the name has upper-case letters: compare it in lower case.
    pub has_upper: bool,
}

/// The host of the request before, to recognise it: most requests that a server gets one after another are for one host.
#[derive(Clone, Debug, Default)]
pub struct LastHost {
    /// The value of its Host field.
    text: Vec<u8>,
    /// The host in it. The name begins where the value begins, so its span counts from there.
    found: Option<Host>,
}

/// Longer values of Host, in bytes, are not kept.
const KEPT_MAX: usize = 128;

impl LastHost {
    /// As [`validate`].
    fn validate(&mut self, buf: &[u8], span: Span) -> Option<Host> {
        let text = span.of(buf);
        if let Some(found) = self.found
            && text == self.text
        {
            let start = span.start as usize;
            return Some(Host { name: Span::new(start, start + found.name.of(text).len()), ..found });
        }
        let found = validate(buf, span)?;
        if text.len() <= KEPT_MAX {
            self.text.clear();
            self.text.extend_from_slice(text);
            self.found = Some(Host { name: Span::new(0, found.name.of(buf).len()), ..found });
        }
        Some(found)
    }
}

/// The host a request is for (RFC 9112 §3.2 and §3.3).
///
/// An absolute-form target wins over the Host field, which must still be valid.
/// `None` for HTTP/1.0 and 0.9 requests that name no host. HTTP/1.1 without a
/// Host field is refused, even when the target has an authority.
pub fn request_host(buf: &[u8], head: &RequestHead, last: &mut LastHost) -> Result<Option<Host>, Violation> {
    let from_target = match head.authority {
        Some(span) => Some(validate(buf, span).ok_or(Violation::InvalidTargetHost)?),
        None => None,
    };
    let from_field = match head.field(Known::Host) {
        Some(field) => Some(last.validate(buf, field.value).ok_or(Violation::InvalidHost)?),
        None => None,
    };
    if from_field.is_none() && head.version >= Version::Http11 {
        return Err(Violation::MissingHost);
    }
    Ok(from_target.or(from_field))
}

/// The host that a TLS client asks for, in lower case and without a port; `None` if it is not valid.
pub fn normal(text: &[u8]) -> Option<Vec<u8>> {
    let found = validate(text, Span::new(0, text.len()))?;
    Some(found.name.of(text).to_ascii_lowercase())
}

/// Splits `host [ ":" port ]` (RFC 3986 §3.2.2); `None` if it is not valid.
pub fn validate(buf: &[u8], span: Span) -> Option<Host> {
    let text = span.of(buf);
    let (length, upper) = if text.first() == Some(&b'[') {
        let (length, upper) = read_name(text.get(1..)?, LITERAL)?;
        (text.get(length + 1) == Some(&b']')).then_some((length + 2, upper))?
    } else {
        read_name(text, NAME)?
    };
    let port = match text.get(length) {
        None => None,
        Some(b':') => port(text.get(length + 1..)?)?,
        Some(_) => return None,
    };
    let name = text.get(..length)?;
    let name = name.strip_suffix(b".").unwrap_or(name);
    if name.is_empty() {
        return None;
    }
    let start = span.start as usize;
    Some(Host { name: Span::new(start, start + name.len()), port, has_upper: upper })
}

/// How many bytes at the start are `allowed` in a name, and whether one is upper-case; `None` if there are two dots
/// in a row.
#[inline]
fn read_name(text: &[u8], allowed: u8) -> Option<(usize, bool)> {
    let (mut length, mut any, mut dots, mut before) = (0, 0, 0, 0);
    for &byte in text {
        let class = BYTES.get(byte as usize).copied().unwrap_or_default();
        if class & allowed == 0 {
            break;
        }
        any |= class;
        dots |= class & before;
        before = class;
        length += 1;
    }
    (dots & DOT == 0).then_some((length, any & UPPER != 0))
}

const NAME: u8 = 1;
const LITERAL: u8 = 2;
const UPPER: u8 = 4;
const DOT: u8 = 8;

static BYTES: [u8; 256] = host_bytes();

const fn host_bytes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' => NAME | LITERAL | UPPER,
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => NAME | LITERAL,
            b'.' => NAME | LITERAL | DOT,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' => NAME | LITERAL,
            b'%' => NAME,
            b':' => LITERAL,
            _ => 0,
        };
        byte += 1;
    }
    table
}

/// Digits up to 65535; an empty port and 0 are no port, as in nginx.
fn port(digits: &[u8]) -> Option<Option<u16>> {
    let mut port = 0u32;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        port = port * 10 + u32::from(byte - b'0');
        if port > u32::from(u16::MAX) {
            return None;
        }
    }
    Some((port != 0).then_some(port as u16))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn check(text: &str, expect: Option<(&str, Option<u16>)>) {
        let span = Span::new(0, text.len());
        let got = validate(text.as_bytes(), span);
        let got = got.map(|host| (host.name.of(text.as_bytes()), host.port));
        assert_eq!(got, expect.map(|(name, port)| (name.as_bytes(), port)), "{text:?}");
    }

    #[test]
    fn a_host_that_comes_again_is_found_as_before() {
        let mut last = LastHost::default();
        let texts = ["a.example:80", "Host: a.example:80", "b", "", "a..b", "b", "[::1]:8", "A.example.", "A.example."];
        for text in texts {
            for start in [0, 6] {
                let buf = [&b"Host: "[..start], text.as_bytes()].concat();
                let span = Span::new(start, buf.len());
                assert_eq!(last.validate(&buf, span), validate(&buf, span), "{text:?}");
            }
        }
    }

    #[test]
    fn hosts() {
        check("example.com", Some(("example.com", None)));
        check("example.com:8080", Some(("example.com", Some(8080))));
        check("example.com.", Some(("example.com", None)));
        check("example.com.:80", Some(("example.com", Some(80))));
        check("Example.COM", Some(("Example.COM", None)));
        check("a_b~c%20*", Some(("a_b~c%20*", None)));
        check("[::1]", Some(("[::1]", None)));
        check("[::1]:443", Some(("[::1]", Some(443))));
        check("a:", Some(("a", None)));
        check("a:0", Some(("a", None)));
        check("a:65535", Some(("a", Some(65535))));
        check("a:00080", Some(("a", Some(80))));
    }

    #[test]
    fn no_hosts() {
        for text in [
            "",
            ".",
            ":80",
            "a..b",
            "a b",
            "a\tb",
            "a/b",
            "a@b",
            "a#b",
            "a?b",
            "a\\b",
            "a\"b",
            "a<b",
            "a:65536",
            "a:99999999999",
            "a:8o",
            "a:-1",
            "a:80:80",
            "[::1",
            "[::1]x",
            "[::1].",
            "[a%b]",
            "[]]",
            "é",
            "a\0",
            "a\u{7f}",
            ".:80",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn upper_case_is_told() {
        let has_upper = |text: &str| validate(text.as_bytes(), Span::new(0, text.len())).unwrap().has_upper;
        assert!(has_upper("eXample") && has_upper("[::A]"));
        assert!(!has_upper("example") && !has_upper("[::a]:80"));
    }
}
