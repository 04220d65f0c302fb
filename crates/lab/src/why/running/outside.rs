//! The requests of clients that the lab does not have: sums of what the edge says about them.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_conf::log_format::Entry;
use weir_load::record::Hdr;
use weir_meter::live::Snapshot;

use crate::why::good::GoodStatuses;
use crate::why::sent;
use crate::why::signals::LoadSignals;

/// Most paths that are counted separately.
const PATHS_MAX: usize = 2048;
/// Most latencies of a window that its median is made of.
const WINDOW_MAX: usize = 512;
/// Status of a request whose client has left before the answer (nginx: NGX_HTTP_CLIENT_CLOSED_REQUEST).
pub const LEFT: u16 = 499;

/// One second.
#[derive(Clone, Debug, Default)]
pub struct OutsideWindow {
    /// Requests that ended in it.
    pub ended: u64,
    /// Requests under way at its end, if the edge counts them.
    pub under_way: Option<u64>,
    /// Some of its latencies, ms.
    took: Vec<f64>,
    /// Their median, where only that is known.
    median: Option<f64>,
}

/// Sums of requests.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// By status.
    pub statuses: BTreeMap<u16, u64>,
    /// Requests that got no answer.
    pub unanswered: u64,
    /// The latencies of answers, without upgraded connections and long polls, which wait on purpose.
    pub took: Hdr,
    /// Quantiles of a source that has no latencies: mean, p50, p95, p99, max, ms.
    pub told_ms: Option<[f64; 5]>,
    /// Bytes of bodies.
    pub bytes: u64,
    /// One for each second.
    pub windows: Vec<OutsideWindow>,
    /// GET requests by path.
    paths: BTreeMap<Vec<u8>, u64>,
    /// Requests of a Socket.IO session that a server did not know.
    pub unknown_sessions: u64,
    /// Upgrades to WebSocket, and attempts.
    pub upgrades: (u64, u64),
    /// Refused upgrades by status.
    refused: BTreeMap<u16, u64>,
}

/// Whether an answer may take long because the server waits for something to say: Socket.IO's long polls.
fn is_poll(target: &[u8]) -> bool {
    memchr::memmem::find(target, b"transport=polling").is_some()
}

impl Requests {
    /// Notes the path of a request of a log, its session and its upgrade.
    pub fn note(&mut self, entry: &Entry) {
        let Some(status) = entry.status else { return };
        let has = |text: &[u8]| memchr::memmem::find(&entry.target, text).is_some();
        if has(b"transport=websocket") || status == 101 {
            self.upgrades.1 += 1;
            match status {
                101 => self.upgrades.0 += 1,
                // A gateway's error says nothing about upgrades.
                500.. => {}
                _ => *self.refused.entry(status).or_default() += 1,
            }
        } else if status == 400 && has(b"sid=") && has(b"EIO=") {
            // engine.io: `{"code":1,"message":"Session ID unknown"}`.
            self.unknown_sessions += 1;
        }
        if entry.method == b"GET" && !has(b"transport=") {
            let path = entry.target.split(|byte| *byte == b'?').next().unwrap_or_default();
            if self.paths.contains_key(path) || self.paths.len() < PATHS_MAX {
                *self.paths.entry(path.to_vec()).or_default() += 1;
            }
        }
    }

    /// Adds a request of a log, in the present second.
    pub fn add(&mut self, entry: &Entry) {
        let Some(status) = entry.status else { return };
        self.note(entry);
        *self.statuses.entry(status).or_default() += 1;
        self.bytes += entry.body_bytes.unwrap_or(0);
        let window = self.windows.last_mut();
        let took = entry.took_ms.filter(|_| status != 101 && !is_poll(&entry.target));
        if let Some(ms) = took {
            self.took.add(Duration::from_millis(ms));
        }
        if let Some(window) = window {
            window.ended += 1;
            window.took.extend(took.map(|ms| ms as f64).filter(|_| window.took.len() < WINDOW_MAX));
        }
    }

    /// Adds the second between two snapshots of weir.
    pub fn between(&mut self, then: &Snapshot, now: &Snapshot) {
        let mut ended = 0;
        for (name, zone) in &now.http.server_zones {
            let before = then.http.server_zones.get(name);
            for (status, count) in &zone.responses.codes {
                let before = before.and_then(|zone| zone.responses.codes.get(status)).copied().unwrap_or(0);
                let grew = count.saturating_sub(before);
                ended += grew;
                if grew > 0 {
                    *self.statuses.entry(*status).or_default() += grew;
                }
            }
            let gone = zone.discarded.saturating_sub(before.map_or(0, |zone| zone.discarded));
            self.unanswered += gone;
            self.bytes += zone.sent.saturating_sub(before.map_or(0, |zone| zone.sent));
        }
        let point = weir_dash::point::Point::between(Some(then), now);
        self.windows.push(OutsideWindow {
            ended,
            under_way: Some(now.http.server_zones.values().map(|zone| zone.processing).sum()),
            median: point.p50.map(f64::from).filter(|_| ended > 0),
            ..OutsideWindow::default()
        });
    }

    /// All requests.
    pub fn count(&self) -> u64 {
        self.statuses.values().sum::<u64>() + self.unanswered
    }

    /// The path that most GET requests asked for.
    pub fn path(&self) -> Option<String> {
        let (path, _) = self.paths.iter().max_by_key(|(_, count)| **count)?;
        String::from_utf8(path.clone()).ok()
    }

    /// The requests as those of a block of `seconds`.
    pub fn signals(&self, good: &GoodStatuses, seconds: f64) -> LoadSignals {
        let well = self.statuses.iter().filter(|(status, _)| good.has(**status)).map(|(_, count)| count).sum();
        let bad = self.statuses.iter().filter(|(status, count)| **count > 0 && !good.has(**status));
        let mut errors: BTreeMap<String, u64> = bad.map(|(status, count)| (status.to_string(), *count)).collect();
        if self.unknown_sessions > 0 {
            // They are no further failures.
            errors.insert("Session ID unknown".to_owned(), self.unknown_sessions);
            let rest = errors.get("400").copied().unwrap_or(0).saturating_sub(self.unknown_sessions);
            errors.insert("400".to_owned(), rest);
        }
        if self.unanswered > 0 {
            errors.insert("no answer".to_owned(), self.unanswered);
        }
        for (status, count) in &self.refused {
            errors.insert(format!("Unexpected server response: {status}"), *count);
            let rest = errors.get(&status.to_string()).copied().unwrap_or(0).saturating_sub(*count);
            errors.insert(status.to_string(), rest);
        }
        errors.retain(|_, count| *count > 0);
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let quantile = |share: f64| ms(self.took.quantile(share));
        let own = [ms(self.took.mean()), quantile(0.5), quantile(0.95), quantile(0.99), ms(self.took.max())];
        let whole = self.windows.get(1..self.windows.len().saturating_sub(1)).unwrap_or_default();
        let ended: Vec<f64> = whole.iter().map(|window| window.ended as f64).collect();
        let flight: Vec<f64> = whole.iter().filter_map(|window| window.under_way).map(|count| count as f64).collect();
        LoadSignals {
            is_outside: true,
            length_s: seconds,
            sent: self.count(),
            answered: self.statuses.values().sum(),
            well,
            good: good.clone(),
            errors,
            statuses: self.statuses.clone(),
            ms: self.told_ms.unwrap_or(own),
            shape: sent::shape(&self.took),
            strip: ended.clone(),
            sent_strip: if flight.is_empty() { Vec::new() } else { ended },
            medians: whole.iter().filter_map(OutsideWindow::median).collect(),
            flight,
            bytes: self.bytes,
            upgrades: self.upgrades,
            ..LoadSignals::default()
        }
    }
}

impl OutsideWindow {
    fn median(&self) -> Option<f64> {
        let mut sorted = self.took.clone();
        sorted.sort_by(f64::total_cmp);
        self.median.or_else(|| sorted.get(sorted.len() / 2).copied())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use weir_conf::log_format::Format;

    use super::*;

    fn requests(lines: &[&str]) -> Requests {
        let format = Format::read(&["$status $request_time $body_bytes_sent \"$request\""]).unwrap();
        let mut requests = Requests { windows: vec![OutsideWindow::default()], ..Requests::default() };
        lines.iter().for_each(|line| requests.add(&format.entry(line.as_bytes()).unwrap()));
        requests
    }

    #[test]
    fn what_a_log_says_becomes_a_load_without_a_generator() {
        let found = requests(&[
            "200 0.010 100 \"GET /a?x=1 HTTP/1.1\"",
            "200 0.030 100 \"GET /a HTTP/1.1\"",
            "502 0.000 50 \"GET /b HTTP/1.1\"",
            "101 60.000 9 \"GET /socket.io/?EIO=4&transport=websocket&sid=x HTTP/1.1\"",
            "200 25.000 9 \"GET /socket.io/?EIO=4&transport=polling&sid=x HTTP/1.1\"",
            "400 0.001 9 \"POST /socket.io/?EIO=4&transport=polling&sid=x HTTP/1.1\"",
        ]);
        let load = found.signals(&GoodStatuses::default(), 10.0);
        assert_eq!((load.sent, load.well, load.bytes, load.upgrades), (6, 4, 277, (1, 1)));
        assert_eq!(load.errors, [("502".to_owned(), 1), ("Session ID unknown".to_owned(), 1)].into());
        // Sessions and polls last as long as they last: they say nothing about speed.
        assert!(load.ms[4] < 31.0 && load.offered.is_none() && load.is_outside && !load.is_closed, "{:?}", load.ms);
        assert_eq!(found.path().as_deref(), Some("/a"));
    }

    #[test]
    fn the_growth_between_two_snapshots_is_a_second() {
        let then = Snapshot::example();
        let mut now = then.clone();
        let zone = now.http.server_zones.values_mut().next().unwrap();
        zone.responses.add(200, 30);
        zone.responses.add(503, 5);
        zone.discarded += 2;
        let mut requests = Requests::default();
        requests.between(&then, &now);
        let load = requests.signals(&GoodStatuses::default(), 1.0);
        assert_eq!((load.sent, load.answered, load.well), (37, 35, 30));
        assert_eq!(load.errors, [("503".to_owned(), 5), ("no answer".to_owned(), 2)].into());
    }
}
