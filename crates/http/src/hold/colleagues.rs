//! The workers of the process, so that one worker can use the resources of another.

use std::sync::{Arc, PoisonError, RwLock};

use weir_net::worker::Remote;

/// Workers that can be reached, by their seat.
#[derive(Clone, Default)]
pub struct Colleagues(Arc<RwLock<Vec<(usize, Remote)>>>);

impl Colleagues {
    /// Registers the worker in this seat; the seat's former worker cannot be reached any more.
    pub fn add(&self, seat: usize, remote: Remote) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(other, _)| *other != seat);
        all.push((seat, remote));
    }

    /// Runs `f` on the thread of the worker in a seat; `false` when it cannot be reached.
    pub fn run(&self, seat: usize, f: impl FnOnce() + Send + 'static) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(other, _)| *other == seat);
        found.is_some_and(|(_, remote)| remote.run(f))
    }

    /// The seats of the workers whose threads have not ended.
    pub fn seats(&self) -> Vec<usize> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter(|(_, remote)| !remote.is_finished()).map(|(seat, _)| *seat).collect()
    }
}
