//! The charts over the time of the run.

use serde_json::Value;

use super::chart::{self, Band, Chart, Line, Shape, Stroke, time_ticks};
use super::lines::{Four, Lines};

/// Kinds of errors that are drawn: the most frequent ones.
const ERRORS_DRAWN: usize = 6;
/// The note where no script runs.
const NO_SCRIPT: &str = "<noscript><p class=\"soft\">A script draws the charts of this page, and no script runs here. The tables have all figures of the charts.</p></noscript>\n";

/// Load and latency over the whole width, the other charts in two columns; a sentence if the run was too short.
pub fn charts(report: &Value, lines: &Lines) -> String {
    if lines.length < 2 {
        let has_any = report["aggregate"]["counters"].as_object().is_some_and(|counters| !counters.is_empty());
        let why = "The report has no figures for each second, so there is no chart over time.";
        return if has_any { format!("<h2>Over time</h2>\n<p class=\"soft\">{why}</p>\n") } else { String::new() };
    }
    let drawer = Drawer { lines, bands: phases(report, lines) };
    let every = format!("per second; one point for each {}", chart::clock(lines.step_ms / 1000.0));
    let wide = [
        if lines.service.is_empty() { String::new() } else { drawer.both() },
        Lines::artillerys(report).filter(|_| !has_values(&lines.service)).map_or_else(String::new, |lines| {
            let drawer = Drawer { bands: phases(report, &lines), lines: &lines };
            drawer.draw(
                "Response time",
                "ms, as Artillery measures it",
                "ms",
                Shape::Log,
                true,
                quantiles(&lines.response),
            )
        }),
        drawer.draw("Load", &every, "/s", Shape::Lines, true, sent(lines)),
    ];
    let narrow = [
        drawer.draw("Status codes", "answers a second", "/s", Shape::Stack, false, codes(lines)),
        drawer.draw("Errors", "a second", "/s", Shape::Lines, false, errors(lines)),
        drawer.draw("Virtual users", "at once", "", Shape::Lines, false, active(lines)),
        drawer.draw("Arrivals", "virtual users per second", "/s", Shape::Lines, false, arrivals(lines)),
    ];
    format!("<h2>Over time</h2>\n{NO_SCRIPT}{}<div class=\"two\">{}</div>\n", wide.concat(), narrow.concat())
}

/// The data that all charts share.
struct Drawer<'a> {
    lines: &'a Lines,
    bands: Vec<Band>,
}

impl Drawer<'_> {
    fn draw(
        &self,
        title: &str,
        note: &str,
        unit: &'static str,
        shape: Shape,
        is_wide: bool,
        lines: Vec<Line>,
    ) -> String {
        if !lines.iter().any(|line| line.values.iter().flatten().any(|value| value.is_finite())) {
            return String::new();
        }
        let chart = Chart {
            title: title.to_owned(),
            note: note.to_owned(),
            unit,
            lines,
            labels: self.lines.labels(),
            place: "time",
            ticks: time_ticks(self.lines.seconds()),
            bands: self.bands.clone(),
            shape,
            is_wide,
        };
        chart.render()
    }

    /// Both latencies on one axis: where they differ, requests waited to be sent.
    fn both(&self) -> String {
        let of = |four: &Four, index: usize, name: &str, color: &str, stroke: Stroke| {
            let values = four.get(index).cloned().unwrap_or_default();
            Line { stroke, ..line(name, color, values) }
        };
        let (response, service) = (&self.lines.response, &self.lines.service);
        let lines = vec![
            of(response, 3, "response max", "c5", Stroke::Dotted),
            of(response, 2, "response p99", "c2", Stroke::Solid),
            of(service, 2, "service p99", "c3", Stroke::Dashed),
            of(response, 0, "response p50", "c0", Stroke::Solid),
            of(service, 0, "service p50", "c1", Stroke::Dashed),
        ];
        let note = "ms; response from the intended start, service from the send: where they differ, requests waited to be sent";
        self.draw("Latency", note, "ms", Shape::Log, true, lines)
    }
}

fn line(name: &str, color: &str, values: Vec<Option<f64>>) -> Line {
    Line { name: name.to_owned(), color: color.to_owned(), stroke: Stroke::Solid, values }
}

/// Values as places: a value that is not a number is a gap.
fn some(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(|value| Some(value).filter(|value| value.is_finite())).collect()
}

fn has_values(four: &Four) -> bool {
    four.iter().flatten().any(Option::is_some)
}

fn sent(lines: &Lines) -> Vec<Line> {
    let sent = [
        ("http.requests", "requests", "c0"),
        ("websocket.messages_sent", "messages sent", "c1"),
        ("websocket.messages_received", "messages received", "c7"),
        ("socketio.emit", "emits", "c4"),
    ];
    sent.iter().filter_map(|(name, shown, color)| Some(line(shown, color, some(lines.rate(name)?)))).collect()
}

fn quantiles(four: &Four) -> Vec<Line> {
    let drawn = four.iter().zip(["p50", "p95", "p99", "max"]).zip(["c1", "c0", "c2", "c5"]);
    let stroke = |name: &str| if name == "max" { Stroke::Dotted } else { Stroke::Solid };
    drawn.map(|((values, name), color)| Line { stroke: stroke(name), ..line(name, color, values.clone()) }).collect()
}

fn codes(lines: &Lines) -> Vec<Line> {
    let codes = lines.rates("http.codes.").into_iter();
    codes.map(|(code, values)| line(&code, &format!("s{}", code.get(..1).unwrap_or("1")), some(values))).collect()
}

fn errors(lines: &Lines) -> Vec<Line> {
    let total = |values: &[f64]| values.iter().filter(|value| value.is_finite()).sum::<f64>();
    let mut errors = lines.rates("errors.");
    errors.sort_by(|a, b| total(b.1).total_cmp(&total(a.1)));
    let errors = errors.into_iter().take(ERRORS_DRAWN).zip(["s5", "c6", "c4", "c2", "c7", "c5"]);
    errors.map(|((name, values), color)| line(&name, color, some(values))).collect()
}

fn active(lines: &Lines) -> Vec<Line> {
    lines.active.clone().map(|values| line("active", "c4", values)).into_iter().collect()
}

fn arrivals(lines: &Lines) -> Vec<Line> {
    let names = [("vusers.created", "created", "c0"), ("vusers.skipped", "skipped", "c3")];
    names.iter().filter_map(|(name, shown, color)| Some(line(shown, color, some(lines.rate(name)?)))).collect()
}

/// The phases as parts of the time axis.
fn phases(report: &Value, lines: &Lines) -> Vec<Band> {
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
        bands.push(Band { from, to, name, more: text("arrivals") });
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
        let page = charts(&report, &Lines::of(&report).unwrap());
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
        let page = charts(&report, &Lines::of(&report).unwrap());
        assert!(page.contains("Response time") && page.contains("as Artillery measures it"), "{page}");
        assert!(!page.contains("service p99"));
    }

    #[test]
    fn one_place_is_no_chart() {
        let report = json!({
            "aggregate": {"counters": {"http.requests": 1}},
            "weir": {"series": {"start_ms": 0, "interval_ms": 1000, "length": 1, "counts": {"http.requests": [1]}}},
        });
        let page = charts(&report, &Lines::of(&report).unwrap());
        assert!(page.contains("no chart over time") && !page.contains("drawn"), "{page}");
    }
}
