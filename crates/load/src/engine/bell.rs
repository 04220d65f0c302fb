//! Lets one task of a worker wake another.

use std::cell::Cell;
use std::task::{Context, Waker};

/// Remembers the last listening task. A ring means only that something changed: the task must look again.
#[derive(Default)]
pub(crate) struct Bell {
    listener: Cell<Option<Waker>>,
}

impl Bell {
    /// Wakes the listening task.
    pub(crate) fn ring(&self) {
        if let Some(waker) = self.listener.take() {
            waker.wake();
        }
    }

    /// Registers this task for the next ring.
    pub(crate) fn listen(&self, context: &Context<'_>) {
        // Nearly always the same task listened before. This check is cheaper than counting another reference.
        let known = self.listener.take().filter(|known| known.will_wake(context.waker()));
        self.listener.set(Some(known.unwrap_or_else(|| context.waker().clone())));
    }
}
