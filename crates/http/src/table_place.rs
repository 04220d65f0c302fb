//! Places in a worker's connection table.

use std::cell::Cell;
use std::rc::Rc;

/// A place in a worker's connection table, given back when dropped: every connection holds one, to a client
/// or to an upstream, idle or not (nginx: `worker_connections`).
pub struct Place(Rc<Cell<usize>>);

impl Place {
    /// Takes a place; `taken` counts them.
    pub fn take(taken: &Rc<Cell<usize>>) -> Place {
        taken.set(taken.get() + 1);
        Place(taken.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
