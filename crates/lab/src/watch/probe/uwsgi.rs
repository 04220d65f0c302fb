//! uWSGI's workers and its listen queue, from its stats server (`--stats`).
//!
//! The stats server is a thread of its own: it answers even if all workers are busy.
//! <https://uwsgi-docs.readthedocs.io/en/latest/StatsServer.html>

use serde::Deserialize;

use super::ways::{Reading, ask, url};

/// The part of the answer that is read. Names are uWSGI's.
#[derive(Deserialize)]
struct Stats {
    listen_queue: f64,
    #[serde(default)]
    listen_queue_errors: f64,
    workers: Vec<Worker>,
}

#[derive(Deserialize)]
struct Worker {
    status: String,
    requests: f64,
}

/// Takes a reading. The place is `HOST:PORT` or the path of a socket.
pub fn read(at: &str) -> Result<Reading, String> {
    let at = if at.starts_with('/') { at.to_owned() } else { url(at).0 };
    // The stats server writes its answer as soon as somebody connects, and closes.
    let text = String::from_utf8_lossy(&ask(&at, b"")?).into_owned();
    of(&text).ok_or_else(|| {
        format!("{at}: no stats server of uWSGI: start uwsgi with --stats 127.0.0.1:9191, and name that address")
    })
}

fn of(text: &str) -> Option<Reading> {
    let stats: Stats = serde_json::from_str(text).ok()?;
    // A worker that is cheap or paused does not run; `busy` is followed by the number of its threads if it has some.
    let count = |status: &str| stats.workers.iter().filter(|worker| worker.status.starts_with(status)).count() as f64;
    let named = [
        ("busy", count("busy")),
        ("idle", count("idle")),
        ("busy_max", stats.workers.len() as f64),
        ("queue", stats.listen_queue),
        ("overflows", stats.listen_queue_errors),
        ("requests", stats.workers.iter().map(|worker| worker.requests).sum()),
    ];
    Some(named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn busy_idle_and_sleeping_workers_are_counted() {
        let text = r#"{"version":"2.0.21","listen_queue":12,"listen_queue_errors":0,"signal_queue":0,"load":12,"pid":1,
            "workers":[{"id":1,"pid":2,"accepting":1,"requests":5,"status":"busy","rss":0},
                       {"id":2,"pid":3,"accepting":1,"requests":6,"status":"idle"},
                       {"id":3,"pid":0,"accepting":0,"requests":0,"status":"cheap"}]}"#;
        let found = of(text).unwrap();
        assert_eq!((found["busy"], found["idle"], found["busy_max"]), (1.0, 1.0, 3.0));
        assert_eq!((found["queue"], found["requests"]), (12.0, 11.0));
        assert_eq!(of("HTTP/1.1 400 Bad Request\r\n\r\n"), None);
    }
}
