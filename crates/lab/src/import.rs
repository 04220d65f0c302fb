//! Imports runs that were made elsewhere: reports of `weir load`, Artillery 2 and Artillery 1 become blocks of a
//! comparison without pairs.

use serde_json::{Map, Value, json};

use crate::block::{Block, BlockSettings, sum};
use crate::said::{Said, say};
use crate::schedule::ComparedSide;
use crate::series::Series;

/// A report that was read.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Its file.
    pub name: String,
    /// The program that wrote it: `weir load`, `Artillery 2`, `Artillery 1`.
    pub by: &'static str,
    /// Its figures.
    pub block: Block,
    /// Its throughput in windows, which shows the variation within the run.
    pub windows: Vec<f64>,
}

/// Reads a report. The error names the file and the fault.
pub fn read(name: &str, text: &str, number: usize, arm: ComparedSide) -> Result<Imported, Said> {
    let report: Value = serde_json::from_str(text).map_err(|error| say!(ERR_FILE, name, error.to_string()))?;
    let aggregate = &report["aggregate"];
    let (by, load) = match () {
        () if report["weir"].is_object() => ("weir load", report.clone()),
        () if aggregate["counters"].as_object().is_some_and(|counters| !counters.is_empty()) => {
            ("Artillery 2", of_second(&report))
        }
        () if aggregate["codes"].is_object() => ("Artillery 1", of_first(aggregate)),
        () => {
            return Err(say!(ERR_NO_REPORT, name));
        }
    };
    // Other work on that machine and the edge's use of it are unknown.
    let block = Block::imported(&json!({"load": load, "usage": {}}), number, arm, 0, BlockSettings::default());
    Ok(Imported { name: name.to_owned(), by, windows: windows(&report), block })
}

/// A report of Artillery 2 with the names that a block reads.
fn of_second(report: &Value) -> Value {
    let aggregate = &report["aggregate"];
    let of = |name: &str| &aggregate["summaries"][name];
    let latency = [of("http.response_time"), of("socketio.response_time")].into_iter().find(|it| it.is_object());
    let at = |key: &str| aggregate[key].as_u64();
    let (from, to) = (at("firstMetricAt").or(at("firstCounterAt")), at("lastMetricAt").or(at("lastCounterAt")));
    let weir = json!({"started_ms": from, "ended_ms": to, "response": latency, "incomplete": []});
    json!({"aggregate": {"counters": aggregate["counters"]}, "weir": weir})
}

/// A report of Artillery 1: `codes`, `errors` and `latency` under their old names, and a rate instead of times.
fn of_first(aggregate: &Value) -> Value {
    let mut counters = Map::new();
    for (prefix, key) in [("http.codes.", "codes"), ("errors.", "errors")] {
        for (name, count) in aggregate[key].as_object().into_iter().flatten() {
            counters.insert(format!("{prefix}{name}"), count.clone());
        }
    }
    let of = |key: &str| {
        let counts: Vec<u64> =
            aggregate[key].as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).collect();
        sum(&counts)
    };
    let (answers, errors) = (of("codes"), of("errors"));
    counters.insert("http.requests".to_owned(), json!(answers.saturating_add(errors)));
    let mut latency = aggregate["latency"].as_object().cloned().unwrap_or_default();
    let median = latency.get("median").cloned().unwrap_or_default();
    latency.insert("p50".to_owned(), median);
    latency.insert("count".to_owned(), json!(answers));
    // Its length follows only from the mean rate.
    let seconds = aggregate["rps"]["mean"].as_f64().filter(|rate| *rate > 0.0).map(|rate| answers as f64 / rate);
    let ended = seconds.map(|seconds| (seconds * 1000.0).round());
    let weir = json!({"started_ms": 0, "ended_ms": ended, "response": latency, "incomplete": []});
    json!({"aggregate": {"counters": counters}, "weir": weir})
}

/// Answers a second in each window: from weir's short windows, else from Artillery's periods without the first and
/// the last, which are incomplete.
fn windows(report: &Value) -> Vec<f64> {
    if let Some(series) = Series::of(report) {
        return series.throughput;
    }
    let count = |period: &Value| {
        let counters = &period["counters"];
        let second = counters["http.responses"].as_f64().or_else(|| counters["socketio.emit"].as_f64());
        second.or_else(|| period["requestsCompleted"].as_f64())
    };
    let periods = report["intermediate"].as_array().map(Vec::as_slice).unwrap_or_default();
    let inner = periods.get(1..periods.len().saturating_sub(1).max(1)).unwrap_or_default();
    inner.iter().filter_map(count).map(|count| count / PERIOD_S).collect()
}

/// The length of Artillery's periods.
const PERIOD_S: f64 = 10.0;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The figures of report S2, as its author printed them.
    #[test]
    fn a_report_of_artillery_1_is_read() {
        let text = json!({"aggregate": {
            "codes": {"200": 112_728, "502": 40_772}, "errors": {"ETIMEDOUT": 265}, "rps": {"mean": 638.11},
            "latency": {"min": 4, "max": 9987, "median": 527, "p95": 1407, "p99": 2201},
        }, "intermediate": []});
        let run = read("before.json", &text.to_string(), 0, ComparedSide::Before).unwrap();
        assert_eq!((run.by, run.block.requests, run.block.failed()), ("Artillery 1", 153_765, 41_037));
        assert!((run.block.values["throughput"] - 638.11).abs() < 0.01, "{:?}", run.block.values);
        assert_eq!((run.block.values["p50"], run.block.values.get("cpu")), (527.0, None));
    }

    #[test]
    fn a_report_of_artillery_2_and_of_weir_are_read() {
        let aggregate = json!({
            "counters": {"http.requests": 20_000, "http.codes.200": 19_000, "http.codes.503": 1_000, "http.responses": 20_000},
            "summaries": {"http.response_time": {"count": 20_000, "p50": 1, "p95": 2, "p99": 4}},
            "firstMetricAt": 1_000, "lastMetricAt": 21_000,
        });
        let period = json!({"counters": {"http.responses": 5_000}});
        let second = json!({"aggregate": aggregate, "intermediate": [period, period, period, period]});
        let run = read("a.json", &second.to_string(), 3, ComparedSide::After).unwrap();
        assert_eq!(
            (run.by, run.block.values["throughput"], run.block.values["errors"]),
            ("Artillery 2", 1_000.0, 0.05)
        );
        assert_eq!((run.windows, run.block.values["p99"]), (vec![500.0, 500.0], 4.0));
        let weirs = json!({"aggregate": aggregate, "weir": {"started_ms": 0, "ended_ms": 10_000, "response": {"count": 20_000, "p50": 3.0, "p95": 4.0}}});
        let run = read("b.json", &weirs.to_string(), 0, ComparedSide::After).unwrap();
        assert_eq!((run.by, run.block.values["throughput"], run.block.values["p50"]), ("weir load", 2_000.0, 3.0));
    }

    #[test]
    fn whatever_stands_in_a_report_is_no_trouble() {
        let most = json!({"200": u64::MAX, "502": u64::MAX, "x": [1]});
        for latency in [json!("x"), json!([1]), json!({"median": {}})] {
            let text = json!({"aggregate": {"codes": most, "errors": most, "rps": 1, "latency": latency}});
            let run = read("x.json", &text.to_string(), 0, ComparedSide::Before).unwrap();
            assert_eq!((run.block.requests, run.block.failed()), (u64::MAX, u64::MAX));
        }
        let text = json!({"aggregate": {"counters": {"http.requests": u64::MAX, "socketio.emit": 1, "errors.x": -1}}});
        assert_eq!(read("x.json", &text.to_string(), 0, ComparedSide::Before).unwrap().block.requests, u64::MAX);
    }

    #[test]
    fn what_is_no_report_is_refused_by_its_name() {
        for text in ["{}", "[]", "{\"aggregate\": {}}", "nothing"] {
            let refused = read("x.json", text, 0, ComparedSide::Before).unwrap_err();
            assert!(refused.starts_with("x.json: "), "{refused}");
        }
    }

    mod mutate {
        use super::*;
        /// A report of another program: a block, or an error that says so.
        #[test]
        fn reports() {
            let seeds = [
                r#"{"aggregate":{"counters":{"http.requests":5,"http.codes.200":5},"firstMetricAt":1,"lastMetricAt":9,"summaries":{"http.response_time":{"p50":1,"count":5}}},"intermediate":[]}"#,
                r#"{"aggregate":{"codes":{"200":3},"errors":{"ETIMEDOUT":1},"latency":{"median":2.5},"rps":{"mean":1.5}},"intermediate":[{"latency":{"median":1}}]}"#,
                r#"{"weir":{"started_ms":1,"ended_ms":2,"response":{"p50":1}},"aggregate":{"counters":{"a":1}}}"#,
            ];
            let words = [
                "{",
                "}",
                "[",
                "]",
                ":",
                ",",
                "\"",
                "null",
                "-1",
                "1e308",
                "18446744073709551615",
                "\"weir\":{},",
                "0.0",
                "\\u0000",
            ];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                let _ = read("f", &String::from_utf8_lossy(bytes), 0, ComparedSide::Before);
            });
        }
    }
}
