//! What other parts of the worker may know of a connection, and do to it.

use std::cell::Cell;

use weir_net::worker::Task;
use weir_net::{Instant, Transport, clock};

use crate::worker::Place;

/// What other parts of the worker may know of a connection: to close it when idle, to end it at a deadline.
pub struct Shared {
    /// What its bytes come and go by.
    pub stream: Transport,
    /// Whether it may be closed for another.
    pub rest: Cell<Rest>,
    /// When it began to wait, unless it is busy.
    pub idle_since: Cell<Instant>,
    /// The configuration of its current or last exchange.
    pub generation: Cell<u32>,
    place: Cell<Option<Place>>,
    /// Who keeps the connection while it carries streams, and has something to say to the client before it ends.
    keeper: Cell<Task>,
}

/// What a connection is about, as far as others need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Before the first request.
    New,
    /// A request is under way.
    Busy,
    /// Between two requests.
    Idle,
    /// It was told to end: its place belongs to another now.
    Ended,
}

impl Shared {
    /// A connection just accepted.
    pub fn new(stream: Transport, place: Option<Place>, generation: u32) -> Shared {
        Shared {
            stream,
            rest: Cell::new(Rest::New),
            idle_since: Cell::new(clock::now()),
            generation: Cell::new(generation),
            place: Cell::new(place),
            keeper: Cell::new(Task::NONE),
        }
    }

    /// From now on it only waits.
    pub fn lie_idle(&self) {
        if self.rest.get() == Rest::Busy {
            self.rest.set(Rest::Idle);
            self.idle_since.set(clock::now());
        }
    }

    /// It waits no more; `false` when it was told to end meanwhile.
    pub fn wake(&self) -> bool {
        if self.rest.get() == Rest::Ended {
            return false;
        }
        self.rest.set(Rest::Busy);
        true
    }

    /// Whether it was told to end.
    pub fn has_ended(&self) -> bool {
        self.rest.get() == Rest::Ended
    }

    /// From now on this task keeps it, and is told of a drain and of a new configuration.
    pub fn keep(&self, keeper: Task) {
        self.keeper.set(keeper);
    }

    /// Tells whoever keeps it that something is different now; `false` when nobody does.
    pub fn tell(&self) -> bool {
        let keeper = self.keeper.get();
        keeper.wake();
        keeper != Task::NONE
    }

    /// Whether its bytes are encrypted.
    pub fn is_secure(&self) -> bool {
        self.stream.is_secure()
    }

    /// Ends it and gives its place away at once; its task finds out when it next runs.
    pub fn end(&self) {
        self.rest.set(Rest::Ended);
        self.place.take();
        self.stream.shutdown();
    }
}
