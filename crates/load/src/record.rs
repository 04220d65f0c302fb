//! Counts everything: counters, rates and histograms under Artillery's names (artillery.md §3), and weir's additions:
//! two latencies and errors by hop.
//!
//! There is one [`Recorder`] per worker. Every 10 s slice of the wall clock becomes a [`Window`], every second a
//! [`Second`]. [`Recorder::take`] returns both, and a [`Merger`] on any thread merges those of all workers.
//! Invariant: recording reads only the clock of the worker's turn, so a record costs some nanoseconds.

mod encode;
mod glance;
mod hdr;
mod merge;
mod phase;
mod sketch;
mod window;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use weir_net::Instant;

use weir_meter::Step;

pub use glance::Glance;
pub use hdr::Hdr;
pub use merge::{Figures, Merger, Period, Point, RunResults};
pub use phase::phase;
pub use sketch::{Keys, Sketch, Summary, round, tenths};
pub use window::{EventRate, OwnMeasurements, POINT_MS, Second, Stamps, TakenWindow, WINDOW_MS, Window};

/// Most distinct metric names in a recorder; events of later names are counted as [`DROPPED_NAMES`].
pub const NAMES_MAX: usize = 10_000;
/// The metric for events whose own metric has no room.
pub const DROPPED_NAMES: &str = "metrics.dropped_names";
/// Longest metric name, in characters; Artillery cuts names here.
const NAME_CHARS_MAX: usize = 1024;
/// Most windows that wait to be taken, a day. Later ones are merged into the last, which loses their times but no
/// count.
const CLOSED_MAX: usize = 8640;
/// Most seconds that wait to be taken, an hour; later ones are merged in the same way.
const SECONDS_MAX: usize = 3600;
/// Most counters that are recorded by the second.
const FOLLOWED_MAX: usize = 64;

/// A metric's id in one recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetricId(u32);

/// The counts of one worker.
#[derive(Default)]
pub struct Recorder {
    inner: RefCell<Inner>,
    keys: Keys,
    time: Time,
}

impl Recorder {
    /// A recorder whose time stands at this many ms since 1970 until [`Recorder::set_ms`], instead of following the
    /// worker's.
    pub fn at(ms: u64) -> Recorder {
        let recorder = Recorder::default();
        recorder.set_ms(ms);
        recorder
    }

    /// Sets the length of a point in the lines over time, ms; call it before anything is recorded.
    pub fn set_point_ms(&self, ms: u64) {
        self.inner.borrow_mut().point_ms = ms.max(1);
    }

    /// Moves the time of a recorder from [`Recorder::at`].
    pub fn set_ms(&self, ms: u64) {
        self.time.set.set(Some(ms));
    }

    /// The metric of a name, cut at 1024 characters.
    ///
    /// If there are [`NAMES_MAX`] names already, the metric [`DROPPED_NAMES`].
    pub fn metric(&self, name: &str) -> MetricId {
        let name = cut(name);
        let mut inner = self.inner.borrow_mut();
        if let Some(known) = inner.ids.get(name) {
            return *known;
        }
        let name = if inner.names.len() < NAMES_MAX { name } else { DROPPED_NAMES };
        inner.ids.get(name).copied().unwrap_or_else(|| inner.add_name(name))
    }

    /// Adds to a counter; adding 0 makes the counter appear.
    #[inline]
    pub fn count(&self, metric: MetricId, by: u64) {
        let inner = &mut *self.inner.borrow_mut();
        let now = inner.turn(self.time.ms());
        inner.stamps.counter(now);
        let Some(slot) = inner.slots.get_mut(metric.0 as usize) else { return };
        if !slot.counts {
            slot.counts = true;
            inner.counters.push(metric.0);
        }
        slot.count += by;
    }

    /// Adds one event to a rate.
    #[inline]
    pub fn rate(&self, metric: MetricId) {
        let inner = &mut *self.inner.borrow_mut();
        let now = inner.turn(self.time.ms());
        let Some(slot) = inner.slots.get_mut(metric.0 as usize) else { return };
        if slot.rate.count == 0 {
            slot.rate.first_ms = now;
            inner.rates.push(metric.0);
        }
        slot.rate.count += 1;
        slot.rate.last_ms = now;
    }

    /// Adds a finite sample to a histogram; ignores other samples.
    #[inline]
    pub fn sample(&self, metric: MetricId, value: f64) {
        let inner = &mut *self.inner.borrow_mut();
        let now = inner.turn(self.time.ms());
        if !value.is_finite() {
            return;
        }
        inner.stamps.histogram(now);
        let Some(slot) = inner.slots.get_mut(metric.0 as usize) else { return };
        let sketch = slot.sketch.get_or_insert_with(|| {
            inner.sketches.push(metric.0);
            Box::default()
        });
        sketch.add(value, &self.keys);
    }

    /// Records both latencies of an exchange: from its intended start, and from its send.
    #[inline]
    pub fn latency(&self, response: Duration, service: Duration) {
        let inner = &mut *self.inner.borrow_mut();
        inner.turn(self.time.ms());
        inner.own.response.add(response);
        inner.own.service.add(service);
        inner.second.response.add(response);
        inner.second.service.add(service);
    }

    /// Records how late an arrival was, against its schedule.
    pub fn lag(&self, late: Duration) {
        let inner = &mut *self.inner.borrow_mut();
        inner.turn(self.time.ms());
        inner.own.lag.add(late);
    }

    /// Records scheduled requests or virtual users that were never begun, and will not be.
    pub fn dropped(&self, count: u64) {
        let inner = &mut *self.inner.borrow_mut();
        inner.turn(self.time.ms());
        inner.own.dropped += count;
    }

    /// Records a failure by its step, in addition to `errors.NAME`.
    pub fn failure(&self, step: Step, name: &str) {
        let inner = &mut *self.inner.borrow_mut();
        inner.turn(self.time.ms());
        inner.own.fail(step, cut(name), 1);
    }

    /// Sets the offset that is added to this machine's clock, ms: an agent uses the controller's time.
    pub fn set_ahead(&self, ms: i64) {
        self.time.ahead.set(ms);
    }

    /// The current time, ms since 1970.
    pub fn now_ms(&self) -> u64 {
        self.time.ms()
    }

    /// Windows and seconds that ended before `now_ms`; all with `u64::MAX`.
    pub fn take(&self, now_ms: u64) -> TakenWindow {
        let inner = &mut *self.inner.borrow_mut();
        if now_ms == u64::MAX {
            inner.close_window();
        } else {
            inner.turn(now_ms.max(self.time.ms()));
        }
        TakenWindow { windows: std::mem::take(&mut inner.closed), seconds: std::mem::take(&mut inner.seconds) }
    }
}

/// The first 1024 characters.
fn cut(name: &str) -> &str {
    if name.len() <= NAME_CHARS_MAX {
        return name;
    }
    name.char_indices().nth(NAME_CHARS_MAX).and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

/// The worker's wall clock in ms, converted once a turn; or a time set by hand.
#[derive(Default)]
struct Time {
    set: Cell<Option<u64>>,
    turn: Cell<Option<Instant>>,
    ms: Cell<u64>,
    ahead: Cell<i64>,
}

impl Time {
    #[inline]
    fn ms(&self) -> u64 {
        if let Some(ms) = self.set.get() {
            return ms;
        }
        let now = weir_net::clock::now();
        if self.turn.get() != Some(now) {
            self.turn.set(Some(now));
            self.ms.set(weir_net::clock::unix_ms().saturating_add_signed(self.ahead.get()));
        }
        self.ms.get()
    }
}

/// All kinds of one name: a name may be a counter, a rate and a histogram at the same time.
#[derive(Default)]
struct Slot {
    counts: bool,
    count: u64,
    /// The count at the end of the last second; only for counters that are recorded by the second.
    before: u64,
    rate: EventRate,
    sketch: Option<Box<Sketch>>,
}

struct Inner {
    ids: HashMap<Arc<str>, MetricId>,
    names: Vec<Arc<str>>,
    slots: Vec<Slot>,
    /// Metrics of each kind in this window, in order of first use.
    counters: Vec<u32>,
    rates: Vec<u32>,
    sketches: Vec<u32>,
    followed: Vec<u32>,
    stamps: Stamps,
    own: OwnMeasurements,
    second: Second,
    /// Start of this window; 0 before the first event.
    start_ms: u64,
    closed: Vec<Window>,
    seconds: Vec<Second>,
    point_ms: u64,
}

impl Default for Inner {
    fn default() -> Inner {
        Inner {
            ids: HashMap::default(),
            names: Vec::new(),
            slots: Vec::new(),
            counters: Vec::new(),
            rates: Vec::new(),
            sketches: Vec::new(),
            followed: Vec::new(),
            stamps: Stamps::default(),
            own: OwnMeasurements::default(),
            second: Second::default(),
            start_ms: 0,
            closed: Vec::new(),
            seconds: Vec::new(),
            point_ms: POINT_MS,
        }
    }
}

impl Inner {
    #[cold]
    fn add_name(&mut self, name: &str) -> MetricId {
        let metric = MetricId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        let name: Arc<str> = name.into();
        if window::is_followed(&name) && self.followed.len() < FOLLOWED_MAX {
            self.followed.push(metric.0);
        }
        self.ids.insert(name.clone(), metric);
        self.names.push(name);
        self.slots.push(Slot::default());
        metric
    }

    /// Closes the seconds and windows that ended before this moment; returns the moment.
    #[inline]
    fn turn(&mut self, now_ms: u64) -> u64 {
        if now_ms.wrapping_sub(self.second.start_ms) >= self.point_ms {
            self.turn_second(now_ms);
        }
        now_ms
    }

    #[cold]
    fn turn_second(&mut self, now_ms: u64) {
        // If the clock was set back, stay in the current second: times never go backwards within a run.
        if now_ms < self.second.start_ms {
            return;
        }
        let start_ms = now_ms - now_ms % WINDOW_MS;
        if start_ms == self.start_ms {
            self.close_second();
        } else {
            self.close_window();
            self.start_ms = start_ms;
        }
        self.second.start_ms = now_ms - now_ms % self.point_ms;
    }

    fn close_second(&mut self) {
        let start_ms = self.second.start_ms;
        let mut second = std::mem::replace(&mut self.second, Second { start_ms, ..Second::default() });
        for &at in &self.followed {
            let (Some(slot), Some(name)) = (self.slots.get_mut(at as usize), self.names.get(at as usize)) else {
                continue;
            };
            if slot.count > slot.before {
                second.counts.push((name.clone(), slot.count - slot.before));
                slot.before = slot.count;
            }
        }
        if second.is_empty() {
            return;
        }
        let is_full = self.seconds.len() >= SECONDS_MAX;
        match self.seconds.last_mut() {
            Some(last) if is_full => last.merge(&second),
            _ => self.seconds.push(second),
        }
    }

    fn close_window(&mut self) {
        self.close_second();
        let mut window = Window { start_ms: self.start_ms, stamps: self.stamps, ..Window::default() };
        self.stamps = Stamps::default();
        std::mem::swap(&mut window.own, &mut self.own);
        for at in std::mem::take(&mut self.counters) {
            if let (Some(slot), Some(name)) = (self.slots.get_mut(at as usize), self.names.get(at as usize)) {
                window.counters.push((name.clone(), slot.count));
                (slot.counts, slot.count, slot.before) = (false, 0, 0);
            }
        }
        for at in std::mem::take(&mut self.rates) {
            if let (Some(slot), Some(name)) = (self.slots.get_mut(at as usize), self.names.get(at as usize)) {
                window.rates.push((name.clone(), std::mem::take(&mut slot.rate)));
            }
        }
        for at in std::mem::take(&mut self.sketches) {
            if let (Some(slot), Some(name)) = (self.slots.get_mut(at as usize), self.names.get(at as usize)) {
                window.sketches.push((name.clone(), slot.sketch.take().map_or_else(Sketch::default, |sketch| *sketch)));
            }
        }
        if window.is_empty() {
            return;
        }
        let is_full = self.closed.len() >= CLOSED_MAX;
        match self.closed.last_mut() {
            Some(last) if is_full => last.merge(&window),
            _ => self.closed.push(window),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: u64 = 1_795_186_840_000;

    #[test]
    fn slices_of_ten_seconds_become_windows() {
        let recorder = Recorder::at(T + 8_465);
        let (created, rate) = (recorder.metric("vusers.created"), recorder.metric("http.request_rate"));
        let time = recorder.metric("http.response_time");
        recorder.count(created, 1);
        recorder.rate(rate);
        recorder.set_ms(T + 9_867);
        recorder.sample(time, 3.0);
        recorder.rate(rate);
        assert!(recorder.take(T + 9_999).windows.is_empty());
        recorder.set_ms(T + 10_065);
        recorder.count(created, 2);
        let windows = recorder.take(T + 10_070).windows;
        assert_eq!(windows.len(), 1);
        let window = &windows[0];
        assert_eq!((window.start_ms, &window.counters[..]), (T, &[("vusers.created".into(), 1)][..]));
        assert_eq!(
            window.rates,
            [("http.request_rate".into(), EventRate { count: 2, first_ms: T + 8_465, last_ms: T + 9_867 })]
        );
        assert_eq!((&*window.sketches[0].0, window.sketches[0].1.count), ("http.response_time", 1));
        let stamps = window.stamps;
        assert_eq!((stamps.first_counter, stamps.last_counter), (Some(T + 8_465), Some(T + 8_465)));
        assert_eq!((stamps.first_histogram, stamps.last_histogram), (Some(T + 9_867), Some(T + 9_867)));
        let rest = recorder.take(u64::MAX).windows;
        assert_eq!((rest.len(), rest[0].start_ms, rest[0].counters[0].1), (1, T + 10_000, 2));
    }

    #[test]
    fn zero_makes_a_counter_known_and_order_is_that_of_first_sight() {
        let recorder = Recorder::at(T);
        let names = ["b", "a", "never"].map(|name| recorder.metric(name));
        recorder.count(names[1], 0);
        recorder.count(names[0], 5);
        let window = recorder.take(u64::MAX).windows.remove(0);
        assert_eq!(window.counters, [("a".into(), 0), ("b".into(), 5)]);
    }

    #[test]
    fn names_have_a_bound_and_the_rest_is_counted_together() {
        let recorder = Recorder::at(T);
        for n in 0..NAMES_MAX + 5 {
            recorder.count(recorder.metric(&format!("m{n}")), 1);
        }
        let window = recorder.take(u64::MAX).windows.remove(0);
        assert_eq!(window.counters.len(), NAMES_MAX + 1);
        assert_eq!(window.counters.last(), Some(&(DROPPED_NAMES.into(), 5)));
        let long = "é".repeat(2000);
        assert_eq!(recorder.metric(&long), recorder.metric(&long[..2048]));
    }

    #[test]
    fn seconds_hold_what_came_in_them() {
        let recorder = Recorder::at(T + 500);
        let created = recorder.metric("vusers.created");
        let other = recorder.metric("somebody.else");
        recorder.count(created, 2);
        recorder.count(other, 9);
        recorder.latency(Duration::from_millis(5), Duration::from_millis(4));
        recorder.set_ms(T + 9_100);
        recorder.count(created, 1);
        recorder.set_ms(T + 10_200);
        recorder.count(created, 4);
        let seconds = recorder.take(T + 11_000).seconds;
        let seen: Vec<_> = seconds.iter().map(|s| (s.start_ms - T, s.counts.clone(), s.response.count())).collect();
        let created = |n| vec![("vusers.created".into(), n)];
        assert_eq!(seen, [(0, created(2), 1), (9_000, created(1), 0), (10_000, created(4), 0)]);
        assert!(recorder.take(u64::MAX).seconds.is_empty());
    }

    #[test]
    fn points_may_be_shorter_than_a_second() {
        let recorder = Recorder::at(T + 100);
        recorder.set_point_ms(250);
        let created = recorder.metric("vusers.created");
        recorder.count(created, 1);
        recorder.set_ms(T + 260);
        recorder.count(created, 2);
        recorder.set_ms(T + 1_000);
        let seconds = recorder.take(T + 1_000).seconds;
        assert_eq!(seconds.iter().map(|s| (s.start_ms - T, s.counts[0].1)).collect::<Vec<_>>(), [(0, 1), (250, 2)]);
        let mut merger = Merger::with_point_ms(250);
        merger.add(TakenWindow { windows: Vec::new(), seconds });
        assert_eq!((merger.outcome().point_ms, merger.outcome().points.len()), (250, 2));
    }

    #[test]
    fn a_clock_set_back_changes_no_window() {
        let recorder = Recorder::at(T + 12_000);
        let metric = recorder.metric("a");
        recorder.count(metric, 1);
        recorder.set_ms(T + 2_000);
        recorder.count(metric, 1);
        let windows = recorder.take(u64::MAX).windows;
        assert_eq!((windows.len(), windows[0].counters[0].1), (1, 2));
    }

    #[test]
    fn own_figures_travel_with_the_window() {
        let recorder = Recorder::at(T);
        recorder.lag(Duration::from_millis(2));
        recorder.dropped(3);
        recorder.failure(Step::Connect, "ECONNREFUSED");
        recorder.failure(Step::Connect, "ECONNREFUSED");
        recorder.latency(Duration::from_millis(20), Duration::from_millis(10));
        let own = recorder.take(u64::MAX).windows.remove(0).own;
        assert_eq!((own.dropped, own.lag.count(), own.response.count(), own.service.count()), (3, 1, 1, 1));
        assert_eq!(own.failures.iter().next(), Some((&(Step::Connect, "ECONNREFUSED".into()), &2)));
    }
}
