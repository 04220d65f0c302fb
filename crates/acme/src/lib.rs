//! A client of certificate authorities that speak ACME (RFC 8555): the protocol, and the schedule of renewals.
//!
//! ```text
//!  tend ─ plan: what is due? ─► account ─► order ─► challenges ─► certificate ─► Surroundings::issued
//!           ▲ renewal information (RFC 9773)            │
//!           └───────────────────────────────────────────┘ talk: signed requests, nonces, retries
//! ```
//!
//! [`Surroundings`] is everything outside: connections, clock, files, the way in which a challenge is shown. Invariant:
//! no socket, no clock, no file. Every answer of an authority is bounded, and every refusal has a name ([`Failed`]).
//!
//! - `tend`, `plan`: one round over the certificates of an authority; when each is due (RFC 9773)
//! - `talk`, `order`: signed requests, nonces, redirects, retries, the account; an order from its beginning to the
//!   certificate, also one that an earlier process began
//! - `answer`, `problem`, `fields`, `failed`: the JSON and the fields of answers; a name for each failure
//! - `account_key`, `key`, `csr`, `chain`: signatures; new keys; the request for a certificate and the certificate of a
//!   challenge; whether a chain can be used
//! - `proof`, `shared_key`: what a challenge wants to be shown; the keys that authenticate DNS updates
//! - `issuer`, `identifier`: the settings of an authority and of a certificate; hosts
//! - `surroundings`: everything outside
#![forbid(unsafe_code)]

pub mod account_key;
pub mod answer;
mod chain;
pub mod csr;
mod failed;
pub mod fields;
pub mod identifier;
pub mod issuer;
pub mod key;
mod order;
pub mod plan;
mod problem;
mod proof;
mod shared_key;
pub mod surroundings;
mod talk;
pub mod tend;
#[cfg(test)]
mod tests;

pub use account_key::AccountKey;
pub use chain::{Issued, Unfit};
pub use failed::Failed;
pub use identifier::Identifier;
pub use issuer::{CertificateOrder, ChallengeType, External, Issuer, Profile};
pub use key::KeyKind;
pub use problem::Problem;
pub use proof::{Begun, Proof, Record};
pub use shared_key::SharedKey;
pub use surroundings::{AuthorityAnswer, AuthorityRequest, Method, Surroundings};
pub use tend::{Tended, Tending, tend};
