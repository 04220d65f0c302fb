//! One task of a worker waking another.

use std::cell::Cell;
use std::task::{Context, Waker};

/// Remembers the last task that listened. It says that something changed, not what: look again after it rang.
#[derive(Default)]
pub(crate) struct Bell {
    listener: Cell<Option<Waker>>,
}

impl Bell {
    /// Wakes who listens.
    pub(crate) fn ring(&self) {
        if let Some(waker) = self.listener.take() {
            waker.wake();
        }
    }

    /// Has this task woken by the next ring.
    pub(crate) fn listen(&self, context: &Context<'_>) {
        // Nearly always the task that listened before: looking is cheaper than counting another reference.
        let known = self.listener.take().filter(|known| known.will_wake(context.waker()));
        self.listener.set(Some(known.unwrap_or_else(|| context.waker().clone())));
    }
}
