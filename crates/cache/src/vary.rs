//! Selects the stored answer for a request (RFC 9111 §4.1): `Vary`, and the normalised request fields it names.
//!
//! Two requests select the same answer if their [`selection`]s have the same bytes. In any list, white space, empty
//! members and line breaks have no meaning; in the fields of content negotiation, case and order have none either.

use weir_wire::Known;
use weir_wire::fields::FieldRef;

use crate::cache_control::members;

/// The most bytes of all `Vary` fields of an answer together; an answer with more is not stored.
pub const NAMES_BYTES_MAX: usize = 512;

/// A field with more members keeps their order and case: it may miss a stored answer, but never gets a wrong one.
const SORTED_MAX: usize = 32;

/// Whether a `Vary` field has the member `*`.
pub fn is_all(vary: &[u8]) -> bool {
    members(vary).any(|name| name == b"*")
}

/// Writes the field names of all `Vary` lines to `out` in one form: lower case, sorted, each once, each ended by a
/// newline.
///
/// Empty if there are no names. The result goes to [`selection`].
pub fn names<'a>(vary: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut names: Vec<Vec<u8>> = vary.flat_map(members).map(<[u8]>::to_ascii_lowercase).collect();
    names.sort_unstable();
    names.dedup();
    out.clear();
    for name in names {
        out.extend_from_slice(&name);
        out.push(b'\n');
    }
}

/// Writes the values of the named request fields in one form to `out`, which it clears; it allocates only to grow
/// `out`.
///
/// The result contains the names, so that selections of different `Vary` fields differ too.
pub fn selection<'a>(names: &[u8], fields: impl Iterator<Item = FieldRef<'a>> + Clone, out: &mut Vec<u8>) {
    out.clear();
    for name in names.split(|b| *b == b'\n').filter(|name| !name.is_empty()) {
        out.extend_from_slice(name);
        let lines = fields.clone().filter(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value);
        let negotiates = matches!(
            Known::of(name),
            Some(Known::AcceptEncoding | Known::AcceptLanguage | Known::AcceptCharset | Known::Accept)
        );
        push_value(lines, negotiates, out);
        out.push(b'\n');
    }
}

/// An absent field writes nothing, an empty one a colon.
fn push_value<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone, negotiates: bool, out: &mut Vec<u8>) {
    if lines.clone().next().is_none() {
        return;
    }
    out.push(b':');
    if negotiates && lines.clone().flat_map(members).count() <= SORTED_MAX {
        push_sorted(lines, out);
    } else {
        for member in lines.flat_map(members) {
            out.extend_from_slice(member);
            out.push(b',');
        }
    }
}

/// Writes the members in lower case, sorted, each once, without quality 1.
fn push_sorted<'a>(lines: impl Iterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut spans = [(0, 0); SORTED_MAX];
    let (start, mut count) = (out.len(), 0);
    for (member, span) in lines.flat_map(members).zip(&mut spans) {
        let from = out.len();
        push_member(member, out);
        *span = (from, out.len());
        count += 1;
    }
    let unsorted_end = out.len();
    let spans = spans.get_mut(..count).unwrap_or_default();
    spans.sort_unstable_by(|a, b| out.get(a.0..a.1).cmp(&out.get(b.0..b.1)));
    let mut last: Option<(usize, usize)> = None;
    for span in spans {
        if last.is_some_and(|last| out.get(last.0..last.1) == out.get(span.0..span.1)) {
            continue;
        }
        out.extend_from_within(span.0..span.1);
        out.push(b',');
        last = Some(*span);
    }
    out.drain(start..unsorted_end);
}

/// Writes `Text/HTML ; Q=0.80` as `text/html;q=0.8`.
fn push_member(member: &[u8], out: &mut Vec<u8>) {
    for (place, part) in member.split(|b| *b == b';').enumerate() {
        let part = part.trim_ascii();
        let quality = part.split_at_checked(2).filter(|(name, _)| name.eq_ignore_ascii_case(b"q=")).map(|(_, q)| q);
        if place == 0 {
            push_lower(part, out);
        } else if let Some(quality) = quality {
            let quality = shortest(quality);
            if quality != b"1" {
                out.extend_from_slice(b";q=");
                out.extend_from_slice(quality);
            }
        } else if !part.is_empty() {
            out.push(b';');
            push_lower(part, out);
        }
    }
}

/// A quality without trailing zeros: `0.500` is `0.5`, `1.0` is `1`.
fn shortest(quality: &[u8]) -> &[u8] {
    let Some(dot) = memchr::memchr(b'.', quality) else { return quality };
    let end = quality.iter().rposition(|b| *b != b'0').unwrap_or(0);
    quality.get(..if end <= dot { dot } else { end + 1 }).unwrap_or(quality)
}

fn push_lower(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text.iter().map(u8::to_ascii_lowercase));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn select(vary: &[&str], lines: &[(&str, &str)]) -> Vec<u8> {
        let (mut named, mut out) = (Vec::new(), b"before".to_vec());
        names(vary.iter().map(|line| line.as_bytes()), &mut named);
        let fields = lines.iter().map(|(name, value)| FieldRef {
            name: name.as_bytes(),
            value: value.as_bytes(),
            known: Known::of(name.as_bytes()),
        });
        selection(&named, fields, &mut out);
        out
    }

    #[test]
    fn a_star_anywhere_is_all() {
        for (vary, expected) in
            [("*", true), ("*, *", true), (", *", true), ("Foo, *", true), ("Foo", false), ("*x", false)]
        {
            assert_eq!(is_all(vary.as_bytes()), expected, "{vary}");
        }
    }

    #[test]
    fn requests_that_mean_the_same_select_the_same() {
        for (name, one, other) in [
            ("Foo", &["1, 2"][..], &["1", "2"][..]),
            ("Foo", &["1,2"], &[" 1, 2 "]),
            ("Foo", &["1,2"], &[",1,,  2,"]),
            ("Accept-Language", &["en, de"], &["de, en"]),
            ("Accept-Language", &["en, de"], &["eN, De"]),
            ("Accept-Language", &["en, de"], &[" en ,   de"]),
            ("Accept-Encoding", &["gzip;q=1.0, br;q=0.50"], &["br; Q=0.5", "GZIP"]),
            ("Accept-Encoding", &["gzip, gzip"], &["gzip"]),
            ("Accept", &["text/html;level=1"], &["Text/HTML ; Level=1"]),
        ] {
            let lines =
                |values: &[&'static str]| select(&[name], &values.iter().map(|v| (name, *v)).collect::<Vec<_>>());
            assert_eq!(lines(one), lines(other), "{name} {one:?} {other:?}");
        }
        assert_eq!(select(&["Foo, BAR", "foo"], &[("foo", "1")]), select(&["bar,Foo"], &[("FOO", "1")]));
        assert_eq!(select(&["Foo"], &[("Foo", "1"), ("Other", "2")]), select(&["Foo"], &[("Foo", "1")]));
    }

    #[test]
    fn requests_that_differ_select_what_differs() {
        for (name, one, other) in [
            ("Foo", &["1"][..], &["2"][..]),
            ("Foo", &["1"], &[]),
            ("Foo", &[""], &[]),
            ("Foo", &["1,2"], &["2,1"]),
            ("Foo", &["a"], &["A"]),
            ("Foo", &["foo,bar"], &["foobar"]),
            ("Accept-Encoding", &["gzip"], &["gzip;q=0"]),
            ("Accept-Encoding", &["gzip"], &["deflate"]),
            ("Accept-Language", &["en"], &["en, de"]),
        ] {
            let lines =
                |values: &[&'static str]| select(&[name], &values.iter().map(|v| (name, *v)).collect::<Vec<_>>());
            assert_ne!(lines(one), lines(other), "{name} {one:?} {other:?}");
        }
        assert_ne!(select(&["a"], &[("a", "1"), ("b", "1")]), select(&["b"], &[("a", "1"), ("b", "1")]));
        assert_eq!(select(&[], &[("a", "1")]), b"");
    }

    #[test]
    fn very_long_lists_keep_their_order() {
        let many = |step: usize| (0..=SORTED_MAX).map(|n| format!("x{}", n * step % 37)).collect::<Vec<_>>().join(",");
        let select = |value: &str| select(&["Accept"], &[("Accept", value)]);
        assert_ne!(select(&many(1)), select(&many(5)));
        assert_eq!(select(&many(5)), select(&many(5).replace(',', " , ")));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(vary: Vec<u8>, value: Vec<u8>, lines in 0..4_usize) {
            let (mut named, mut out, mut again) = (Vec::new(), Vec::new(), Vec::new());
            is_all(&vary);
            names([vary.as_slice(), b"accept-encoding"].into_iter(), &mut named);
            let name = b"Accept-Encoding".as_slice();
            let fields = std::iter::repeat_n(FieldRef { name, value: &value, known: Known::of(name) }, lines);
            selection(&named, fields.clone(), &mut out);
            selection(&named, fields, &mut again);
            prop_assert_eq!(out, again);
        }

        #[test]
        fn order_of_languages_is_nothing(mut list in proptest::collection::vec("[a-c]{1,2}(;q=0\\.[0-9]{1,3})?", 0..9)) {
            let one = select(&["Accept-Language"], &[("Accept-Language", &list.join(","))]);
            list.reverse();
            prop_assert_eq!(one, select(&["Accept-Language"], &[("Accept-Language", &list.join(" , "))]));
        }
    }
}
