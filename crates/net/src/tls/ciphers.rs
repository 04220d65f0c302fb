//! OpenSSL's words for versions, cipher suites and groups, and the ones that weir supports.
//!
//! <https://docs.openssl.org/3.0/man1/openssl-ciphers/>, <https://docs.openssl.org/3.0/man3/SSL_CTX_set1_curves/>. A
//! list in a file may name everything that OpenSSL has. weir has only the suites with forward secrecy and
//! authenticated encryption. weir reports the named suites that it does not have ([`Chosen::left_out`]), and refuses
//! a list of which nothing is left.

use super::guard::suite;
use rustls::crypto::{SupportedKxGroup, aws_lc_rs};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion};
use std::fmt;

/// A choice made with OpenSSL's words.
#[derive(Clone, Debug)]
pub struct Chosen<T> {
    /// The supported items, in the order of the list.
    pub kept: T,
    /// Items that the text names one by one and that weir does not have, as written.
    pub left_out: Vec<String>,
}

/// weir has nothing that the text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nothing {
    /// The named items that weir does not have.
    pub left_out: Vec<String>,
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no cipher match")
    }
}

impl std::error::Error for Nothing {}

/// Versions of TLS that may be spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// TLS 1.2.
    pub tls12: bool,
    /// TLS 1.3.
    pub tls13: bool,
}

impl Default for Protocols {
    fn default() -> Protocols {
        Protocols { tls12: true, tls13: true }
    }
}

impl Protocols {
    /// Changes the versions by OpenSSL's `ALL,-TLSv1.2` and similar lists, which add and remove some; `None` if a word is unknown
    /// or no version is left.
    pub fn changed(self, list: &str) -> Option<Protocols> {
        let mut kept = self;
        for word in list.split(',') {
            let (is_on, version) = match word.strip_prefix('-') {
                Some(version) => (false, version),
                None => (true, word.strip_prefix('+').unwrap_or(word)),
            };
            match version {
                "ALL" => kept = Protocols { tls12: is_on, tls13: is_on },
                "TLSv1.2" => kept.tls12 = is_on,
                "TLSv1.3" => kept.tls13 = is_on,
                "SSLv3" | "TLSv1" | "TLSv1.1" => {}
                _ => return None,
            }
        }
        (!kept.is_empty()).then_some(kept)
    }

    /// The versions of both.
    pub fn with(self, other: Protocols) -> Protocols {
        Protocols { tls12: self.tls12 || other.tls12, tls13: self.tls13 || other.tls13 }
    }

    /// Reads words such as `TLSv1.2`; `None` for a word that names no version. Older versions are left out.
    pub fn of_words<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<Chosen<Protocols>> {
        let mut kept = Protocols { tls12: false, tls13: false };
        let mut left_out = Vec::new();
        for word in words {
            match word.to_ascii_lowercase().as_str() {
                "tlsv1.2" => kept.tls12 = true,
                "tlsv1.3" => kept.tls13 = true,
                "sslv2" | "sslv3" | "tlsv1" | "tlsv1.1" => left_out.push(word.to_owned()),
                _ => return None,
            }
        }
        Some(Chosen { kept, left_out })
    }

    /// Whether no version is left.
    pub fn is_empty(self) -> bool {
        !self.tls12 && !self.tls13
    }

    pub(super) fn versions(self) -> Vec<&'static SupportedProtocolVersion> {
        let mut versions = Vec::with_capacity(2);
        if self.tls13 {
            versions.push(&rustls::version::TLS13);
        }
        if self.tls12 {
            versions.push(&rustls::version::TLS12);
        }
        versions
    }
}

/// Cipher suites, the best first: the suites of TLS 1.3, then the suites of TLS 1.2.
#[derive(Clone, Debug)]
pub struct Ciphers {
    pub(super) tls13: Vec<SupportedCipherSuite>,
    pub(super) tls12: Vec<SupportedCipherSuite>,
}

impl Default for Ciphers {
    /// All suites, in OpenSSL's order: the result of `HIGH:!aNULL:!MD5`.
    fn default() -> Ciphers {
        let tls12 = TABLE.iter().filter_map(|row| suite(row.id)).collect();
        Ciphers { tls13: TLS13.iter().filter_map(|(_, id)| suite(*id)).collect(), tls12 }
    }
}

impl Ciphers {
    /// Reads OpenSSL's list of suites for TLS 1.2; the suites of TLS 1.3 stay, as with OpenSSL.
    pub fn of_list(text: &str) -> Result<Chosen<Ciphers>, Nothing> {
        // OpenSSL: another byte is no name, no separator and no command, and ends the whole list.
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=+!@:,; ".contains(&byte);
        if !text.bytes().all(is_known) {
            return Err(Nothing { left_out: Vec::new() });
        }
        let mut list = List::default();
        for word in text.split([':', ',', ' ', ';']).filter(|word| !word.is_empty()) {
            // OpenSSL: a command may follow a word without a colon, as in DEFAULT@SECLEVEL=0.
            match word.split_once('@') {
                Some((word, command)) if !word.is_empty() => {
                    list.apply(word);
                    list.apply(&format!("@{command}"));
                }
                _ => list.apply(word),
            }
        }
        let tls12: Vec<_> = list.rows.iter().filter(|(_, on)| *on).filter_map(|(row, _)| suite(row.id)).collect();
        if tls12.is_empty() && !list.names_nothing_but_tls13(text) {
            return Err(Nothing { left_out: list.left_out });
        }
        Ok(Chosen { kept: Ciphers { tls12, ..Ciphers::default() }, left_out: list.left_out })
    }

    /// Reads OpenSSL's list of suites for TLS 1.3 (`Ciphersuites`); the suites of TLS 1.2 stay.
    pub fn with_suites(&self, text: &str) -> Result<Ciphers, Nothing> {
        let mut tls13 = Vec::new();
        for word in text.split(':').filter(|word| !word.is_empty()) {
            match TLS13.iter().find(|(name, _)| *name == word).and_then(|(_, id)| suite(*id)) {
                Some(suite) => tls13.push(suite),
                None => return Err(Nothing { left_out: vec![word.to_owned()] }),
            }
        }
        Ok(Ciphers { tls13, tls12: self.tls12.clone() })
    }

    pub(super) fn all(&self) -> Vec<SupportedCipherSuite> {
        self.tls13.iter().chain(&self.tls12).copied().collect()
    }
}

/// Groups for key exchange, the best first.
#[derive(Clone, Debug)]
pub struct Groups {
    pub(super) kept: Vec<&'static dyn SupportedKxGroup>,
}

impl Default for Groups {
    /// The groups of Mozilla's "intermediate" profile. The hybrid with ML-KEM comes first, for clients that offer it.
    fn default() -> Groups {
        use aws_lc_rs::kx_group::{SECP256R1, SECP384R1, X25519, X25519MLKEM768};
        Groups { kept: vec![X25519MLKEM768, X25519, SECP256R1, SECP384R1] }
    }
}

impl Groups {
    /// Reads a list such as `X25519:prime256v1`; `auto` is the default.
    pub fn of_list(text: &str) -> Result<Chosen<Groups>, Nothing> {
        if text == "auto" {
            return Ok(Chosen { kept: Groups::default(), left_out: Vec::new() });
        }
        let mut kept: Vec<&'static dyn SupportedKxGroup> = Vec::new();
        let mut left_out = Vec::new();
        for word in text.split([':', '/']).map(|word| word.trim_matches([' ', '*', '?'])).filter(|w| !w.is_empty()) {
            let named = GROUPS.iter().find(|(_, names)| names.iter().any(|name| name.eq_ignore_ascii_case(word)));
            let all = aws_lc_rs::ALL_KX_GROUPS;
            match named.and_then(|(id, _)| all.iter().find(|group| u16::from(group.name()) == *id)) {
                Some(group) if kept.iter().any(|known| known.name() == group.name()) => {}
                Some(group) => kept.push(*group),
                None => left_out.push(word.to_owned()),
            }
        }
        if kept.is_empty() { Err(Nothing { left_out }) } else { Ok(Chosen { kept: Groups { kept }, left_out }) }
    }
}

/// OpenSSL's name of a suite, or its number as nginx writes it: `0xc02f`.
pub fn suite_name(id: u16) -> String {
    let here = TABLE.iter().find(|row| u16::from(row.id) == id).map(|row| row.name);
    let here = here.or_else(|| TLS13.iter().find(|(_, suite)| u16::from(*suite) == id).map(|(name, _)| *name));
    let other = || ELSEWHERE.iter().find(|(other, _)| *other == id).map(|(_, name)| *name);
    here.or_else(other).map_or_else(|| format!("0x{id:04x}"), str::to_owned)
}

/// OpenSSL's name of a group, or its number as nginx writes it: `0x001d`.
pub fn group_name(id: u16) -> String {
    let named = GROUPS.iter().find(|(group, _)| *group == id).and_then(|(_, names)| names.first());
    named.map_or_else(|| format!("0x{id:04x}"), |name| (*name).to_owned())
}

/// Values that GREASE puts among real ones (RFC 8701): two equal bytes, each with the low digit `a`.
pub fn is_grease(id: u16) -> bool {
    id & 0x0f0f == 0x0a0a && id >> 8 == id & 0xff
}

/// A suite of TLS 1.2, with OpenSSL's words for it.
struct Row {
    id: CipherSuite,
    name: &'static str,
    /// The words that select it besides its name.
    words: &'static [&'static str],
    bits: u16,
}

const fn row(id: CipherSuite, name: &'static str, bits: u16, words: &'static [&'static str]) -> Row {
    Row { id, name, words, bits }
}

/// In OpenSSL's order.
static TABLE: [Row; 6] = [
    row(
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        256,
        &["aECDSA", "ECDSA", "AES", "AES256", "AESGCM", "SUITEB192", "SUITEB128"],
    ),
    row(
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-RSA-AES256-GCM-SHA384",
        256,
        &["aRSA", "RSA", "AES", "AES256", "AESGCM"],
    ),
    row(
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        256,
        &["aECDSA", "ECDSA", "CHACHA20"],
    ),
    row(
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-RSA-CHACHA20-POLY1305",
        256,
        &["aRSA", "RSA", "CHACHA20"],
    ),
    row(
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        128,
        &["aECDSA", "ECDSA", "AES", "AES128", "AESGCM", "SUITEB128", "SUITEB128ONLY"],
    ),
    row(
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-RSA-AES128-GCM-SHA256",
        128,
        &["aRSA", "RSA", "AES", "AES128", "AESGCM"],
    ),
];

/// Words that select every suite of the table.
const COMMON: [&str; 11] =
    ["ALL", "DEFAULT", "HIGH", "ECDHE", "EECDH", "kECDHE", "kEECDH", "ECDH", "TLSv1.2", "FIPS", "AEAD"];

static TLS13: [(&str, CipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
];

/// The group's number and its names, OpenSSL's own first.
static GROUPS: [(u16, &[&str]); 15] = [
    (0x0017, &["prime256v1", "P-256", "secp256r1"]),
    (0x0018, &["secp384r1", "P-384"]),
    (0x0019, &["secp521r1", "P-521"]),
    (0x001d, &["X25519"]),
    (0x001e, &["X448"]),
    (0x11ec, &["X25519MLKEM768"]),
    (0x11eb, &["SecP256r1MLKEM768"]),
    (0x11ed, &["SecP384r1MLKEM1024"]),
    (0x0201, &["MLKEM768"]),
    (0x0202, &["MLKEM1024"]),
    (0x0100, &["ffdhe2048"]),
    (0x0101, &["ffdhe3072"]),
    (0x0102, &["ffdhe4096"]),
    (0x0103, &["ffdhe6144"]),
    (0x0104, &["ffdhe8192"]),
];

/// Suites that clients offer and that weir does not have, for `$ssl_ciphers` and for lists that name them.
static ELSEWHERE: [(u16, &str); 37] = [
    (0x009e, "DHE-RSA-AES128-GCM-SHA256"),
    (0x009f, "DHE-RSA-AES256-GCM-SHA384"),
    (0xccaa, "DHE-RSA-CHACHA20-POLY1305"),
    (0xc024, "ECDHE-ECDSA-AES256-SHA384"),
    (0xc028, "ECDHE-RSA-AES256-SHA384"),
    (0x006b, "DHE-RSA-AES256-SHA256"),
    (0xc023, "ECDHE-ECDSA-AES128-SHA256"),
    (0xc027, "ECDHE-RSA-AES128-SHA256"),
    (0x0067, "DHE-RSA-AES128-SHA256"),
    (0xc00a, "ECDHE-ECDSA-AES256-SHA"),
    (0xc014, "ECDHE-RSA-AES256-SHA"),
    (0x0039, "DHE-RSA-AES256-SHA"),
    (0xc009, "ECDHE-ECDSA-AES128-SHA"),
    (0xc013, "ECDHE-RSA-AES128-SHA"),
    (0x0033, "DHE-RSA-AES128-SHA"),
    (0x009d, "AES256-GCM-SHA384"),
    (0x009c, "AES128-GCM-SHA256"),
    (0x003d, "AES256-SHA256"),
    (0x003c, "AES128-SHA256"),
    (0x0035, "AES256-SHA"),
    (0x002f, "AES128-SHA"),
    (0x000a, "DES-CBC3-SHA"),
    (0xc012, "ECDHE-RSA-DES-CBC3-SHA"),
    (0xc008, "ECDHE-ECDSA-DES-CBC3-SHA"),
    (0x0016, "DHE-RSA-DES-CBC3-SHA"),
    (0x0005, "RC4-SHA"),
    (0x0004, "RC4-MD5"),
    (0xc011, "ECDHE-RSA-RC4-SHA"),
    (0x0041, "CAMELLIA128-SHA"),
    (0x0084, "CAMELLIA256-SHA"),
    (0x0045, "DHE-RSA-CAMELLIA128-SHA"),
    (0x0088, "DHE-RSA-CAMELLIA256-SHA"),
    (0x1304, "TLS_AES_128_CCM_SHA256"),
    (0x1305, "TLS_AES_128_CCM_8_SHA256"),
    (0xc0ac, "ECDHE-ECDSA-AES128-CCM"),
    (0xc0ad, "ECDHE-ECDSA-AES256-CCM"),
    (0x00ff, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"),
];

/// A list being read: as in OpenSSL, it keeps all suites in one row and switches some of them on.
struct List {
    rows: Vec<(&'static Row, bool)>,
    left_out: Vec<String>,
}

impl Default for List {
    fn default() -> List {
        List { rows: TABLE.iter().map(|row| (row, false)).collect(), left_out: Vec::new() }
    }
}

impl List {
    fn apply(&mut self, word: &str) {
        let (operator, words) = match word.as_bytes().first() {
            Some(b'!' | b'-' | b'+') => word.split_at(1),
            Some(b'@') => return self.command(word),
            _ => ("", word),
        };
        let is_hit = |row: &Row| words.split('+').all(|word| selects(word, row));
        let (hit, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.rows).into_iter().partition(|(row, _)| is_hit(row));
        if hit.is_empty() && operator.is_empty() && ELSEWHERE.iter().any(|(_, name)| *name == words) {
            self.left_out.push(words.to_owned());
        }
        self.rows = match operator {
            "!" => rest,
            // OpenSSL moves them to the front, so that they keep their order if they are named again.
            "-" => hit.into_iter().map(|(row, _)| (row, false)).chain(rest).collect(),
            "+" => {
                let (on, off): (Vec<_>, Vec<_>) = hit.into_iter().partition(|(_, on)| *on);
                off.into_iter().chain(rest).chain(on).collect()
            }
            _ => {
                let (on, off): (Vec<_>, Vec<_>) = hit.into_iter().partition(|(_, on)| *on);
                // A suite that is already on keeps its place.
                let mut rows: Vec<_> = rest.into_iter().chain(on).collect();
                rows.sort_by_key(|(_, on)| !*on);
                let at = rows.iter().take_while(|(_, on)| *on).count();
                rows.splice(at..at, off.into_iter().map(|(row, _)| (row, true)));
                rows
            }
        };
    }

    fn command(&mut self, word: &str) {
        // Every suite here meets every security level that a list may set, so weir ignores `@SECLEVEL`.
        if word == "@STRENGTH" {
            self.rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.bits));
        }
    }

    /// A list such as `TLS_AES_128_GCM_SHA256`: people write such lists, and OpenSSL then speaks only TLS 1.3.
    fn names_nothing_but_tls13(&self, text: &str) -> bool {
        !text.is_empty() && text.split([':', ',', ' ']).all(|word| TLS13.iter().any(|(name, _)| *name == word))
    }
}

fn selects(word: &str, row: &Row) -> bool {
    word == row.name || row.words.contains(&word) || COMMON.contains(&word)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let chosen = Ciphers::of_list(text).unwrap();
        chosen.kept.tls12.iter().map(|suite| suite_name(u16::from(suite.suite()))).collect()
    }

    #[test]
    fn lists_come_to_what_openssl_makes_of_them() {
        // `openssl ciphers -tls1_2 -s LIST`, 3.0.22, without the suites that weir does not have.
        let all = [
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            "ECDHE-RSA-CHACHA20-POLY1305",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
        ];
        assert_eq!(names("HIGH:!aNULL:!MD5"), all);
        assert_eq!(names("DEFAULT:ECCdraft"), all);
        assert_eq!(names("AESGCM:!aRSA"), [all[0], all[4]]);
        assert_eq!(names("EECDH+AESGCM:EDH+AESGCM"), [all[0], all[1], all[4], all[5]]);
        assert_eq!(names("ALL:-AES256:+CHACHA20"), [all[4], all[5], all[2], all[3]]);
        assert_eq!(names("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384"), [all[5], all[1]]);
        assert_eq!(names("AES128:AES256:@STRENGTH"), [all[0], all[1], all[4], all[5]]);
        assert_eq!(names("ALL:-CHACHA20:-AES128:CHACHA20"), [all[0], all[1], all[2], all[3]]);
    }

    #[test]
    fn what_is_not_here_is_told() {
        let chosen = Ciphers::of_list("ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256").unwrap();
        assert_eq!(chosen.left_out, ["DHE-RSA-AES128-GCM-SHA256"]);
        assert_eq!(Ciphers::of_list("AES128-SHA").unwrap_err().left_out, ["AES128-SHA"]);
        for list in ["NOSUCH", "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]", "HIGH:[A|B]", "HIGH/ALL"] {
            assert!(Ciphers::of_list(list).unwrap_err().left_out.is_empty(), "{list}");
        }
        assert!(Ciphers::of_list("ALL:!ALL").is_err());
        assert!(Ciphers::of_list("TLS_AES_128_GCM_SHA256").unwrap().kept.tls12.is_empty());
        assert!(Ciphers::default().with_suites("TLS_AES_128_GCM_SHA256").unwrap().tls13.len() == 1);
        assert!(Ciphers::default().with_suites("TLS_AES_128_CCM_SHA256").is_err());
    }

    #[test]
    fn groups_go_by_any_of_their_names() {
        let ids = |text| {
            let chosen = Groups::of_list(text).unwrap();
            chosen.kept.kept.iter().map(|group| group_name(u16::from(group.name()))).collect::<Vec<_>>()
        };
        assert_eq!(ids("prime256v1"), ["prime256v1"]);
        assert_eq!(ids("X25519:P-384:secp256r1"), ["X25519", "secp384r1", "prime256v1"]);
        assert_eq!(ids("auto")[0], "X25519MLKEM768");
        assert_eq!(Groups::of_list("secp521r1:X25519").unwrap().left_out, ["secp521r1"]);
        assert!(Groups::of_list("secp521r1").is_err());
        assert_eq!(group_name(0x0a0a), "0x0a0a");
        assert!(is_grease(0x3a3a) && !is_grease(0x0a1a) && !is_grease(0x001d));
    }

    #[test]
    fn a_list_adds_versions_and_removes_them() {
        for (list, expected) in [
            ("TLSv1.2", Some((true, true))),
            ("-TLSv1.3", Some((true, false))),
            ("ALL,-TLSv1.2", Some((false, true))),
            ("-ALL,+TLSv1.3", Some((false, true))),
            ("-TLSv1.1", Some((true, true))),
            ("-ALL", None),
            ("what", None),
        ] {
            let changed = Protocols::default().changed(list);
            assert_eq!(changed.map(|kept| (kept.tls12, kept.tls13)), expected, "{list}");
        }
    }

    #[test]
    fn versions_that_are_not_here_are_left_out() {
        let read = |text: &str| Protocols::of_words(text.split(' '));
        let chosen = read("TLSv1 TLSv1.1 TLSv1.2").unwrap();
        assert_eq!((chosen.kept.tls12, chosen.kept.tls13, chosen.left_out.len()), (true, false, 2));
        assert!(read("TLSv1").unwrap().kept.is_empty());
        assert!(read("TLSv1.4").is_none());
    }
}
