//! An authority as a file declares it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_acme::{CertificateOrder, Issuer};
use weir_conf::At;
use weir_http::hold::dns::Servers;
use weir_net::tls;

use crate::acme::state::Directory;
use crate::acme::{AccountKeySource, AcmeShare, Cell, KeptWork, Publisher, Work};

/// An `acme_issuer` block.
pub struct Authority {
    /// Its settings for the protocol.
    pub issuer: Issuer,
    /// The account's key.
    pub key: AccountKeySource,
    /// `state_path`; `None` for `off`.
    pub directory: Option<Directory>,
    /// `ssl_verify`.
    pub verifies: bool,
    /// Speaks TLS with it.
    pub tls: Result<tls::Client, String>,
    /// The way of records into DNS.
    pub publisher: Publisher,
    /// `dns_delay`.
    pub delay: Duration,
    /// The place of the block.
    pub at: At,
    /// Its certificates.
    pub orders: Vec<(CertificateOrder, Arc<Cell>)>,
    /// The account, if there are no files.
    pub memory: Arc<Mutex<KeptWork>>,
}

impl Authority {
    /// The settings for the thread.
    pub fn work(&self, resolver: &(Arc<Servers>, Duration), share: Option<Arc<AcmeShare>>) -> Work {
        Work {
            share,
            issuer: self.issuer.clone(),
            key: self.key.clone(),
            resolver: resolver.clone(),
            tls: self.tls.clone(),
            verifies: self.verifies,
            directory: self.directory.clone(),
            publisher: self.publisher.clone(),
            delay: self.delay,
            orders: self.orders.clone(),
            memory: self.memory.clone(),
        }
    }
}
