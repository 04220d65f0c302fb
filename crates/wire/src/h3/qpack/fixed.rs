//! The static table (RFC 9204 Appendix A).

use std::ops::Range;

use crate::known::Known;
use crate::section::table::TableEntry;

/// Names and values, from index 0 on.
const STATIC: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html;charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000;includesubdomains"),
    ("strict-transport-security", "max-age=31536000;includesubdomains;preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1;mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none';object-src 'none';base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

const KNOWN_OF_STATIC: [Option<Known>; STATIC.len()] = known_of_static();
/// By name: the index of its first entry, and one past that of its last; 0 and 0 if there is none.
static STATIC_OF_KNOWN: [(u8, u8); 128] = static_of_known();

/// The static entry of that index.
pub fn entry(index: u64) -> Option<TableEntry<'static>> {
    let at = usize::try_from(index).ok()?;
    let (name, value) = STATIC.get(at)?;
    Some(TableEntry { name: name.as_bytes(), value: value.as_bytes(), known: *KNOWN_OF_STATIC.get(at)? })
}

/// The entries with the name of a known field, and perhaps others between them; empty if there are none.
pub fn of_known(known: Known) -> Range<usize> {
    STATIC_OF_KNOWN.get(known as usize).map_or(0..0, |&(first, end)| usize::from(first)..usize::from(end))
}

/// As [`of_known`], for a name.
pub fn of_name(name: &str) -> Range<usize> {
    let mut places = STATIC.iter().enumerate().filter(|(_, entry)| entry.0 == name).map(|(at, _)| at);
    let Some(first) = places.next() else { return 0..0 };
    first..places.next_back().unwrap_or(first) + 1
}

/// The entry with the name of the first entry of this range, and with this value.
pub fn of_value(mut range: Range<usize>, value: &[u8]) -> Option<usize> {
    let (name, _) = STATIC.get(range.start)?;
    range.find(|&at| STATIC.get(at).is_some_and(|entry| entry.1.as_bytes() == value && entry.0 == *name))
}

const fn known_of_static() -> [Option<Known>; STATIC.len()] {
    let mut known = [None; STATIC.len()];
    let mut at = 0;
    while at < STATIC.len() {
        known[at] = Known::of_const(STATIC[at].0.as_bytes());
        at += 1;
    }
    known
}

const fn static_of_known() -> [(u8, u8); 128] {
    let mut ranges = [(0, 0); 128];
    let mut at = STATIC.len();
    while at > 0 {
        if let Some(known) = KNOWN_OF_STATIC[at - 1] {
            let end = ranges[known as usize].1;
            ranges[known as usize] = (at as u8 - 1, if end == 0 { at as u8 } else { end });
        }
        at -= 1;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_entries_have_their_names() {
        let rows = [
            (0, ":authority", ""),
            (25, ":status", "200"),
            (71, ":status", "500"),
            (98, "x-frame-options", "sameorigin"),
        ];
        for (index, name, value) in rows {
            let found = entry(index).map(|entry| (entry.name, entry.value));
            assert_eq!(found, Some((name.as_bytes(), value.as_bytes())), "{index}");
        }
        assert_eq!(entry(99), None);
        for (index, (name, value)) in STATIC.iter().enumerate() {
            let known = Known::of(name.as_bytes());
            assert_eq!(entry(index as u64).and_then(|entry| entry.known), known, "{index}");
            let range = of_name(name);
            assert!(range.contains(&index) && known.is_none_or(|known| of_known(known) == range), "{index}");
            assert_eq!(of_value(range, value.as_bytes()), Some(index));
        }
        assert_eq!((of_name("no-such-name"), of_known(Known::XPad)), (0..0, 0..0));
    }
}
