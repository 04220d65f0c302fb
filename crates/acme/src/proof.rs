//! An order under way, and the answer to a challenge.

use serde::{Deserialize, Serialize};

use crate::identifier::Identifier;
use crate::issuer::Challenge;

/// An order that has begun.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// Its URL.
    pub url: String,
    /// The key of the certificate, as PEM.
    pub key: String,
}

/// The answer to a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The kind of challenge.
    pub challenge: Challenge,
    /// The host; a wildcard without `*.`.
    pub identifier: Identifier,
    /// The authority's text.
    pub token: String,
    /// The text and the thumbprint of the account's key.
    pub authorization: String,
}
