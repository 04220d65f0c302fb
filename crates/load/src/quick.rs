//! A closed loop: so many connections, each asking again as soon as it is answered.
//!
//! Minimal on purpose, as wrk is: one GET to one URL. A closed loop slows down with
//! the server, so its latencies are those of these connections and not of users that
//! arrive whatever happens.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use weir_net::worker::{self, Remote};
use weir_net::{Instant, clock};

use crate::client::{self, Client};
use crate::report::{Failure, Report};
use crate::url::Url;

/// Connections of one run.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Threads of one run.
pub const THREADS_MAX: usize = 64;
/// The longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest wait for one answer.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Rest after a failed connection, so that a dead server is not hammered.
const FAILED_PAUSE: Duration = Duration::from_millis(10);

/// What to send, where, and when to stop.
#[derive(Clone, Debug)]
pub struct Quick {
    /// `http://host[:port]/path?query`.
    pub url: String,
    /// Connections, kept between 1 and [`CONNECTIONS_MAX`].
    pub connections: usize,
    /// Threads, kept between 1 and the connections and [`THREADS_MAX`].
    pub threads: usize,
    /// When no further request is sent; at most [`DURATION_MAX`]. Requests under way
    /// are waited for.
    pub duration: Duration,
    /// No further request after so many.
    pub requests_max: Option<u64>,
    /// How long a connect, and how long an answer, may take; at most [`TIMEOUT_MAX`].
    pub timeout: Duration,
}

impl Default for Quick {
    fn default() -> Quick {
        Quick {
            url: String::new(),
            connections: 64,
            threads: 1,
            duration: Duration::from_secs(5),
            requests_max: None,
            timeout: Duration::from_secs(10),
        }
    }
}

/// Runs it. The error says why it could not begin; what fails later is in the report.
pub fn run(quick: &Quick) -> Result<Report, String> {
    let url = Url::parse(&quick.url)?;
    let address = url.resolve()?;
    let connections = quick.connections.clamp(1, CONNECTIONS_MAX);
    let threads = quick.threads.clamp(1, THREADS_MAX.min(connections));
    let begin = clock::precise();
    let plan = Plan {
        client: client::Target {
            address: address.into(),
            request: client::request(&url).into(),
            timeout: quick.timeout.min(TIMEOUT_MAX),
        },
        begin,
        end: begin + quick.duration.min(DURATION_MAX),
    };
    let (give, reports) = mpsc::channel();
    let mut running = Vec::new();
    for index in 0..threads {
        let share = Share {
            connections: nth_share(connections as u64, index, threads) as usize,
            requests: quick.requests_max.map_or(u64::MAX, |max| nth_share(max, index, threads)),
        };
        let (plan, give, report) = (plan.clone(), give.clone(), Report::new()?);
        match worker::start(&format!("load {index}"), None, move || plan.start(&share, report, give)) {
            Ok(thread) => running.push(thread),
            Err(error) => {
                running.iter().for_each(Remote::stop);
                return Err(format!("a thread for the load could not be started: {error}"));
            }
        }
    }
    drop(give);
    let mut sum = Report::new()?;
    for report in reports {
        sum.merge(&report);
    }
    for thread in running {
        thread.stop();
        thread.join();
    }
    Ok(sum)
}

/// `total` dealt out to `among`: what the `index`th gets.
fn nth_share(total: u64, index: usize, among: usize) -> u64 {
    let (index, among) = (index as u64, among.max(1) as u64);
    total / among + u64::from(index < total % among)
}

#[derive(Clone)]
struct Plan {
    client: client::Target,
    begin: Instant,
    end: Instant,
}

/// One thread's part of the load.
struct Share {
    connections: usize,
    requests: u64,
}

/// What the connections of one thread write into; the last to go sends it.
struct Book {
    report: Report,
    begin: Instant,
    /// Requests that may still be begun.
    left: u64,
    give: mpsc::Sender<Report>,
}

impl Plan {
    fn start(self, share: &Share, report: Report, give: mpsc::Sender<Report>) {
        let book = Book { report, begin: self.begin, left: share.requests, give };
        let book = Rc::new(RefCell::new(book));
        let plan = Rc::new(self);
        for _ in 0..share.connections {
            worker::spawn(connection(plan.clone(), book.clone()));
        }
    }
}

impl Drop for Book {
    /// On its thread, when the last connection is done.
    fn drop(&mut self) {
        self.report.elapsed = clock::precise().saturating_duration_since(self.begin);
        self.report.cpu = weir_meter::host::own_cpu().unwrap_or_default();
        self.report.threads = 1;
        // Nobody listens only if the run was given up.
        let _ = self.give.send(self.report.clone());
    }
}

async fn connection(plan: Rc<Plan>, book: Rc<RefCell<Book>>) {
    let mut client = Client::new(&plan.client);
    while begin_one(&plan, &book) {
        let outcome = client.exchange().await;
        let failed = settle(&mut book.borrow_mut().report, &outcome);
        if failed {
            weir_net::timer::sleep(FAILED_PAUSE).await;
        }
    }
}

/// Whether one more request may be sent; it is counted off.
fn begin_one(plan: &Plan, book: &RefCell<Book>) -> bool {
    let mut book = book.borrow_mut();
    if book.left == 0 || clock::now() >= plan.end {
        return false;
    }
    book.left -= 1;
    true
}

/// Books an outcome; true if the connection failed.
fn settle(report: &mut Report, outcome: &Result<client::Answer, Failure>) -> bool {
    match outcome {
        Ok(answer) => {
            report.requests += 1;
            report.received_bytes += answer.bytes;
            report.latency.record(answer.latency);
            if answer.status >= 400 {
                report.fail(Failure::Status(answer.status));
            }
            false
        }
        Err(failure) => {
            report.fail(*failure);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, among) in [(64, 3), (1, 4), (0, 2), (7, 7), (u64::MAX, 3)] {
            let sum: u64 = (0..among).map(|index| nth_share(total, index, among)).sum();
            assert_eq!(sum, total, "{total} among {among}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_loaded_begins_nothing() {
        let quick = Quick { url: "https://localhost/".to_owned(), ..Quick::default() };
        assert!(run(&quick).is_err_and(|why| why.contains("only http://")));
    }
}
