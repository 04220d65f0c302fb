//! Merges the windows of all workers into periods, the whole run, and lines over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;

use super::glance::Glance;
use super::hdr::Hdr;
use super::sketch::{Sketch, Summary, round};
use super::window::{EventRate, OwnMeasurements, POINT_MS, Second, Stamps, TakenWindow, WINDOW_MS, Window};

/// Most points of the lines over time; above it, neighbours are merged and each point covers twice the time.
const POINTS_MAX: u64 = 600;

/// Merges the counts of workers; reads no clock.
#[derive(Debug)]
pub struct Merger {
    /// Periods to which workers may still add.
    open: BTreeMap<u64, Window>,
    closed: Vec<Period>,
    counters: IndexMap<Arc<str>, u64>,
    rates: IndexMap<Arc<str>, f64>,
    sketches: IndexMap<Arc<str>, Sketch>,
    stamps: Stamps,
    own: OwnMeasurements,
    points: BTreeMap<u64, Second>,
    point_ms: u64,
}

impl Default for Merger {
    fn default() -> Merger {
        Merger {
            open: BTreeMap::new(),
            closed: Vec::new(),
            counters: IndexMap::new(),
            rates: IndexMap::new(),
            sketches: IndexMap::new(),
            stamps: Stamps::default(),
            own: OwnMeasurements::default(),
            points: BTreeMap::new(),
            point_ms: POINT_MS,
        }
    }
}

impl Merger {
    /// A merger whose points cover this many ms at first.
    pub fn with_point_ms(point_ms: u64) -> Merger {
        Merger { point_ms: point_ms.max(1), ..Merger::default() }
    }

    /// Adds the counts of a worker. Counts for a closed period are added only to the whole; the start of that period
    /// is returned, for a warning.
    pub fn add(&mut self, taken: TakenWindow) -> Vec<u64> {
        let mut late = Vec::new();
        for window in taken.windows {
            self.own.merge(&window.own);
            if self.closed.last().is_some_and(|last| window.start_ms <= last.start_ms) {
                late.push(window.start_ms);
                self.add_to_whole(&window);
            } else {
                self.open.entry(window.start_ms).or_default().merge(&window);
            }
        }
        for second in &taken.seconds {
            self.add_second(second);
        }
        late
    }

    /// Closes the periods that ended before a moment, in order; all with `u64::MAX`. Call it only after every worker
    /// has reported up to that moment or later.
    pub fn close(&mut self, at_ms: u64) -> &[Period] {
        let from = self.closed.len();
        while let Some(entry) = self.open.first_entry() {
            if entry.key().saturating_add(WINDOW_MS) > at_ms {
                break;
            }
            let (start_ms, window) = entry.remove_entry();
            self.add_to_whole(&window);
            let period = Period::of(start_ms, &window);
            for (name, rate) in &period.rates {
                *self.rates.entry(name.clone()).or_default() += rate;
            }
            self.closed.push(period);
        }
        self.closed.get(from..).unwrap_or_default()
    }

    /// All results so far; counts of open periods are only in `own` and in the lines.
    pub fn outcome(&self) -> RunResults {
        let count = self.closed.len().max(1) as f64;
        let whole = Period {
            start_ms: self.closed.last().map_or(0, |period| period.start_ms),
            counters: self.counters.clone(),
            rates: self.rates.iter().map(|(name, sum)| (name.clone(), round(sum / count))).collect(),
            summaries: self.sketches.iter().map(|(name, sketch)| (name.clone(), sketch.summary())).collect(),
            stamps: self.stamps,
            response: Figures::of(&self.own.response),
            service: Figures::of(&self.own.service),
        };
        let points = self.points.iter().map(|(&start_ms, second)| Point::of(start_ms, second)).collect();
        RunResults { whole, periods: self.closed.clone(), own: self.own.clone(), points, point_ms: self.point_ms }
    }

    /// weir's own figures so far.
    pub fn own(&self) -> &OwnMeasurements {
        &self.own
    }

    /// Current length of a point in the lines, ms.
    pub fn point_ms(&self) -> u64 {
        self.point_ms
    }

    /// The last complete point of the lines at a moment, for a live view.
    pub fn last_point(&self, now_ms: u64) -> Option<Point> {
        let end = now_ms.saturating_sub(self.point_ms);
        self.points.range(..=end).next_back().map(|(&start_ms, second)| Point::of(start_ms, second))
    }

    /// The sum of a counter over the lines: up to the last second taken.
    pub fn counted(&self, name: &str) -> u64 {
        let counts = self.points.values().flat_map(|second| &second.counts);
        counts.filter(|(known, _)| &**known == name).map(|(_, count)| count).sum()
    }

    /// The sums of counters with this prefix, by the rest of their names.
    pub fn counted_after(&self, prefix: &str) -> Vec<(String, u64)> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (name, count) in self.points.values().flat_map(|second| &second.counts) {
            if let Some(rest) = name.strip_prefix(prefix) {
                *sums.entry(rest).or_default() += count;
            }
        }
        sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect()
    }

    fn add_to_whole(&mut self, window: &Window) {
        for (name, count) in &window.counters {
            *self.counters.entry(name.clone()).or_default() += count;
        }
        for (name, sketch) in &window.sketches {
            self.sketches.entry(name.clone()).or_default().merge(sketch);
        }
        self.stamps.merge(window.stamps);
    }

    /// The number of points that the lines would have without gaps.
    fn points_span(&self) -> u64 {
        match (self.points.first_key_value(), self.points.last_key_value()) {
            (Some((first, _)), Some((last, _))) => (last - first) / self.point_ms + 1,
            _ => 0,
        }
    }

    fn add_second(&mut self, second: &Second) {
        let start_ms = second.start_ms - second.start_ms % self.point_ms;
        self.points.entry(start_ms).or_default().merge(second);
        while self.points_span() > POINTS_MAX {
            self.point_ms *= 2;
            for (start_ms, second) in std::mem::take(&mut self.points) {
                self.points.entry(start_ms - start_ms % self.point_ms).or_default().merge(&second);
            }
        }
    }
}

/// All results of a run.
#[derive(Clone, Debug, Default)]
pub struct RunResults {
    /// Artillery's aggregate.
    pub whole: Period,
    /// The periods, in order of time.
    pub periods: Vec<Period>,
    /// Figures that Artillery does not have.
    pub own: OwnMeasurements,
    /// Lines over time; seconds without any event are absent.
    pub points: Vec<Point>,
    /// Length of a point.
    pub point_ms: u64,
}

/// A period of the report, or the whole run, with Artillery's figures.
#[derive(Clone, Debug, Default)]
pub struct Period {
    /// Start, ms since 1970; for the whole run, the start of its last period.
    pub start_ms: u64,
    /// Counters, in order of first use.
    pub counters: IndexMap<Arc<str>, u64>,
    /// Events a second, whole numbers.
    pub rates: IndexMap<Arc<str>, f64>,
    /// Histograms.
    pub summaries: IndexMap<Arc<str>, Summary>,
    /// First and last times of events.
    pub stamps: Stamps,
    /// Latencies from the intended start.
    pub response: Figures,
    /// Latencies from the send.
    pub service: Figures,
}

impl Period {
    /// A counter's sum; 0 if there is no such counter.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    fn of(start_ms: u64, window: &Window) -> Period {
        let rate = |(name, rate): &(Arc<str>, EventRate)| (name.clone(), rate.per_second());
        Period {
            start_ms,
            counters: window.counters.iter().cloned().collect(),
            rates: window.rates.iter().map(rate).collect(),
            summaries: window.sketches.iter().map(|(name, sketch)| (name.clone(), sketch.summary())).collect(),
            stamps: window.stamps,
            response: Figures::of(&window.own.response),
            service: Figures::of(&window.own.service),
        }
    }
}

/// Figures of latencies, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Figures {
    pub count: u64,
    pub min: f64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Figures {
    /// The figures of a histogram.
    pub fn of(hdr: &Hdr) -> Figures {
        let ms = |time: std::time::Duration| (time.as_nanos() as f64 / 1000.0).round() / 1000.0;
        Figures {
            count: hdr.count(),
            min: ms(hdr.min()),
            mean: ms(hdr.mean()),
            p50: ms(hdr.quantile(0.5)),
            p90: ms(hdr.quantile(0.9)),
            p95: ms(hdr.quantile(0.95)),
            p99: ms(hdr.quantile(0.99)),
            p999: ms(hdr.quantile(0.999)),
            max: ms(hdr.max()),
        }
    }
}

/// A point of the lines over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Start, ms since 1970.
    pub start_ms: u64,
    /// Increases of counters.
    pub counts: Vec<(Arc<str>, u64)>,
    /// p50, p90, p95, p99 and max of the response latency in ms, within 3 %; `None` if there was no response.
    pub response: Option<[f64; 5]>,
    /// The same quantiles of the service latency.
    pub service: Option<[f64; 5]>,
}

impl Point {
    fn of(start_ms: u64, second: &Second) -> Point {
        let counts = second.counts.clone();
        Point { start_ms, counts, response: quantiles(&second.response), service: quantiles(&second.service) }
    }
}

fn quantiles(glance: &Glance) -> Option<[f64; 5]> {
    let at = |quantile| glance.quantile_ms(quantile);
    Some([at(0.5)?, at(0.9)?, at(0.95)?, at(0.99)?, at(1.0)?])
}

#[cfg(test)]
mod tests {
    use super::super::{Recorder, TakenWindow};
    use super::*;
    use std::time::Duration;

    const T: u64 = 1_795_186_840_000;

    /// The data of `samples-refused` in the reference: 8 requests in one period, 7 in the next, 6/sec each.
    fn refused(merger: &mut Merger, recorders: &[Recorder]) {
        for n in 0..15u64 {
            let recorder = &recorders[n as usize % recorders.len()];
            // 200 ms apart; the ninth request is in the second period.
            recorder.set_ms(T + 8_465 + n * 200);
            recorder.rate(recorder.metric("http.request_rate"));
            recorder.count(recorder.metric("http.requests"), 1);
        }
        for recorder in recorders {
            merger.add(recorder.take(u64::MAX));
        }
    }

    #[test]
    fn rates_are_those_of_one_worker_whatever_their_number() {
        for workers in [1, 2, 5] {
            let recorders: Vec<_> = (0..workers).map(|_| Recorder::at(T)).collect();
            let mut merger = Merger::default();
            refused(&mut merger, &recorders);
            let periods: Vec<_> =
                merger.close(u64::MAX).iter().map(|p| (p.counter("http.requests"), p.rates[0])).collect();
            assert_eq!(periods, [(8, 6.0), (7, 6.0)], "{workers}");
            let whole = merger.outcome().whole;
            assert_eq!((whole.counter("http.requests"), whole.rates[0], whole.start_ms), (15, 6.0, T + 10_000));
            assert_eq!((whole.stamps.first(), whole.stamps.last()), (Some(T + 8_465), Some(T + 11_265)));
        }
    }

    #[test]
    fn the_rate_of_the_whole_is_the_mean_of_all_periods() {
        let recorder = Recorder::at(T);
        let (rate, other) = (recorder.metric("r"), recorder.metric("c"));
        (0..27).for_each(|_| recorder.rate(rate));
        recorder.set_ms(T + 10_000);
        recorder.count(other, 1);
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        // The mean of 27 and 0 is 13.5; halves are rounded up.
        assert_eq!(merger.outcome().whole.rates["r"], 14.0);
    }

    #[test]
    fn periods_close_when_they_are_over() {
        let recorder = Recorder::at(T + 1);
        let metric = recorder.metric("a");
        recorder.count(metric, 1);
        let mut merger = Merger::default();
        merger.add(recorder.take(T + 10_000));
        assert_eq!(merger.close(T + 9_999).len(), 0);
        assert_eq!(merger.close(T + 10_000).len(), 1);
        assert_eq!(merger.close(u64::MAX).len(), 0);
        // Counts of a late worker are in the whole and not in the period.
        let late = Recorder::at(T + 2);
        late.count(late.metric("a"), 5);
        assert_eq!(merger.add(late.take(u64::MAX)), [T]);
        let outcome = merger.outcome();
        assert_eq!((outcome.whole.counter("a"), outcome.periods[0].counter("a")), (6, 1));
    }

    #[test]
    fn lines_over_time_have_a_bound() {
        let mut merger = Merger::default();
        for n in 0..5_000u64 {
            let counts = vec![("http.requests".into(), 2)];
            let mut second = Second { start_ms: n * 1000, counts, ..Second::default() };
            second.response.add(Duration::from_millis(7));
            merger.add(TakenWindow { seconds: vec![second], ..TakenWindow::default() });
        }
        assert_eq!(merger.counted("http.requests"), 10_000);
        let outcome = merger.outcome();
        assert_eq!(outcome.point_ms, 16_000);
        assert!(outcome.points.len() as u64 <= POINTS_MAX);
        assert_eq!(outcome.points[1].counts, [("http.requests".into(), 32)]);
        assert!(outcome.points[1].response.is_some_and(|[p50, ..]| (p50 - 7.0).abs() < 0.3));
        assert_eq!(merger.last_point(16_000 * 3).map(|p| p.start_ms), Some(32_000));
    }
}
