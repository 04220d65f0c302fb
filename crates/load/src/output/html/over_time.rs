//! The charts over the time of the run.

use serde_json::Value;
use weir_words::{Language, Text, say};

use super::chart::{self, Band, Chart, ChartLine, Shape, Stroke, time_ticks};
use super::lines::{Four, Lines};
use crate::output::kept::said;
use crate::texts::page as texts;

/// Kinds of errors that are drawn: the most frequent ones.
const ERRORS_DRAWN: usize = 6;
/// Load and latency over the whole width, the other charts in two columns; a sentence if the run was too short.
pub fn charts(report: &Value, lines: &Lines, language: Language) -> String {
    let over_time = texts::PAGE_OVER_TIME.say(language);
    if lines.length < 2 {
        let has_any = report["aggregate"]["counters"].as_object().is_some_and(|counters| !counters.is_empty());
        let why = texts::PAGE_NO_SECONDS.say(language);
        return if has_any { format!("<h2>{over_time}</h2>\n<p class=\"soft\">{why}</p>\n") } else { String::new() };
    }
    let drawer = Drawer { lines, bands: phases(report, lines, language), language };
    let every = say!(texts::PAGE_POINT, chart::clock(lines.step_ms / 1000.0, language));
    let [load, codes_of, errors_of, users, arrive] = [
        (texts::PAGE_LOAD, every.say(language)),
        (texts::PAGE_CODES, texts::PAGE_ANSWERS_A_SECOND.say(language)),
        (texts::PAGE_ERRORS, texts::PAGE_A_SECOND.say(language)),
        (texts::PAGE_VIRTUAL_USERS, texts::PAGE_AT_ONCE.say(language)),
        (texts::PAGE_ARRIVALS, texts::PAGE_USERS_A_SECOND.say(language)),
    ];
    let each_second = texts::PAGE_EACH_SECOND.say(language);
    let wide = [
        if lines.service.is_empty() { String::new() } else { drawer.both() },
        Lines::artillerys(report).filter(|_| !has_values(&lines.service)).map_or_else(String::new, |lines| {
            let drawer = Drawer { bands: phases(report, &lines, language), lines: &lines, language };
            let heads = (texts::PAGE_RESPONSE_TIME, texts::PAGE_AS_ARTILLERY.say(language));
            drawer.draw(heads, "ms", Shape::Log, true, quantiles(&lines.response, language))
        }),
        drawer.draw(load, each_second, Shape::Lines, true, sent(lines, language)),
    ];
    let narrow = [
        drawer.draw(codes_of, each_second, Shape::Stack, false, codes(lines)),
        drawer.draw(errors_of, each_second, Shape::Lines, false, errors(lines)),
        drawer.draw(users, "", Shape::Lines, false, active(lines, language)),
        drawer.draw(arrive, each_second, Shape::Lines, false, arrivals(lines, language)),
    ];
    let no_script = texts::PAGE_NO_SCRIPT.say(language);
    format!(
        "<h2>{over_time}</h2>\n<noscript><p class=\"soft\">{no_script}</p></noscript>\n{}<div class=\"two\">{}</div>\n",
        wide.concat(),
        narrow.concat()
    )
}

/// The data that all charts share.
struct Drawer<'a> {
    lines: &'a Lines,
    bands: Vec<Band>,
    language: Language,
}

impl Drawer<'_> {
    /// A chart with its title and the note beside it.
    fn draw(
        &self,
        (title, note): (Text, &str),
        unit: &'static str,
        shape: Shape,
        is_wide: bool,
        lines: Vec<ChartLine>,
    ) -> String {
        if !lines.iter().any(|line| line.values.iter().flatten().any(|value| value.is_finite())) {
            return String::new();
        }
        let chart = Chart {
            title: title.say(self.language).to_owned(),
            note: note.to_owned(),
            unit,
            lines,
            labels: self.lines.labels(self.language),
            place: texts::PAGE_TIME.say(self.language),
            ticks: time_ticks(self.lines.seconds(), self.language),
            bands: self.bands.clone(),
            shape,
            is_wide,
            language: self.language,
        };
        chart.render()
    }

    /// Both latencies on one axis: where they differ, requests waited to be sent.
    fn both(&self) -> String {
        let of = |(four, index): (&Four, usize), kind: Text, figure: &str, color: &str, stroke: Stroke| {
            let values = four.get(index).cloned().unwrap_or_default();
            let name = say!(texts::PAGE_QUANTILE, kind, figure);
            ChartLine { stroke, ..line(name.say(self.language), color, values) }
        };
        let (response, service) = (&self.lines.response, &self.lines.service);
        let (max, of_response, of_service) =
            (texts::PAGE_MAX.say(self.language), texts::PAGE_RESPONSE, texts::PAGE_SERVICE);
        let lines = vec![
            of((response, 3), of_response, max, "c5", Stroke::Dotted),
            of((response, 2), of_response, "p99", "c2", Stroke::Solid),
            of((service, 2), of_service, "p99", "c3", Stroke::Dashed),
            of((response, 0), of_response, "p50", "c0", Stroke::Solid),
            of((service, 0), of_service, "p50", "c1", Stroke::Dashed),
        ];
        let note = texts::PAGE_LATENCY_NOTE.say(self.language);
        self.draw((texts::PAGE_LATENCY, note), "ms", Shape::Log, true, lines)
    }
}

fn line(name: &str, color: &str, values: Vec<Option<f64>>) -> ChartLine {
    ChartLine { name: name.to_owned(), color: color.to_owned(), stroke: Stroke::Solid, values }
}

/// Values as places: a value that is not a number is a gap.
fn some(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(|value| Some(value).filter(|value| value.is_finite())).collect()
}

fn has_values(four: &Four) -> bool {
    four.iter().flatten().any(Option::is_some)
}

fn sent(lines: &Lines, language: Language) -> Vec<ChartLine> {
    let sent = [
        ("http.requests", texts::PAGE_LINE_REQUESTS, "c0"),
        ("websocket.messages_sent", texts::PAGE_LINE_SENT, "c1"),
        ("websocket.messages_received", texts::PAGE_LINE_RECEIVED, "c7"),
        ("socketio.emit", texts::PAGE_LINE_EMITS, "c4"),
    ];
    sent.iter()
        .filter_map(|(name, shown, color)| Some(line(shown.say(language), color, some(lines.rate(name)?))))
        .collect()
}

fn quantiles(four: &Four, language: Language) -> Vec<ChartLine> {
    let drawn = four.iter().zip(["p50", "p95", "p99", texts::PAGE_MAX.say(language)]).zip(["c1", "c0", "c2", "c5"]);
    let stroke = |color: &str| if color == "c5" { Stroke::Dotted } else { Stroke::Solid };
    drawn
        .map(|((values, name), color)| ChartLine { stroke: stroke(color), ..line(name, color, values.clone()) })
        .collect()
}

fn codes(lines: &Lines) -> Vec<ChartLine> {
    let codes = lines.rates("http.codes.").into_iter();
    codes.map(|(code, values)| line(&code, &format!("s{}", code.get(..1).unwrap_or("1")), some(values))).collect()
}

fn errors(lines: &Lines) -> Vec<ChartLine> {
    let total = |values: &[f64]| values.iter().filter(|value| value.is_finite()).sum::<f64>();
    let mut errors = lines.rates("errors.");
    errors.sort_by(|a, b| total(b.1).total_cmp(&total(a.1)));
    let errors = errors.into_iter().take(ERRORS_DRAWN).zip(["s5", "c6", "c4", "c2", "c7", "c5"]);
    errors.map(|((name, values), color)| line(&name, color, some(values))).collect()
}

fn active(lines: &Lines, language: Language) -> Vec<ChartLine> {
    lines.active.clone().map(|values| line(texts::PAGE_LINE_ACTIVE.say(language), "c4", values)).into_iter().collect()
}

fn arrivals(lines: &Lines, language: Language) -> Vec<ChartLine> {
    let names =
        [("vusers.created", texts::PAGE_LINE_CREATED, "c0"), ("vusers.skipped", texts::PAGE_LINE_SKIPPED, "c3")];
    names
        .iter()
        .filter_map(|(name, shown, color)| Some(line(shown.say(language), color, some(lines.rate(name)?))))
        .collect()
}

/// The phases as parts of the time axis.
fn phases(report: &Value, lines: &Lines, language: Language) -> Vec<Band> {
    let seconds = lines.seconds();
    let phases = report["weir"]["phases"].as_array().into_iter().flatten();
    let Some(mut at) = report["weir"]["started_ms"].as_f64().filter(|_| seconds > 0.0) else { return Vec::new() };
    at = (at - lines.start_ms) / 1000.0;
    let mut bands = Vec::new();
    for phase in phases {
        let text = |key: &str| phase[key].as_str().unwrap_or_default().to_owned();
        let end = at + phase["duration_ms"].as_f64().unwrap_or(0.0) / 1000.0;
        let name = Some(text("name")).filter(|name| name != "unnamed").unwrap_or_default();
        let (from, to) = ((at / seconds).clamp(0.0, 1.0), (end / seconds).clamp(0.0, 1.0));
        bands.push(Band { from, to, name, more: said(phase, "arrivals").say(language).to_owned() });
        at = end;
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_latencies_share_an_axis() {
        let four = |p50: f64| json!({"p50": [p50, p50], "p90": [p50, p50], "p99": [p50, p50], "max": [p50, p50]});
        let report = json!({"weir": {"series": {
            "start_ms": 0, "interval_ms": 1000, "length": 2, "counts": {}, "response": four(900.0), "service": four(2.0),
        }}});
        let page = charts(&report, &Lines::of(&report).unwrap(), Language::English);
        assert_eq!(page.matches("class=\"card drawn\"").count(), 1, "{page}");
        assert!(
            page.contains("\"shape\":\"log\"") && page.contains("<tr><td>1s<td>900<td>900<td>2<td>900<td>2</tr>\n"),
            "{page}"
        );
        assert!(page.contains(r#"{"name":"service p99","tone":"c3","dash":1}"#), "{page}");
    }

    #[test]
    fn what_has_no_latency_of_weirs_shows_artillerys() {
        let periods: Vec<_> = (0..3)
            .map(|n| json!({"period": (n * 10_000).to_string(), "summaries": {"socketio.response_time": {"p50": n + 1}}}))
            .collect();
        let report = json!({
            "intermediate": periods,
            "weir": {"series": {"start_ms": 0, "interval_ms": 1000, "length": 25, "counts": {"socketio.emit": [5]}}},
        });
        let page = charts(&report, &Lines::of(&report).unwrap(), Language::English);
        assert!(page.contains("Response time") && page.contains("as Artillery measures it"), "{page}");
        assert!(!page.contains("service p99"));
    }

    #[test]
    fn one_place_is_no_chart() {
        let report = json!({
            "aggregate": {"counters": {"http.requests": 1}},
            "weir": {"series": {"start_ms": 0, "interval_ms": 1000, "length": 1, "counts": {"http.requests": [1]}}},
        });
        let page = charts(&report, &Lines::of(&report).unwrap(), Language::English);
        assert!(page.contains("no chart over time") && !page.contains("drawn"), "{page}");
    }
}
