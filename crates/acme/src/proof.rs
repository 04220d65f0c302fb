//! An order under way, and the answer to a challenge.

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::account_key::base64url;
use crate::identifier::Identifier;
use crate::issuer::ChallengeType;

/// An order that has begun.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Its URL.
    pub url: String,
    /// The key of the certificate, as PEM.
    pub key: String,
}

/// A TXT record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its name, without a final dot.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The answer to a challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The kind of challenge.
    pub challenge: ChallengeType,
    /// The host; a wildcard without `*.`.
    pub identifier: Identifier,
    /// The authority's text.
    pub token: String,
    /// The text and the thumbprint of the account's key; of `dns-persist-01`, the text of the record.
    pub authorization: String,
}

impl Proof {
    /// The record that an authority looks at, if it looks at one.
    pub fn record(&self) -> Option<Record> {
        let host = self.identifier.value();
        match self.challenge {
            ChallengeType::Http01 | ChallengeType::TlsAlpn01 => None,
            ChallengeType::Dns01 => {
                let text = base64url(digest(&SHA256, self.authorization.as_bytes()));
                Some(Record { name: format!("_acme-challenge.{host}"), text })
            }
            ChallengeType::DnsPersist01 => {
                Some(Record { name: format!("_validation-persist.{host}"), text: self.authorization.clone() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_dns() {
        let proof = |challenge| Proof {
            challenge,
            identifier: Identifier::Dns("a.test".to_owned()),
            token: "t".to_owned(),
            authorization: "ca.test; accounturi=https://ca.test/1".to_owned(),
        };
        assert_eq!(proof(ChallengeType::Http01).record(), None);
        let record = proof(ChallengeType::Dns01).record();
        assert_eq!(
            record.map(|record| (record.name, record.text.len())),
            Some(("_acme-challenge.a.test".to_owned(), 43))
        );
        let record = proof(ChallengeType::DnsPersist01).record();
        assert_eq!(record.map(|record| record.text), Some("ca.test; accounturi=https://ca.test/1".to_owned()));
    }
}
