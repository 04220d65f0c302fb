//! What a load run found: counts, errors by name, latencies, and its own cost.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use weir_meter::Step;

use crate::client;

/// Why a request did not end as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No connection: refused, unreachable, or no port or descriptor left here.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the answer was complete.
    Closed,
    /// No complete answer in time.
    Timeout,
    /// The answer is not HTTP/1.
    Invalid,
    /// A complete answer with this status, 400 or more.
    Status(u16),
}

impl Failure {
    /// What an error of the client is called here.
    pub(crate) fn of(error: &client::Error) -> Failure {
        let is_late = error.name == "ETIMEDOUT";
        match error.step {
            Step::Resolve | Step::Connect | Step::TlsOrigin if is_late => Failure::ConnectTimeout,
            Step::Resolve | Step::Connect | Step::TlsOrigin => Failure::Connect,
            _ if is_late => Failure::Timeout,
            _ if error.name.starts_with("HPE_") => Failure::Invalid,
            _ if error.is_end => Failure::Closed,
            _ => Failure::Reset,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect => f.write_str("connect"),
            Failure::ConnectTimeout => f.write_str("connect timeout"),
            Failure::Reset => f.write_str("reset"),
            Failure::Closed => f.write_str("closed early"),
            Failure::Timeout => f.write_str("timeout"),
            Failure::Invalid => f.write_str("invalid response"),
            Failure::Status(status) => write!(f, "status {status}"),
        }
    }
}

/// Latencies, each to the last byte of an answer read.
///
/// Three significant digits from 1 µs to 10 minutes.
#[derive(Clone, Debug)]
pub struct Latency(Histogram<u64>);

const NS_MIN: u64 = 1_000;
const NS_MAX: u64 = 600_000_000_000;
const DIGITS: u8 = 3;

impl Latency {
    /// No latency yet; fails only if the histogram's bounds were nonsense.
    pub(crate) fn new() -> Result<Latency, String> {
        let histogram = Histogram::new_with_bounds(NS_MIN, NS_MAX, DIGITS);
        histogram.map(Latency).map_err(|error| error.to_string())
    }

    /// Records one; beyond the bounds it counts as the bound.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn merge(&mut self, other: &Latency) {
        // The bounds are the same: nothing can be out of range.
        let _ = self.0.add(&other.0);
    }

    /// How many were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency `percent` of the requests did not exceed; zero if there were none.
    pub fn percentile(&self, percent: f64) -> Duration {
        if self.0.is_empty() {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.0.value_at_percentile(percent).min(self.0.max()))
    }

    /// The mean; zero if there were none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.0.mean() as u64)
    }

    /// The longest; zero if there were none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

/// What a load run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Complete answers, whatever their status.
    pub requests: u64,
    /// What went wrong, by name.
    pub failures: BTreeMap<Failure, u64>,
    /// The same failures by where they happened and by what Node calls them.
    pub errors_at: BTreeMap<(Step, Cow<'static, str>), u64>,
    /// Complete answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received, heads included.
    pub received_bytes: u64,
    /// Response time of the complete answers: from the instant the request was meant to begin. In a closed loop
    /// that is when it did begin.
    pub latency: Latency,
    /// Service time of the complete answers: from when the request was really begun. The same in a closed loop.
    pub service: Latency,
    /// How late requests were begun, against the schedule of a fixed rate; empty in a closed loop.
    pub lag: Latency,
    /// Requests of a fixed rate begun more than [`crate::quick::LATE_AFTER`] late.
    pub late: u64,
    /// Requests of a fixed rate that were due before the end and never sent.
    pub dropped: u64,
    /// From the first connect to the last answer.
    pub elapsed: Duration,
    /// CPU time of the load's own threads.
    pub cpu: Duration,
    /// How many threads that was.
    pub threads: usize,
}

impl Report {
    /// Nothing yet.
    pub(crate) fn new() -> Result<Report, String> {
        Ok(Report {
            requests: 0,
            failures: BTreeMap::new(),
            errors_at: BTreeMap::new(),
            statuses: BTreeMap::new(),
            received_bytes: 0,
            latency: Latency::new()?,
            service: Latency::new()?,
            lag: Latency::new()?,
            late: 0,
            dropped: 0,
            elapsed: Duration::ZERO,
            cpu: Duration::ZERO,
            threads: 0,
        })
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    /// Adds another thread's share.
    pub(crate) fn merge(&mut self, other: &Report) {
        self.requests += other.requests;
        for (failure, count) in &other.failures {
            *self.failures.entry(*failure).or_default() += count;
        }
        for (error, count) in &other.errors_at {
            *self.errors_at.entry(error.clone()).or_default() += count;
        }
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.received_bytes += other.received_bytes;
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.late += other.late;
        self.dropped += other.dropped;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.cpu += other.cpu;
        self.threads += other.threads;
    }

    /// All failures together.
    pub fn errors(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Complete answers per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How busy the load's own threads were, from 0 to 1. Near 1 the figures tell of
    /// the load and not of what was loaded.
    pub fn saturation(&self) -> f64 {
        let available = self.elapsed.as_secs_f64() * self.threads as f64;
        self.cpu.as_secs_f64() / available.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn report(latencies_ms: &[u64], failures: &[Failure]) -> Report {
        let mut report = Report::new().unwrap();
        for &ms in latencies_ms {
            report.requests += 1;
            report.latency.record(Duration::from_millis(ms));
        }
        for &failure in failures {
            report.fail(failure);
        }
        report.threads = 1;
        report
    }

    fn ms(latency: Duration) -> u128 {
        latency.as_millis()
    }

    #[test]
    fn an_empty_report_is_zero_everywhere() {
        let none = report(&[], &[]);
        assert_eq!((none.errors(), none.latency.count()), (0, 0));
        assert_eq!((none.latency.percentile(99.0), none.latency.max()), Default::default());
        assert_eq!(none.rate(), 0.0);
    }

    #[test]
    fn threads_add_up() {
        let mut sum = report(&[1, 2, 3], &[Failure::Reset, Failure::Status(503)]);
        sum.elapsed = Duration::from_secs(2);
        let mut other = report(&[10], &[Failure::Status(503)]);
        (other.elapsed, other.cpu) = (Duration::from_secs(1), Duration::from_secs(1));
        sum.merge(&other);
        assert_eq!((sum.requests, sum.errors(), sum.threads), (4, 3, 2));
        assert_eq!(sum.failures.get(&Failure::Status(503)), Some(&2));
        assert_eq!((ms(sum.latency.percentile(50.0)), ms(sum.latency.max())), (2, 10));
        assert_eq!((sum.rate(), sum.saturation()), (2.0, 0.25));
    }

    #[test]
    fn what_is_out_of_bounds_counts_as_the_bound() {
        let mut latency = Latency::new().unwrap();
        latency.record(Duration::from_secs(3600));
        latency.record(Duration::ZERO);
        assert_eq!(latency.count(), 2);
        assert!(latency.max() >= Duration::from_secs(599));
    }
}
