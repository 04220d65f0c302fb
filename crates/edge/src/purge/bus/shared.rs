//! The settings of a log, its known state, and how its thread and the waiting orders share them.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::{Deadline, process};
use weir_redis::RedisServer;

use crate::purge::edges::Edges;
use crate::purge::entry::Id;
use crate::purge::zones::ZoneList;

/// Orders that wait for the log at a time, at most; one more is refused.
pub const PENDING_MAX: usize = 64;

/// `cache_purge_log`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The Redis server.
    pub server: RedisServer,
    /// `stream=`.
    pub stream: String,
    /// `edge=`: the name of this edge.
    pub edge: String,
    /// `state=`: the file with the last applied entry.
    pub state: Option<PathBuf>,
    /// `timeout=`: how long to wait for Redis to answer, and for other edges to follow.
    pub timeout: Duration,
    /// `maxlen=`: about how many entries the stream keeps.
    pub length_max: u64,
}

/// The result of an order, beyond this edge.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All edges have applied it.
    Everywhere {
        /// The id of its entry; of the last one if there are several.
        id: Id,
        /// The names of the edges, including this one.
        applied: Vec<String>,
    },
    /// Some edges have not confirmed it in time.
    Behind {
        /// The id of its entry.
        id: Id,
        /// The names of the edges that have confirmed it, including this one.
        applied: Vec<String>,
        /// The names of the edges that have not.
        behind: Vec<String>,
    },
    /// It is not in the log, or weir does not know whether it is: the reason.
    NotLogged(String),
    /// [`PENDING_MAX`] other orders wait.
    Busy,
}

/// The state that the thread and the waiting tasks share.
pub struct Shared {
    pub settings: Settings,
    /// The id of this start of this edge: entries with this id were applied before they were written.
    pub run: String,
    pub zones: ZoneList,
    pub book: Mutex<Book>,
    pub pending: AtomicUsize,
    is_stopped: AtomicBool,
    /// Two processes use this edge's name while one replaces the other.
    pub has_namesake: AtomicBool,
    /// The end wakes the thread while it pauses.
    rest: (Mutex<()>, Condvar),
}

/// The known state of the log.
#[derive(Default)]
pub struct Book {
    pub edges: Edges,
    pub is_connected: bool,
    pub applied: Option<Id>,
    pub newest: Id,
    wakers: Vec<Waker>,
}

impl Shared {
    /// The state at the start of an edge.
    pub fn new(settings: &Settings, zones: ZoneList) -> Shared {
        Shared {
            settings: settings.clone(),
            run: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
            zones,
            book: Mutex::default(),
            pending: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            has_namesake: AtomicBool::new(process::is_successor()),
            rest: Default::default(),
        }
    }

    pub fn poll_applied(&self, id: Id, deadline: &Deadline, context: &Context<'_>) -> Poll<Outcome> {
        let mut book = self.book();
        let own = self.settings.edge.as_str();
        let behind = book.edges.behind(id, own);
        let applied = book.edges.applied(id, own);
        if behind.is_empty() {
            return Poll::Ready(Outcome::Everywhere { id, applied });
        }
        if !book.edges.is_worth_waiting(id, own) || deadline.poll_expired().is_ready() {
            return Poll::Ready(Outcome::Behind { id, applied, behind });
        }
        if !book.wakers.iter().any(|known| known.will_wake(context.waker())) {
            // At most one for each order under way.
            book.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// Changes the book, and wakes the tasks that wait for a change.
    pub fn note(&self, change: impl FnOnce(&mut Book)) {
        let mut book = self.book();
        change(&mut book);
        let wakers = std::mem::take(&mut book.wakers);
        drop(book);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    pub fn stop(&self) {
        let _held = self.rest.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_stopped.store(true, Ordering::Release);
        self.rest.1.notify_all();
    }

    /// Waits this long, or until the end.
    pub fn pause(&self, time: Duration) {
        let held = self.rest.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped() {
            drop(self.rest.1.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// A place among the waiting orders.
pub struct Pending<'p>(&'p AtomicUsize);

impl<'p> Pending<'p> {
    pub fn take(count: &'p AtomicUsize) -> Option<Pending<'p>> {
        let place = Pending(count);
        (count.fetch_add(1, Ordering::Relaxed) < PENDING_MAX).then_some(place)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
