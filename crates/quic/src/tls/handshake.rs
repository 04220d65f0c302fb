//! The result of a handshake, from the session inside quinn-proto to the owner of the connection.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_net::tls::{Agreement, Failure};

/// The result of the handshake of one connection; clones share it.
#[derive(Clone, Default)]
pub struct Handshake(Arc<Mutex<Option<Result<Agreement, Failure>>>>);

impl Handshake {
    /// The result, once. It is there after `Event::HandshakeDataReady`: with early data before the client's last
    /// message, else with it. A failure is there after the error of the connection or of `accept`.
    ///
    /// `None` also if the chooser refused the client, or if TLS is not why the connection ended.
    pub fn take(&self) -> Option<Result<Agreement, Failure>> {
        self.lock().take()
    }

    pub(super) fn put(&self, result: Result<Agreement, Failure>) {
        *self.lock() = Some(result);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<Agreement, Failure>>> {
        // The result is replaced whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}
