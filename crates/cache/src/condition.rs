//! Checks the conditions of a request against the stored answer (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
//!
//! `family/not_modified` passes answers of an origin unchanged, and uses nginx's order for files. Cached answers
//! follow the RFC's order: `If-None-Match` outranks `If-Modified-Since`.

use weir_wire::fields::FieldRef;
use weir_wire::{Known, date};

use crate::dates;

/// The validators of a stored answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Validators<'a> {
    /// `ETag`.
    pub etag: Option<&'a [u8]>,
    /// `Last-Modified`, in seconds since 1970.
    pub last_modified: Option<i64>,
}

/// The result of the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send it.
    Send,
    /// 304.
    NotModified,
    /// 412.
    Failed,
}

/// Checks the conditions of a GET or HEAD; `since` is `if_modified_since`, or [`Since::Before`] if the file does not
/// set it.
pub fn judge<'a>(fields: impl Iterator<Item = FieldRef<'a>>, stored: Validators<'_>, since: Since) -> Verdict {
    let (mut match_, mut none_match, mut modified, mut unmodified) = (None, None, None, None);
    for field in fields {
        match field.known {
            Some(Known::IfMatch) => match_ = match_.or(Some(field.value)),
            Some(Known::IfNoneMatch) => none_match = none_match.or(Some(field.value)),
            Some(Known::IfModifiedSince) => modified = modified.or(Some(field.value)),
            Some(Known::IfUnmodifiedSince) => unmodified = unmodified.or(Some(field.value)),
            _ => {}
        }
    }
    let is_later = |text: &[u8]| dates::read(text).is_some_and(|date| stored.last_modified.is_none_or(|at| at > date));
    let failed = match (match_, unmodified) {
        (Some(list), _) => !matches(list, stored.etag, false),
        (None, Some(text)) => is_later(text),
        (None, None) => false,
    };
    if failed {
        return Verdict::Failed;
    }
    let not_modified = match (none_match, modified) {
        (Some(list), _) => matches(list, stored.etag, true),
        (None, Some(text)) => !is_modified(since, text, stored.last_modified),
        (None, None) => false,
    };
    if not_modified { Verdict::NotModified } else { Verdict::Send }
}

/// Whether `If-Range` allows sending ranges: the same strong tag, or exactly the same date (RFC 9110 §13.1.5).
pub fn allows_range(if_range: &[u8], stored: Validators<'_>) -> bool {
    if if_range.starts_with(b"\"") {
        return stored.etag == Some(if_range);
    }
    stored.last_modified.is_some() && dates::read(if_range) == stored.last_modified
}

/// The comparison of `If-Modified-Since`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// None: the answer always counts as modified.
    Off,
    /// Not modified only if the times are equal.
    Exact,
    /// Not modified if it is not later than the client's time.
    Before,
}

/// Whether it was modified since the client's time; an invalid date counts as modified.
pub fn is_modified(how: Since, text: &[u8], modified: Option<i64>) -> bool {
    let (Some(modified), Some(since)) = (modified, date::parse_http_date(text)) else { return true };
    match how {
        Since::Off => true,
        Since::Exact => since != modified,
        Since::Before => since < modified,
    }
}

/// Whether a list of entity tags contains `etag`. With `weakly`, `W/` is ignored on both sides; without it, a weak tag is
/// equal to none (RFC 9110 §8.8.3.2). nginx compares weak tags as text there.
pub fn matches(list: &[u8], etag: Option<&[u8]>, weakly: bool) -> bool {
    if list == b"*" {
        return true;
    }
    let Some(etag) = etag.filter(|etag| weakly || !is_weak(etag)) else { return false };
    let strip = |tag| if weakly { strip_weak(tag) } else { tag };
    let etag = strip(etag);
    let mut rest = list;
    while !rest.is_empty() {
        if let Some(after) = strip(rest).strip_prefix(etag)
            && matches!(after.trim_ascii_start().first(), None | Some(b','))
        {
            return true;
        }
        let comma = memchr::memchr(b',', rest).unwrap_or(rest.len());
        rest = rest.get(comma..).unwrap_or_default();
        while let Some((b' ' | b'\t' | b',', after)) = rest.split_first() {
            rest = after;
        }
    }
    false
}

fn is_weak(tag: &[u8]) -> bool {
    tag.starts_with(b"W/")
}

fn strip_weak(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:50:00 GMT";
    const EARLIER: &str = "Sunday, 06-Nov-94 08:00:00 GMT";
    const OF: Validators<'_> = Validators { etag: Some(b"\"a\""), last_modified: Some(784_111_777) };

    fn read(lines: &[(&str, &str)], stored: Validators<'_>) -> Verdict {
        let fields = lines.iter().map(|(name, value)| FieldRef {
            name: name.as_bytes(),
            value: value.as_bytes(),
            known: Known::of(name.as_bytes()),
        });
        judge(fields, stored, Since::Before)
    }

    #[test]
    fn conditions_are_judged_in_the_rfc_s_order() {
        use Verdict::{Failed, NotModified, Send};
        for (lines, expected) in [
            (&[][..], Send),
            (&[("If-None-Match", "\"a\"")], NotModified),
            (&[("If-None-Match", "W/\"a\"")], NotModified),
            (&[("If-None-Match", "\"1\", \"a\" , \"2\"")], NotModified),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", "\"b\"")], Send),
            (&[("If-None-Match", "\"a\""), ("If-Modified-Since", EARLIER)], NotModified),
            (&[("If-None-Match", "\"b\""), ("If-Modified-Since", TIME)], Send),
            (&[("If-Modified-Since", TIME)], NotModified),
            (&[("If-Modified-Since", LATER)], NotModified),
            (&[("If-Modified-Since", EARLIER)], Send),
            (&[("If-Modified-Since", "yesterday")], Send),
            (&[("If-Match", "\"a\"")], Send),
            (&[("If-Match", "\"b\"")], Failed),
            (&[("If-Match", "\"a\""), ("If-Unmodified-Since", EARLIER)], Send),
            (&[("If-Unmodified-Since", EARLIER)], Failed),
            (&[("If-Unmodified-Since", TIME)], Send),
            (&[("If-Unmodified-Since", TIME), ("If-None-Match", "\"a\"")], NotModified),
        ] {
            assert_eq!(read(lines, OF), expected, "{lines:?}");
        }
        let bare = Validators::default();
        assert_eq!(read(&[("If-None-Match", "\"a\"")], bare), Send);
        assert_eq!(read(&[("If-Modified-Since", TIME)], bare), Send);
    }

    #[test]
    fn parts_need_the_very_same() {
        let weak = Validators { etag: Some(b"W/\"a\""), ..OF };
        for (if_range, stored, expected) in [
            ("\"a\"", OF, true),
            ("\"b\"", OF, false),
            ("W/\"a\"", weak, false),
            (TIME, OF, true),
            (LATER, OF, false),
            (TIME, Validators::default(), false),
            ("yesterday", Validators::default(), false),
        ] {
            assert_eq!(allows_range(if_range.as_bytes(), stored), expected, "{if_range}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(value: Vec<u8>, etag: Vec<u8>) {
            for known in [Known::IfMatch, Known::IfNoneMatch, Known::IfModifiedSince, Known::IfUnmodifiedSince] {
                let field = FieldRef { name: b"", value: &value, known: Some(known) };
                judge([field].into_iter(), Validators { etag: Some(&etag), last_modified: Some(0) }, Since::Exact);
            }
            allows_range(&value, OF);
        }
    }

    #[test]
    fn entity_tags_are_compared_weakly_or_strongly() {
        for (list, etag, weakly, expected) in [
            ("\"a\"", Some("\"a\""), false, true),
            ("\"b\", \"a\"", Some("\"a\""), false, true),
            ("\"b\",\"a\" , \"c\"", Some("\"a\""), false, true),
            ("W/\"a\"", Some("\"a\""), false, false),
            ("W/\"a\"", Some("\"a\""), true, true),
            ("\"a\"", Some("W/\"a\""), true, true),
            ("\"a\"", Some("W/\"a\""), false, false),
            ("W/\"a\"", Some("W/\"a\""), false, false),
            ("*", Some("W/\"a\""), false, true),
            ("\"aa\"", Some("\"a"), false, false),
            ("*", None, false, true),
            ("\"a\"", None, true, false),
            ("", Some("\"a\""), true, false),
        ] {
            assert_eq!(matches(list.as_bytes(), etag.map(str::as_bytes), weakly), expected, "{list} {etag:?} {weakly}");
        }
    }

    #[test]
    fn times_are_compared_by_the_directive_s_rule() {
        let (text, time) = (&b"Sun, 06 Nov 1994 08:49:37 GMT"[..], 784_111_777);
        for (how, modified, expected) in [
            (Since::Exact, Some(time), false),
            (Since::Exact, Some(time - 1), true),
            (Since::Before, Some(time - 1), false),
            (Since::Before, Some(time + 1), true),
            (Since::Off, Some(time), true),
            (Since::Exact, None, true),
        ] {
            assert_eq!(is_modified(how, text, modified), expected, "{how:?} {modified:?}");
        }
        assert!(is_modified(Since::Exact, b"yesterday", Some(time)));
    }
}
