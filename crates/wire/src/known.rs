//! The field names that weir acts on: found with a hash and one comparison.
//!
//! These are not all registered names: a name is here because weir reads, writes, hides or counts it.

macro_rules! known {
    ($($variant:ident $name:literal $($trait_:ident)*;)+) => {
        /// A field name that weir knows (RFC 9110 §5.1: names are case-insensitive).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Known {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        const TABLE: &[Row] = &[$(Row {
            known: Known::$variant,
            name: $name,
            traits: 0 $(| $trait_)*,
        },)+];
    };
}

struct Row {
    known: Known,
    name: &'static str,
    traits: u8,
}

/// Belongs to one connection, not to the message (RFC 9110 §7.6.1).
const HOP: u8 = 1;
/// A second one in a request is refused (nginx: unique header lines).
const ONCE: u8 = 2;
/// A second one from an origin is left out (nginx: "duplicate header line ... ignored").
const FIRST: u8 = 4;
/// Never taken from a trailer section (RFC 9110 §6.5.1).
const HEAD: u8 = 8;

known! {
    Te "TE" HOP HEAD;
    Age "Age";
    Via "Via";
    Date "Date" FIRST;
    Etag "ETag" FIRST;
    From "From";
    Host "Host" ONCE HEAD;
    Link "Link";
    Vary "Vary";
    Allow "Allow";
    Depth "Depth";
    Range "Range" HEAD;
    XPad "X-Pad";
    Accept "Accept";
    Cookie "Cookie" HEAD;
    Expect "Expect" ONCE HEAD;
    Origin "Origin";
    Pragma "Pragma";
    Server "Server" FIRST;
    Status "Status" FIRST;
    AltSvc "Alt-Svc";
    Expires "Expires" FIRST;
    Referer "Referer";
    Refresh "Refresh" FIRST;
    Trailer "Trailer" HOP HEAD;
    Upgrade "Upgrade" HOP HEAD;
    IfMatch "If-Match" ONCE HEAD;
    IfRange "If-Range" ONCE HEAD;
    Location "Location" FIRST;
    Forwarded "Forwarded" HEAD;
    Overwrite "Overwrite";
    XRealIp "X-Real-IP" HEAD;
    Connection "Connection" HOP HEAD;
    KeepAlive "Keep-Alive" HOP HEAD;
    SetCookie "Set-Cookie" HEAD;
    UserAgent "User-Agent";
    Destination "Destination";
    RetryAfter "Retry-After";
    ContentType "Content-Type" HEAD FIRST;
    MaxForwards "Max-Forwards" HEAD;
    XRequestId "X-Request-ID";
    AcceptRanges "Accept-Ranges";
    Authorization "Authorization" ONCE HEAD;
    CacheControl "Cache-Control" HEAD;
    ContentRange "Content-Range" ONCE HEAD;
    IfNoneMatch "If-None-Match" ONCE HEAD;
    LastModified "Last-Modified" FIRST;
    ContentLength "Content-Length" ONCE HEAD;
    Http2Settings "HTTP2-Settings" HOP HEAD;
    AcceptCharset "Accept-Charset";
    AcceptEncoding "Accept-Encoding";
    AcceptLanguage "Accept-Language";
    XAccelCharset "X-Accel-Charset" FIRST;
    XAccelExpires "X-Accel-Expires" FIRST;
    XForwardedFor "X-Forwarded-For" HEAD;
    ContentEncoding "Content-Encoding" HEAD;
    ContentLanguage "Content-Language";
    ContentLocation "Content-Location";
    ProxyConnection "Proxy-Connection" HOP HEAD;
    WwwAuthenticate "WWW-Authenticate" HEAD;
    XAccelRedirect "X-Accel-Redirect" FIRST;
    XForwardedHost "X-Forwarded-Host" HEAD;
    IfModifiedSince "If-Modified-Since" ONCE HEAD;
    SecWebSocketKey "Sec-WebSocket-Key";
    TransferEncoding "Transfer-Encoding" ONCE HOP HEAD;
    XAccelBuffering "X-Accel-Buffering" FIRST;
    XForwardedProto "X-Forwarded-Proto" HEAD;
    XAccelLimitRate "X-Accel-Limit-Rate" FIRST;
    ProxyAuthenticate "Proxy-Authenticate" HOP HEAD;
    ContentDisposition "Content-Disposition";
    IfUnmodifiedSince "If-Unmodified-Since" ONCE HEAD;
    ProxyAuthorization "Proxy-Authorization" ONCE HOP HEAD;
    SecWebSocketAccept "Sec-WebSocket-Accept";
    SecWebSocketVersion "Sec-WebSocket-Version";
    SecWebSocketProtocol "Sec-WebSocket-Protocol";
    SecWebSocketExtensions "Sec-WebSocket-Extensions";
    StrictTransportSecurity "Strict-Transport-Security";
}

/// Places of the hash table, about three times as many as names.
const PLACES: usize = 256;
/// No name uses this place.
const VACANT: u8 = u8::MAX;

/// Rows of the table by hash; if a place is taken, the row uses the next free place.
static PLACE: [u8; PLACES] = places();

const fn places() -> [u8; PLACES] {
    assert!(TABLE.len() < PLACES / 2, "a miss must soon come to a vacant place");
    let mut places = [VACANT; PLACES];
    let mut row = 0;
    while row < TABLE.len() {
        let name = TABLE[row].name.as_bytes();
        let mut place = hash(name.len(), name[0], name[name.len() - 1]);
        while places[place] != VACANT {
            place = (place + 1) % PLACES;
        }
        places[place] = row as u8;
        row += 1;
    }
    places
}

/// Length, first and last letter; the factors were found by trial: with them, only two names share a place with
/// another.
const fn hash(length: usize, first: u8, last: u8) -> usize {
    (length * 21 + (first | 0x20) as usize * 49 + (last | 0x20) as usize * 13) % PLACES
}

/// Whether a name is the name in the table, without regard to case.
///
/// A word at a time, the last word overlapping. It ignores the case bit only at the letters of the table's name: in
/// `[0-9A-Za-z-]` only letters have the bit 0x40.
#[inline]
fn same(name: &[u8], table: &[u8]) -> bool {
    match name.len() {
        length if length != table.len() => false,
        0..4 => name.eq_ignore_ascii_case(table),
        4..8 => same_words::<4>(name, table),
        _ => same_words::<8>(name, table),
    }
}

/// As `same`, for two names of the same length, which is at least `WORD`. `WORD` is at most 8.
#[inline]
fn same_words<const WORD: usize>(name: &[u8], table: &[u8]) -> bool {
    let Some(last) = name.len().checked_sub(WORD) else {
        return false;
    };
    let mut at = 0;
    loop {
        let (Some(ours), Some(theirs)) = (word::<WORD>(name, at), word::<WORD>(table, at)) else {
            return false;
        };
        let case = (theirs & 0x4040_4040_4040_4040) >> 1;
        if ours | case != theirs | case {
            return false;
        }
        if at == last {
            return true;
        }
        at = (at + WORD).min(last);
    }
}

#[inline]
fn word<const WORD: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk: &[u8; WORD] = bytes.get(at..)?.first_chunk()?;
    let mut word = [0; 8];
    word.get_mut(..WORD)?.copy_from_slice(chunk);
    Some(u64::from_ne_bytes(word))
}

impl Known {
    /// The entry for this name, in any case; `None` for a name not in the table.
    #[inline]
    pub fn of(name: &[u8]) -> Option<Known> {
        let mut place = hash(name.len(), *name.first()?, *name.last()?);
        loop {
            let row = TABLE.get(*PLACE.get(place)? as usize)?;
            if same(name, row.name.as_bytes()) {
                return Some(row.known);
            }
            place = (place + 1) % PLACES;
        }
    }

    /// As [`Known::of`], for tables made at compile time.
    pub(crate) const fn of_const(name: &[u8]) -> Option<Known> {
        let mut row = 0;
        while row < TABLE.len() {
            if TABLE[row].name.as_bytes().eq_ignore_ascii_case(name) {
                return Some(TABLE[row].known);
            }
            row += 1;
        }
        None
    }

    /// The name in its usual spelling.
    pub fn name(self) -> &'static str {
        TABLE.get(self as usize).map_or("", |row| row.name)
    }

    /// Whether the field belongs to one connection and is not passed on (RFC 9110 §7.6.1); fields that Connection
    /// names are added to these.
    #[inline]
    pub fn is_hop_by_hop(self) -> bool {
        self.has(HOP)
    }

    /// Whether a request with two of them is refused (nginx's unique header lines).
    #[inline]
    pub fn is_single_in_request(self) -> bool {
        self.has(ONCE)
    }

    /// Whether only the first counts if an origin sends several (nginx: `upstream sent duplicate header line ...
    /// ignored`).
    #[inline]
    pub fn is_first_in_response(self) -> bool {
        self.has(FIRST)
    }

    /// Whether a trailer section may not carry it (RFC 9110 §6.5.1: framing,
    /// routing, request modifiers, authentication, content processing).
    #[inline]
    pub fn is_forbidden_in_trailer(self) -> bool {
        self.has(HEAD)
    }

    #[inline]
    fn has(self, trait_: u8) -> bool {
        TABLE.get(self as usize).is_some_and(|row| row.traits & trait_ != 0)
    }
}

/// A set of [`Known`] names: the names in a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSet([u64; 2]);

const _: () = assert!(TABLE.len() <= 128, "KnownSet is 128 bits");

impl KnownSet {
    /// Whether the name is in the set.
    #[inline]
    pub fn contains(self, name: Known) -> bool {
        self.0.get(name as usize / 64).is_some_and(|word| word & 1 << (name as u8 % 64) != 0)
    }

    /// Adds the name.
    #[inline]
    pub fn insert(&mut self, name: Known) {
        if let Some(word) = self.0.get_mut(name as usize / 64) {
            *word |= 1 << (name as u8 % 64);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn every_name_finds_itself() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.known as usize, index);
            assert_eq!(Known::of(row.name.as_bytes()), Some(row.known));
            assert_eq!(Known::of(row.name.to_ascii_uppercase().as_bytes()), Some(row.known));
            assert_eq!(Known::of(row.name.to_ascii_lowercase().as_bytes()), Some(row.known));
            assert_eq!(row.known.name(), row.name);
        }
    }

    #[test]
    fn near_misses_are_not_known() {
        for name in ["", "Hos", "Hosts", "Content_Length", "Content-Lengti", "TRANSFER-ENCODIN\u{7}"] {
            assert_eq!(Known::of(name.as_bytes()), None, "{name}");
        }
        assert_eq!(Known::of(&[b'a'; 300]), None);
        for row in TABLE {
            for at in 0..row.name.len() {
                for bit in [0x01, 0x10, 0x20, 0x40, 0x80] {
                    let mut name = row.name.as_bytes().to_vec();
                    name[at] ^= bit;
                    let exact = TABLE.iter().find(|row| row.name.as_bytes().eq_ignore_ascii_case(&name));
                    assert_eq!(Known::of(&name), exact.map(|row| row.known));
                }
            }
        }
    }

    #[test]
    fn traits_are_those_of_the_rfc_and_of_nginx() {
        assert!(Known::Connection.is_hop_by_hop() && Known::Te.is_hop_by_hop());
        assert!(!Known::Host.is_hop_by_hop() && !Known::Date.is_hop_by_hop());
        assert!(Known::ContentLength.is_single_in_request());
        assert!(!Known::Cookie.is_single_in_request());
        assert!(Known::Server.is_first_in_response() && !Known::SetCookie.is_first_in_response());
        assert!(Known::TransferEncoding.is_forbidden_in_trailer());
        assert!(!Known::Etag.is_forbidden_in_trailer());
    }
}
