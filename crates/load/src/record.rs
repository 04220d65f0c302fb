//! What happened, counted: counters, rates and histograms by Artillery's names (artillery.md §3), and the
//! latencies and errors by hop that weir adds.
//!
//! One [`Recorder`] per worker; every 10 s slice becomes a window that any thread can merge.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use weir_meter::Step;

/// A metric's name, known to one recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric(u32);

/// Counts for one worker.
#[derive(Default)]
pub struct Recorder {
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    ids: HashMap<Arc<str>, Metric>,
}

impl Recorder {
    /// The metric of a name, cut at 1024 characters.
    pub fn metric(&self, name: &str) -> Metric {
        let mut inner = self.inner.borrow_mut();
        let next = Metric(u32::try_from(inner.ids.len()).unwrap_or(u32::MAX));
        *inner.ids.entry(name.into()).or_insert(next)
    }

    /// Adds to a counter; 0 makes it known.
    pub fn count(&self, metric: Metric, by: u64) {
        let _ = (metric, by);
    }

    /// Adds one event to a rate.
    pub fn rate(&self, metric: Metric) {
        let _ = metric;
    }

    /// Adds a sample to a histogram.
    pub fn sample(&self, metric: Metric, value: f64) {
        let _ = (metric, value);
    }

    /// Notes both latencies of an exchange: from the instant it was meant to begin, and from when it was sent.
    pub fn latency(&self, response: Duration, service: Duration) {
        let _ = (response, service);
    }

    /// Notes how late an arrival was, against its schedule.
    pub fn lag(&self, late: Duration) {
        let _ = late;
    }

    /// Notes a failure by where it happened, beside `errors.NAME`.
    pub fn failure(&self, step: Step, name: &str) {
        let _ = (step, name);
    }
}
