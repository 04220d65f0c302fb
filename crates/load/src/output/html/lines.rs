//! The data of a report over time: by the second from weir's part, or by the period if there is only Artillery's
//! part.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_words::Language;

use super::chart::clock;

/// Length of a period in Artillery's reports.
const PERIOD_MS: f64 = 10_000.0;
/// Most places of a report; more are left out. weir's reports have 600.
const PLACES_MAX: usize = 10_000;

/// A place that the run covers for less than this share gives no rate.
const PART_MIN: f64 = 0.25;

/// Four quantiles over time, ms; empty if there are none.
pub type Four = Vec<Vec<Option<f64>>>;

/// Columns of equal length, evenly spaced.
#[derive(Default)]
pub struct Lines {
    pub start_ms: f64,
    pub step_ms: f64,
    pub length: usize,
    /// Counters by name, per second.
    pub counts: BTreeMap<String, Vec<f64>>,
    /// p50, p90, p99, max for weir; p50, p95, p99, max for Artillery.
    pub response: Four,
    /// The same quantiles; only weir has them.
    pub service: Four,
    /// Virtual users that were active at the end of each place.
    pub active: Option<Vec<Option<f64>>>,
}

impl Lines {
    /// The data of a report; `None` if it has no period.
    pub fn of(report: &Value) -> Option<Lines> {
        let weir = &report["weir"];
        let is_own = weir["series"].is_object();
        let mut lines = match is_own {
            true => Lines::of_series(&weir["series"])?,
            false => Lines::of_periods(report["intermediate"].as_array()?)?,
        };
        lines.active = lines.count_active();
        if is_own {
            lines.mend_ends(weir["started_ms"].as_f64(), weir["ended_ms"].as_f64());
        }
        Some(lines)
    }

    /// Artillery's response times by period; `None` if there are none.
    pub fn artillerys(report: &Value) -> Option<Lines> {
        Lines::of_periods(report["intermediate"].as_array()?).filter(|lines| !lines.response.is_empty())
    }

    /// The run covers its first and last place only partly. Rates are computed for that part, or left out if it is
    /// too short.
    fn mend_ends(&mut self, started_ms: Option<f64>, ended_ms: Option<f64>) {
        let last = self.length.saturating_sub(1);
        let last_ms = self.start_ms + last as f64 * self.step_ms;
        let first_part = started_ms.map_or(1.0, |at| (self.start_ms + self.step_ms - at) / self.step_ms);
        let last_part = ended_ms.map_or(1.0, |at| (at - last_ms) / self.step_ms);
        for (at, part) in [(0, first_part), (last, last_part)].into_iter().filter(|_| last > 0) {
            for column in self.counts.values_mut() {
                if let Some(slot) = column.get_mut(at).filter(|_| (0.0..1.0).contains(&part)) {
                    *slot = if part >= PART_MIN { *slot / part } else { f64::NAN };
                }
            }
        }
    }

    fn of_series(series: &Value) -> Option<Lines> {
        let step_ms = series["interval_ms"].as_f64().filter(|step| *step > 0.0)?;
        let length = usize::try_from(series["length"].as_u64()?).ok()?.min(PLACES_MAX);
        let seconds = step_ms / 1000.0;
        let counts = series["counts"].as_object()?.iter();
        let column =
            |values: &Value| values.as_array().map(|values| values.iter().take(length).map(Value::as_f64).collect());
        let four = |key: &str| -> Vec<Vec<Option<f64>>> {
            ["p50", "p90", "p99", "max"].iter().filter_map(|name| column(&series[key][*name])).collect()
        };
        Some(Lines {
            start_ms: series["start_ms"].as_f64()?,
            step_ms,
            length,
            counts: counts
                .map(|(name, values)| {
                    let values: Vec<Option<f64>> = column(values).unwrap_or_default();
                    (name.clone(), values.into_iter().map(|value| value.unwrap_or(0.0) / seconds).collect())
                })
                .collect(),
            response: four("response"),
            service: four("service"),
            active: None,
        })
    }

    fn of_periods(periods: &[Value]) -> Option<Lines> {
        let start = |period: &Value| period["period"].as_str().and_then(|text| text.parse::<f64>().ok());
        let (first, last) = (start(periods.first()?)?, start(periods.last()?)?);
        let length = (((last - first) / PERIOD_MS) as usize).min(PLACES_MAX - 1) + 1;
        let mut lines = Lines { start_ms: first, step_ms: PERIOD_MS, length, ..Lines::default() };
        let mut times = vec![vec![None; length]; 4];
        for period in periods {
            let Some(at) = start(period).map(|start| ((start - first) / PERIOD_MS) as usize).filter(|at| *at < length)
            else {
                continue;
            };
            for (name, count) in period["counters"].as_object().into_iter().flatten() {
                let column = lines.counts.entry(name.clone()).or_insert_with(|| vec![0.0; length]);
                if let (Some(slot), Some(count)) = (column.get_mut(at), count.as_f64()) {
                    *slot += count / (PERIOD_MS / 1000.0);
                }
            }
            let names = ["http.response_time", "socketio.response_time"];
            if let Some(summary) =
                names.iter().map(|name| &period["summaries"][*name]).find(|summary| summary.is_object())
            {
                for (column, figure) in times.iter_mut().zip(["p50", "p95", "p99", "max"]) {
                    if let Some(slot) = column.get_mut(at) {
                        *slot = summary[figure].as_f64();
                    }
                }
            }
        }
        if times.iter().flatten().any(Option::is_some) {
            lines.response = times;
        }
        Some(lines)
    }

    /// A counter per second; `None` if it was always zero.
    pub fn rate(&self, name: &str) -> Option<&Vec<f64>> {
        self.counts.get(name)
    }

    /// Counters with this prefix, by the rest of their names.
    pub fn rates(&self, prefix: &str) -> Vec<(String, &Vec<f64>)> {
        let counts =
            self.counts.iter().filter_map(|(name, values)| Some((name.strip_prefix(prefix)?.to_owned(), values)));
        counts.collect()
    }

    fn count_active(&self) -> Option<Vec<Option<f64>>> {
        let created = self.rate("vusers.created")?;
        let ended = ["vusers.completed", "vusers.failed"].map(|name| self.rate(name));
        let seconds = self.step_ms / 1000.0;
        let mut active = 0.0;
        Some(
            (0..self.length)
                .map(|at| {
                    let gone: f64 = ended.iter().flatten().filter_map(|column| column.get(at)).sum();
                    let arrived = created.get(at).copied().unwrap_or(0.0);
                    active += (arrived - gone) * seconds;
                    Some(active.round().max(0.0))
                })
                .collect(),
        )
    }

    /// The label of each place.
    pub fn labels(&self, language: Language) -> Vec<String> {
        (0..self.length).map(|at| clock(at as f64 * self.step_ms / 1000.0, language)).collect()
    }

    /// Seconds from the first place to the last.
    pub fn seconds(&self) -> f64 {
        self.length.saturating_sub(1) as f64 * self.step_ms / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn periods_of_artillery_make_lines() {
        let period = |start: &str, created: u64, p99: f64| json!({"period": start, "counters": {"vusers.created": created, "vusers.completed": 5}, "summaries": {"http.response_time": {"p50": 1, "p95": 2, "p99": p99, "max": 9}}});
        let report = json!({"aggregate": {}, "intermediate": [period("10000", 20, 3.0), period("30000", 5, 4.0)]});
        let lines = Lines::of(&report).unwrap();
        assert_eq!((lines.length, lines.rate("vusers.created")), (3, Some(&vec![2.0, 0.0, 0.5])));
        assert_eq!(lines.response[2], [Some(3.0), None, Some(4.0)]);
        assert_eq!(lines.active, Some(vec![Some(15.0), Some(15.0), Some(15.0)]));
        assert!(Lines::of(&json!({"intermediate": []})).is_none());
    }

    #[test]
    fn a_report_that_lies_about_its_length_is_bounded() {
        let report =
            json!({"weir": {"series": {"start_ms": 0, "interval_ms": 1000, "length": u64::MAX, "counts": {"a": [1]}}}});
        assert_eq!(Lines::of(&report).map(|lines| lines.length), Some(PLACES_MAX));
        let far = json!({"intermediate": [{"period": "0"}, {"period": "99999999999999"}]});
        assert_eq!(Lines::of(&far).map(|lines| lines.length), Some(PLACES_MAX));
    }
}
