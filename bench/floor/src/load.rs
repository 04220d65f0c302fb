//! An open-loop pacer: requests leave at their intended instants whether or not earlier ones
//! came back, and latency counts from the intended instant, so a stall is not hidden.
//!
//! Not a throughput tool: wrk does that. Prints one JSON line.

use crate::flags::Flags;
use crate::http;
use crate::sys::{self, Event, Moved, Poll};
use rustix::fd::OwnedFd;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

const SCRATCH: usize = 256 * 1024;
/// After the last intended instant, answers are awaited this long.
const GRACE: Duration = Duration::from_secs(2);
/// Requests that found every connection busy; more than this and the run is called failed.
const BACKLOG_MAX: usize = 100_000;

/// Runs for `--seconds` at `--rate` per second; with `--spread N`, the path is followed by 0 to N-1 in turns. With `--body N`, each
/// request is a POST with N bytes.
pub fn run(flags: &Flags) -> io::Result<()> {
    sys::precise_waits()?;
    let rate: u32 = flags.need("rate")?;
    let seconds: u32 = flags.need("seconds")?;
    let target = flags.address("target")?;
    let mut load = Load {
        poll: Poll::new()?,
        requests: requests(
            &flags.need::<String>("path")?,
            &target.to_string(),
            count(flags, "spread")?,
            count(flags, "body")?,
        ),
        sent: 0,
        conns: Vec::new(),
        idle: VecDeque::new(),
        due: VecDeque::new(),
        latencies: Vec::new(),
        lags: Vec::new(),
        errors: 0,
    };
    for at in 0..flags.need("conns")? {
        let fd = sys::connect(target)?;
        load.poll.add(&fd, at, true)?;
        load.conns.push(Conn { fd, intended: None, missing: None, head: Vec::new() });
    }
    load.await_connected()?;
    load.pace(u64::from(rate) * u64::from(seconds), rate)?;
    load.print();
    Ok(())
}

/// A number that may be left out.
fn count(flags: &Flags, name: &str) -> io::Result<Option<u32>> {
    flags.text(name).map(|_| flags.need(name)).transpose()
}

/// What is asked, in turns.
fn requests(path: &str, host: &str, spread: Option<u32>, body: Option<u32>) -> Vec<Vec<u8>> {
    let one = |path: &str| match body {
        None => format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes(),
        Some(length) => {
            let body = "b".repeat(length as usize);
            format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
        }
    };
    match spread {
        None | Some(0) => vec![one(path)],
        Some(count) => (0..count).map(|n| one(&format!("{path}{n}"))).collect(),
    }
}

struct Conn {
    fd: OwnedFd,
    /// When its request ought to have left; none while idle.
    intended: Option<Instant>,
    /// Bytes of the answer still to come; none until its head is complete.
    missing: Option<u64>,
    head: Vec<u8>,
}

struct Load {
    poll: Poll,
    requests: Vec<Vec<u8>>,
    sent: usize,
    conns: Vec<Conn>,
    idle: VecDeque<usize>,
    /// Intended instants that found no idle connection.
    due: VecDeque<Instant>,
    latencies: Vec<u64>,
    /// How late requests left the generator, whoever was to blame.
    lags: Vec<u64>,
    errors: u64,
}

impl Load {
    fn await_connected(&mut self) -> io::Result<()> {
        let mut events = Vec::new();
        while self.idle.len() < self.conns.len() {
            self.poll.wait(&mut events, Some(GRACE))?;
            if events.is_empty() || events.iter().any(|event| event.ended) {
                return Err(io::Error::other("cannot connect"));
            }
            self.idle.extend(events.iter().filter(|event| event.writable).map(|event| event.token));
        }
        Ok(())
    }

    fn pace(&mut self, total: u64, rate: u32) -> io::Result<()> {
        let begun = Instant::now();
        let (mut planned, mut events, mut scratch) = (0, Vec::new(), vec![0; SCRATCH]);
        let instant = |n: u64| begun + Duration::from_nanos(n * 1_000_000_000 / u64::from(rate));
        let deadline = instant(total) + GRACE;
        while (self.latencies.len() as u64) + self.errors < total {
            let now = Instant::now();
            while planned < total && instant(planned) <= now {
                self.due.push_back(instant(planned));
                planned += 1;
            }
            self.send_due(now)?;
            if now >= deadline || self.due.len() > BACKLOG_MAX {
                self.errors += total - self.latencies.len() as u64 - self.errors;
                break;
            }
            let next = if planned < total { instant(planned) } else { deadline };
            self.poll.wait(&mut events, Some(next.saturating_duration_since(Instant::now())))?;
            for event in &events {
                self.event(event, &mut scratch)?;
            }
        }
        Ok(())
    }

    fn send_due(&mut self, now: Instant) -> io::Result<()> {
        while let (Some(&intended), Some(&at)) = (self.due.front(), self.idle.front()) {
            self.due.pop_front();
            self.idle.pop_front();
            self.lags.push(micros(now.saturating_duration_since(intended)));
            let conn = self.conns.get_mut(at).ok_or_else(|| io::Error::other("no such connection"))?;
            conn.intended = Some(intended);
            let turn = self.sent % self.requests.len();
            let request = self.requests.get(turn).map_or(&[][..], Vec::as_slice);
            self.sent += 1;
            match sys::write(&conn.fd, request, &[]) {
                Moved::Bytes(n) if n == request.len() => {}
                _ => return Err(io::Error::other("the target does not take a request")),
            }
        }
        Ok(())
    }

    fn event(&mut self, event: &Event, scratch: &mut [u8]) -> io::Result<()> {
        let Some(conn) = self.conns.get_mut(event.token) else {
            return Ok(());
        };
        if !event.readable {
            return Ok(());
        }
        loop {
            let n = match sys::read(&conn.fd, scratch) {
                Moved::Bytes(n) => n,
                Moved::Blocked => break,
                Moved::Ended => return Err(io::Error::other("the target closed a connection")),
            };
            let bytes = scratch.get(..n).unwrap_or_default();
            if let Some(missing) = &mut conn.missing {
                *missing = missing.saturating_sub(n as u64);
            } else {
                conn.head.extend_from_slice(bytes);
                if let Some((status, len)) = http::answer_len(&conn.head) {
                    self.errors += u64::from(status != 200);
                    conn.missing = Some(len.saturating_sub(conn.head.len() as u64));
                }
            }
            if conn.missing == Some(0)
                && let Some(intended) = conn.intended.take()
            {
                conn.missing = None;
                conn.head.clear();
                self.latencies.push(micros(intended.elapsed()));
                self.idle.push_back(event.token);
            }
            if n < scratch.len() {
                break;
            }
        }
        Ok(())
    }

    fn print(&mut self) {
        self.latencies.sort_unstable();
        self.lags.sort_unstable();
        println!(
            r#"{{"requests": {}, "errors": {}, "p50_us": {}, "p99_us": {}, "p999_us": {}, "max_us": {}, "lag_p50_us": {}, "lag_p999_us": {}}}"#,
            self.latencies.len(),
            self.errors,
            quantile(&self.latencies, 0.5),
            quantile(&self.latencies, 0.99),
            quantile(&self.latencies, 0.999),
            quantile(&self.latencies, 1.0),
            quantile(&self.lags, 0.5),
            quantile(&self.lags, 0.999),
        );
    }
}

fn micros(d: Duration) -> u64 {
    u64::try_from(d.as_micros()).unwrap_or(u64::MAX)
}

/// The nearest-rank quantile of sorted values; 0 of none.
fn quantile(sorted: &[u64], q: f64) -> u64 {
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{quantile, requests};

    #[test]
    fn a_spread_numbers_the_paths() {
        assert_eq!(requests("/a", "h", None, None).len(), 1);
        let spread = requests("/a?n=", "h", Some(2), None);
        assert_eq!(spread[1], b"GET /a?n=1 HTTP/1.1\r\nHost: h\r\n\r\n");
    }

    #[test]
    fn a_body_makes_a_post() {
        assert_eq!(
            requests("/a", "h", None, Some(2))[0],
            b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nbb"
        );
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let values: Vec<u64> = (1..=1000).collect();
        assert_eq!([0.5, 0.99, 0.999, 1.0].map(|q| quantile(&values, q)), [500, 990, 999, 1000]);
        assert_eq!(quantile(&[], 0.5), 0);
    }
}
