//! Puts the limits of `limit_memory`, `limit_buffers`, `limit_temp_files` and `limit_streams` in force. Without a line, the machine decides.

use std::path::Path;

use weir_host as host;
use weir_http::exchange::conf::Conf;
use weir_http::family::bounds::Most;
use weir_http::hold::bounds::{BUFFERS, EXCHANGE_BYTES, MEMORY, STREAMS, TEMPORARY};
use weir_net::path;

/// The part of the memory that weir may have, in per cent: an application beside it needs the rest.
const MEMORY_PER_CENT: u64 = 80;
/// The part of the free bytes on a disk that temporary files may have.
const DISK_PART: u64 = 2;
/// The part of weir's memory that streams may fill, and the part for what exchanges take beyond that. Both together leave room
/// for connections and for everything that has no bound of its own.
const STREAMS_PART: u64 = 2;
const BUFFERS_PART: u64 = 4;
/// Fewest streams, also on the smallest machine.
const STREAMS_MIN: u64 = 1024;

/// Puts the limits of a configuration in force, for the whole process.
pub fn apply(conf: &Conf) {
    let bounds = &conf.main.bounds;
    let machine = host::memory_limit_under(Path::new("/")) / 100 * MEMORY_PER_CENT;
    MEMORY.set_most(of(bounds.memory, || machine));
    // Without `limit_memory`, the machine still has an end.
    let memory = if MEMORY.most() == u64::MAX { machine } else { MEMORY.most() };
    BUFFERS.set_most(of(bounds.buffers, || memory / BUFFERS_PART));
    TEMPORARY.set_most(of(bounds.temp_files, || free(conf) / DISK_PART));
    STREAMS.set_most(of(bounds.streams, || (memory / STREAMS_PART / EXCHANGE_BYTES).max(STREAMS_MIN)));
}

/// The limit in the file, else the default. A default of 0 is one that could not be found: there is no limit.
fn of(most: Most, default: impl FnOnce() -> u64) -> u64 {
    match most {
        Most::Off => u64::MAX,
        Most::Of(most) => most,
        Most::Default => match default() {
            0 => u64::MAX,
            most => most,
        },
    }
}

/// The free bytes on the fullest disk that has temporary files, and those that weir's files have there already.
fn free(conf: &Conf) -> u64 {
    let free = conf.reach.makes().filter_map(|directory| path::free_bytes(directory).ok()).min();
    free.map_or(0, |free| free.saturating_add(TEMPORARY.used()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_counts_before_the_machine() {
        assert_eq!(of(Most::Off, || 5), u64::MAX);
        assert_eq!(of(Most::Of(7), || 5), 7);
        assert_eq!((of(Most::Default, || 5), of(Most::Default, || 0)), (5, u64::MAX));
    }
}
