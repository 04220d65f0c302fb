//! The facts about a request that the rules need, read from its fields once.

use weir_wire::Known;
use weir_wire::fields::FieldRef;

use crate::cache_control::{RequestControl, members};
use crate::personal;

/// The facts about a request that concern caching.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// It carries credentials.
    pub is_authorized: bool,
    /// It has a session cookie.
    pub has_session: bool,
    /// It has a condition, such as `If-Match`.
    pub is_conditional: bool,
    /// It asks for a range.
    pub has_range: bool,
    /// Its `Cache-Control`, or the meaning of `Pragma` without one.
    pub control: RequestControl,
}

impl RequestFacts {
    /// Reads the fields without allocating.
    pub fn read<'a>(fields: impl Iterator<Item = FieldRef<'a>>) -> RequestFacts {
        let mut facts = RequestFacts::default();
        let (mut has_control, mut has_pragma) = (false, false);
        for field in fields {
            match field.known {
                Some(Known::CacheControl) => {
                    has_control = true;
                    facts.control.add_line(field.value);
                }
                Some(Known::Pragma) => {
                    has_pragma |= members(field.value).any(|word| word.eq_ignore_ascii_case(b"no-cache"));
                }
                Some(Known::Authorization) => facts.is_authorized = true,
                Some(Known::Cookie) => facts.has_session |= personal::has_session(field.value),
                Some(Known::Range) => facts.has_range = true,
                Some(Known::IfMatch | Known::IfNoneMatch | Known::IfModifiedSince | Known::IfUnmodifiedSince) => {
                    facts.is_conditional = true
                }
                _ => {}
            }
        }
        facts.control.no_cache |= has_pragma && !has_control;
        facts
    }
}

/// Whether a method is safe (RFC 9110 §9.2.1); all others invalidate stored answers.
pub fn is_safe(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PROPFIND" | b"REPORT" | b"SEARCH")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &'static str)]) -> RequestFacts {
        RequestFacts::read(lines.iter().map(|(name, value)| FieldRef {
            name: name.as_bytes(),
            value: value.as_bytes(),
            known: Known::of(name.as_bytes()),
        }))
    }

    #[test]
    fn one_pass_finds_what_bears_on_caching() {
        let facts =
            read(&[("cookie", "a=b"), ("Cookie", "PHPSESSID=1"), ("Range", "bytes=0-"), ("if-none-match", "*")]);
        assert!(facts.has_session && facts.has_range && facts.is_conditional && !facts.is_authorized);
        assert!(read(&[("Authorization", "x")]).is_authorized);
        assert_eq!(read(&[("Host", "a"), ("Cookie", "theme=dark")]), RequestFacts::default());
    }

    #[test]
    fn pragma_counts_only_without_cache_control() {
        for (lines, expected) in [
            (&[("Pragma", "no-cache")][..], true),
            (&[("Pragma", "x, No-Cache")], true),
            (&[("Pragma", "no-cache"), ("Cache-Control", "max-age=5")], false),
            (&[("Cache-Control", "no-cache")], true),
            (&[("Pragma", "other")], false),
        ] {
            assert_eq!(read(lines).control.no_cache, expected, "{lines:?}");
        }
    }
}
