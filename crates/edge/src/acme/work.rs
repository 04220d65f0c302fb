//! The settings of an authority for the thread.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_acme::{CertificateOrder, Issuer, KeyKind};
use weir_http::hold::dns::Servers;
use weir_net::tls;

use super::cell::Cell;
use super::publish::Publisher;
use super::share::AcmeShare;
use super::state::Directory;

/// The source of the account's key.
#[derive(Clone, PartialEq, Eq)]
pub enum AccountKeySource {
    /// weir makes one of this kind.
    Own(KeyKind),
    /// The text of a file.
    File(Arc<Vec<u8>>),
}

/// An authority, and the certificates that it is to issue.
pub struct Work {
    /// The authority.
    pub issuer: Issuer,
    /// The account's key.
    pub key: AccountKeySource,
    /// Finds the authority's addresses, within a time.
    pub resolver: (Arc<Servers>, Duration),
    /// Speaks TLS with the authority; an error is told with each request.
    pub tls: Result<tls::Client, String>,
    /// `ssl_verify`.
    pub verifies: bool,
    /// `state_path`; `None` for `off`.
    pub directory: Option<Directory>,
    /// The other edges.
    pub share: Option<Arc<AcmeShare>>,
    /// The way of records into DNS.
    pub publisher: Publisher,
    /// How long weir waits until a record is everywhere.
    pub delay: Duration,
    /// The certificates.
    pub orders: Vec<(CertificateOrder, Arc<Cell>)>,
    /// The account, for an authority without files: it survives reloads.
    pub memory: Arc<Mutex<KeptWork>>,
}

/// An account that is in no file.
#[derive(Clone, Default)]
pub struct KeptWork {
    /// The key as PEM.
    pub key: Option<String>,
    /// The URL, with the thumbprint of the key.
    pub url: Option<(String, String)>,
}

impl Work {
    /// The directory, for the log.
    pub fn path(&self) -> String {
        self.directory.as_ref().map(|directory| directory.path().display().to_string()).unwrap_or_default()
    }
}
