//! The purge log of several edges: a stream in Redis, followed by one thread and written by another.
//!
//! `tail` follows the stream from the last entry this edge has applied. While Redis is away, it tries again and
//! again, and the edge serves. When Redis is back, it continues after its last entry. If that entry is gone (trimmed,
//! flushed, another server), it cannot know which orders it missed, and it soft-purges everything. `append` writes
//! the orders that the API of this edge receives.

mod append;
mod tail;

use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use append::{Errand, Ticket};
use serde_json::{Value, json};
use weir_cache::store::Zone;
use weir_net::identity::assume;
use weir_net::{Deadline, clock, process, worker};

use crate::purge::edges::Edges;
use crate::purge::entry::{self, Id};
use crate::purge::memory::Memory;
use crate::purge::order::Order;
use crate::purge::zones::ZoneList;

pub use crate::purge::server::Server;
/// Orders that wait for the log at a time, at most; one more is refused.
pub const PENDING_MAX: usize = 64;

/// How long an edge that ends waits until its name is removed.
const LEAVE: Duration = Duration::from_millis(500);

/// `cache_purge_log`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The Redis server.
    pub server: Server,
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

/// An edge's access to the log. Its threads end with it.
pub struct Bus {
    shared: Arc<Shared>,
    errands: SyncSender<Errand>,
}

/// The state that the threads and the waiting tasks share.
struct Shared {
    settings: Settings,
    /// The id of this start of this edge: entries with this id were applied before they were written.
    run: String,
    zones: ZoneList,
    book: Mutex<Book>,
    pending: AtomicUsize,
    is_stopped: AtomicBool,
    /// Two processes use this edge's name while one replaces the other.
    has_namesake: AtomicBool,
    /// The end wakes a thread that pauses.
    rest: (Mutex<()>, Condvar),
}

/// The known state of the log.
#[derive(Default)]
struct Book {
    edges: Edges,
    is_connected: bool,
    applied: Option<Id>,
    newest: Id,
    wakers: Vec<Waker>,
}

impl Bus {
    /// Follows the log from the entry in the state file; without that file, soft-purges everything in the zones.
    /// `identity` is the user of the threads.
    pub fn start(
        settings: &Settings,
        zones: Vec<Arc<Zone>>,
        identity: Option<process::Identity>,
    ) -> io::Result<Arc<Bus>> {
        let memory = settings.state.as_ref().and_then(|path| Memory::read(path, &settings.stream));
        let zones = ZoneList::new(zones);
        zones.doubt_all_but(memory.as_ref().map_or(&[], |memory| memory.zones.as_slice()));
        let shared = Arc::new(Shared {
            settings: settings.clone(),
            run: format!("{:016x}", RandomState::new().hash_one(std::process::id())),
            zones,
            book: Mutex::default(),
            pending: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            has_namesake: AtomicBool::new(process::is_successor()),
            rest: Default::default(),
        });
        let (errands, list) = sync_channel(PENDING_MAX + 1);
        let bus = Arc::new(Bus { shared, errands });
        bus.start_threads(list, memory.map(|memory| memory.applied), identity)?;
        Ok(bus)
    }

    fn start_threads(
        &self,
        list: Receiver<Errand>,
        applied: Option<Id>,
        identity: Option<process::Identity>,
    ) -> io::Result<()> {
        let (follower, writer) = (self.shared.clone(), self.shared.clone());
        let other = identity.clone();
        worker::block_aside("purge log", move || {
            if assume(identity.as_ref()) {
                tail::follow(&follower, applied);
            }
        })?;
        worker::block_aside("purge order", move || {
            if assume(other.as_ref()) {
                append::serve(&writer, &list);
            }
        })
    }

    /// The settings it was started with.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The zones purges are applied to.
    pub fn zones(&self) -> &ZoneList {
        &self.shared.zones
    }

    /// Logs an order that was applied here, and waits for the other edges; called on a worker.
    pub async fn publish(&self, order: &Order) -> Outcome {
        let shared = &self.shared;
        let Some(_place) = Pending::take(&shared.pending) else { return Outcome::Busy };
        let settings = &shared.settings;
        let ts = clock::unix_ms();
        let ticket = Arc::new(Ticket::default());
        let entries = entry::fields(order, &settings.edge, &shared.run, ts);
        match self.errands.try_send(Errand::Append { entries, ticket: ticket.clone() }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Outcome::Busy,
            Err(TrySendError::Disconnected(_)) => {
                return Outcome::NotLogged("a reload has closed the connection".to_owned());
            }
        }
        let deadline = Deadline::new();
        deadline.set(settings.timeout);
        let logged = poll_fn(|context| match ticket.poll(context) {
            Poll::Ready(logged) => Poll::Ready(logged),
            Poll::Pending => deadline.poll_expired().map(|()| Err("the server did not answer in time".to_owned())),
        });
        match logged.await {
            Err(why) => Outcome::NotLogged(why),
            Ok(id) => poll_fn(|context| shared.poll_applied(id, &deadline, context)).await,
        }
    }

    /// For people: the last entry that this edge and the others have applied.
    pub fn to_json(&self) -> Value {
        let settings = &self.shared.settings;
        let book = self.shared.book();
        json!({
            "server": settings.server.to_string(),
            "stream": settings.stream,
            "connected": book.is_connected,
            "newest": book.newest.to_string(),
            "applied": book.applied.map(|id| id.to_string()),
            "edges": book.edges.to_json(book.newest),
        })
    }

    /// Notes that a new binary runs beside this one, under the same name.
    pub fn expect_namesake(&self) {
        self.shared.has_namesake.store(true, Ordering::Relaxed);
    }

    /// Ends it; if `for_good`, removes its name, so that no edge waits for it.
    pub fn leave(&self, for_good: bool) {
        self.shared.stop();
        if for_good && self.shared.book().is_connected {
            let (tell, told) = sync_channel(1);
            if self.errands.try_send(Errand::Leave(tell)).is_ok() {
                // If this fails, the other edges forget the name in time.
                let _ = told.recv_timeout(LEAVE);
            }
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Shared {
    fn poll_applied(&self, id: Id, deadline: &Deadline, context: &Context<'_>) -> Poll<Outcome> {
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
    fn note(&self, change: impl FnOnce(&mut Book)) {
        let mut book = self.book();
        change(&mut book);
        let wakers = std::mem::take(&mut book.wakers);
        drop(book);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    fn stop(&self) {
        let _held = self.rest.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_stopped.store(true, Ordering::Release);
        self.rest.1.notify_all();
    }

    /// Waits this long, or until the end.
    fn pause(&self, time: Duration) {
        let held = self.rest.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_stopped() {
            drop(self.rest.1.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// A place among the waiting orders.
struct Pending<'p>(&'p AtomicUsize);

impl<'p> Pending<'p> {
    fn take(count: &'p AtomicUsize) -> Option<Pending<'p>> {
        let place = Pending(count);
        (count.fetch_add(1, Ordering::Relaxed) < PENDING_MAX).then_some(place)
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
