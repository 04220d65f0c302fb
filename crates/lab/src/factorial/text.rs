//! An experiment with several changes as text for a terminal.

use serde_json::Value;
use weir_words::Language;

use crate::metric::{self, Metric};
use crate::report::parts::{INDENT, interval, notes};
use crate::said::{left, say, shown, shown_list, width};
use crate::stats;
use crate::verdict::signed;

/// The whole report.
pub fn text(run: &Value, language: Language) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (cells, design) = (shown_list(run, "cells", language), &run["design"]);
    let mut lines = vec![
        say!(RUN, word(&run["id"]), shown(run, "load", language)).say(language).to_owned(),
        say!(FROM, word(&run["before"]["file"]), word(&run["environment"]["before"])).say(language).to_owned(),
    ];
    for factor in list(&run["factors"]) {
        lines.push(say!(FACTOR, word(&factor["name"])).say(language).to_owned());
        lines.extend(shown_list(&factor, "changes", language).iter().map(|change| format!("{INDENT}{change}")));
    }
    let of = [&design["rounds"], &run["seed"], &run["asked"]["block_s"]].map(Value::to_string);
    let [rounds, seed, block] = of;
    lines.push(say!(COMBINATIONS, cells.len(), rounds, seed, block).say(language).to_owned());
    lines.push(String::new());
    let key = design["primary"].as_str().unwrap_or_default();
    lines.extend(metric::of(key).map(|metric| middles(run, &cells, metric, language)).unwrap_or_default());
    lines.push(String::new());
    lines.extend(effects(run, language));
    let alpha = design["alpha"].as_f64().unwrap_or(f64::NAN);
    lines.push(say!(EACH_INTERVAL, metric::digits((1.0 - alpha) * 100.0)).say(language).to_owned());
    lines.extend(notes(run, language));
    let sentences = sentences(&run["verdict"], language);
    lines.extend(sentences.into_iter().map(|sentence| say!(VERDICT, sentence).say(language).to_owned()));
    lines.join("\n") + "\n"
}

/// The sentences about the contrasts. An older run stores them as one sentence.
fn sentences(verdict: &Value, language: Language) -> Vec<String> {
    let each = shown_list(verdict, "sentences", language);
    if each.is_empty() { vec![shown(verdict, "text", language)] } else { each }
}

/// The middle block of each combination.
fn middles(run: &Value, cells: &[String], metric: &Metric, language: Language) -> Vec<String> {
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let middle = |cell: usize| {
        let of = blocks
            .iter()
            .filter(|block| block["cell"] == cell && block["spoiled"].as_array().is_none_or(Vec::is_empty));
        stats::median(&of.filter_map(|block| block["values"][metric.key].as_f64()).collect::<Vec<_>>())
    };
    let columns = cells.iter().map(|name| width(name)).max().unwrap_or(0);
    let row = |(cell, name): (usize, &String)| {
        let figure = say!(FIGURE_WITH, metric.key, left(name, columns));
        format!("{}  {}", figure.say(language), metric.show(middle(cell)))
    };
    cells.iter().enumerate().map(row).collect()
}

/// The effects for all metrics, main effects first.
fn effects(run: &Value, language: Language) -> Vec<String> {
    let row = |json: &Value| {
        let metric = metric::of(json["metric"].as_str()?)?;
        let has_interval = json["interval"][0].is_number();
        let mark = if run["design"]["primary"] == metric.key { " *" } else { "" };
        let effect = json["effect"].as_f64().filter(|_| has_interval).map_or("–".to_owned(), |e| signed(metric, e));
        let of = shown(json, "of", language);
        let is_main = json["mask"].as_u64()?.count_ones() == 1;
        let of = if is_main { of } else { say!(INTERACTION_OF, of).say(language).to_owned() };
        Some([of, format!("{}{mark}", metric.key), effect, interval(json, metric, language)])
    };
    let rows: Vec<[String; 4]> = run["effects"].as_array().into_iter().flatten().filter_map(row).collect();
    let column =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..4).map(column).collect();
    let pad = |row: &[String; 4]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| left(cell, *width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(pad).collect()
}
