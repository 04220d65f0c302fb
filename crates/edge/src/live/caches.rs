//! The bytes and responses that a cache served, fetched and keeps, from one row of sums.

use weir_cache::reason::Reason;
use weir_cache::store::{Figures, Served, Status, Zone};
use weir_meter::live as shown;
use weir_meter::live::histogram::{Count, Tally};

use super::Live;

/// Sums of each status: responses, their bytes, stored responses, their bytes.
const OF_STATUS: usize = 4;
/// The sums that follow those of the statuses; after them, one for each reason.
const REQUESTS: usize = 0;
const ERRORS: usize = 1;
const REFRESHES: usize = 2;
const REASONS: usize = 5;

/// The row: four sums of each status; requests, errors; refreshes stored, confirmed, failed; then reasons.
pub(super) fn cache_sums(live: &Live, zone: &Zone, cell: u32) -> Vec<u64> {
    let extra = Status::ALL.len() * OF_STATUS;
    let mut sums = vec![0; extra + REASONS + Reason::ALL.len()];
    // Requests are read first. Each request has its status counted before it ends, so the difference is only the
    // requests that are under way.
    for (_, board) in live.boards.taken() {
        let Some(cell) = board.known_cache(cell) else { continue };
        let counts: Vec<(usize, &Count)> = [(REQUESTS, &cell.requests), (ERRORS, &cell.errors)]
            .into_iter()
            .chain(cell.reasons.iter().enumerate().map(|(number, count)| (REASONS + number, count)))
            .collect();
        for (place, count) in counts {
            if let Some(sum) = sums.get_mut(extra + place) {
                *sum += count.get();
            }
        }
    }
    for (status, place) in Status::ALL.into_iter().zip(sums.chunks_exact_mut(OF_STATUS)) {
        let Served { responses, bytes, responses_written, bytes_written } = zone.counters().read(status);
        place.copy_from_slice(&[responses, bytes, responses_written, bytes_written]);
    }
    let refreshes = zone.counters().refreshes();
    if let Some(places) = sums.get_mut(extra + REFRESHES..extra + REASONS) {
        places.copy_from_slice(&[refreshes.stored, refreshes.confirmed, refreshes.failed]);
    }
    sums
}

/// A row of these sums, since the last reset.
pub(super) struct Row(pub Vec<u64>);

impl Row {
    fn at(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    fn extra(&self, place: usize) -> u64 {
        self.at(Status::ALL.len() * OF_STATUS + place)
    }

    fn read(&self, status: Status) -> shown::CacheRead {
        let first = status as usize * OF_STATUS;
        shown::CacheRead { responses: self.at(first), bytes: self.at(first + 1) }
    }

    fn fetch(&self, status: Status) -> shown::CacheFetch {
        let first = status as usize * OF_STATUS;
        shown::CacheFetch {
            responses: self.at(first),
            bytes: self.at(first + 1),
            responses_written: self.at(first + 2),
            bytes_written: self.at(first + 3),
        }
    }

    /// A cache in the form of NGINX Plus; a cache without a disk has the size of its `memory`.
    pub fn cache(&self, figures: &Figures, is_on_disk: bool, memory: u64) -> shown::Cache {
        shown::Cache {
            size: if is_on_disk { figures.size } else { figures.memory },
            max_size: figures.max_size.or((!is_on_disk).then_some(memory)),
            cold: figures.cold,
            hit: self.read(Status::Hit),
            stale: self.read(Status::Stale),
            updating: self.read(Status::Updating),
            revalidated: self.read(Status::Revalidated),
            miss: self.fetch(Status::Miss),
            expired: self.fetch(Status::Expired),
            bypass: self.fetch(Status::Bypass),
        }
    }

    /// Its requests compared with the requests to the origin.
    pub fn account(&self, cache: &shown::Cache, figures: &Figures, memory: u64, wait: &Tally) -> shown::CacheAccount {
        let refreshes: u64 = (REFRESHES..REASONS).map(|place| self.extra(place)).sum();
        let reasons = Reason::ALL.iter().enumerate().map(|(number, reason)| (reason, self.extra(REASONS + number)));
        shown::CacheAccount {
            requests: self.extra(REQUESTS),
            hit: cache.hit.responses,
            stale: cache.stale.responses,
            updating: cache.updating.responses,
            revalidated: cache.revalidated.responses,
            miss: cache.miss.responses,
            expired: cache.expired.responses,
            bypass: cache.bypass.responses,
            error: self.extra(ERRORS),
            fetches: cache.miss.responses
                + cache.expired.responses
                + cache.bypass.responses
                + cache.revalidated.responses
                + refreshes,
            waited: wait.count(),
            wait: wait.times(),
            objects: figures.objects,
            memory: figures.memory,
            memory_max: memory,
            purged: figures.purged,
            reasons: reasons
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| (reason.as_str().to_owned(), count))
                .collect(),
        }
    }
}
