//! A stored run as text for a terminal.

use serde_json::Value;

use crate::metric::{self, Metric};
use crate::stats;
use crate::verdict::{plain, signed};

/// From here on it is said that errors come in bursts, and not one by one.
const DISPERSION_TOLD: f64 = 2.0;
/// Changes and spoiled blocks that are listed.
const LISTED_MAX: usize = 8;

/// The whole report.
pub fn text(run: &Value) -> String {
    match run["kind"].as_str() {
        Some("capacity") => return capacity(run),
        Some("why") => return cause(run),
        Some("tune") => return crate::tune::text(run),
        Some("factorial") => return crate::factorial::text(run),
        _ => {}
    }
    if run["kind"] == "lab" {
        return crate::experiment::report::text(run);
    }
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    for text in head(run) {
        line(text);
    }
    line(String::new());
    line(strips(run));
    line(table(run));
    for text in notes(run) {
        line(text);
    }
    line(format!("Verdict: {}", run["verdict"]["text"].as_str().unwrap_or("none")));
    if run["kind"] == "aa" {
        line(calibration(run));
    }
    out
}

/// What limits, with what it rests on.
fn cause(run: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let head = format!(
        "Run {} of {} ({}), {}\n",
        word(&run["id"]),
        word(&run["before"]["file"]),
        word(&run["environment"]["before"]),
        word(&run["load"])
    );
    let cautions: String = texts(&run["cautions"]).iter().map(|caution| format!("Caution: {caution}\n")).collect();
    format!("{head}\n{}{cautions}", crate::why::say::text(run))
}

/// A search: what was tried, in order.
fn capacity(run: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![
        format!(
            "Run {} of {} ({})",
            word(&run["id"]),
            word(&run["before"]["file"]),
            word(&run["environment"]["before"])
        ),
        format!("Objective  {}", word(&run["objective"])),
        String::new(),
    ];
    for step in run["steps"].as_array().into_iter().flatten() {
        let rate = metric::digits(step["rate"].as_f64().unwrap_or(f64::NAN));
        let why = step["why"].as_str().map_or("holds".to_owned(), |why| format!("fails: {why}"));
        lines.push(format!(
            "{rate:>10}/s  {why}{}",
            if step["is_confirmation"] == true { " (confirmation)" } else { "" }
        ));
    }
    let usl = &run["usl"];
    if let Some(sigma) = usl["sigma"].as_f64() {
        let peak = usl["peak_in_flight"].as_f64().map_or(
            "no peak in what was measured; extrapolation beyond 1.5 times its range is suppressed".to_owned(),
            |peak| {
                let high = usl["peak_interval"][1].as_f64();
                let high = high.map_or("beyond 1.5 times what was measured".to_owned(), metric::digits);
                let ends = usl["peak_interval"][0]
                    .as_f64()
                    .map_or_else(String::new, |low| format!(" (95 %: {} to {high})", metric::digits(low)));
                format!("peak at {} in flight{ends}", metric::digits(peak))
            },
        );
        let kappa = usl["kappa"].as_f64().unwrap_or(0.0);
        lines.push(format!("Scalability law: σ {}, κ {}; {peak}", metric::digits(sigma), metric::digits(kappa)));
    }
    lines.extend(cautions(run));
    lines.push(format!("Verdict: {}", word(&run["verdict"]["text"])));
    lines.join("\n") + "\n"
}

fn head(run: &Value) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let side = |key: &str| format!("{} ({})", word(&run[key]["file"]), word(&run["environment"][key]));
    let mut lines = vec![format!("Run {} of {}", word(&run["id"]), word(&run["load"]))];
    if run["kind"] == "aa" {
        lines.push(format!("A, twice   {}", side("before")));
    } else {
        lines.extend([format!("A, before  {}", side("before")), format!("B, after   {}", side("after"))]);
        let changes: Vec<String> = texts(&run["changes"]);
        lines.extend(changes.iter().take(LISTED_MAX).map(|change| format!("           {change}")));
    }
    if run["kind"] == "elsewhere" {
        lines.push(
            "Unpaired: what else differed between the runs is in the figures (Mann and Whitney, Hodges and Lehmann)"
                .to_owned(),
        );
        return lines;
    }
    let (seed, asked) = (&run["seed"], &run["asked"]);
    let isolated = if asked["is_isolated"] == true { "namespaces of its own" } else { "plain processes" };
    let each = if run["is_duet"] == true {
        "duet: A and B at once, each with its share of the edge's CPUs;"
    } else if run["is_kept_warm"] == true {
        "kept warm: each quartet, by reloads,"
    } else {
        "each"
    };
    lines.push(format!(
        "Blocks of {} s, order by seed {seed}; {each} in {isolated}; CPUs: edge {}, client {}, origin {}",
        asked["block_s"],
        list(&asked["cpus"]["edge"]),
        list(&asked["cpus"]["client"]),
        list(&asked["cpus"]["origin"]),
    ));
    lines
}

/// The blocks in their order, each by its letter; lower case where it was not used.
fn strips(run: &Value) -> String {
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let key = run["design"]["primary"].as_str().unwrap_or_default();
    let letters: String = blocks
        .iter()
        .map(|block| {
            let letter = block["arm"].as_str().unwrap_or("?");
            if is_used(block) { letter.to_owned() } else { letter.to_lowercase() }
        })
        .collect();
    let values = |arm: &str| {
        let of = blocks.iter().filter(|block| block["arm"] == arm && is_used(block));
        of.filter_map(|block| block["values"][key].as_f64()).map(metric::digits).collect::<Vec<_>>().join(" ")
    };
    let unit = metric::of(key).map_or("", |metric| metric.unit);
    format!("Order   {letters}\n{key} of A, {unit}   {}\n{key} of B, {unit}   {}\n", values("A"), values("B"))
}

fn is_used(block: &Value) -> bool {
    block["spoiled"].as_array().is_none_or(Vec::is_empty)
}

fn table(run: &Value) -> String {
    let mut rows = vec![["", "before", "after", "change", "interval", "detectable"].map(str::to_owned).to_vec()];
    for json in run["metrics"].as_array().into_iter().flatten() {
        let Some(metric) = json["key"].as_str().and_then(metric::of) else { continue };
        rows.push(row(json, metric, run["design"]["primary"] == metric.key));
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (text, width))| match at {
                0 => format!("{text:<width$}"),
                _ => format!("{text:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        })
        .collect()
}

fn row(json: &Value, metric: &Metric, is_primary: bool) -> Vec<String> {
    let show = |key: &str, at: usize| {
        let least = if json["is_least"][at] == true { "≥ " } else { "" };
        json[key].as_f64().map_or("–".to_owned(), |value| format!("{least}{}", metric.show(value)))
    };
    let interval = json["interval"].as_array().and_then(|ends| Some((ends.first()?.as_f64()?, ends.get(1)?.as_f64()?)));
    vec![
        format!("{}{}", metric.key, if is_primary { " *" } else { "" }),
        show("before", 0),
        show("after", 1),
        json["effect"].as_f64().map_or("–".to_owned(), |effect| signed(metric, effect)),
        interval.map_or("–".to_owned(), |(low, high)| format!("{} to {}", signed(metric, low), signed(metric, high))),
        json["detectable"].as_f64().map_or("–".to_owned(), |amount| plain(metric, amount)),
    ]
}

/// Blocks that were not used, and what makes the rest less than it seems.
pub(crate) fn notes(run: &Value) -> Vec<String> {
    spoiled(run).into_iter().chain(cautions(run)).chain(of_errors(run)).chain(crate::elsewhere::notes(run)).collect()
}

/// How far counts of errors can be trusted: what none of so many leaves open, and how much more than by chance they differ.
fn of_errors(run: &Value) -> Vec<String> {
    let Some(json) = run["metrics"].as_array().into_iter().flatten().find(|json| json["key"] == "errors") else {
        return Vec::new();
    };
    let failed = |at: usize| (json["failed"][at][0].as_u64().unwrap_or(0), json["failed"][at][1].as_u64().unwrap_or(0));
    let arms = [("before", failed(0)), ("after", failed(1))];
    let has_any = arms.iter().any(|(_, (failed, _))| *failed > 0);
    let none = arms.iter().filter(|(_, (failed, of))| has_any && *failed == 0 && *of > 0).map(|(arm, (_, of))| {
        format!("Errors {arm}: 0 of {of}; 95 % upper bound {} %", metric::digits(stats::zero_bound(*of) * 100.0))
    });
    let wide = json["over_dispersion"].as_f64().filter(|phi| *phi >= DISPERSION_TOLD).map(|phi| {
        format!("Errors differ from block to block {} times as much as chance would make them (φ)", metric::digits(phi))
    });
    none.chain(wide).collect()
}

fn spoiled(run: &Value) -> Vec<String> {
    let blocks = run["blocks"].as_array().into_iter().flatten().filter(|block| !is_used(block));
    let line = |block: &Value| {
        let pair = block["pair"].as_u64().unwrap_or(0) + 1;
        format!(
            "Not used: {} of pair {pair}: {}",
            block["arm"].as_str().unwrap_or("?"),
            texts(&block["spoiled"]).join("; ")
        )
    };
    blocks.map(line).take(LISTED_MAX).collect()
}

/// What makes the figures less than they seem, each kind once.
fn cautions(run: &Value) -> Vec<String> {
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let with = blocks
        .iter()
        .filter(|block| is_used(block) && block["cautions"].as_array().is_some_and(|list| !list.is_empty()))
        .count();
    let mut lines = Vec::new();
    if with > 0 {
        let example = blocks.iter().flat_map(|block| texts(&block["cautions"])).next().unwrap_or_default();
        lines.push(format!(
            "Caution: {with} of {} blocks were used although: {example} (--noisy asked for it)",
            blocks.len()
        ));
    }
    if run["is_interrupted"] == true {
        lines.push("Stopped before its end".to_owned());
    }
    if let Some(throttled) = run["throttled"]["throttled"].as_u64() {
        lines.push(format!("The edge's quota made it wait in {throttled} of {} periods", run["throttled"]["periods"]));
    }
    lines
}

/// What a configuration beside itself is run for.
fn calibration(run: &Value) -> String {
    let alarms: Vec<&str> = run["metrics"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|json| {
            json["interval"].as_array().is_some_and(|ends| {
                ends.iter().all(|end| end.as_f64() > Some(0.0)) || ends.iter().all(|end| end.as_f64() < Some(0.0))
            })
        })
        .filter(|json| json["p_holm"].as_f64().is_some_and(|p| p < 0.05))
        .filter_map(|json| json["key"].as_str())
        .collect();
    let sentence = if alarms.is_empty() {
        "Calibration: no false alarm".to_owned()
    } else {
        format!(
            "Calibration: false alarm of {}: this machine makes differences where there are none",
            alarms.join(", ")
        )
    };
    let mut lines = vec![
        sentence,
        format!("{:<12}{:>10}{:>12}{:>12}{:>12}", "detectable", "spread", "8 pairs", "16 pairs", "24 pairs"),
    ];
    for json in run["metrics"].as_array().into_iter().flatten() {
        let (Some(metric), Some(deviation)) = (json["key"].as_str().and_then(metric::of), json["deviation"].as_f64())
        else {
            continue;
        };
        if metric.scale == metric::Scale::Share {
            continue;
        }
        let at = |pairs| plain(metric, crate::stats::detectable(deviation, pairs, crate::stats::LOOK_ALPHA).exp_m1());
        lines.push(format!(
            "{:<12}{:>10}{:>12}{:>12}{:>12}",
            metric.key,
            plain(metric, deviation),
            at(8),
            at(16),
            at(24)
        ));
    }
    lines.join("\n")
}

fn list(json: &Value) -> String {
    json.as_array().into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn texts(json: &Value) -> Vec<String> {
    json.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn run() -> Value {
        json!({
            "id": "20260101-000000-000", "kind": "ab", "seed": 7, "load": "/1k at 500 a second over 16 connections",
            "before": {"file": "/a.conf"}, "after": {"file": "/b.conf"},
            "environment": {"before": "nginx/1.22.1", "after": "nginx/1.22.1"},
            "changes": ["keepalive (in http/upstream app): none → 64"],
            "asked": {"block_s": 20.0, "is_isolated": true, "cpus": {"edge": [0], "client": [1], "origin": [1]}},
            "design": {"primary": "p95", "looks": [8], "alpha": 0.05},
            "blocks": [
                {"pair": 0, "arm": "A", "values": {"p95": 41.0}, "spoiled": [], "cautions": []},
                {"pair": 0, "arm": "B", "values": {"p95": 30.0}, "spoiled": ["other work used 20 %"], "cautions": []},
                {"pair": 0, "arm": "B", "values": {"p95": 35.0}, "spoiled": [], "cautions": ["drift"]},
            ],
            "metrics": [{"key": "p95", "before": 41.0, "after": 35.0, "effect": -0.15, "interval": [-0.18, -0.12], "detectable": 0.04, "deviation": 0.03, "p_holm": 0.01}],
            "verdict": {"text": "faster by 12–18 %"},
        })
    }

    #[test]
    fn a_run_can_be_read() {
        let text = text(&run());
        for part in [
            "Order   AbB",
            "p95 *",
            "−15 %",
            "−18 % to −12 %",
            "4.0 %",
            "Not used: B of pair 1: other work",
            "keepalive",
            "Verdict: faster by 12–18 %",
            "1 of 3 blocks",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn counts_of_errors_say_what_they_leave_open() {
        let mut run = run();
        run["metrics"] =
            json!([{"key": "errors", "before": 0.1, "failed": [[132, 930], [0, 930]], "over_dispersion": 5.7}]);
        let text = text(&run);
        assert!(text.contains("Errors after: 0 of 930; 95 % upper bound 0.323 %"), "{text}");
        assert!(text.contains("5.70 times as much as chance"), "{text}");
    }

    #[test]
    fn a_search_is_told_in_its_order() {
        let run = json!({
            "kind": "capacity", "id": "x", "objective": "p95 ≤ 20 ms", "verdict": {"text": "capacity 400/s"},
            "steps": [{"rate": 400.0, "passed": true}, {"rate": 600.0, "passed": false, "why": "p95 30 ms", "is_confirmation": true}],
            "usl": {"sigma": 0.05, "kappa": 0.001, "peak_in_flight": 30.0, "peak_interval": [25.0, 40.0]},
        });
        let text = text(&run);
        for part in [
            "400/s  holds",
            "600/s  fails: p95 30 ms (confirmation)",
            "peak at 30.0 in flight (95 %: 25.0 to 40.0)",
            "capacity 400/s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_calibration_names_false_alarms_and_what_can_be_seen() {
        let mut run = run();
        run["kind"] = json!("aa");
        assert!(text(&run).contains("false alarm of p95"));
        run["metrics"][0]["interval"] = json!([-0.01, 0.02]);
        let text = text(&run);
        assert!(text.contains("no false alarm") && text.contains("p95              3.0 %       4.1 %"), "{text}");
        assert!(super::text(&Value::Null).contains("Verdict: none"));
    }
}
