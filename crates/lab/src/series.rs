//! A block in windows: whether it was warm and steady.

use std::time::Duration;

use serde_json::Value;

use crate::said::{Said, say};
use crate::stats;
use crate::texts;

/// Least number of windows for a statement about warmth or steadiness: five seconds of the usual 250 ms.
const WINDOWS_MIN: usize = 20;
/// The largest probability, by chance, of a drift or step that counts.
const P_MAX: f64 = 0.01;
/// The smallest relative drift or step that spoils a block. Quartets cancel smaller ones.
const DRIFT_MIN: f64 = 0.10;

/// The windows of a report of `weir load`, without the first and the last, which are incomplete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Answers a second of each window.
    pub throughput: Vec<f64>,
    /// The logarithm of the median latency of each window that has one.
    pub log_median: Vec<f64>,
}

impl Series {
    /// The series of a report. `None` if the report has no series.
    pub fn of(report: &Value) -> Option<Series> {
        Series::from(report, 0.0)
    }

    /// The series of a report, from a time of its load on, s.
    pub fn from(report: &Value, from_s: f64) -> Option<Series> {
        let (interval, counts) = answers(report)?;
        let medians = report["weir"]["series"]["response"]["p50"].as_array()?;
        let first = ((from_s / interval).ceil().max(1.0) as usize).min(counts.len());
        let inner = first..counts.len().saturating_sub(1).max(first);
        let throughput = counts.get(inner.clone()).unwrap_or_default().iter().map(|count| count / interval).collect();
        let medians = medians.get(inner).unwrap_or_default().iter().filter_map(Value::as_f64);
        Some(Series { throughput, log_median: medians.filter(|ms| *ms > 0.0).map(f64::ln).collect() })
    }
}

/// The length of a window, s, and the answers in each.
fn answers(report: &Value) -> Option<(f64, Vec<f64>)> {
    let series = &report["weir"]["series"];
    let interval = series["interval_ms"].as_f64().filter(|ms| *ms > 0.0)? / 1000.0;
    let mut counts = vec![0.0; usize::try_from(series["length"].as_u64()?).ok()?];
    for (name, column) in series["counts"].as_object()? {
        let is_answer =
            name.starts_with("http.codes.") || name == "websocket.messages_received" || name == "socketio.emit";
        for (slot, count) in counts.iter_mut().zip(column.as_array().into_iter().flatten()).filter(|_| is_answer) {
            *slot += count.as_f64().unwrap_or(0.0);
        }
    }
    Some((interval, counts))
}

/// Answers a second between two times of a load, s, from the windows that lie between them. `None` if there is none.
pub fn throughput_between(report: &Value, from: f64, to: f64) -> Option<f64> {
    let (interval, counts) = answers(report)?;
    let first = (from / interval).ceil().max(0.0) as usize;
    let between = counts.get(first..((to / interval).floor().max(0.0) as usize).min(counts.len()))?;
    (!between.is_empty()).then(|| between.iter().sum::<f64>() / (between.len() as f64 * interval))
}

/// Answers a second that a load of `offered` requests a second got, which sent for `length`. The time in which the last answers come
/// does not count. If the answers take longer from window to window, then the requests wait in a growing queue: the result is the rate at which the queue is
/// served. `None` without answers.
pub fn answered_rate(report: &Value, offered: f64, length: Duration) -> Option<f64> {
    let answers = report["weir"]["response"]["count"].as_f64().filter(|count| *count > 0.0)?;
    let all = answers / length.as_secs_f64();
    // Of a queue that is served at the rate S, the last request waits longer by (offered - S) / S for each second.
    Some(queue_growth(report, length).map_or(all, |growth| all.min(offered / (1.0 + growth))))
}

/// How much longer the answers take for each second of the load, in seconds, if that is not chance.
fn queue_growth(report: &Value, length: Duration) -> Option<f64> {
    let series = Series::of(report)?;
    let interval = report["weir"]["series"]["interval_ms"].as_f64()? / 1000.0;
    // Behind the load come the slowest answers alone.
    let load = (length.as_secs_f64() / interval) as usize;
    let medians: Vec<f64> = series.log_median.iter().take(load).map(|log| log.exp() / 1000.0).collect();
    let windows = medians.len().checked_sub(1).filter(|windows| *windows >= WINDOWS_MIN)?;
    let trend = stats::mann_kendall(&medians).filter(|trend| trend.p < P_MAX && trend.over_all > 0.0)?;
    Some(trend.over_all / (windows as f64 * interval))
}

/// Whether neither series is still warming up in its second half. Too few windows for a judgement count as warm.
pub fn has_warmed_up(series: &Series) -> bool {
    [&series.throughput, &series.log_median]
        .into_iter()
        .all(|line| line.len() < WINDOWS_MIN || stats::warm_up(line).is_some())
}

/// The drifts and steps that are both large and unlikely by chance, a sentence each.
pub fn unsteady(series: &Series) -> Vec<Said> {
    let middle = stats::median(&series.throughput);
    let lines = [
        (texts::THROUGHPUT, series.throughput.iter().map(|x| x / middle).collect::<Vec<f64>>()),
        (texts::MEDIAN_LATENCY, series.log_median.clone()),
    ];
    let mut found = Vec::new();
    for (name, line) in lines {
        if line.len() < WINDOWS_MIN || line.iter().any(|value| !value.is_finite()) {
            continue;
        }
        let drift = stats::mann_kendall(&line).filter(|trend| trend.p < P_MAX && trend.over_all.abs() >= DRIFT_MIN);
        let step = stats::change_point(&line, 1).filter(|shift| shift.p <= P_MAX && shift.by.abs() >= DRIFT_MIN);
        // A drift also looks like a step. It is reported as a drift if its ends are further apart than the step.
        match (drift, step) {
            (Some(drift), step) if step.is_none_or(|step| step.by.abs() < drift.over_all.abs()) => {
                found.push(say!(DRIFTED, name.with(&[]), format!("{:+.0}", drift.over_all * 100.0)));
            }
            (_, Some(step)) => {
                let part = step.at as f64 / line.len() as f64 * 100.0;
                let by = format!("{:+.0}", step.by * 100.0);
                found.push(say!(STEPPED, name.with(&[]), by, format!("{part:.0}")));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::stats::chance::normal;
    use serde_json::json;

    fn report(counts: &[f64]) -> Value {
        json!({"weir": {"series": {
            "interval_ms": 250, "length": counts.len(), "counts": {"http.codes.200": counts, "http.requests": counts},
            "response": {"p50": counts.iter().map(|count| 100.0 / count).collect::<Vec<_>>()},
        }}})
    }

    fn counts(shape: fn(usize) -> f64) -> Vec<f64> {
        let mut rng = fastrand::Rng::with_seed(4);
        (0..82).map(|at| (250.0 * shape(at) * (1.0 + 0.02 * normal(&mut rng))).round()).collect()
    }

    #[test]
    fn the_ends_are_left_out_and_answers_counted_once() {
        let series = Series::of(&report(&[1.0, 10.0, 20.0, 3.0])).unwrap();
        assert_eq!(series.throughput, [40.0, 80.0]);
        assert!((series.log_median[0] - 10f64.ln()).abs() < 1e-12);
        assert_eq!(Series::of(&json!({"weir": {"series": null}})), None);
        let later = |from_s| Series::from(&report(&[1.0, 10.0, 20.0, 3.0]), from_s).unwrap().throughput;
        assert_eq!((later(0.1), later(0.3), later(9.0)), (vec![40.0, 80.0], vec![80.0], vec![]));
    }

    #[test]
    fn steady_blocks_pass_and_others_are_named() {
        let of = |shape| Series::of(&report(&counts(shape))).unwrap();
        assert_eq!(unsteady(&of(|_| 1.0)), Vec::<Said>::new());
        let drifting = unsteady(&of(|at| 1.0 - 0.004 * at as f64));
        assert!(drifting[0].starts_with("throughput drifted by -3"), "{drifting:?}");
        let stepping = unsteady(&of(|at| if at < 41 { 1.0 } else { 0.7 }));
        assert!(stepping[0].starts_with("throughput stepped by -") && stepping.len() == 2, "{stepping:?}");
        assert_eq!(unsteady(&of(|at| 1.0 - 0.0005 * at as f64)), Vec::<Said>::new(), "too small to matter");
        assert!(has_warmed_up(&of(|_| 1.0)) && !has_warmed_up(&of(|at| (at as f64 + 1.0).powi(2))));
        assert!(has_warmed_up(&Series::default()) && unsteady(&Series::default()).is_empty());
    }

    #[test]
    fn slow_answers_are_as_many_and_a_queue_is_told_by_its_growth() {
        let mut rng = fastrand::Rng::with_seed(6);
        // 10 s of 100 requests a second. The last answers come 2 s later.
        let mut load = |ms: &dyn Fn(f64) -> f64| {
            let medians: Vec<f64> =
                (0..42).map(|at| ms(f64::from(at) * 0.25) * (1.0 + 0.05 * normal(&mut rng))).collect();
            json!({"weir": {"response": {"count": 1000}, "series": {
                "interval_ms": 250, "length": 42, "counts": {"http.codes.200": vec![24; 42]}, "response": {"p50": medians},
            }}})
        };
        let rate = |report: &Value| answered_rate(report, 100.0, Duration::from_secs(10)).unwrap();
        assert_eq!(rate(&load(&|_| 1_800.0)), 100.0);
        assert_eq!(rate(&load(&|second| 300.0 - 10.0 * second)), 100.0, "it becomes warm");
        let queue = rate(&load(&|second| 20.0 + second * 1000.0 * (100.0 / 80.0 - 1.0)));
        assert!((78.0..82.0).contains(&queue), "80 are served: {queue}");
    }

    /// Five requests a second over 32 connections: for 6.4 s, each opens one.
    #[test]
    fn requests_that_open_a_connection_are_no_step() {
        let mut rng = fastrand::Rng::with_seed(5);
        let medians: Vec<f64> =
            (0..82).map(|at| (if at < 26 { 1.8 } else { 1.4 }) * (1.0 + 0.05 * normal(&mut rng))).collect();
        let mut report = report(&[1.0; 82]);
        report["weir"]["series"]["response"]["p50"] = json!(medians);
        let steps = |from_s| unsteady(&Series::from(&report, from_s).unwrap());
        assert!(steps(0.0).iter().any(|why| why.starts_with("the median latency ")), "{:?}", steps(0.0));
        assert_eq!(steps(6.4), Vec::<Said>::new());
    }
}
