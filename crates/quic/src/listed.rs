//! The connections of a port that have something to send, and the task that drives them.

use std::cell::{Cell, RefCell};

use quinn_proto::ConnectionHandle;
use weir_net::worker::Task;

/// The list of one port. A connection is in it once, so the list is never longer than the port has connections.
pub struct Listed {
    handles: RefCell<Vec<ConnectionHandle>>,
    driver: Cell<Task>,
}

impl Listed {
    /// An empty list.
    pub fn new() -> Listed {
        Listed { handles: RefCell::default(), driver: Cell::new(Task::NONE) }
    }

    /// Notes that the current task drives the port.
    pub fn driven_here(&self) {
        self.driver.set(Task::current());
    }

    /// Wakes the task that drives the port.
    pub fn wake(&self) {
        self.driver.get().wake();
    }

    /// Adds a connection that is not in it.
    pub fn add(&self, handle: ConnectionHandle) {
        self.handles.borrow_mut().push(handle);
        self.wake();
    }

    /// Whether none is in it.
    pub fn is_empty(&self) -> bool {
        self.handles.borrow().is_empty()
    }

    /// Takes all.
    pub fn take(&self) -> Vec<ConnectionHandle> {
        self.handles.take()
    }
}
