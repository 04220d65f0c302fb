//! The data that a recorder returns: closed slices of time. All types are `Send`.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_meter::Step;

use super::glance::Glance;
use super::hdr::Hdr;
use super::sketch::{Sketch, round};

/// Most distinct failures by step and name; later ones are counted under [`OTHER`].
const FAILURES_MAX: usize = 1000;
/// The name of failures for which there was no room.
const OTHER: &str = "other";

/// Length of a window, aligned to the wall clock.
pub const WINDOW_MS: u64 = 10_000;
/// Default length of a point in the lines over time, ms.
pub const POINT_MS: u64 = 1000;
/// The result of [`Recorder::take`](super::Recorder::take).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TakenWindow {
    /// In order of time.
    pub windows: Vec<Window>,
    /// In order of time.
    pub seconds: Vec<Second>,
}

impl TakenWindow {
    /// Adds all counts of another.
    pub fn merge(&mut self, other: TakenWindow) {
        for window in other.windows {
            match self.windows.binary_search_by_key(&window.start_ms, |known| known.start_ms) {
                Ok(at) => self.windows.get_mut(at).map_or((), |known| known.merge(&window)),
                Err(at) => self.windows.insert(at, window),
            }
        }
        for second in other.seconds {
            match self.seconds.binary_search_by_key(&second.start_ms, |known| known.start_ms) {
                Ok(at) => self.seconds.get_mut(at).map_or((), |known| known.merge(&second)),
                Err(at) => self.seconds.insert(at, second),
            }
        }
    }

    /// True if there is no count.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty() && self.seconds.is_empty()
    }
}

/// A slice of 10 s of one worker; names are in order of first use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// Start, ms since 1970.
    pub start_ms: u64,
    /// Counters and their sums.
    pub counters: Vec<(Arc<str>, u64)>,
    /// Rates.
    pub rates: Vec<(Arc<str>, EventRate)>,
    /// Histograms.
    pub sketches: Vec<(Arc<str>, Sketch)>,
    /// First and last times of events.
    pub stamps: Stamps,
    /// Figures that Artillery does not have.
    pub own: OwnMeasurements,
}

impl Window {
    /// True if there is no count.
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty() && self.rates.is_empty() && self.sketches.is_empty() && self.own.is_empty()
    }

    /// Adds all counts of another.
    pub fn merge(&mut self, other: &Window) {
        for (name, count) in &other.counters {
            *entry(&mut self.counters, name) += count;
        }
        for (name, rate) in &other.rates {
            entry(&mut self.rates, name).merge(rate);
        }
        for (name, sketch) in &other.sketches {
            entry(&mut self.sketches, name).merge(sketch);
        }
        self.stamps.merge(other.stamps);
        self.own.merge(&other.own);
    }
}

/// A linear search is enough: the lists are few and short.
fn entry<'a, T: Default>(list: &'a mut Vec<(Arc<str>, T)>, name: &Arc<str>) -> &'a mut T {
    let at = list.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
        list.push((name.clone(), T::default()));
        list.len() - 1
    });
    &mut list[at].1
}

/// Number of events, and the times of the first and the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct EventRate {
    pub count: u64,
    pub first_ms: u64,
    pub last_ms: u64,
}

impl EventRate {
    /// Adds all events of another.
    pub fn merge(&mut self, other: &EventRate) {
        if self.count == 0 {
            *self = *other;
        } else if other.count > 0 {
            self.count += other.count;
            self.first_ms = self.first_ms.min(other.first_ms);
            self.last_ms = self.last_ms.max(other.last_ms);
        }
    }

    /// Events per second between the first and the last event, over at least a second, rounded.
    pub fn per_second(&self) -> f64 {
        let seconds = self.last_ms.saturating_sub(self.first_ms).max(1000) as f64 / 1000.0;
        round(self.count as f64 / seconds)
    }
}

/// The times of the first and the last event of each kind, ms since 1970; `None` if there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stamps {
    pub first_counter: Option<u64>,
    pub first_histogram: Option<u64>,
    pub last_counter: Option<u64>,
    pub last_histogram: Option<u64>,
}

impl Stamps {
    #[inline]
    pub(super) fn counter(&mut self, ms: u64) {
        self.first_counter = self.first_counter.or(Some(ms));
        self.last_counter = Some(ms);
    }

    #[inline]
    pub(super) fn histogram(&mut self, ms: u64) {
        self.first_histogram = self.first_histogram.or(Some(ms));
        self.last_histogram = Some(ms);
    }

    /// The first event of any kind.
    pub fn first(self) -> Option<u64> {
        least(self.first_counter, self.first_histogram)
    }

    /// The last event of any kind.
    pub fn last(self) -> Option<u64> {
        self.last_counter.max(self.last_histogram)
    }

    /// Extends the times to cover another's.
    pub fn merge(&mut self, other: Stamps) {
        self.first_counter = least(self.first_counter, other.first_counter);
        self.first_histogram = least(self.first_histogram, other.first_histogram);
        self.last_counter = self.last_counter.max(other.last_counter);
        self.last_histogram = self.last_histogram.max(other.last_histogram);
    }
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.into_iter().chain(b).min()
}

/// weir's measurements besides Artillery's metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnMeasurements {
    /// Times from the intended start of a request to its answer.
    pub response: Hdr,
    /// Times from the send to the answer.
    pub service: Hdr,
    /// Lateness of arrivals.
    pub lag: Hdr,
    /// Scheduled requests or virtual users that were never begun.
    pub dropped: u64,
    /// Failures by step and by Artillery's name.
    pub failures: BTreeMap<(Step, Arc<str>), u64>,
}

impl OwnMeasurements {
    /// Adds failures.
    pub fn fail(&mut self, step: Step, name: &str, count: u64) {
        let is_full = self.failures.len() >= FAILURES_MAX;
        let key = (step, Arc::from(name));
        let key = if is_full && !self.failures.contains_key(&key) { (step, OTHER.into()) } else { key };
        *self.failures.entry(key).or_default() += count;
    }

    /// Adds all counts of another, exactly.
    pub fn merge(&mut self, other: &OwnMeasurements) {
        self.response.merge(&other.response);
        self.service.merge(&other.service);
        self.lag.merge(&other.lag);
        self.dropped += other.dropped;
        for ((step, name), count) in &other.failures {
            self.fail(*step, name, *count);
        }
    }

    fn is_empty(&self) -> bool {
        self.response.count() + self.lag.count() + self.dropped == 0 && self.failures.is_empty()
    }
}

/// A second of one worker.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Second {
    /// Start, ms since 1970.
    pub start_ms: u64,
    /// Increases of the counters that are recorded by the second.
    pub counts: Vec<(Arc<str>, u64)>,
    /// Coarse form of [`OwnMeasurements::response`].
    pub response: Glance,
    /// Coarse form of [`OwnMeasurements::service`].
    pub service: Glance,
}

impl Second {
    pub(super) fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.response.count() == 0
    }

    /// Adds all counts of another.
    pub fn merge(&mut self, other: &Second) {
        for (name, count) in &other.counts {
            *entry(&mut self.counts, name) += count;
        }
        self.response.merge(&other.response);
        self.service.merge(&other.service);
    }
}

/// True if the counter is recorded by the second, to be shown over time.
pub(super) fn is_followed(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "vusers.created",
        "vusers.completed",
        "vusers.failed",
        "vusers.skipped",
        "http.requests",
        "websocket.messages_sent",
        "websocket.messages_received",
        "socketio.emit",
    ];
    NAMES.contains(&name) || name.starts_with("http.codes.") || name.starts_with("errors.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_over_a_second_at_least() {
        let rate = |count, ms: u64| EventRate { count, first_ms: 5_000, last_ms: 5_000 + ms }.per_second();
        assert_eq!((rate(8, 1_402), rate(7, 1_201), rate(5500, 5_435), rate(3, 0)), (6.0, 6.0, 1012.0, 3.0));
    }

    #[test]
    fn stamps_cover_both() {
        let mut stamps = Stamps { first_counter: Some(5), last_counter: Some(9), ..Stamps::default() };
        stamps.merge(Stamps {
            first_counter: Some(3),
            last_counter: Some(4),
            first_histogram: Some(4),
            last_histogram: Some(12),
        });
        assert_eq!((stamps.first(), stamps.last(), stamps.first_histogram), (Some(3), Some(12), Some(4)));
        assert_eq!((Stamps::default().first(), Stamps::default().last()), (None, None));
    }

    #[test]
    fn failures_have_a_bound() {
        let mut own = OwnMeasurements::default();
        for n in 0..FAILURES_MAX + 3 {
            own.fail(Step::AwaitHead, &n.to_string(), 1);
        }
        own.fail(Step::AwaitHead, "0", 1);
        assert_eq!(own.failures.len(), FAILURES_MAX + 1);
        assert_eq!(own.failures.get(&(Step::AwaitHead, OTHER.into())), Some(&3));
        assert_eq!(own.failures.get(&(Step::AwaitHead, "0".into())), Some(&2));
    }
}
