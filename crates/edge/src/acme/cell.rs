//! A certificate that can be replaced while servers use it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use weir_acme::plan::{Due, Plan};
use weir_acme::{Identifier, Issued, KeyKind};
use weir_conf::At;
use weir_net::tls::KeyPair;

/// `acme_certificate` of a server.
pub struct WantedCertificate {
    /// The name of the authority.
    pub issuer: String,
    /// The hosts as written; without them, those of `server_name`.
    pub identifiers: Vec<Identifier>,
    /// The kind of key.
    pub key: KeyKind,
    /// The place of the statement.
    pub at: At,
    /// The certificate, once the whole file is read.
    pub cell: OnceLock<Arc<Cell>>,
}

/// A certificate, and the state of its renewals.
pub struct Cell {
    /// The name of the authority.
    pub issuer: String,
    /// The name of the order.
    pub id: String,
    /// The hosts.
    pub hosts: Vec<String>,
    shared: RwLock<Arc<Shared>>,
}

/// The part that survives a reload.
#[derive(Default)]
struct Shared {
    held: RwLock<Option<Arc<Held>>>,
    /// Counts the certificates.
    version: AtomicU64,
    state: Mutex<State>,
}

/// A certificate in force.
pub struct Held {
    /// For handshakes.
    pub pair: KeyPair,
    /// `$acme_certificate`.
    pub chain: String,
    /// `$acme_certificate_key`.
    pub key: String,
    /// The beginning of its validity; seconds since 1970.
    pub begins: i64,
    /// The end of its validity; seconds since 1970.
    pub ends: i64,
}

/// The state of the renewals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The next step, if there is one.
    pub step: Option<Due>,
    /// Its time; seconds since 1970.
    pub next: i64,
    /// Failures in a row.
    pub fails: u32,
    /// Why the last step failed.
    pub error: Option<String>,
}

impl Cell {
    /// No certificate yet.
    pub fn new(issuer: String, id: String, hosts: Vec<String>) -> Cell {
        Cell { issuer, id, hosts, shared: RwLock::default() }
    }

    fn shared(&self) -> Arc<Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes on with the certificate of an older configuration.
    pub fn adopt(&self, old: &Cell) {
        *self.shared.write().unwrap_or_else(PoisonError::into_inner) = old.shared();
    }

    /// The certificate in force.
    pub fn held(&self) -> Option<Arc<Held>> {
        self.shared().held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts the certificates: another number means another certificate.
    pub fn version(&self) -> u64 {
        self.shared().version.load(Ordering::Acquire)
    }

    /// Puts a certificate in force for all workers.
    ///
    /// # Errors
    /// The library cannot use it: the reason.
    pub fn put(&self, issued: &Issued) -> Result<(), String> {
        let pair = KeyPair::read(issued.chain.as_bytes(), issued.key.as_bytes(), &[])
            .map_err(|error| format!("unusable certificate: {error:?}"))?;
        let Issued { chain, key, begins, ends, .. } = issued;
        let held =
            Held { pair, chain: format!("data:{chain}"), key: format!("data:{key}"), begins: *begins, ends: *ends };
        let shared = self.shared();
        *shared.held.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(held));
        shared.version.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Notes the state of the renewals.
    pub fn note(&self, plan: &Plan, error: Option<&String>) {
        let state = State {
            step: (plan.due != Due::Never).then_some(plan.due),
            next: plan.next,
            fails: plan.fails,
            error: error.cloned(),
        };
        *self.shared().state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The state of the renewals.
    pub fn state(&self) -> State {
        self.shared().state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl WantedCertificate {
    /// The certificate in force.
    pub fn held(&self) -> Option<Arc<Held>> {
        self.cell.get().and_then(|cell| cell.held())
    }
}
