//! The workers of the process as each of them knows the others: for what one has and another needs.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::{Arc, PoisonError, RwLock};

use weir_net::worker::Remote;

use crate::worker::Worker;

/// Workers that can be reached, by their seat.
#[derive(Clone, Default)]
pub struct Colleagues(Arc<RwLock<Vec<(usize, Remote)>>>);

impl Colleagues {
    /// From now on the worker in this seat can be reached, and whoever had it before no more.
    pub fn add(&self, seat: usize, remote: Remote) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(other, _)| *other != seat);
        all.push((seat, remote));
    }

    /// Runs `f` on the worker in a seat; `false` when it cannot be reached.
    pub fn run(&self, seat: usize, f: impl FnOnce(&Worker) + Send + 'static) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|(other, _)| *other == seat);
        found.is_some_and(|(_, remote)| {
            remote.run(move || {
                if let Some(worker) = HERE.with_borrow(Weak::upgrade) {
                    f(&worker);
                }
            })
        })
    }
}

/// From now on `worker` is who its colleagues reach on this thread.
pub fn is_here(worker: &Rc<Worker>) {
    HERE.set(Rc::downgrade(worker));
}

thread_local! {
    static HERE: RefCell<Weak<Worker>> = const { RefCell::new(Weak::new()) };
}
