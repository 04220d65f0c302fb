//! Facts: named figures of a block, and the check of expectations against them.

use serde_json::Value;

use super::lab::Expect;
use crate::metric::digits;
use crate::said::{Said, say};
use crate::series::{Series, throughput_between, unsteady};

/// The known facts: the beginning of each name, and its meaning. A test checks the guide against them.
pub const FACTS: &[(&str, &str)] = &[
    ("codes.200, codes.5xx", "answers of `weir load` by status, or by its first digit"),
    ("errors, errors.NAME", "requests that failed without an answer, in all or by name"),
    ("requests, responses, throughput", "of `weir load`: sent, answered, answered a second"),
    ("throughput.FROM-TO", "answers a second from one second of the load to another, as throughput.0-4"),
    (
        "drifts",
        "how many of throughput and median latency were not steady, by the test that rejects a block of `weir lab ab`",
    ),
    ("p50, p95, p99, p999, max, mean", "its response latency, ms"),
    ("vusers.failed, socketio.emit, …", "any counter of its report by its whole name"),
    ("vusers.session_length.p95, …", "any summary of its report, and one of its figures"),
    (
        "load.NAME",
        "the JSON that a `run` printed in its last line; a dot separates nested names; a list gives its length",
    ),
    ("told.AS.NAME", "the same for an event"),
    ("counts.NAME", "lines counted"),
    ("hosts.HOST.time_wait, …", "the kernel's counters of a host's network, and its control group's"),
    (
        "links.HOST.to.lost, links.HOST.from.lost, …",
        "of all packets to a host and from it over a bad link: packets, lost, late, full (its queue dropped them), refused, long (more than one packet at once)",
    ),
    ("credits.HOST.left, credits.HOST.out", "burst credits left; how long after the load began they were out, s"),
    ("cpu.PROCESS, cpu.per_request", "CPU seconds of a process; µs of the edge's for an answer"),
    ("seconds", "how long it was measured"),
    ("ended", "processes that ended unexpectedly"),
];

/// Counters that a report leaves out when they are 0.
const ZERO: [&str; 7] = ["codes.", "errors.", "vusers.", "http.", "socketio.", "websocket.", "plugins."];

/// A figure of a block. `None` if the block does not have it.
pub fn fact(answer: &Value, name: &str) -> Option<f64> {
    let (report, usage) = (&answer["load"], &answer["usage"]);
    let counters = &report["aggregate"]["counters"];
    let weir = &report["weir"];
    let responses = || weir["response"]["count"].as_f64();
    match name {
        "seconds" => return usage["seconds"].as_f64(),
        "ended" => return answer["ended"].as_array().map(|list| list.len() as f64),
        "errors" => return counters.is_object().then(|| sum(counters, |key| key.starts_with("errors."))),
        "requests" => return counters.is_object().then(|| counters["http.requests"].as_f64().unwrap_or(0.0)),
        "responses" => return counters.is_object().then(|| counters["http.responses"].as_f64().unwrap_or(0.0)),
        "throughput" => {
            return Some(responses()? / (weir["ended_ms"].as_f64()? - weir["started_ms"].as_f64()?) * 1000.0);
        }
        "drifts" => return Some(unsteady(&Series::of(report)?).len() as f64),
        "p50" | "p95" | "p99" | "p999" | "max" | "mean" => return weir["response"][name].as_f64(),
        "cpu.per_request" => return Some(usage["edge_cpu_s"].as_f64()? / responses()? * 1e6),
        _ => {}
    }
    let (root, rest) = name.split_once('.').unwrap_or((name, ""));
    match root {
        "load" => number(path(report, rest)?),
        "told" => number(path(&answer["told"], rest)?),
        "counts" => answer["counts"][rest].as_f64(),
        "hosts" => number(path(&usage["hosts"], rest)?),
        "credits" => number(path(&answer["credits"], rest)?),
        "links" => number(path(&usage["links"], rest)?),
        "throughput" => {
            let (from, to) = rest.split_once('-')?;
            throughput_between(report, from.parse().ok()?, to.parse().ok()?)
        }
        "cpu" => usage["processes"][rest].as_f64(),
        "codes" if rest.ends_with("xx") && counters.is_object() => {
            let class = format!("http.codes.{}", rest.trim_end_matches("xx"));
            Some(sum(counters, |key| key.starts_with(&class)))
        }
        _ => counted(report, name),
    }
}

/// A counter of a report, or a figure of one of its summaries.
fn counted(report: &Value, name: &str) -> Option<f64> {
    let counters = report["aggregate"]["counters"].as_object()?;
    let whole = if name.starts_with("codes.") { format!("http.{name}") } else { name.to_owned() };
    let summary = || {
        let (of, figure) = name.rsplit_once('.')?;
        report["aggregate"]["summaries"][of][figure].as_f64()
    };
    let found = counters.get(&whole).and_then(Value::as_f64).or_else(summary);
    found.or_else(|| ZERO.iter().any(|known| name.starts_with(known)).then_some(0.0))
}

fn sum(counters: &Value, wanted: impl Fn(&str) -> bool) -> f64 {
    let all = counters.as_object().into_iter().flatten();
    all.filter(|(key, _)| wanted(key)).filter_map(|(_, value)| value.as_f64()).fold(0.0, |sum, value| sum + value)
}

fn path<'v>(json: &'v Value, names: &str) -> Option<&'v Value> {
    names.split('.').try_fold(json, |json, name| json.get(name))
}

fn number(json: &Value) -> Option<f64> {
    let flag = || json.as_bool().map(|flag| f64::from(u8::from(flag)));
    json.as_f64().or_else(flag).or_else(|| json.as_array().map(|list| list.len() as f64))
}

/// The result of checking an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Whether it holds.
    pub holds: bool,
    /// The found value, in words.
    pub found: Said,
    /// The value, if it is a number.
    pub value: Option<f64>,
}

impl Expect {
    /// Checks the answer of a block. If the expectation has `against`, compares it with the answer of that variant.
    pub fn judge(&self, answer: &Value, other: Option<&Value>) -> Judged {
        let value = self.value(answer).and_then(|value| match (&self.against, other) {
            (None, _) => Ok(value),
            (Some(_), Some(other)) => self.value(other).map(|other| value / other),
            (Some(name), None) => Err(say!(VARIANT_NOT_RUN, name)),
        });
        match value {
            Ok(value) => Judged {
                holds: value >= self.range.0 && value <= self.range.1,
                found: figure(value).into(),
                value: Some(value),
            },
            Err(why) => Judged { holds: false, found: why, value: None },
        }
    }

    fn value(&self, answer: &Value) -> Result<f64, Said> {
        let sum = |names: &[String]| {
            names
                .iter()
                .map(|name| fact(answer, name).ok_or_else(|| say!(NOT_MEASURED, name)))
                .sum::<Result<f64, Said>>()
        };
        let value = sum(&self.that)?;
        if self.of.is_empty() { Ok(value) } else { Ok(value / sum(&self.of)?) }
    }

    /// The expected range or verdicts, in words.
    pub fn wanted(&self) -> Said {
        match self.range {
            _ if !self.verdicts.is_empty() => {
                let names = self.verdicts.iter().map(Said::from);
                names.reduce(|one, other| say!(OR, one, other)).unwrap_or_default()
            }
            (least, most) if least == most => figure(least).into(),
            (f64::NEG_INFINITY, most) => format!("≤ {}", figure(most)).into(),
            (least, f64::INFINITY) => format!("≥ {}", figure(least)).into(),
            (least, most) => say!(FROM_TO, figure(least), figure(most)),
        }
    }
}

/// A number as it is printed: whole numbers in full, others with three digits.
fn figure(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e12 { format!("{value}") } else { digits(value) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    fn answer() -> Value {
        json!({
            "load": {
                "aggregate": {
                    "counters": {"http.codes.200": 200, "http.codes.502": 99, "http.codes.503": 1, "http.requests": 300,
                                 "http.responses": 300, "errors.ECONNRESET": 3, "vusers.created": 5},
                    "summaries": {"vusers.session_length": {"p95": 7.5}},
                },
                "weir": {"started_ms": 1000, "ended_ms": 3000, "response": {"count": 300, "p50": 1.5},
                         "series": {"interval_ms": 500, "length": 4, "counts": {"http.codes.200": [10, 20, 30, 5], "x": [9, 9, 9, 9]}}},
                "seen": {"deep": 4, "is": true, "list": [7, 7]},
            },
            "credits": {"edge": {"left": 0.1, "out": 5.5}},
            "usage": {"links": {"client": {"from": {"lost": 12}}}, "edge_cpu_s": 0.003, "processes": {"app": 0.5}, "hosts": {"edge": {"time_wait": 200}}},
            "counts": {"alerts": 2}, "told": {"look": {"n": 9}}, "ended": ["x"],
        })
    }

    #[test]
    fn facts_have_names() {
        let answer = answer();
        let table = [
            ("codes.200", 200.0),
            ("codes.5xx", 100.0),
            ("codes.404", 0.0),
            ("errors", 3.0),
            ("errors.ECONNRESET", 3.0),
            ("throughput", 150.0),
            ("p50", 1.5),
            ("vusers.created", 5.0),
            ("vusers.failed", 0.0),
            ("vusers.session_length.p95", 7.5),
            ("load.seen.deep", 4.0),
            ("load.seen.is", 1.0),
            ("load.seen.list", 2.0),
            ("throughput.0-1", 30.0),
            ("throughput.0.6-9", 35.0),
            ("credits.edge.out", 5.5),
            ("links.client.from.lost", 12.0),
            ("told.look.n", 9.0),
            ("counts.alerts", 2.0),
            ("hosts.edge.time_wait", 200.0),
            ("cpu.app", 0.5),
            ("cpu.per_request", 10.0),
            ("ended", 1.0),
        ];
        for (name, value) in table {
            assert_eq!(fact(&answer, name), Some(value), "{name}");
        }
        for name in
            ["p98", "load.seen.no", "counts.no", "hosts.no.x", "cpu.no", "throughput.4-5", "throughput.0", "rubbish"]
        {
            assert_eq!(fact(&answer, name), None, "{name}");
        }
    }

    #[test]
    fn what_is_expected_holds_or_does_not() {
        let expect = Expect {
            that: vec!["codes.200".into()],
            of: vec!["requests".into()],
            edge: None,
            variant: None,
            against: None,
            range: (0.5, 0.8),
            verdicts: vec![],
            is_timed: false,
            says: String::new(),
            place: String::new(),
        };
        assert_eq!(
            expect.judge(&answer(), None),
            Judged { holds: true, found: "0.667".into(), value: Some(2.0 / 3.0) }
        );
        assert_eq!(expect.wanted(), "0.500 to 0.800");
        let twice = Expect { against: Some("x".into()), range: (1.0, 1.0), ..expect.clone() };
        assert!(twice.judge(&answer(), Some(&answer())).holds && !twice.judge(&answer(), None).holds);
        let none = Expect { that: vec!["nothing".into()], ..expect };
        assert_eq!(none.judge(&answer(), None).found, "not measured: nothing");
    }
}
