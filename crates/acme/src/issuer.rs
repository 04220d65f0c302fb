//! The settings of an authority and of a certificate: what a file says.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::identifier::Identifier;
use crate::key::KeyKind;

/// The kind of challenge by which weir proves that a host is its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeType {
    /// A text at a path of the host, over plain HTTP (RFC 8555 §8.3).
    #[default]
    Http01,
    /// A certificate in a TLS handshake (RFC 8737).
    TlsAlpn01,
    /// A record in DNS for each order (RFC 8555 §8.4).
    Dns01,
    /// A record in DNS that stays (draft-ietf-acme-dns-persist).
    DnsPersist01,
}

impl ChallengeType {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            ChallengeType::Http01 => "http-01",
            ChallengeType::TlsAlpn01 => "tls-alpn-01",
            ChallengeType::Dns01 => "dns-01",
            ChallengeType::DnsPersist01 => "dns-persist-01",
        }
    }

    /// Whether the authority looks at a record in DNS: only that proves all names of a domain.
    pub fn is_dns(self) -> bool {
        matches!(self, ChallengeType::Dns01 | ChallengeType::DnsPersist01)
    }

    /// Reads a name as written in a file; the version may be left out.
    pub fn read(text: &str) -> Option<ChallengeType> {
        match text {
            "http" | "http-01" => Some(ChallengeType::Http01),
            "tls-alpn" | "tls-alpn-01" => Some(ChallengeType::TlsAlpn01),
            "dns" | "dns-01" => Some(ChallengeType::Dns01),
            "dns-persist" | "dns-persist-01" => Some(ChallengeType::DnsPersist01),
            _ => None,
        }
    }
}

/// `profile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// No other profile will do.
    pub is_required: bool,
}

/// `external_account_key`.
#[derive(Clone, PartialEq, Eq)]
pub struct External {
    /// The name of the key at the authority.
    pub key_id: String,
    /// The key.
    pub key: Vec<u8>,
}

impl fmt::Debug for External {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "External({})", self.key_id)
    }
}

/// An authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issuer {
    /// The name in the file.
    pub name: String,
    /// The URL of its directory.
    pub uri: String,
    /// `challenge`.
    pub challenge: ChallengeType,
    /// `common_name_in_csr`.
    pub names_subject: bool,
    /// `contact`, each with its scheme.
    pub contacts: Vec<String>,
    /// `external_account_key`.
    pub external: Option<External>,
    /// `preferred_chain`.
    pub chain: Option<String>,
    /// `profile`.
    pub profile: Option<Profile>,
    /// `accept_terms_of_service`.
    pub accepts_terms: bool,
}

/// A certificate to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateOrder {
    /// Its hosts, in the order of the file.
    pub identifiers: Vec<Identifier>,
    /// The kind of its key.
    pub key: KeyKind,
}

impl CertificateOrder {
    /// The first name, or the first address if there is no name.
    pub fn first_name(&self) -> &str {
        let is_name = |identifier: &&Identifier| matches!(identifier, Identifier::Dns(_));
        let first = self.identifiers.iter().find(is_name).or(self.identifiers.first());
        first.map_or("", Identifier::value)
    }

    /// The name of its files and of its lines in the log, the same as in nginx's module: the first name, and a hash of
    /// hosts and kind of key. So weir goes on with the files of nginx.
    pub fn id(&self) -> String {
        // SipHash 2-4 with keys of 0. The standard library keeps it under this name, and nothing else here must stay
        // the same over versions.
        #[allow(deprecated)]
        let mut hasher = std::hash::SipHasher::new();
        self.identifiers.hash(&mut hasher);
        self.key.hash(&mut hasher);
        format!("{}-{:x}", self.first_name(), hasher.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(names: &[&str], key: KeyKind) -> CertificateOrder {
        CertificateOrder { identifiers: names.iter().map(|name| Identifier::Dns((*name).to_owned())).collect(), key }
    }

    #[test]
    fn an_id_depends_on_hosts_their_order_and_the_key() {
        let id = order(&["a.test", "b.test"], KeyKind::default()).id();
        assert_eq!(id, order(&["a.test", "b.test"], KeyKind::Ecdsa(256)).id());
        assert!(id.starts_with("a.test-"));
        for other in [
            order(&["a.test"], KeyKind::default()),
            order(&["b.test", "a.test"], KeyKind::default()),
            order(&["a.test", "b.test"], KeyKind::Rsa(2048)),
        ] {
            assert_ne!(other.id(), id);
        }
    }

    #[test]
    fn names_come_before_addresses() {
        let identifiers = vec![Identifier::Ip("192.0.2.1".into()), Identifier::Dns("a.test".into())];
        assert_eq!(CertificateOrder { identifiers, key: KeyKind::default() }.first_name(), "a.test");
        let identifiers = vec![Identifier::Ip("192.0.2.1".into())];
        assert_eq!(CertificateOrder { identifiers, key: KeyKind::default() }.first_name(), "192.0.2.1");
    }
}
