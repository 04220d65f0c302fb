//! The results of a load run: counts, errors by name, latencies, and its own CPU cost.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use weir_meter::Step;

use crate::client;
use crate::record::Hdr;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestFailure {
    /// No connection: refused, unreachable, or this machine has no free port or descriptor.
    Connect,
    /// No connection within the time limit.
    ConnectTimeout,
    /// The connection was reset.
    Reset,
    /// The connection was closed before the answer was complete.
    Closed,
    /// No complete answer within the time limit.
    Timeout,
    /// The answer is not HTTP.
    Invalid,
    /// A complete answer with this status, 400 or more.
    Status(u16),
}

impl RequestFailure {
    /// The failure for an error of the client.
    pub(crate) fn of(error: &client::Error) -> RequestFailure {
        let is_late = error.name == "ETIMEDOUT";
        match error.step {
            Step::Resolve | Step::Connect | Step::TlsOrigin if is_late => RequestFailure::ConnectTimeout,
            Step::Resolve | Step::Connect | Step::TlsOrigin => RequestFailure::Connect,
            _ if is_late => RequestFailure::Timeout,
            _ if error.name.starts_with("HPE_") || error.name.starts_with("ERR_HTTP2_") => RequestFailure::Invalid,
            _ if error.is_end => RequestFailure::Closed,
            _ => RequestFailure::Reset,
        }
    }
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestFailure::Connect => f.write_str("connect"),
            RequestFailure::ConnectTimeout => f.write_str("connect timeout"),
            RequestFailure::Reset => f.write_str("reset"),
            RequestFailure::Closed => f.write_str("closed early"),
            RequestFailure::Timeout => f.write_str("timeout"),
            RequestFailure::Invalid => f.write_str("invalid response"),
            RequestFailure::Status(status) => write!(f, "status {status}"),
        }
    }
}

/// The results of a load run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Complete answers, whatever their status.
    pub requests: u64,
    /// Failures by kind.
    pub failures: BTreeMap<RequestFailure, u64>,
    /// The same failures by step and by Node's name.
    pub errors_at: BTreeMap<(Step, Cow<'static, str>), u64>,
    /// Times that a request was sent again because the server had not begun with it (HTTP/2, RFC 9113 §8.7).
    pub resent: u64,
    /// Complete answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Bytes received, heads included.
    pub received_bytes: u64,
    /// Latencies of the complete answers from the intended start of the request. In a closed loop that is the actual
    /// start, including a connect before it.
    pub response: Hdr,
    /// Latencies of the complete answers from the send of the request.
    pub service: Hdr,
    /// Times of the connects, with the look-up of the name and the TLS handshake.
    pub connect: Hdr,
    /// Lateness of requests against the schedule of a fixed rate; empty in a closed loop.
    pub lag: Hdr,
    /// Requests of a fixed rate that began more than [`crate::quick::LATE_AFTER`] late.
    pub late: u64,
    /// Requests of a fixed rate that were due before the end and never sent.
    pub dropped: u64,
    /// From the first connect to the last answer.
    pub elapsed: Duration,
    /// CPU time of the load's own threads.
    pub cpu: Duration,
    /// Number of these threads.
    pub threads: usize,
    /// How busy each thread was, 0 to 1 of a core.
    pub busy: Vec<f64>,
}

impl Report {
    pub(crate) fn fail(&mut self, failure: RequestFailure) {
        *self.failures.entry(failure).or_default() += 1;
    }

    /// Adds another thread's report, except what the recorders hold: latencies and dropped requests.
    pub(crate) fn merge(&mut self, other: &Report) {
        self.requests += other.requests;
        self.resent += other.resent;
        for (failure, count) in &other.failures {
            *self.failures.entry(*failure).or_default() += count;
        }
        for (error, count) in &other.errors_at {
            *self.errors_at.entry(error.clone()).or_default() += count;
        }
        self.connect.merge(&other.connect);
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        self.received_bytes += other.received_bytes;
        self.late += other.late;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.cpu += other.cpu;
        self.threads += other.threads;
        self.busy.extend(&other.busy);
    }

    /// Number of all failures.
    pub fn errors(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Complete answers per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How busy the load's own threads were, from 0 to 1. Near 1, the figures show the limit of the load generator
    /// and not of the target.
    pub fn saturation(&self) -> f64 {
        let available = self.elapsed.as_secs_f64() * self.threads as f64;
        self.cpu.as_secs_f64() / available.max(f64::MIN_POSITIVE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(requests: u64, failures: &[RequestFailure]) -> Report {
        let mut report = Report { requests, threads: 1, ..Report::default() };
        failures.iter().for_each(|failure| report.fail(*failure));
        report
    }

    #[test]
    fn an_empty_report_is_zero_everywhere() {
        let none = report(0, &[]);
        assert_eq!((none.errors(), none.response.count()), (0, 0));
        assert_eq!(none.rate(), 0.0);
    }

    #[test]
    fn threads_add_up() {
        let mut sum = report(3, &[RequestFailure::Reset, RequestFailure::Status(503)]);
        sum.elapsed = Duration::from_secs(2);
        let mut other = report(1, &[RequestFailure::Status(503)]);
        (other.elapsed, other.cpu, other.busy) = (Duration::from_secs(1), Duration::from_secs(1), vec![1.0]);
        sum.merge(&other);
        assert_eq!((sum.requests, sum.errors(), sum.threads), (4, 3, 2));
        assert_eq!(sum.failures.get(&RequestFailure::Status(503)), Some(&2));
        assert_eq!((sum.rate(), sum.saturation(), sum.busy), (2.0, 0.25, vec![1.0]));
    }
}
