//! The chain of certificates that an authority sends: whether weir can use it, and its identifier for renewals.

use std::fmt;
use std::net::IpAddr;

use weir_net::tls::{self, CertificateFacts};

use crate::account_key::base64url;
use crate::identifier::Identifier;
use crate::problem::shown;

/// The longest chain that weir accepts.
const CHAIN_MAX: usize = 16;

/// A certificate with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The chain as PEM, the server's own certificate first.
    pub chain: String,
    /// The key as PEM.
    pub key: String,
    /// The beginning of its validity; seconds since 1970.
    pub begins: i64,
    /// The end of its validity; seconds since 1970.
    pub ends: i64,
    /// Its identifier in the questions of RFC 9773; `None` if it has no authority key identifier.
    pub renewal_id: Option<String>,
}

impl fmt::Debug for Issued {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Issued({}..{})", self.begins, self.ends)
    }
}

/// Why a chain cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It cannot be read: the reason.
    Unreadable(String),
    /// There is no certificate in it.
    Empty,
    /// It has more than `CHAIN_MAX` certificates.
    Long,
    /// It is for another key.
    Key,
    /// It is not for this host.
    Host(String),
    /// Its time is over.
    Expired,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unreadable(why) => write!(f, "PEM_read_bio_X509() failed: {}", shown(why)),
            Unfit::Empty => f.write_str("no certificate in the completed order"),
            Unfit::Long => write!(f, "the certificate chain has more than {CHAIN_MAX} certificates"),
            Unfit::Key => f.write_str("the certificate is for another key"),
            Unfit::Host(host) => write!(f, "the certificate is not for \"{}\"", shown(host)),
            Unfit::Expired => f.write_str("the certificate has expired"),
        }
    }
}

/// The certificates of a PEM text in DER.
pub(crate) fn read(text: &[u8]) -> Result<Vec<Vec<u8>>, Unfit> {
    let chain = tls::certificates(text).map_err(Unfit::Unreadable)?;
    match chain.len() {
        0 => Err(Unfit::Empty),
        1..=CHAIN_MAX => Ok(chain),
        _ => Err(Unfit::Long),
    }
}

/// Whether the topmost certificate was issued under this common name.
pub(crate) fn is_issued_by(chain: &[Vec<u8>], name: &str) -> bool {
    let top = chain.last().and_then(|der| CertificateFacts::read(der).ok());
    top.is_some_and(|top| top.issuer_names.iter().any(|known| known == name))
}

impl Issued {
    /// Puts a chain and a key together, if they belong together and suit the hosts.
    ///
    /// # Errors
    /// Why they do not.
    pub fn new(chain: &[u8], key: &str, identifiers: &[Identifier], now: i64) -> Result<Issued, Unfit> {
        let issued = Issued::kept(chain, key)?;
        let facts = leaf(chain)?;
        for identifier in identifiers {
            if !is_for(&facts, identifier) {
                return Err(Unfit::Host(identifier.value().to_owned()));
            }
        }
        if issued.ends <= now {
            return Err(Unfit::Expired);
        }
        Ok(issued)
    }

    /// Puts a chain and a key together that weir has kept: they must belong together.
    ///
    /// # Errors
    /// Why they do not.
    pub fn kept(chain: &[u8], key: &str) -> Result<Issued, Unfit> {
        let ders = read(chain)?;
        let facts = leaf(chain)?;
        tls::KeyPair::read(chain, key.as_bytes(), &[]).map_err(|error| match error {
            tls::KeyError::Mismatch => Unfit::Key,
            tls::KeyError::Certificate(why) | tls::KeyError::Key(why) => Unfit::Unreadable(why),
        })?;
        Ok(Issued {
            // Nothing but the certificates themselves is kept of the authority's text.
            chain: ders.iter().map(|der| tls::section("CERTIFICATE", der)).collect(),
            key: key.to_owned(),
            begins: facts.begins,
            ends: facts.ends,
            renewal_id: renewal_id(&facts),
        })
    }
}

fn leaf(chain: &[u8]) -> Result<CertificateFacts, Unfit> {
    let ders = read(chain)?;
    let first = ders.first().ok_or(Unfit::Empty)?;
    CertificateFacts::read(first).map_err(|flaw| Unfit::Unreadable(flaw.to_string()))
}

fn is_for(facts: &CertificateFacts, identifier: &Identifier) -> bool {
    match identifier {
        Identifier::Dns(name) => facts.names.iter().any(|known| known == name),
        Identifier::Ip(address) => {
            let address = address.parse::<IpAddr>().ok();
            address.is_some_and(|address| facts.names.iter().any(|known| known.parse() == Ok(address)))
        }
    }
}

/// RFC 9773 §4.1: authority key identifier and serial number, the latter with the bytes of its DER.
fn renewal_id(facts: &CertificateFacts) -> Option<String> {
    let authority = facts.authority_key_id.as_ref()?;
    Some(format!("{}.{}", base64url(authority), base64url(&facts.serial)))
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::KeyKind;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    /// A chain of one certificate for these hosts that an authority of its own issued, until that year.
    fn chain(key: &str, hosts: &[&str], until: i32) -> String {
        issue(key, hosts, date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1))
    }

    /// The same from `begins` on, in seconds since 1970, for so many days.
    pub(crate) fn lasting(key: &str, hosts: &[&str], begins: i64, days: i64) -> String {
        let begins = time::OffsetDateTime::from_unix_timestamp(begins).unwrap();
        issue(key, hosts, begins, begins + time::Duration::days(days))
    }

    fn issue(key: &str, hosts: &[&str], begins: time::OffsetDateTime, ends: time::OffsetDateTime) -> String {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.not_before = begins;
        params.not_after = ends;
        params.use_authority_key_identifier_extension = true;
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
        let own = crate::csr::key_pair(key).unwrap();
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let der = params.signed_by(&own, &issuer).unwrap();
        tls::section("CERTIFICATE", der.der())
    }

    fn hosts(names: &[&str]) -> Vec<Identifier> {
        names.iter().flat_map(|name| Identifier::read(name).unwrap()).collect()
    }

    #[test]
    fn a_chain_must_fit_key_hosts_and_time() {
        let key = KeyKind::default().generate().unwrap();
        let chain = chain(&key, &["a.test", "*.b.test", "192.0.2.1"], 2030);
        let now = 1_800_000_000;
        let new = |names: &[&str], key: &str, now| Issued::new(chain.as_bytes(), key, &hosts(names), now);
        let issued = new(&["a.test", "*.b.test", "192.0.2.1"], &key, now).unwrap();
        assert_eq!((issued.ends, issued.chain.as_str()), (1_893_456_000, chain.as_str()));
        assert_eq!(issued.renewal_id.as_ref().unwrap().split('.').count(), 2);
        assert_eq!(new(&["c.test"], &key, now).unwrap_err(), Unfit::Host("c.test".to_owned()));
        assert_eq!(new(&["x.b.test"], &key, now).unwrap_err(), Unfit::Host("x.b.test".to_owned()));
        assert_eq!(new(&["192.0.2.2"], &key, now).unwrap_err(), Unfit::Host("192.0.2.2".to_owned()));
        assert_eq!(new(&["a.test"], &key, 1_900_000_000).unwrap_err(), Unfit::Expired);
        let other = KeyKind::default().generate().unwrap();
        assert_eq!(new(&["a.test"], &other, now).unwrap_err(), Unfit::Key);
        assert!(is_issued_by(&read(chain.as_bytes()).unwrap(), "test authority"));
    }

    #[test]
    fn texts_that_are_no_chain() {
        let key = KeyKind::default().generate().unwrap();
        let one = chain(&key, &["a.test"], 2030);
        for (text, wanted) in
            [("", Unfit::Empty), ("garbage", Unfit::Empty), (&*one.repeat(CHAIN_MAX + 1), Unfit::Long)]
        {
            assert_eq!(read(text.as_bytes()).unwrap_err(), wanted);
        }
        let broken = "-----BEGIN CERTIFICATE-----\n****\n-----END CERTIFICATE-----\n";
        assert!(matches!(read(broken.as_bytes()), Err(Unfit::Unreadable(_))));
        let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(Issued::kept(other.as_bytes(), &key), Err(Unfit::Unreadable(_))));
    }

    #[test]
    fn the_example_of_rfc_9773() {
        let hex =
            |text: &str| -> Vec<u8> { text.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect() };
        let facts = CertificateFacts {
            names: Vec::new(),
            subject_names: Vec::new(),
            issuer_names: Vec::new(),
            begins: 0,
            ends: 0,
            key: Vec::new(),
            serial: hex("00:87:65:43:21"),
            authority_key_id: Some(hex("69:88:5B:6B:87:46:40:41:E1:B3:7B:84:7B:A0:AE:2C:DE:01:C8:D4")),
        };
        assert_eq!(renewal_id(&facts).unwrap(), "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
    }
}
