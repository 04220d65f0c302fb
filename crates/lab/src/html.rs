//! A stored run as one page without external files.

use serde_json::Value;

pub(crate) use weir_dash::inline::escape;
use weir_dash::inline::{Page, copyable};
use weir_words::Language;

use crate::metric::Metric;
use crate::said::{Said, Text, say, shown, shown_list};
use crate::verdict::{plain, signed};
use crate::why::say::Fact;
use crate::{experiment, metric, report, texts, tune, waterline};

/// The page of a run.
pub fn page(run: &Value, language: Language) -> String {
    let body = if run["kind"] == "lab" { experiment::page::body(run, language) } else { one_of_two(run, language) };
    let title = format!("weir lab {}", run["id"].as_str().unwrap_or("run"));
    let is_korean = language == Language::Korean;
    Page { is_korean, maker: "weir lab", title: &title, body: &body, module: None }.render()
}

/// The body of a comparison or a search.
fn one_of_two(run: &Value, language: Language) -> String {
    let parts = [head, cause, effects, comparison, limits, steps, tries, rest];
    parts.iter().map(|part| part(run, language)).collect()
}

/// The comparison of two configurations: notes, intervals, blocks, figures.
pub(crate) fn comparison(run: &Value, language: Language) -> String {
    let parts = [notes, changes, blocks];
    parts.iter().map(|part| part(run, language)).collect()
}

/// Limits of the block's resources, if its blocks report them.
fn limits(run: &Value, language: Language) -> String {
    let rows = Value::Array(waterline::of_blocks(run));
    let has_some = rows.as_array().is_some_and(|rows| !rows.is_empty());
    let title = texts::PAGE_LIMITS.say(language);
    if has_some { format!("<h2>{title}</h2>\n{}", card(&waterlines(&rows, language))) } else { String::new() }
}

/// Limits and their use, as bars with their numbers.
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
            "<tr><td class=\"text all\">{}</td><td data-k=\"{}\">{}</td><td data-k=\"{}\">{} {}</td><td class=\"share\">{:.0} %</td><td class=\"t bars all\"><span class=\"track\"><i class=\"{class}\" style=\"width:{:.1}%\"></i></span></td></tr>\n",
            escape(&shown(row, "what", language)),
            texts::PAGE_USED.say(language),
            metric::digits(most),
            texts::PAGE_LIMIT.say(language),
            metric::digits(limit),
            unit(row),
            most / limit * 100.0,
            share * 100.0,
        )
    };
    let rows: String = rows.as_array().into_iter().flatten().map(row).collect();
    let (used, limit) = (texts::PAGE_USED.say(language), texts::PAGE_LIMIT.say(language));
    format!(
        "<table class=\"stack\"><tr class=\"heads\"><th class=\"text\"></th><th>{used}</th><th>{limit}</th><th></th><th></th></tr>\n{rows}</table>\n"
    )
}

/// From this part of a limit on, a bar is highlighted.
const FULL: f64 = 0.9;

pub(crate) fn word(json: &Value) -> String {
    escape(json.as_str().unwrap_or_default())
}

/// A part of the page with a frame.
pub(crate) fn card(html: &str) -> String {
    format!("<section class=\"card\">{html}</section>\n")
}

/// The verdict: a mark that has its own shape beside its colour, and the sentence.
pub(crate) fn verdict(tone: &str, name: &str, sentence: &str) -> String {
    let name = mark(tone, name);
    format!("<section class=\"verdict {tone}\">{name}<span class=\"words\">{}</span></section>\n", escape(sentence))
}

/// A word with a mark of its own shape.
pub(crate) fn mark(tone: &str, name: &str) -> String {
    let shape = match tone {
        "good" => "●",
        "warn" => "▲",
        "bad" => "■",
        _ => "○",
    };
    let name = escape(name);
    format!("<span class=\"mark {tone}\"><span class=\"shape\" aria-hidden=\"true\">{shape}</span>{name}</span>")
}

/// The tone of a verdict's word.
pub(crate) fn tone(name: &str) -> &'static str {
    match name {
        "better" | "tuned" | "holds" | "as expected" | "no difference" | "negligible" | "no errors"
        | "fewer errors" | "NOT SATURATED" => "good",
        "worse" | "fails" | "more errors" | "PROVED" | "SHARED" => "bad",
        "trade-off" | "reclassified" | "SUSPECTED" | "POLICY" | "UNATTRIBUTED" => "warn",
        _ => "idle",
    }
}

fn head(run: &Value, language: Language) -> String {
    let changes = shown_list(run, "changes", language);
    let changes: String = changes.iter().map(|change| format!("<li><code>{}</code></li>", escape(change))).collect();
    let changes = if changes.is_empty() { changes } else { format!("<ul>{changes}</ul>\n") };
    let version = |key: &str| escape(&shown(&run["environment"], key, language));
    let version = |key: &str| Some(version(key)).filter(|v| !v.is_empty()).map_or(String::new(), |v| format!(" ({v})"));
    let after = match run["after"].is_null() || run["kind"] == "aa" {
        true => String::new(),
        false => format!(" · B: <code>{}</code>{}", word(&run["after"]["file"]), version("after")),
    };
    let name = run["verdict"]["name"].as_str().unwrap_or_default();
    let sentence = shown(&run["verdict"], "text", language);
    // The page of `weir lab why` says its verdict with the evidence.
    let verdict = if run["kind"] == "why" { String::new() } else { verdict(tone(name), "", &sentence) };
    format!(
        "<h1>{}</h1>\n{verdict}<p class=\"hint\">A: <code>{}</code>{}{after} · {}</p>\n{changes}",
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
        word(&run["before"]["file"]),
        version("before"),
        escape(say!(PAGE_LOAD, shown(run, "load", language), run["seed"].to_string()).say(language)),
    )
}

/// The verdict of `weir lab why`: the word, its evidence, and the remedy with the command that proves it.
fn cause(run: &Value, language: Language) -> String {
    if run["kind"] != "why" {
        return String::new();
    }
    let told = crate::why::say::told(run, language);
    let name = run["verdict"]["name"].as_str().unwrap_or_default();
    let (title, sentence) = told.first.split_once("  ").unwrap_or(("", told.first.as_str()));
    let condition = crate::verdict::WHY_WORDS.iter().find(|(word, _)| *word == name);
    let condition = condition.map_or("", |(_, when)| when.say(language));
    let row = |fact: &Fact| {
        let is_korean = language == Language::Korean;
        let text = if fact.is_command { copyable(&fact.text, is_korean) } else { escape(&fact.text) };
        format!("<dt>{}</dt><dd>{text}</dd>\n", escape(&fact.label))
    };
    let part = |title: Text, facts: &[Fact]| {
        if facts.is_empty() {
            return String::new();
        }
        let rows: String = facts.iter().map(row).collect();
        format!("<h2>{}</h2>\n{}", title.say(language), card(&format!("<dl class=\"found\">{rows}</dl>")))
    };
    format!(
        "{}<p class=\"hint\">{}</p>\n{}{}",
        verdict(tone(name), title, sentence.trim()),
        escape(condition),
        part(texts::PAGE_EVIDENCE, &told.evidence),
        part(texts::PAGE_REMEDY, &told.remedy),
    )
}

/// The effects of an experiment with several changes, and its whole report.
fn effects(run: &Value, language: Language) -> String {
    if run["kind"] != "factorial" {
        return String::new();
    }
    let rows: Vec<Change> = run["effects"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|json| {
            let metric = metric::of(json["metric"].as_str()?)?;
            let of = shown(json, "of", language);
            let is_main = json["mask"].as_u64()?.count_ones() == 1;
            let name = if is_main { of } else { say!(INTERACTION_OF, of).say(language).to_owned() };
            let from = metric.title.say(language).to_owned();
            Some(Change { from, ..Change::of(json, metric, name, language) })
        })
        .collect();
    let whole = escape(&crate::factorial::text(run, language));
    let title = texts::PAGE_TERMINAL.say(language);
    format!(
        "{}<details open><summary>{title}</summary><pre tabindex=\"0\">{whole}</pre></details>\n",
        banded(&rows, language)
    )
}

/// Notes that weaken the figures.
fn notes(run: &Value, language: Language) -> String {
    let list: String = report::notes(run, language).iter().map(|note| format!("<li>{}</li>", escape(note))).collect();
    if list.is_empty() { list } else { format!("<ul class=\"notes\">{list}</ul>\n") }
}

/// One compared figure: its change with the interval, the figures behind it, and its verdict.
struct Change {
    name: String,
    from: String,
    by: String,
    interval: String,
    detectable: String,
    /// The effect and its interval, where the metric is compared by ratio.
    band: Option<(f64, f64, f64)>,
    threshold: Option<f64>,
    tone: &'static str,
    text: String,
}

impl Change {
    fn of(json: &Value, metric: &Metric, name: String, language: Language) -> Change {
        let show = |key: &str| json[key].as_f64().map(|value| metric.show(value));
        let from = match (show("before"), show("after")) {
            (Some(before), Some(after)) => format!("{before} → {after}"),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => String::new(),
        };
        // A mean of zeros may be a little more or less than zero.
        let exact = |amount: f64| if amount.abs() < 1e-9 { 0.0 } else { amount };
        let amount = |json: &Value| json.as_f64().map(|amount| signed(metric, exact(amount)));
        let detectable = json["detectable"].as_f64().map(|amount| plain(metric, amount));
        let detectable =
            detectable.map_or(String::new(), |amount| format!("{}: {amount}", texts::PAGE_DETECTABLE.say(language)));
        let has_interval = json["interval"][0].is_number();
        let known = if has_interval { report::interval(json, metric, language) } else { String::new() };
        let band = || Some((json["effect"].as_f64()?, json["interval"][0].as_f64()?, json["interval"][1].as_f64()?));
        let text = shown(json, "text", language);
        Change {
            name,
            from,
            by: amount(&json["effect"]).unwrap_or_else(|| "–".to_owned()),
            interval: known,
            detectable,
            band: if metric.scale == metric::Scale::Ratio { band() } else { None },
            threshold: json["threshold"].as_f64(),
            tone: tone(json["verdict"].as_str().unwrap_or_default()),
            text,
        }
    }

    /// A row: all figures beside the bar.
    fn row(&self, reach: f64) -> String {
        let place = |value: f64| (50.0 + value / reach * 50.0).clamp(0.0, 100.0);
        let bar = |(effect, low, high): (f64, f64, f64)| {
            let [left, right, at] = [low, high, effect].map(place);
            let small = self.threshold.map_or(String::new(), |threshold| {
                let [from, to] = [-threshold, threshold].map(place);
                format!("<span class=\"small\" style=\"left:{from:.2}%;width:{:.2}%\"></span>", to - from)
            });
            format!(
                "{small}<span class=\"zero\"></span><span class=\"ci\" style=\"left:{left:.2}%;width:{:.2}%\"></span><span class=\"effect\" style=\"left:{at:.2}%\"></span>",
                right - left
            )
        };
        let band = self.band.map_or(String::new(), |band| {
            let label = format!("{}: {} {}", self.name, self.by, self.interval);
            format!(
                "<div class=\"band {}\" role=\"img\" aria-label=\"{}\">{}</div>",
                self.tone,
                escape(&label),
                bar(band)
            )
        });
        let band = if band.is_empty() { "<span></span>".to_owned() } else { band };
        let verdict = if self.text.is_empty() { String::new() } else { mark(self.tone, &self.text) };
        format!(
            "<li><span class=\"name\">{}</span><span class=\"from\">{}</span>{band}<span class=\"by\"><strong>{}</strong><span class=\"hint\">{}</span><span class=\"hint\">{}</span></span><span class=\"lasts\">{verdict}</span></li>\n",
            escape(&self.name),
            escape(&self.from),
            escape(&self.by),
            escape(&self.interval),
            escape(&self.detectable),
        )
    }
}

/// The changes of all metrics on one axis.
fn changes(run: &Value, language: Language) -> String {
    let rows: Vec<Change> = run["metrics"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|json| {
            let metric = json["key"].as_str().and_then(metric::of)?;
            Some(Change::of(json, metric, metric.title.say(language).to_owned(), language))
        })
        .collect();
    banded(&rows, language)
}

fn banded(rows: &[Change], language: Language) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let reach = rows
        .iter()
        .filter_map(|row| row.band)
        .fold(0.02, |most: f64, (_, low, high)| most.max(low.abs()).max(high.abs()))
        * 1.1;
    let title = texts::PAGE_FOREST.say(language);
    let shown: String = rows.iter().map(|row| row.row(reach)).collect();
    format!("<h2>{title}</h2>\n{}", card(&format!("<ul class=\"changes\">{shown}</ul>")))
}

/// Each block as a column of the primary metric, in running order, with its windows below.
fn blocks(run: &Value, language: Language) -> String {
    let key = run["design"]["primary"].as_str().unwrap_or_default();
    let blocks = run["blocks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let value = |block: &Value| block["values"][key].as_f64();
    let most = blocks.iter().filter_map(value).fold(0.0, f64::max);
    // The blocks of several changes have no arm.
    if most <= 0.0 || run["kind"] == "factorial" {
        return String::new();
    }
    let busiest = blocks.iter().flat_map(strip).fold(0.0, f64::max).max(1e-9);
    let (mut columns, mut strips, mut letters) = (String::new(), String::new(), String::new());
    for block in blocks {
        let (arm, is_used) =
            (block["arm"].as_str().unwrap_or("?"), block["spoiled"].as_array().is_none_or(Vec::is_empty));
        let class = format!("{}{}", if arm == "A" { "a" } else { "b" }, if is_used { "" } else { " off" });
        let tall = value(block).unwrap_or(0.0) / most * 100.0;
        let why = shown_list(block, "spoiled", language).join("; ");
        let figure = value(block).map_or("–".to_owned(), metric::digits);
        let pair = block["pair"].as_u64().unwrap_or(0) + 1;
        let title = escape(say!(PAGE_BLOCK, arm, pair, figure, why).say(language));
        columns += &format!("<span class=\"{class}\" style=\"height:{tall:.1}%\" title=\"{title}\"></span>");
        letters += &format!("<span>{}</span>", if blocks.len() <= LETTERS_MAX { escape(arm) } else { String::new() });
        strips += &line(&strip(block), busiest, &class);
    }
    let unit = metric::of(key).map_or("", |metric| metric.unit);
    let title = say!(PAGE_BLOCKS, key, unit, metric::digits(most));
    let (title, key) = (escape(title.say(language)), [("a", "A"), ("b", "B")]);
    let legend: String =
        key.iter().map(|(class, name)| format!("<span><i class=\"key {class}\"></i>{name}</span>")).collect();
    card(&format!(
        "<p class=\"hint\">{title}</p><p class=\"legends\">{legend}</p><div class=\"columns\" role=\"img\" aria-label=\"{title}\">{columns}</div><div class=\"letters\" aria-hidden=\"true\">{letters}</div><div class=\"strips\" aria-hidden=\"true\">{strips}</div>"
    ))
}

/// Blocks whose letters have room beneath them.
const LETTERS_MAX: usize = 40;

/// Values as a line that fills its place.
pub(crate) fn line(values: &[f64], most: f64, class: &str) -> String {
    let last = values.len().saturating_sub(1).max(1) as f64;
    let point =
        |(at, value): (usize, &f64)| format!("{:.1},{:.1}", at as f64 / last * 100.0, 38.0 - value / most * 36.0);
    let points: Vec<String> = values.iter().enumerate().map(point).collect();
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 100 40\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><polyline points=\"{}\"/></svg>",
        points.join(" ")
    )
}

fn strip(block: &Value) -> Vec<f64> {
    block["strip"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// The rates that a search tried, in its order: how high each was, and whether it held.
fn steps(run: &Value, language: Language) -> String {
    let steps = run["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let height = |step: &Value| step["users"].as_f64().or(step["rate"].as_f64()).unwrap_or(f64::NAN);
    let most = steps.iter().map(height).fold(1e-9, f64::max);
    let row = |step: &Value| {
        let (class, tone) = if step["why"].is_null() { ("b", "good") } else { ("full", "bad") };
        format!(
            "<div class=\"row told\"><strong>{}</strong><span class=\"track\"><i class=\"{class}\" style=\"width:{:.1}%\"></i></span><span>{}</span></div>\n",
            escape(report::level(run, step).say(language)),
            height(step) / most * 100.0,
            mark(tone, &report::held(step, language)),
        )
    };
    let rows: String = steps.iter().map(row).collect();
    if rows.is_empty() { rows } else { card(&format!("<div class=\"barred\">{rows}</div>")) }
}

/// The settings that were tried, and the diff of those that are kept.
fn tries(run: &Value, language: Language) -> String {
    let titles = [texts::PAGE_KNOB, texts::VERDICT_HEADING, texts::PAGE_RUN];
    let [knob, judged, ran] = titles.map(|title| title.say(language));
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
                "<tr><td class=\"all\">{}</td><td class=\"text all\" data-k=\"{knob}\">{}: {}{changes}</td><td class=\"text all\" data-k=\"{judged}\">{verdict}</td><td data-k=\"{ran}\">{id}</td></tr>\n",
                mark(if tried["is_kept"] == true { "good" } else { "idle" }, fate),
                word(&tried["knob"]),
                escape(&shown(tried, "says", language))
            )
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let heads = format!(
        "<tr class=\"heads\"><th></th><th class=\"text\">{knob}</th><th class=\"text\">{judged}</th><th>{ran}</th></tr>\n"
    );
    let diff = word(&run["diff"]);
    let diff = if diff.is_empty() { diff } else { format!("<pre tabindex=\"0\">{diff}</pre>\n") };
    card(&format!("<table class=\"stack\">{heads}{rows}</table>")) + &diff
}

/// Both configurations, and the machine.
fn rest(run: &Value, language: Language) -> String {
    let text = |(side, title): (&str, Said)| {
        let files = run[side]["text"].as_array().into_iter().flatten().map(word).collect::<Vec<_>>().join("\n");
        let title = title.say(language);
        format!("<details><summary>{title}</summary><pre tabindex=\"0\">{files}</pre></details>\n")
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
            "<details><summary>{}</summary><pre tabindex=\"0\">{terminal}</pre></details>\n",
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
        for outside in ["src=", "<link", "@import", "url(", "//cdn"] {
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
