//! The cells of one worker. Only its thread writes them.

pub mod boards;
mod lock;
pub mod mishap;
pub mod names;
pub mod tunnels;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, TryLockError};

use mishap::{Mishap, MishapCells};
use tunnels::TunnelCell;
use weir_cache::reason::Reason;
use weir_meter::live::cells::{Distrust, PeerCell, SslCell, ZoneCell};
use weir_meter::live::histogram::{Count, Histogram, Spot};
use weir_meter::live::quic::QuicCell;
use weir_meter::live::without_queries;
use weir_meter::live::{ErrorSample, NAMES_MAX, PATH};
use weir_net::clock::Instant;
use weir_net::tls::{Failure, HandshakeFault, failure};

pub use lock::lock;
/// The steps of a request, in the order of [`PATH`].
#[derive(Clone, Copy, Debug)]
pub enum Leg {
    /// Reading the request's head, from its first byte.
    Accept,
    /// The TLS handshake before the first request of a connection.
    Tls,
    /// Held back by `limit_req`.
    Queue,
    /// Waiting for the check of `auth_request`.
    Auth,
    /// Reading the request's body before it is passed on.
    Read,
    /// Waiting for the cache: for the fetch of another request, or for a disk.
    Cache,
    /// Taking a kept connection, including the wait for one.
    Pool,
    /// Connecting to a peer, including TLS.
    Connect,
    /// From the connection to the peer's head.
    Wait,
    /// From the peer's head to the end of its body.
    Body,
    /// From the end of the answer's source to the last byte sent, without the pauses of `Rate`.
    Write,
    /// Waiting because of `limit_rate`.
    Rate,
}

/// Counters of a zone of `limit_req` or `limit_conn`.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LimitCell {
    /// Let through.
    pub passed: Count,
    /// Let through later.
    pub delayed: Count,
    /// Refused.
    pub rejected: Count,
    /// Would have been delayed.
    pub delayed_dry_run: Count,
    /// Would have been refused.
    pub rejected_dry_run: Count,
}

/// Counters of a cache, in addition to the counters that the cache itself keeps.
#[derive(Debug)]
#[repr(align(128))]
pub struct CacheCell {
    /// Requests that used the cache.
    pub requests: Count,
    /// Of those, the requests that ended before the cache had a result.
    pub errors: Count,
    /// By [`Reason`].
    pub reasons: [Count; Reason::ALL.len()],
    /// Times that requests waited for the fetch of another request.
    pub wait: Histogram,
}

impl Default for CacheCell {
    fn default() -> CacheCell {
        let reasons = [const { Count::new() }; Reason::ALL.len()];
        CacheCell { requests: Count::new(), errors: Count::new(), reasons, wait: Histogram::default() }
    }
}

/// Samples a worker keeps until the observer takes them, at most: if errors come faster, the others are only counted.
pub const SAMPLES_WAITING_MAX: usize = 32;

/// Everything one worker counts.
#[derive(Default)]
pub struct Board {
    zones: Cells<ZoneCell>,
    peers: Cells<PeerCell>,
    limits: Cells<LimitCell>,
    caches: Cells<CacheCell>,
    /// The times of the steps of requests.
    pub path: [Histogram; PATH.len()],
    /// Upgraded connections.
    pub tunnels: TunnelCell,
    /// QUIC.
    pub quic: Arc<QuicCell>,
    /// Errors, by class.
    pub mishaps: MishapCells,
    /// Connections that weir could not accept, mostly because the process had no free descriptor.
    pub accept_failed: Count,
    /// Connections for which the worker's table had no place: dropped clients, and failed tries at peers.
    pub places_refused: Count,
    /// Places taken in the worker's connection table, as of the last second.
    pub places: Count,
    /// The id of the worker's thread.
    pub thread: Count,
    samples: Mutex<Vec<(Mishap, ErrorSample)>>,
    last_errors: Mutex<HashMap<u32, (u64, String)>>,
}

impl Board {
    /// A zone's cell; made when first used.
    #[inline]
    pub fn zone(&self, number: u32) -> &ZoneCell {
        self.zones.cell(number)
    }

    /// A peer's cell.
    #[inline]
    pub fn peer(&self, number: u32) -> &PeerCell {
        self.peers.cell(number)
    }

    /// A limit's cell.
    #[inline]
    pub fn limit(&self, number: u32) -> &LimitCell {
        self.limits.cell(number)
    }

    /// A cache's cell.
    #[inline]
    pub fn cache(&self, number: u32) -> &CacheCell {
        self.caches.cell(number)
    }

    /// A cache's cell if anything was counted in it.
    pub fn known_cache(&self, number: u32) -> Option<&CacheCell> {
        self.caches.known(number)
    }

    /// A zone's cell if anything was counted in it.
    pub fn known_zone(&self, number: u32) -> Option<&ZoneCell> {
        self.zones.known(number)
    }

    /// A peer's cell if anything was counted in it.
    pub fn known_peer(&self, number: u32) -> Option<&PeerCell> {
        self.peers.known(number)
    }

    /// A limit's cell if anything was counted in it.
    pub fn known_limit(&self, number: u32) -> Option<&LimitCell> {
        self.limits.known(number)
    }

    /// Notes how long a step took.
    #[inline]
    pub fn took(&self, leg: Leg, us: u64) {
        if let Some(histogram) = self.path.get(leg as usize) {
            histogram.record(us);
        }
    }

    /// As [`Board::took`], for a time with a known bucket.
    #[inline]
    pub fn took_at(&self, leg: Leg, spot: Spot) {
        if let Some(histogram) = self.path.get(leg as usize) {
            histogram.put(spot);
        }
    }

    /// Keeps a sample of an error if there is room and the observer is not reading: a worker does not wait for the
    /// observer.
    pub fn sample(&self, make: impl FnOnce() -> (Mishap, ErrorSample)) {
        let mut samples = match self.samples.try_lock() {
            Ok(samples) => samples,
            Err(TryLockError::Poisoned(samples)) => samples.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if samples.len() < SAMPLES_WAITING_MAX {
            samples.push(make());
        }
    }

    /// Keeps the log line of a peer's newest failure, by its cell and with its time; at most one for each cell.
    pub fn peer_failed(&self, cell: u32, at_ms: u64, line: impl FnOnce() -> String) {
        if let Ok(mut last) = self.last_errors.try_lock() {
            last.insert(cell, (at_ms, line()));
        }
    }

    /// The newest failure of the peer of a cell.
    pub fn last_error(&self, cell: u32) -> Option<(u64, String)> {
        lock(&self.last_errors).get(&cell).cloned()
    }

    /// Takes the samples kept.
    pub fn take_samples(&self) -> Vec<(Mishap, ErrorSample)> {
        std::mem::take(&mut lock(&self.samples))
    }
}

/// Cells by number; each is made when first used.
struct Cells<T>(Box<[OnceLock<Box<T>>; NAMES_MAX + 1]>);

impl<T> Default for Cells<T> {
    fn default() -> Cells<T> {
        Cells(Box::new([const { OnceLock::new() }; NAMES_MAX + 1]))
    }
}

impl<T: Default> Cells<T> {
    /// `Names` gives no number above the last one. If one appears all the same, the cell for all other names counts it.
    #[inline]
    fn cell(&self, number: u32) -> &T {
        let index = number as usize;
        self.0[if index <= NAMES_MAX { index } else { 0 }].get_or_init(Box::default)
    }

    fn known(&self, number: u32) -> Option<&T> {
        self.0.get(number as usize)?.get().map(Box::as_ref)
    }
}

/// Bytes of a log line kept for a sample.
const LINE_BYTES_MAX: usize = 2048;

/// An exchange, as lines of the error log belong to it: the number of its connection, its start, its request line. A
/// connection has one request after the other, and a refresh of the cache may go on beside the next one.
pub type Asked<'r> = (u64, Instant, &'r [u8]);

/// The newest line of the error log about an exchange.
struct Kept {
    connection: u64,
    started: Option<Instant>,
    request: Vec<u8>,
    line: Vec<u8>,
}

thread_local! {
    static LINE: RefCell<Kept> =
        const { RefCell::new(Kept { connection: 0, started: None, request: Vec::new(), line: Vec::new() }) };
}

fn cut(bytes: &[u8]) -> &[u8] {
    bytes.get(..LINE_BYTES_MAX).unwrap_or(bytes)
}

/// Keeps a line of the error log, in case the exchange becomes a sample.
pub fn keep_line((connection, started, request): Asked<'_>, line: &[u8]) {
    // A worker that ends may still log while its thread-local values are destroyed.
    let _ = LINE.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        (kept.connection, kept.started) = (connection, Some(started));
        kept.request.clear();
        kept.request.extend_from_slice(cut(request));
        kept.line.clear();
        kept.line.extend_from_slice(cut(line));
    });
}

/// The newest line kept for an exchange, without queries, because they may hold private data. Empty when there is none.
pub fn line_of((connection, started, request): Asked<'_>) -> String {
    LINE.with(|kept| {
        let kept = kept.borrow();
        if kept.connection != connection || kept.started != Some(started) || kept.request != cut(request) {
            return String::new();
        }
        without_queries(String::from_utf8_lossy(&kept.line).trim_end())
    })
}

/// Counts why a handshake failed, if there is a counter for the reason.
pub fn count_fault(cell: &SslCell, error: &io::Error) {
    match failure(error) {
        Some(failure) => count_tls_fault(cell, failure),
        None if error.kind() == io::ErrorKind::TimedOut => cell.timeout.one(),
        None => {}
    }
}

/// As [`count_fault`], for a failure of TLS itself.
pub fn count_tls_fault(cell: &SslCell, failure: &Failure) {
    match failure.fault {
        HandshakeFault::NoCommonVersion => cell.no_common_protocol.one(),
        HandshakeFault::NoCommonCipher => cell.no_common_cipher.one(),
        HandshakeFault::CertificateRejected => cell.rejected.one(),
        HandshakeFault::NoCommonProtocol | HandshakeFault::Other => {}
    }
    if let Some(complaint) = &failure.distrust {
        cell.distrusted(Distrust::of(complaint.code));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_bounded_and_a_line_belongs_to_its_exchange() {
        let board = Board::default();
        for _ in 0..SAMPLES_WAITING_MAX + 9 {
            board.sample(|| (Mishap::Cut, ErrorSample::default()));
        }
        assert_eq!(board.take_samples().len(), SAMPLES_WAITING_MAX);
        assert!(board.take_samples().is_empty());
        let at = weir_net::clock::precise();
        let request: &[u8] = b"GET /a HTTP/1.1";
        keep_line((7, at, request), b"a line\n");
        assert_eq!(line_of((7, at, request)), "a line");
        // Another connection; a later request of this one; another request that came with it.
        let later = at + std::time::Duration::from_millis(1);
        for other in [(8, at, request), (7, later, request), (7, at, b"GET /b HTTP/1.1".as_slice())] {
            assert_eq!(line_of(other), "");
        }
    }

    #[test]
    fn a_number_beyond_the_last_counts_with_the_others() {
        let board = Board::default();
        board.zone(u32::MAX).begun.one();
        assert_eq!(board.zone(0).begun.get(), 1);
        assert!(board.known_zone(1).is_none());
    }
}
