//! The state of a connection that other parts of the worker may read and change.

use std::cell::Cell;

use weir_net::worker::Task;
use weir_net::{Instant, Transport, clock};

use crate::hold::table_place::TablePlace;

/// The state of a connection that other parts of the worker use: to close it when idle, to end it at a deadline.
pub struct Shared {
    /// The transport of its bytes.
    pub stream: Transport,
    /// Whether weir may close it to make room for another.
    pub rest: Cell<Rest>,
    /// When it began to wait, unless it is busy.
    pub idle_since: Cell<Instant>,
    /// The configuration of its current or last exchange.
    pub generation: Cell<u32>,
    place: Cell<Option<TablePlace>>,
    /// The task that drives the connection while it carries streams. It has a last message for the client before the
    /// connection ends.
    keeper: Cell<Task>,
}

/// The state of a connection for other parts of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Before the first request.
    New,
    /// A request is under way.
    Busy,
    /// Between two requests.
    Idle,
    /// weir ended it: its place belongs to another connection.
    Ended,
}

impl Shared {
    /// A connection just accepted.
    pub fn new(stream: Transport, place: Option<TablePlace>, generation: u32) -> Shared {
        Shared {
            stream,
            rest: Cell::new(Rest::New),
            idle_since: Cell::new(clock::now()),
            generation: Cell::new(generation),
            place: Cell::new(place),
            keeper: Cell::new(Task::NONE),
        }
    }

    /// Marks it as waiting.
    #[inline]
    pub fn lie_idle(&self) {
        if self.rest.get() == Rest::Busy {
            self.rest.set(Rest::Idle);
            self.idle_since.set(clock::now());
        }
    }

    /// Marks it as busy; `false` when weir ended it meanwhile.
    pub fn wake(&self) -> bool {
        if self.rest.get() == Rest::Ended {
            return false;
        }
        self.rest.set(Rest::Busy);
        true
    }

    /// Whether weir ended it.
    pub fn has_ended(&self) -> bool {
        self.rest.get() == Rest::Ended
    }

    /// Makes this task the one that drives the connection: it is woken at a drain and at a new configuration.
    pub fn keep(&self, keeper: Task) {
        self.keeper.set(keeper);
    }

    /// Wakes the task that drives the connection because something changed; `false` when there is none.
    pub fn tell(&self) -> bool {
        let keeper = self.keeper.get();
        keeper.wake();
        keeper != Task::NONE
    }

    /// Whether its bytes are encrypted.
    pub fn is_secure(&self) -> bool {
        self.stream.is_secure()
    }

    /// Its transport and its place, for another server of the worker; `None` if weir ended it.
    pub fn into_parts(self) -> Option<(Transport, TablePlace)> {
        let place = self.place.take()?;
        Some((self.stream, place))
    }

    /// Ends it and frees its place at once; its task notices when it next runs.
    pub fn end(&self) {
        self.rest.set(Rest::Ended);
        self.place.take();
        self.stream.shutdown();
    }
}
