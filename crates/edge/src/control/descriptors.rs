//! How many connections the limit on open files leaves to each worker.

/// Of all descriptors, this part is for logs, temporary files, files that are sent, and the cache.
const RESERVED_PART: u64 = 8;
const RESERVED_MIN: u64 = 8;
/// Descriptors that a process without connections has open: standard streams, logs, the control thread, the
/// dashboard's thread.
const OWN: u64 = 16;
/// Descriptors that a worker without connections has open.
const OWN_OF_WORKER: u64 = 4;
/// If the limit leaves a worker fewer places than this, weir does not limit the table by it. Clients then wait in the
/// kernel's queue until a descriptor is free; a full table would refuse them.
const PLACES_MIN: u64 = 8;

/// The places in the table of one of `workers`, if the process may have `files` open and listens on `sockets`.
pub fn places(files: u64, workers: usize, sockets: usize) -> usize {
    let (workers, sockets) = (workers.max(1) as u64, sockets as u64);
    let own = OWN + OWN_OF_WORKER * workers + sockets * (workers + 1);
    let left = files.saturating_sub(own).saturating_sub((files / RESERVED_PART).max(RESERVED_MIN));
    match left / workers {
        ..PLACES_MIN => usize::MAX,
        places => usize::try_from(places).unwrap_or(usize::MAX),
    }
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
    fn a_tiny_limit_bounds_no_table_and_neither_does_none() {
        assert_eq!(places(30, 1, 1), usize::MAX);
        assert_eq!(places(64, 2, 1), 14);
        assert!(places(u64::MAX, 1, 1) > 1 << 40);
    }
}
