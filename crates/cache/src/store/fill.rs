//! The fetching side: a fill takes the body while it arrives.
//!
//! Dropping a fill gives the fetch up: then a waiting request leads, and requests that read the growing body see that
//! it was cut.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use weir_net::Instant;

use super::growth::Growth;
use super::label::{Label, TAGS_MAX, Tag, VARY_BYTES_MAX, Variant};
use super::leader::{Leader, StoreRefusal};
use super::object::{Body, Object, StoredHead, Times};
use super::queue::Job;
use super::spool::{AHEAD_BYTES_MAX, Spool};

/// A response that may be stored, before its body.
#[derive(Default)]
pub struct Draft {
    /// Its head.
    pub head: StoredHead,
    /// Its times.
    pub times: Times,
    /// The normalised names of the selecting fields, and the variant of this request.
    pub vary: Option<(Box<[u8]>, Variant)>,
    /// Its tags.
    pub tags: Vec<Tag>,
    /// The length of the body, if the origin announced it.
    pub length: Option<u64>,
    /// It is not written to the directory if it fits in memory.
    pub stays_in_memory: bool,
}

impl Leader {
    /// The response may be stored: from this point waiters read along. If the store refuses, waiters ask the origin
    /// themselves.
    pub fn fill(self, draft: Draft, now: Instant) -> Result<Fill, StoreRefusal> {
        let vary_bytes = draft.vary.as_ref().map_or(0, |(names, _)| names.len());
        let refused = if draft.tags.len() > TAGS_MAX || vary_bytes > VARY_BYTES_MAX {
            Some(StoreRefusal::TooManyNames)
        } else if draft.length.is_some_and(|length| !self.zone.takes(length, now)) {
            Some(StoreRefusal::TooLarge)
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
        let mut object = self.object(Arc::new(label), draft.head, draft.times, body);
        object.stays_in_memory = draft.stays_in_memory;
        let object = Arc::new(object);
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
    /// The store will not keep the body; only requests that read it while it grows use it.
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
    pub fn push(&mut self, bytes: &[u8], now: Instant) -> Result<(), StoreRefusal> {
        let Some(leader) = self.leader.as_ref().filter(|_| !self.is_over && self.growth.is_whole().is_ok()) else {
            self.give_up();
            return Err(StoreRefusal::TooLarge);
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
            return Err(StoreRefusal::TooLarge);
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
    pub fn finish(mut self, now: Instant) -> Result<Arc<Object>, StoreRefusal> {
        if self.is_over || self.growth.is_whole().is_err() {
            return Err(StoreRefusal::TooLarge);
        }
        let Some(mut leader) = self.leader.take() else { return Err(StoreRefusal::TooLarge) };
        self.is_over = true;
        self.growth.end(true);
        if self.is_adrift || self.growth.is_adrift() {
            leader.pass();
            return Err(StoreRefusal::TooLarge);
        }
        if let Some(spool) = &self.spool {
            let zone = leader.zone.clone();
            spool.give_leader(leader, now);
            zone.queue.wake();
            return Ok(self.object.clone());
        }
        let Some(body) = Body::of(&self.growth) else { return Err(StoreRefusal::TooLarge) };
        let old = &self.object;
        let mut whole = leader.object(old.label.clone(), old.head.clone(), old.times, body);
        whole.stays_in_memory = old.stays_in_memory;
        let whole = Arc::new(whole);
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
