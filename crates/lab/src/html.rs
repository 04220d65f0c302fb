//! A stored run as one page without external files.

use serde_json::Value;

use weir_conf::language::Language;

use crate::said::{Said, say, shown, shown_list};
use crate::verdict::{plain, signed};
use crate::{experiment, metric, report, texts, tune, waterline};

/// The page of a run.
pub fn page(run: &Value, language: Language) -> String {
    let body = if run["kind"] == "lab" { experiment::page::body(run, language) } else { one_of_two(run, language) };
    let code = if language == Language::English { "en" } else { "ko" };
    let template = TEMPLATE.replace("{{language}}", code);
    template.replace("{{title}}", &escape(run["id"].as_str().unwrap_or("run"))).replacen("{{body}}", &body, 1)
}

/// The body of a comparison or a search.
fn one_of_two(run: &Value, language: Language) -> String {
    let parts = [head, cause, comparison, limits, steps, tries, rest];
    parts.iter().map(|part| part(run, language)).collect()
}

/// The comparison of two configurations: notes, intervals, blocks, figures.
pub(crate) fn comparison(run: &Value, language: Language) -> String {
    let parts = [notes, forest, blocks, table];
    parts.iter().map(|part| part(run, language)).collect()
}

/// Limits of the block's resources, if its blocks report them.
fn limits(run: &Value, language: Language) -> String {
    let rows = Value::Array(waterline::of_blocks(run));
    let has_some = rows.as_array().is_some_and(|rows| !rows.is_empty());
    let title = texts::PAGE_LIMITS.say(language);
    if has_some { format!("<h2>{title}</h2>\n{}", waterlines(&rows, language)) } else { String::new() }
}

/// A table of limits and their use, with bars.
pub(crate) fn waterlines(rows: &Value, language: Language) -> String {
    let of_them = texts::PAGE_OF_THEM;
    let unit = |row: &Value| match row["unit"] == of_them.en {
        true => of_them.say(language).to_owned(),
        false => word(&row["unit"]),
    };
    let row = |row: &Value| {
        let (most, limit) = (row["most"].as_f64().unwrap_or(0.0), row["limit"].as_f64().unwrap_or(f64::NAN));
        let share = (most / limit).clamp(0.0, 1.0);
        let class = if share >= FULL { "full" } else { "b" };
        format!(
            "<tr><td class=\"text\">{}</td><td>{}</td><td>{} {}</td><td>{:.0} %</td><td><svg viewBox=\"0 0 120 12\" class=\"water\"><rect width=\"120\" height=\"12\" class=\"room\"/><rect width=\"{:.1}\" height=\"12\" class=\"{class}\"/></svg></td></tr>\n",
            escape(&shown(row, "what", language)),
            metric::digits(most),
            metric::digits(limit),
            unit(row),
            most / limit * 100.0,
            share * 120.0,
        )
    };
    let rows: String = rows.as_array().into_iter().flatten().map(row).collect();
    let (used, limit) = (texts::PAGE_USED.say(language), texts::PAGE_LIMIT.say(language));
    format!(
        "<div class=\"wide\"><table class=\"plain\"><tr><th class=\"text\"></th><th>{used}</th><th>{limit}</th><th></th><th></th></tr>\n{rows}</table></div>\n"
    )
}

const TEMPLATE: &str = include_str!("html/template.html");

/// A text with HTML escapes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

pub(crate) fn word(json: &Value) -> String {
    escape(json.as_str().unwrap_or_default())
}

fn head(run: &Value, language: Language) -> String {
    let kind = match run["verdict"]["name"].as_str() {
        Some("better" | "tuned") => "good",
        Some("worse" | "trade-off") => "bad",
        _ => "plain",
    };
    let changes = shown_list(run, "changes", language);
    let changes: String = changes.iter().map(|change| format!("<li><code>{}</code></li>", escape(change))).collect();
    let version = |key: &str| escape(&shown(&run["environment"], key, language));
    let after = match run["after"].is_null() || run["kind"] == "aa" {
        true => String::new(),
        false => format!(" · B: <code>{}</code> ({})", word(&run["after"]["file"]), version("after")),
    };
    format!(
        "<h1>{}</h1>\n<p class=\"verdict {kind}\">{}</p>\n<p class=\"soft\">A: <code>{}</code> ({}) {} · {}</p>\n<ul>{changes}</ul>\n",
        match run["kind"].as_str() {
            Some("aa") => texts::PAGE_ALONE,
            Some("capacity") => texts::PAGE_CAPACITY,
            Some("why") => texts::PAGE_WHY,
            Some("tune") => texts::PAGE_TUNE,
            Some("factorial") => texts::PAGE_FACTORIAL,
            Some("elsewhere") => texts::PAGE_ELSEWHERE,
            _ => texts::PAGE_AB,
        }
        .say(language),
        escape(&shown(&run["verdict"], "text", language)),
        word(&run["before"]["file"]),
        version("before"),
        after,
        escape(say!(PAGE_LOAD, shown(run, "load", language), run["seed"].to_string()).say(language)),
    )
}

/// The verdict of `weir lab why`, with its evidence.
fn cause(run: &Value, language: Language) -> String {
    match run["kind"].as_str() {
        Some("why") => format!("<pre>{}</pre>\n", escape(&crate::why::say::text(run, language))),
        Some("factorial") => format!("<pre>{}</pre>\n", escape(&crate::factorial::text(run, language))),
        _ => String::new(),
    }
}

/// Notes that weaken the figures.
fn notes(run: &Value, language: Language) -> String {
    let list: String = report::notes(run, language).iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    if list.is_empty() { list } else { format!("<ul class=\"notes\">{list}</ul>\n") }
}

/// Width of a picture, and the part of it for names.
pub(crate) const WIDTH: f64 = 720.0;
pub(crate) const NAMES: f64 = 110.0;
/// From this part of a limit on, a bar is highlighted.
const FULL: f64 = 0.9;
const ROW: f64 = 30.0;

/// The intervals of all metrics that are compared by ratio, on one axis.
fn forest(run: &Value, language: Language) -> String {
    let rows: Vec<(&str, f64, f64, f64)> = run["metrics"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|json| {
            let metric =
                json["key"].as_str().and_then(metric::of).filter(|metric| metric.scale == metric::Scale::Ratio)?;
            Some((metric.key, json["effect"].as_f64()?, json["interval"][0].as_f64()?, json["interval"][1].as_f64()?))
        })
        .collect();
    let reach = rows.iter().flat_map(|row| [row.2.abs(), row.3.abs()]).fold(0.02, f64::max) * 1.1;
    if rows.is_empty() {
        return String::new();
    }
    let x = |value: f64| NAMES + (WIDTH - NAMES) * (0.5 + value / reach / 2.1);
    let height = ROW * (rows.len() + 1) as f64;
    let mut svg =
        format!("<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{1}\" class=\"zero\"/>", x(0.0), height - ROW / 2.0);
    for (at, (name, effect, low, high)) in rows.iter().enumerate() {
        let y = ROW * (at as f64 + 0.5);
        let percent = |part: f64| format!("{:+.1}", part * 100.0);
        let title = say!(PAGE_CHANGE, *name, percent(*effect), percent(*low), percent(*high));
        let title = title.say(language);
        svg += &format!(
            "<g><title>{title}</title><text x=\"0\" y=\"{:.1}\">{name}</text><line x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" class=\"ci\"/><circle cx=\"{:.1}\" cy=\"{y}\" r=\"5\"/></g>",
            y + 4.0,
            x(*low),
            x(*high),
            x(*effect),
        );
    }
    for tick in [-reach / 1.1, 0.0, reach / 1.1] {
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{:+.1} %</text>",
            x(tick),
            height - 4.0,
            tick * 100.0
        );
    }
    figure(texts::PAGE_FOREST.say(language), height, &svg)
}

/// Each block as a column of the primary metric, in running order, with its windows below.
fn blocks(run: &Value, language: Language) -> String {
    let key = run["design"]["primary"].as_str().unwrap_or_default();
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |block: &Value| block["values"][key].as_f64();
    let most = blocks.iter().filter_map(value).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let (step, height) = (WIDTH / blocks.len() as f64, 160.0);
    let busiest = blocks.iter().flat_map(strip).fold(0.0, f64::max).max(1e-9);
    let mut svg = String::new();
    for (at, block) in blocks.iter().enumerate() {
        let x = at as f64 * step;
        let (arm, is_used) =
            (block["arm"].as_str().unwrap_or("?"), block["spoiled"].as_array().is_none_or(Vec::is_empty));
        let class = format!("{}{}", if arm == "A" { "a" } else { "b" }, if is_used { "" } else { " off" });
        let tall = value(block).unwrap_or(0.0) / most * 100.0;
        let why = shown_list(block, "spoiled", language).join("; ");
        let figure = value(block).map_or("–".to_owned(), metric::digits);
        let pair = block["pair"].as_u64().unwrap_or(0) + 1;
        let title = escape(say!(PAGE_BLOCK, arm, pair, figure, why).say(language));
        svg += &format!(
            "<g><title>{title}</title><rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" class=\"{class}\"/><text x=\"{:.1}\" y=\"116\" class=\"tick\">{arm}</text>",
            x + 1.0,
            100.0 - tall,
            (step - 2.0).max(1.0),
            x + step / 2.0,
        );
        let windows = strip(block);
        let points: Vec<String> = windows
            .iter()
            .enumerate()
            .map(|(window, value)| {
                format!(
                    "{:.1},{:.1}",
                    x + 1.0 + (step - 2.0) * window as f64 / windows.len().max(2) as f64,
                    158.0 - value / busiest * 36.0
                )
            })
            .collect();
        svg += &format!("<polyline points=\"{}\" class=\"strip {class}\"/></g>", points.join(" "));
    }
    let unit = metric::of(key).map_or("", |metric| metric.unit);
    figure(say!(PAGE_BLOCKS, key, unit, metric::digits(most)).say(language), height, &svg)
}

fn strip(block: &Value) -> Vec<f64> {
    block["strip"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

pub(crate) fn figure(title: &str, height: f64, svg: &str) -> String {
    format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">{svg}</svg></figure>\n",
        escape(title)
    )
}

fn table(run: &Value, language: Language) -> String {
    let mut rows = String::new();
    for json in run["metrics"].as_array().into_iter().flatten() {
        let Some(metric) = json["key"].as_str().and_then(metric::of) else { continue };
        let show = |key: &str| json[key].as_f64().map_or("–".to_owned(), |value| metric.show(value));
        let amount = |json: &Value| json.as_f64().map_or("–".to_owned(), |amount| signed(metric, amount));
        rows += &format!(
            "<tr><th>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            metric.title.say(language),
            show("before"),
            show("after"),
            amount(&json["effect"]),
            report::interval(json, metric, language),
            json["detectable"].as_f64().map_or("–".to_owned(), |amount| plain(metric, amount)),
            escape(&shown(json, "text", language)),
        );
    }
    if rows.is_empty() {
        return rows;
    }
    let titles = [texts::BEFORE, texts::AFTER, texts::CHANGED, texts::INTERVAL, texts::PAGE_DETECTABLE];
    let titles: String = titles.iter().map(|title| format!("<th>{}</th>", title.say(language))).collect();
    format!("<div class=\"wide\"><table><tr><th></th>{titles}<th></th></tr>\n{rows}</table></div>\n")
}

/// The rates that a search tried.
fn steps(run: &Value, language: Language) -> String {
    let rows: String = run["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| {
            let (level, held) = (report::level(run, step), report::held(step, language));
            format!("<tr><th>{}</th><td>{}</td></tr>\n", escape(level.say(language)), escape(&held))
        })
        .collect();
    if rows.is_empty() { rows } else { format!("<table>{rows}</table>\n") }
}

/// The settings that were tried, and the diff of those that are kept.
fn tries(run: &Value, language: Language) -> String {
    let rows: String = run["tries"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|tried| {
            let changes = shown_list(tried, "changes", language);
            let changes: String = changes.iter().map(|change| format!("<br><code>{}</code>", escape(change))).collect();
            let (fate, id) = (tune::fate(tried).say(language), word(&tried["run"]));
            let verdict = escape(&shown(&tried["verdict"], "text", language));
            format!(
                "<tr><th>{fate}</th><td>{}: {}{changes}</td><td>{verdict}</td><td>{id}</td></tr>\n",
                word(&tried["knob"]),
                escape(&shown(tried, "says", language))
            )
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let titles = [texts::PAGE_KNOB, texts::VERDICT_HEADING, texts::PAGE_RUN];
    let titles: String = titles.iter().map(|title| format!("<th>{}</th>", title.say(language))).collect();
    let titles = format!("<tr><th></th>{titles}</tr>\n");
    format!("<div class=\"wide\"><table>{titles}{rows}</table></div>\n<pre>{}</pre>\n", word(&run["diff"]))
}

/// Both configurations, and the machine.
fn rest(run: &Value, language: Language) -> String {
    let text = |(side, title): (&str, Said)| {
        let files = run[side]["text"].as_array().into_iter().flatten().map(word).collect::<Vec<_>>().join("\n");
        let title = title.say(language);
        format!("<details><summary>{title}</summary><pre>{files}</pre></details>\n")
    };
    let environment: String = run["environment"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{} {} · ", escape(name), escape(value.as_str().unwrap_or(&value.to_string()))))
        .collect();
    let sides = [("before", say!(BEFORE)), ("after", say!(AFTER))];
    let sides: String = sides.into_iter().filter(|(side, _)| !run[*side].is_null()).map(text).collect();
    let terminal = match run["kind"].as_str() {
        Some("ab" | "aa" | "capacity") => escape(&report::text(run, language)),
        _ => String::new(),
    };
    let terminal = match terminal.is_empty() {
        true => terminal,
        false => format!(
            "<details><summary>{}</summary><pre>{terminal}</pre></details>\n",
            texts::PAGE_TERMINAL.say(language)
        ),
    };
    let made_by = texts::PAGE_MADE_BY.say(language);
    format!("{terminal}{sides}<footer>{environment}{made_by}</footer>\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run() -> Value {
        json!({
            "id": "1<2", "kind": "ab", "seed": 1, "load": "/<b>", "before": {"file": "/a", "text": ["<x>"]}, "after": {"file": "/b"},
            "design": {"primary": "p95"}, "verdict": {"name": "better", "text": "faster <i>"}, "environment": {"kernel": "6<"},
            "changes": ["a <b>"],
            "tries": [{"knob": "k<", "says": "<i>", "changes": ["<b>"], "verdict": {"text": "<s>"}, "is_kept": true}], "diff": "<x>",
            "metrics": [{"key": "p95", "before": 4.0, "after": 3.0, "effect": -0.2, "interval": [-0.3, -0.1], "detectable": 0.1, "text": "t"}],
            "blocks": [{"pair": 0, "arm": "A", "values": {"p95": 4.0}, "strip": [1, 2], "spoiled": ["<s>"]}, {"pair": 0, "arm": "B", "values": {}, "strip": []}],
        })
    }

    #[test]
    fn one_file_that_asks_nobody_and_trusts_nothing() {
        let page = page(&run(), Language::English);
        for outside in ["src=", "<link", "@import", "url(", "<script", "//cdn"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for markup in ["<b>", "<x>", "<i>", "<s>", "6<"] {
            assert!(!page.contains(markup), "{markup}");
        }
        for part in ["faster &lt;i&gt;", "class=\"ci\"", "<polyline", "−20 %", "</html>"] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn any_json_makes_a_page() {
        for text in ["null", "{}", r#"{"metrics":[{"key":"p95"}],"blocks":[{}]}"#, r#"{"blocks":3,"metrics":"x"}"#] {
            assert!(
                page(&serde_json::from_str(text).unwrap_or_default(), Language::English).contains("</html>"),
                "{text}"
            );
        }
    }
}
