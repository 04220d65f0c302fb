//! The course of a block in windows of the load: what the client saw in each, and what the processes used.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::good::GoodStatuses;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::stats;
use crate::watch::{Beat, Pulse};

/// If the machine's clock and the clock of the samples differ by more than this between two samples, the first jumped, ms.
const JUMP_MS: i128 = 1000;
/// A pulse belongs to a window if they share at least this part of the shorter of the two.
const SHARED_MIN: f64 = 0.4;
/// Most windows of a course.
const WINDOWS_MAX: usize = 4096;
/// Windows that a stored run keeps: of a longer block, the findings are enough.
const STORED_MAX: usize = 240;

/// The windows of a block, except the first, in which connections are opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Course {
    /// The length of a window, s.
    pub step_s: f64,
    /// The client's figures.
    pub windows: Vec<Window>,
    /// The resources that each process used, by its name; `None` if they are not known.
    pub lanes: BTreeMap<String, Vec<Option<Beat>>>,
    /// Share of all CPUs that the hypervisor took.
    pub steal: Vec<f64>,
    /// Heads of answers that servers of upstreams sent, in the slowest pulse of the window, as if it had the window's length.
    pub heads: Vec<Option<f64>>,
    /// Bits a second of the busiest device of each host.
    pub bits: BTreeMap<String, Vec<f64>>,
}

/// The client's figures of one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Requests sent.
    pub sent: f64,
    /// Answers with any status.
    pub answered: f64,
    /// Failed requests.
    pub failed: f64,
    /// p50, p95 and maximum of the answers, ms.
    pub ms: Option<[f64; 3]>,
}

impl Course {
    /// Whether a stored run does without it.
    pub fn is_long(&self) -> bool {
        self.windows.len() > STORED_MAX
    }

    /// Seconds from the beginning of the load to the beginning of a window.
    pub fn at_s(&self, window: usize) -> f64 {
        (window + 1) as f64 * self.step_s
    }

    /// A figure of a process in each window.
    pub fn lane(&self, process: &str, of: impl Fn(&Beat) -> f64) -> Vec<Option<f64>> {
        let lane = self.lanes.get(process).into_iter().flatten();
        lane.map(|beat| beat.as_ref().map(&of)).collect()
    }

    /// The quantile that shows a window's slow answers, ms. In a closed loop, few requests of a window are slow: as many as connections.
    pub fn slow(&self, is_closed: bool) -> Vec<Option<f64>> {
        let at = if is_closed { 2 } else { 1 };
        self.windows.iter().map(|window| window.ms.map(|ms| ms[at])).collect()
    }
}

/// The course of a block, and a sentence if the two clocks cannot be compared; the course is then empty.
pub fn course(pulses: &[Pulse], report: &Value, length_s: f64, good: &GoodStatuses) -> (Course, Option<Said>) {
    if let Some((at_ms, by_ms)) = jump(pulses) {
        let (by, at) = (digits(by_ms.unsigned_abs() as f64 / 1000.0), digits(at_ms as f64 / 1000.0));
        return (Course::default(), Some(say!(CLOCK_JUMPED, by, at)));
    }
    (of(pulses, &report["weir"]["series"], length_s, good).unwrap_or_default(), None)
}

/// The time of the largest jump of the machine's clock, and its size, ms.
fn jump(pulses: &[Pulse]) -> Option<(u64, i128)> {
    let drift = |pair: &[Pulse]| {
        let (then, now) = (pair.first()?, pair.last()?);
        let wall = i128::from(now.wall_ms) - i128::from(then.wall_ms);
        Some((now.at_ms, wall - (i128::from(now.at_ms) - i128::from(then.at_ms))))
    };
    let most = pulses.windows(2).filter_map(drift).max_by_key(|(_, by)| by.unsigned_abs())?;
    (most.1.unsigned_abs() > JUMP_MS.unsigned_abs()).then_some(most)
}

fn of(pulses: &[Pulse], series: &Value, length_s: f64, good: &GoodStatuses) -> Option<Course> {
    let step_ms = series["interval_ms"].as_f64().filter(|ms| *ms > 0.0)?;
    let start_ms = series["start_ms"].as_f64()?;
    let counts = series["counts"].as_object()?;
    let all = (length_s * 1000.0 / step_ms).floor().clamp(0.0, WINDOWS_MAX as f64) as usize;
    let sum = |wanted: &dyn Fn(&str) -> bool, at: usize| -> f64 {
        counts.iter().filter(|(name, _)| wanted(name)).filter_map(|(_, column)| column[at].as_f64()).sum()
    };
    let status = |name: &str| name.strip_prefix("http.codes.")?.parse::<u16>().ok();
    let window = |at: usize| Window {
        sent: sum(&|name| name == "http.requests", at),
        answered: sum(&|name| status(name).is_some(), at),
        failed: sum(&|name| name.starts_with("errors.") || status(name).is_some_and(|code| !good.has(code)), at),
        ms: {
            let of = |name: &str| series["response"][name][at].as_f64().filter(|ms| ms.is_finite());
            of("p50").zip(of("p95")).zip(of("max")).map(|((p50, p95), max)| [p50, p95, max])
        },
    };
    // The first window is cut, and has the start of the load.
    let inner = 1..all;
    let shared = |pulse: &Pulse, at: usize| {
        let (from, end) = (start_ms + at as f64 * step_ms, pulse.wall_ms as f64);
        let (begin, to) = (end - pulse.span_ms as f64, from + step_ms);
        (end.min(to) - begin.max(from)).max(0.0)
    };
    let own = |at: usize| {
        let is_own = move |pulse: &&Pulse| shared(pulse, at) >= SHARED_MIN * step_ms.min(pulse.span_ms as f64);
        pulses.iter().filter(move |pulse| pulse.span_ms > 0).filter(is_own)
    };
    let names: BTreeSet<&String> = pulses.iter().flat_map(|pulse| pulse.processes.keys()).collect();
    let beat = |name: &String, at: usize| {
        let joined = |sum: Option<(Beat, u64)>, pulse: &Pulse| {
            let Some(beat) = pulse.processes.get(name) else { return sum };
            Some(match sum {
                Some((mut known, span)) => {
                    known.join(beat, (span, pulse.span_ms));
                    (known, span.saturating_add(pulse.span_ms))
                }
                None => (beat.clone(), pulse.span_ms),
            })
        };
        own(at).fold(None, joined).map(|(beat, _)| beat)
    };
    let hosts: BTreeSet<&String> = pulses.iter().flat_map(|pulse| pulse.bits.keys()).collect();
    let most = |of: &dyn Fn(&Pulse) -> f64, at: usize| own(at).map(of).fold(0.0, f64::max);
    let heads = |at: usize| {
        let parts = own(at).filter_map(|pulse| Some(pulse.heads? as f64 * step_ms / pulse.span_ms as f64));
        parts.reduce(f64::min)
    };
    Some(Course {
        step_s: step_ms / 1000.0,
        windows: inner.clone().map(window).collect(),
        lanes: names.into_iter().map(|name| (name.clone(), inner.clone().map(|at| beat(name, at)).collect())).collect(),
        steal: inner.clone().map(|at| most(&|pulse| pulse.steal, at)).collect(),
        heads: inner.clone().map(heads).collect(),
        bits: hosts
            .into_iter()
            .map(|host| {
                let of = |pulse: &Pulse| pulse.bits.get(host).copied().unwrap_or(0.0);
                (host.clone(), inner.clone().map(|at| most(&of, at)).collect())
            })
            .collect(),
    })
}

/// The middle of the known values; `None` without any.
pub fn middle(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = values.flatten().filter(|value| value.is_finite()).collect();
    (!known.is_empty()).then(|| stats::median(&known))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pulse(number: u64) -> Pulse {
        let cpu = if number % 8 < 2 { 0.9 } else { 0.1 };
        let beat = Beat { cpu, cpu_most: cpu, ..Beat::default() };
        Pulse {
            at_ms: (number + 1) * 250,
            wall_ms: 70_000 + (number + 1) * 250,
            span_ms: 250,
            processes: [("batch".to_owned(), beat)].into(),
            heads: Some(number),
            ..Pulse::default()
        }
    }

    fn report() -> Value {
        json!({"weir": {"series": {"start_ms": 70_500, "interval_ms": 250, "length": 9,
            "counts": {"http.requests": [5, 5, 5, 5, 5, 5, 5, 5, 0], "http.codes.200": [4, 5, 5, 5, 3, 5, 5, 5, 1], "errors.ETIMEDOUT": [0, 0, 0, 0, 2, 0, 0, 0, 0]},
            "response": {"p50": [1, 2, 3, null, 5, 6, 7, 8, 9], "p95": [1, 2, 3, null, 50, 6, 7, 8, 9], "max": [1, 2, 3, null, 90, 6, 7, 8, 9]}}}})
    }

    #[test]
    fn windows_have_what_was_used_in_them() {
        let pulses: Vec<Pulse> = (0..16).map(pulse).collect();
        let (course, said) = course(&pulses, &report(), 2.0, &GoodStatuses::default());
        assert_eq!((said, course.windows.len(), course.step_s), (None, 7, 0.25));
        // The load begins with the third pulse, and its first window does not count.
        let cpu = course.lane("batch", |beat| beat.cpu_most);
        assert_eq!(cpu, [0.1, 0.1, 0.1, 0.1, 0.1, 0.9, 0.9].map(Some));
        assert_eq!(course.heads[0], Some(3.0));
        assert_eq!((course.windows[3].failed, course.windows[3].ms), (2.0, Some([5.0, 50.0, 90.0])));
        assert_eq!((course.windows[2].ms, course.at_s(0)), (None, 0.25));
    }

    #[test]
    fn a_clock_that_jumps_is_named_and_nothing_is_compared() {
        let mut pulses: Vec<Pulse> = (0..16).map(pulse).collect();
        pulses.iter_mut().skip(6).for_each(|pulse| pulse.wall_ms += 5_000);
        let (course, said) = course(&pulses, &report(), 2.0, &GoodStatuses::default());
        assert!(course.windows.is_empty());
        assert!(said.unwrap().starts_with("this machine's clock jumped by 5.00 s after 1.75 s"));
    }
}
