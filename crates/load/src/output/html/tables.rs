//! The tables of the page.

use std::collections::BTreeMap;

use serde_json::Value;

use super::escape;
use crate::output::number::{grouped, js, ms};

/// Errors and endpoints listed; the most frequent ones.
const ROWS_MAX: usize = 200;
/// The namespace of the plugin that counts by endpoint.
const ENDPOINTS: &str = "plugins.metrics-by-endpoint.";

/// Both latencies and the lag, in figures.
pub fn latency(weir: &Value) -> String {
    let rows = [
        ("response", "Response", "from the intended start"),
        ("service", "Service", "from the send"),
        ("schedule_lag", "Schedule lag", "how late arrivals began"),
    ];
    let figures = ["count", "min", "mean", "p50", "p90", "p95", "p99", "p999", "max"];
    let rows =
        rows.iter().filter(|(key, ..)| weir[*key]["count"].as_u64().unwrap_or(0) > 0).map(|(key, name, meaning)| {
            let cells = figures.iter().map(|figure| match &weir[*key][*figure] {
                value if *figure == "count" => grouped(value.as_u64().unwrap_or(0)),
                value => value.as_f64().map_or_else(|| "–".to_owned(), ms),
            });
            let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            format!("<tr><td>{name} <span class=\"soft\">{meaning}</span></td>{cells}</tr>")
        });
    let rows: String = rows.collect();
    let heads: String = figures.iter().map(|figure| format!("<th>{}</th>", figure.replace("p999", "p99.9"))).collect();
    format!("<div class=\"card scroll\"><table><tr><th>ms</th>{heads}</tr>{rows}</table></div>\n")
}

/// What went wrong, by hop, phase and name; of Artillery's report, by name.
pub fn errors(report: &Value) -> String {
    let own = report["weir"]["failures"].as_array().into_iter().flatten();
    let text = |value: &Value| escape(value.as_str().unwrap_or("–"));
    let mut rows: Vec<(u64, String)> = own
        .map(|at| {
            let cells = format!(
                "<td>{}</td><td class=\"t\">{}</td><td class=\"t\">{}</td>",
                text(&at["name"]),
                text(&at["hop"]),
                text(&at["phase"])
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
            let width = count as f64 / most * 160.0;
            format!("<tr>{cells}<td>{}</td><td class=\"t\"><span class=\"bar\" style=\"width:{width:.0}px\"></span></td></tr>", grouped(count))
        })
        .collect();
    format!(
        "<h2>Errors</h2>\n<div class=\"card scroll\"><table><tr><th>error</th><th class=\"t\">hop</th><th class=\"t\">phase</th>\
         <th>count</th><th class=\"t\"></th></tr>{rows}</table></div>\n"
    )
}

#[derive(Default)]
struct Endpoint {
    codes: Vec<(String, u64)>,
    errors: u64,
    times: Value,
}

/// What the plugin metrics-by-endpoint counted.
pub fn endpoints(whole: &Value) -> String {
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
    rows.sort_by_key(|(_, endpoint)| std::cmp::Reverse(endpoint.codes.iter().map(|(_, count)| count).sum::<u64>()));
    let rows: String = rows.iter().take(ROWS_MAX).map(|(label, endpoint)| endpoint_row(label, endpoint)).collect();
    format!(
        "<h2>Endpoints</h2>\n<div class=\"card scroll\"><table><tr><th>endpoint</th><th>answers</th><th class=\"t\">codes</th><th>errors</th>\
         <th>median</th><th>p95</th><th>p99</th><th>max, ms</th></tr>{rows}</table></div>\n"
    )
}

fn endpoint_row(label: &str, endpoint: &Endpoint) -> String {
    let answers: u64 = endpoint.codes.iter().map(|(_, count)| count).sum();
    let codes: Vec<String> = endpoint
        .codes
        .iter()
        .map(|(code, count)| {
            let class = code.get(..1).unwrap_or("1");
            format!("<span style=\"color:var(--s{})\">{}</span> {}", escape(class), escape(code), grouped(*count))
        })
        .collect();
    let figure = |name: &str| endpoint.times[name].as_f64().map_or_else(|| "–".to_owned(), js);
    let errors = if endpoint.errors > 0 {
        format!("<span class=\"bad-ink\">{}</span>", grouped(endpoint.errors))
    } else {
        "0".to_owned()
    };
    format!(
        "<tr><td><code>{}</code></td><td>{}</td><td class=\"t\">{}</td><td>{errors}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        escape(label),
        grouped(answers),
        codes.join(" · "),
        figure("median"),
        figure("p95"),
        figure("p99"),
        figure("max"),
    )
}

/// Every metric, the checks, the phases and the environment, folded.
pub fn everything(report: &Value) -> String {
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
        (text("name"), format!("{} for {}", text("arrivals"), text("duration")))
    });
    let checks = weir["checks"].as_array().into_iter().flatten().map(|check| {
        let word = if check["ok"].as_bool() == Some(true) { "ok" } else { "fail" };
        (check["check"].as_str().unwrap_or_default().to_owned(), word.to_owned())
    });
    [
        "<h2>Everything</h2>\n".to_owned(),
        folded("Checks", &checks.collect::<Vec<_>>()),
        folded("Phases", &phases.collect::<Vec<_>>()),
        folded("Counters", &pairs(&whole["counters"])),
        folded("Rates, a second", &pairs(&whole["rates"])),
        histograms(&whole["summaries"]),
        folded("Environment", &pairs(&weir["environment"])),
    ]
    .concat()
}

/// One line of what the generator looked at in itself.
pub fn generator(generator: &Value) -> String {
    let mut parts = Vec::new();
    let busiest =
        generator["worker_cpu"].as_array().into_iter().flatten().filter_map(Value::as_f64).fold(f64::NAN, f64::max);
    if !busiest.is_nan() {
        parts.push(format!("Its busiest worker used {:.0} % of a core", busiest * 100.0));
    }
    if let Some(cpu) = generator["machine_cpu"].as_f64() {
        parts.push(format!("the machine was {:.0} % busy", cpu * 100.0));
    }
    if let Some(lag) = generator["lag_p99_ms"].as_f64() {
        parts.push(format!("99 % of arrivals were at most {} ms late", ms(lag)));
    }
    for (key, what) in [("ports", "ports"), ("descriptors", "descriptors")] {
        if let (Some(used), Some(all)) = (generator[key]["used"].as_u64(), generator[key]["of"].as_u64()) {
            parts.push(format!("{} of {} {what} in use", grouped(used), grouped(all)));
        }
    }
    if parts.is_empty() { String::new() } else { parts.join(", ") + "." }
}

fn folded(title: &str, rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let body: String = rows
        .iter()
        .map(|(name, value)| format!("<tr><td><code>{}</code></td><td>{}</td></tr>", escape(name), escape(value)))
        .collect();
    format!(
        "<details><summary>{title} <span class=\"soft\">{}</span></summary><div class=\"scroll\"><table>{body}</table></div></details>\n",
        rows.len()
    )
}

fn histograms(summaries: &Value) -> String {
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
    let heads: String = figures.iter().map(|figure| format!("<th>{}</th>", figure.replace("p999", "p99.9"))).collect();
    format!(
        "<details><summary>Histograms <span class=\"soft\">{}</span></summary><div class=\"scroll\"><table><tr><th></th>{heads}</tr>{}</table></div></details>\n",
        rows.len(),
        rows.concat(),
    )
}
