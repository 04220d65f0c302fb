//! Mutexes that a panic does not poison: counts that were being made stay as they were.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks.
pub fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
