//! Lines of a log by what they say: nginx's words, which weir has too, and those of servers behind it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of a log that are looked through.
const LOG_MAX: u64 = 64 << 20;

/// A kind, and the words that tell it; the first that fits counts.
const KINDS: &[(&str, &str)] = &[
    ("recycled", "reusing connections"),
    ("connections", "worker_connections are not enough"),
    ("no_port", "(99: "),
    ("no_file", "(24: "),
    ("no_file", "(23: "),
    ("no_live", "no live upstreams"),
    ("connect_timeout", "timed out (110: Connection timed out) while connecting to upstream"),
    ("read_timeout", "timed out (110: Connection timed out) while reading response header from upstream"),
    ("read_timeout", "timed out (110: Connection timed out) while reading upstream"),
    ("send_timeout", "timed out (110: Connection timed out) while sending request to upstream"),
    ("tunnel_timeout", "timed out (110: Connection timed out) while proxying upgraded connection"),
    ("refused", "(111: "),
    ("unreachable", "(113: "),
    ("closed", "prematurely closed connection"),
    ("reset", "(104: "),
    ("limited", "limiting "),
    ("temporary", "is buffered to a temporary file"),
    // Apache's mpm_prefork, mpm_worker and mpm_event; PHP-FPM's pools.
    ("workers", "server reached MaxRequestWorkers setting"),
    ("workers", "server reached pm.max_children setting"),
];

/// Counts the lines behind `from` bytes.
pub fn count(log: &Path, from: u64) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let Ok(mut file) = File::open(log) else { return counts };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return counts;
    }
    let mut line = Vec::new();
    let mut reader = BufReader::new(file.take(LOG_MAX));
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        if let Some(kind) = kind(&String::from_utf8_lossy(&line)) {
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
        line.clear();
    }
    counts
}

fn kind(line: &str) -> Option<&'static str> {
    KINDS.iter().find(|(_, words)| line.contains(words)).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn nginxs_words_are_known() {
        let log = std::env::temp_dir().join(format!("weir-lab-errors-{}", std::process::id()));
        let text = "2026/01/01 [alert] 1#1: 32 worker_connections are not enough\n\
            2026/01/01 [warn] 1#1: 32 worker_connections are not enough, reusing connections\n\
            [crit] 5#5: *1 connect() to 127.0.0.1:3 failed (99: Cannot assign requested address) while connecting\n\
            [error] 5#5: *7 upstream timed out (110: Connection timed out) while reading response header from upstream\n\
            [info] something else\n";
        std::fs::write(&log, text).unwrap();
        let of = |kind: &str, count| (kind.to_owned(), count);
        assert_eq!(
            count(&log, 0),
            [of("connections", 1), of("recycled", 1), of("no_port", 1), of("read_timeout", 1)].into()
        );
        assert_eq!(count(&log, text.len() as u64), BTreeMap::new());
        std::fs::remove_file(&log).unwrap();
    }
}
