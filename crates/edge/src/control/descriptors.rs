//! How many connections the limit on open files leaves to each worker.

/// Of all descriptors, this part is for logs, temporary files, files that are sent, and the cache.
const RESERVED_PART: u64 = 8;
const RESERVED_MIN: u64 = 8;
/// What a process has open without any connection: standard streams, logs, the control thread, the dashboard's thread.
const OWN: u64 = 16;
/// What a worker has open without any connection.
const OWN_OF_WORKER: u64 = 4;
/// So many connections a worker may have however low the limit is: a client, its origin, and one to make room with.
const PLACES_MIN: u64 = 4;

/// The places in the table of one of `workers`, where a process may have `files` open and listens on `sockets`.
pub fn places(files: u64, workers: usize, sockets: usize) -> usize {
    let (workers, sockets) = (workers.max(1) as u64, sockets as u64);
    let own = OWN + OWN_OF_WORKER * workers + sockets * (workers + 1);
    let left = files.saturating_sub(own).saturating_sub((files / RESERVED_PART).max(RESERVED_MIN));
    usize::try_from((left / workers).max(PLACES_MIN)).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_together_leave_descriptors_free() {
        for (files, workers, sockets) in [(256, 1, 1), (1024, 2, 3), (20_000, 8, 40), (1 << 20, 64, 4)] {
            let taken = places(files, workers, sockets) as u64 * workers as u64;
            assert!(taken + files / RESERVED_PART <= files, "{files}: {taken}");
            assert!(taken > files / 2, "{files}: {taken}");
        }
    }

    #[test]
    fn a_tiny_limit_leaves_a_few_and_none_leaves_all() {
        assert_eq!(places(0, 2, 1), PLACES_MIN as usize);
        assert_eq!(places(64, 2, 1), 14);
        assert!(places(u64::MAX, 1, 1) > 1 << 40);
    }
}
