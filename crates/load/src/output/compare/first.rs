//! Reports of Artillery 1, in the form of Artillery 2.

use serde_json::{Map, Value, json};

/// The report with the names of Artillery 2; any other report as it is.
pub(super) fn renamed(mut report: Value) -> Value {
    if !report["aggregate"]["codes"].is_object() {
        return report;
    }
    report["aggregate"] = period(&report["aggregate"]);
    if let Some(periods) = report["intermediate"].as_array_mut() {
        periods.iter_mut().for_each(|one| *one = period(one));
    }
    report
}

fn period(old: &Value) -> Value {
    let mut counters = Map::new();
    let mut requests = 0;
    for (prefix, key) in [("http.codes.", "codes"), ("errors.", "errors")] {
        for (name, count) in old[key].as_object().into_iter().flatten() {
            requests += count.as_u64().unwrap_or(0);
            counters.insert(format!("{prefix}{name}"), count.clone());
        }
    }
    counters.insert("http.requests".to_owned(), requests.into());
    let mut latency = old["latency"].as_object().cloned().unwrap_or_default();
    if let Some(median) = latency.get("median").cloned() {
        latency.insert("p50".to_owned(), median);
    }
    json!({"counters": counters, "summaries": {"http.response_time": latency}, "period": old["timestamp"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_become_new_ones() {
        let old = json!({"aggregate": {"codes": {"200": 9}, "errors": {"ETIMEDOUT": 1}, "latency": {"median": 5, "p95": 7}},
            "intermediate": [{"codes": {"200": 9}, "errors": {}, "latency": {"median": 4}}]});
        let new = renamed(old);
        assert_eq!(new["aggregate"]["counters"]["http.requests"], 10);
        assert_eq!(new["aggregate"]["summaries"]["http.response_time"]["p95"], 7);
        assert_eq!(new["intermediate"][0]["summaries"]["http.response_time"]["p50"], 4);
        let second = json!({"aggregate": {"counters": {}}});
        assert_eq!(renamed(second.clone()), second);
    }
}
