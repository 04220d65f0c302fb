//! A chart: lines or stacked areas over evenly spaced places, as SVG that stretches with the page.
//!
//! Texts are HTML beside the SVG, so that they keep their size on a phone.

use serde_json::json;

use super::escape;
use crate::output::number;

/// Size of the drawing, width and height.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Largest number of labels on the time axis.
const TICKS_X: usize = 6;

/// A chart.
pub struct Chart {
    pub title: String,
    /// The text beside the title.
    pub note: String,
    /// The unit after a value.
    pub unit: &'static str,
    pub lines: Vec<Line>,
    /// One label for each place.
    pub labels: Vec<String>,
    /// Ticks under the axis: position, 0 to 1, and text.
    pub ticks: Vec<(f64, String)>,
    /// Bands under the ticks.
    pub bands: Vec<Band>,
    pub shape: Shape,
    /// True if the chart has the width of the page: then bands show their longer text.
    pub is_wide: bool,
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

/// The kind of drawing.
#[derive(Clone, Copy, PartialEq, Eq)]
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
pub struct Line {
    pub name: String,
    /// A custom CSS property: `c0`.
    pub color: String,
    pub stroke: Stroke,
    /// One value for each place.
    pub values: Vec<Option<f64>>,
}

/// The style of a line, and its mark in the legend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

impl Stroke {
    fn class(self) -> &'static str {
        match self {
            Stroke::Solid => "",
            Stroke::Dashed => " dashed",
            Stroke::Dotted => " dotted",
        }
    }
}

impl Chart {
    /// The figure element; empty if there is nothing to draw.
    pub fn render(&self) -> String {
        let scale = Scale::of(self);
        let drawn: String = match self.shape {
            Shape::Stack => self.stacked(&scale),
            Shape::Columns => self.lines.iter().map(|line| columns(line, &scale)).collect(),
            Shape::Lines | Shape::Log => self.lines.iter().map(|line| path(line, &scale)).collect(),
        };
        let grid: String = scale
            .ticks
            .iter()
            .map(|value| {
                let y = scale.y(*value);
                format!(r#"<line class="grid" x1="0" x2="{WIDTH}" y1="{y:.2}" y2="{y:.2}"/>"#)
            })
            .collect();
        let marks: String = self
            .bands
            .iter()
            .filter(|band| band.from > 0.0)
            .map(|band| {
                let x = band.from * WIDTH;
                format!(r#"<line class="at" x1="{x:.1}" x2="{x:.1}" y1="0" y2="{HEIGHT}"/>"#)
            })
            .collect();
        let y_labels: String = scale
            .ticks
            .iter()
            .map(|value| format!(r#"<span style="bottom:{:.1}%">{}</span>"#, HEIGHT - scale.y(*value), short(*value)))
            .collect();
        let x_labels: String = self
            .ticks
            .iter()
            .map(|(at, text)| format!(r#"<span style="left:{:.2}%">{}</span>"#, at * 100.0, escape(text)))
            .collect();
        format!(
            concat!(
                r#"<figure class="chart card" data-n><div class="head"><h3>{title}</h3><span class="soft">{note}</span>{legend}</div>"#,
                r#"<div class="plot"><div class="y">{y}</div><div class="area" role="img" tabindex="0" aria-label="{label}"><svg viewBox="0 0 {width} {height}" "#,
                r#"preserveAspectRatio="none" aria-hidden="true">{grid}{marks}{drawn}</svg>"#,
                r#"<div class="cursor"></div><div class="tip" role="status"></div></div><div class="x">{x}</div>{bands}</div>"#,
                r#"<script type="application/json">{data}</script></figure>"#
            ),
            title = escape(&self.title),
            label = escape(&self.label()),
            note = escape(&self.note),
            legend = self.legend(),
            y = y_labels,
            width = WIDTH,
            height = HEIGHT,
            grid = grid,
            marks = marks,
            drawn = drawn,
            x = x_labels,
            bands = self.phases(),
            data = self.data(),
        )
    }

    /// A description of the chart in words.
    fn label(&self) -> String {
        let lines = self.lines.iter().filter_map(|line| {
            let values = || line.values.iter().flatten().copied().filter(|value| value.is_finite());
            let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
            Some(format!("{} {} to {} {}", line.name, short(low), short(high), self.unit).trim_end().to_owned())
        });
        format!("{}, {}: {}", self.title, self.note, lines.collect::<Vec<_>>().join("; "))
    }

    fn legend(&self) -> String {
        let areas = if matches!(self.shape, Shape::Stack | Shape::Columns) { " area" } else { "" };
        let entries = self.lines.iter().map(|line| {
            let class = line.stroke.class();
            let name = escape(&line.name);
            format!(r#"<span><i class="mark{class}{areas}" style="color:var(--{})"></i>{name}</span>"#, line.color)
        });
        format!(r#"<span class="legend">{}</span>"#, entries.collect::<String>())
    }

    fn phases(&self) -> String {
        if self.bands.is_empty() {
            return String::new();
        }
        let bands = self.bands.iter().map(|band| {
            let (left, width) = (band.from * 100.0, (band.to - band.from).max(0.0) * 100.0);
            let (name, more) = (escape(&band.name), escape(&band.more));
            let all =
                if name.is_empty() || more.is_empty() { format!("{name}{more}") } else { format!("{name} · {more}") };
            let text = if self.is_wide || name.is_empty() { &all } else { &name };
            format!(r#"<span style="left:{left:.2}%;width:{width:.2}%" title="{all}">{text}</span>"#)
        });
        format!(r#"<div class="phases">{}</div>"#, bands.collect::<String>())
    }

    /// The data for the pointer's display.
    fn data(&self) -> String {
        let lines: Vec<_> = self
            .lines
            .iter()
            .map(|line| {
                let values: Vec<_> =
                    line.values.iter().map(|value| value.map(|value| number::json(rounded(value)))).collect();
                json!({"name": line.name, "color": format!("var(--{})", line.color), "values": values})
            })
            .collect();
        // In a script element only the end tag has a meaning.
        json!({"unit": self.unit, "labels": self.labels, "lines": lines, "columns": self.shape == Shape::Columns})
            .to_string()
            .replace('<', "\\u003c")
    }

    fn stacked(&self, scale: &Scale) -> String {
        let places = scale.places;
        let mut below = vec![0.0; places];
        let mut out = String::new();
        for line in &self.lines {
            let top: Vec<f64> =
                below.iter().zip(&line.values).map(|(below, value)| below + value.unwrap_or(0.0)).collect();
            let up = top.iter().enumerate().map(|(at, value)| format!("{:.1} {:.2}", scale.x(at), scale.y(*value)));
            let down =
                below.iter().enumerate().rev().map(|(at, value)| format!("{:.1} {:.2}", scale.x(at), scale.y(*value)));
            let points: Vec<String> = up.chain(down).collect();
            out.push_str(&format!(
                r#"<path d="M{}Z" fill="var(--{})" fill-opacity=".75"/>"#,
                points.join("L"),
                line.color
            ));
            below = top;
        }
        out
    }
}

/// A line with gaps where values are missing; a value between two gaps is a dot.
fn path(line: &Line, scale: &Scale) -> String {
    let value = |at: usize| line.values.get(at).copied().flatten().filter(|value| value.is_finite());
    let (mut d, mut dots) = (String::new(), String::new());
    for (at, here) in (0..line.values.len()).filter_map(|at| Some((at, value(at)?))) {
        let (x, y) = (scale.x(at), scale.y(here));
        let follows = at.checked_sub(1).and_then(value).is_some();
        match (follows, value(at + 1).is_some()) {
            (false, false) => dots.push_str(&format!("M{x:.1} {y:.2}h0")),
            (true, _) => d.push_str(&format!("L{x:.1} {y:.2}")),
            (false, true) => d.push_str(&format!("M{x:.1} {y:.2}")),
        }
    }
    let mut out = String::new();
    for (class, d) in [(line.stroke.class(), d), (" dot", dots)].into_iter().filter(|(_, d)| !d.is_empty()) {
        out.push_str(&format!(r#"<path class="l{class}" d="{d}" stroke="var(--{})"/>"#, line.color));
    }
    out
}

fn columns(line: &Line, scale: &Scale) -> String {
    let width = WIDTH / scale.places.max(1) as f64;
    let column = |(at, value): (usize, &Option<f64>)| {
        let y = value.filter(|value| *value > 0.0).map(|value| scale.y(value))?;
        let (x, width, height) = (at as f64 * width, width * 0.92, HEIGHT - y);
        Some(format!(r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}"/>"#))
    };
    let columns: String = line.values.iter().enumerate().filter_map(column).collect();
    format!(r#"<g fill="var(--{})" fill-opacity=".55">{columns}</g>"#, line.color)
}

/// Maps values to positions on the drawing.
struct Scale {
    places: usize,
    low: f64,
    high: f64,
    is_log: bool,
    ticks: Vec<f64>,
}

impl Scale {
    fn of(chart: &Chart) -> Scale {
        let places = chart.lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
        let values =
            || chart.lines.iter().flat_map(|line| line.values.iter().flatten().copied()).filter(|v| v.is_finite());
        let high = match chart.shape {
            Shape::Stack => (0..places)
                .map(|at| chart.lines.iter().filter_map(|line| *line.values.get(at)?).sum())
                .fold(0.0, f64::max),
            _ => values().fold(0.0, f64::max),
        };
        if chart.shape == Shape::Log {
            return Scale::log(places, values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min), high);
        }
        let whole = if chart.unit.is_empty() { 1.0 } else { 0.0 };
        let step = if high > 0.0 { nice_step(high / 4.0).max(whole) } else { 1.0 };
        let steps = (high / step).ceil().max(1.0);
        let ticks = (0..=steps as usize).map(|at| at as f64 * step).collect();
        Scale { places, low: 0.0, high: steps * step, is_log: false, ticks }
    }

    fn log(places: usize, low: f64, high: f64) -> Scale {
        let (low, high) = if low.is_finite() && high > 0.0 { (low, high) } else { (0.1, 1.0) };
        let (from, mut to) = (low.log10().floor(), high.log10().ceil());
        to = to.max(from + 1.0);
        let ticks = (from as i32..=to as i32).map(|power| 10f64.powi(power)).collect();
        Scale { places, low: from, high: to, is_log: true, ticks }
    }

    fn x(&self, at: usize) -> f64 {
        if self.places < 2 { WIDTH / 2.0 } else { at as f64 / (self.places - 1) as f64 * WIDTH }
    }

    fn y(&self, value: f64) -> f64 {
        let value = if self.is_log { value.max(1e-9).log10() } else { value };
        let part = (value - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE);
        HEIGHT - part.clamp(0.0, 1.0) * HEIGHT
    }
}

/// Labels for a time axis of this many seconds: whole seconds, minutes or hours.
pub fn time_ticks(seconds: f64) -> Vec<(f64, String)> {
    const STEPS: &[f64] = &[
        1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 43200.0,
        86400.0,
    ];
    let wanted = seconds / TICKS_X as f64;
    let step = STEPS.iter().copied().find(|step| *step >= wanted).unwrap_or(seconds.max(1.0));
    let ticks = (0..=(seconds / step) as usize).map(|at| at as f64 * step);
    ticks.map(|at| (if seconds > 0.0 { at / seconds } else { 0.0 }, clock(at))).collect()
}

/// `45s`, `1:30`, `1:02:00`.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}:{:02}", whole / 60, whole % 60),
        _ => format!("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60),
    }
}

/// The smallest step of 1, 2 or 5 times a power of ten that is at least this large.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|by| by * power).find(|step| *step >= least * 0.999_999).unwrap_or(least)
}

/// A value on an axis: `1.5k`, `20`, `0.1`.
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
        let line = |values: &&[Option<f64>]| Line {
            name: "<a>".to_owned(),
            color: "c0".to_owned(),
            stroke: Stroke::Solid,
            values: values.to_vec(),
        };
        Chart {
            title: "t & u".to_owned(),
            note: String::new(),
            unit: "ms",
            lines: lines.iter().map(line).collect(),
            labels: vec!["</script>".to_owned(); 3],
            ticks: time_ticks(2.0),
            bands: [(0.0, "warm"), (0.5, "")].map(|(from, name)| band(from, name)).into(),
            shape,
            is_wide: false,
        }
    }

    fn band(from: f64, name: &str) -> Band {
        Band { from, to: from + 0.5, name: name.to_owned(), more: "5 a second".to_owned() }
    }

    #[test]
    fn a_lone_value_can_be_seen() {
        let text = chart(Shape::Lines, &[&[Some(1.0), None, Some(3.0), Some(4.0), None]]).render();
        assert_eq!((text.matches("class=\"l dot\"").count(), text.matches("class=\"l\"").count()), (1, 1), "{text}");
        assert!(text.contains("tabindex=\"0\" aria-label=\"t &amp; u, : &lt;a&gt; 1 to 4 ms\""), "{text}");
    }

    #[test]
    fn bands_are_named_as_far_as_there_is_room() {
        let mut chart = chart(Shape::Lines, &[&[Some(1.0), Some(2.0)]]);
        let text = chart.render();
        assert!(
            text.contains("title=\"warm · 5 a second\">warm</span>") && text.contains(">5 a second</span>"),
            "{text}"
        );
        chart.is_wide = true;
        assert!(chart.render().contains(">warm · 5 a second</span>"));
    }

    #[test]
    fn nothing_from_outside_is_markup() {
        let text = chart(Shape::Lines, &[&[Some(1.0), None, Some(3.0)]]).render();
        assert!(text.contains("t &amp; u") && text.contains("&lt;a&gt;"), "{text}");
        assert_eq!(text.matches("</script>").count(), 1);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn every_shape_stays_within_its_frame() {
        let values: &[Option<f64>] = &[Some(0.0), Some(1e9), None, Some(f64::NAN), Some(0.02)];
        for shape in [Shape::Lines, Shape::Log, Shape::Stack, Shape::Columns] {
            for lines in [&[values, values][..], &[], &[&[]], &[&[None]]] {
                let scale = Scale::of(&chart(shape, lines));
                assert!((0.0..=HEIGHT).contains(&scale.y(5.0)) && scale.ticks.len() < 20, "{:?}", scale.ticks);
                chart(shape, lines).render();
            }
        }
    }

    #[test]
    fn axes_have_round_numbers() {
        let scale = Scale::of(&chart(Shape::Lines, &[&[Some(1012.0)]]));
        assert_eq!(scale.ticks, [0.0, 500.0, 1000.0, 1500.0]);
        assert_eq!(Scale::of(&chart(Shape::Lines, &[&[Some(0.0)]])).ticks, [0.0, 1.0]);
        let scale = Scale::of(&chart(Shape::Log, &[&[Some(0.3), Some(40.0)]]));
        assert_eq!(scale.ticks, [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(
            time_ticks(90.0).into_iter().map(|(_, text)| text).collect::<Vec<_>>(),
            ["0s", "15s", "30s", "45s", "1:00", "1:15", "1:30"]
        );
        assert_eq!([15_000.0, 2e6, 0.25, 1234.5].map(short), ["15k", "2M", "0.25", "1235"]);
    }
}
