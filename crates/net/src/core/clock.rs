//! A worker's clock: weir reads it once in each turn of the loop.

use crate::instant::{Instant, NS_PER_MS, NS_PER_SECOND, precise, precise_unix_ns};
use std::cell::Cell;
use std::time::Duration;

/// How long [`wall`](crate::clock::wall) trusts the monotonic clock before it looks again.
const WALL_TRUST_NS: u64 = NS_PER_SECOND;

/// A worker's clock.
pub(crate) struct Clock {
    start: Cell<Option<Instant>>,
    now: Cell<Option<Instant>>,
    now_ms: Cell<u64>,
    now_ms_up: Cell<u64>,
    /// The wall clock at `now`, in nanoseconds since 1970.
    unix_ns: Cell<u64>,
    /// When the wall clock was last read: since then weir extrapolates it.
    wall_read: Cell<Option<Instant>>,
}

impl Clock {
    pub(crate) const fn new() -> Clock {
        Clock {
            start: Cell::new(None),
            now: Cell::new(None),
            now_ms: Cell::new(0),
            now_ms_up: Cell::new(0),
            unix_ns: Cell::new(0),
            wall_read: Cell::new(None),
        }
    }

    /// Reads the clock; the first call starts it.
    pub(crate) fn tick(&self) {
        let now = precise();
        let before = self.now.replace(Some(now)).unwrap_or(now);
        let start = self.start.get().unwrap_or(now);
        self.start.set(Some(start));
        let since = now.ns_since(start);
        self.now_ms.set(since / NS_PER_MS);
        self.now_ms_up.set(since.div_ceil(NS_PER_MS));
        match self.wall_read.get() {
            Some(read) if now.ns_since(read) < WALL_TRUST_NS => {
                self.unix_ns.set(self.unix_ns.get().saturating_add(now.ns_since(before)));
            }
            Some(_) | None => {
                self.unix_ns.set(precise_unix_ns());
                self.wall_read.set(Some(now));
            }
        }
    }

    /// Stops it: [`now`](crate::clock::now) reads the real clock again.
    pub(crate) fn stop(&self) {
        self.now.set(None);
        self.start.set(None);
        self.wall_read.set(None);
    }

    #[inline]
    pub(crate) fn now(&self) -> Option<Instant> {
        self.now.get()
    }

    #[inline]
    pub(crate) fn unix_ns(&self) -> Option<u64> {
        self.now.get().map(|_| self.unix_ns.get())
    }

    /// Milliseconds since the clock started, rounded down.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    /// The moment `after` from now on this clock, rounded up so that it is never early.
    #[inline]
    pub(crate) fn after_ms(&self, after: Duration) -> u64 {
        self.now_ms_up.get().saturating_add(whole_ms_up(after))
    }

    /// A moment on this clock, rounded up; moments before its start are 0.
    pub(crate) fn at_ms(&self, at: Instant) -> u64 {
        at.ns_since(self.start.get().unwrap_or(at)).div_ceil(NS_PER_MS)
    }
}

fn whole_ms_up(time: Duration) -> u64 {
    let ms = u64::from(time.subsec_nanos().div_ceil(1_000_000));
    time.as_secs().saturating_mul(1000).saturating_add(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_round_up_and_now_rounds_down() {
        let clock = Clock::new();
        clock.tick();
        let start = clock.now().unwrap_or_else(precise);
        assert_eq!(clock.now_ms(), 0);
        assert_eq!(clock.at_ms(start), 0);
        assert_eq!(clock.at_ms(start + Duration::from_nanos(1)), 1);
        assert_eq!(clock.at_ms(start + Duration::from_millis(5)), 5);
        assert_eq!(clock.after_ms(Duration::from_micros(1500)), 2);
        assert_eq!(clock.after_ms(Duration::MAX), u64::MAX);
    }
}
