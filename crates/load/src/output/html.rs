//! The report as one page: offline, light and dark, readable on a phone and without JavaScript.
//!
//! It is made from the JSON report, so that a stored one, of weir or of Artillery itself, gives the page too.

mod chart;
mod lines;
mod tables;

use serde_json::Value;

use super::legacy::iso;
use super::number::{duration, grouped, js, ms};
use crate::record::Hdr;
use chart::{Chart, Line, Shape, short, time_ticks};
use lines::Lines;

const TEMPLATE: &str = include_str!("html/template.html");
/// Kinds of errors drawn over time; the most frequent ones.
const ERRORS_DRAWN: usize = 6;
/// Columns of the picture of latencies, and the decades they cover.
const BARS: usize = 72;
const BAR_LOW_NS: f64 = 1e4;
const BAR_HIGH_NS: f64 = 1e11;

/// The page of a report.
pub fn render(report: &Value) -> String {
    let weir = &report["weir"];
    let title = weir["script"].as_str().filter(|script| !script.is_empty()).unwrap_or("Load report");
    let lines = Lines::of(report).unwrap_or_default();
    let body = [
        head(report, title),
        verdicts(report),
        tiles(report),
        charts(report, &lines),
        latencies(weir),
        tables::errors(report),
        tables::endpoints(&report["aggregate"]),
        tables::everything(report),
        footer(weir),
    ]
    .concat();
    // The body last: what it holds is not looked at for placeholders.
    TEMPLATE.replace("{{title}}", &escape(title)).replacen("{{body}}", &body, 1)
}

/// A text as HTML shows it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

fn footer(weir: &Value) -> String {
    let latencies = "Latency is counted twice: <i>response</i> from the instant a request was meant to begin, \
                     <i>service</i> from when it was sent; where the two part, requests waited to be sent.";
    format!("<footer>Made by weir load. {}</footer>\n", if weir.is_object() { latencies } else { "" })
}

fn head(report: &Value, title: &str) -> String {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let time = |own: &str, other: &str| weir[own].as_u64().filter(|ms| *ms > 0).or_else(|| whole[other].as_u64());
    let targets: Vec<String> = weir["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|target| format!("<code>{}</code>", escape(target)))
        .collect();
    let mut out = format!("<h1>{}</h1>\n", escape(title));
    if !targets.is_empty() {
        out.push_str(&format!("<div class=\"where\">Load went to {}</div>\n", targets.join(", ")));
    }
    if let (Some(from), Some(to)) = (time("started_ms", "firstMetricAt"), time("ended_ms", "lastMetricAt")) {
        let from_text = iso(from).replace('T', " ");
        let from_text = from_text.get(..19).unwrap_or_default();
        let run = weir["test_run_id"].as_str().filter(|id| !id.is_empty());
        let run = run.map_or_else(String::new, |id| format!(" · <span class=\"mono\">{}</span>", escape(id)));
        out.push_str(&format!(
            "<div class=\"soft\">{from_text} UTC · {}{run}</div>\n",
            duration(to.saturating_sub(from))
        ));
    }
    out
}

/// What must be known before any figure is read.
fn verdicts(report: &Value) -> String {
    let weir = &report["weir"];
    let mut says = Vec::new();
    let texts = |value: &Value| {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(escape).collect::<Vec<_>>()
    };
    let list = |items: Vec<String>| items.iter().map(|item| format!("<li>{item}</li>")).collect::<String>();
    let generator = &weir["generator"];
    if generator["is_limit"].as_bool() == Some(true) {
        let why = list(texts(&generator["limits"]));
        says.push(("bad", format!("<b class=\"bad\">The generator was the limit.</b> These figures tell of it, not of the target.<ul>{why}</ul>")));
    } else if generator.is_object() {
        says.push((
            "ok",
            format!(
                "<b class=\"ok\">The generator kept up.</b> <span class=\"soft\">{}</span>",
                escape(&tables::generator(generator))
            ),
        ));
    } else {
        says.push((
            "warn",
            "<b class=\"warn\">Nobody looked at the generator.</b> The report does not say whether it was the limit."
                .to_owned(),
        ));
    }
    let incomplete = texts(&weir["incomplete"]);
    if !incomplete.is_empty() {
        says.push(("warn", format!("<b class=\"warn\">Incomplete.</b><ul>{}</ul>", list(incomplete))));
    }
    let checks: Vec<&Value> = weir["checks"].as_array().into_iter().flatten().collect();
    if !checks.is_empty() {
        let failed: Vec<String> = checks
            .iter()
            .filter(|check| check["ok"].as_bool() != Some(true))
            .map(|check| {
                let optional = if check["strict"].as_bool() == Some(false) { " (optional)" } else { "" };
                format!("<code>{}</code>{optional}", escape(check["check"].as_str().unwrap_or_default()))
            })
            .collect();
        let all = checks.len();
        says.push(if failed.is_empty() {
            ("ok", format!("<b class=\"ok\">All {all} checks met.</b>"))
        } else {
            ("bad", format!("<b class=\"bad\">{} of {all} checks not met.</b><ul>{}</ul>", failed.len(), list(failed)))
        });
    }
    let says: String =
        says.into_iter().map(|(kind, text)| format!("<div class=\"say {kind}\">{text}</div>\n")).collect();
    format!("<div class=\"strip\">{says}</div>\n")
}

fn tiles(report: &Value) -> String {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let count = |name: &str| whole["counters"][name].as_u64();
    let mut tiles: Vec<(String, String, bool)> = Vec::new();
    let mut add =
        |key: &str, text: Option<String>, is_bad: bool| tiles.extend(text.map(|text| (key.to_owned(), text, is_bad)));
    for (key, names) in [
        ("virtual users", &["vusers.created"][..]),
        ("requests", &["http.requests"]),
        ("messages sent", &["websocket.messages_sent", "socketio.emit"]),
    ] {
        add(key, names.iter().find_map(|name| count(name)).map(grouped), false);
    }
    let rate = whole["rates"].as_object().and_then(|rates| rates.values().next()).and_then(Value::as_f64);
    add("a second", rate.map(js), false);
    let failed = count("vusers.failed");
    add("virtual users failed", failed.map(grouped), failed.unwrap_or(0) > 0);
    let skipped = count("vusers.skipped").unwrap_or(0) + weir["dropped"].as_u64().unwrap_or(0);
    add("arrivals not begun", (skipped > 0).then(|| grouped(skipped)), true);
    let has_own = weir["response"]["count"].as_u64().unwrap_or(0) > 0;
    for (figure, name) in [("p50", "median"), ("p99", "p99"), ("max", "max")] {
        let (value, word) = if has_own {
            (&weir["response"][figure], "response")
        } else {
            (&whole["summaries"]["http.response_time"][figure], "response time")
        };
        add(&format!("{word} {name}, ms"), value.as_f64().map(ms), false);
    }
    let tiles: String = tiles
        .into_iter()
        .map(|(key, text, is_bad)| {
            let bad = if is_bad { " bad-ink" } else { "" };
            format!(
                "<div class=\"tile\"><div class=\"n{bad}\">{text}</div><div class=\"k\">{}</div></div>\n",
                escape(&key)
            )
        })
        .collect();
    format!("<div class=\"tiles\">{tiles}</div>\n")
}

fn charts(report: &Value, lines: &Lines) -> String {
    if lines.length == 0 {
        return String::new();
    }
    let some = |values: &[f64]| {
        values.iter().copied().map(|value| Some(value).filter(|value| value.is_finite())).collect::<Vec<_>>()
    };
    let line = |name: &str, color: &str, values: Vec<Option<f64>>| Line {
        name: name.to_owned(),
        color: color.to_owned(),
        is_thin: false,
        values,
    };
    let bands = phases(report, lines);
    let chart = |title: &str, note: &str, unit: &'static str, shape: Shape, drawn: Vec<Line>| {
        let (labels, ticks) = (lines.labels(), time_ticks(lines.seconds()));
        let has_line = drawn.iter().any(|line| line.values.iter().any(Option::is_some));
        let chart = Chart {
            title: title.to_owned(),
            note: note.to_owned(),
            unit,
            lines: drawn,
            labels,
            ticks,
            bands: bands.clone(),
            shape,
        };
        if has_line { chart.render() } else { String::new() }
    };
    let every = format!("every {}", chart::clock(lines.step_ms / 1000.0));
    let sent = [
        ("http.requests", "requests", "c0"),
        ("websocket.messages_sent", "messages sent", "c1"),
        ("websocket.messages_received", "messages received", "c7"),
        ("socketio.emit", "emits", "c4"),
    ];
    let sent =
        sent.iter().filter_map(|(name, shown, color)| Some(line(shown, color, some(lines.rate(name)?)))).collect();
    let quantiles = |four: &[Vec<Option<f64>>]| -> Vec<Line> {
        let colors = ["c1", "c0", "c2", "c5"];
        let drawn = four.iter().zip(lines.quantiles).zip(colors);
        drawn
            .map(|((values, name), color)| Line { is_thin: name == "max", ..line(name, color, values.clone()) })
            .collect()
    };
    let codes = lines.rates("http.codes.").into_iter();
    let codes =
        codes.map(|(code, values)| line(&code, &format!("s{}", code.get(..1).unwrap_or("1")), some(values))).collect();
    let total = |values: &[f64]| values.iter().filter(|value| value.is_finite()).sum::<f64>();
    let mut errors = lines.rates("errors.");
    errors.sort_by(|a, b| total(b.1).total_cmp(&total(a.1)));
    let errors = errors.into_iter().take(ERRORS_DRAWN).zip(["c3", "c2", "c4", "c6", "c7", "c5"]);
    let errors = errors.map(|((name, values), color)| line(&name, color, some(values))).collect();
    let active = lines.active.clone().map(|values| line("active", "c4", values)).into_iter().collect();
    let arrived = lines.rate("vusers.created").map(|values| line("created", "c0", some(values))).into_iter();
    let skipped = lines.rate("vusers.skipped").map(|values| line("skipped", "c3", some(values)));
    let own = !lines.service.is_empty();
    format!(
        "<h2>Over time</h2>\n{}{}{}<div class=\"two\">{}{}{}{}</div>\n",
        chart("Load", &format!("a second, {every}"), "/s", Shape::Lines, sent),
        chart(
            "Response latency",
            if own { "ms, from the intended start" } else { "ms, http.response_time" },
            "ms",
            Shape::Log,
            quantiles(&lines.response)
        ),
        chart("Service latency", "ms, from the send", "ms", Shape::Log, quantiles(&lines.service)),
        chart("Status codes", "a second", "/s", Shape::Stack, codes),
        chart("Errors", "a second", "/s", Shape::Lines, errors),
        chart("Virtual users", "at once", "", Shape::Lines, active),
        chart("Arrivals", "a second", "/s", Shape::Lines, arrived.chain(skipped).collect()),
    )
}

/// The phases as parts of the time axis.
fn phases(report: &Value, lines: &Lines) -> Vec<(f64, f64, String)> {
    let seconds = lines.seconds();
    let phases: Vec<&Value> = report["weir"]["phases"].as_array().into_iter().flatten().collect();
    let Some(mut at) = report["weir"]["started_ms"].as_f64().filter(|_| seconds > 0.0) else { return Vec::new() };
    at = (at - lines.start_ms) / 1000.0;
    let mut bands = Vec::new();
    for phase in phases {
        let text = |key: &str| phase[key].as_str().unwrap_or_default();
        let end = at + phase["duration_ms"].as_f64().unwrap_or(0.0) / 1000.0;
        let name = if text("name") == "unnamed" {
            text("arrivals").to_owned()
        } else {
            format!("{} · {}", text("name"), text("arrivals"))
        };
        let (from, to) = ((at / seconds).clamp(0.0, 1.0), (end / seconds).clamp(0.0, 1.0));
        bands.push((from, to, name));
        at = end;
    }
    bands
}

/// How often each latency was, and the figures beside it.
fn latencies(weir: &Value) -> String {
    let hdr = |key: &str| weir[key]["hdr_ns"].as_str().and_then(Hdr::decode).filter(|hdr| hdr.count() > 0);
    let known = [("response", "c2"), ("service", "c0")].map(|(key, color)| (key, color, hdr(key)));
    let (low, high) =
        known.iter().filter_map(|(.., hdr)| hdr.as_ref()).fold((BAR_HIGH_NS, BAR_LOW_NS), |(low, high), hdr| {
            (low.min(hdr.min().as_nanos() as f64), high.max(hdr.max().as_nanos() as f64))
        });
    if low > high {
        return String::new();
    }
    // Whole decades, so that the ticks are round numbers.
    let from = low.max(BAR_LOW_NS).log10().floor();
    let to = high.min(BAR_HIGH_NS).log10().ceil().max(from + 1.0);
    let bounds: Vec<u64> =
        (0..=BARS).map(|at| 10f64.powf(from + (to - from) * at as f64 / BARS as f64) as u64).collect();
    let drawn = known.iter().filter_map(|(name, color, hdr)| {
        let hdr = hdr.as_ref()?;
        let all = hdr.count() as f64;
        let values = hdr.bars(&bounds).into_iter().map(|count| Some(count as f64 / all * 100.0)).collect();
        Some(Line { name: (*name).to_owned(), color: (*color).to_owned(), is_thin: false, values })
    });
    let label = |ns: u64| ms(ns as f64 / 1e6);
    let chart = Chart {
        title: "How often each latency was".to_owned(),
        note: "per cent of all, by ms on a logarithmic axis".to_owned(),
        unit: "%",
        lines: drawn.collect(),
        labels: bounds.windows(2).map(|pair| format!("{} to {} ms", label(pair[0]), label(pair[1]))).collect(),
        ticks: (from as i32..=to as i32)
            .map(|power| ((f64::from(power) - from) / (to - from), format!("{} ms", short(10f64.powi(power - 6)))))
            .collect(),
        bands: Vec::new(),
        shape: Shape::Columns,
    };
    format!("<h2>Latency</h2>\n{}{}", tables::latency(weir), chart.render())
}

#[cfg(test)]
mod tests {
    use super::super::facts::PhaseFact;
    use super::super::{Facts, SelfCheck, json};
    use super::*;
    use crate::record::{Merger, Recorder};
    use std::time::Duration;
    use weir_meter::Step;

    fn report() -> Value {
        let recorder = Recorder::at(1_795_186_840_000);
        for second in 0..25u64 {
            recorder.set_ms(1_795_186_840_000 + second * 1000);
            let counts = [
                ("vusers.created", 5),
                ("vusers.completed", 4),
                ("http.requests", 20),
                ("http.codes.200", 19),
                ("http.codes.503", 1),
                ("errors.<b>", 1),
                ("plugins.metrics-by-endpoint./a<b>.codes.200", 19),
            ];
            counts.iter().for_each(|(name, count)| recorder.count(recorder.metric(name), *count));
            recorder.rate(recorder.metric("http.request_rate"));
            recorder.sample(recorder.metric("plugins.metrics-by-endpoint.response_time./a<b>"), 4.0);
            recorder.latency(Duration::from_millis(10 + second), Duration::from_micros(800));
            recorder.failure(Step::Connect, "<b>");
        }
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let facts = Facts {
            script: "{{body}}<script>".to_owned(),
            targets: vec!["http://x/<y>".to_owned()],
            phases: vec![PhaseFact { name: "warm".to_owned(), duration_ms: 10_000, ..PhaseFact::default() }],
            started_ms: 1_795_186_840_000,
            self_check: SelfCheck { worker_cpu: vec![0.4], ..SelfCheck::default() },
            ..Facts::default()
        };
        json::document(&merger.outcome(), &facts)
    }

    #[test]
    fn one_file_that_asks_nobody() {
        let page = render(&report());
        for outside in ["http-equiv", "src=", "<link", "@import", "url(", "fetch(", "//cdn"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("{{").count(), 2, "only the script's own name");
    }

    #[test]
    fn nothing_from_the_run_is_markup() {
        let page = render(&report());
        assert!(!page.contains("<b>&") && !page.contains("<y>") && !page.contains("/a<b>"));
        assert!(page.contains("/a&lt;b&gt;") && page.contains("&lt;y&gt;"));
        assert_eq!(page.matches("<script>").count(), 1);
    }

    #[test]
    fn every_part_is_there() {
        let page = render(&report());
        for part in [
            "The generator kept up",
            "Load went to",
            "Response latency",
            "Service latency",
            "Status codes",
            "Errors",
            "Virtual users",
            "Arrivals",
            "How often each latency was",
            "Endpoints",
            "connect",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn any_json_makes_a_page() {
        for text in [
            "null",
            "{}",
            "[1]",
            r#"{"aggregate":{"counters":{"a":1}},"intermediate":[{"period":"0"}]}"#,
            r#"{"weir":{"generator":{"is_limit":true,"limits":["x"]},"response":{"hdr_ns":"AAAA"}}}"#,
        ] {
            assert!(render(&serde_json::from_str(text).unwrap()).contains("</html>"), "{text}");
        }
    }
}
