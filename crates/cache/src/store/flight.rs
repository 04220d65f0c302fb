//! One fetch per key across all workers: the first request leads, the others wait or read along.
//!
//! ```text
//!   Leading ─ fill ─► Filling ─ finish ─► Over
//!     ▲  └─ dropped ─► Vacant ◄─ dropped ─┘
//!     └─ one waiter takes it ┘
//! ```
//!
//! The mailbox of a waiter's worker wakes the waiter; nobody polls a clock. Invariant: if a flight is vacant and has
//! waiters, the first waiter was woken since then or has yet to look.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::{Deadline, Instant, clock};

use super::fill::Leader;
use super::label::Variant;
use super::object::Object;
use super::{Place, Zone};

/// The most requests that wait for one fetch; later ones ask the origin themselves.
pub const WAITERS_MAX: usize = 16_384;

/// The most fetches in a zone that others can wait for; further requests fetch without the cache.
pub const FLIGHTS_MAX: usize = 65_536;

/// One fetch in progress.
pub struct Flight {
    pub(super) key: Arc<[u8]>,
    pub(super) place: Place,
    /// The turn in which a purge named the key: the responses of this turn and earlier ones are not stored.
    purged: AtomicU32,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    /// The number of the current leader: a leader that was replaced because it took too long has a lower one.
    turn: u32,
    since: Instant,
    /// The number of purges when the current leader began.
    born: u32,
    /// The number of waiters: woken ones, waiting ones, and ones about to wait.
    present: usize,
    /// The wakers of the waiters, longest waiter first.
    waiters: Vec<(u64, Waker)>,
    next: u64,
}

#[derive(Clone)]
enum Phase {
    Leading,
    Vacant,
    Filling(Arc<Object>),
    Stored(Arc<Object>),
    Passed,
}

/// The result of waiting.
pub enum Waited {
    /// The response is arriving and may be stored. Read along if its `label.vary` gives the same variant for this
    /// request; if not, ask again with that variant's place.
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
    pub(super) zone: Arc<Zone>,
    pub(super) flight: Arc<Flight>,
    id: Option<u64>,
}

impl Flight {
    /// A flight whose first leader has turn 1.
    pub(super) fn new(key: Arc<[u8]>, place: Place, now: Instant, born: u32) -> Flight {
        let state =
            State { phase: Phase::Leading, turn: 1, since: now, born, present: 0, waiters: Vec::new(), next: 0 };
        Flight { key, place, purged: AtomicU32::new(0), state: Mutex::new(state) }
    }

    pub(super) fn is_of(&self, key: &[u8], variant: Variant) -> bool {
        *self.key == *key && self.place.variant == variant
    }

    /// The number of purges when the current leader began.
    pub(super) fn born(&self) -> u32 {
        self.lock().born
    }

    /// The next turn, if there is no leader.
    pub(super) fn take_if_vacant(&self, now: Instant, born: u32) -> Option<u32> {
        let mut state = self.lock();
        matches!(state.phase, Phase::Vacant).then(|| self.take(&mut state, now, born))
    }

    /// Whether there is neither a leader nor a waiter.
    pub(super) fn is_deserted(&self) -> bool {
        let state = self.lock();
        matches!(state.phase, Phase::Vacant) && state.present == 0
    }

    /// Notes that a purge named the key.
    pub(super) fn purge(&self) {
        let state = self.lock();
        self.purged.store(state.turn, Ordering::Release);
    }

    /// Whether a purge named the key since this turn began.
    pub(super) fn is_purged_for(&self, turn: u32) -> bool {
        turn <= self.purged.load(Ordering::Acquire)
    }

    /// Whether this turn is the current leader's.
    pub(super) fn is_led_by(&self, turn: u32) -> bool {
        self.lock().turn == turn
    }

    /// The leader has a response that may be stored.
    pub(super) fn filling(&self, turn: u32, object: &Arc<Object>) {
        self.end_with(turn, Phase::Filling(object.clone()));
    }

    /// The leader stored a response.
    pub(super) fn stored(&self, turn: u32, object: &Arc<Object>) {
        self.end_with(turn, Phase::Stored(object.clone()));
    }

    /// The leader has a response that must not be shared.
    pub(super) fn passed(&self, turn: u32) {
        self.end_with(turn, Phase::Passed);
    }

    /// The leader gives up; true if nobody waits, so the flight is over.
    pub(super) fn vacate(&self, turn: u32) -> bool {
        let mut state = self.lock();
        if state.turn != turn {
            return false;
        }
        state.phase = Phase::Vacant;
        wake_one(state)
    }

    fn end_with(&self, turn: u32, phase: Phase) {
        let mut state = self.lock();
        if state.turn != turn {
            return;
        }
        state.phase = phase;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn take(&self, state: &mut State, now: Instant, born: u32) -> u32 {
        state.phase = Phase::Leading;
        state.turn += 1;
        state.since = now;
        state.born = born;
        state.turn
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the longest waiter; true if nobody is left to lead.
fn wake_one(state: MutexGuard<'_, State>) -> bool {
    let is_deserted = state.present == 0;
    let waker = state.waiters.first().map(|(_, waker)| waker.clone());
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
    is_deserted
}

impl Waiter {
    pub(super) fn new(zone: Arc<Zone>, flight: Arc<Flight>) -> Waiter {
        flight.lock().present += 1;
        Waiter { zone, flight, id: None }
    }

    /// The result without waiting; `None` if there is none yet.
    pub fn now(&self) -> Option<Waited> {
        match &self.flight.lock().phase {
            Phase::Leading | Phase::Vacant => None,
            Phase::Filling(object) => Some(Waited::Filling(object.clone())),
            Phase::Stored(object) => Some(Waited::Stored(object.clone())),
            Phase::Passed => Some(Waited::Pass),
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
            Phase::Filling(object) => return Poll::Ready(Waited::Filling(object.clone())),
            Phase::Stored(object) => return Poll::Ready(Waited::Stored(object.clone())),
            Phase::Passed => return Poll::Ready(Waited::Pass),
            Phase::Leading if !is_old => {}
            Phase::Leading | Phase::Vacant => {
                self.zone.note_beside(&flight);
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
    fn enter(&mut self, state: &mut State, waker: &Waker) -> bool {
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

    fn leave(&mut self, state: &mut State) {
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
        if matches!(state.phase, Phase::Vacant) && wake_one(state) {
            self.zone.land_if_vacant(&flight);
        }
    }
}
