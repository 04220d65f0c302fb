//! The report as one page: offline, light and dark, readable on a phone and without JavaScript. The charts are the
//! dashboard's: the page has its modules inside.
//!
//! The page is made from the JSON report, so that a stored report of weir or of Artillery gives the same page.

mod chart;
mod lines;
mod over_time;
mod phrases;
mod tables;
mod verdict;

use serde_json::Value;
use weir_dash::inline::{self, escape};
use weir_words::{Language, Said, Text, say};

use super::legacy::iso;
use super::number::{duration, js, ms};
use crate::record::Hdr;
use crate::texts::page as texts;
use chart::{Chart, ChartLine, Shape, Stroke, short};
use lines::Lines;
use phrases::figure_name;

const SCRIPT: &str = include_str!("html/report.js");
/// Columns of the histogram of latencies, and the decades it covers.
const BARS: usize = 72;
const BAR_LOW_NS: f64 = 1e4;
const BAR_HIGH_NS: f64 = 1e11;

/// The page of a report.
pub fn render(report: &Value, language: Language) -> String {
    let weir = &report["weir"];
    let title = weir["script"].as_str().filter(|script| !script.is_empty()).unwrap_or(texts::PAGE_TITLE.say(language));
    let lines = Lines::of(report).unwrap_or_default();
    let body = [
        head(report, title, language),
        verdict::strip(report, language),
        tiles(report, language),
        over_time::charts(report, &lines, language),
        latencies(report, language),
        tables::errors(report, language),
        tables::endpoints(&report["aggregate"], language),
        tables::everything(report, language),
        footer(weir, language),
    ]
    .concat();
    let module = Some(("report", SCRIPT));
    let is_korean = language == Language::Korean;
    inline::Page { is_korean, maker: "weir load", title, body: &body, module }.render()
}

fn footer(weir: &Value, language: Language) -> String {
    let has_latencies = weir["response"]["count"].as_u64().unwrap_or(0) > 0;
    let latencies = if has_latencies { texts::PAGE_FOOT_LATENCIES.into() } else { Said::default() };
    format!("<footer>{}</footer>\n", say!(texts::PAGE_FOOT, latencies).say(language))
}

fn head(report: &Value, title: &str, language: Language) -> String {
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
        let went = say!(texts::PAGE_LOAD_WENT, targets.join(", "));
        out.push_str(&format!("<div class=\"where\">{}</div>\n", went.say(language)));
    }
    if let (Some(from), Some(to)) = (time("started_ms", "firstMetricAt"), time("ended_ms", "lastMetricAt")) {
        let from_text = iso(from).replace('T', " ");
        let from_text = from_text.get(..19).unwrap_or_default();
        let run = weir["test_run_id"].as_str().filter(|id| !id.is_empty());
        let run = run.map_or_else(String::new, |id| format!(" · <span class=\"mono\">{}</span>", escape(id)));
        out.push_str(&format!(
            "<div class=\"soft\">{from_text} UTC · {}{run}</div>\n",
            duration(to.saturating_sub(from)).say(language)
        ));
    }
    out
}

/// The most important figures.
fn tiles(report: &Value, language: Language) -> String {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let mut tiles: Vec<(String, String)> = Vec::new();
    tiles.extend(rate(report, language));
    let own = ["response", "service"].into_iter().filter(|key| weir[*key]["count"].as_u64().unwrap_or(0) > 0);
    let named = |key| if key == "service" { texts::PAGE_SERVICE } else { texts::PAGE_RESPONSE };
    let mut places: Vec<(Said, &Value, bool)> =
        own.map(|key| (named(key).into(), &weir[key], key == "service")).collect();
    if places.is_empty() {
        places.extend(response_time(report).map(|name| (name.into(), &whole["summaries"][name], false)));
    }
    for (name, figures, is_service) in places {
        for figure in ["p50", "p99", "max"].into_iter().filter(|figure| *figure != "max" || !is_service) {
            let value = figures[figure].as_f64().map(|value| format!("{}<small> ms</small>", ms(value)));
            let name = say!(texts::PAGE_QUANTILE, &name, figure_name(figure, language));
            tiles.extend(value.map(|value| (name.say(language).to_owned(), value)));
        }
    }
    let tile = |(key, text): (String, String)| {
        format!("<div class=\"tile\"><div class=\"n\">{text}</div><div class=\"k\">{}</div></div>\n", escape(&key))
    };
    format!("<div class=\"tiles\">{}</div>\n", tiles.into_iter().map(tile).collect::<String>())
}

/// Requests per second: over the whole run if its length is known, otherwise Artillery's figure.
fn rate(report: &Value, language: Language) -> Option<(String, String)> {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let sent: [(Text, &[&str]); 2] = [
        (texts::PAGE_REQUESTS_MEAN, &["http.requests"]),
        (texts::PAGE_MESSAGES_MEAN, &["websocket.messages_sent", "socketio.emit"]),
    ];
    let (what, count) = sent.into_iter().find_map(|(what, names)| {
        let count: u64 = names.iter().filter_map(|name| whole["counters"][*name].as_u64()).sum();
        (count > 0).then_some((what, count))
    })?;
    let ms = weir["ended_ms"].as_f64().zip(weir["started_ms"].as_f64()).map(|(to, from)| to - from);
    match ms.filter(|ms| *ms >= 1000.0) {
        Some(ms) => Some((what.say(language).to_owned(), short(count as f64 * 1000.0 / ms))),
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
fn latencies(report: &Value, language: Language) -> String {
    let weir = &report["weir"];
    let hdr = |key: &str| weir[key]["hdr_ns"].as_str().and_then(Hdr::decode).filter(|hdr| hdr.count() > 0);
    let known = [("response", texts::PAGE_RESPONSE, "c2"), ("service", texts::PAGE_SERVICE, "c0")];
    let known = known.map(|(key, name, color)| (name, color, hdr(key)));
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
        Some(ChartLine {
            name: name.say(language).to_owned(),
            color: (*color).to_owned(),
            stroke: Stroke::Solid,
            values,
        })
    });
    let label = |ns: u64| ms(ns as f64 / 1e6);
    let range = |low: u64, high: u64| say!(texts::PAGE_FROM_TO, label(low), format!("{} ms", label(high)));
    let chart = Chart {
        title: texts::PAGE_HISTOGRAM.say(language).to_owned(),
        note: texts::PAGE_HISTOGRAM_NOTE.say(language).to_owned(),
        unit: "%",
        lines: drawn.collect(),
        place: texts::PAGE_LATENCY_COLUMN.say(language),
        labels: bounds.windows(2).map(|pair| range(pair[0], pair[1]).say(language).to_owned()).collect(),
        ticks: (from as i32..=to as i32)
            .map(|power| ((f64::from(power) - from) / (to - from), format!("{} ms", short(10f64.powi(power - 6)))))
            .collect(),
        bands: Vec::new(),
        shape: Shape::Columns,
        is_wide: true,
        language,
    };
    let title = texts::PAGE_LATENCY.say(language);
    format!("<h2>{title}</h2>\n{}{}", tables::latency(weir, language), chart.render())
}

#[cfg(test)]
mod tests {
    use super::super::facts::PhaseFact;
    use super::super::{RunFacts, SelfCheck, json};
    use super::*;
    use crate::plan::Arrivals;
    use crate::record::{Merger, Recorder};
    use crate::texts as all_texts;
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
            recorder.failure(Step::AwaitHead, "<b>");
        }
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let facts = RunFacts {
            script: "{{body}}<script>".to_owned(),
            targets: vec!["http://x/<y>".to_owned()],
            phases: vec![PhaseFact {
                name: "warm".to_owned(),
                duration_ms: 10_000,
                arrivals: Arrivals::Rate(5.0).said(),
                ..PhaseFact::default()
            }],
            incomplete: vec![all_texts::STOPPED.into()],
            started_ms: 1_795_186_840_000,
            self_check: SelfCheck { worker_cpu: vec![0.4], machine_cpu: Some(0.99), ..SelfCheck::default() },
            ..RunFacts::default()
        };
        json::document(&merger.outcome(), &facts)
    }

    #[test]
    fn one_file_that_asks_nobody() {
        let page = render(&report(), Language::English);
        for outside in ["src=", "<link", "@import", "import ", "url(", "fetch(", "//cdn", "refresh"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("{{body}}").count(), 2, "only the script's own name");
    }

    #[test]
    fn nothing_from_the_run_is_markup() {
        let page = render(&report(), Language::English);
        assert!(!page.contains("<b>&") && !page.contains("<y>") && !page.contains("/a<b>"));
        assert!(page.contains("/a&lt;b&gt;") && page.contains("&lt;y&gt;"));
        assert_eq!(page.matches("<script").count(), page.matches("</script>").count());
        assert!(!page.contains("<script>"));
    }

    #[test]
    fn every_part_is_there() {
        let page = render(&report(), Language::English);
        for part in [
            "The generator kept up, with a caution",
            "Load went to",
            "service p99",
            "Status codes",
            "Errors",
            "Virtual users",
            "Arrivals",
            "How often each latency occurred",
            "Endpoints",
            "wait",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn a_korean_page_has_no_sentence_left_in_english() {
        let (english, korean) = (render(&report(), Language::English), render(&report(), Language::Korean));
        assert!(korean.contains("<html lang=\"ko\">"));
        for text in texts::ALL.iter().chain([&all_texts::STOPPED, &all_texts::ARRIVALS_RATE]) {
            // Parts of several words, between holes; single words may be names in a run.
            let parts = text.en.split(['{', '}', '<', '>']).filter(|part| part.trim().contains(' '));
            for part in parts.map(|part| escape(part.trim())) {
                assert!(!visible(&korean).contains(&part), "{}: {part}", text.name);
            }
        }
        for part in
            ["시그널을 받아 중단", "초당 5명", "머신의 CPU 사용률이 99 %", "점 하나가 1초의 값", "응답 대기", "/초"]
        {
            assert!(korean.contains(part) && !visible(&english).contains(part), "{part}");
        }
        assert_eq!(weir_words::glossary::forbidden_in(&visible(&korean)), None);
    }

    /// A page without its styles and its script.
    fn visible(page: &str) -> String {
        let (_, body) = page.split_once("<body>").unwrap();
        body.split_once("<script type=\"module\">").unwrap().0.to_owned()
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
            for language in [Language::English, Language::Korean] {
                assert!(render(&serde_json::from_str(text).unwrap(), language).contains("</html>"), "{text}");
            }
        }
    }
}
