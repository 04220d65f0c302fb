//! The tables of the page.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_dash::inline::escape;
use weir_words::{Language, Said, Text, say};

use super::phrases::{self, figure_name, grouped};
use crate::output::label::Label;
use crate::output::number::{js, ms};
use crate::texts::{self as all_texts, page as texts, phase_named};

/// Largest number of errors and endpoints in a table, the first in order.
const ROWS_MAX: usize = 200;
/// The name prefix of the plugin that counts by endpoint.
const ENDPOINTS: &str = "plugins.metrics-by-endpoint.";

/// Both latencies and the lag, as figures.
pub fn latency(weir: &Value, language: Language) -> String {
    let rows = [
        ("response", texts::PAGE_ROW_RESPONSE, all_texts::FROM_INTENDED),
        ("service", texts::PAGE_ROW_SERVICE, all_texts::FROM_SEND),
        ("schedule_lag", texts::PAGE_ROW_LAG, all_texts::HOW_LATE_ARRIVALS),
    ];
    // The most important figures come first, because a narrow screen shows only the left columns.
    let figures = ["p50", "p90", "p95", "p99", "p999", "max", "mean", "min", "count"];
    let rows =
        rows.iter().filter(|(key, ..)| weir[*key]["count"].as_u64().unwrap_or(0) > 0).map(|(key, name, meaning)| {
            let cells = figures.iter().map(|figure| match &weir[*key][*figure] {
                value if *figure == "count" => grouped(value.as_u64().unwrap_or(0)),
                value => value.as_f64().map_or_else(|| "–".to_owned(), ms),
            });
            let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            let (name, meaning) = (name.say(language), meaning.say(language));
            format!("<tr><td>{name} <span class=\"soft\">{meaning}</span></td>{cells}</tr>")
        });
    let rows: String = rows.collect();
    let heads: String = figures.iter().map(|figure| head(figure_name(figure, language), "")).collect();
    table(texts::PAGE_LATENCY.say(language), "wide", &format!("{}{heads}", head("ms", "")), &rows)
}

/// A table in a frame that scrolls, also by keyboard.
fn table(label: &str, class: &str, heads: &str, rows: &str) -> String {
    format!(
        "<div class=\"card scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\"><table class=\"{class}\">\
         <thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>\n"
    )
}

fn head(text: &str, class: &str) -> String {
    if text.is_empty() { "<td></td>".to_owned() } else { format!("<th scope=\"col\" class=\"{class}\">{text}</th>") }
}

/// The errors by hop, phase and name; in Artillery's report, by name only.
pub fn errors(report: &Value, language: Language) -> String {
    let own = report["weir"]["failures"].as_array().into_iter().flatten();
    let text = |value: &Value| escape(value.as_str().unwrap_or("–"));
    // A report has the words of the table for its programs; a reader gets them in their language.
    let hop = |value: &Value| match value.as_str() {
        Some("target") => texts::PAGE_HOP_TARGET.say(language).to_owned(),
        _ => text(value),
    };
    let phase = |value: &Value| match value.as_str().and_then(phase_named) {
        Some(known) => known.say(language).to_owned(),
        None => text(value),
    };
    let mut rows: Vec<(u64, String)> = own
        .map(|at| {
            let cells = format!(
                "<td>{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td>",
                text(&at["name"]),
                hop(&at["hop"]),
                phase(&at["phase"])
            );
            (at["count"].as_u64().unwrap_or(0), cells)
        })
        .collect();
    if rows.is_empty() {
        let counters = report["aggregate"]["counters"].as_object().into_iter().flatten();
        rows = counters
            .filter_map(|(name, count)| {
                let cells = format!(
                    "<td>{}</td><td class=\"t\">–</td><td class=\"t\">–</td>",
                    escape(name.strip_prefix("errors.")?)
                );
                Some((count.as_u64()?, cells))
            })
            .collect();
    }
    if rows.is_empty() {
        return String::new();
    }
    rows.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let most = rows.first().map_or(1, |(count, _)| (*count).max(1)) as f64;
    let rows: String = rows
        .into_iter()
        .take(ROWS_MAX)
        .map(|(count, cells)| {
            let width = count as f64 / most * 100.0;
            format!("<tr>{cells}<td>{}</td><td class=\"t bars\"><span class=\"bar\" style=\"width:{width:.0}%\"></span></td></tr>", grouped(count))
        })
        .collect();
    let [error, hop, phase, count, title] =
        [texts::PAGE_ERROR, texts::PAGE_HOP, texts::PAGE_STEP, texts::PAGE_COUNT, texts::PAGE_ERRORS]
            .map(|text| text.say(language));
    let heads = [head(error, ""), head(hop, "t"), head(phase, "t"), head(count, ""), head("", "")].concat();
    format!("<h2>{title}</h2>\n{}", table(title, "", &heads, &rows))
}

#[derive(Default)]
struct Endpoint {
    codes: Vec<(String, u64)>,
    errors: u64,
    times: Value,
}

/// The counts of the plugin metrics-by-endpoint.
pub fn endpoints(whole: &Value, language: Language) -> String {
    let mut endpoints: BTreeMap<&str, Endpoint> = BTreeMap::new();
    for (name, count) in whole["counters"].as_object().into_iter().flatten() {
        let (Some(rest), Some(count)) = (name.strip_prefix(ENDPOINTS), count.as_u64()) else { continue };
        if let Some((label, code)) = rest.rsplit_once(".codes.") {
            endpoints.entry(label).or_default().codes.push((code.to_owned(), count));
        } else if let Some((label, _)) = rest.rsplit_once(".errors.") {
            endpoints.entry(label).or_default().errors += count;
        }
    }
    for (name, summary) in whole["summaries"].as_object().into_iter().flatten() {
        if let Some(label) = name.strip_prefix(ENDPOINTS).and_then(|rest| rest.strip_prefix("response_time.")) {
            endpoints.entry(label).or_default().times = summary.clone();
        }
    }
    if endpoints.is_empty() {
        return String::new();
    }
    let mut rows: Vec<(&str, Endpoint)> = endpoints.into_iter().collect();
    // Endpoints with failures first, then slow ones: readers look for these.
    let p99 = |endpoint: &Endpoint| endpoint.times["p99"].as_f64().unwrap_or(0.0);
    rows.sort_by(|(_, a), (_, b)| b.errors.cmp(&a.errors).then(p99(b).total_cmp(&p99(a))));
    let all = rows.len();
    let rows: String =
        rows.iter().take(ROWS_MAX).map(|(label, endpoint)| endpoint_row(label, endpoint, language)).collect();
    let heads: String = ENDPOINT_HEADS
        .iter()
        .map(|(name, class)| {
            let name = name.say(language);
            format!("<th scope=\"col\" class=\"{class}\"><button type=\"button\">{name}</button></th>")
        })
        .collect();
    let cut = if all > ROWS_MAX { say!(texts::PAGE_ROWS_OF, ROWS_MAX, all) } else { Said::default() };
    let (title, note) = (texts::PAGE_ENDPOINTS.say(language), say!(texts::PAGE_ENDPOINTS_NOTE, cut));
    format!(
        "<h2>{title} <span class=\"soft\">{}</span></h2>\n{}",
        note.say(language),
        table(title, "sorts stack", &heads, &rows)
    )
}

/// The columns of the endpoint table; a click on a column sorts by it.
const ENDPOINT_HEADS: &[(Label, &str)] = &[
    (Label::Text(texts::PAGE_ENDPOINT), ""),
    (Label::Text(texts::PAGE_ANSWERS), ""),
    (Label::Text(texts::PAGE_STATUSES), "t"),
    (Label::Text(texts::PAGE_ERRORS_OF), ""),
    (Label::Text(texts::PAGE_MEDIAN), ""),
    (Label::Name("p95"), ""),
    (Label::Name("p99"), ""),
    (Label::Text(texts::PAGE_MAX), ""),
];

fn endpoint_row(label: &str, endpoint: &Endpoint, language: Language) -> String {
    let answers: u64 = endpoint.codes.iter().map(|(_, count)| count).sum();
    let codes: Vec<String> = endpoint
        .codes
        .iter()
        .map(|(code, count)| {
            let class = code.get(..1).unwrap_or("1");
            let (class, code) = (escape(class), escape(code));
            format!(
                "<span class=\"code\"><i class=\"mark\" style=\"color:var(--s{class})\"></i>{code}</span> × {}",
                grouped(*count)
            )
        })
        .collect();
    let figure = |name: &str| endpoint.times[name].as_f64().map_or_else(|| "–".to_owned(), js);
    let errors = if endpoint.errors > 0 {
        format!("<span class=\"bad-ink\">{}</span>", grouped(endpoint.errors))
    } else {
        "0".to_owned()
    };
    let cells =
        [grouped(answers), codes.join("<br>"), errors, figure("median"), figure("p95"), figure("p99"), figure("max")];
    let cells = cells.iter().zip(ENDPOINT_HEADS.iter().skip(1)).map(|(cell, (name, class))| {
        let name = name.say(language);
        format!("<td class=\"{class}\" data-k=\"{name}\">{cell}</td>")
    });
    format!("<tr><td><code>{}</code></td>{}</tr>", escape(label), cells.collect::<String>())
}

/// All metrics, the checks, the phases and the environment, folded.
pub fn everything(report: &Value, language: Language) -> String {
    let (weir, whole) = (&report["weir"], &report["aggregate"]);
    let pairs = |value: &Value| -> Vec<(String, String)> {
        let shown = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), js),
            other => other.to_string(),
        };
        value.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), shown(value))).collect()
    };
    let phases = weir["phases"].as_array().into_iter().flatten().map(|phase| {
        let text = |key: &str| phase[key].as_str().unwrap_or_default().to_owned();
        (text("name"), phrases::told(phase, language).say(language).to_owned())
    });
    let checks = weir["checks"].as_array().into_iter().flatten().map(|check| {
        let word = if check["ok"].as_bool() == Some(true) { texts::PAGE_OK } else { texts::PAGE_FAIL };
        (check["check"].as_str().unwrap_or_default().to_owned(), word.say(language).to_owned())
    });
    let folded = |title: Text, rows: &[(String, String)]| folded(title.say(language), rows);
    [
        format!("<h2>{}</h2>\n", texts::PAGE_EVERYTHING.say(language)),
        folded(texts::PAGE_CHECKS, &checks.collect::<Vec<_>>()),
        folded(texts::PAGE_AGENTS, &agents(&weir["generator"], language)),
        folded(texts::PAGE_PHASES, &phases.collect::<Vec<_>>()),
        folded(texts::PAGE_COUNTERS, &pairs(&whole["counters"])),
        folded(texts::PAGE_RATES, &pairs(&whole["rates"])),
        histograms(&whole["summaries"], language),
        folded(texts::PAGE_ENVIRONMENT, &pairs(&weir["environment"])),
    ]
    .concat()
}

/// The self-check of each agent.
fn agents(generator: &Value, language: Language) -> Vec<(String, String)> {
    let agents = generator["agents"].as_object().into_iter().flatten();
    agents.map(|(name, agent)| (name.clone(), phrases::generator(agent).say(language).to_owned())).collect()
}

fn folded(title: &str, rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let body: String = rows
        .iter()
        .map(|(name, value)| format!("<tr><td><code>{}</code></td><td>{}</td></tr>", escape(name), escape(value)))
        .collect();
    fold(title, rows.len(), &format!("<table>{body}</table>"))
}

fn fold(title: &str, rows: usize, table: &str) -> String {
    format!(
        "<details><summary>{title} <span class=\"soft\">{rows}</span></summary>\
         <div class=\"scroll\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\">{table}</div></details>\n"
    )
}

fn histograms(summaries: &Value, language: Language) -> String {
    let figures = ["count", "min", "mean", "median", "p75", "p90", "p95", "p99", "p999", "max"];
    let rows: Vec<String> = summaries
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, summary)| {
            let cells: String = figures
                .iter()
                .map(|figure| format!("<td>{}</td>", summary[*figure].as_f64().map_or_else(|| "–".to_owned(), js)))
                .collect();
            format!("<tr><td><code>{}</code></td>{cells}</tr>", escape(name))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads: String = figures.iter().map(|figure| head(figure_name(figure, language), "")).collect();
    let body = rows.concat();
    let table = format!("<table class=\"wide\"><thead><tr><td></td>{heads}</tr></thead><tbody>{body}</tbody></table>");
    fold(texts::PAGE_HISTOGRAMS.say(language), rows.len(), &table)
}
