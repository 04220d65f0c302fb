//! The counters of every worker, each in its own cache lines; readers add them up.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use weir_meter::live::PROTOCOLS;
use weir_wire::Version;

/// One worker's counters. Only that worker writes them.
#[derive(Default)]
#[repr(align(128))]
pub struct Counters {
    /// Connections accepted.
    pub accepted: AtomicU64,
    /// Connections given a place in the connection table.
    pub handled: AtomicU64,
    /// Requests, in the order of [`PROTOCOLS`].
    pub traffic: [Traffic; PROTOCOLS.len()],
    /// Client connections open.
    pub active: AtomicI64,
    /// Of the open connections, those reading a head.
    pub reading: AtomicI64,
    /// Of the open connections, those between a head and the end of its response.
    pub writing: AtomicI64,
    /// Idle connections to upstreams that another worker may take over.
    pub lendable: Lendable,
}

/// The requests of one protocol.
#[derive(Default)]
pub struct Traffic {
    /// Requests begun.
    pub requests: AtomicU64,
    /// Bytes of requests that have ended.
    pub received: AtomicU64,
    /// Bytes of their answers.
    pub sent: AtomicU64,
}

impl Counters {
    /// The counters of requests of this version.
    #[inline]
    pub fn of(&self, version: Version) -> &Traffic {
        let [http1, http2, http3] = &self.traffic;
        match version {
            Version::Http09 | Version::Http10 | Version::Http11 => http1,
            Version::Http2 => http2,
            Version::Http3 => http3,
        }
    }
}

/// How many idle connections a worker can lend, by a mark of their peer. There are few marks, so that all can be read
/// quickly; two peers may share a mark.
#[derive(Default)]
pub struct Lendable([AtomicI64; LENDABLE_MARKS]);

/// Each mark takes eight bytes in each worker.
const LENDABLE_MARKS: usize = 32;

impl Lendable {
    /// The count for a peer of a group of a generation of the configuration, and for all peers that share its mark.
    pub fn to(&self, generation: u32, group: usize, peer: usize) -> &AtomicI64 {
        let mark = (generation as usize).wrapping_mul(11).wrapping_add(group.wrapping_mul(5)).wrapping_add(peer);
        &self.0[mark % LENDABLE_MARKS]
    }
}

/// The most workers that may be started (nginx has no limit).
pub const WORKERS_MAX: usize = 256;

/// Workers that serve or still finish, at most: a reload may start as many new workers as there are.
pub const SEATS_MAX: usize = 2 * WORKERS_MAX;

/// All workers' counters. Each worker has a seat. After its thread has ended, another worker takes the seat and adds to
/// the same counters, so that no count is lost. As a slice, it contains the seats that were ever taken.
#[derive(Clone)]
pub struct AllCounters(Arc<Seats>);

struct Seats {
    all: Box<[Counters]>,
    taken: AtomicUsize,
}

impl AllCounters {
    /// Counters before any worker has a seat.
    pub fn new() -> AllCounters {
        let all = (0..SEATS_MAX).map(|_| Counters::default()).collect();
        AllCounters(Arc::new(Seats { all, taken: AtomicUsize::new(0) }))
    }

    /// Counts this seat, below `SEATS_MAX`, among the taken seats.
    pub fn occupy(&self, seat: usize) {
        self.0.taken.fetch_max(seat + 1, Ordering::Relaxed);
    }

    /// The counters of a seat below `SEATS_MAX`.
    #[inline]
    pub fn seat(&self, seat: usize) -> &Counters {
        &self.0.all[seat]
    }
}

impl Default for AllCounters {
    fn default() -> AllCounters {
        AllCounters::new()
    }
}

impl Deref for AllCounters {
    type Target = [Counters];

    fn deref(&self) -> &[Counters] {
        let taken = self.0.taken.load(Ordering::Relaxed);
        self.0.all.get(..taken).unwrap_or(&self.0.all)
    }
}

/// Adds to a counter that only this thread writes: no locked instruction.
#[inline]
pub fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

/// Moves a gauge that only this thread writes.
pub fn shift(gauge: &AtomicI64, by: i64) {
    gauge.store(gauge.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// A gauge raised by one until this is dropped, also if its task panics.
pub struct Raised<'g>(&'g AtomicI64);

/// Raises a gauge that only this thread writes.
#[inline]
pub fn raise(gauge: &AtomicI64) -> Raised<'_> {
    shift(gauge, 1);
    Raised(gauge)
}

impl Drop for Raised<'_> {
    #[inline]
    fn drop(&mut self) {
        shift(self.0, -1);
    }
}

/// The sum over workers of one counter.
pub fn total(all: &[Counters], pick: impl Fn(&Counters) -> &AtomicU64) -> u64 {
    all.iter().map(|counters| pick(counters).load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
}

/// The requests begun, of all workers and protocols.
pub fn requests(all: &[Counters]) -> u64 {
    all.iter().flat_map(|counters| &counters.traffic).map(|of| of.requests.load(Ordering::Relaxed)).sum()
}

/// The sum over workers of one gauge, never below zero.
pub fn level(all: &[Counters], pick: impl Fn(&Counters) -> &AtomicI64) -> u64 {
    all.iter().map(|counters| pick(counters).load(Ordering::Relaxed)).sum::<i64>().max(0) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    #[test]
    fn what_leads_elsewhere_is_not_to_be_had_here() {
        let kept = Lendable::default();
        shift(kept.to(1, 0, 0), 3);
        for (generation, group, peer) in [(1, 0, 1), (1, 1, 0), (2, 0, 0), (1, 7, 2)] {
            assert_eq!(kept.to(generation, group, peer).load(Ordering::Relaxed), 0);
        }
        shift(kept.to(u32::MAX, usize::MAX, usize::MAX), 1);
        assert_eq!(kept.to(1, 0, 0).load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_panic_leaves_no_gauge_raised() {
        let counters = Counters::default();
        let outcome = std::panic::catch_unwind(|| {
            let _reading = raise(&counters.reading);
            let _writing = raise(&counters.writing);
            assert_eq!(counters.reading.load(Ordering::Relaxed), 1);
            panic!("of the test");
        });
        assert!(outcome.is_err());
        assert_eq!(counters.reading.load(Ordering::Relaxed), 0);
        assert_eq!(counters.writing.load(Ordering::Relaxed), 0);
    }
}
