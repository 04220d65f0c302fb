//! The static table (RFC 7541 Appendix A).

use crate::known::Known;
use crate::section::table::TableEntry;

/// The size of a peer's table unless SETTINGS change it (RFC 9113 §6.5.2).
pub const TABLE_BYTES_DEFAULT: usize = 4096;

/// Names and values, from index 1 on.
pub(super) const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The first index of a name in the static table, from 1 on.
pub(super) fn static_name(known: Known) -> Option<usize> {
    Some(usize::from(*STATIC_OF_KNOWN.get(known as usize)?)).filter(|&index| index > 0)
}

/// The static entry of that index, from 1 on.
pub(super) fn static_entry(index: usize) -> Option<TableEntry<'static>> {
    let at = index.checked_sub(1)?;
    let (name, value) = STATIC.get(at)?;
    Some(TableEntry { name: name.as_bytes(), value: value.as_bytes(), known: *KNOWN_OF_STATIC.get(at)? })
}

const KNOWN_OF_STATIC: [Option<Known>; STATIC.len()] = known_of_static();
static STATIC_OF_KNOWN: [u8; 128] = static_of_known();

const fn known_of_static() -> [Option<Known>; STATIC.len()] {
    let mut known = [None; STATIC.len()];
    let mut at = 0;
    while at < STATIC.len() {
        known[at] = Known::of_const(STATIC[at].0.as_bytes());
        at += 1;
    }
    known
}

const fn static_of_known() -> [u8; 128] {
    let mut index = [0; 128];
    let mut at = STATIC.len();
    while at > 0 {
        if let Some(known) = KNOWN_OF_STATIC[at - 1] {
            index[known as usize] = at as u8;
        }
        at -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_entries_have_their_names() {
        assert_eq!(static_entry(0), None);
        assert_eq!(static_entry(62), None);
        let entry = static_entry(31).map(|entry| (entry.name, entry.value, entry.known));
        assert_eq!(entry, Some((&b"content-type"[..], &b""[..], Some(Known::ContentType))));
        for index in 1..=STATIC.len() {
            let Some(TableEntry { name, known, .. }) = static_entry(index) else { continue };
            assert_eq!(known, Known::of(name), "{index}");
            if let Some(known) = known {
                assert_eq!(static_name(known), Some(index), "{index}");
            }
        }
    }
}
