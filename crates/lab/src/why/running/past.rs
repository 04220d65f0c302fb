//! The minutes before the watch: since when it has been so, and the quietest minute to compare with.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use weir_conf::log_format::Entry;
use weir_load::record::Hdr;

use super::access::logged;
use super::outside::LEFT;
use crate::watch::Account;
use crate::watch::logged as sums;
use crate::why::good::GoodStatuses;

/// Least requests of a minute that is compared: a quantile of fewer is a matter of chance.
const REQUESTS_MIN: u64 = 30;
/// Minutes that are kept: an hour.
const MINUTES_MAX: usize = 60;
/// A minute belongs to the same trouble if it has at least this part of its failures, or of its latency.
const AS_BAD: f64 = 0.5;
/// The present is slower than another minute if its p95 is more than this many times as long, and longer by
/// [`SLOWER_MS`]. As for windows of a block (`quiet`).
pub const SLOWER: f64 = 2.0;
/// See [`SLOWER`].
pub const SLOWER_MS: f64 = 20.0;

/// A minute.
#[derive(Clone, Debug, Default)]
pub struct Minute {
    /// Its requests.
    pub count: u64,
    /// Those that failed.
    pub failed: f64,
    /// Latencies of its answers.
    took: Hdr,
    /// The 95th percentile, where only that is known: the seconds of the minute, ms.
    told_ms: Vec<f64>,
    /// The edge's account of this minute alone.
    pub account: Account,
}

/// Minutes by their number since 1970.
#[derive(Clone, Debug, Default)]
pub struct Past {
    minutes: BTreeMap<u64, Minute>,
}

/// The present, to compare the past with.
#[derive(Clone, Copy, Debug)]
pub struct Present {
    /// The share of failed requests.
    pub failed: f64,
    /// The 95th percentile, ms.
    pub p95_ms: f64,
}

impl Minute {
    /// The 95th percentile of the latencies, ms. `None` if the source has no latencies.
    pub fn p95_ms(&self) -> Option<f64> {
        let mut told = self.told_ms.clone();
        told.sort_by(f64::total_cmp);
        let middle = told.get(told.len() / 2).copied();
        middle.or_else(|| (self.took.count() > 0).then(|| self.took.quantile(0.95).as_secs_f64() * 1000.0))
    }

    /// The mean latency, ms.
    pub fn mean_ms(&self) -> f64 {
        self.took.mean().as_secs_f64() * 1000.0
    }

    /// The share of failed requests.
    pub fn failed_share(&self) -> f64 {
        self.failed / self.count.max(1) as f64
    }
}

impl Past {
    /// Adds a request of a log.
    pub fn add(&mut self, entry: &Entry, good: &GoodStatuses) {
        let (Some(at), Some(status)) = (entry.at_ms, entry.status) else { return };
        let minute = self.minutes.entry(at / 60_000).or_default();
        minute.count += 1;
        minute.failed += if good.has(status) { 0.0 } else { 1.0 };
        let is_long =
            status == 101 || status == LEFT || entry.target.windows(17).any(|part| part == b"transport=polling");
        if let Some(ms) = entry.took_ms.filter(|_| !is_long) {
            minute.took.add(Duration::from_millis(ms));
        }
        sums::sum(&mut minute.account, &logged(entry));
        while self.minutes.len() > MINUTES_MAX {
            self.minutes.pop_first();
        }
    }

    /// Adds the history of weir's dashboard: a point for each second.
    pub fn add_points(&mut self, points: &Value) {
        for point in points.as_array().into_iter().flatten() {
            let Some(at) = point["at"].as_u64() else { continue };
            let minute = self.minutes.entry(at / 60_000).or_default();
            minute.count += point["rps"].as_f64().unwrap_or(0.0).round() as u64;
            minute.failed += point["failed"].as_f64().unwrap_or(0.0) + point["refused"].as_f64().unwrap_or(0.0);
            minute.told_ms.extend(point["p95"].as_f64());
        }
    }

    /// The minutes before this moment (ms since 1970) that have enough requests, the newest first. The first minute and
    /// the last are not whole.
    fn whole(&self, before_ms: u64) -> impl Iterator<Item = (u64, &Minute)> {
        let first = self.minutes.keys().next().copied().unwrap_or(0);
        let all = self.minutes.iter().rev().map(|(number, minute)| (*number, minute));
        all.filter(move |(number, minute)| {
            *number > first && (number + 1) * 60_000 <= before_ms && minute.count >= REQUESTS_MIN
        })
    }

    /// The minute with the smallest 95th percentile in which fewer requests failed than now, of equals the newest. With its
    /// number.
    pub fn quietest(&self, before_ms: u64, present: Present) -> Option<(u64, &Minute)> {
        let less = |minute: &Minute| minute.failed_share() <= present.failed * AS_BAD;
        let all = self.whole(before_ms).filter_map(|(number, minute)| Some((number, minute, minute.p95_ms()?)));
        let fewer = all.filter(|(_, minute, _)| present.failed == 0.0 || less(minute));
        fewer.min_by(|one, other| one.2.total_cmp(&other.2)).map(|(number, minute, _)| (number, minute))
    }

    /// The number of the minute since which it has been as bad as now, without a break, and whether an earlier minute
    /// was better. `None`: the minute before was better, or none is known.
    pub fn since(&self, before_ms: u64, present: Present, is_failing: bool) -> Option<(u64, bool)> {
        let is_bad = |minute: &Minute| match is_failing {
            true => minute.failed_share() >= AS_BAD * present.failed,
            false => minute.p95_ms().is_some_and(|ms| ms >= AS_BAD * present.p95_ms),
        };
        let mut since = None;
        for (number, minute) in self.whole(before_ms) {
            if !is_bad(minute) {
                return since.map(|number| (number, true));
            }
            since = Some(number);
        }
        since.map(|number| (number, false))
    }
}

/// Whether answers became slower than they were in a minute with this 95th percentile.
pub fn is_slower(p95_ms: f64, then_ms: f64) -> bool {
    p95_ms > SLOWER * then_ms && p95_ms > then_ms + SLOWER_MS
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;
    use weir_conf::log_format::Format;

    use super::*;

    /// Ten minutes at a request a second; from the sixth on, answers take half a second.
    fn past() -> Past {
        let format = Format::read(&["$msec $status $request_time \"$request\""]).unwrap();
        let mut past = Past::default();
        for second in 0..600_u64 {
            let took = if second < 300 { "0.020" } else { "0.500" };
            let status = if second < 480 { 200 } else { 502 };
            let line = format!("{}.000 {status} {took} \"GET / HTTP/1.1\"", 60_000_000 + second);
            past.add(&format.entry(line.as_bytes()).unwrap(), &GoodStatuses::default());
        }
        past
    }

    #[test]
    fn the_beginning_of_a_trouble_is_found() {
        let (past, first) = (past(), 1_000_000);
        let end = (60_000_000 + 600) * 1000;
        let slow = Present { failed: 0.0, p95_ms: 520.0 };
        assert_eq!(past.since(end, slow, false), Some((first + 5, true)));
        let (number, minute) = past.quietest(end, slow).unwrap();
        assert!(number < first + 5 && is_slower(520.0, minute.p95_ms().unwrap()), "{number}");
        let failing = Present { failed: 1.0, p95_ms: 500.0 };
        assert_eq!(past.since(end, failing, true), Some((first + 8, true)));
        // As fast as it has ever been.
        assert_eq!(past.since(end, Present { failed: 0.0, p95_ms: 2000.0 }, false), None);
        assert_eq!(Past::default().since(end, slow, false), None);
        assert!(!is_slower(30.0, 14.0) && !is_slower(900.0, 500.0));
    }

    #[test]
    fn weirs_history_is_read_by_the_minute() {
        let point = |at: u64, failed: f64, p95: f64| json!({"at": at, "rps": 20.0, "failed": failed, "refused": null, "p95": p95});
        let points: Vec<Value> = (0..300).map(|n| point(n * 1000, if n < 180 { 0.0 } else { 10.0 }, 5.0)).collect();
        let mut past = Past::default();
        past.add_points(&Value::Array(points));
        assert_eq!(past.since(300_000, Present { failed: 0.5, p95_ms: 5.0 }, true), Some((3, true)));
        assert_eq!(past.quietest(300_000, Present { failed: 0.5, p95_ms: 9.0 }).map(|(number, _)| number), Some(2));
    }
}
