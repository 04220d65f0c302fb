//! The connections of one thread, their shared counts, and the task that reports the counts.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::task::Poll;
use std::time::Duration;

use weir_net::timer::until;
use weir_net::{Deadline, Instant, clock, worker};

use super::plan::QuickPlan;
use super::schedule::DueTimes;
use crate::client::h3;
use crate::client::line::Line;
use crate::client::{self, Answer, KeptConnection, NOT_AGREED, NOT_SPOKEN, Origin, Protocol, ReadyRequest};
use crate::engine::bell::Bell;
use crate::engine::http::metrics::RequestMetrics;
use crate::event::Event;
use crate::record::{MetricId, Recorder};
use crate::report::{Report, RequestFailure};
use crate::run::TELL;
use crate::tls::Tls;
use crate::worker::RunShared;

/// A request of a fixed rate that begins later than this after its due time counts as late: five ticks of the timer,
/// of one millisecond each.
pub const LATE_AFTER: Duration = Duration::from_millis(5);
/// Pause after a failed connection of a closed loop, so that a dead server is not flooded.
const FAILED_PAUSE: Duration = Duration::from_millis(10);
/// At the start, a thread opens a connection of HTTP/3 each time after this. The socket of a server holds some ninety first
/// packets by default; those of the others would be lost all at once, and again each time that they are sent anew.
const OPEN_EVERY: Duration = Duration::from_micros(500);
/// Size of the table of statuses; the parser accepts no others.
const STATUSES: usize = 1000;

/// One thread's share of the load.
pub(super) struct ThreadShare {
    pub connections: usize,
    pub requests: u64,
    pub index: usize,
    pub threads: usize,
}

/// The receivers for a thread's results.
pub(super) struct Ears {
    pub give: Sender<Report>,
    pub events: Sender<Event>,
}

/// State that the connections of one thread share.
struct Run {
    plan: QuickPlan,
    origin: Rc<Origin>,
    shared: Arc<RunShared>,
    recorder: Recorder,
    metrics: RequestMetrics,
    /// The time that a new connection took, in milliseconds.
    connect: MetricId,
    book: RefCell<Book>,
    /// Number of connections, or streams, that may still send.
    sending: Cell<usize>,
    /// Rings when `sending` reaches 0.
    over: Bell,
}

/// Counts in addition to those of the recorder.
struct Book {
    report: Report,
    statuses: Box<[u64; STATUSES]>,
    end: Instant,
    schedule: Option<DueTimes>,
    /// Number of requests that may still begin.
    left: u64,
}

/// Permission to send one more request.
enum Next {
    Now,
    At(Instant),
    Never,
}

/// Starts a thread's connections, and the task that reports their counts.
pub(super) fn begin(plan: QuickPlan, share: ThreadShare, shared: Arc<RunShared>, ears: Ears) {
    let tls: Rc<Tls> = Rc::default();
    let tls = if plan.insecure { tls.accepting_anyone() } else { tls };
    let origin = Rc::new(Origin::of(&plan.url, &tls));
    let schedule = plan.rate.map(|rate| DueTimes::new(rate, plan.begin, share.index, share.threads));
    let recorder = Recorder::default();
    shared.point_ms.iter().for_each(|ms| recorder.set_point_ms(*ms));
    let book = Book {
        report: Report { threads: 1, ..Report::default() },
        statuses: Box::new([0; STATUSES]),
        end: plan.end,
        schedule,
        left: share.requests,
    };
    let streams = plan.streams;
    let tuning = plan.tuning;
    let each = streams.map_or(1, |(_, streams)| streams);
    let run = Rc::new(Run {
        connect: recorder.metric("http.connect"),
        metrics: RequestMetrics::plain(&recorder),
        recorder,
        plan,
        origin,
        shared,
        book: RefCell::new(book),
        sending: Cell::new(share.connections * each),
        over: Bell::default(),
    });
    for index in 0..share.connections {
        let is_paced = matches!(streams, Some((Protocol::Http3, _)));
        let opens = is_paced.then(|| run.plan.begin + OPEN_EVERY * u32::try_from(index).unwrap_or(u32::MAX));
        let line = streams.map(|(protocol, streams)| Line::tuned(run.origin.clone(), protocol, streams, tuning));
        for _ in 0..each {
            let (place, line) = (Place(run.clone()), line.clone());
            worker::spawn(async move {
                if let Some(opens) = opens {
                    until(opens).await;
                }
                load(&place.0, line).await;
            });
        }
    }
    worker::spawn(tell(run, share.index, ears));
}

/// A connection's permission to send; given up however its task ends.
struct Place(Rc<Run>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.sending.set(self.0.sending.get() - 1);
        if self.0.sending.get() == 0 {
            self.0.over.ring();
        }
    }
}

/// Reports the counts at intervals, and all of them when no more requests are sent or the run was stopped.
async fn tell(run: Rc<Run>, worker: usize, ears: Ears) {
    let deadline = Deadline::new();
    loop {
        deadline.set(TELL);
        let is_over = poll_fn(|context| {
            if run.sending.get() == 0 {
                return Poll::Ready(true);
            }
            run.over.listen(context);
            deadline.poll_expired().map(|()| false)
        })
        .await;
        let is_last = is_over || run.is_ending();
        if is_last {
            let report = run.book.borrow_mut().close(&run.recorder, run.plan.begin);
            // The receiver is gone only if the run was given up.
            let _ = ears.give.send(report);
            h3::leave().await;
        }
        h3::record(&run.recorder);
        let before_ms = if is_last { u64::MAX } else { run.recorder.now_ms() };
        let _ = ears.events.send(Event::Taken { worker, taken: run.recorder.take(before_ms), before_ms });
        if is_last {
            let _ = ears.events.send(Event::Ended { worker });
            return;
        }
    }
}

impl Run {
    fn is_ending(&self) -> bool {
        self.shared.is_ending.load(Ordering::Relaxed)
    }

    /// Permission for one more request, and its time; counts the request.
    fn next(&self) -> Next {
        if self.is_ending() { Next::Never } else { self.book.borrow_mut().next() }
    }

    /// Counts the times that a request was sent again.
    fn resent(&self, times: u64) {
        self.metrics.resent(&self.recorder, times);
        self.book.borrow_mut().report.resent += times;
    }

    /// Counts an outcome; true if the connection failed.
    fn settle(&self, outcome: &Result<Answer, client::Error>, due: Option<Instant>, begin: Instant) -> bool {
        let Run { recorder, metrics, .. } = self;
        let book = &mut *self.book.borrow_mut();
        let report = &mut book.report;
        if let Some(due) = due {
            let lag = begin.saturating_duration_since(due);
            recorder.lag(lag);
            report.late += u64::from(lag > LATE_AFTER);
        }
        match outcome {
            Ok(answer) => {
                report.requests += 1;
                report.received_bytes += answer.received_bytes;
                let timings = &answer.timings;
                let response = timings.end.saturating_duration_since(due.unwrap_or(begin));
                recorder.latency(response, timings.service());
                if timings.is_fresh {
                    let connect = timings.dns + timings.tcp + timings.tls.unwrap_or_default();
                    report.connect.add(connect);
                    recorder.sample(self.connect, connect.as_secs_f64() * 1e3);
                }
                metrics.answer(recorder, answer);
                if let Some(count) = book.statuses.get_mut(usize::from(answer.status())) {
                    *count += 1;
                }
                false
            }
            Err(error) => {
                if report.requests == 0 && is_unspoken(&error.name) {
                    book.left = 0;
                }
                if let Some((status, timings)) = error.answered.as_deref() {
                    metrics.head(recorder, *status, timings);
                }
                recorder.failure(error.step, &error.name);
                recorder.count(recorder.metric(&format!("errors.{}", error.name)), 1);
                report.fail(RequestFailure::of(error));
                *report.errors_at.entry((error.step, error.name.clone())).or_default() += 1;
                true
            }
        }
    }
}

/// Sends one request after another until the run is over.
async fn load(run: &Run, line: Option<Rc<Line>>) {
    let plan = &run.plan;
    let mut kept: Option<KeptConnection> = None;
    let mut carried = 0;
    let mut started = None;
    loop {
        let due = match run.next() {
            Next::Never => return,
            Next::Now => None,
            Next::At(due) => {
                if clock::precise() < due {
                    until(due).await;
                    if run.is_ending() {
                        return;
                    }
                }
                started = None;
                Some(due)
            }
        };
        let begin = started.unwrap_or_else(clock::precise);
        let call = ReadyRequest {
            origin: &run.origin,
            method: &plan.method,
            head: &plan.head,
            body: &plan.body,
            wants_body: false,
            sessions: None,
            timeout: plan.timeout,
            started: Some(begin),
        };
        run.metrics.request(&run.recorder);
        let mut resent = 0;
        let outcome = match &line {
            None => client::exchange(&mut kept, &call, &plan.resolver).await,
            Some(line) => line.exchange(&call, &plan.resolver, &mut resent).await,
        };
        run.resent(resent);
        // The end of one request is the start of the next, so the clock is read once for both.
        started = outcome.as_ref().ok().map(|answer| answer.timings.end);
        if let Ok(answer) = &outcome {
            carried = if answer.timings.is_fresh { 1 } else { carried + 1 };
            kept = kept.filter(|_| plan.tuning.exchanges_max.is_none_or(|most| carried < most));
        }
        let failed = run.settle(&outcome, due, begin);
        drop(outcome);
        if failed && due.is_none() {
            weir_net::timer::sleep(FAILED_PAUSE).await;
        }
    }
}

impl Book {
    /// Permission for one more request, and its time; counts the request.
    fn next(&mut self) -> Next {
        if self.left == 0 {
            return Next::Never;
        }
        let is_over = clock::now() >= self.end;
        let Some(schedule) = &mut self.schedule else {
            if is_over {
                return Next::Never;
            }
            self.left -= 1;
            return Next::Now;
        };
        match schedule.peek(self.end) {
            Some(due) if !is_over => {
                schedule.take();
                self.left -= 1;
                Next::At(due)
            }
            _ => Next::Never,
        }
    }

    /// The report of this thread; `begin` is the start of the run.
    fn close(&mut self, recorder: &Recorder, begin: Instant) -> Report {
        let report = &mut self.report;
        for (status, &count) in self.statuses.iter().enumerate().filter(|(_, count)| **count > 0) {
            let status = status as u16;
            report.statuses.insert(status, count);
            if status >= 400 {
                *report.failures.entry(RequestFailure::Status(status)).or_default() += count;
            }
        }
        // If the run was stopped early, only the requests that are due by now count.
        let end = self.end.min(clock::precise());
        let mut dropped = 0;
        while let Some(schedule) = self.schedule.as_mut().filter(|schedule| schedule.peek(end).is_some())
            && self.left > 0
        {
            schedule.take();
            self.left -= 1;
            dropped += 1;
        }
        if dropped > 0 {
            recorder.dropped(dropped);
        }
        report.elapsed = clock::precise().saturating_duration_since(begin);
        report.cpu = weir_host::own_cpu().unwrap_or_default();
        report.busy = vec![report.cpu.as_secs_f64() / report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)];
        std::mem::take(report)
    }
}

/// True if the error means that the server does not support HTTP/2, or HTTP/3.
fn is_unspoken(name: &str) -> bool {
    name == NOT_AGREED || name == NOT_SPOKEN
}
