//! One fetch per key across all workers: the first request leads; the others wait, or read the body while it grows.
//!
//! ```text
//!   Leading ─ fill ─► Filling ─ finish ─► Over
//!     ▲  └─ dropped ─► Vacant ◄─ dropped ─┘
//!     └─ one waiter takes it ┘
//! ```
//!
//! The mailbox of a waiter's worker wakes the waiter; no task polls a clock. Invariant: if a flight is vacant and has
//! waiters, the first waiter was woken since then or has yet to look.

use std::sync::{Arc, PoisonError};
use std::task::Waker;

use weir_net::Instant;

use super::label::{Place, Variant};
use super::object::Object;
use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering};

/// One fetch in progress.
pub struct Flight {
    pub(super) key: Arc<[u8]>,
    pub(super) place: Place,
    /// The turn in which a purge named the key: the responses of this turn and earlier ones are not stored.
    purged: AtomicU32,
    state: Mutex<FlightState>,
}

pub(super) struct FlightState {
    pub(super) phase: FlightPhase,
    /// The number of the current leader: a leader that was replaced because it took too long has a lower one.
    turn: u32,
    pub(super) since: Instant,
    /// The number of purges when the current leader began.
    born: u32,
    /// The number of waiters: woken ones, waiting ones, and ones about to wait.
    pub(super) present: usize,
    /// The wakers of the waiters, longest waiter first.
    pub(super) waiters: Vec<(u64, Waker)>,
    pub(super) next: u64,
}

#[derive(Clone)]
pub(super) enum FlightPhase {
    Leading,
    Vacant,
    Filling(Arc<Object>),
    Stored(Arc<Object>),
    Passed,
}

impl Flight {
    /// A flight whose first leader has turn 1.
    pub(super) fn new(key: Arc<[u8]>, place: Place, now: Instant, born: u32) -> Flight {
        let state = FlightState {
            phase: FlightPhase::Leading,
            turn: 1,
            since: now,
            born,
            present: 0,
            waiters: Vec::new(),
            next: 0,
        };
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
        matches!(state.phase, FlightPhase::Vacant).then(|| self.take(&mut state, now, born))
    }

    /// Counts one more waiter.
    pub(super) fn add_waiter(&self) {
        self.lock().present += 1;
    }

    /// Whether there is neither a leader nor a waiter.
    pub(super) fn is_deserted(&self) -> bool {
        let state = self.lock();
        matches!(state.phase, FlightPhase::Vacant) && state.present == 0
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
        self.end_with(turn, FlightPhase::Filling(object.clone()));
    }

    /// The leader stored a response.
    pub(super) fn stored(&self, turn: u32, object: &Arc<Object>) {
        self.end_with(turn, FlightPhase::Stored(object.clone()));
    }

    /// The leader has a response that must not be shared.
    pub(super) fn passed(&self, turn: u32) {
        self.end_with(turn, FlightPhase::Passed);
    }

    /// The leader gives up; true if nobody waits, so the flight is over.
    pub(super) fn vacate(&self, turn: u32) -> bool {
        let mut state = self.lock();
        if state.turn != turn {
            return false;
        }
        state.phase = FlightPhase::Vacant;
        wake_one(state)
    }

    fn end_with(&self, turn: u32, phase: FlightPhase) {
        let mut state = self.lock();
        if state.turn != turn {
            return;
        }
        state.phase = phase;
        let waiters = std::mem::take(&mut state.waiters);
        drop(state);
        waiters.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(super) fn take(&self, state: &mut FlightState, now: Instant, born: u32) -> u32 {
        state.phase = FlightPhase::Leading;
        state.turn += 1;
        state.since = now;
        state.born = born;
        state.turn
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the longest waiter; true if nobody is left to lead.
pub(super) fn wake_one(state: MutexGuard<'_, FlightState>) -> bool {
    let is_deserted = state.present == 0;
    let waker = state.waiters.first().map(|(_, waker)| waker.clone());
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
    is_deserted
}
