//! URLs for requests: scheme, host, port, and the target for the request line.
//!
//! Parsed as in browsers and Node (WHATWG URL), as far as http needs it: spaces and unusual bytes are escaped, dot
//! segments are resolved, a default port is left out. Host names stay as written: no punycode.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_wire::escape::{Unescape, unescape_uri};

/// The protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// The default port.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    /// The text before `://`.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    fn of(name: &str) -> Option<Scheme> {
        match name {
            name if name.eq_ignore_ascii_case("http") => Some(Scheme::Http),
            name if name.eq_ignore_ascii_case("https") => Some(Scheme::Https),
            _ => None,
        }
    }
}

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// The Host field: host, and the port unless it is the scheme's.
    pub authority: String,
    /// Host without the brackets of an IPv6 address.
    pub host: String,
    /// The port; the scheme's default if the URL has none.
    pub port: u16,
    /// Path and query; at least `/`.
    pub target: String,
    /// `user:password` as written; sent as Basic authorization.
    pub user: Option<String>,
}

/// The longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 1 << 20;

impl Url {
    /// `Basic …` for a URL with `user:password@`; percent escapes are decoded (RFC 7617).
    pub fn basic(&self) -> Option<String> {
        let (user, password) = {
            let user = self.user.as_deref()?;
            user.split_once(':').unwrap_or((user, ""))
        };
        let mut plain = Vec::new();
        unescape_uri(user.as_bytes(), Unescape::All, &mut plain);
        plain.push(b':');
        unescape_uri(password.as_bytes(), Unescape::All, &mut plain);
        Some(format!("Basic {}", STANDARD.encode(plain)))
    }

    /// The URL without user and password, for output.
    pub fn shown(&self) -> String {
        format!("{}://{}{}", self.scheme.name(), self.authority, self.target)
    }

    /// Parses a URL; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Url, String> {
        let bad = |why: &str| format!("\"{text}\" cannot be loaded: {why}");
        if text.len() > URL_BYTES_MAX {
            return Err(format!("a URL is at most {URL_BYTES_MAX} bytes"));
        }
        let text_ = text.trim_matches(|c: char| c <= ' ');
        let Some((scheme, rest)) = text_.split_once("://") else {
            return Err(bad("it must begin with http:// or https://"));
        };
        let Some(scheme) = Scheme::of(scheme) else {
            return Err(bad(&format!("no {scheme} here, only http:// and https://")));
        };
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, authority)) => (Some(user.to_owned()).filter(|user| !user.is_empty()), authority),
            None => (None, authority),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, "")) if !host.is_empty() => (host, scheme.port()),
            Some((host, port)) if !port.contains(']') => {
                let port: Option<u16> = port.parse().ok().filter(|&port| port > 0);
                (host, port.ok_or_else(|| bad("the port must be between 1 and 65535"))?)
            }
            _ => (authority, scheme.port()),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if bare.is_empty() {
            return Err(bad("it names no host"));
        }
        if bare.bytes().any(|byte| byte <= b' ' || byte == 0x7f || b"<>^|%\"`{}".contains(&byte)) {
            return Err(bad("the host has a character that no host has"));
        }
        let host = host.to_ascii_lowercase();
        Ok(Url {
            scheme,
            authority: if port == scheme.port() { host.clone() } else { format!("{host}:{port}") },
            host: bare.to_ascii_lowercase(),
            port,
            target: target_of(target),
            user,
        })
    }

    /// True if both have the same scheme, host and port.
    pub fn same_origin(&self, other: &Url) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
    }

    /// Scheme, host and port: `http://a:81`.
    pub fn origin(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.authority)
    }

    /// The absolute URL of a reference relative to this URL (RFC 3986 §5.2): a `Location`.
    pub fn join(&self, reference: &str) -> Result<Url, String> {
        let reference = reference.trim_matches(|c: char| c <= ' ');
        let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        if has_scheme {
            return Url::parse(reference);
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return Url::parse(&format!("{}://{rest}", self.scheme.name()));
        }
        let path = self.target.split('?').next().unwrap_or("/");
        let target = match reference.as_bytes().first() {
            None => self.target.clone(),
            Some(b'#') => self.target.clone(),
            Some(b'/') => target_of(reference),
            Some(b'?') => target_of(&format!("{path}{reference}")),
            Some(_) => {
                let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
                target_of(&format!("{folder}/{reference}"))
            }
        };
        Ok(Url { target, user: None, ..self.clone() })
    }
}

/// The target for the request line, from the text after the host.
fn target_of(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 1);
    write_target(text.as_bytes(), &mut out);
    // Everything outside ASCII is percent-encoded at this point.
    String::from_utf8(out).unwrap_or_else(|_| "/".to_owned())
}

/// Appends path and query for the request line: escaped, dot segments resolved, without the fragment.
pub fn write_target(text: &[u8], out: &mut Vec<u8>) {
    if is_plain(text) {
        out.extend_from_slice(text);
        return;
    }
    let text = text.split(|&byte| byte == b'#').next().unwrap_or_default();
    let query = text.iter().position(|&byte| byte == b'?');
    let (path, query) = text.split_at_checked(query.unwrap_or(text.len())).unwrap_or((text, b""));
    let start = out.len();
    for (index, segment) in path.split(|&byte| byte == b'/' || byte == b'\\').enumerate() {
        let segment = if index == 0 && segment.is_empty() { continue } else { segment };
        push_segment(segment, start, out);
    }
    // If the last segment was dots, it names a folder.
    let last = path.rsplit(|&byte| byte == b'/' || byte == b'\\').next().unwrap_or_default();
    if out.len() == start || (dots(last) > 0 && out.last() != Some(&b'/')) {
        out.push(b'/');
    }
    for &byte in query {
        escape(byte, b"\"#<>'", out);
    }
}

fn push_segment(segment: &[u8], start: usize, out: &mut Vec<u8>) {
    match dots(segment) {
        1 => {}
        2 => {
            let slash = out.get(start..).unwrap_or_default().iter().rposition(|&byte| byte == b'/');
            out.truncate(start + slash.unwrap_or(0));
        }
        _ => {
            out.push(b'/');
            for &byte in segment {
                escape(byte, b"\"#<>?^`{}", out);
            }
        }
    }
}

/// 1 for `.`, 2 for `..`, also if escaped; 0 for anything else.
fn dots(segment: &[u8]) -> usize {
    let mut rest = segment;
    let mut count = 0;
    while !rest.is_empty() && count < 3 {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return 0,
        };
        count += 1;
    }
    if count < 3 { count } else { 0 }
}

fn escape(byte: u8, set: &[u8], out: &mut Vec<u8>) {
    match byte {
        b'\t' | b'\r' | b'\n' => {}
        0..=b' ' | 0x7f.. => escaped(byte, out),
        _ if set.contains(&byte) => escaped(byte, out),
        _ => out.push(byte),
    }
}

fn escaped(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
}

/// True if the target can be sent unchanged: the usual case, found in one pass.
fn is_plain(text: &[u8]) -> bool {
    let mut before = 0;
    for &byte in text {
        let odd = PLAIN.get(usize::from(byte)).is_none_or(|plain| !plain);
        if odd || (before == b'/' && (byte == b'.' || byte == b'%')) {
            return false;
        }
        before = byte;
    }
    text.first() == Some(&b'/')
}

static PLAIN: [bool; 256] = plain();

const fn plain() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = !matches!(byte as u8, b'"' | b'#' | b'<' | b'>' | b'\'' | b'\\' | b'^' | b'`' | b'{' | b'}');
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn check(text: &str, authority: &str, host: &str, port: u16, target: &str) {
        let url = Url::parse(text).unwrap();
        let seen = (url.authority.as_str(), url.host.as_str(), url.port, url.target.as_str());
        assert_eq!(seen, (authority, host, port, target), "{text}");
    }

    #[test]
    fn parts() {
        check("http://a", "a", "a", 80, "/");
        check("http://a:80/x", "a", "a", 80, "/x");
        check("https://a:443/x", "a", "a", 443, "/x");
        check("HTTP://A.b:8080?q=/1#top", "a.b:8080", "a.b", 8080, "/?q=/1");
        check("http://[::1]:81/x", "[::1]:81", "::1", 81, "/x");
        check("http://[::1]/x?y", "[::1]", "::1", 80, "/x?y");
        check("http://u:p@a/", "a", "a", 80, "/");
        assert_eq!(Url::parse("http://u:p@a/").unwrap().user.as_deref(), Some("u:p"));
        for (user, wanted) in [("u:p", "Basic dTpw"), ("u", "Basic dTo="), ("a%40b:p:%2f", "Basic YUBiOnA6Lw==")] {
            let url = Url::parse(&format!("http://{user}@a:81/x?y")).unwrap();
            assert_eq!((url.basic().as_deref(), url.shown().as_str()), (Some(wanted), "http://a:81/x?y"));
        }
    }

    #[test]
    fn targets_are_normalised_as_node_does() {
        for (text, target) in [
            ("/a b", "/a%20b"),
            ("/a?b c'd", "/a?b%20c%27d"),
            ("/ü", "/%C3%BC"),
            ("/a/../b/./c", "/b/c"),
            ("/a/..", "/"),
            ("/a/b/..", "/a/"),
            ("/a/.", "/a/"),
            ("/../x", "/x"),
            ("//x", "//x"),
            ("/a//b", "/a//b"),
            ("/.well-known/x", "/.well-known/x"),
            ("/x?y=../z#f", "/x?y=../z"),
            ("/%2e%2E/x", "/x"),
            ("/a%20b", "/a%20b"),
            ("\\a", "/a"),
            ("/...", "/..."),
            ("/{{ id }}", "/%7B%7B%20id%20%7D%7D"),
            ("/a'b", "/a'b"),
            ("/a|b", "/a|b"),
        ] {
            assert_eq!(target_of(text), target, "{text}");
        }
    }

    #[test]
    fn references() {
        let base = Url::parse("http://a:81/b/c?d").unwrap();
        for (reference, expect) in [
            ("/x", "http://a:81/x"),
            ("x", "http://a:81/b/x"),
            ("../x", "http://a:81/x"),
            ("?y", "http://a:81/b/c?y"),
            ("", "http://a:81/b/c?d"),
            ("//h/x", "http://h/x"),
            ("https://h:1/x", "https://h:1/x"),
            ("x?to=http://q", "http://a:81/b/x?to=http://q"),
        ] {
            let url = base.join(reference).unwrap();
            assert_eq!(format!("{}{}", url.origin(), url.target), expect, "{reference}");
        }
        assert!(base.join("ftp://x/").is_err());
    }

    #[test]
    fn refusals_say_why() {
        for (text, why) in [
            ("ftp://a/", "only http://"),
            ("a:80/", "begin with http://"),
            ("http://", "no host"),
            ("http://:80/", "no host"),
            ("http://a:0/", "between 1 and 65535"),
            ("http://a:99999/", "between 1 and 65535"),
            ("http://a b/", "no host has"),
            ("http://{{ x }}/", "no host has"),
        ] {
            let refusal = Url::parse(text).expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }
}
