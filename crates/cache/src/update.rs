//! Selects the fields stored with an answer, and the fields that a 304 changes (RFC 9111 §3.1, §3.2).

use weir_wire::Known;
use weir_wire::fields::FieldRef;

use crate::cache_control::{members, withholds};
use crate::policy::{Ignored, Policy};

/// The fields of an answer that may be stored and given to others.
///
/// Left out: fields of the connection or named by `Connection`; fields named by `no-cache="…"` and `private="…"`;
/// `Age`, which is written anew; and `Set-Cookie`, unless `proxy_ignore_headers Set-Cookie` is written and sessions
/// are not guarded.
pub fn stored_fields<'a, I>(fields: I, policy: &Policy<'_>) -> impl Iterator<Item = FieldRef<'a>> + Clone
where
    I: Iterator<Item = FieldRef<'a>> + Clone,
{
    let keeps_cookies = policy.ignored.contains(Ignored::SET_COOKIE) && !policy.guards_sessions;
    let all = fields.clone();
    fields.filter(move |field| {
        let is_storable = match field.known {
            Some(Known::Age) => false,
            Some(Known::SetCookie) => keeps_cookies,
            Some(known) => !known.is_hop_by_hop(),
            None => !field.name.eq_ignore_ascii_case(b"Proxy-Authentication-Info"),
        };
        is_storable && !is_listed(all.clone(), field.name)
    })
}

/// The head of a stored answer after a 304: new fields replace stored ones of the same name.
///
/// `Content-Length`, `Content-Encoding` and `Content-Range` describe the stored bytes and stay; a stored `Age` is
/// removed. Fields of the 304 that would not be stored from another answer are left out, and so is `Set-Cookie`: it is
/// meant for one client. The result is checked like a new answer with the stored status, and may be stored.
pub fn merged<'a, I, J>(stored: I, fresh: J) -> impl Iterator<Item = FieldRef<'a>> + Clone
where
    I: Iterator<Item = FieldRef<'a>> + Clone,
    J: Iterator<Item = FieldRef<'a>> + Clone,
{
    let news = fresh.clone();
    let kept = stored.filter(move |field| {
        let is_replaced = || news.clone().any(|new| new.name.eq_ignore_ascii_case(field.name));
        field.known != Some(Known::Age) && (!may_replace(field) || !is_replaced())
    });
    let all = fresh.clone();
    let is_taken = move |field: &FieldRef<'_>| may_replace(field) && !is_listed(all.clone(), field.name);
    kept.chain(fresh.filter(is_taken))
}

/// Whether a 304 with `ETag` `fresh` confirms the stored answer with `ETag` `stored` (RFC 9111 §4.3.4).
///
/// Two strong tags must be equal; the origin accepted anything weaker by answering 304.
pub fn freshens(stored: Option<&[u8]>, fresh: Option<&[u8]>) -> bool {
    let is_strong = |etag: &&[u8]| etag.starts_with(b"\"");
    match (stored.filter(is_strong), fresh.filter(is_strong)) {
        (Some(stored), Some(fresh)) => stored == fresh,
        _ => true,
    }
}

fn may_replace(field: &FieldRef<'_>) -> bool {
    match field.known {
        Some(Known::ContentLength | Known::ContentEncoding | Known::ContentRange | Known::SetCookie) => false,
        Some(known) => !known.is_hop_by_hop(),
        None => !field.name.eq_ignore_ascii_case(b"Proxy-Authentication-Info"),
    }
}

/// Whether `Connection` or a cache directive of the message names the field.
fn is_listed<'a>(fields: impl Iterator<Item = FieldRef<'a>>, name: &[u8]) -> bool {
    let mut fields = fields;
    fields.any(|field| match field.known {
        Some(Known::Connection) => members(field.value).any(|listed| listed.eq_ignore_ascii_case(name)),
        Some(Known::CacheControl) => withholds(field.value, name),
        None if field.name.eq_ignore_ascii_case(b"CDN-Cache-Control") => withholds(field.value, name),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    type Lines = &'static [(&'static str, &'static str)];

    fn head(lines: Lines) -> impl Iterator<Item = FieldRef<'static>> + Clone {
        lines.iter().map(|(name, value)| FieldRef {
            name: name.as_bytes(),
            value: value.as_bytes(),
            known: Known::of(name.as_bytes()),
        })
    }

    fn texts<'a>(fields: impl Iterator<Item = FieldRef<'a>>) -> Vec<String> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        fields.map(|field| format!("{}: {}", text(field.name), text(field.value))).collect()
    }

    #[test]
    fn what_belongs_to_one_connection_or_one_user_is_not_stored() {
        let lines: Lines = &[
            ("Connection", "a, B"),
            ("Cache-Control", "no-cache=\"d, e\", max-age=1"),
            ("A", "1"),
            ("b", "2"),
            ("c", "3"),
            ("D", "4"),
            ("E", "5"),
            ("Keep-Alive", "x"),
            ("TE", "x"),
            ("Upgrade", "x"),
            ("Proxy-Authenticate", "x"),
            ("Proxy-Authentication-Info", "x"),
            ("Proxy-Connection", "x"),
            ("Transfer-Encoding", "chunked"),
            ("Set-Cookie", "a=b"),
            ("Age", "7"),
            ("ETag", "\"x\""),
        ];
        let policy = Policy::default();
        let expected = ["Cache-Control: no-cache=\"d, e\", max-age=1", "c: 3", "ETag: \"x\""];
        assert_eq!(texts(stored_fields(head(lines), &policy)), expected);
        let policy = Policy { ignored: Ignored::SET_COOKIE, guards_sessions: false, ..policy };
        assert!(texts(stored_fields(head(lines), &policy)).contains(&"Set-Cookie: a=b".into()));
    }

    #[test]
    fn a_304_replaces_what_it_brings_but_not_what_describes_the_bytes() {
        let stored: Lines = &[
            ("Content-Length", "36"),
            ("Content-Encoding", "gzip"),
            ("Cache-Control", "max-age=1"),
            ("Link", "a"),
            ("Link", "b"),
            ("Test", "kept"),
            ("Age", "100"),
        ];
        let fresh: Lines = &[
            ("content-length", "10"),
            ("Content-Encoding", "br"),
            ("Content-Range", "bytes 0-1/2"),
            ("cache-control", "max-age=3600"),
            ("Link", "c"),
            ("New", "1"),
            ("Connection", "close"),
        ];
        assert_eq!(
            texts(merged(head(stored), head(fresh))),
            [
                "Content-Length: 36",
                "Content-Encoding: gzip",
                "Test: kept",
                "cache-control: max-age=3600",
                "Link: c",
                "New: 1",
            ]
        );
    }

    #[test]
    fn a_304_for_another_strong_tag_is_for_another_answer() {
        for (stored, fresh, expected) in [
            (Some("\"a\""), Some("\"a\""), true),
            (Some("\"a\""), Some("\"b\""), false),
            (Some("W/\"a\""), Some("\"b\""), true),
            (Some("\"a\""), None, true),
            (None, Some("\"a\""), true),
        ] {
            assert_eq!(freshens(stored.map(str::as_bytes), fresh.map(str::as_bytes)), expected, "{stored:?} {fresh:?}");
        }
    }
}
