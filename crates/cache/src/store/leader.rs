//! The leader of a flight: it reports the result of the fetch. Dropping the leader gives the fetch up: then a waiting
//! request leads.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use weir_net::Instant;

use super::flight::Flight;
use super::label::Label;
use super::object::{Body, Forms, Object, StoredHead, Times};
use super::piece::FileBody;
use super::zone::Zone;

/// Why the store refuses a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRefusal {
    /// Larger than the memory tier allows, and there is no disk for it.
    TooLarge,
    /// More tags than `TAGS_MAX`, or names in `Vary` longer than `VARY_BYTES_MAX`.
    TooManyNames,
    /// A purge named it during the fetch.
    Purged,
}

impl StoreRefusal {
    /// A sentence for `$weir_cache_reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            StoreRefusal::TooLarge => "not stored: too large for memory, and the disk has not taken it",
            StoreRefusal::TooManyNames => "not stored: it has too many tags, or Vary names too many fields",
            StoreRefusal::Purged => "not stored: a purge removed it during the fetch",
        }
    }
}

/// The right and the duty to fetch for all waiters.
pub struct Leader {
    pub(super) zone: Arc<Zone>,
    pub(super) flight: Arc<Flight>,
    pub(super) turn: u32,
    /// The number of purges before the fetch began.
    born: u32,
    is_done: bool,
}

impl Leader {
    pub(super) fn new(zone: Arc<Zone>, flight: Arc<Flight>, turn: u32, born: u32) -> Leader {
        Leader { zone, flight, turn, born, is_done: false }
    }

    /// The origin confirmed a stored object (304), or the head that is kept with it changed: stores it with a new head
    /// and new times. Fails if a purge named it meanwhile.
    pub fn confirm(
        mut self,
        old: &Arc<Object>,
        head: StoredHead,
        times: Times,
        now: Instant,
    ) -> Result<Arc<Object>, StoreRefusal> {
        let mut object = self.object(old.label.clone(), head, times, old.body.clone());
        object.forms = old.forms.of_body();
        let object = Arc::new(object);
        let stored = self.store(&object, now);
        match stored {
            Ok(()) => self.flight.stored(self.turn, &object),
            Err(_) => self.flight.passed(self.turn),
        }
        self.land();
        stored.map(|()| object)
    }

    /// The response must not be shared: all waiters ask the origin themselves at once.
    pub fn pass(mut self) {
        self.flight.passed(self.turn);
        self.land();
    }

    /// Stores the object once the spooled body is in its file.
    pub(super) fn keep(mut self, growing: &Arc<Object>, body: FileBody, now: Instant) -> Result<(), StoreRefusal> {
        let mut whole = self.object(growing.label.clone(), growing.head.clone(), growing.times, Body::File(body));
        whole.is_spooled = true;
        let whole = Arc::new(whole);
        let stored = self.store(&whole, now);
        if stored.is_err() {
            self.zone.drop_file(&whole.label);
        }
        self.flight.stored(self.turn, &whole);
        self.land();
        stored
    }

    pub(super) fn object(&self, label: Arc<Label>, head: StoredHead, times: Times, body: Body) -> Object {
        let soft_purged = AtomicBool::new(false);
        let (serial, is_spooled) = (self.zone.next_serial(), false);
        Object {
            label,
            head,
            times,
            body,
            parsed: OnceLock::new(),
            serial,
            born: self.born,
            soft_purged,
            is_spooled,
            stays_in_memory: false,
            forms: Forms::default(),
            is_being_packed: AtomicBool::new(false),
        }
    }

    pub(super) fn store(&self, object: &Arc<Object>, now: Instant) -> Result<(), StoreRefusal> {
        if self.flight.is_purged_for(self.turn) {
            return Err(StoreRefusal::Purged);
        }
        // nginx: the last answer is kept, even from a leader that was replaced because it took too long.
        self.zone.store(object, now)
    }

    pub(super) fn land(&mut self) {
        self.is_done = true;
        self.zone.flights.land(&self.flight, self.turn);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_done {
            self.zone.flights.give_up(&self.flight, self.turn);
        }
    }
}
