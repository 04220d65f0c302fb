//! One second in a dozen numbers, for the charts and the history.

use serde::Serialize;
use weir_meter::live::{Snapshot, Times};

use crate::reason::{self, Reason};

/// A second. Rates are per second since the snapshot before; 0 in the first second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Point {
    /// Milliseconds since 1970.
    pub at: u64,
    /// Requests.
    pub rps: f32,
    /// Requests that failed: [`ZoneAccount::failed`](weir_meter::live::ZoneAccount::failed).
    pub failed: f32,
    /// Requests that `limit_req` or `limit_conn` refused; `None` in a history that an older version kept.
    pub refused: Option<f32>,
    /// Of the failed requests, those that an origin failed, refused or answered 5xx; `None` as for `refused`.
    pub upstream: Option<f32>,
    /// Of the failed requests, those that got no answer of an origin in time; `None` as for `refused`.
    pub timeout: Option<f32>,
    /// Requests that were at fault, and clients that left; `None` as for `refused`.
    pub client: Option<f32>,
    /// Of the failed requests, those that weir failed itself; `None` as for `refused`.
    pub weir: Option<f32>,
    /// Request time in milliseconds, over all zones and the snapshot's `recent_ms`; `None` without requests.
    pub p50: Option<f32>,
    /// As `p50`.
    pub p95: Option<f32>,
    /// As `p50`.
    pub p99: Option<f32>,
    /// Client connections with a current request.
    pub active: f32,
    /// Client connections without a request.
    pub idle: f32,
    /// Bytes from clients.
    pub received: f32,
    /// Bytes to clients.
    pub sent: f32,
    /// Share of the machine's CPU time in use, without stolen time.
    pub cpu: f32,
    /// Share of stolen time.
    pub steal: f32,
}

/// Totals of a snapshot that are needed for a point.
struct Totals {
    requests: u64,
    failed: u64,
    refused: u64,
    received: u64,
    sent: u64,
}

impl Totals {
    fn of(snapshot: &Snapshot) -> Totals {
        let zones = snapshot.http.server_zones.values();
        let sum = |pick: fn(&weir_meter::live::ServerZone) -> u64| zones.clone().map(pick).fold(0, u64::wrapping_add);
        Totals {
            requests: snapshot.http.requests.total,
            failed: failed(snapshot),
            refused: refused(snapshot),
            received: sum(|zone| zone.received),
            sent: sum(|zone| zone.sent),
        }
    }
}

/// Failed requests so far.
pub fn failed(snapshot: &Snapshot) -> u64 {
    snapshot.weir.server_zones.values().fold(0, |sum, zone| sum.saturating_add(zone.failed))
}

/// Requests that a policy refused, so far.
pub fn refused(snapshot: &Snapshot) -> u64 {
    snapshot.weir.server_zones.values().fold(0, |sum, zone| sum.saturating_add(zone.refused))
}

impl Point {
    /// The point for the time between two snapshots.
    pub fn between(before: Option<&Snapshot>, now: &Snapshot) -> Point {
        let host = &now.weir.host.cpu;
        let quantile = |share| quantile(now.weir.server_zones.values().map(|zone| &zone.times.recent), share);
        let mut point = Point {
            at: now.nginx.timestamp.0,
            p50: quantile(0.50),
            p95: quantile(0.95),
            p99: quantile(0.99),
            active: now.connections.active as f32,
            idle: now.connections.idle as f32,
            cpu: host.worked() as f32,
            steal: host.steal as f32,
            ..Point::default()
        };
        let Some(before) = before else { return point };
        let ms = now.nginx.timestamp.0.saturating_sub(before.nginx.timestamp.0);
        if ms == 0 {
            return point;
        }
        // A reset sets totals back to zero; the rate is then 0 and not a wrong value.
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f32 * 1000.0 / ms as f32;
        let (old, new) = (Totals::of(before), Totals::of(now));
        point.rps = rate(new.requests, old.requests);
        point.failed = rate(new.failed, old.failed);
        point.refused = Some(rate(new.refused, old.refused));
        let of = |reason| Some(rate(reason::grown(before, now, reason), 0));
        (point.upstream, point.timeout, point.client) = (of(Reason::Upstream), of(Reason::Timeout), of(Reason::Client));
        point.weir = of(Reason::Weir);
        point.received = rate(new.received, old.received);
        point.sent = rate(new.sent, old.sent);
        point
    }
}

/// The time in milliseconds within which this share of all zones' requests ended. Five points of each zone's
/// distribution are known; between them the distribution is taken as linear. For one zone the result is the zone's
/// own quantile.
fn quantile<'t>(zones: impl Iterator<Item = &'t Times> + Clone, share: f64) -> Option<f32> {
    let total: u64 = zones.clone().map(|times| times.count).sum();
    if total == 0 {
        return None;
    }
    let below = |us: f64| zones.clone().map(|times| times.count as f64 * share_below(times, us)).sum::<f64>();
    let wanted = total as f64 * share;
    let (mut low, mut high) = (0.0, zones.clone().map(|times| times.max_us).max()? as f64);
    // After forty halvings, an hour is below a microsecond.
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if below(middle) < wanted { low = middle } else { high = middle }
    }
    // Below a nanosecond, the result is 0.
    Some(if high < 0.001 { 0.0 } else { (high / 1000.0) as f32 })
}

/// The share of a zone's requests that took at most this long.
fn share_below(times: &Times, us: f64) -> f64 {
    let places = [(0, 0.0), (times.p50_us, 0.5), (times.p95_us, 0.95), (times.p99_us, 0.99), (times.max_us, 1.0)];
    let mut share = 0.0;
    for pair in places.windows(2) {
        let [(from, from_share), (to, to_share)] = [pair[0], pair[1]];
        if us >= to as f64 {
            share = to_share;
        } else if us > from as f64 {
            return from_share + (to_share - from_share) * (us - from as f64) / (to - from) as f64;
        }
    }
    share
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn times(count: u64, p50_us: u64, p95_us: u64, p99_us: u64) -> Times {
        Times { count, p50_us, p95_us, p99_us, max_us: p99_us * 2, ..Times::default() }
    }

    #[test]
    fn one_zone_gives_its_own_quantiles() {
        let zone = times(1000, 2_000, 9_000, 30_000);
        for (share, ms) in [(0.5, 2.0), (0.95, 9.0), (0.99, 30.0)] {
            let got = quantile([&zone].into_iter(), share).unwrap();
            assert!((got - ms).abs() < 0.01, "{share}: {got}");
        }
        assert_eq!(quantile([].into_iter(), 0.5), None);
        assert_eq!(quantile([&Times::default()].into_iter(), 0.5), None);
    }

    #[test]
    fn a_busy_zone_outweighs_an_idle_one() {
        let (busy, slow) = (times(9_999, 2_000, 9_000, 30_000), times(1, 900_000, 900_000, 900_000));
        let got = quantile([&busy, &slow].into_iter(), 0.5).unwrap();
        assert!((got - 2.0).abs() < 0.01, "{got}");
        let even = times(9_999, 900_000, 900_000, 900_000);
        assert!(quantile([&busy, &even].into_iter(), 0.95).unwrap() > 100.0);
    }

    #[test]
    fn a_reset_gives_no_wild_rate() {
        let before = Snapshot::example();
        let mut now = before.clone();
        now.nginx.timestamp.0 += 1000;
        now.http.requests.total = 0;
        assert_eq!(Point::between(Some(&before), &now).rps, 0.0);
        now.http.requests.total = before.http.requests.total + 250;
        now.nginx.timestamp.0 += 1000;
        assert_eq!(Point::between(Some(&before), &now).rps, 125.0);
        assert_eq!(Point::between(Some(&now), &now).rps, 0.0);
    }
}
