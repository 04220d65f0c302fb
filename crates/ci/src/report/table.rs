//! The table of the figures that decide.

use serde_json::Value;
use weir_lab::metric::{self, Metric, digits};
use weir_lab::verdict::{plain, signed};
use weir_words::{Language, Said, left, right, say, width};

use crate::escape::sentence;
use crate::judge::{self, ALPHA};
use crate::{plan, texts};

/// Columns: figure, before, after, change, interval, detectable, verdict.
const COLUMNS: usize = 7;

type Row = [String; COLUMNS];

/// The figures that decide, with their heading.
fn rows(run: &Value, deciding: &[&str], language: Language) -> Vec<Row> {
    let figures = || run["metrics"].as_array().into_iter().flatten();
    let primary = run["design"]["primary"].as_str().unwrap_or_default();
    let row = |key: &&str| {
        let (metric, json) = (metric::of(key)?, figures().find(|figure| figure["key"] == **key)?);
        Some(row(metric, json, *key == primary, language))
    };
    let confidence = figures().find_map(|figure| figure["confidence"].as_f64()).unwrap_or(1.0 - ALPHA);
    let heading = [
        texts::HEAD_FIGURE.with(&[]),
        texts::HEAD_BEFORE.with(&[]),
        texts::HEAD_AFTER.with(&[]),
        texts::HEAD_CHANGE.with(&[]),
        say!(texts::HEAD_INTERVAL, percent(confidence)),
        texts::HEAD_DETECTABLE.with(&[]),
        texts::HEAD_VERDICT.with(&[]),
    ];
    let heading = heading.map(|said| said.say(language).to_owned());
    [heading].into_iter().chain(deciding.iter().filter_map(row)).collect()
}

fn row(metric: &Metric, json: &Value, is_primary: bool, language: Language) -> Row {
    let value = |key: &str, at: usize| {
        let least = if json["is_least"][at] == true { "≥ " } else { "" };
        json[key].as_f64().map_or_else(|| "–".to_owned(), |value| format!("{least}{}", metric.show(value)))
    };
    let amount = |json: &Value, show: fn(&Metric, f64) -> String| {
        json.as_f64().map_or_else(|| "–".to_owned(), |amount| show(metric, amount))
    };
    let (low, high) = (json["interval"][0].as_f64(), json["interval"][1].as_f64());
    let interval = low.zip(high).map(|(low, high)| say!(texts::INTERVAL, signed(metric, low), signed(metric, high)));
    let name = if is_primary { say!(texts::PRIMARY, metric.key) } else { metric.key.into() };
    [
        name.say(language).to_owned(),
        value("before", 0),
        value("after", 1),
        amount(&json["effect"], signed),
        interval.map_or_else(|| "–".to_owned(), |interval| interval.say(language).to_owned()),
        amount(&json["detectable"], plain),
        json["verdict"].as_str().unwrap_or_default().to_owned(),
    ]
}

/// A share as per cent with as many digits as it has: `95`, `99.95`.
fn percent(share: f64) -> String {
    let text = format!("{:.3}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The sentence about a verdict's error probability.
pub(super) fn about(deciding: &[&str]) -> Said {
    let one_in = judge::one_in(deciding.len());
    say!(texts::ABOUT_TABLE, deciding.join(", "), digits(ALPHA * 100.0), plan::PAIRS_LEAST, one_in)
}

/// The table for a terminal.
pub(super) fn text(run: &Value, deciding: &[&str], language: Language) -> String {
    let rows = rows(run, deciding, language);
    let widths: Vec<usize> = (0..COLUMNS)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| width(cell)).max().unwrap_or(0))
        .collect();
    let line = |row: &Row| {
        let cell = |(at, cell): (usize, &String)| {
            let wide = widths.get(at).copied().unwrap_or(0);
            // The name and the word begin at the left, and figures end at the right.
            if at == 0 || at + 1 == COLUMNS { left(cell, wide) } else { right(cell, wide) }
        };
        row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The table for a comment.
pub(super) fn markdown(run: &Value, deciding: &[&str], language: Language) -> String {
    let line = |row: &Row| format!("| {} |\n", row.iter().map(|cell| sentence(cell)).collect::<Vec<_>>().join(" | "));
    let mut lines = rows(run, deciding, language).iter().map(line).collect::<Vec<_>>();
    lines.insert(lines.len().min(1), "|---|---:|---:|---:|---:|---:|---|\n".to_owned());
    lines.concat()
}
