//! One connection of a run, and the book all of a thread write into.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use weir_net::Instant;

use weir_net::clock;
use weir_net::timer::until;

use super::schedule::Schedule;
use super::{LATE_AFTER, Plan};
use crate::client::{self, Answer, Call, Kept, Origin};
use crate::report::{Failure, Report};

/// Rest after a failed connection of a closed loop, so that a dead server is not hammered.
const FAILED_PAUSE: Duration = Duration::from_millis(10);
/// Statuses counted in a table; the parser knows no others.
const STATUSES: usize = 1000;

/// What the connections of one thread share.
pub(super) struct Run {
    plan: Plan,
    origin: Rc<Origin>,
    book: RefCell<Book>,
}

/// What they write into; the last to go sends it.
struct Book {
    report: Report,
    statuses: Box<[u64; STATUSES]>,
    begin: Instant,
    end: Instant,
    schedule: Option<Schedule>,
    /// Requests that may still be begun.
    left: u64,
    give: mpsc::Sender<Report>,
}

/// Leave to send one more request.
enum Next {
    Now,
    At(Instant),
    Never,
}

impl Run {
    pub(super) fn new(
        plan: Plan,
        origin: Rc<Origin>,
        schedule: Option<Schedule>,
        left: u64,
        report: Report,
        give: mpsc::Sender<Report>,
    ) -> Run {
        let (begin, end) = (plan.begin, plan.end);
        let book = Book { report, statuses: Box::new([0; STATUSES]), begin, end, schedule, left, give };
        Run { plan, origin, book: RefCell::new(book) }
    }
}

/// Sends one request after another until the run is over.
pub(super) async fn load(run: Rc<Run>) {
    let plan = &run.plan;
    let mut kept: Option<Kept> = None;
    let mut started = None;
    loop {
        let next = run.book.borrow_mut().next();
        let due = match next {
            Next::Never => return,
            Next::Now => None,
            Next::At(due) => {
                if clock::precise() < due {
                    until(due).await;
                }
                started = None;
                Some(due)
            }
        };
        let begin = started.unwrap_or_else(clock::precise);
        let call = Call {
            origin: &run.origin,
            method: &plan.method,
            head: &plan.head,
            body: &plan.body,
            wants_body: false,
            sessions: None,
            timeout: plan.timeout,
            started: Some(begin),
        };
        let outcome = client::exchange(&mut kept, &call, &plan.resolver).await;
        // The end of one request is the begin of the next, and the clock is read once for both.
        started = outcome.as_ref().ok().map(|answer| answer.timings.end);
        let failed = run.book.borrow_mut().settle(&outcome, due, begin);
        drop(outcome);
        if failed && due.is_none() {
            weir_net::timer::sleep(FAILED_PAUSE).await;
        }
    }
}

impl Book {
    /// Whether, and when, one more request may be sent; it is counted off.
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

    /// Books an outcome; true if the connection failed.
    fn settle(&mut self, outcome: &Result<Answer, client::Error>, due: Option<Instant>, begin: Instant) -> bool {
        let report = &mut self.report;
        if let Some(due) = due {
            let lag = begin.saturating_duration_since(due);
            report.lag.record(lag);
            report.late += u64::from(lag > LATE_AFTER);
        }
        match outcome {
            Ok(answer) => {
                report.requests += 1;
                report.received_bytes += answer.received_bytes;
                let end = answer.timings.end;
                report.service.record(end.saturating_duration_since(begin));
                if let Some(due) = due {
                    report.latency.record(end.saturating_duration_since(due));
                }
                if let Some(count) = self.statuses.get_mut(usize::from(answer.status())) {
                    *count += 1;
                }
                false
            }
            Err(error) => {
                report.fail(Failure::of(error));
                *report.errors_at.entry((error.step, error.name.clone())).or_default() += 1;
                true
            }
        }
    }
}

impl Drop for Book {
    /// On its thread, when the last connection is done.
    fn drop(&mut self) {
        let report = &mut self.report;
        for (status, &count) in self.statuses.iter().enumerate().filter(|(_, count)| **count > 0) {
            let status = status as u16;
            report.statuses.insert(status, count);
            if status >= 400 {
                *report.failures.entry(Failure::Status(status)).or_default() += count;
            }
        }
        match &mut self.schedule {
            None => report.latency = report.service.clone(),
            Some(schedule) => {
                while self.left > 0 && schedule.peek(self.end).is_some() {
                    schedule.take();
                    self.left -= 1;
                    report.dropped += 1;
                }
            }
        }
        report.elapsed = clock::precise().saturating_duration_since(self.begin);
        report.cpu = weir_meter::host::own_cpu().unwrap_or_default();
        report.threads = 1;
        // Nobody listens only if the run was given up.
        let _ = self.give.send(report.clone());
    }
}
