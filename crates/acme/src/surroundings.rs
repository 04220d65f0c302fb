//! Everything outside the protocol: connections, clock, chance, files, and the way in which challenges are shown.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use weir_net::log::Level;

use crate::chain::Issued;
use crate::issuer::CertificateOrder;
use crate::key::KeyKind;
use crate::proof::{Begun, Proof};

/// The largest body of an answer: a chain of certificates has a few thousand bytes.
pub const BODY_BYTES_MAX: usize = 64 << 10;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads something public.
    Get,
    /// All the rest.
    Post,
}

/// A request to an authority.
#[derive(Clone, Debug)]
pub struct AuthorityRequest<'r> {
    /// The method.
    pub method: Method,
    /// The whole URL, `https` or `http`.
    pub url: &'r url::Url,
    /// A signed message; empty for `Get`.
    pub body: &'r str,
}

/// An answer of an authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorityAnswer {
    /// The status.
    pub status: u16,
    /// The fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// At most [`BODY_BYTES_MAX`].
    pub body: Vec<u8>,
}

impl AuthorityAnswer {
    /// The first value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether the status is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The outside of one authority's client.
pub trait Surroundings {
    /// Sends a request and reads the answer, within a time limit. The error is a reason for the log.
    fn exchange(&self, request: AuthorityRequest<'_>) -> impl Future<Output = Result<AuthorityAnswer, String>>;

    /// Waits.
    fn pause(&self, time: Duration) -> impl Future<Output = ()>;

    /// The time; seconds since 1970.
    fn now(&self) -> i64;

    /// A random number.
    fn chance(&self) -> u64;

    /// A new private key, made without delaying others.
    fn make_key(&self, kind: KeyKind) -> impl Future<Output = Result<String, String>>;

    /// Lets the authority see the answer to a challenge. The error is a reason for the log.
    fn show(&self, proof: &Proof) -> impl Future<Output = Result<(), String>>;

    /// Takes the answer back.
    fn hide(&self, proof: &Proof) -> impl Future<Output = ()>;

    /// Keeps the URL of the account, or forgets it.
    fn keep_account(&self, account: Option<&str>);

    /// Keeps an order that has begun, or forgets it once it ended.
    fn keep_order(&self, order: &CertificateOrder, begun: Option<&Begun>);

    /// Puts a new certificate in force, and keeps it. The error is a reason for the log.
    fn issued(&self, order: &CertificateOrder, issued: &Issued) -> Result<(), String>;

    /// Logs a line.
    fn say(&self, level: Level, line: fmt::Arguments<'_>);
}
