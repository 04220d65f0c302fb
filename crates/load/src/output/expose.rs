//! The metrics of the run so far in Prometheus' text format, for scrapers while the load runs.

use std::collections::BTreeSet;

use super::number::js;
use crate::record::{RunResults, phase};

/// Content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counters, rates and quantiles with Artillery's names as labels, and weir's own figures.
pub fn exposition(outcome: &RunResults) -> String {
    let mut out = Text::default();
    let whole = &outcome.whole;
    for (name, count) in &whole.counters {
        out.add("weir_load_counter_total", "counter", &[("metric", name)], &count.to_string());
    }
    for (name, rate) in &whole.rates {
        out.add("weir_load_rate", "gauge", &[("metric", name)], &js(*rate));
    }
    for (name, summary) in &whole.summaries {
        let quantiles =
            [("0.5", summary.median), ("0.95", summary.p95), ("0.99", summary.p99), ("0.999", summary.p999)];
        for (quantile, value) in quantiles {
            out.add("weir_load_histogram", "summary", &[("metric", name), ("quantile", quantile)], &js(value));
        }
    }
    // The count of a summary follows its quantiles, as a separate name in the same family.
    for (name, summary) in &whole.summaries {
        out.line("weir_load_histogram_count", &[("metric", name)], &summary.count.to_string());
    }
    for (kind, hdr) in
        [("response", &outcome.own.response), ("service", &outcome.own.service), ("lag", &outcome.own.lag)]
    {
        for (text, quantile) in [("0.5", 0.5), ("0.9", 0.9), ("0.99", 0.99), ("0.999", 0.999), ("1", 1.0)] {
            let seconds = hdr.quantile(quantile).as_secs_f64();
            out.add("weir_load_latency_seconds", "summary", &[("kind", kind), ("quantile", text)], &js(seconds));
        }
    }
    for (kind, hdr) in
        [("response", &outcome.own.response), ("service", &outcome.own.service), ("lag", &outcome.own.lag)]
    {
        out.line("weir_load_latency_seconds_count", &[("kind", kind)], &hdr.count().to_string());
    }
    for ((step, name), count) in &outcome.own.failures {
        let labels = [("hop", "target"), ("phase", phase(*step)), ("name", name)];
        out.add("weir_load_failures_total", "counter", &labels, &count.to_string());
    }
    out.add("weir_load_dropped_total", "counter", &[], &outcome.own.dropped.to_string());
    out.text
}

#[derive(Default)]
struct Text {
    text: String,
    /// Families whose type line is written already.
    typed: BTreeSet<&'static str>,
}

impl Text {
    fn add(&mut self, family: &'static str, kind: &str, labels: &[(&str, &str)], value: &str) {
        if self.typed.insert(family) {
            self.text.push_str(&format!("# TYPE {family} {kind}\n"));
        }
        self.line(family, labels, value);
    }

    fn line(&mut self, family: &str, labels: &[(&str, &str)], value: &str) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> = labels.iter().map(|(name, text)| format!("{name}=\"{}\"", quoted(text))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // Prometheus has its own word for infinity.
        self.text.push_str(&format!("{family}{labels} {}\n", value.replace("Infinity", "Inf")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};
    use std::time::Duration;

    #[test]
    fn every_line_has_a_type_above_it_and_labels_are_quoted() {
        let recorder = Recorder::at(1_795_186_840_000);
        recorder.count(recorder.metric("errors.a \"b\"\n\\"), 3);
        recorder.sample(recorder.metric("http.response_time"), 5.0);
        recorder.rate(recorder.metric("http.request_rate"));
        recorder.latency(Duration::from_millis(250), Duration::from_millis(125));
        recorder.failure(weir_meter::Step::Connect, "ECONNREFUSED");
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let text = exposition(&merger.outcome());
        for line in [
            r#"weir_load_counter_total{metric="errors.a \"b\"\n\\"} 3"#,
            r#"weir_load_rate{metric="http.request_rate"} 1"#,
            r#"weir_load_histogram{metric="http.response_time",quantile="0.99"} 5"#,
            r#"weir_load_histogram_count{metric="http.response_time"} 1"#,
            r#"weir_load_failures_total{hop="target",phase="connect",name="ECONNREFUSED"} 1"#,
            "weir_load_dropped_total 0",
        ] {
            assert!(text.lines().any(|seen| seen == line), "{line}\n{text}");
        }
        let mut typed = BTreeSet::new();
        for line in text.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(rest) => assert!(typed.insert(rest.split(' ').next().unwrap().to_owned()), "{line} twice"),
                None => {
                    let family = line.split(['{', ' ']).next().unwrap();
                    assert!(typed.contains(family.trim_end_matches("_count")), "{line}");
                }
            }
        }
    }
}
