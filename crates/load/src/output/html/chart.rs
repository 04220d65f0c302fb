//! The data of a chart: lines or stacked areas over evenly spaced places. `report.js` draws it with the dashboard's
//! `chart.js`.
//!
//! The figures are a table, so that they can be read, printed and copied, also where no script runs. The script reads
//! this table and folds it.

use serde_json::{Value, json};

use weir_dash::inline::escape;
use weir_words::{Language, say};

use crate::output::number;
use crate::texts::page as texts;

/// Largest number of labels on the time axis.
const TICKS_X: usize = 6;

/// A chart.
pub struct Chart {
    pub title: String,
    /// The text beside the title.
    pub note: String,
    /// The unit after a value.
    pub unit: &'static str,
    pub lines: Vec<ChartLine>,
    /// One label for each place.
    pub labels: Vec<String>,
    /// The name of the column of labels.
    pub place: &'static str,
    /// Ticks under the axis: position, 0 to 1, and text.
    pub ticks: Vec<(f64, String)>,
    /// Bands under the ticks.
    pub bands: Vec<Band>,
    pub shape: Shape,
    /// True if the chart has the width of the page: then bands show their longer text.
    pub is_wide: bool,
    /// The language of the texts that every chart has.
    pub language: Language,
}

/// A part of the time axis.
#[derive(Clone)]
pub struct Band {
    /// Position, 0 to 1.
    pub from: f64,
    pub to: f64,
    pub name: String,
    /// The longer text, shown if there is room.
    pub more: String,
}

/// The kind of drawing, with its name in `chart.js`.
#[derive(Clone, Copy)]
pub enum Shape {
    /// Lines over an axis from zero.
    Lines,
    /// Lines over a logarithmic axis.
    Log,
    /// Stacked areas.
    Stack,
    /// Transparent columns without gaps.
    Columns,
}

/// One series.
pub struct ChartLine {
    pub name: String,
    /// The class that gives the colour: `c0`.
    pub color: String,
    pub stroke: Stroke,
    /// One value for each place.
    pub values: Vec<Option<f64>>,
}

/// The style of a line, as the number that `chart.js` gives it.
#[derive(Clone, Copy)]
pub enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

impl Chart {
    /// The place of the drawing, the table of figures, and the settings of the drawing.
    pub fn render(&self) -> String {
        format!(
            concat!(
                "<div class=\"card drawn\"><div class=\"drawing\"></div>",
                "<details open><summary>{figures}</summary><p class=\"soft\">{note}</p>",
                "<div class=\"scroll\" role=\"region\" aria-label=\"{figures}\" tabindex=\"0\">{table}</div></details>",
                "<script type=\"application/json\">{settings}</script></div>\n"
            ),
            figures = escape(say!(texts::PAGE_IN_FIGURES, &self.title).say(self.language)),
            note = escape(&self.note),
            table = self.table(),
            // In a script element only the end tag has a meaning.
            settings = self.settings().to_string().replace('<', "\\u003c"),
        )
    }

    /// A row for each place, a column for each line.
    fn table(&self) -> String {
        let heads: String =
            self.lines.iter().map(|line| format!("<th scope=\"col\">{}</th>", escape(&line.name))).collect();
        let cell = |at: usize, line: &ChartLine| {
            let value = line.values.get(at).copied().flatten().filter(|value| value.is_finite());
            // A page has thousands of these cells, and a cell needs no end tag.
            format!("<td>{}", value.map_or_else(String::new, |value| number::js(rounded(value))))
        };
        let row = |(at, label): (usize, &String)| {
            let cells: String = self.lines.iter().map(|line| cell(at, line)).collect();
            format!("<tr><td>{}{cells}</tr>\n", escape(label))
        };
        let rows: String = self.labels.iter().enumerate().map(row).collect();
        let place = self.place;
        format!("<table><thead><tr><th scope=\"col\">{place}</th>{heads}</tr></thead><tbody>\n{rows}</tbody></table>")
    }

    /// Everything but the figures, as `chart.js` takes it.
    fn settings(&self) -> Value {
        let shape = match self.shape {
            Shape::Lines => "lines",
            Shape::Log => "log",
            Shape::Stack => "stack",
            Shape::Columns => "columns",
        };
        let series = |line: &ChartLine| json!({"name": line.name, "tone": line.color, "dash": line.stroke as u8});
        json!({
            "title": self.title,
            "note": self.note,
            "unit": self.unit,
            "shape": shape,
            "ticks": self.ticks,
            "phases": self.bands.iter().map(|band| self.phase(band)).collect::<Vec<_>>(),
            "series": self.lines.iter().map(series).collect::<Vec<_>>(),
        })
    }

    fn phase(&self, band: &Band) -> Value {
        let Band { from, to, name, more } = band;
        let all = [name.as_str(), more.as_str()];
        let all = all.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" · ");
        let text = if self.is_wide || name.is_empty() { &all } else { name };
        json!({"from": from, "to": to, "text": text, "all": all})
    }
}

/// Labels for a time axis of this many seconds: whole seconds, minutes or hours.
pub fn time_ticks(seconds: f64, language: Language) -> Vec<(f64, String)> {
    const STEPS: &[f64] = &[
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0,
        86400.0,
    ];
    let wanted = seconds / TICKS_X as f64;
    let step = STEPS.iter().copied().find(|step| *step >= wanted).unwrap_or(seconds.max(1.0));
    let ticks = (0..=(seconds / step) as usize).map(|at| at as f64 * step);
    ticks.map(|at| (if seconds > 0.0 { at / seconds } else { 0.0 }, clock(at, language))).collect()
}

/// `45s`, `1:30`, `1:02:00`.
pub fn clock(seconds: f64, language: Language) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => say!(texts::PAGE_SECONDS, whole).say(language).to_owned(),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// A value in short: `15k`, `20`, `0.1`.
pub fn short(value: f64) -> String {
    match value {
        _ if value >= 1e6 => format!("{}M", number::js(rounded(value / 1e6))),
        _ if value >= 1e4 => format!("{}k", number::js(rounded(value / 1e3))),
        _ => number::js(rounded(value)),
    }
}

/// The value with four significant digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let by = 10f64.powi(3 - value.abs().log10().floor() as i32);
    (value * by).round() / by
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(shape: Shape, lines: &[&[Option<f64>]]) -> Chart {
        let line = |values: &&[Option<f64>]| ChartLine {
            name: "<a>".to_owned(),
            color: "c0".to_owned(),
            stroke: Stroke::Dotted,
            values: values.to_vec(),
        };
        Chart {
            title: "t & u".to_owned(),
            note: "</script>".to_owned(),
            unit: "ms",
            lines: lines.iter().map(line).collect(),
            labels: ["0s", "</td>", "2s"].map(str::to_owned).into(),
            place: "time",
            ticks: time_ticks(2.0, Language::English),
            bands: [(0.0, "warm"), (0.5, "")].map(|(from, name)| band(from, name)).into(),
            shape,
            is_wide: false,
            language: Language::English,
        }
    }

    fn band(from: f64, name: &str) -> Band {
        Band { from, to: from + 0.5, name: name.to_owned(), more: "5 a second".to_owned() }
    }

    #[test]
    fn all_figures_are_in_the_table() {
        let text = chart(Shape::Log, &[&[Some(12.3456), None, Some(f64::NAN)], &[Some(0.0)]]).render();
        let rows = "<th scope=\"col\">&lt;a&gt;</th></tr></thead><tbody>\n<tr><td>0s<td>12.35<td>0</tr>\n<tr><td>&lt;/td&gt;<td><td></tr>\n<tr><td>2s<td><td></tr>\n</tbody>";
        assert!(text.contains(rows), "{text}");
        assert!(text.contains("<summary>t &amp; u in figures</summary>"), "{text}");
    }

    #[test]
    fn the_script_gets_all_but_the_figures() {
        let text = chart(Shape::Log, &[&[Some(1.0)]]).render();
        let (_, settings) = text.split_once("<script type=\"application/json\">").unwrap();
        let (settings, rest) = settings.split_once("</script>").unwrap();
        assert_eq!(rest, "</div>\n");
        assert_eq!(
            serde_json::from_str::<Value>(settings).unwrap(),
            json!({
                "title": "t & u", "note": "</script>", "unit": "ms", "shape": "log",
                "ticks": [[0.0, "0s"], [0.5, "1s"], [1.0, "2s"]],
                "phases": [
                    {"from": 0.0, "to": 0.5, "text": "warm", "all": "warm · 5 a second"},
                    {"from": 0.5, "to": 1.0, "text": "5 a second", "all": "5 a second"},
                ],
                "series": [{"name": "<a>", "tone": "c0", "dash": 2}],
            })
        );
    }

    #[test]
    fn a_wide_chart_has_room_for_the_longer_text() {
        let wide = Chart { is_wide: true, ..chart(Shape::Stack, &[]) };
        assert_eq!(wide.settings()["phases"][0]["text"], "warm · 5 a second");
    }

    #[test]
    fn an_axis_of_time_has_round_labels() {
        assert_eq!(
            time_ticks(90.0, Language::English).into_iter().map(|(_, text)| text).collect::<Vec<_>>(),
            ["0s", "15s", "30s", "45s", "1:00", "1:15", "1:30"]
        );
        assert_eq!([15_000.0, 2e6, 0.25, 1234.5].map(short), ["15k", "2M", "0.25", "1235"]);
    }
}
