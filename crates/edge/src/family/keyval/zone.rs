//! A zone of pairs.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use weir_conf::At;

use super::pairs::{KeyKind, Pairs};

/// nginx: "the maximum timeout value is limited to 24 days".
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 24 * 3600);

/// A zone as the file declares it, and its pairs, which survive reloads.
pub struct KeyvalZone {
    /// Its name.
    pub name: String,
    /// The most bytes of its pairs.
    pub size: u64,
    pub(super) kind: KeyKind,
    /// The lifetime of a pair that has no lifetime of its own.
    pub(super) timeout: Option<Duration>,
    /// The file that keeps the pairs across restarts.
    pub(super) state: Option<String>,
    pub(super) pairs: Arc<KeptPairs>,
    /// Where `sync` stands: its pairs are those of all edges of the fleet.
    pub shared_at: Option<At>,
}

/// The pairs of a zone, which survive reloads.
pub(super) struct KeptPairs {
    pub(super) pairs: RwLock<Pairs>,
    /// Held for a change with its state file: the API and the fleet change pairs.
    pub(super) edits: Mutex<()>,
}

impl KeptPairs {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Pairs> {
        self.pairs.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyvalZone {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Pairs> {
        self.pairs.read()
    }

    /// Bytes of its pairs.
    pub fn bytes(&self) -> u64 {
        self.read().bytes() as u64
    }
}
