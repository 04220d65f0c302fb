//! The report as one page: offline, light and dark, readable on a phone and without JavaScript. The charts are the
//! dashboard's: the page has its modules inside.
//!
//! The page is made from the JSON report, so that a stored report of weir or of Artillery gives the same page.

mod chart;
mod lines;
mod over_time;
mod tables;
mod verdict;

use serde_json::Value;
use weir_dash::inline::{self, escape};

use super::legacy::iso;
use super::number::{self, duration, js, ms};
use crate::record::Hdr;
use chart::{Chart, Line, Shape, Stroke, short};
use lines::Lines;

const SCRIPT: &str = include_str!("html/report.js");
/// Columns of the histogram of latencies, and the decades it covers.
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
        verdict::strip(report),
        tiles(report),
        over_time::charts(report, &lines),
        latencies(report),
        tables::errors(report),
        tables::endpoints(&report["aggregate"]),
        tables::everything(report),
        footer(weir),
    ]
    .concat();
    let module = Some(("report", SCRIPT));
    inline::Page { is_korean: false, maker: "weir load", title, body: &body, module }.render()
}

/// Groups thousands with a no-break space.
fn grouped(count: u64) -> String {
    number::grouped(count).replace(' ', "\u{a0}")
}

fn footer(weir: &Value) -> String {
    let latencies = "weir measures latency twice: <i>response</i> from the intended start of a request, <i>service</i> from the send. Where the two differ, requests waited to be sent.";
    format!(
        "<footer>Written by weir load. {}</footer>\n",
        if weir["response"]["count"].as_u64().unwrap_or(0) > 0 { latencies } else { "" }
    )
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

/// The most important figures.
fn tiles(report: &Value) -> String {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let mut tiles: Vec<(String, String)> = Vec::new();
    tiles.extend(rate(report));
    let own = ["response", "service"].into_iter().filter(|key| weir[*key]["count"].as_u64().unwrap_or(0) > 0);
    let mut places: Vec<(&str, &Value)> = own.map(|key| (key, &weir[key])).collect();
    if places.is_empty() {
        places.extend(response_time(report).map(|name| (name, &whole["summaries"][name])));
    }
    for (key, figures) in places {
        for figure in ["p50", "p99", "max"].into_iter().filter(|figure| *figure != "max" || key != "service") {
            let value = figures[figure].as_f64().map(|value| format!("{}<small> ms</small>", ms(value)));
            tiles.extend(value.map(|value| (format!("{key} {figure}"), value)));
        }
    }
    let tile = |(key, text): (String, String)| {
        format!("<div class=\"tile\"><div class=\"n\">{text}</div><div class=\"k\">{}</div></div>\n", escape(&key))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.into_iter().map(tile).collect::<String>())
}

/// Requests per second: over the whole run if its length is known, otherwise Artillery's figure.
fn rate(report: &Value) -> Option<(String, String)> {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let sent = [("requests", &["http.requests"][..]), ("messages sent", &["websocket.messages_sent", "socketio.emit"])];
    let (what, count) = sent.into_iter().find_map(|(what, names)| {
        let count: u64 = names.iter().filter_map(|name| whole["counters"][*name].as_u64()).sum();
        (count > 0).then_some((what, count))
    })?;
    let ms = weir["ended_ms"].as_f64().zip(weir["started_ms"].as_f64()).map(|(to, from)| to - from);
    match ms.filter(|ms| *ms >= 1000.0) {
        Some(ms) => Some((format!("{what} a second, mean"), short(count as f64 * 1000.0 / ms))),
        None => {
            whole["rates"].as_object()?.iter().next().and_then(|(name, rate)| Some((name.clone(), js(rate.as_f64()?))))
        }
    }
}

/// The name of Artillery's response time in this report.
fn response_time(report: &Value) -> Option<&'static str> {
    let names = ["http.response_time", "socketio.response_time"];
    names.into_iter().find(|name| report["aggregate"]["summaries"][*name].is_object())
}

/// The histogram of latencies, and the figures beside it.
fn latencies(report: &Value) -> String {
    let weir = &report["weir"];
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
        Some(Line { name: (*name).to_owned(), color: (*color).to_owned(), stroke: Stroke::Solid, values })
    });
    let label = |ns: u64| ms(ns as f64 / 1e6);
    let chart = Chart {
        title: "How often each latency occurred".to_owned(),
        note: "per cent of all requests, by latency in ms on a logarithmic axis".to_owned(),
        unit: "%",
        lines: drawn.collect(),
        place: "latency",
        labels: bounds.windows(2).map(|pair| format!("{} to {} ms", label(pair[0]), label(pair[1]))).collect(),
        ticks: (from as i32..=to as i32)
            .map(|power| ((f64::from(power) - from) / (to - from), format!("{} ms", short(10f64.powi(power - 6)))))
            .collect(),
        bands: Vec::new(),
        shape: Shape::Columns,
        is_wide: true,
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
        for outside in ["src=", "<link", "@import", "import ", "url(", "fetch(", "//cdn", "refresh"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("{{body}}").count(), 2, "only the script's own name");
    }

    #[test]
    fn nothing_from_the_run_is_markup() {
        let page = render(&report());
        assert!(!page.contains("<b>&") && !page.contains("<y>") && !page.contains("/a<b>"));
        assert!(page.contains("/a&lt;b&gt;") && page.contains("&lt;y&gt;"));
        assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
        assert!(!page.contains("<script>"));
    }

    #[test]
    fn every_part_is_there() {
        let page = render(&report());
        for part in [
            "The generator kept up",
            "Load went to",
            "service p99",
            "Status codes",
            "Errors",
            "Virtual users",
            "Arrivals",
            "How often each latency occurred",
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
