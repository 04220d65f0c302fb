//! Cookies of one virtual user (RFC 6265). Where the RFC leaves a choice, weir does as npm's tough-cookie.
//!
//! There is no list of public suffixes: a Domain of a single label (`com`) is refused, `co.uk` is not.

use weir_wire::date::parse_http_date;

use crate::url::Scheme;
use crate::value::{Map, Value};

/// Most cookies that one virtual user keeps; a new one then replaces the oldest.
pub const COOKIES_MAX: usize = 300;
/// The longest cookie, name and value together, in bytes; browsers have the same limit.
pub const COOKIE_BYTES_MAX: usize = 4096;

/// One cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    domain: String,
    /// For this exact host only, not for its subdomains.
    is_host_only: bool,
    path: String,
    is_secure: bool,
    /// Seconds since 1970; `None`: the cookie lasts as long as the jar.
    expires: Option<i64>,
}

/// The cookie cannot be read, or is not for that host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieRefused;

/// `cookieJarOptions`: the options of npm's tough-cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// `looseMode`: accept cookies without a name.
    pub is_loose: bool,
    /// `rejectPublicSuffixes`: refuse cookies for a whole `com`.
    pub rejects_public: bool,
    /// `prefixSecurity`.
    pub prefixes: Prefixes,
}

/// How to handle a cookie whose name begins with `__Secure-` or `__Host-` but which breaks the rules of that prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefixes {
    /// `silent`: ignore it.
    Silent,
    /// `strict`: report an error.
    Strict,
    /// `unsafe-disabled`: accept it.
    Unsafe,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { is_loose: false, rejects_public: true, prefixes: Prefixes::Silent }
    }
}

/// The cookies of one virtual user, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// Takes the value of a Set-Cookie field, or `name=value`, from the answer of `host` to a request for `target`.
    /// `now` is in seconds since 1970.
    pub fn set(&mut self, text: &str, host: &str, target: &str, now: i64, rules: Rules) -> Result<(), CookieRefused> {
        let cookie = parse(text, host, target, now, rules)?;
        if !cookie.keeps_its_prefix() {
            match rules.prefixes {
                Prefixes::Silent => return Ok(()),
                Prefixes::Strict => return Err(CookieRefused),
                Prefixes::Unsafe => {}
            }
        }
        let is_same =
            |known: &Cookie| (&known.name, &known.domain, &known.path) == (&cookie.name, &cookie.domain, &cookie.path);
        let is_over = cookie.expires.is_some_and(|at| at <= now);
        match self.cookies.iter().position(is_same) {
            Some(index) if is_over => {
                self.cookies.remove(index);
            }
            // The new cookie keeps the old one's place: cookies are sent in the order in which they were first set.
            Some(index) => {
                if let Some(place) = self.cookies.get_mut(index) {
                    *place = cookie;
                }
            }
            None if is_over => {}
            None => {
                if self.cookies.len() >= COOKIES_MAX {
                    self.cookies.remove(0);
                }
                self.cookies.push(cookie);
            }
        }
        Ok(())
    }

    /// Appends the Cookie field's value for a URL, longer paths first. Returns false and appends nothing if no cookie
    /// matches.
    pub fn write(&self, scheme: Scheme, host: &str, target: &str, now: i64, out: &mut Vec<u8>) -> bool {
        if self.cookies.is_empty() {
            return false;
        }
        let begun = out.len();
        let path = target.split('?').next().unwrap_or("/");
        let mut all: Vec<&Cookie> =
            self.cookies.iter().filter(|cookie| cookie.is_for(scheme, host, path, now)).collect();
        all.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        for (index, cookie) in all.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"; ");
            }
            if !cookie.name.is_empty() {
                out.extend_from_slice(cookie.name.as_bytes());
                out.push(b'=');
            }
            out.extend_from_slice(cookie.value.as_bytes());
        }
        // A cookie may have neither a name nor a value.
        out.len() > begun
    }

    /// The cookies that have not expired, as npm's tough-cookie writes them, except `expires`, which is in
    /// milliseconds since 1970.
    pub fn list(&self, now: i64) -> Value {
        let alive = self.cookies.iter().filter(|cookie| cookie.expires.is_none_or(|at| at > now));
        Value::from(alive.map(Cookie::listed).collect::<Vec<Value>>())
    }
}

impl Cookie {
    fn listed(&self) -> Value {
        let mut map = Map::from_iter([
            ("key".into(), Value::from(&*self.name)),
            ("value".into(), Value::from(&*self.value)),
            ("domain".into(), Value::from(&*self.domain)),
            ("path".into(), Value::from(&*self.path)),
            ("hostOnly".into(), Value::Bool(self.is_host_only)),
            ("secure".into(), Value::Bool(self.is_secure)),
        ]);
        if let Some(at) = self.expires {
            map.insert("expires".into(), Value::Number(at as f64 * 1e3));
        }
        Value::from(map)
    }

    /// True if the cookie follows the rules of `__Secure-` and `__Host-` (RFC 6265bis §4.1.3).
    fn keeps_its_prefix(&self) -> bool {
        match &self.name {
            name if name.starts_with("__Secure-") => self.is_secure,
            name if name.starts_with("__Host-") => self.is_secure && self.is_host_only && self.path == "/",
            _ => true,
        }
    }

    fn is_for(&self, scheme: Scheme, host: &str, path: &str, now: i64) -> bool {
        let host_fits = if self.is_host_only { host == self.domain } else { is_within(host, &self.domain) };
        let path_fits = path
            .strip_prefix(&*self.path)
            .is_some_and(|rest| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/'));
        let is_alive = self.expires.is_none_or(|at| at > now);
        host_fits && path_fits && is_alive && (!self.is_secure || scheme == Scheme::Https)
    }
}

/// Domain matching (RFC 6265 §5.1.3).
fn is_within(host: &str, domain: &str) -> bool {
    host == domain
        || (host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
            && host.parse::<std::net::IpAddr>().is_err())
}

/// RFC 6265 §5.2 and §5.3.
fn parse(text: &str, host: &str, target: &str, now: i64, rules: Rules) -> Result<Cookie, CookieRefused> {
    let mut parts = text.split(';');
    let pair = parts.next().unwrap_or_default().trim();
    let (name, value) = match rules.is_loose {
        // As tough-cookie: one `=` at the start is ignored, and a text without `=` is a value.
        true => pair.strip_prefix('=').unwrap_or(pair).split_once('=').unwrap_or(("", pair.trim_start_matches('='))),
        false => pair.split_once('=').ok_or(CookieRefused)?,
    };
    let (name, value) = (name.trim(), value.trim());
    let is_bad = |byte: u8| byte < b' ' || byte == 0x7f;
    if (name.is_empty() && !rules.is_loose) || pair.len() > COOKIE_BYTES_MAX || pair.bytes().any(is_bad) {
        return Err(CookieRefused);
    }
    let folder = target.split('?').next().unwrap_or("/").rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: host.to_owned(),
        is_host_only: true,
        path: if folder.is_empty() { "/".to_owned() } else { folder.to_owned() },
        is_secure: false,
        expires: None,
    };
    let mut max_age = None;
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "domain" => {
                let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
                if !domain.is_empty() {
                    let is_public = rules.rejects_public && !domain.contains('.') && domain != host;
                    if is_public || !is_within(host, &domain) {
                        return Err(CookieRefused);
                    }
                    cookie.domain = domain;
                    cookie.is_host_only = false;
                }
            }
            "path" if value.starts_with('/') => cookie.path = value.to_owned(),
            "secure" => cookie.is_secure = true,
            "expires" => cookie.expires = date(value).or(cookie.expires),
            "max-age" => max_age = value.parse::<i64>().ok().or(max_age),
            _ => {}
        }
    }
    if let Some(seconds) = max_age {
        cookie.expires = Some(if seconds <= 0 { i64::MIN } else { now.saturating_add(seconds) });
    }
    Ok(cookie)
}

/// Parses HTTP's date formats, and the format with dashes that applications still send: `Wed, 21-Oct-2037 07:28:00
/// GMT`.
fn date(text: &str) -> Option<i64> {
    parse_http_date(text.as_bytes()).or_else(|| {
        let (day, rest) = text.split_once(", ")?;
        parse_http_date(format!("{day}, {}", rest.replace('-', " ")).as_bytes())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::url::Url;

    fn sent(set: &[&str], from: &str, to: &str, now: i64) -> String {
        let mut jar = Jar::default();
        let from = Url::parse(from).unwrap();
        for text in set {
            let _ = jar.set(text, &from.host, &from.target, 1000, Rules::default());
        }
        let to = Url::parse(to).unwrap();
        let mut out = Vec::new();
        assert_eq!(jar.write(to.scheme, &to.host, &to.target, now, &mut out), !out.is_empty());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_cookie_without_name_and_value_makes_no_field() {
        let mut jar = Jar::default();
        jar.set("=", "a.test", "/", 1_000, Rules { is_loose: true, ..Rules::default() }).unwrap();
        let mut out = Vec::new();
        assert!(!jar.write(Scheme::Http, "a.test", "/", 1_000, &mut out) && out.is_empty());
    }

    #[test]
    fn who_gets_which() {
        let at = "http://a.test/x/y?z";
        for (set, to, expect) in [
            (&["a=1", "b=2; HttpOnly"][..], "http://a.test/x/", "a=1; b=2"),
            (&["a=1; Path=/", "b=2; Path=/x/y"], "http://a.test/x/y/z", "b=2; a=1"),
            (&["a=1"], "http://a.test/", ""),
            (&["a=1"], "http://a.test/xx", ""),
            (&["a=1; Path=/"], "http://b.a.test/", ""),
            (&["a=1; Path=/; Domain=.a.test"], "http://b.a.test/", "a=1"),
            (&["a=1; Path=/; Domain=test"], "http://a.test/", ""),
            (&["a=1; Path=/; Domain=b.test"], "http://b.test/", ""),
            (&["a=1; Path=/; Secure"], "http://a.test/", ""),
            (&["a=1; Path=/; Secure"], "https://a.test/", "a=1"),
            (&["a=1; Path=/", "a=2; path=/"], "http://a.test/", "a=2"),
            (&["a=1; Path=/", "a=; Path=/; Max-Age=0"], "http://a.test/", ""),
            (&["a=1; Path=/", "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], "http://a.test/", ""),
            (&["a=1; Path=/; Expires=Wed, 21-Oct-2037 07:28:00 GMT"], "http://a.test/", "a=1"),
            (&["a=b=c; Path=/"], "http://a.test/", "a=b=c"),
            (&["nonsense", "=x"], "http://a.test/x/", ""),
        ] {
            assert_eq!(sent(set, at, to, 1001), expect, "{set:?} {to}");
        }
    }

    #[test]
    fn the_rules_of_the_jar() {
        let usual = Rules::default();
        let (loose, open) = (Rules { is_loose: true, ..usual }, Rules { rejects_public: false, ..usual });
        let strict = Rules { prefixes: Prefixes::Strict, ..usual };
        let off = Rules { prefixes: Prefixes::Unsafe, ..usual };
        for (text, rules, expect) in [
            ("nonsense; Path=/", usual, Err(CookieRefused)),
            ("nonsense; Path=/", loose, Ok("nonsense")),
            ("=x; Path=/", loose, Ok("x")),
            ("=a=b; Path=/", loose, Ok("a=b")),
            ("a=1; Path=/; Domain=test", usual, Err(CookieRefused)),
            ("a=1; Path=/; Domain=test", open, Ok("a=1")),
            ("__Host-a=1; Path=/", usual, Ok("")),
            ("__Host-a=1; Path=/", strict, Err(CookieRefused)),
            ("__Host-a=1; Path=/", off, Ok("__Host-a=1")),
            ("__Host-a=1; Path=/; Secure", strict, Ok("__Host-a=1")),
            ("__Secure-a=1; Path=/; Secure", usual, Ok("__Secure-a=1")),
        ] {
            let mut jar = Jar::default();
            let mut out = Vec::new();
            let set = jar.set(text, "a.test", "/", 0, rules);
            jar.write(Scheme::Https, "a.test", "/", 0, &mut out);
            assert_eq!(set.map(|()| String::from_utf8(out).unwrap()), expect.map(str::to_owned), "{text} {rules:?}");
        }
    }

    #[test]
    fn cookies_end() {
        assert_eq!(sent(&["a=1; Path=/; Max-Age=10"], "http://a/", "http://a/", 1009), "a=1");
        assert_eq!(sent(&["a=1; Path=/; Max-Age=10"], "http://a/", "http://a/", 1010), "");
    }

    #[test]
    fn there_are_not_endlessly_many() {
        let mut jar = Jar::default();
        for number in 0..COOKIES_MAX + 5 {
            jar.set(&format!("c{number}=1"), "a", "/", 0, Rules::default()).unwrap();
        }
        assert_eq!(jar.cookies.len(), COOKIES_MAX);
        assert_eq!(jar.cookies.first().unwrap().name, "c5");
    }

    mod mutate {
        use super::*;
        use weir_mutate::mutate;

        /// A server's cookies: the field that is sent back is one line, and only cookies of the host are in it.
        #[test]
        fn cookies() {
            let seeds = [
                "a=b; Domain=a.test; Path=/x; Max-Age=60; Secure; HttpOnly; SameSite=Lax",
                "__Host-a=b; Secure; Path=/",
                "a=b; Expires=Sun, 06 Nov 2094 08:49:37 GMT",
                "=; ;;domain=.;path=x",
            ];
            let words = [
                ";",
                "=",
                " ",
                "Domain=",
                "test",
                "Path=/",
                "Max-Age=-99999999999999999999",
                "Expires=",
                "\r\n",
                "\0",
                "é",
                "\u{130}",
            ];
            mutate(&seeds, &words, |bytes| {
                let text = String::from_utf8_lossy(bytes);
                for is_loose in [false, true] {
                    let mut jar = Jar::default();
                    let _ = jar.set(&text, "www.a.test", "/x/y?z", 1_000, Rules { is_loose, ..Rules::default() });
                    let mut out = Vec::new();
                    let is_sent = jar.write(Scheme::Https, "www.a.test", "/x/y", 1_000, &mut out);
                    assert_eq!(is_sent, !out.is_empty());
                    assert!(!out.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)), "{}", out.escape_ascii());
                    assert!(out.len() <= text.len() + 1);
                    let mut other = Vec::new();
                    assert!(!jar.write(Scheme::Https, "b.test", "/x/y", 1_000, &mut other), "{}", other.escape_ascii());
                    let _ = jar.list(1_000);
                }
            });
        }
    }
}
