//! Compares two reports (`weir load compare`), and claims no more than two single runs can show.
//!
//! The periods of a run are its blocks. Their spread shows how much one run varies within itself. Differences between
//! two runs (a cache, a neighbour, the time of day) do not show in the periods. So the printed interval is too narrow
//! for a verdict, and weir prints no verdict.

use serde_json::Value;

use super::number::{js, ms};
use crate::record::tenths;

/// Least number of periods on each side of a comparison.
const BLOCKS_MIN: usize = 5;
/// Two-sided 95 % of a normal distribution.
const Z: f64 = 1.96;
/// Most blocks of a side; the code forms all pairs. This is more than an hour of periods.
const BLOCKS_MAX: usize = 500;

/// The conclusions that two single runs allow.
pub const VERDICT: &str = "\
These are two single runs. The intervals cover only the variation within each run. They do not cover the variation from
run to run, and neighbouring periods are not independent. So the table shows two measurements, and does not prove that
A or B is faster. For a proof, run both several times in turns: weir lab does this.
";

/// Reads a report; the error says why it is invalid.
pub fn read(name: &str, text: &str) -> Result<Value, String> {
    let report: Value = serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))?;
    match report["aggregate"].is_object() {
        true => Ok(report),
        false => Err(format!("{name}: this is not a report: it has no \"aggregate\"")),
    }
}

/// The comparison as text.
pub fn compare(a: (&str, &Value), b: (&str, &Value)) -> String {
    let mut text = format!("A: {}\nB: {}\n", a.0, b.0);
    let differences = differences(a.1, b.1);
    if !differences.is_empty() {
        text.push_str("\nThe runs also differ in:\n");
        differences.iter().for_each(|difference| text.push_str(&format!("  {difference}\n")));
    }
    let head = ["", "A", "B", "B - A", "within-run 95 %"];
    text.push_str(&format!("\n{}\n", line(&head)));
    let (in_a, in_b) = (blocks(a.1), blocks(b.1));
    let of = format!("({} of A, {} of B)", in_a.len(), in_b.len());
    let (in_a, in_b, figures) = match in_a.is_empty() || in_b.is_empty() {
        true => (
            vec![Block::whole(a.1)],
            vec![Block::whole(b.1)],
            format!("Figures of the whole runs, because they have too few whole 10 s periods {of}."),
        ),
        false => (in_a, in_b, format!("Medians of whole 10 s periods {of}.")),
    };
    for measure in MEASURES {
        text.push_str(&format!("{}\n", row(measure, &in_a, &in_b)));
    }
    text.push_str(&format!("\n{figures}\n\n{VERDICT}"));
    text
}

/// A figure of a period.
struct Measure {
    name: &'static str,
    is_ms: bool,
    of: fn(&Block<'_>) -> Option<f64>,
}

const MEASURES: &[Measure] = &[
    Measure { name: "requests/s", is_ms: false, of: |block| block.rate() },
    Measure { name: "response p50, ms", is_ms: true, of: |block| block.own("response", "p50") },
    Measure { name: "response p99, ms", is_ms: true, of: |block| block.own("response", "p99") },
    Measure { name: "service p50, ms", is_ms: true, of: |block| block.own("service", "p50") },
    Measure { name: "service p99, ms", is_ms: true, of: |block| block.own("service", "p99") },
    Measure {
        name: "http.response_time p50",
        is_ms: true,
        of: |block| block.period["summaries"]["http.response_time"]["p50"].as_f64(),
    },
    Measure {
        name: "http.response_time p99",
        is_ms: true,
        of: |block| block.period["summaries"]["http.response_time"]["p99"].as_f64(),
    },
    Measure { name: "errors/s", is_ms: false, of: |block| Some(block.errors()) },
];

/// A period, and weir's own data of it.
struct Block<'a> {
    period: &'a Value,
    own: Option<&'a Value>,
    seconds: f64,
}

impl<'a> Block<'a> {
    /// A whole run.
    fn whole(report: &'a Value) -> Block<'a> {
        let (whole, own) = (&report["aggregate"], &report["weir"]);
        let ms = |of: &Value, from: &str, to: &str| Some(of[to].as_f64()? - of[from].as_f64()?);
        let ms = ms(own, "started_ms", "ended_ms").or_else(|| ms(whole, "firstMetricAt", "lastMetricAt"));
        let seconds = ms.filter(|ms| *ms > 0.0).map_or(f64::NAN, |ms| ms / 1000.0);
        Block { period: whole, own: Some(own), seconds }
    }

    fn rate(&self) -> Option<f64> {
        let sent = ["http.requests", "websocket.messages_sent", "socketio.emit"];
        let sum = sent.iter().filter_map(|name| self.period["counters"][*name].as_f64()).reduce(|a, b| a + b)?;
        Some(sum / self.seconds)
    }

    fn own(&self, kind: &str, figure: &str) -> Option<f64> {
        let latency = &self.own?[kind];
        latency[figure].as_f64().filter(|_| latency["count"].as_u64().unwrap_or(0) > 0)
    }

    fn errors(&self) -> f64 {
        let counters = self.period["counters"].as_object().into_iter().flatten();
        let errors = counters.filter(|(name, _)| name.starts_with("errors.")).filter_map(|(_, count)| count.as_f64());
        errors.sum::<f64>() / self.seconds
    }
}

/// The complete periods of a report. The first and the last are left out, because the run covers only a part of them.
fn blocks(report: &Value) -> Vec<Block<'_>> {
    let own: Vec<&Value> = report["weir"]["windows"].as_array().into_iter().flatten().collect();
    let periods: Vec<&Value> = report["intermediate"].as_array().into_iter().flatten().collect();
    let inner = periods.get(1..periods.len().saturating_sub(1)).unwrap_or_default();
    let find = |period: &Value| {
        let start = period["period"].as_str()?.parse::<u64>().ok()?;
        own.iter().copied().find(|window| window["period"].as_u64() == Some(start))
    };
    inner.iter().take(BLOCKS_MAX).map(|period| Block { period, own: find(period), seconds: 10.0 }).collect()
}

fn row(measure: &Measure, a: &[Block<'_>], b: &[Block<'_>]) -> String {
    let values = |blocks: &[Block<'_>]| -> Vec<f64> {
        blocks.iter().filter_map(measure.of).filter(|value| value.is_finite()).collect()
    };
    let (a, b) = (values(a), values(b));
    let shown = |value: f64| if measure.is_ms { ms(value) } else { js(tenths(value)) };
    let middle = |values: &[f64]| median(values).map_or_else(|| "-".to_owned(), shown);
    let signed = |value: f64| format!("{}{}", if value < 0.0 { "-" } else { "+" }, shown(value.abs()));
    let (shift, interval) = match shift(&a, &b) {
        Some((shift, low, high)) => {
            let part = median(&a)
                .filter(|base| *base > 0.0)
                .map_or_else(String::new, |base| format!(" ({:+.0} %)", shift / base * 100.0));
            (format!("{}{part}", signed(shift)), format!("{} to {}", signed(low), signed(high)))
        }
        None => ("-".to_owned(), "too few periods".to_owned()),
    };
    line(&[measure.name, &middle(&a), &middle(&b), &shift, &interval])
}

fn line(cells: &[&str; 5]) -> String {
    let [name, a, b, shift, interval] = cells;
    format!("{name:<24}{a:>10}{b:>10}{shift:>20}{interval:>24}")
}

fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

/// How far B's blocks lie from A's: the median of all pairs' differences (Hodges and Lehmann), and its interval from
/// the ranks (Mann and Whitney, by the normal approximation). `None` with fewer than [`BLOCKS_MIN`] blocks on a side.
fn shift(a: &[f64], b: &[f64]) -> Option<(f64, f64, f64)> {
    if a.len().min(b.len()) < BLOCKS_MIN {
        return None;
    }
    let mut differences: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect();
    differences.sort_by(f64::total_cmp);
    let (m, n) = (a.len() as f64, b.len() as f64);
    let rank = (m * n / 2.0 - Z * (m * n * (m + n + 1.0) / 12.0).sqrt()).floor().max(0.0) as usize;
    let last = differences.len() - 1;
    Some((median(&differences)?, *differences.get(rank)?, *differences.get(last.checked_sub(rank)?)?))
}

/// The differences of the two runs apart from the tested change.
fn differences(a: &Value, b: &Value) -> Vec<String> {
    let (a, b) = (&a["weir"], &b["weir"]);
    let mut out = Vec::new();
    for (side, weir) in [("A", a), ("B", b)] {
        if weir.is_null() {
            out.push(format!(
                "weir did not write {side}: the report does not describe its script, target or generator"
            ));
        } else if weir["generator"]["is_limit"].as_bool() == Some(true) {
            out.push(format!(
                "in {side} the generator was the limit: the figures measure the generator, not the target"
            ));
        }
        for reason in weir["incomplete"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            out.push(format!("{side} is incomplete: {reason}"));
        }
    }
    if a.is_null() || b.is_null() {
        return out;
    }
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for (key, name) in [("script_id", "script"), ("targets", "target")] {
        if a[key] != b[key] {
            let shows = if key == "script_id" { "script" } else { key };
            out.push(format!("{name}: {} and {}", shown(&a[shows]), shown(&b[shows])));
        }
    }
    if a["phases"] != b["phases"] {
        out.push("phases".to_owned());
    }
    let environment = |weir: &Value| weir["environment"].as_object().cloned().unwrap_or_default();
    let (a, b) = (environment(a), environment(b));
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    let missing = Value::from("unknown");
    for name in names.into_iter().filter(|name| a.get(*name) != b.get(*name)) {
        let of = |side: &serde_json::Map<String, Value>| shown(side.get(name).unwrap_or(&missing));
        out.push(format!("{name}: {} and {}", of(&a), of(&b)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(periods: usize, p50: f64, target: &str) -> Value {
        let windows: Vec<Value> = (0..periods as u64)
            .map(|n| json!({"period": n * 10_000, "response": {"count": 9, "p50": p50 + (n % 3) as f64, "p99": 9.0}}))
            .collect();
        let intermediate: Vec<Value> = (0..periods)
            .map(|n| json!({"period": (n * 10_000).to_string(), "counters": {"http.requests": 1000, "errors.X": 5}}))
            .collect();
        json!({"aggregate": {}, "intermediate": intermediate, "weir": {"targets": [target], "script_id": "1", "script": "a.yml", "windows": windows, "environment": {"cpus": "2"}}})
    }

    #[test]
    fn it_shows_what_was_seen_and_claims_nothing() {
        let (a, b) = (report(12, 10.0, "http://x"), report(12, 20.0, "http://x"));
        let text = compare(("a.json", &a), ("b.json", &b));
        let row = text.lines().find(|line| line.starts_with("response p50")).unwrap();
        assert_eq!(
            row.split_whitespace().collect::<Vec<_>>(),
            ["response", "p50,", "ms", "11.0", "21.0", "+10.0", "(+91", "%)", "+9.00", "to", "+11.0"]
        );
        assert!(text.ends_with(VERDICT) && text.contains("(10 of A, 10 of B)"), "{text}");
        assert!(!text.contains("Not the same"), "{text}");
        for word in ["better", "significant", "improved", "regress"] {
            assert!(!text.contains(word), "{word}");
        }
    }

    #[test]
    fn what_was_not_the_same_is_named() {
        let mut b = report(4, 1.0, "http://y");
        b["weir"]["environment"] = json!({"cpus": "4", "kernel": "6"});
        b["weir"]["script_id"] = json!("2");
        b["weir"]["generator"] = json!({"is_limit": true});
        b["weir"]["incomplete"] = json!(["an agent was lost"]);
        let text = compare(("a", &report(12, 1.0, "http://x")), ("b", &b));
        for line in [
            "in B the generator was the limit",
            "B is incomplete: an agent was lost",
            "script: a.yml and a.yml",
            "target: [\"http://x\"] and [\"http://y\"]",
            "cpus: 2 and 4",
            "kernel: unknown and 6",
        ] {
            assert!(text.contains(&format!("  {line}")), "{line}\n{text}");
        }
        assert!(text.contains("too few periods"));
        let artillery = json!({"aggregate": {}, "intermediate": []});
        assert!(compare(("a", &artillery), ("b", &artillery)).contains("weir did not write A"));
    }

    #[test]
    fn short_runs_show_their_whole() {
        let mut a = report(2, 10.0, "http://x");
        a["aggregate"] = json!({"counters": {"http.requests": 300}, "summaries": {"http.response_time": {"p50": 7}}});
        a["weir"]["started_ms"] = json!(1000);
        a["weir"]["ended_ms"] = json!(4000);
        a["weir"]["service"] = json!({"count": 300, "p50": 6.5, "p99": 8.0});
        let text = compare(("a", &a), ("b", &report(12, 1.0, "http://x")));
        let cells = |name: &str| {
            let row = text.lines().find(|line| line.starts_with(name)).unwrap();
            row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(cells("requests/s")[1], "100");
        assert_eq!((&*cells("service p50")[3], &*cells("http.response_time p50")[2]), ("6.50", "7.00"));
        assert!(text.contains("Figures of the whole runs") && text.contains("(0 of A, 10 of B)"), "{text}");
    }

    #[test]
    fn only_reports_are_read() {
        assert!(read("x", "{").is_err_and(|why| why.starts_with("x: ")));
        assert!(read("x", "[]").is_err_and(|why| why.contains("not a report")));
        assert!(read("x", r#"{"aggregate":{}}"#).is_ok());
    }

    #[test]
    fn shifts_and_their_intervals() {
        let a: Vec<f64> = (0..20).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|value| value + 5.0).collect();
        let (shift, low, high) = super::shift(&a, &b).unwrap();
        assert_eq!(shift, 5.0);
        assert!(low < 5.0 && high > 5.0 && low > 0.0 && high < 10.0, "{low} {high}");
        assert_eq!(super::shift(&a[..4], &b), None);
        assert_eq!((median(&[]), median(&[3.0, 1.0]), median(&[3.0, 1.0, 9.0])), (None, Some(2.0), Some(3.0)));
    }
}
