//! URLs for requests: scheme, host, port, and the target for the request line.
//!
//! The crate `url` parses them as browsers and Node do (WHATWG URL). Like Artillery's client, weir sends no `?` without
//! a query. It refuses port 0, to which nothing can connect.

use ::url::{Host, ParseError, Url as Whatwg};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_wire::escape::{Unescape, unescape_uri};
use weir_words::{Said, say};

use crate::texts;

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
    /// `user:password`, with percent escapes; sent as Basic authorization.
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
    pub fn parse(text: &str) -> Result<Url, Said> {
        if text.len() > URL_BYTES_MAX {
            return Err(say!(texts::URL_TOO_LONG, URL_BYTES_MAX));
        }
        Url::of(Whatwg::parse(text), text)
    }

    fn of(parsed: Result<Whatwg, ParseError>, text: &str) -> Result<Url, Said> {
        let bad = |why: Said| say!(texts::URL_BAD, text, why);
        let url = parsed.map_err(|error| match error {
            ParseError::EmptyHost => bad(texts::URL_NO_HOST.into()),
            ParseError::InvalidPort => bad(texts::URL_PORT.into()),
            ParseError::RelativeUrlWithoutBase => bad(texts::URL_SCHEME.into()),
            ParseError::InvalidDomainCharacter | ParseError::IdnaError => bad(texts::URL_HOST.into()),
            other => bad(other.to_string().into()),
        })?;
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other if text.contains("://") => return Err(bad(say!(texts::URL_ONLY_HTTP, other))),
            _ => return Err(bad(texts::URL_SCHEME.into())),
        };
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(bad(texts::URL_NO_HOST.into())),
        };
        let port = url.port_or_known_default().filter(|port| *port > 0).ok_or_else(|| bad(texts::URL_PORT.into()))?;
        let name = url.host_str().unwrap_or_default();
        let mut target = Vec::new();
        push_target(&url, &mut target);
        let user = match (url.username(), url.password()) {
            ("", None) => None,
            (user, None) => Some(user.to_owned()),
            (user, Some(password)) => Some(format!("{user}:{password}")),
        };
        Ok(Url {
            scheme,
            authority: if port == scheme.port() { name.to_owned() } else { format!("{name}:{port}") },
            host,
            port,
            target: text_of(target),
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

    /// The absolute URL of a reference relative to this URL: a `Location`.
    pub fn join(&self, reference: &str) -> Result<Url, Said> {
        if reference.len() > URL_BYTES_MAX {
            return Err(say!(texts::URL_TOO_LONG, URL_BYTES_MAX));
        }
        Url::of(Whatwg::parse(&self.shown()).and_then(|here| here.join(reference)), reference)
    }
}

/// Appends path and query for the request line: escaped, dot segments resolved, without the fragment.
pub fn write_target(text: &[u8], out: &mut Vec<u8>) {
    if is_plain(text) {
        out.extend_from_slice(text);
        return;
    }
    let slash = if matches!(text.first(), Some(b'/' | b'\\' | b'?' | b'#')) { "" } else { "/" };
    match Whatwg::parse(&format!("http://a{slash}{}", String::from_utf8_lossy(text))) {
        Ok(url) => push_target(&url, out),
        Err(_) => out.push(b'/'),
    }
}

fn push_target(url: &Whatwg, out: &mut Vec<u8>) {
    out.extend_from_slice(url.path().as_bytes());
    if let Some(query) = url.query().filter(|query| !query.is_empty()) {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
}

/// The text of a target, which is ASCII.
fn text_of(target: Vec<u8>) -> String {
    String::from_utf8(target).unwrap_or_else(|_| "/".to_owned())
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
    text.first() == Some(&b'/') && before != b'?'
}

static PLAIN: [bool; 256] = plain();

const fn plain() -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        table[byte] = !matches!(byte as u8, b'"' | b'#' | b'<' | b'>' | b'\'' | b'\\' | b'`' | b'{' | b'}');
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
        let target_of = |text: &str| {
            let mut target = Vec::new();
            write_target(text.as_bytes(), &mut target);
            text_of(target)
        };
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
            ("/^`{}?^`{}\\", "/^%60%7B%7D?^`{}\\"),
            ("/a\tb?c\nd", "/ab?cd"),
            ("/%zz%", "/%zz%"),
            ("x", "/x"),
            (":81/x", "/:81/x"),
            ("@b/x", "/@b/x"),
            ("?x", "/?x"),
            ("", "/"),
        ] {
            assert_eq!(target_of(text), target, "{text}");
        }
    }

    /// Each result is Node 22's (22.23.3) for the same text.
    #[test]
    fn differences_from_the_crate() {
        for (text, target) in [("http://a/x?", "/x"), ("http://a/x?#f", "/x"), ("http://a?", "/")] {
            let url = Whatwg::parse(text).unwrap();
            assert_eq!(Url::parse(text).unwrap().target, target, "{text}");
            let whole = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
            assert_ne!(whole, target, "{text}: no difference any more");
            let mut written = Vec::new();
            write_target(text.trim_start_matches("http://a").as_bytes(), &mut written);
            assert_eq!(text_of(written), target, "{text}");
        }
    }

    /// As in Node: names in Unicode, escapes, and other forms of addresses.
    #[test]
    fn hosts() {
        for (text, authority, host) in [
            ("http://bücher.de/", "xn--bcher-kva.de", "xn--bcher-kva.de"),
            ("http://127.1:81/", "127.0.0.1:81", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1", "127.0.0.1"),
            ("http://[::0:1]/", "[::1]", "::1"),
            ("http://a%41/", "aa", "aa"),
            ("http:a/", "a", "a"),
            ("http://a_b/", "a_b", "a_b"),
            ("http://a:/", "a", "a"),
            ("http://\u{ff41}/", "a", "a"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!(
                (url.authority.as_str(), url.host.as_str(), url.target.as_str()),
                (authority, host, "/"),
                "{text}"
            );
        }
    }

    #[test]
    fn plain_targets_are_what_the_crate_makes() {
        for byte in 0..=0x7f {
            for text in [vec![b'/', byte], vec![b'/', b'a', byte, b'b'], vec![b'/', b'?', byte, b'b']] {
                let mut whole = Vec::new();
                push_target(
                    &Whatwg::parse(&format!("http://a{}", String::from_utf8_lossy(&text))).unwrap(),
                    &mut whole,
                );
                assert!(!is_plain(&text) || whole == text, "{text:?}");
            }
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
            ("http://a|b/", "no host has"),
            ("http://[::1/", "IPv6"),
            ("a.b/x", "begin with http://"),
        ] {
            let refusal = Url::parse(text).expect_err(text);
            assert!(refusal.contains(why), "{text}: {refusal}");
        }
    }

    mod mutate {
        use super::*;
        /// A URL, and a `Location` of a server: the target and the host fit into a request, and a URL reads the same when it is
        /// written.
        #[test]
        fn urls() {
            let seeds = [
                "http://u:p@a.test:81/b/../c?d=e#f",
                "//b.test/x",
                "../y?z",
                "https://[::1]/",
                "http://\u{fc}.test/\u{e4}",
            ];
            let words = [
                "/", "..", "?", "#", "@", ":", "%00", "%2e", "\\", "\t", "\r\n", "http://", "\0", "é", "[", "]",
                "99999",
            ];
            let base = Url::parse("http://a.test/b/c").unwrap();
            weir_mutate::mutate(&seeds, &words, |bytes| {
                let text = String::from_utf8_lossy(bytes);
                for url in [Url::parse(&text), base.join(&text)].into_iter().flatten() {
                    assert!(
                        url.target.starts_with('/') && url.target.bytes().all(|byte| byte > b' ' && byte != 0x7f),
                        "{}",
                        url.target
                    );
                    assert!(!url.authority.is_empty() && url.authority.bytes().all(|byte| byte > b' ' && byte != b'/'));
                    let again = Url::parse(&url.shown()).unwrap();
                    assert_eq!((&again.authority, &again.target), (&url.authority, &url.target));
                }
                let mut out = Vec::new();
                write_target(&text.as_bytes().iter().copied().filter(|byte| *byte != 0).collect::<Vec<u8>>(), &mut out);
                assert!(!out.iter().any(|byte| matches!(byte, b'\r' | b'\n' | b' ')), "{}", out.escape_ascii());
            });
        }
    }
}
