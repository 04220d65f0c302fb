//! Sends one request to one URL repeatedly: `weir load URL`.
//!
//! There are two models. A closed loop, as in wrk: each connection sends its next request as soon as the answer has
//! arrived, so it slows down with the server. A fixed rate, an open model: each request has a due time that does not
//! depend on other requests, and its response time counts from the due time.
//!
//! It counts under the names of a script's requests, in the same recorders, for the same listener. So everything that
//! shows and stores a script's run shows and stores this run too.

mod connection;
mod plan;
mod schedule;

use std::sync::Arc;
use std::sync::mpsc;

use weir_net::worker::{self, Remote};
use weir_words::{Said, say};

pub use crate::client::line::STREAMS_MAX;
pub use crate::client::{Protocol, Tuning};
pub use connection::LATE_AFTER;
pub use plan::{CONNECTIONS_MAX, DURATION_MAX, QuickRun, RATE_MAX, Rate, STREAMS_TOTAL_MAX, THREADS_MAX, TIMEOUT_MAX};

use crate::client::{NOT_AGREED, NOT_SPOKEN};
use crate::plan::{Arrivals, Phase};
use crate::record::{Merger, Period};
use crate::report::Report;
use crate::run::{self, Channel, RunProgress, RunWatch};
use crate::selfcheck::THREAD_NAME;
use crate::texts;
use crate::worker::RunShared;
use connection::{Ears, ThreadShare};
use plan::QuickPlan;

/// Runs the load without a watcher. The error says why it could not begin; later failures are in the report.
pub fn run(quick: &QuickRun) -> Result<Report, Said> {
    watched(quick, Channel::new(), &mut Nobody).map(|(report, _)| report)
}

/// Runs the load and reports its progress to `watch`. Returns the report and all counts.
///
/// After a stop, it sends no more requests and waits for no answer. The error says why it could not begin.
pub fn watched(
    quick: &QuickRun,
    channel: Channel,
    watch: &mut dyn RunWatch,
) -> Result<(Report, run::RunOutcome), Said> {
    let plan = QuickPlan::of(quick)?;
    let shown = plan.url.shown();
    let protocol = quick.streams.map(|(protocol, _)| protocol);
    let connections = quick.connections.clamp(1, CONNECTIONS_MAX);
    let threads = quick.threads.clamp(1, THREADS_MAX.min(connections));
    let (give, reports) = mpsc::channel();
    let shared = Arc::new(RunShared { point_ms: channel.point_ms, ..RunShared::default() });
    let mut running = Threads(Vec::new());
    for index in 0..threads {
        let share = ThreadShare {
            connections: nth_share(connections as u64, index, threads) as usize,
            requests: quick.requests_max.map_or(u64::MAX, |max| nth_share(max, index, threads)),
            index,
            threads,
        };
        let (plan, shared) = (plan.clone(), shared.clone());
        let ears = Ears { give: give.clone(), events: channel.sender() };
        let thread =
            worker::start(&format!("{THREAD_NAME}{index}"), None, move || connection::begin(plan, share, shared, ears));
        running.0.push(thread.map_err(|error| say!(texts::LOAD_NO_THREAD, error.to_string()))?);
    }
    drop(give);
    let outcome = run::listen(&[phase(quick)], plan.begin, threads, &shared, &channel, watch)?;
    let mut sum = Report::default();
    // Each thread sends its share before it reports its end.
    reports.try_iter().for_each(|report| sum.merge(&report));
    if let Some(why) = unspoken(&shown, protocol, &sum) {
        return Err(why);
    }
    let own = outcome.merger.own();
    (sum.response, sum.service, sum.lag) = (own.response.clone(), own.service.clone(), own.lag.clone());
    sum.dropped = own.dropped;
    Ok((sum, outcome))
}

/// An error message if no request succeeded because the server does not support the protocol.
fn unspoken(url: &str, protocol: Option<Protocol>, report: &Report) -> Option<Said> {
    let met = |wanted: &str| report.errors_at.keys().any(|(_, name)| name == wanted);
    match protocol {
        _ if report.requests > 0 => None,
        Some(Protocol::Http3) if met(NOT_AGREED) => Some(say!(texts::NO_H3, url, texts::H3_NOT_CHOSEN)),
        Some(Protocol::Http2) if met(NOT_AGREED) => Some(say!(texts::NO_H2, url, texts::H2_NOT_CHOSEN)),
        Some(Protocol::Http2) if met(NOT_SPOKEN) => Some(say!(texts::NO_H2, url, texts::H2_NOT_SPOKEN)),
        _ => None,
    }
}

/// The threads; dropping it ends them.
struct Threads(Vec<Remote>);

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.iter().for_each(Remote::stop);
        self.0.iter().for_each(Remote::join);
    }
}

/// A watcher that ignores everything.
struct Nobody;

impl RunWatch for Nobody {
    fn phase_started(&mut self, _: usize, _: &Phase) {}
    fn phase_completed(&mut self, _: usize, _: &Phase) {}
    fn line(&mut self, _: &str) {}
    fn period(&mut self, _: &Period) {}
    fn late(&mut self, _: u64) {}
    fn progress(&mut self, _: &RunProgress, _: &Merger) {}
}

/// The run in the form of a script's phase, with the name of its model.
fn phase(quick: &QuickRun) -> Phase {
    let duration = quick.duration.min(DURATION_MAX);
    let (name, arrivals) = match quick.rate {
        None => ("closed loop", Arrivals::Pause),
        Some(Rate::Constant(rate)) => ("constant rate", Arrivals::Rate(rate)),
        Some(Rate::Poisson(rate)) => ("random rate", Arrivals::Poisson(rate)),
    };
    Phase { name: name.to_owned(), shown: format!("{}s", duration.as_secs_f64()), duration, arrivals, vusers_max: None }
}

/// The share of the `index`th when `total` is divided among `among`.
fn nth_share(total: u64, index: usize, among: usize) -> u64 {
    let (index, among) = (index as u64, among.max(1) as u64);
    total / among + u64::from(index < total % among)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, among) in [(64, 3), (1, 4), (0, 2), (7, 7), (u64::MAX, 3)] {
            let sum: u64 = (0..among).map(|index| nth_share(total, index, among)).sum();
            assert_eq!(sum, total, "{total} among {among}");
        }
    }

    #[test]
    fn what_cannot_be_loaded_begins_nothing() {
        let quick = |change: fn(&mut QuickRun)| {
            let mut quick = QuickRun { url: "http://127.0.0.1:1/".to_owned(), ..QuickRun::default() };
            change(&mut quick);
            run(&quick).err().unwrap()
        };
        for (change, why) in [
            ((|quick| quick.url = "ftp://localhost/".to_owned()) as fn(&mut QuickRun), "only http://"),
            (|quick| quick.method = "GE T".to_owned(), "no method"),
            (|quick| quick.rate = Some(Rate::Constant(0.0)), "a rate must be above 0"),
            (|quick| quick.rate = Some(Rate::Poisson(f64::NAN)), "a rate must be above 0"),
            (|quick| quick.headers = vec![("a".to_owned(), "b\r\nc: d".to_owned())], "is not a header line"),
        ] {
            assert!(quick(change).contains(why), "{why}");
        }
    }
}
