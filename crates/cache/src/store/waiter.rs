//! The waiting side of a flight: a place among its waiters, and the result for the waiter.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::clock;

use super::flight::{Flight, FlightPhase, FlightState, wake_one};
use super::leader::Leader;
use super::object::Object;
use super::zone::Zone;
use crate::sync::Deadline;

/// The most requests that wait for one fetch; later ones ask the origin themselves.
pub const WAITERS_MAX: usize = 16_384;

/// The result of waiting.
pub enum Waited {
    /// The response is arriving and may be stored. If its `label.vary` gives the same variant for this request, read
    /// the growing body; if not, ask again with that variant's place.
    Filling(Arc<Object>),
    /// A new response was stored, or the old one was confirmed.
    Stored(Arc<Object>),
    /// The response must not be shared: ask the origin without the cache.
    Pass,
    /// `proxy_cache_lock_timeout` has passed: ask the origin without the cache.
    TimedOut,
    /// The leader gave up, or took longer than `proxy_cache_lock_age`: fetch it.
    Lead(Leader),
}

/// A place among the waiters; dropping it gives the place back.
pub struct Waiter {
    zone: Arc<Zone>,
    flight: Arc<Flight>,
    id: Option<u64>,
}

impl Waiter {
    /// For a request that the flight counts among its waiters.
    pub(crate) fn new(zone: Arc<Zone>, flight: Arc<Flight>) -> Waiter {
        Waiter { zone, flight, id: None }
    }

    /// The result without waiting; `None` if there is none yet.
    pub fn now(&self) -> Option<Waited> {
        match &self.flight.lock().phase {
            FlightPhase::Leading | FlightPhase::Vacant => None,
            FlightPhase::Filling(object) => Some(Waited::Filling(object.clone())),
            FlightPhase::Stored(object) => Some(Waited::Stored(object.clone())),
            FlightPhase::Passed => Some(Waited::Pass),
        }
    }

    /// Waits for the leader's response: at most `timeout` in total, and at most `age` from the start of one leader
    /// (nginx: `proxy_cache_lock_timeout`, `proxy_cache_lock_age`).
    pub async fn wait(mut self, timeout: Duration, age: Duration) -> Waited {
        let (end, old) = (Deadline::new(), Deadline::new());
        end.set(timeout);
        poll_fn(|context| self.poll(context, &end, &old, age)).await
    }

    fn poll(&mut self, context: &Context<'_>, end: &Deadline, old: &Deadline, age: Duration) -> Poll<Waited> {
        let now = clock::now();
        let born = self.zone.purges();
        let flight = self.flight.clone();
        let mut state = flight.lock();
        let is_old = now.saturating_duration_since(state.since) >= age;
        match &state.phase {
            FlightPhase::Filling(object) => return Poll::Ready(Waited::Filling(object.clone())),
            FlightPhase::Stored(object) => return Poll::Ready(Waited::Stored(object.clone())),
            FlightPhase::Passed => return Poll::Ready(Waited::Pass),
            FlightPhase::Leading if !is_old => {}
            FlightPhase::Leading | FlightPhase::Vacant => {
                self.zone.flights.note_beside(&flight);
                let turn = flight.take(&mut state, now, born);
                drop(state);
                return Poll::Ready(Waited::Lead(Leader::new(self.zone.clone(), flight, turn, born)));
            }
        }
        let since = state.since;
        if !self.enter(&mut state, context.waker()) {
            return Poll::Ready(Waited::Pass);
        }
        drop(state);
        if end.poll_expired().is_ready() {
            return Poll::Ready(Waited::TimedOut);
        }
        old.set_at(since + age);
        match old.poll_expired() {
            // The leader became too old between the two readings of the clock.
            Poll::Ready(()) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }

    /// Returns false if too many wait already.
    fn enter(&mut self, state: &mut FlightState, waker: &Waker) -> bool {
        if let Some(id) = self.id
            && let Some((_, known)) = state.waiters.iter_mut().find(|(known, _)| *known == id)
        {
            known.clone_from(waker);
            return true;
        }
        if state.waiters.len() >= WAITERS_MAX {
            return false;
        }
        let id = *self.id.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.waiters.push((id, waker.clone()));
        true
    }

    fn leave(&mut self, state: &mut FlightState) {
        if let Some(id) = self.id.take() {
            state.waiters.retain(|(known, _)| *known != id);
        }
    }
}

impl Drop for Waiter {
    /// A waiter that was woken to lead and left lets the next one lead.
    fn drop(&mut self) {
        let flight = self.flight.clone();
        let mut state = flight.lock();
        self.leave(&mut state);
        state.present -= 1;
        if matches!(state.phase, FlightPhase::Vacant) && wake_one(state) {
            self.zone.flights.land_if_vacant(&flight);
        }
    }
}
