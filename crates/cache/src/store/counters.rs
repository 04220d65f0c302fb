//! The counters of a zone, in the form of NGINX Plus' `/http/caches`: each worker thread has its own cache lines.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The use of the cache for a request (`$upstream_cache_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A fresh response was served from the cache.
    Hit,
    /// A stale response was served, because the origin failed.
    Stale,
    /// A stale response was served, because another request is refreshing it.
    Updating,
    /// The origin confirmed the stored response.
    Revalidated,
    /// No response was stored.
    Miss,
    /// A stale response was stored, and was fetched again.
    Expired,
    /// The cache was not used.
    Bypass,
}

impl Status {
    /// Every status, in the order of NGINX Plus' object.
    pub const ALL: [Status; 7] = [
        Status::Hit,
        Status::Stale,
        Status::Updating,
        Status::Revalidated,
        Status::Miss,
        Status::Expired,
        Status::Bypass,
    ];

    /// The word in `$upstream_cache_status`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Hit => "HIT",
            Status::Stale => "STALE",
            Status::Updating => "UPDATING",
            Status::Revalidated => "REVALIDATED",
            Status::Miss => "MISS",
            Status::Expired => "EXPIRED",
            Status::Bypass => "BYPASS",
        }
    }
}

/// Threads with separate counters; with more threads, some share.
const LANES: usize = 16;

/// Counters of one status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Responses.
    pub responses: u64,
    /// Bytes read from the cache; for miss, expired and bypass from the origin.
    pub bytes: u64,
    /// Responses that were stored (miss, expired, bypass).
    pub responses_written: u64,
    /// Bytes that were stored.
    pub bytes_written: u64,
}

/// The result of a background refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// A new answer was stored, with a body of this many bytes.
    Stored(u64),
    /// The origin confirmed the stored answer.
    Confirmed,
    /// The origin failed, or its answer may not be stored.
    Failed,
}

impl Refreshed {
    /// The name of the result.
    pub fn as_str(self) -> &'static str {
        match self {
            Refreshed::Stored(_) => "stored",
            Refreshed::Confirmed => "confirmed",
            Refreshed::Failed => "failed",
        }
    }
}

/// Background refreshes: requests to the origin that no client's response counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refreshes {
    /// Refreshes that stored a new answer.
    pub stored: u64,
    /// Bytes that were stored.
    pub bytes: u64,
    /// Refreshes that the origin answered with 304.
    pub confirmed: u64,
    /// Refreshes that failed.
    pub failed: u64,
}

/// Rows of statuses, then the refreshes.
#[derive(Default)]
#[repr(align(128))]
struct Lane([[AtomicU64; 4]; ROWS]);

const ROWS: usize = Status::ALL.len() + 1;
const REFRESHES: usize = Status::ALL.len();

/// The request counters of one zone.
#[derive(Default)]
pub struct Counters {
    lanes: [Lane; LANES],
}

impl Counters {
    /// Counts a served response of this many bytes.
    pub fn served(&self, status: Status, bytes: u64) {
        self.add(status as usize, [1, bytes, 0, 0]);
    }

    /// Counts a stored response of this many bytes.
    pub fn written(&self, status: Status, bytes: u64) {
        self.add(status as usize, [0, 0, 1, bytes]);
    }

    /// Counts a background refresh.
    pub fn refreshed(&self, how: Refreshed) {
        let amounts = match how {
            Refreshed::Stored(bytes) => [1, bytes, 0, 0],
            Refreshed::Confirmed => [0, 0, 1, 0],
            Refreshed::Failed => [0, 0, 0, 1],
        };
        self.add(REFRESHES, amounts);
    }

    /// The refreshes so far.
    pub fn refreshes(&self) -> Refreshes {
        let [stored, bytes, confirmed, failed] = self.sums(REFRESHES);
        Refreshes { stored, bytes, confirmed, failed }
    }

    /// The counts so far.
    pub fn read(&self, status: Status) -> Served {
        let [responses, bytes, responses_written, bytes_written] = self.sums(status as usize);
        Served { responses, bytes, responses_written, bytes_written }
    }

    fn sums(&self, row: usize) -> [u64; 4] {
        let mut sums = [0; 4];
        for lane in &self.lanes {
            let Some(row) = lane.0.get(row) else { continue };
            for (sum, cell) in sums.iter_mut().zip(row) {
                *sum += cell.load(Ordering::Relaxed);
            }
        }
        sums
    }

    fn add(&self, row: usize, amounts: [u64; 4]) {
        let Some(row) = self.lanes.get(lane()).and_then(|lane| lane.0.get(row)) else { return };
        for (cell, amount) in row.iter().zip(amounts) {
            if amount > 0 {
                cell.fetch_add(amount, Ordering::Relaxed);
            }
        }
    }
}

/// This thread's lane.
fn lane() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static LANE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    LANE.with(|lane| {
        if lane.get() == usize::MAX {
            lane.set(NEXT.fetch_add(1, Ordering::Relaxed) % LANES);
        }
        lane.get()
    })
}

/// The state and the totals of a zone, for the API and the logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes on disk, whole blocks.
    pub size: u64,
    /// The limit of bytes on disk; `None` without one.
    pub max_size: Option<u64>,
    /// Whether the directory is still being read.
    pub cold: bool,
    /// Objects stored, in memory or on disk.
    pub objects: u64,
    /// Bytes of objects in memory.
    pub memory: u64,
    /// Bytes of keys and nodes.
    pub keys: u64,
    /// Objects removed to make room, from memory or completely.
    pub evictions: u64,
    /// Objects removed by a purge.
    pub purged: u64,
    /// Purges that are not yet applied to all objects.
    pub bans: u64,
    /// Failed reads and writes of files, including corrupt files.
    pub disk_errors: u64,
    /// Objects not written to disk, because the queue is full or the disk is out of use.
    pub disk_skipped: u64,
    /// Times a shard was found locked.
    pub contended: u64,
    /// Fetches in progress that others can wait for.
    pub flights: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| counters.served(Status::Hit, 10)));
            }
        });
        counters.written(Status::Miss, 7);
        assert_eq!(counters.read(Status::Hit), Served { responses: 400, bytes: 4000, ..Served::default() });
        assert_eq!(counters.read(Status::Miss), Served { responses_written: 1, bytes_written: 7, ..Served::default() });
        assert_eq!(counters.read(Status::Bypass), Served::default());
        for how in [Refreshed::Stored(9), Refreshed::Confirmed, Refreshed::Stored(1), Refreshed::Failed] {
            counters.refreshed(how);
        }
        assert_eq!(counters.refreshes(), Refreshes { stored: 2, bytes: 10, confirmed: 1, failed: 1 });
        assert_eq!(counters.read(Status::Bypass), Served::default());
    }
}
