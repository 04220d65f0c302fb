//! All that clients together may make this process hold: memory, bytes in temporary files, streams of HTTP/2. Each client has
//! bounds of its own; these hold for any number of them.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_net::clock;
use weir_net::log::{self, Level};

use crate::hold::own::Owned;

/// Resident memory of this process, in bytes: as last measured, and what owners have taken since.
pub static MEMORY: Bound = Bound::new("limit_memory");
/// Memory that exchanges take beyond [`EXCHANGE_BYTES`] each: coders, read-ahead, listings, indexes of movies. An owner asks
/// before it takes the memory.
pub static BUFFERS: Bound = Bound::new("limit_buffers");
/// Bytes in temporary files: bodies of requests, and answers that wait for slow clients.
pub static TEMPORARY: Bound = Bound::new("limit_temp_files");
/// Streams of HTTP/2 that clients have open.
pub static STREAMS: Bound = Bound::new("limit_streams");

/// Memory of an exchange that needs no share of [`BUFFERS`]: a request's head and an answer's buffers. `limit_streams` reckons
/// with as much for each stream.
pub const EXCHANGE_BYTES: u64 = 64 << 10;

/// A quantity of which the whole process may hold so much.
#[derive(Debug)]
pub struct Bound {
    /// The directive that sets it.
    name: &'static str,
    used: AtomicU64,
    most: AtomicU64,
    refused: AtomicU64,
    /// The second of the last line in the log.
    noted: AtomicU64,
}

impl Bound {
    /// Without a limit.
    const fn new(name: &'static str) -> Bound {
        Bound {
            name,
            used: AtomicU64::new(0),
            most: AtomicU64::new(u64::MAX),
            refused: AtomicU64::new(0),
            noted: AtomicU64::new(0),
        }
    }

    /// The directive that sets it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the limit. More that is held already stays.
    pub fn set_most(&self, most: u64) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Sets the quantity that is held, for one that is measured.
    pub fn set_used(&self, used: u64) {
        self.used.store(used, Ordering::Relaxed);
    }

    /// The quantity that is held.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The limit; `u64::MAX` without one.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// The rest of the limit.
    pub fn room(&self) -> u64 {
        self.most().saturating_sub(self.used())
    }

    /// How often the limit has refused something.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.most.load(Ordering::Relaxed)
    }

    /// A measurement may have replaced the sum of the shares: it never falls below zero.
    fn give_back(&self, less: u64) {
        let rest = |used: u64| Some(used.saturating_sub(less));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
    }

    /// An empty share, which grows with the things that its owner holds.
    pub fn share(&'static self) -> Share {
        Share { bound: self, held: 0 }
    }

    /// Counts a refusal. The log gets one line a second.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        let now = clock::unix_seconds();
        if self.noted.swap(now, Ordering::Relaxed) != now {
            log::global(Level::Error, format_args!("{} {} is not enough", self.name, self.most()));
        }
    }
}

/// The part of a bound that one owner holds; dropping it frees the part.
#[derive(Debug)]
pub struct Share {
    bound: &'static Bound,
    held: u64,
}

impl Share {
    /// Holds more, if the limit allows it; else counts a refusal and holds no more than before.
    pub fn grow(&mut self, more: u64) -> bool {
        let grows = self.try_grow(more);
        if !grows {
            self.bound.refuse();
        }
        grows
    }

    /// As `grow`, for an owner that can do with less: no refusal is counted.
    pub fn try_grow(&mut self, more: u64) -> bool {
        let used = self.bound.used.fetch_add(more, Ordering::Relaxed);
        if used.saturating_add(more) > self.bound.most() {
            self.bound.give_back(more);
            return false;
        }
        self.held += more;
        true
    }

    /// Holds more, also above the limit: it is there already.
    pub fn add(&mut self, more: u64) {
        self.bound.used.fetch_add(more, Ordering::Relaxed);
        self.held += more;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.bound.give_back(self.held);
    }
}

/// The share lives as long as the exchange.
impl Owned for Share {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_bounded_together_and_given_back() {
        static BOUND: Bound = Bound::new("limit_test");
        let (mut one, mut other) = (BOUND.share(), BOUND.share());
        assert!(one.grow(u64::MAX / 4), "no limit");
        drop(one);
        BOUND.set_most(10);
        let mut one = BOUND.share();
        assert!(one.grow(6) && other.grow(4) && BOUND.is_full());
        assert!(!other.grow(1));
        assert_eq!((BOUND.used(), BOUND.refused()), (10, 1));
        drop(one);
        assert!(!BOUND.is_full() && other.grow(1));
        drop(other);
        assert_eq!(BOUND.used(), 0);
    }

    #[test]
    fn a_measurement_may_forget_shares() {
        static BOUND: Bound = Bound::new("limit_test");
        BOUND.set_most(10);
        let mut share = BOUND.share();
        assert!(share.grow(7) && !share.try_grow(4) && BOUND.refused() == 0 && BOUND.room() == 3);
        BOUND.set_used(2);
        drop(share);
        assert_eq!(BOUND.used(), 0, "never below zero");
    }
}
