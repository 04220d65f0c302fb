//! Places in a worker's connection table.

use std::cell::Cell;
use std::rc::Rc;

/// A place in a worker's connection table, given back when dropped: every connection holds one, to a client
/// or to an upstream, idle or not (nginx: `worker_connections`).
pub struct TablePlace(Rc<Cell<usize>>);

impl TablePlace {
    /// Takes a place; `taken` counts them.
    pub fn take(taken: &Rc<Cell<usize>>) -> TablePlace {
        taken.set(taken.get() + 1);
        TablePlace(taken.clone())
    }
}

impl Drop for TablePlace {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
