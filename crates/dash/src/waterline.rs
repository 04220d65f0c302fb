//! Each limit with its use, its highest use, and the time left until it is reached.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;
use weir_meter::live::{Limit, Snapshot};

use crate::words;

// The table of thresholds. The verdict, the page and `weir top` go by the level that follows from it.
/// A limit counts as near if at least this share of it is in use.
pub const NEAR: f64 = 0.80;
/// A limit counts as reached from this share on.
const LIMITED: f64 = 0.95;
/// A rising limit counts as near if it will be reached within this many seconds,
const SOON_S: f64 = 120.0;
/// and at least this share of it is in use. Below this share, the page tells no time: a table that fills from nearly
/// nothing is no trouble yet.
const SOON_FROM: f64 = 0.25;
/// CPU time is judged by the mean of this many seconds,
const CPU_SECONDS: usize = 10;
/// and counts as near or reached only if no second of them used less than this share: a burst is over before somebody
/// can act.
const LASTING: f64 = 0.50;
/// The CPUs of the machine are reached only if tasks waited for one during this share of the last ten seconds (PSI). A
/// program that uses all of the time that nobody else wants delays no request.
const WAITING: f64 = 0.10;

/// How near a limit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Nearness {
    /// Far away, or a limit that may be full.
    #[default]
    Fine,
    /// Near, or reached soon.
    Near,
    /// Reached, or nearly reached.
    Full,
}

/// Seconds until a limit is reached, if that is soon.
fn soon(left: Option<f64>) -> Option<f64> {
    left.filter(|left| *left <= SOON_S)
}

/// The state of a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Waterline {
    /// As in [`Limit::kind`].
    pub kind: String,
    /// As in [`Limit::of`].
    pub of: String,
    /// As in [`Limit::unit`].
    pub unit: String,
    /// In use; of CPU time, the mean of the last ten seconds.
    pub used: f64,
    /// The limit.
    pub limit: f64,
    /// Highest use since the start or a reset.
    pub max: f64,
    /// How often the limit was hit.
    pub hits: u64,
    /// The setting of the limit.
    pub set_by: String,
    /// `used / limit`.
    pub ratio: f64,
    /// How near it is.
    pub level: Nearness,
    /// The trend of the use.
    pub trend: Trend,
    /// Growth per second, if the use rises.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// Seconds until the limit is reached at this growth, if the use rises and a quarter of the limit is in use. `None`
    /// for use per second (CPU time, a link): it grows with the load, and ends with the load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta_s: Option<f64>,
}

impl Waterline {
    /// Seconds until the limit is reached, if that is soon.
    pub fn soon(&self) -> Option<f64> {
        soon(self.eta_s)
    }
}

/// The trend of a limit's use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// Not observed for long enough.
    #[default]
    Unknown,
    /// Not rising, or so slowly that the limit is more than a day away.
    Flat,
    /// It rises towards the limit.
    Rising,
}

/// Number of uses kept for one limit: ten minutes.
const USES_MAX: usize = 600;
/// Windows in which to look for a trend, in seconds; the first one with a trend counts: a burst, then a leak.
const WINDOWS: [usize; 2] = [20, USES_MAX];
/// With fewer uses there is no trend.
const USES_MIN: usize = 6;
/// How well a straight line must fit the uses: the square of the correlation.
const FIT_MIN: f64 = 0.7;
/// The least growth within a window that counts as a trend, as a share of the limit.
const GROWTH_MIN: f64 = 0.01;
/// A limit that is further away than this does not count as rising.
const ETA_MAX: f64 = 86_400.0;

/// The past uses, by limit.
#[derive(Default)]
pub struct Trends(HashMap<(String, String), VecDeque<(f64, f64)>>);

impl Trends {
    /// The waterlines of a snapshot, in its order. Limits that no longer exist are forgotten.
    pub fn observe(&mut self, snapshot: &Snapshot) -> Vec<Waterline> {
        let at = snapshot.nginx.timestamp.0 as f64 / 1000.0;
        let waits = snapshot.weir.host.psi_cpu.is_none_or(|share| share >= WAITING);
        let mut kept = HashMap::with_capacity(snapshot.weir.limits.len());
        let mut lines = Vec::with_capacity(snapshot.weir.limits.len());
        for limit in snapshot.weir.limits.iter().filter(|limit| limit.limit > 0.0) {
            let key = (limit.kind.clone(), limit.of.clone());
            let mut uses = self.0.remove(&key).unwrap_or_default();
            if uses.len() >= USES_MAX {
                uses.pop_front();
            }
            uses.push_back((at, limit.used));
            lines.push(waterline(limit, &uses, waits));
            kept.insert(key, uses);
        }
        self.0 = kept;
        lines
    }
}

/// `waits`: tasks wait for a CPU.
fn waterline(limit: &Limit, uses: &VecDeque<(f64, f64)>, waits: bool) -> Waterline {
    let growth = WINDOWS.iter().find_map(|&window| growth(uses, window, limit.limit));
    let eta = growth.map(|growth| (limit.limit - limit.used).max(0.0) / growth).filter(|eta| *eta <= ETA_MAX);
    let is_cpu = limit.unit == "cores";
    let newest = || uses.iter().rev().take(CPU_SECONDS).map(|(_, used)| *used);
    let used = if is_cpu { newest().sum::<f64>() / newest().count().max(1) as f64 } else { limit.used };
    let lasts = !is_cpu || (uses.len() >= CPU_SECONDS && newest().all(|used| used >= LASTING * limit.limit));
    let ratio = used / limit.limit;
    let left = eta.filter(|_| ratio >= SOON_FROM && !is_cpu && limit.kind != "tx_link");
    let may_be_reached = limit.kind != "machine_cpu" || waits;
    let level = match ratio {
        _ if !lasts || !words::kind(&limit.kind).counts => Nearness::Fine,
        ratio if ratio >= LIMITED && may_be_reached => Nearness::Full,
        ratio if ratio >= NEAR || soon(left).is_some() => Nearness::Near,
        _ => Nearness::Fine,
    };
    let trend = match eta {
        Some(_) => Trend::Rising,
        None if uses.len() < USES_MIN => Trend::Unknown,
        None => Trend::Flat,
    };
    Waterline {
        kind: limit.kind.clone(),
        of: limit.of.clone(),
        unit: limit.unit.clone(),
        used,
        limit: limit.limit,
        max: limit.max.max(limit.used),
        hits: limit.hits,
        set_by: limit.set_by.clone(),
        ratio,
        level,
        trend,
        growth: eta.and(growth),
        eta_s: left,
    }
}

/// Growth per second over the newest uses, by least squares; `None` if no line fits or the use does not rise.
fn growth(uses: &VecDeque<(f64, f64)>, window: usize, limit: f64) -> Option<f64> {
    let count = uses.len().min(window);
    if count < USES_MIN {
        return None;
    }
    let newest = || uses.iter().skip(uses.len() - count);
    let n = count as f64;
    let (mean_at, mean_use) = newest().fold((0.0, 0.0), |(at, used), one| (at + one.0 / n, used + one.1 / n));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (at, used) in newest() {
        let (x, y) = (at - mean_at, used - mean_use);
        (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
    }
    if xx <= 0.0 || yy <= 0.0 {
        return None;
    }
    let (slope, fit) = (xy / xx, xy * xy / (xx * yy));
    let span = uses.back()?.0 - newest().next()?.0;
    (slope > 0.0 && fit >= FIT_MIN && slope * span >= limit * GROWTH_MIN).then_some(slope)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The last waterline after these uses, one a second.
    fn after(uses: impl IntoIterator<Item = f64>, limit: f64) -> Waterline {
        let mut trends = Trends::default();
        let mut snapshot = Snapshot::default();
        let mut last = Waterline::default();
        for used in uses {
            snapshot.nginx.timestamp.0 += 1000;
            snapshot.weir.limits = vec![Limit { kind: "fds".into(), used, limit, max: 3.0, ..Limit::default() }];
            last = trends.observe(&snapshot).remove(0);
        }
        last
    }

    #[test]
    fn what_rises_has_a_time_left() {
        let line = after((0..30).map(|second| f64::from(second) * 470.5), 28_232.0);
        assert_eq!(line.trend, Trend::Rising);
        assert!((line.eta_s.unwrap() - 31.0).abs() < 0.1, "{line:?}");
        assert!((line.growth.unwrap() - 470.5).abs() < 0.01);
        // A leak of one file in five seconds, observed over ten minutes.
        let line = after((0..600).map(|second| 200.0 + f64::from(second / 5)), 1024.0);
        assert_eq!((line.trend, line.level), (Trend::Rising, Nearness::Fine));
        assert!((line.eta_s.unwrap() - 3525.0).abs() < 60.0, "{line:?}");
        // Below a quarter, a time says nothing yet.
        let line = after((0..30).map(f64::from), 1000.0);
        assert_eq!((line.trend, line.eta_s, line.level), (Trend::Rising, None, Nearness::Fine));
        assert!(line.growth.is_some());
    }

    #[test]
    fn what_does_not_rise_says_so() {
        let saw = |second: i32| f64::from(second % 7) * 30.0;
        for uses in [
            (0..100).map(|_| 400.0).collect::<Vec<_>>(),
            (0..100).map(|second| 900.0 - f64::from(second)).collect(),
            (0..100).map(saw).collect(),
            (0..30).map(|second| 400.0 + f64::from(second) * 0.01).collect(),
        ] {
            let line = after(uses.clone(), 1000.0);
            assert_eq!((line.trend, line.eta_s), (Trend::Flat, None), "{uses:?}");
        }
        assert_eq!(after([1.0, 2.0, 3.0], 10.0).trend, Trend::Unknown);
    }

    #[test]
    fn limits_that_go_are_forgotten() {
        let mut trends = Trends::default();
        let mut snapshot = Snapshot::example();
        assert_eq!(trends.observe(&snapshot).len(), snapshot.weir.limits.len());
        snapshot.weir.limits.truncate(1);
        snapshot.weir.limits[0].limit = 0.0;
        assert!(trends.observe(&snapshot).is_empty());
        assert!(trends.0.is_empty());
    }
}
