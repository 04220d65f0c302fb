//! One worker thread's own things: nothing here is shared, so nothing here is locked.

use crate::counters::AllCounters;

/// What a worker holds besides its connections.
pub struct Worker {
    /// From 0.
    pub index: usize,
    /// The counters of all workers; only `counters[index]` is written here.
    pub counters: AllCounters,
}
