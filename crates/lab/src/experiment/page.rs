//! The page of a lab's run, as a part of the page that other runs have: nginx beside weir.

use serde_json::{Value, json};

use weir_conf::language::Language;

use super::report::{self, FIGURES, beside};
use crate::html::{NAMES, WIDTH, comparison, escape, figure, waterlines, word};
use crate::metric::digits;
use crate::said::{say, shown};
use crate::texts;

/// Height of a bar, and the gap between the bars of two variants.
const BAR: f64 = 16.0;
const GAP: f64 = 8.0;
/// From this ratio on, bars are drawn on a logarithmic scale.
const LOG_FROM: f64 = 20.0;
/// Height of a strip.
const STRIP: f64 = 36.0;

/// The body of its page.
pub fn body(run: &Value, language: Language) -> String {
    let parts = [head, expected, ladder, figures, strips, limits, comparisons, rest];
    parts.iter().map(|part| part(run, language)).collect()
}

fn head(run: &Value, language: Language) -> String {
    let kind = if run["verdict"]["name"] == "holds" { "good" } else { "bad" };
    let edges: Vec<String> =
        list(&run["edges"]).map(|edge| format!("{} {}", legend(edge), word(&edge["version"]))).collect();
    format!(
        "<h1>{}: {}</h1>\n<p class=\"verdict {kind}\">{}</p>\n<p class=\"soft\">{}</p>\n<p>{}</p>\n",
        word(&run["name"]),
        word(&run["title"]),
        escape(&shown(&run["verdict"], "text", language)),
        word(&run["prior"]),
        edges.join(" · "),
    )
}

fn list(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

/// The colour of an edge.
fn class(edge: &Value) -> &'static str {
    if *edge == "weir" { "b" } else { "a" }
}

fn legend(edge: &Value) -> String {
    format!("<i class=\"key {}\"></i>", class(&edge["edge"]))
}

/// The expectations, and the result of each edge.
fn expected(run: &Value, language: Language) -> String {
    let edges: Vec<&Value> = list(&run["edges"]).collect();
    let rows: String = beside(run)
        .into_iter()
        .map(|(key, cells)| {
            let cell = |edge: &&Value| match cells.iter().find(|one| one["edge"] == edge["edge"]) {
                Some(one) if one["holds"] == true => format!("<td>{}</td>", escape(&shown(one, "found", language))),
                Some(one) => {
                    let fails = say!(PAGE_FAILS, shown(one, "found", language));
                    format!("<td><b class=\"fails\">{}</b></td>", escape(fails.say(language)))
                }
                None => format!("<td class=\"soft\">{}</td>", texts::PAGE_NOT_ASKED.say(language)),
            };
            let [variant, says, _] = key.map(word);
            let wanted = cells.first().map(|one| escape(&shown(one, "wanted", language))).unwrap_or_default();
            let cells = edges.iter().map(cell).collect::<String>();
            format!("<tr><td>{variant}</td><td class=\"text\">{says}</td><td>{wanted}</td>{cells}</tr>\n")
        })
        .collect();
    let heads: String = edges.iter().map(|edge| format!("<th>{}</th>", word(&edge["edge"]))).collect();
    let [title, variant, expected, wanted] =
        [texts::PAGE_EXPECTED, texts::PAGE_VARIANT, texts::PAGE_EXPECTATION, texts::PAGE_WANTED]
            .map(|text| text.say(language));
    format!(
        "<h2>{title}</h2>\n<div class=\"wide\"><table class=\"plain\"><tr><th>{variant}</th><th class=\"text\">{expected}</th><th>{wanted}</th>{heads}</tr>\n{rows}</table></div>\n"
    )
}

/// Blocks with figures from `weir load`.
fn loaded(run: &Value) -> Vec<&Value> {
    list(&run["blocks"]).filter(|block| FIGURES.first().is_some_and(|figure| figure.of(block).is_some())).collect()
}

/// The names of the variants, in the order in which they ran.
fn variants<'v>(blocks: &[&'v Value]) -> Vec<&'v Value> {
    let mut names: Vec<&Value> = Vec::new();
    for block in blocks {
        if !names.contains(&&block["variant"]) {
            names.push(&block["variant"]);
        }
    }
    names
}

/// Answers a second of each variant, a bar for each edge.
fn ladder(run: &Value, language: Language) -> String {
    let blocks = loaded(run);
    let rate = |block: &Value| FIGURES.first().and_then(|figure| figure.of(block)).filter(|rate| *rate > 0.0);
    let rates: Vec<f64> = blocks.iter().filter_map(|block| rate(block)).collect();
    let (least, most) =
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
    if rates.len() < 2 {
        return String::new();
    }
    let is_log = most / least > LOG_FROM;
    let room = WIDTH - NAMES - 70.0;
    // On a logarithmic scale, bars begin at the power of ten below the smallest value.
    let floor = 10f64.powf(least.log10().floor());
    let long = |rate: f64| if is_log { (rate / floor).ln() / (most / floor).ln() * room } else { rate / most * room };
    let (mut svg, mut y) = (String::new(), 0.0);
    for variant in variants(&blocks) {
        svg += &format!("<text x=\"0\" y=\"{:.1}\">{}</text>", y + BAR - 3.0, word(variant));
        for block in blocks.iter().filter(|block| block["variant"] == *variant) {
            let Some(rate) = rate(block) else { continue };
            let (edge, width) = (word(&block["edge"]), long(rate).max(1.0));
            svg += &format!(
                "<g><title>{edge}: {}</title><rect x=\"{NAMES}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" class=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>",
                say!(RATE, digits(rate)).say(language),
                BAR - 2.0,
                class(&block["edge"]),
                NAMES + width + 5.0,
                y + BAR - 4.0,
                digits(rate),
            );
            y += BAR;
        }
        y += GAP;
    }
    let title = if is_log { say!(PAGE_ANSWERS_LOG, floor) } else { say!(PAGE_ANSWERS) };
    figure(title.say(language), y, &svg)
}

/// The figures of each block.
fn figures(run: &Value, language: Language) -> String {
    let blocks = loaded(run);
    let row = |block: &&Value| {
        let cells: String =
            FIGURES.iter().map(|it| format!("<td>{}</td>", it.show(block).unwrap_or("–".into()))).collect();
        format!("<tr><td>{}</td><td>{}</td>{cells}</tr>\n", word(&block["variant"]), word(&block["edge"]))
    };
    let mut rows = String::new();
    for variant in variants(&blocks) {
        rows.extend(blocks.iter().filter(|block| block["variant"] == *variant).map(row));
    }
    if rows.is_empty() {
        return rows;
    }
    let heads: String = FIGURES.iter().map(|figure| format!("<th>{}</th>", figure.title.say(language))).collect();
    let [variant, edge] = [texts::PAGE_VARIANT, texts::PAGE_EDGE].map(|text| text.say(language));
    format!(
        "<div class=\"wide\"><table class=\"plain\"><tr><th>{variant}</th><th>{edge}</th>{heads}</tr>\n{rows}</table></div>\n"
    )
}

/// Answers over time, a strip for each block. All strips of a variant have the same scale.
fn strips(run: &Value, language: Language) -> String {
    let numbers = |block: &Value| list(&block["strip"]).filter_map(Value::as_f64).collect::<Vec<_>>();
    let blocks: Vec<&Value> = list(&run["blocks"]).filter(|block| numbers(block).len() > 1).collect();
    let (mut svg, mut y) = (String::new(), 0.0);
    for variant in variants(&blocks) {
        let own: Vec<&&Value> = blocks.iter().filter(|block| block["variant"] == *variant).collect();
        let most = own.iter().flat_map(|block| numbers(block)).fold(1e-9, f64::max);
        for block in own {
            let values = numbers(block);
            let step = (WIDTH - NAMES) / (values.len() - 1).max(1) as f64;
            let point = |(at, value): (usize, &f64)| {
                format!("{:.1},{:.1}", NAMES + at as f64 * step, y + STRIP - 2.0 - value / most * (STRIP - 6.0))
            };
            let points: Vec<String> = values.iter().enumerate().map(point).collect();
            svg += &format!(
                "<text x=\"0\" y=\"{:.1}\">{}</text><text x=\"0\" y=\"{:.1}\" class=\"small\">{}</text><polyline points=\"{}\" class=\"strip {}\"/>",
                y + 14.0,
                word(variant),
                y + 28.0,
                escape(say!(PAGE_STRIP_TO, block["edge"].as_str().unwrap_or_default(), digits(most)).say(language)),
                points.join(" "),
                class(&block["edge"]),
            );
            y += STRIP;
        }
    }
    if y == 0.0 { svg } else { figure(texts::PAGE_STRIPS.say(language), y, &svg) }
}

/// Limits and their use, block by block.
fn limits(run: &Value, language: Language) -> String {
    let blocks: Vec<&Value> =
        list(&run["blocks"]).filter(|block| list(&block["waterlines"]).next().is_some()).collect();
    let mut out = String::new();
    for variant in variants(&blocks) {
        for block in blocks.iter().filter(|block| block["variant"] == *variant) {
            let title = format!("{} {}", word(variant), word(&block["edge"]));
            let fullest = fullest(&block["waterlines"], language);
            out += &format!(
                "<details><summary>{}: {fullest}</summary>\n{}</details>\n",
                title.trim(),
                waterlines(&block["waterlines"], language)
            );
        }
    }
    let title = texts::PAGE_LAB_LIMITS.say(language);
    if out.is_empty() { out } else { format!("<h2>{title}</h2>\n{out}") }
}

/// The row closest to its limit, in words.
fn fullest(rows: &Value, language: Language) -> String {
    let part = rows[0]["most"].as_f64().zip(rows[0]["limit"].as_f64()).map_or(f64::NAN, |(most, limit)| most / limit);
    let said = say!(PAGE_FULLEST, shown(&rows[0], "what", language), format!("{:.0}", part * 100.0));
    escape(said.say(language))
}

/// Two variants in alternating blocks, for each edge.
fn comparisons(run: &Value, language: Language) -> String {
    let one = |compared: &Value| {
        let text = |name: &str| compared[name].as_str().unwrap_or_default().to_owned();
        let head = format!(
            "<h2>{}</h2>\n<p class=\"verdict\">{}</p>\n",
            escape(say!(PAGE_SIDES, text("edge"), text("before"), text("after")).say(language)),
            escape(&shown(&compared["verdict"], "text", language))
        );
        let of = json!({
            "kind": "ab", "metrics": compared["metrics"], "blocks": compared["blocks"], "design": compared["design"],
        });
        head + &comparison(&of, language)
    };
    list(&run["comparisons"]).map(one).collect()
}

/// The terminal report, and the machine.
fn rest(run: &Value, language: Language) -> String {
    format!(
        "<details><summary>{}</summary><pre>{}</pre></details>\n<footer>{} · {}</footer>\n",
        texts::PAGE_TERMINAL.say(language),
        escape(&report::text(run, language)),
        escape(
            say!(
                PAGE_FOOT,
                run["environment"]["weir"].as_str().unwrap_or_default(),
                run["environment"]["cpus"].to_string(),
                run["environment"]["kernel"].as_str().unwrap_or_default(),
                run["seed"].to_string(),
                run["id"].as_str().unwrap_or_default(),
            )
            .say(language)
        ),
        texts::PAGE_MADE_BY.say(language),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Value {
        let block = |edge: &str, variant: &str, rate: u64| {
            json!({
                "edge": edge, "variant": variant, "strip": [1, 2, 3],
                "waterlines": [{"what": "ports <x>", "most": 90, "limit": 100, "unit": ""}],
                "answer": {"load": {"aggregate": {"counters": {}}, "weir": {"started_ms": 0, "ended_ms": 1000, "response": {"count": rate, "p50": 1.5, "p999": 9.0}}}},
            })
        };
        let one = |edge: &str, variant: &str, holds: bool| json!({"edge": edge, "variant": variant, "says": "more <i>", "wanted": "≥ 5", "found": "7", "holds": holds});
        json!({
            "id": "1", "kind": "lab", "name": "x<", "title": "t", "verdict": {"name": "fails", "text": "1 of 3"}, "environment": {},
            "edges": [{"edge": "nginx", "version": "n/1", "seconds": 3.4}, {"edge": "weir", "version": "w/1", "seconds": 2.0}],
            "expected": [one("nginx", "slow", true), one("nginx", "fast", true), one("weir", "slow", false)],
            "blocks": [block("nginx", "slow", 5), block("nginx", "fast", 2000), block("weir", "slow", 6)],
        })
    }

    #[test]
    fn edges_stand_beside_each_other() {
        let page = crate::html::page(&run(), Language::English);
        for part in [
            "<th>nginx</th><th>weir</th>",
            "<td>slow</td><td class=\"text\">more &lt;i&gt;</td><td>≥ 5</td><td>7</td><td><b class=\"fails\">7, fails</b></td>",
            "<td>fast</td><td class=\"text\">more &lt;i&gt;</td><td>≥ 5</td><td>7</td><td class=\"soft\">not asked</td>",
            "the logarithm, from 1",
            "9.00 ms",
            "<summary>slow nginx: ports &lt;x&gt; at 90 %</summary>",
            "As a terminal shows it",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("<x>") && !page.contains("<i>") && !page.contains("{{"));
    }

    #[test]
    fn the_page_is_in_the_language_of_its_reader() {
        let page = crate::html::page(&run(), Language::Korean);
        for part in [
            "lang=\"ko\"",
            "<h2>예상과 측정</h2>",
            "<th>변형</th>",
            "확인하지 않음",
            "7, 불일치",
            "초당 응답",
            "터미널에 표시되는 내용",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        for part in
            ["Expected and measured", "not asked", "Answers a second", "made by", ", fails<", " at 90 %", "variant"]
        {
            assert!(!page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn several_runs_are_a_table_and_a_closing() {
        let table = report::table(&[run()]);
        assert!(table.contains("| variant | expected | wanted | n/1 (3 s) | w/1 (2 s) |"), "{table}");
        assert!(table.contains("| slow | more <i> | ≥ 5 | 7 | **7** |\n| fast | more <i> | ≥ 5 | 7 |  |"), "{table}");
        let closing = report::closing(&[run()], Language::English);
        assert!(closing.contains("x<        nginx    2 of   2 holds      3 s\n"), "{closing}");
        assert!(closing.contains("FAILS slow: more <i>: 7 (wanted: ≥ 5)"), "{closing}");
    }
}
