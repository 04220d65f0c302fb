//! Sends one request to one URL repeatedly: `weir load URL`.
//!
//! There are two models. A closed loop, as in wrk: each connection sends its next request as soon as the answer has
//! arrived, so it slows down with the server. A fixed rate, an open model: each request has a due time that does not
//! depend on other requests, and its response time counts from the due time.
//!
//! It counts under the names of a script's requests, in the same recorders, for the same listener. So everything that
//! shows and stores a script's run shows and stores this run too.

mod connection;
mod schedule;

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use weir_net::worker::{self, Remote};
use weir_net::{Instant, clock};
use weir_words::{Said, say};

use crate::client::Resolver;
pub use crate::client::h2::STREAMS_MAX;
use crate::client::h2::{NOT_AGREED, NOT_SPOKEN};
use crate::event::Event;
use crate::plan::{Arrivals, Phase};
use crate::record::{Merger, Period};
use crate::report::Report;
use crate::run::{self, Channel, Progress, Watch};
use crate::selfcheck::THREAD_NAME;
use crate::texts;
use crate::url::Url;
use crate::worker::Shared;

/// Most requests at the same time, on all connections.
pub const STREAMS_TOTAL_MAX: usize = 100_000;
/// Most connections of one run.
pub const CONNECTIONS_MAX: usize = 50_000;
/// Most threads of one run.
pub const THREADS_MAX: usize = 64;
/// The longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);
/// The longest wait for one answer.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Most requests a second, on all threads.
pub const RATE_MAX: f64 = 10_000_000.0;
/// A request of a fixed rate that begins later than this after its due time counts as late: five ticks of the timer,
/// of one millisecond each.
pub const LATE_AFTER: Duration = Duration::from_millis(5);

/// The request, the target, the rate, and the end.
#[derive(Clone, Debug)]
pub struct Quick {
    /// `http://host[:port]/path?query`, or `https://`.
    pub url: String,
    /// `GET` and so on.
    pub method: String,
    /// Additional header fields; `Host`, `User-Agent`, `Accept` and `Connection` replace weir's own.
    pub headers: Vec<(String, String)>,
    /// The body; sent with its length if it is not empty, or if the method is POST, PUT or PATCH.
    pub body: Vec<u8>,
    /// Number of connections, limited to 1 to [`CONNECTIONS_MAX`].
    pub connections: usize,
    /// Number of threads, at least 1, at most the number of connections and [`THREADS_MAX`].
    pub threads: usize,
    /// Time after which no request is sent; at most [`DURATION_MAX`]. weir waits for the answers to current requests.
    pub duration: Duration,
    /// Most requests in total.
    pub requests_max: Option<u64>,
    /// Time limit of one request, including its connect; at most [`TIMEOUT_MAX`].
    pub timeout: Duration,
    /// Requests at a fixed rate; `None` is a closed loop.
    pub rate: Option<Rate>,
    /// True: accept any certificate.
    pub insecure: bool,
    /// Use HTTP/2 with this many requests at the same time on each connection, at most [`STREAMS_MAX`].
    pub streams: Option<usize>,
}

/// A fixed rate: an open model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// This many a second, evenly spread.
    Constant(f64),
    /// This many a second on average, at random.
    Poisson(f64),
}

impl Default for Quick {
    fn default() -> Quick {
        Quick {
            url: String::new(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            connections: 64,
            threads: 1,
            duration: Duration::from_secs(5),
            requests_max: None,
            timeout: Duration::from_secs(10),
            rate: None,
            insecure: false,
            streams: None,
        }
    }
}

/// Runs the load without a watcher. The error says why it could not begin; later failures are in the report.
pub fn run(quick: &Quick) -> Result<Report, Said> {
    watched(quick, Channel::new(), &mut Nobody).map(|(report, _)| report)
}

/// Runs the load and reports its progress to `watch`. Returns the report and all counts.
///
/// After a stop, it sends no more requests and waits for no answer. The error says why it could not begin.
pub fn watched(quick: &Quick, channel: Channel, watch: &mut dyn Watch) -> Result<(Report, run::Outcome), Said> {
    let plan = Plan::of(quick)?;
    let shown = plan.url.shown();
    let connections = quick.connections.clamp(1, CONNECTIONS_MAX);
    let threads = quick.threads.clamp(1, THREADS_MAX.min(connections));
    let (give, reports) = mpsc::channel();
    let shared = Arc::new(Shared { point_ms: channel.point_ms, ..Shared::default() });
    let mut crew = Crew(Vec::new());
    for index in 0..threads {
        let share = Share {
            connections: nth_share(connections as u64, index, threads) as usize,
            requests: quick.requests_max.map_or(u64::MAX, |max| nth_share(max, index, threads)),
            index,
            threads,
        };
        let (plan, shared) = (plan.clone(), shared.clone());
        let ears = Ears { give: give.clone(), events: channel.sender() };
        let thread =
            worker::start(&format!("{THREAD_NAME}{index}"), None, move || connection::begin(plan, share, shared, ears));
        crew.0.push(thread.map_err(|error| say!(texts::LOAD_NO_THREAD, error.to_string()))?);
    }
    drop(give);
    let outcome = run::listen(&[phase(quick)], plan.begin, threads, &shared, &channel, watch)?;
    let mut sum = Report::default();
    // Each thread sends its share before it reports its end.
    reports.try_iter().for_each(|report| sum.merge(&report));
    if let Some(why) = unspoken(&shown, &sum) {
        return Err(why);
    }
    let own = outcome.merger.own();
    (sum.response, sum.service, sum.lag) = (own.response.clone(), own.service.clone(), own.lag.clone());
    sum.dropped = own.dropped;
    Ok((sum, outcome))
}

/// An error message if no request succeeded because the server does not support HTTP/2.
fn unspoken(url: &str, report: &Report) -> Option<Said> {
    let met = |wanted: &str| report.errors_at.keys().any(|(_, name)| name == wanted);
    let why = match () {
        () if report.requests > 0 => return None,
        () if met(NOT_AGREED) => texts::H2_NOT_CHOSEN,
        () if met(NOT_SPOKEN) => texts::H2_NOT_SPOKEN,
        () => return None,
    };
    Some(say!(texts::NO_H2, url, why))
}

/// True if the error means that the server does not support HTTP/2.
fn is_unspoken(name: &str) -> bool {
    name == NOT_AGREED || name == NOT_SPOKEN
}

/// The threads; dropping it ends them.
struct Crew(Vec<Remote>);

impl Drop for Crew {
    fn drop(&mut self) {
        self.0.iter().for_each(Remote::stop);
        self.0.iter().for_each(Remote::join);
    }
}

/// A watcher that ignores everything.
struct Nobody;

impl Watch for Nobody {
    fn phase_started(&mut self, _: usize, _: &Phase) {}
    fn phase_completed(&mut self, _: usize, _: &Phase) {}
    fn line(&mut self, _: &str) {}
    fn period(&mut self, _: &Period) {}
    fn late(&mut self, _: u64) {}
    fn progress(&mut self, _: &Progress, _: &Merger) {}
}

/// The run in the form of a script's phase, with the name of its model.
fn phase(quick: &Quick) -> Phase {
    let duration = quick.duration.min(DURATION_MAX);
    let (name, arrivals) = match quick.rate {
        None => ("closed loop", Arrivals::Pause),
        Some(Rate::Constant(rate)) => ("constant rate", Arrivals::Rate(rate)),
        Some(Rate::Poisson(rate)) => ("random rate", Arrivals::Poisson(rate)),
    };
    Phase { name: name.to_owned(), shown: format!("{}s", duration.as_secs_f64()), duration, arrivals, vusers_max: None }
}

/// The receivers for a thread's results.
struct Ears {
    give: Sender<Report>,
    events: Sender<Event>,
}

/// The share of the `index`th when `total` is divided among `among`.
fn nth_share(total: u64, index: usize, among: usize) -> u64 {
    let (index, among) = (index as u64, among.max(1) as u64);
    total / among + u64::from(index < total % among)
}

/// A prepared run.
#[derive(Clone)]
struct Plan {
    url: Url,
    method: Vec<u8>,
    head: Vec<u8>,
    body: Vec<u8>,
    timeout: Duration,
    rate: Option<Rate>,
    insecure: bool,
    streams: Option<usize>,
    resolver: Resolver,
    begin: Instant,
    end: Instant,
}

/// One thread's share of the load.
struct Share {
    connections: usize,
    requests: u64,
    index: usize,
    threads: usize,
}

impl Plan {
    fn of(quick: &Quick) -> Result<Plan, Said> {
        let url = Url::parse(&quick.url)?;
        match quick.rate {
            Some(Rate::Constant(rate) | Rate::Poisson(rate)) if !(rate > 0.0 && rate <= RATE_MAX) => {
                return Err(say!(texts::BAD_LOAD_RATE, RATE_MAX));
            }
            _ => {}
        }
        let at_once = quick.connections.saturating_mul(quick.streams.unwrap_or(1));
        if at_once > STREAMS_TOTAL_MAX || quick.streams.is_some_and(|streams| !(1..=STREAMS_MAX).contains(&streams)) {
            return Err(say!(texts::BAD_STREAMS, STREAMS_MAX, STREAMS_TOTAL_MAX));
        }
        let head = head(quick, &url)?;
        let begin = clock::precise();
        Ok(Plan {
            url,
            method: quick.method.clone().into_bytes(),
            head,
            body: quick.body.clone(),
            timeout: quick.timeout.min(TIMEOUT_MAX),
            rate: quick.rate,
            insecure: quick.insecure,
            streams: quick.streams,
            resolver: Resolver::default(),
            begin,
            end: begin + quick.duration.min(DURATION_MAX),
        })
    }
}

/// Request line and fields. The error names the part that cannot be sent.
fn head(quick: &Quick, url: &Url) -> Result<Vec<u8>, Said> {
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !is_token(&quick.method) {
        return Err(say!(texts::NO_METHOD, &quick.method));
    }
    let given = |name: &str| quick.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
    let mut out = format!("{} {} HTTP/1.1\r\n", quick.method, url.target);
    let agent = concat!("weir-load/", env!("CARGO_PKG_VERSION"));
    let basic = url.basic();
    let mut ours = vec![("Host", url.authority.as_str()), ("User-Agent", agent), ("Accept", "*/*")];
    ours.extend(basic.as_deref().map(|basic| ("Authorization", basic)));
    for (name, value) in ours.into_iter().filter(|(name, _)| !given(name)) {
        out += &format!("{name}: {value}\r\n");
    }
    for (name, value) in &quick.headers {
        if !is_token(name) || value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(say!(texts::NO_HEADER, name, value));
        }
        out += &format!("{name}: {value}\r\n");
    }
    let has_body = !quick.body.is_empty() || matches!(quick.method.as_str(), "POST" | "PUT" | "PATCH");
    if has_body && !given("Content-Length") && !given("Transfer-Encoding") {
        out += &format!("Content-Length: {}\r\n", quick.body.len());
    }
    out += "\r\n";
    Ok(out.into_bytes())
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
        let quick = |change: fn(&mut Quick)| {
            let mut quick = Quick { url: "http://127.0.0.1:1/".to_owned(), ..Quick::default() };
            change(&mut quick);
            run(&quick).err().unwrap()
        };
        for (change, why) in [
            ((|quick| quick.url = "ftp://localhost/".to_owned()) as fn(&mut Quick), "only http://"),
            (|quick| quick.method = "GE T".to_owned(), "no method"),
            (|quick| quick.rate = Some(Rate::Constant(0.0)), "a rate must be above 0"),
            (|quick| quick.rate = Some(Rate::Poisson(f64::NAN)), "a rate must be above 0"),
            (|quick| quick.headers = vec![("a".to_owned(), "b\r\nc: d".to_owned())], "is not a header line"),
        ] {
            assert!(quick(change).contains(why), "{why}");
        }
    }

    #[test]
    fn heads() {
        let quick = Quick {
            method: "POST".to_owned(),
            headers: vec![("host".to_owned(), "b".to_owned())],
            body: b"xyz".to_vec(),
            ..Quick::default()
        };
        let head = String::from_utf8(head(&quick, &Url::parse("http://a/x").unwrap()).unwrap()).unwrap();
        assert!(head.starts_with("POST /x HTTP/1.1\r\nUser-Agent: weir-load/"), "{head}");
        assert!(head.ends_with("\r\nAccept: */*\r\nhost: b\r\nContent-Length: 3\r\n\r\n"), "{head}");
    }
}
