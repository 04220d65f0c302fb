//! The memory that the connections of taps share with the asker.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::request::OriginRequest;

/// Most requests to origins that are kept until [`super::Taps::take`].
const REQUESTS_MAX: usize = 1000;

/// The memory that the connections share with the asker.
#[derive(Default)]
pub(super) struct SeenRequests {
    pub(super) requests: Mutex<Vec<OriginRequest>>,
    pub(super) connections: AtomicUsize,
}

impl SeenRequests {
    /// Keeps further requests.
    pub(super) fn add(&self, requests: Vec<OriginRequest>) {
        let mut all = lock(&self.requests);
        let room = REQUESTS_MAX.saturating_sub(all.len());
        all.extend(requests.into_iter().take(room));
    }
}

/// Locks; a panic of another holder does not matter.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
