//! The choice of TLS settings that a connection waits for, kept in the thread of its worker.
//!
//! quinn-proto demands sessions that may move between threads, and what chooses the settings belongs to a worker. So
//! the session holds a number, and the thread holds what it stands for. A connection of weir never changes its thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::{self, ThreadId};
use weir_net::tls::{Alert, ClientHello, Server};

/// Chooses the settings for a client, once; an alert refuses it.
pub type Chooser = Box<dyn FnOnce(&ClientHello) -> Result<Server, Alert>>;

thread_local! {
    static WAITING: RefCell<Table> = RefCell::default();
}

#[derive(Default)]
struct Table {
    choosers: HashMap<u64, Chooser>,
    last: u64,
}

/// A chooser of this thread; dropped with it.
#[derive(Debug)]
pub struct Waiting {
    thread: ThreadId,
    number: u64,
}

impl Waiting {
    pub fn keep(chooser: Chooser) -> Waiting {
        let number = WAITING.with_borrow_mut(|table| {
            table.last += 1;
            table.choosers.insert(table.last, chooser);
            table.last
        });
        Waiting { thread: thread::current().id(), number }
    }

    /// The chooser; `None` in another thread.
    pub fn take(&self) -> Option<Chooser> {
        if self.thread != thread::current().id() {
            return None;
        }
        // The table is gone while the thread ends.
        WAITING.try_with(|table| table.try_borrow_mut().ok()?.choosers.remove(&self.number)).ok()?
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.take());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_chooser_is_taken_once_in_its_thread_and_dropped_with_what_waits() {
        let held = Rc::new(());
        let waiting = |held: &Rc<()>| {
            let held = held.clone();
            Waiting::keep(Box::new(move |_| {
                drop(held);
                Err(Alert::InternalError)
            }))
        };
        let (first, second) = (waiting(&held), waiting(&held));
        assert_eq!(Rc::strong_count(&held), 3);
        let first = thread::spawn(move || {
            assert!(first.take().is_none());
            first
        });
        let first = first.join().unwrap();
        assert!(first.take().is_some() && first.take().is_none());
        assert_eq!(Rc::strong_count(&held), 2);
        drop(second);
        assert_eq!(Rc::strong_count(&held), 1);
    }
}
