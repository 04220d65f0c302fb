//! The challenges that are being answered: workers look here when an authority asks.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{PoisonError, RwLock};

use weir_acme::csr::ACME_TLS;
use weir_acme::{ChallengeType, KeyKind, Proof, csr};
use weir_net::tls::{ClientHello, KeyPair, Server, ServerOptions};
use weir_wire::dns::Name;
use weir_wire::dns::serve::{Served, TEXTS_MAX};

/// Challenges of one kind that are answered at a time, at most: the hosts of some orders.
pub const CHALLENGES_MAX: usize = 1024;

/// How the names of challenges in DNS begin: weir answers for no others.
const LABELS: [&str; 2] = ["_acme-challenge.", "_validation-persist."];

/// The path of `http-01`.
const PATH: &[u8] = b"/.well-known/acme-challenge/";

/// An authority looks at a challenge that is not answered here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unregistered;

/// The challenges, shared by all workers.
#[derive(Default)]
pub struct Challenges {
    /// `http-01`: answers by token.
    texts: RwLock<HashMap<Vec<u8>, Vec<u8>>>,
    /// `tls-alpn-01`: servers by the name in the handshake.
    servers: RwLock<HashMap<String, Server>>,
    /// `dns-01` and `dns-persist-01`: texts of records by their names.
    records: RwLock<HashMap<String, Vec<String>>>,
}

impl Challenges {
    /// Answers a challenge until it is removed.
    ///
    /// # Errors
    /// The reason why it cannot be answered.
    pub fn add(&self, proof: &Proof) -> Result<(), String> {
        match proof.challenge {
            ChallengeType::Http01 => {
                insert(&self.texts, proof.token.clone().into_bytes(), proof.authorization.clone().into_bytes())
            }
            ChallengeType::TlsAlpn01 => insert(&self.servers, proof.identifier.server_name(), server(proof)?),
            ChallengeType::Dns01 | ChallengeType::DnsPersist01 => {
                let Some(record) = proof.record() else { return Ok(()) };
                let mut texts = write(&self.records).remove(&record.name).unwrap_or_default();
                texts.retain(|text| *text != record.text);
                if texts.len() >= TEXTS_MAX {
                    texts.remove(0);
                }
                texts.push(record.text);
                insert(&self.records, record.name, texts)
            }
        }
    }

    /// Answers it no more.
    pub fn remove(&self, proof: &Proof) {
        match proof.challenge {
            ChallengeType::Http01 => drop(write(&self.texts).remove(proof.token.as_bytes())),
            ChallengeType::TlsAlpn01 => drop(write(&self.servers).remove(&proof.identifier.server_name())),
            ChallengeType::Dns01 | ChallengeType::DnsPersist01 => {
                let Some(record) = proof.record() else { return };
                let mut records = write(&self.records);
                if let Some(texts) = records.get_mut(&record.name) {
                    texts.retain(|text| *text != record.text);
                    if texts.is_empty() {
                        records.remove(&record.name);
                    }
                }
            }
        }
    }

    /// The text for a path, if the path is that of a challenge.
    pub fn text(&self, path: &[u8]) -> Option<Vec<u8>> {
        let token = path.strip_prefix(PATH)?;
        self.texts.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// The records of a name.
    pub fn record(&self, name: &Name) -> Served {
        let name = name.to_string();
        let is_own = LABELS.iter().any(|label| name.starts_with(label));
        let records = self.records.read().unwrap_or_else(PoisonError::into_inner);
        match records.get(&name) {
            Some(texts) => Served::Texts(texts.clone()),
            None if is_own => Served::Absent,
            None => Served::Foreign,
        }
    }

    /// The server for a handshake, if the client is an authority that looks at a challenge. `Err` if it looks at one that
    /// is not answered here.
    pub fn server(&self, hello: &ClientHello) -> Result<Option<Server>, Unregistered> {
        if !hello.alpn.iter().any(|protocol| protocol == ACME_TLS) {
            return Ok(None);
        }
        let name = hello.server_name.as_ref().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        name.and_then(|name| servers.get(&name).cloned()).map(Some).ok_or(Unregistered)
    }
}

fn write<K, V>(table: &RwLock<HashMap<K, V>>) -> std::sync::RwLockWriteGuard<'_, HashMap<K, V>> {
    // Each change adds or removes a whole entry.
    table.write().unwrap_or_else(PoisonError::into_inner)
}

fn insert<K: Eq + Hash, V>(table: &RwLock<HashMap<K, V>>, key: K, value: V) -> Result<(), String> {
    let mut table = write(table);
    if table.len() >= CHALLENGES_MAX && !table.contains_key(&key) {
        return Err(format!("{CHALLENGES_MAX} challenges are being answered already"));
    }
    table.insert(key, value);
    Ok(())
}

/// A server that shows the certificate of a challenge, and speaks only the protocol of challenges.
fn server(proof: &Proof) -> Result<Server, String> {
    let key = KeyKind::default().generate()?;
    let certificate = csr::proof(&proof.identifier, &proof.authorization, &key)?;
    let pair = KeyPair::read(certificate.as_bytes(), key.as_bytes(), &[]);
    let pair = pair.map_err(|error| format!("unusable certificate: {error:?}"))?;
    let options = ServerOptions { identities: vec![pair], alpn: vec![ACME_TLS.to_vec()], ..ServerOptions::default() };
    Server::new(&options).map_err(|unusable| unusable.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_acme::Identifier;

    fn proof(challenge: ChallengeType, token: &str) -> Proof {
        let identifier = Identifier::Ip("192.0.2.1".to_owned());
        Proof { challenge, identifier, token: token.to_owned(), authorization: format!("{token}.thumb") }
    }

    #[test]
    fn a_text_is_shown_at_its_path_until_it_is_removed() {
        let (challenges, proof) = (Challenges::default(), proof(ChallengeType::Http01, "abc"));
        assert_eq!(challenges.text(b"/.well-known/acme-challenge/abc"), None);
        challenges.add(&proof).unwrap();
        assert_eq!(challenges.text(b"/.well-known/acme-challenge/abc").unwrap(), b"abc.thumb");
        for other in [&b"/.well-known/acme-challenge/"[..], b"/.well-known/acme-challenge/ab", b"/abc", b"abc"] {
            assert_eq!(challenges.text(other), None);
        }
        challenges.remove(&proof);
        assert_eq!(challenges.text(b"/.well-known/acme-challenge/abc"), None);
    }

    #[test]
    fn a_handshake_of_an_authority_finds_its_server() {
        let (challenges, proof) = (Challenges::default(), proof(ChallengeType::TlsAlpn01, "abc"));
        let hello = |name: &str, alpn: &[&[u8]]| ClientHello {
            server_name: Some(name.to_owned()),
            alpn: alpn.iter().map(|name| name.to_vec()).collect(),
            ..ClientHello::default()
        };
        let looking = hello("1.2.0.192.IN-ADDR.ARPA", &[ACME_TLS]);
        assert!(challenges.server(&looking).is_err());
        challenges.add(&proof).unwrap();
        assert!(challenges.server(&looking).unwrap().is_some());
        assert!(challenges.server(&hello("a.test", &[ACME_TLS])).is_err());
        assert!(challenges.server(&hello("1.2.0.192.in-addr.arpa", &[b"h2"])).unwrap().is_none());
        challenges.remove(&proof);
        assert!(challenges.server(&looking).is_err());
    }

    #[test]
    fn records_of_one_name_stand_beside_each_other() {
        let challenges = Challenges::default();
        let identifier = Identifier::Dns("a.test".to_owned());
        let proof = |token: &str| Proof { identifier: identifier.clone(), ..proof(ChallengeType::Dns01, token) };
        let name = Name::of_text("_acme-challenge.A.test").unwrap();
        assert_eq!(challenges.record(&name), Served::Absent);
        assert_eq!(challenges.record(&Name::of_text("a.test").unwrap()), Served::Foreign);
        challenges.add(&proof("one")).unwrap();
        challenges.add(&proof("two")).unwrap();
        assert!(matches!(challenges.record(&name), Served::Texts(texts) if texts.len() == 2));
        challenges.remove(&proof("one"));
        assert_eq!(challenges.record(&name), Served::Texts(vec![proof("two").record().unwrap().text]));
        challenges.remove(&proof("two"));
        assert_eq!(challenges.record(&name), Served::Absent);
    }

    #[test]
    fn the_table_is_bounded() {
        let challenges = Challenges::default();
        for number in 0..CHALLENGES_MAX {
            challenges.add(&proof(ChallengeType::Http01, &number.to_string())).unwrap();
        }
        assert!(challenges.add(&proof(ChallengeType::Http01, "one more")).is_err());
        challenges.add(&proof(ChallengeType::Http01, "0")).unwrap();
    }
}
