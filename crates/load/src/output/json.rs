//! Artillery's JSON report, key for key (artillery.md §3.6), followed by the key `weir`.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use super::{RunFacts, number, own};
use crate::record::{Figures, Period, RunResults, Stamps, Summary};

/// The report as text, formatted as `JSON.stringify(report, null, 2)` does.
pub fn write(outcome: &RunResults, facts: &RunFacts) -> String {
    text(&document(outcome, facts))
}

/// The report as a value.
pub fn document(outcome: &RunResults, facts: &RunFacts) -> Value {
    let intermediate: Vec<Value> = outcome.periods.iter().map(|at| period(at, true)).collect();
    json!({
        "aggregate": period(&outcome.whole, false),
        "intermediate": intermediate,
        "weir": own::section(outcome, facts),
    })
}

/// A value as text, indented by two spaces a level.
pub fn text(value: &Value) -> String {
    format!("{value:#}")
}

/// Reads a period from a report, with the data that the console shows. `None` if the JSON is not a period.
pub fn read_period(json: &Value) -> Option<Period> {
    let start_ms = match json.get("period")? {
        Value::String(text) => text.parse().ok()?,
        other => other.as_u64()?,
    };
    let numbers = |key: &str| json.get(key).and_then(Value::as_object).into_iter().flatten();
    let stamp = |key: &str| json.get(key).and_then(Value::as_u64);
    let summary = |(name, json): (&String, &Value)| (Arc::from(name.as_str()), read_summary(json));
    Some(Period {
        start_ms,
        counters: numbers("counters")
            .map(|(name, count)| (name.as_str().into(), count.as_u64().unwrap_or(0)))
            .collect(),
        rates: numbers("rates").map(|(name, rate)| (name.as_str().into(), rate.as_f64().unwrap_or(f64::NAN))).collect(),
        summaries: numbers("summaries").map(summary).collect(),
        stamps: Stamps {
            first_counter: stamp("firstCounterAt"),
            first_histogram: stamp("firstHistogramAt"),
            last_counter: stamp("lastCounterAt"),
            last_histogram: stamp("lastHistogramAt"),
        },
        response: Figures::default(),
        service: Figures::default(),
    })
}

fn read_summary(json: &Value) -> Summary {
    let number = |key: &str| json.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
    Summary {
        min: number("min"),
        max: number("max"),
        count: json.get("count").and_then(Value::as_u64).unwrap_or(0),
        mean: number("mean"),
        median: number("median"),
        p75: number("p75"),
        p90: number("p90"),
        p95: number("p95"),
        p99: number("p99"),
        p999: number("p999"),
    }
}

/// The aggregate, or a period of `intermediate`: there `period` is a text, and each rate gets an additional null.
fn period(period: &Period, is_intermediate: bool) -> Value {
    let mut out = Map::new();
    let start = if is_intermediate { json!(period.start_ms.to_string()) } else { json!(period.start_ms) };
    out.insert("period".to_owned(), start);
    out.insert("counters".to_owned(), object(&period.counters, |count| (*count).into()));
    out.insert("rates".to_owned(), object(&period.rates, |rate| number::json(*rate)));
    if is_intermediate {
        for name in period.rates.keys() {
            out.insert(name.to_string(), Value::Null);
        }
    }
    let stamps = period.stamps;
    let times = [
        ("firstCounterAt", stamps.first_counter),
        ("firstHistogramAt", stamps.first_histogram),
        ("lastCounterAt", stamps.last_counter),
        ("lastHistogramAt", stamps.last_histogram),
        ("firstMetricAt", stamps.first()),
        ("lastMetricAt", stamps.last()),
    ];
    for (key, time) in times {
        if let Some(time) = time {
            out.insert(key.to_owned(), time.into());
        }
    }
    let summaries = object(&period.summaries, summary);
    out.insert("summaries".to_owned(), summaries.clone());
    out.insert("histograms".to_owned(), summaries);
    Value::Object(out)
}

/// The eleven figures of a histogram.
pub(super) fn summary(summary: &Summary) -> Value {
    summary
        .figures()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), number::json(value)))
        .collect::<Map<_, _>>()
        .into()
}

/// Members in JavaScript's order: array indices first, by value; the others in their given order.
fn object<T>(members: &IndexMap<Arc<str>, T>, value: impl Fn(&T) -> Value) -> Value {
    let mut indices: Vec<(u32, &T)> = Vec::new();
    let mut rest: Vec<(&Arc<str>, &T)> = Vec::new();
    for (name, member) in members {
        match array_index(name) {
            Some(index) => indices.push((index, member)),
            None => rest.push((name, member)),
        }
    }
    indices.sort_by_key(|(index, _)| *index);
    let indices = indices.into_iter().map(|(index, member)| (index.to_string(), value(member)));
    let rest = rest.into_iter().map(|(name, member)| (name.to_string(), value(member)));
    indices.chain(rest).collect::<Map<_, _>>().into()
}

pub(super) fn array_index(name: &str) -> Option<u32> {
    name.parse().ok().filter(|index: &u32| *index != u32::MAX && index.to_string() == name)
}

#[cfg(test)]
mod tests {
    use super::super::facts::PhaseFact;
    use super::*;
    use crate::record::{Merger, Recorder};
    use std::time::Duration;

    const T: u64 = 1_795_186_840_000;

    fn refused() -> RunResults {
        let recorder = Recorder::at(T + 8_465);
        for n in 0..15 {
            recorder.set_ms(T + 8_465 + n * 200);
            recorder.count(recorder.metric("vusers.created"), 1);
            recorder.count(recorder.metric("http.requests"), 1);
            recorder.rate(recorder.metric("http.request_rate"));
            recorder.count(recorder.metric("errors.ECONNREFUSED"), 1);
        }
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        merger.outcome()
    }

    fn facts() -> RunFacts {
        RunFacts {
            targets: vec!["http://127.0.0.1:9".to_owned()],
            phases: vec![PhaseFact { name: "p".to_owned(), ..PhaseFact::default() }],
            ..RunFacts::default()
        }
    }

    #[test]
    fn byte_for_byte() {
        let text = write(&refused(), &facts());
        let head = r#"{
  "aggregate": {
    "period": 1795186850000,
    "counters": {
      "vusers.created": 15,
      "http.requests": 15,
      "errors.ECONNREFUSED": 15
    },
    "rates": {
      "http.request_rate": 6
    },
    "firstCounterAt": 1795186848465,
    "lastCounterAt": 1795186851265,
    "firstMetricAt": 1795186848465,
    "lastMetricAt": 1795186851265,
    "summaries": {},
    "histograms": {}
  },
  "intermediate": [
    {
      "period": "1795186840000",
      "counters": {
        "vusers.created": 8,
        "http.requests": 8,
        "errors.ECONNREFUSED": 8
      },
      "rates": {
        "http.request_rate": 6
      },
      "http.request_rate": null,
      "firstCounterAt": 1795186848465,
"#;
        assert!(text.starts_with(head), "{text}");
        assert!(text.contains("\n  ],\n  \"weir\": {\n    \"version\": 1,\n"), "{text}");
    }

    #[test]
    fn histograms_are_there_twice_and_have_eleven_figures() {
        let recorder = Recorder::at(T);
        recorder.sample(recorder.metric("http.response_time"), 1300.0);
        recorder.latency(Duration::from_millis(3), Duration::from_millis(2));
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let document = document(&merger.outcome(), &facts());
        let whole = &document["aggregate"];
        assert_eq!(whole["summaries"], whole["histograms"]);
        assert_eq!(
            whole["summaries"]["http.response_time"].to_string(),
            r#"{"min":1300,"max":1300,"count":1,"mean":1300,"p50":1300.1,"median":1300.1,"p75":1300.1,"p90":1300.1,"p95":1300.1,"p99":1300.1,"p999":1300.1}"#
        );
        assert_eq!(whole.get("firstCounterAt"), None);
    }

    #[test]
    fn a_period_reads_back() {
        let outcome = refused();
        let document: Value = serde_json::from_str(&write(&outcome, &facts())).unwrap();
        for (json, period) in
            [(&document["aggregate"], &outcome.whole), (&document["intermediate"][1], &outcome.periods[1])]
        {
            let back = read_period(json).unwrap();
            assert_eq!(
                (back.start_ms, &back.counters, &back.rates),
                (period.start_ms, &period.counters, &period.rates)
            );
            assert_eq!(back.stamps, period.stamps);
        }
        assert!(read_period(&json!({"period": "soon"})).is_none());
    }

    #[test]
    fn names_that_are_indices_come_first() {
        let names = ["b", "10", "9", "01", "a"].map(|name| (Arc::from(name), 1u64));
        let object = object(&names.into_iter().collect(), |count| (*count).into());
        assert_eq!(object.to_string(), r#"{"9":1,"10":1,"b":1,"01":1,"a":1}"#);
    }
}
