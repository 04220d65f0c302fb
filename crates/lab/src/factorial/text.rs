//! An experiment with several changes as text for a terminal.

use serde_json::Value;

use crate::metric::{self, Metric};
use crate::report::notes;
use crate::stats;
use crate::verdict::signed;

/// The whole report.
pub fn text(run: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (cells, design) = (list(&run["cells"]), &run["design"]);
    let mut lines = vec![
        format!("Run {} of {}", word(&run["id"]), word(&run["load"])),
        format!("From       {} ({})", word(&run["before"]["file"]), word(&run["environment"]["before"])),
    ];
    for factor in list(&run["factors"]) {
        lines.push(format!("Factor     {}", word(&factor["name"])));
        lines.extend(list(&factor["changes"]).iter().map(|change| format!("           {}", word(change))));
    }
    lines.push(format!(
        "{} combinations, {} rounds in an order by seed {}; blocks of {} s",
        cells.len(),
        design["rounds"],
        run["seed"],
        run["asked"]["block_s"]
    ));
    lines.push(String::new());
    let key = design["primary"].as_str().unwrap_or_default();
    lines.extend(metric::of(key).map(|metric| middles(run, &cells, metric)).unwrap_or_default());
    lines.push(String::new());
    lines.extend(effects(run));
    let alpha = design["alpha"].as_f64().unwrap_or(f64::NAN);
    lines.push(format!(
        "Each interval is a {} % one, so that all of them together are 95 %",
        metric::digits((1.0 - alpha) * 100.0)
    ));
    lines.extend(notes(run));
    for sentence in word(&run["verdict"]["text"]).split("; ") {
        // What belongs to a sentence stays with it.
        match lines.last_mut().filter(|_| sentence.starts_with("smallest") || sentence.starts_with("run ")) {
            Some(last) => last.push_str(&format!("; {sentence}")),
            None => lines.push(format!("Verdict: {sentence}")),
        }
    }
    lines.join("\n") + "\n"
}

/// The middle block of each combination.
fn middles(run: &Value, cells: &[Value], metric: &Metric) -> Vec<String> {
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let middle = |cell: usize| {
        let of = blocks
            .iter()
            .filter(|block| block["cell"] == cell && block["spoiled"].as_array().is_none_or(Vec::is_empty));
        stats::median(&of.filter_map(|block| block["values"][metric.key].as_f64()).collect::<Vec<_>>())
    };
    let names: Vec<&str> = cells.iter().map(|cell| cell.as_str().unwrap_or_default()).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let row =
        |(cell, name): (usize, &&str)| format!("{} with {name:<width$}  {}", metric.key, metric.show(middle(cell)));
    names.iter().enumerate().map(row).collect()
}

/// Effects of all metrics, the main ones first.
fn effects(run: &Value) -> Vec<String> {
    let row = |json: &Value| {
        let metric = metric::of(json["metric"].as_str()?)?;
        let ends = (json["interval"][0].as_f64(), json["interval"][1].as_f64());
        let interval = match ends {
            (Some(low), Some(high)) => format!("{} to {}", signed(metric, low), signed(metric, high)),
            _ => "–".to_owned(),
        };
        let mark = if run["design"]["primary"] == metric.key { " *" } else { "" };
        let effect =
            json["effect"].as_f64().filter(|_| ends.0.is_some()).map_or("–".to_owned(), |e| signed(metric, e));
        let kind = if json["mask"].as_u64()?.count_ones() == 1 { "" } else { "interaction of " };
        Some([format!("{kind}{}", json["of"].as_str()?), format!("{}{mark}", metric.key), effect, interval])
    };
    let rows: Vec<[String; 4]> = run["effects"].as_array().into_iter().flatten().filter_map(row).collect();
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..4).map(width).collect();
    let pad = |row: &[String; 4]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(pad).collect()
}
