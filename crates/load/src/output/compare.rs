//! Compares two reports (`weir load compare`), and claims no more than two single runs can show.
//!
//! The intervals come from the spread within each run, and allow for requests that depend on each other ([`within`]).
//! Differences between two runs (a cache, a neighbour, the time of day) do not show within a run. So a difference is one
//! between these two runs, and not between two configurations.

mod failed;
mod first;
mod texts;
mod within;

use serde_json::Value;
use weir_words::{Language, Said, left, right, say};

use self::failed::FailedShare;
use super::kept::said_list;
use super::label::Label;
use super::number::{js, ms};
use crate::record::tenths;

/// Most values of a side: more than an hour of seconds.
const VALUES_MAX: usize = 5_000;
/// Least length of a series of seconds: a stretch of it is then longer than the usual dependence.
const SECONDS_MIN: usize = 40;

/// Reads a report; the error says why it is invalid.
pub fn read(name: &str, text: &str) -> Result<Value, Said> {
    let report: Value =
        serde_json::from_str(text).map_err(|error| say!(crate::texts::OF_FILE, name, error.to_string()))?;
    match report["aggregate"].is_object() {
        true => Ok(first::renamed(report)),
        false => Err(say!(texts::NO_REPORT, name)),
    }
}

/// The comparison as text.
pub fn compare(a: (&str, &Value), b: (&str, &Value), language: Language) -> String {
    let mut text = format!("A: {}\nB: {}\n", a.0, b.0);
    let differences = differences(a.1, b.1);
    if !differences.is_empty() {
        text.push_str(&format!("\n{}\n", texts::DIFFER.say(language)));
        differences.iter().for_each(|difference| text.push_str(&format!("  {}\n", difference.say(language))));
    }
    text.push_str(&format!("\n{}\n", line(&["", "A", "B", "B - A", texts::WITHIN.say(language)])));
    let (in_a, in_b) = (blocks(a.1), blocks(b.1));
    let is_whole = in_a.is_empty() || in_b.is_empty();
    let (whole_a, whole_b) = (vec![Block::whole(a.1)], vec![Block::whole(b.1)]);
    let mut seconds = 0;
    for measure in MEASURES {
        let found = measure.series.and_then(|name| Some((column(a.1, name)?, column(b.1, name)?)));
        let cells = match found {
            Some((in_a, in_b)) => {
                seconds += 1;
                row(measure, &in_a, &in_b, language)
            }
            None if is_whole => row(measure, &values(measure, &whole_a), &values(measure, &whole_b), language),
            None => row(measure, &values(measure, &in_a), &values(measure, &in_b), language),
        };
        text.push_str(&format!("{cells}\n"));
    }
    let of = say!(texts::PERIODS, in_a.len().to_string(), in_b.len().to_string());
    let figures = match () {
        () if seconds > 0 => say!(texts::OF_SECONDS, of),
        () if is_whole => say!(texts::OF_WHOLE, of),
        () => say!(texts::OF_PERIODS, of),
    };
    text.push_str(&format!("\n{}\n", figures.say(language)));
    text.push_str(&failures(a.1, b.1, language));
    text.push_str(&format!("\n{}\n", texts::VERDICT.say(language)));
    text
}

/// The shares of failed requests, with exact intervals; nothing if a report does not count requests.
fn failures(a: &Value, b: &Value, language: Language) -> String {
    let (Some(a), Some(b)) = (FailedShare::of(a), FailedShare::of(b)) else { return String::new() };
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    let mut text = format!("\n{}\n", texts::FAILED.say(language));
    for (side, one) in [("A", a), ("B", b)] {
        let (low, high) = one.interval(0.95);
        let (share, low, high) = (percent(one.share()), percent(low), percent(high));
        let of = say!(texts::FAILED_OF, one.failed, one.of, share, low, high);
        text.push_str(&format!("  {side}      {}\n", of.say(language)));
    }
    let (low, high) = failed::difference(a, b);
    let points = |share: f64| format!("{:+.2}", share * 100.0);
    let shift = points(b.share() - a.share());
    let by = say!(texts::FAILED_BY, shift, points(low), points(high));
    text.push_str(&format!("  B - A  {}\n", by.say(language)));
    text.push_str(&format!("{}\n", texts::EXACT.say(language)));
    text
}

/// A figure of a period.
struct Measure {
    name: Label,
    is_ms: bool,
    /// Its path in the series of weir's reports, which have a value for each second. Older reports have no p95 there:
    /// then the periods supply it.
    series: Option<&'static [&'static str]>,
    of: fn(&Block<'_>) -> Option<f64>,
}

const MEASURES: &[Measure] = &[
    Measure {
        name: Label::Text(texts::REQUESTS),
        is_ms: false,
        series: Some(&["counts", "http.requests"]),
        of: |block| block.rate(),
    },
    Measure {
        name: Label::Text(texts::RESPONSE_P50),
        is_ms: true,
        series: Some(&["response", "p50"]),
        of: |block| block.own("response", "p50"),
    },
    Measure {
        name: Label::Text(texts::RESPONSE_P95),
        is_ms: true,
        series: Some(&["response", "p95"]),
        of: |block| block.own("response", "p95"),
    },
    Measure {
        name: Label::Text(texts::RESPONSE_P99),
        is_ms: true,
        series: Some(&["response", "p99"]),
        of: |block| block.own("response", "p99"),
    },
    Measure {
        name: Label::Text(texts::SERVICE_P50),
        is_ms: true,
        series: Some(&["service", "p50"]),
        of: |block| block.own("service", "p50"),
    },
    Measure {
        name: Label::Text(texts::SERVICE_P95),
        is_ms: true,
        series: Some(&["service", "p95"]),
        of: |block| block.own("service", "p95"),
    },
    Measure {
        name: Label::Text(texts::SERVICE_P99),
        is_ms: true,
        series: Some(&["service", "p99"]),
        of: |block| block.own("service", "p99"),
    },
    Measure {
        name: Label::Name("http.response_time p50"),
        is_ms: true,
        series: None,
        of: |block| block.period["summaries"]["http.response_time"]["p50"].as_f64(),
    },
    Measure {
        name: Label::Name("http.response_time p95"),
        is_ms: true,
        series: None,
        of: |block| block.period["summaries"]["http.response_time"]["p95"].as_f64(),
    },
    Measure {
        name: Label::Name("http.response_time p99"),
        is_ms: true,
        series: None,
        of: |block| block.period["summaries"]["http.response_time"]["p99"].as_f64(),
    },
    Measure { name: Label::Text(texts::ERRORS), is_ms: false, series: None, of: |block| Some(block.errors()) },
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
    inner.iter().take(VALUES_MAX).map(|period| Block { period, own: find(period), seconds: 10.0 }).collect()
}

/// The values of a measure in the periods.
fn values(measure: &Measure, blocks: &[Block<'_>]) -> Vec<f64> {
    blocks.iter().filter_map(measure.of).filter(|value| value.is_finite()).collect()
}

/// A column of the series, for each second, without the first and the last, which the run covers only in part. `None` if
/// the report has none, or if it is too short for stretches.
fn column(report: &Value, path: &[&str]) -> Option<Vec<f64>> {
    let series = &report["weir"]["series"];
    let seconds = series["interval_ms"].as_f64().filter(|ms| *ms > 0.0)? / 1000.0;
    let found = path.iter().fold(series, |value, name| &value[*name]).as_array()?;
    let per = if path.first() == Some(&"counts") { seconds } else { 1.0 };
    let inner = found.get(1..found.len().checked_sub(1)?)?;
    // A second without answers has no quantile.
    let values: Vec<f64> = inner.iter().take(VALUES_MAX).filter_map(Value::as_f64).map(|value| value / per).collect();
    (values.len() as f64 * seconds >= SECONDS_MIN as f64).then_some(values)
}

fn row(measure: &Measure, a: &[f64], b: &[f64], language: Language) -> String {
    let shown = |value: f64| if measure.is_ms { ms(value) } else { js(tenths(value)) };
    let middle = |values: &[f64]| within::mean(values).map_or_else(|| "-".to_owned(), shown);
    let signed = |value: f64| format!("{}{}", if value < 0.0 { "-" } else { "+" }, shown(value.abs()));
    let (shift, interval) = match within::shift(a, b) {
        Some(found) => {
            let part = within::mean(a)
                .filter(|base| *base > 0.0)
                .map_or_else(String::new, |base| format!(" ({:+.0} %)", found.shift / base * 100.0));
            let interval = say!(texts::FROM_TO, signed(found.low), signed(found.high));
            (format!("{}{part}", signed(found.shift)), interval)
        }
        None => ("-".to_owned(), say!(texts::NEEDS, within::VALUES_MIN)),
    };
    line(&[measure.name.say(language), &middle(a), &middle(b), &shift, interval.say(language)])
}

fn line(cells: &[&str; 5]) -> String {
    let [name, a, b, shift, interval] = cells;
    [left(name, 24), right(a, 10), right(b, 10), right(shift, 20), right(interval, 24)].concat()
}

/// The differences of the two runs apart from the tested change.
fn differences(a: &Value, b: &Value) -> Vec<Said> {
    let (a, b) = (&a["weir"], &b["weir"]);
    let mut out = Vec::new();
    for (side, weir) in [("A", a), ("B", b)] {
        if weir.is_null() {
            out.push(say!(texts::NOT_WRITTEN, side));
        } else if weir["generator"]["is_limit"].as_bool() == Some(true) {
            out.push(say!(texts::WAS_LIMIT, side));
        }
        out.extend(said_list(weir, "incomplete").iter().map(|reason| say!(texts::INCOMPLETE, side, reason)));
    }
    if a.is_null() || b.is_null() {
        return out;
    }
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    for (key, text) in [("script_id", texts::SCRIPTS), ("targets", texts::TARGETS)] {
        if a[key] != b[key] {
            let shows = if key == "script_id" { "script" } else { key };
            out.push(text.with(&[shown(&a[shows]).into(), shown(&b[shows]).into()]));
        }
    }
    // The same phases in another version's words are the same phases.
    let phases = |weir: &Value| {
        let known = |phase: &Value| ["name", "duration_ms", "arrivals"].map(|key| phase[key].clone());
        weir["phases"].as_array().into_iter().flatten().map(known).collect::<Vec<_>>()
    };
    if phases(a) != phases(b) {
        out.push(say!(texts::PHASES));
    }
    let environment = |weir: &Value| weir["environment"].as_object().cloned().unwrap_or_default();
    let (a, b) = (environment(a), environment(b));
    let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| a.get(*name) != b.get(*name)) {
        let of = |side: &serde_json::Map<String, Value>| match side.get(name) {
            Some(value) => shown(value).into(),
            None => Said::from(texts::UNKNOWN),
        };
        out.push(say!(texts::ENVIRONMENT, name, of(&a), of(&b)));
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        let text = compare(("a.json", &a), ("b.json", &b), Language::English);
        let row = text.lines().find(|line| line.starts_with("response p50")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[..8], ["response", "p50,", "ms", "11.0", "21.0", "+10.0", "(+91", "%)"]);
        let bound = |cell: &str| cell.parse::<f64>().unwrap();
        assert!(bound(cells[8]) > 8.0 && bound(cells[10]) < 12.0, "{row}");
        assert!(text.contains(texts::VERDICT.en) && text.contains("(10 of A, 10 of B)"), "{text}");
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
        let text = compare(("a", &report(12, 1.0, "http://x")), ("b", &b), Language::English);
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
        assert!(text.contains("needs 10 values"));
        let artillery = json!({"aggregate": {}, "intermediate": []});
        assert!(compare(("a", &artillery), ("b", &artillery), Language::English).contains("weir did not write A"));
    }

    #[test]
    fn short_runs_show_their_whole() {
        let mut a = report(2, 10.0, "http://x");
        a["aggregate"] = json!({"counters": {"http.requests": 300}, "summaries": {"http.response_time": {"p50": 7}}});
        a["weir"]["started_ms"] = json!(1000);
        a["weir"]["ended_ms"] = json!(4000);
        a["weir"]["service"] = json!({"count": 300, "p50": 6.5, "p99": 8.0});
        let text = compare(("a", &a), ("b", &report(12, 1.0, "http://x")), Language::English);
        let cells = |name: &str| {
            let row = text.lines().find(|line| line.starts_with(name)).unwrap();
            row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(cells("requests/s")[1], "100");
        assert_eq!((&*cells("service p50")[3], &*cells("http.response_time p50")[2]), ("6.50", "7.00"));
        assert!(text.contains("figures of the whole runs") && text.contains("(0 of A, 10 of B)"), "{text}");
    }

    #[test]
    fn only_reports_are_read() {
        assert!(read("x", "{").is_err_and(|why| why.starts_with("x: ")));
        assert!(read("x", "[]").is_err_and(|why| why.contains("not a report")));
        assert!(read("x", r#"{"aggregate":{}}"#).is_ok());
    }

    #[test]
    fn seconds_are_used_where_a_report_has_them_and_failures_have_exact_intervals() {
        let with = |p50: f64, failed: u64| {
            let mut one = report(12, 1.0, "http://x");
            let column: Vec<f64> = (0..100).map(|second| p50 + f64::from(second % 4)).collect();
            one["weir"]["series"] = json!({"interval_ms": 1000, "response": {"p50": column, "p95": column}});
            one["aggregate"] = json!({"counters": {"http.requests": 600, "errors.ETIMEDOUT": failed}});
            one
        };
        let text = compare(("a", &with(10.0, 134)), ("b", &with(20.0, 0)), Language::English);
        let row = text.lines().find(|line| line.starts_with("response p50")).unwrap();
        assert!(row.contains("11.5") && row.contains("21.5") && row.contains("+10.0 (+87 %)"), "{row}");
        let p95 = text.lines().find(|line| line.starts_with("response p95")).unwrap();
        assert!(p95.contains("+10.0 (+87 %)") && !p95.contains("needs"), "{p95}");
        // A report without it for each second, and without periods that have it, has none.
        let mut old = with(10.0, 0);
        old["weir"]["series"]["response"]["p95"] = Value::Null;
        let text_of_old = compare(("a", &old), ("b", &with(20.0, 0)), Language::English);
        let p95 = text_of_old.lines().find(|line| line.starts_with("response p95")).unwrap();
        assert!(p95.contains("needs 10 values"), "{p95}");
        for part in ["A      134 of 600, 22.33 % (19.06 to 25.88 %)", "B - A  -22.33 percentage points (-26."] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        let korean = compare(("a", &with(10.0, 1)), ("b", &with(20.0, 0)), Language::Korean);
        assert!(korean.contains(texts::VERDICT.ko), "{korean}");
    }
}
