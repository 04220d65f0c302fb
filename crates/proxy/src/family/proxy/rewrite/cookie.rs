//! Splits a Set-Cookie value into its parts, and adds and removes flags.
//!
//! Text only: the parent module decides which cookies change, and how. Invariant: unchanged parts are written as they
//! came, except spaces around `;` and `=`. A cookie of n bytes has at most n + 1 parts, so the head's limit bounds
//! this too.

use std::borrow::Cow;

/// A set of flags to add to a cookie or to remove from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags(u8);

const SECURE: Flags = Flags(1);
const NO_SECURE: Flags = Flags(1 << 1);
const HTTP_ONLY: Flags = Flags(1 << 2);
const NO_HTTP_ONLY: Flags = Flags(1 << 3);
const STRICT: Flags = Flags(1 << 4);
const LAX: Flags = Flags(1 << 5);
const NONE: Flags = Flags(1 << 6);
const NO_SAME_SITE: Flags = Flags(1 << 7);

/// The words of `proxy_cookie_flags`.
pub(super) const FLAG_WORDS: [(&str, Flags); 8] = [
    ("secure", SECURE),
    ("nosecure", NO_SECURE),
    ("httponly", HTTP_ONLY),
    ("nohttponly", NO_HTTP_ONLY),
    ("samesite=strict", STRICT),
    ("samesite=lax", LAX),
    ("samesite=none", NONE),
    ("nosamesite", NO_SAME_SITE),
];

/// Of several, only the first is set, as in nginx.
const SAME_SITE: [(Flags, &[u8]); 3] = [(STRICT, b"Strict"), (LAX, b"Lax"), (NONE, b"None")];

impl Flags {
    /// The flag for a word, in any case.
    pub(super) fn of_word(word: &[u8]) -> Option<Flags> {
        FLAG_WORDS.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word)).map(|(_, flag)| *flag)
    }

    /// Adds a flag.
    pub(super) fn add(&mut self, flag: Flags) {
        self.0 |= flag.0;
    }

    fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    /// Removes the flag; true if it was there.
    fn take(&mut self, flag: Flags) -> bool {
        let had = self.has(flag);
        self.0 &= !flag.0;
        had
    }

    fn take_same_site(&mut self) -> Option<&'static [u8]> {
        SAME_SITE.iter().find(|(flag, _)| self.take(*flag)).map(|(_, value)| *value)
    }
}

/// The parts of a Set-Cookie value (RFC 6265 §4.1.1), without spaces around them.
pub(super) struct Cookie<'v> {
    /// The name and value of the cookie.
    pub(super) pair: Attribute<'v>,
    /// Its attributes, in order.
    pub(super) attributes: Vec<Attribute<'v>>,
}

/// `name` or `name=value`.
pub(super) struct Attribute<'v> {
    pub(super) name: &'v [u8],
    pub(super) value: Option<Cow<'v, [u8]>>,
}

impl<'v> Attribute<'v> {
    fn parse(text: &'v [u8]) -> Attribute<'v> {
        match memchr::memchr(b'=', text).and_then(|at| text.split_at_checked(at)) {
            Some((name, value)) => {
                let value = value.get(1..).unwrap_or_default();
                Attribute { name: trim(name), value: Some(Cow::Borrowed(trim(value))) }
            }
            None => Attribute { name: trim(text), value: None },
        }
    }

    fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name);
        if let Some(value) = &self.value {
            out.push(b'=');
            out.extend_from_slice(value);
        }
    }
}

impl<'v> Cookie<'v> {
    /// `None` if the cookie itself has no `=`; nginx leaves such a field unchanged.
    pub(super) fn parse(value: &'v [u8]) -> Option<Cookie<'v>> {
        let mut parts = value.split(|byte| *byte == b';').map(Attribute::parse);
        let pair = parts.next().filter(|pair| pair.value.is_some())?;
        Some(Cookie { pair, attributes: parts.collect() })
    }

    /// Adds and removes flags. A flag that is already there stays unchanged in its place.
    pub(super) fn edit(&mut self, mut flags: Flags) {
        self.attributes.retain_mut(|attribute| {
            if attribute.name.eq_ignore_ascii_case(b"secure") {
                flags.take(SECURE) || !flags.has(NO_SECURE)
            } else if attribute.name.eq_ignore_ascii_case(b"httponly") {
                flags.take(HTTP_ONLY) || !flags.has(NO_HTTP_ONLY)
            } else if attribute.name.eq_ignore_ascii_case(b"samesite") {
                let Some(wanted) = flags.take_same_site() else {
                    return !flags.has(NO_SAME_SITE);
                };
                if !attribute.value.as_ref().is_some_and(|value| value.eq_ignore_ascii_case(wanted)) {
                    *attribute = Attribute { name: b"SameSite", value: Some(Cow::Borrowed(wanted)) };
                }
                true
            } else {
                true
            }
        });
        if flags.take(SECURE) {
            self.attributes.push(Attribute { name: b"Secure", value: None });
        }
        if flags.take(HTTP_ONLY) {
            self.attributes.push(Attribute { name: b"HttpOnly", value: None });
        }
        if let Some(value) = flags.take_same_site() {
            self.attributes.push(Attribute { name: b"SameSite", value: Some(Cow::Borrowed(value)) });
        }
    }

    /// The parts joined by `; `.
    pub(super) fn text(&self, expected: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(expected);
        self.pair.append(&mut out);
        for attribute in &self.attributes {
            out.extend_from_slice(b"; ");
            attribute.append(&mut out);
        }
        out
    }
}

/// nginx drops only spaces, not tabs.
fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| *byte != b' ').unwrap_or(text.len());
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(start, |last| last + 1);
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    #[test]
    fn cookies_are_split_and_joined() {
        for (value, expected) in [
            ("a=b", Some("a=b")),
            ("a=b=c;Path=/;  HttpOnly", Some("a=b=c; Path=/; HttpOnly")),
            (" a = b ; Path = /x ", Some("a=b; Path=/x")),
            ("a=", Some("a=")),
            ("=", Some("=")),
            ("a=b;", Some("a=b; ")),
            ("a; b=c", None),
            ("", None),
            (" ;;", None),
        ] {
            let text = Cookie::parse(value.as_bytes()).map(|cookie| cookie.text(0));
            assert_eq!(text.as_deref(), expected.map(str::as_bytes), "{value:?}");
        }
    }

    #[test]
    fn flags_are_put_on_and_taken_off() {
        for (value, words, expected) in [
            ("a=b", "secure httponly samesite=lax", "a=b; Secure; HttpOnly; SameSite=Lax"),
            ("a=b;secure;path=/", "secure", "a=b; secure; path=/"),
            ("a=b;secure;secure", "nosecure", "a=b"),
            ("a=b;secure;secure", "secure nosecure", "a=b; secure"),
            ("secure=1;x", "nosecure", "secure=1; x"),
            ("a=b;samesite=NONE", "SameSite=None", "a=b; samesite=NONE"),
            ("a=b;samesite;path=/", "samesite=strict", "a=b; SameSite=Strict; path=/"),
            ("a=b;SameSite=Lax;HttpOnly", "nosamesite nohttponly", "a=b"),
            ("a=b", "samesite=none samesite=strict", "a=b; SameSite=Strict"),
            ("a=b", "nosecure nohttponly nosamesite", "a=b"),
        ] {
            let mut flags = Flags::default();
            for word in words.split(' ') {
                flags.add(Flags::of_word(word.as_bytes()).expect(word));
            }
            let mut cookie = Cookie::parse(value.as_bytes()).unwrap();
            cookie.edit(flags);
            assert_eq!(String::from_utf8(cookie.text(0)).unwrap(), expected, "{value} + {words}");
        }
        assert_eq!(Flags::of_word(b"samesite"), None);
        assert_eq!(Flags::of_word(b""), None);
    }

    mod mutate {
        use super::*;
        /// A cookie of an origin keeps its parts: edited twice, it is the same as edited once, and it grows by its flags alone.
        #[test]
        fn cookies() {
            let seeds = ["a=b; Path=/; Secure", "a = b ;HttpOnly; SameSite=Lax", "a; b=c", "=; ;;=x; samesite"];
            weir_mutate::mutate(&seeds, &[";", "=", " ", "secure", "SameSite=", "HttpOnly", "\t", "é"], |value| {
                for flags in [SECURE, NO_SECURE, HTTP_ONLY, NO_HTTP_ONLY, STRICT, NO_SAME_SITE] {
                    let Some(mut cookie) = Cookie::parse(value) else { continue };
                    cookie.edit(flags);
                    let once = cookie.text(0);
                    assert!(once.len() <= 2 * value.len() + b"; SameSite=Strict".len());
                    let mut again = Cookie::parse(&once).unwrap();
                    again.edit(flags);
                    assert_eq!(again.text(0).escape_ascii().to_string(), once.escape_ascii().to_string());
                }
            });
        }
    }
}
