//! Sorts the lines of a log by kind. It knows nginx's messages, which weir uses too, and messages of servers behind
//! the edge.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use weir_meter::Message;

use crate::said::{Said, say};

/// Most bytes of a log that are read.
const LOG_MAX: u64 = 64 << 20;

/// Messages of servers behind the edge: Apache's mpm_prefork, mpm_worker and mpm_event; PHP-FPM's pools.
const NO_WORKER: [&str; 2] = ["server reached MaxRequestWorkers setting", "server reached pm.max_children setting"];

/// Messages of servers behind the edge about a process of theirs that ended: PHP-FPM, Apache, gunicorn, uWSGI.
const ENDED: [&str; 5] = ["exited on signal", "exit signal ", "WORKER TIMEOUT", "was sent SIGKILL", "DAMN ! worker"];

/// A message of PHP-FPM about a script that ran longer than `request_terminate_timeout`, and was ended.
const OVERLONG: [&str; 1] = ["execution timed out ("];

/// A disk that takes nothing: ENOSPC, EDQUOT, EROFS.
const NO_ROOM: [&str; 3] = ["(28: ", "(122: ", "(30: "];

/// Most zones that are counted separately. Lines of further zones are counted without a zone.
const ZONES_MAX: usize = 64;
/// Most bytes of a zone's name.
const ZONE_MAX: usize = 128;

/// Counts the lines after the first `from` bytes, by kind. Lines of `limit_req` and `limit_conn` are counted by
/// effect and zone, as `refused limit_req one`.
///
/// The second value is a sentence that names the unread part of the log, if any: an unreadable log has no counts,
/// which is not zero.
pub fn count(log: &Path, from: u64) -> (BTreeMap<String, u64>, Option<Said>) {
    let mut counts = BTreeMap::new();
    let unread = |error: std::io::Error| Some(say!(LOG, log.display().to_string(), error.to_string()));
    let (mut file, length) = match File::open(log).and_then(|file| Ok((file.metadata()?.len(), file))) {
        Ok((length, file)) => (file, length),
        Err(error) => return (counts, unread(error)),
    };
    if let Err(error) = file.seek(SeekFrom::Start(from)) {
        return (counts, unread(error));
    }
    let mut line = Vec::new();
    let mut reader = BufReader::new(file.take(LOG_MAX));
    loop {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => add(&mut counts, &line),
            Err(error) => return (counts, unread(error)),
        }
        line.clear();
    }
    let cut = length.saturating_sub(from) > LOG_MAX;
    let said = cut.then(|| say!(LOG_ONLY_FIRST_MB, log.display().to_string(), LOG_MAX >> 20));
    (counts, said)
}

/// Adds a line to the counts.
pub fn add(counts: &mut BTreeMap<String, u64>, line: &[u8]) {
    let text = String::from_utf8_lossy(line);
    let zoned = limit(&text).map(|(what, zone)| {
        let name = format!("{what} {zone}");
        let is_told = counts.len() < ZONES_MAX || counts.contains_key(&name);
        if is_told { name } else { what.to_owned() }
    });
    if let Some(kind) = zoned.or_else(|| kind(&text).map(str::to_owned)) {
        *counts.entry(kind).or_default() += 1;
    }
}

fn kind(line: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|words| line.contains(words));
    let other = [
        ("workers", has(&NO_WORKER)),
        ("overlong", has(&OVERLONG)),
        ("ended", has(&ENDED)),
        ("no_room", has(&NO_ROOM)),
    ];
    let own = || other.iter().find(|(_, is_it)| *is_it).map(|(kind, _)| *kind);
    Message::of(line).map(Message::name).or_else(own)
}

/// The effect of a limit, and the zone that it counts in. `None` for a dry run, which has no effect.
// nginx: ngx_http_limit_req_handler(), ngx_http_limit_conn_handler().
fn limit(line: &str) -> Option<(&'static str, &str)> {
    let what = Message::of(line).filter(|message| {
        matches!(message, Message::RequestRefused | Message::RequestDelayed | Message::ConnectionRefused)
    })?;
    let (_, rest) = line.split_once("by zone \"")?;
    let (zone, _) = rest.split_once('"')?;
    (zone.len() <= ZONE_MAX).then_some((what.name(), zone))
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
            [30-Nov-2026 10:00:00] WARNING: [pool www] child 9 exited on signal 9 (SIGKILL) after 3.4 seconds from start\n\
            [30-Nov-2026 10:00:00] WARNING: [pool www] child 9, script '/x.php' (request: \"GET /x.php\") execution timed out (1.2 sec), terminating\n\
            [crit] 5#5: *9 pwritev() \"/c/1\" failed (28: No space left on device) while reading upstream\n\
            [info] something else\n";
        std::fs::write(&log, text).unwrap();
        let of = |kind: &str, count| (kind.to_owned(), count);
        assert_eq!(
            count(&log, 0),
            (
                [
                    of("connections", 1),
                    of("ended", 1),
                    of("no_room", 1),
                    of("overlong", 1),
                    of("recycled", 1),
                    of("no_port", 1),
                    of("read_timeout", 1),
                ]
                .into(),
                None
            )
        );
        assert_eq!(count(&log, text.len() as u64), (BTreeMap::new(), None));
        std::fs::remove_file(&log).unwrap();
    }

    #[test]
    fn limits_are_counted_by_zone_and_a_dry_run_is_not() {
        let log = std::env::temp_dir().join(format!("weir-lab-limits-{}", std::process::id()));
        let text = "[error] 1#1: *1 limiting requests, excess: 5.400 by zone \"one\", client: 10.0.0.1, server: x\n\
            [warn] 1#1: *1 delaying request, excess: 0.400, by zone \"one\", client: 10.0.0.1\n\
            [error] 1#1: *1 limiting requests, dry run, excess: 5.400 by zone \"one\", client: 10.0.0.1\n\
            [error] 1#1: *1 limiting connections by zone \"addr\", client: 10.0.0.1\n\
            [error] 1#1: *1 limiting connections by zone \"addr\", client: 10.0.0.1\n\
            [error] 1#1: *1 access forbidden by rule, client: 10.0.0.1\n\
            [error] 1#1: *1 app.test could not be resolved (110: Operation timed out), client: 10.0.0.1\n";
        std::fs::write(&log, text).unwrap();
        let of = |kind: &str, count| (kind.to_owned(), count);
        let expected = [
            of("refused limit_req one", 1),
            of("delayed limit_req one", 1),
            of("refused limit_conn addr", 2),
            of("forbidden", 1),
            of("unresolved", 1),
        ];
        assert_eq!(count(&log, 0), (expected.into(), None));
        std::fs::remove_file(&log).unwrap();
    }

    /// A missing log is not a log without errors.
    #[test]
    fn a_log_that_cannot_be_read_is_named() {
        let (counts, unread) = count(Path::new("/nowhere/edge.log"), 0);
        assert!(counts.is_empty() && unread.is_some_and(|why| why.starts_with("the log /nowhere/edge.log: ")));
    }
}
