//! All that clients together may make this process hold: memory, bytes in temporary files, streams of HTTP/2. Each client has
//! bounds of its own; these hold for any number of them.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_net::clock;
use weir_net::log::{self, Level};

/// Resident memory of this process, in bytes, as last measured.
pub static MEMORY: Bound = Bound::new("limit_memory");
/// Bytes in temporary files: bodies of requests, and answers that wait for slow clients.
pub static TEMPORARY: Bound = Bound::new("limit_temp_files");
/// Streams of HTTP/2 that clients have open.
pub static STREAMS: Bound = Bound::new("limit_streams");

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

    /// How often the limit has refused something.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.most.load(Ordering::Relaxed)
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
        let used = self.bound.used.fetch_add(more, Ordering::Relaxed);
        if used.saturating_add(more) > self.bound.most() {
            self.bound.used.fetch_sub(more, Ordering::Relaxed);
            self.bound.refuse();
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
        self.bound.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

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
}
