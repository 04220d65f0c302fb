//! The fetching side: a leader reports the result of the fetch, a fill takes the body while it arrives.
//!
//! Dropping either of them gives up: then a waiter leads, and requests that read along see that the body was cut.

use std::cell::Cell;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use weir_net::Instant;

use super::Zone;
use super::flight::Flight;
use super::forms::Forms;
use super::growth::Growth;
use super::label::{Label, TAGS_MAX, Tag, VARY_BYTES_MAX, Variant};
use super::object::{Body, FileBody, Head, Object, Times};
use super::queue::Job;
use super::spool::{AHEAD_BYTES_MAX, Spool};

/// A response that may be stored, before its body.
#[derive(Default)]
pub struct Draft {
    /// Its head.
    pub head: Head,
    /// Its times.
    pub times: Times,
    /// The normalised names of the selecting fields, and the variant of this request.
    pub vary: Option<(Box<[u8]>, Variant)>,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// The length of the body, if the origin announced it.
    pub length: Option<u64>,
}

/// Why the store refuses a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Larger than the memory tier allows, and there is no disk for it.
    TooLarge,
    /// More tags than [`TAGS_MAX`], or names in `Vary` longer than [`VARY_BYTES_MAX`].
    TooManyNames,
    /// A purge named it during the fetch.
    Purged,
}

impl Refused {
    /// A sentence for `$weir_cache_reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refused::TooLarge => "not stored: larger than the memory tier takes and not on disk",
            Refused::TooManyNames => "not stored: too many tags or names in Vary",
            Refused::Purged => "not stored: purged while it was fetched",
        }
    }
}

/// The right and the duty to fetch for all waiters.
pub struct Leader {
    zone: Arc<Zone>,
    flight: Arc<Flight>,
    turn: u32,
    /// The number of purges before the fetch began.
    born: u32,
    is_done: bool,
}

impl Leader {
    pub(super) fn new(zone: Arc<Zone>, flight: Arc<Flight>, turn: u32, born: u32) -> Leader {
        Leader { zone, flight, turn, born, is_done: false }
    }

    /// The response may be stored: from this point waiters read along. If the store refuses, waiters ask the origin
    /// themselves.
    pub fn fill(self, draft: Draft, now: Instant) -> Result<Fill, Refused> {
        let vary_bytes = draft.vary.as_ref().map_or(0, |(names, _)| names.len());
        let refused = if draft.tags.len() > TAGS_MAX || vary_bytes > VARY_BYTES_MAX {
            Some(Refused::TooManyNames)
        } else if draft.length.is_some_and(|length| !self.zone.takes(length, now)) {
            Some(Refused::TooLarge)
        } else {
            None
        };
        if let Some(refused) = refused {
            self.pass();
            return Err(refused);
        }
        let (vary, variant) = draft.vary.unwrap_or_default();
        let label = Label { key: self.flight.key.as_ref().into(), variant, vary, tags: draft.tags.into() };
        let growth = Arc::new(Growth::new());
        let body = Body::Growing(growth.clone());
        let object = Arc::new(self.object(Arc::new(label), draft.head, draft.times, body));
        self.flight.filling(self.turn, &object);
        Ok(Fill {
            leader: Some(self),
            object,
            growth,
            spool: None,
            is_over: false,
            is_adrift: false,
            noted: Cell::new(0),
        })
    }

    /// The origin confirmed a stored object (304), or the head that is kept with it changed: stores it with a new head
    /// and new times. Fails if a purge named it meanwhile.
    pub fn confirm(
        mut self,
        old: &Arc<Object>,
        head: Head,
        times: Times,
        now: Instant,
    ) -> Result<Arc<Object>, Refused> {
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
    pub(super) fn keep(mut self, growing: &Arc<Object>, body: FileBody, now: Instant) -> Result<(), Refused> {
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

    fn object(&self, label: Arc<Label>, head: Head, times: Times, body: Body) -> Object {
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
            forms: Forms::default(),
            is_being_packed: AtomicBool::new(false),
        }
    }

    fn store(&self, object: &Arc<Object>, now: Instant) -> Result<(), Refused> {
        if self.flight.is_purged_for(self.turn) {
            return Err(Refused::Purged);
        }
        // nginx: the last answer is kept, even from a leader that was replaced because it took too long.
        self.zone.store(object, now)
    }

    fn land(&mut self) {
        self.is_done = true;
        if self.flight.is_led_by(self.turn) {
            self.zone.land(&self.flight);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_done && self.flight.vacate(self.turn) {
            self.zone.land_if_vacant(&self.flight);
        }
    }
}

/// A response whose body is arriving.
pub struct Fill {
    /// Present until the fill is finished.
    leader: Option<Leader>,
    object: Arc<Object>,
    growth: Arc<Growth>,
    /// Present once the body is longer than the memory tier allows.
    spool: Option<Arc<Spool>>,
    is_over: bool,
    /// The body will not be kept; it only serves requests that read along.
    is_adrift: bool,
    /// The round in which this fill was noted as a waiter for the file.
    noted: Cell<u64>,
}

impl Fill {
    /// The object for waiters: its body grows.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// Adds the next bytes of the body; copies them. If neither memory nor the disk takes the body, it continues for
    /// requests that read along. If there are none, this fails and the fill ends.
    pub fn push(&mut self, bytes: &[u8], now: Instant) -> Result<(), Refused> {
        let Some(leader) = self.leader.as_ref().filter(|_| !self.is_over && self.growth.is_whole().is_ok()) else {
            self.give_up();
            return Err(Refused::TooLarge);
        };
        let len = self.growth.len() + bytes.len() as u64;
        // The disk may have failed meanwhile.
        let fits = leader.zone.takes_in_memory(len) || self.spool.is_some() || leader.zone.spools(len, now);
        if !fits && !self.is_adrift {
            leader.flight.passed(leader.turn);
            self.growth.go_adrift();
            self.is_adrift = true;
        }
        self.is_adrift = self.is_adrift || (self.spool.is_some() && self.growth.is_adrift());
        if self.is_adrift && !self.growth.is_read() {
            self.give_up();
            return Err(Refused::TooLarge);
        }
        self.growth.push(bytes);
        self.spool_on();
        Ok(())
    }

    /// Waits while a long body is too far ahead of its file: the origin must not be read faster than the disk writes.
    pub async fn ready(&self) {
        std::future::poll_fn(|context| self.poll_ready(context)).await;
    }

    /// The same as a poll: pending while the body is too far ahead; then the context's task is woken.
    pub fn poll_ready(&self, context: &Context<'_>) -> Poll<()> {
        match self.spool {
            None if !self.is_adrift => Poll::Ready(()),
            // A body that is not kept waits for the slowest reader.
            _ => self.growth.poll_below(AHEAD_BYTES_MAX, context, &self.noted),
        }
    }

    /// The body is whole: stores it, so that requests find it. A long body is found once its file is in place; until
    /// then the returned object still grows.
    pub fn finish(mut self, now: Instant) -> Result<Arc<Object>, Refused> {
        if self.is_over || self.growth.is_whole().is_err() {
            return Err(Refused::TooLarge);
        }
        let Some(mut leader) = self.leader.take() else { return Err(Refused::TooLarge) };
        self.is_over = true;
        self.growth.end(true);
        if self.is_adrift || self.growth.is_adrift() {
            leader.pass();
            return Err(Refused::TooLarge);
        }
        if let Some(spool) = &self.spool {
            let zone = leader.zone.clone();
            spool.give_leader(leader, now);
            zone.queue.wake();
            return Ok(self.object.clone());
        }
        let Some(body) = self.growth.to_body() else { return Err(Refused::TooLarge) };
        let old = &self.object;
        let whole = Arc::new(leader.object(old.label.clone(), old.head.clone(), old.times, body));
        let stored = leader.store(&whole, now);
        leader.flight.stored(leader.turn, &whole);
        leader.land();
        stored.map(|()| whole)
    }

    /// Begins to write the body to a file once it is too long for memory.
    fn spool_on(&mut self) {
        let Some(leader) = self.leader.as_ref().filter(|_| !self.is_adrift) else { return };
        if self.spool.is_some() {
            return leader.zone.queue.wake();
        }
        if leader.zone.takes_in_memory(self.growth.len()) {
            return;
        }
        let (object, growth) = (self.object.clone(), self.growth.clone());
        let flight = (leader.flight.clone(), leader.turn);
        let spool = Arc::new(Spool { object, growth, flight, leader: Mutex::new(None) });
        if leader.zone.queue.push(Job::Spool(spool.clone())).is_err() {
            spool.give_up();
        }
        self.spool = Some(spool);
    }

    fn give_up(&mut self) {
        self.is_over = true;
        self.growth.end(false);
        if let Some(leader) = &self.leader
            && self.spool.is_some()
        {
            leader.zone.queue.wake();
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        if !self.is_over {
            self.give_up();
        }
    }
}
