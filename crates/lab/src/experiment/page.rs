//! The page of a lab's run, as a part of the page that other runs have: nginx beside weir.

use serde_json::{Value, json};

use weir_words::Language;

use super::report::{self, FIGURES, beside, fails};
use crate::html::{card, comparison, escape, line, mark, tone, verdict, waterlines, word};
use crate::metric::digits;
use crate::said::{say, shown};
use crate::texts;

/// From this ratio on, bars are drawn on a logarithmic scale.
const LOG_FROM: f64 = 20.0;

/// The body of its page.
pub fn body(run: &Value, language: Language) -> String {
    let parts = [head, expected, ladder, figures, strips, limits, comparisons, rest];
    parts.iter().map(|part| part(run, language)).collect()
}

fn head(run: &Value, language: Language) -> String {
    let name = run["verdict"]["name"].as_str().unwrap_or_default();
    let edges: Vec<String> =
        list(&run["edges"]).map(|edge| format!("<span>{}{}</span>", legend(edge), word(&edge["version"]))).collect();
    format!(
        "<h1>{}: {}</h1>\n{}<p class=\"hint\">{}</p>\n<p class=\"legends\">{}</p>\n",
        word(&run["name"]),
        word(&run["title"]),
        verdict(tone(name), name, &shown(&run["verdict"], "text", language)),
        word(&run["prior"]),
        edges.concat(),
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
    let [title, variant_head, expected_head, wanted_head] =
        [texts::PAGE_EXPECTED, texts::PAGE_VARIANT, texts::PAGE_EXPECTATION, texts::PAGE_WANTED]
            .map(|text| text.say(language));
    let rows: String = beside(run)
        .into_iter()
        .map(|(key, cells)| {
            let cell = |edge: &&Value| {
                let name = word(&edge["edge"]);
                let found = match cells.iter().find(|one| one["edge"] == edge["edge"]) {
                    Some(one) if one["holds"] == true => mark("good", &shown(one, "found", language)),
                    Some(one) if !fails(one) => {
                        format!("{} <span class=\"hint\">{}</span>", escape(&shown(one, "found", language)), texts::LAB_EXCUSED.say(language))
                    }
                    Some(one) => mark("bad", say!(PAGE_FAILS, shown(one, "found", language)).say(language)),
                    None => format!("<span class=\"hint\">{}</span>", texts::PAGE_NOT_ASKED.say(language)),
                };
                format!("<td data-k=\"{name}\">{found}</td>")
            };
            let [variant, says, _] = key.map(word);
            let wanted = cells.first().map(|one| escape(&shown(one, "wanted", language))).unwrap_or_default();
            let cells = edges.iter().map(cell).collect::<String>();
            format!("<tr><td>{variant}</td><td class=\"text all\">{says}</td><td data-k=\"{wanted_head}\">{wanted}</td>{cells}</tr>\n")
        })
        .collect();
    let heads: String = edges.iter().map(|edge| format!("<th>{}</th>", word(&edge["edge"]))).collect();
    format!(
        "<h2>{title}</h2>\n{}",
        card(&format!(
            "<table class=\"stack\"><tr class=\"heads\"><th>{variant_head}</th><th class=\"text\">{expected_head}</th><th>{wanted_head}</th>{heads}</tr>\n{rows}</table>"
        ))
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
    // On a logarithmic scale, bars begin at the power of ten below the smallest value.
    let floor = 10f64.powf(least.log10().floor());
    let long = |rate: f64| if is_log { (rate / floor).ln() / (most / floor).ln() * 100.0 } else { rate / most * 100.0 };
    let mut bars = String::new();
    for variant in variants(&blocks) {
        bars += &format!("<div class=\"group\">{}</div>", word(variant));
        for block in blocks.iter().filter(|block| block["variant"] == *variant) {
            let Some(rate) = rate(block) else { continue };
            bars += &format!(
                "<div class=\"row\"><span>{}</span><span class=\"track\"><i class=\"{}\" style=\"width:{:.1}%\"></i></span><strong>{}</strong></div>\n",
                word(&block["edge"]),
                class(&block["edge"]),
                long(rate).max(0.0),
                say!(RATE, digits(rate)).say(language),
            );
        }
    }
    let title = if is_log { say!(PAGE_ANSWERS_LOG, floor) } else { say!(PAGE_ANSWERS) };
    format!("<h2>{}</h2>\n{}", title.say(language), card(&format!("<div class=\"barred\">{bars}</div>")))
}

/// The figures of each block.
fn figures(run: &Value, language: Language) -> String {
    let blocks = loaded(run);
    let row = |block: &&Value| {
        let cell = |it: &report::Figure| {
            format!("<td data-k=\"{}\">{}</td>", it.title.say(language), it.show(block).unwrap_or("–".into()))
        };
        let cells: String = FIGURES.iter().map(cell).collect();
        format!("<tr><td>{} · {}</td>{cells}</tr>\n", word(&block["variant"]), word(&block["edge"]))
    };
    let mut rows = String::new();
    for variant in variants(&blocks) {
        rows.extend(blocks.iter().filter(|block| block["variant"] == *variant).map(row));
    }
    if rows.is_empty() {
        return rows;
    }
    let heads: String = FIGURES.iter().map(|figure| format!("<th>{}</th>", figure.title.say(language))).collect();
    let [title, variant, edge] =
        [texts::PAGE_FIGURES, texts::PAGE_VARIANT, texts::PAGE_EDGE].map(|text| text.say(language));
    format!(
        "<h2>{title}</h2>\n{}",
        card(&format!(
            "<div class=\"overs\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\"><table class=\"stack\"><tr class=\"heads\"><th>{variant} · {edge}</th>{heads}</tr>\n{rows}</table></div>"
        ))
    )
}

/// Answers over time, a strip for each block. All strips of a variant have the same scale.
fn strips(run: &Value, language: Language) -> String {
    let numbers = |block: &Value| list(&block["strip"]).filter_map(Value::as_f64).collect::<Vec<_>>();
    let blocks: Vec<&Value> = list(&run["blocks"]).filter(|block| numbers(block).len() > 1).collect();
    let mut lanes = String::new();
    for variant in variants(&blocks) {
        let own: Vec<&&Value> = blocks.iter().filter(|block| block["variant"] == *variant).collect();
        let most = own.iter().flat_map(|block| numbers(block)).fold(1e-9, f64::max);
        for block in own {
            lanes += &format!(
                "<div class=\"row {}\"><span>{} <span class=\"hint\">{}</span></span>{}</div>\n",
                class(&block["edge"]),
                word(variant),
                escape(say!(PAGE_STRIP_TO, block["edge"].as_str().unwrap_or_default(), digits(most)).say(language)),
                line(&numbers(block), most, ""),
            );
        }
    }
    if lanes.is_empty() {
        return lanes;
    }
    let title = texts::PAGE_STRIPS.say(language);
    format!("<h2>{title}</h2>\n{}", card(&format!("<div class=\"lanes\">{lanes}</div>")))
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
            "<h2>{}</h2>\n{}",
            escape(say!(PAGE_SIDES, text("edge"), text("before"), text("after")).say(language)),
            verdict(
                tone(compared["verdict"]["name"].as_str().unwrap_or_default()),
                "",
                &shown(&compared["verdict"], "text", language)
            )
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
        "<details><summary>{}</summary><pre tabindex=\"0\">{}</pre></details>\n<footer>{} · {}</footer>\n",
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
            "<td>slow</td><td class=\"text all\">more &lt;i&gt;</td><td data-k=\"wanted\">≥ 5</td><td data-k=\"nginx\"><span class=\"mark good\">",
            "</span>7, fails</span></td>",
            "not asked",
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
    fn several_runs_are_a_table_and_a_closing() {
        let table = report::table(&[run()]);
        assert!(table.contains("| variant | expected | wanted | n/1 (3 s) | w/1 (2 s) |"), "{table}");
        assert!(table.contains("| slow | more <i> | ≥ 5 | 7 | **7** |\n| fast | more <i> | ≥ 5 | 7 |  |"), "{table}");
        let closing = report::closing(&[run()], Language::English);
        assert!(closing.contains("x<        nginx    2 of   2 holds      3 s\n"), "{closing}");
        assert!(closing.contains("FAILS slow: more <i>: 7 (wanted: ≥ 5)"), "{closing}");
    }

    #[test]
    fn an_excused_expectation_is_shown_and_does_not_fail() {
        let mut run = run();
        run["expected"][2]["is_excused"] = json!(true);
        let closing = report::closing(&[run.clone()], Language::English);
        assert!(closing.contains("weir     0 of   1 holds") && !closing.contains("FAILS"), "{closing}");
        let text = report::text(&run, Language::English);
        assert!(text.contains("not judged, because of --noisy: more <i>: 7 (wanted: ≥ 5)"), "{text}");
        let page = crate::html::page(&run, Language::English);
        assert!(page.contains("7 <span class=\"hint\">not judged, because of --noisy"), "{page}");
    }
}
