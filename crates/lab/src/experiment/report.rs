//! A lab's run as text, and a summary of several runs.

use serde_json::Value;
use weir_words::Language;

use super::facts::fact;
use crate::metric::digits;
use crate::said::{Text, left, right, say, shown};
use crate::texts;

/// The expectations and their results, a line each.
pub fn text(run: &Value, language: Language) -> String {
    let word = |json: &Value| json.as_str().unwrap_or_default().to_owned();
    let mut lines = vec![say!(LAB, word(&run["name"]), word(&run["title"])).say(language).to_owned()];
    if let Some(prior) = run["prior"].as_str().filter(|prior| !prior.is_empty()) {
        lines.push(say!(EXPECTED, prior).say(language).to_owned());
    }
    let mut at = String::new();
    for one in rows(run) {
        let head = [&one["edge"], &one["variant"]].map(word).join(" ").trim().to_owned();
        if at != head {
            let versions = run["edges"].as_array().into_iter().flatten();
            let version =
                versions.into_iter().find(|edge| edge["edge"] == one["edge"]).map(|edge| word(&edge["version"]));
            lines.push(format!("  {head} ({})", version.unwrap_or_default()));
            lines.extend(measured(run, one, language).map(|all| say!(MEASURED, all).say(language).to_owned()));
            at = head;
        }
        let verdict = match fails(one) {
            true => say!(LAB_FAILS),
            false if one["holds"] == true => say!(LAB_HOLDS),
            false => say!(LAB_EXCUSED),
        };
        let (found, wanted) = (shown(one, "found", language), shown(one, "wanted", language));
        lines.push(say!(JUDGED, verdict, word(&one["says"]), found, wanted).say(language).to_owned());
    }
    lines.push(shown(&run["verdict"], "text", language));
    lines.join("\n") + "\n"
}

/// True if an expectation does not hold, and no busy machine excuses it.
pub(super) fn fails(one: &Value) -> bool {
    one["holds"] != true && one["is_excused"] != true
}

/// The figures of `weir load` in the block of an expectation, if `weir load` was its client.
fn measured(run: &Value, expected: &Value, language: Language) -> Option<String> {
    let mut blocks = run["blocks"].as_array()?.iter();
    let block = blocks.find(|block| block["edge"] == expected["edge"] && block["variant"] == expected["variant"])?;
    let figures =
        FIGURES.iter().filter_map(|figure| Some(format!("{} {}", figure.title.say(language), figure.show(block)?)));
    let figures: Vec<String> = figures.collect();
    (!figures.is_empty()).then(|| figures.join(", "))
}

/// A figure that every block of `weir load` has.
pub(super) struct Figure {
    fact: &'static str,
    /// Its title.
    pub title: Text,
    unit: &'static str,
}

/// The figures, in the order in which they are shown.
pub(super) const FIGURES: &[Figure] = &[
    Figure { fact: "throughput", title: texts::ANSWERS, unit: "/s" },
    Figure { fact: "p50", title: same("p50"), unit: " ms" },
    Figure { fact: "p95", title: same("p95"), unit: " ms" },
    Figure { fact: "p99", title: same("p99"), unit: " ms" },
    Figure { fact: "p999", title: same("p99.9"), unit: " ms" },
    Figure { fact: "max", title: texts::WORST, unit: " ms" },
    Figure { fact: "codes.5xx", title: same("5xx"), unit: "" },
    Figure { fact: "errors", title: texts::FAILED, unit: "" },
    Figure { fact: "cpu.per_request", title: texts::EDGE_CPU_EACH, unit: " µs" },
];

/// A title that is the same in every language.
const fn same(name: &'static str) -> Text {
    Text { name, en: name, ko: name }
}

impl Figure {
    /// Its number in a block.
    pub fn of(&self, block: &Value) -> Option<f64> {
        fact(&block["answer"], self.fact).filter(|value| value.is_finite())
    }

    /// The number with its unit.
    pub fn show(&self, block: &Value) -> Option<String> {
        let value = self.of(block)?;
        let digits = if self.unit.is_empty() { format!("{value}") } else { digits(value) };
        Some(format!("{digits}{}", self.unit))
    }
}

/// Several runs: a line for each edge of each run, followed by its failed expectations.
pub fn closing(runs: &[Value], language: Language) -> String {
    let word = |json: &Value| json.as_str().unwrap_or_default().to_owned();
    let mut lines = Vec::new();
    for run in runs {
        for edge in run["edges"].as_array().into_iter().flatten() {
            let all: Vec<&Value> = rows(run).filter(|one| one["edge"] == edge["edge"]).collect();
            let broken: Vec<&&Value> = all.iter().filter(|one| fails(one)).collect();
            let seconds = edge["seconds"].as_f64().unwrap_or(0.0);
            let (lab, name, held) =
                (word(&run["name"]), word(&edge["edge"]), all.iter().filter(|one| one["holds"] == true).count());
            let held = say!(COUNT_HOLDS, format!("{held:>3}"), format!("{:>3}", all.len()));
            let seconds = right(say!(SECONDS, format!("{seconds:.0}")).say(language), 7);
            lines.push(format!("{}  {}  {}  {seconds}", left(&lab, 8), left(&name, 5), held.say(language)));
            lines.extend(broken.iter().map(|one| {
                let variant = word(&one["variant"]);
                let place = if variant.is_empty() { variant } else { format!("{variant}: ") };
                let (found, wanted) = (shown(one, "found", language), shown(one, "wanted", language));
                say!(FAILS_IN, place, word(&one["says"]), found, wanted).say(language).to_owned()
            }));
        }
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Several runs as a page of tables: the expectations, and the results of each edge.
pub fn table(runs: &[Value]) -> String {
    let word = |json: &Value| json.as_str().unwrap_or_default().replace('|', "\\|");
    let mut out = String::from(
        "# What the experiments measured\n\n`weir lab run --all --table FILE` writes this page from runs; [labs.md](labs.md) explains the results. A number that differs from the expectation is **bold**.\n",
    );
    for run in runs {
        let edges: Vec<&Value> = run["edges"].as_array().into_iter().flatten().collect();
        let name =
            |edge: &Value| format!("{} ({:.0} s)", word(&edge["version"]), edge["seconds"].as_f64().unwrap_or(0.0));
        let heads: Vec<String> = edges.iter().map(|edge| name(edge)).collect();
        out += &format!("\n## {}\n\n{}\n\n", word(&run["name"]), word(&run["title"]));
        out += &format!(
            "| variant | expected | wanted | {} |\n|---|---|---|{}\n",
            heads.join(" | "),
            "---|".repeat(heads.len())
        );
        for (key, cells) in beside(run) {
            let cell = |edge: &&Value| match cells.iter().find(|one| one["edge"] == edge["edge"]) {
                Some(one) if one["holds"] == true => word(&one["found"]),
                Some(one) => format!("**{}**", word(&one["found"])),
                None => String::new(),
            };
            let cells: Vec<String> = edges.iter().map(cell).collect();
            let [variant, says, wanted] = key.map(word);
            out += &format!("| {variant} | {says} | {wanted} | {} |\n", cells.join(" | "));
        }
    }
    out
}

/// Variant, words and range of an expectation.
type Key<'a> = [&'a Value; 3];

/// Each expectation once, with its results for every edge, in the order of the file.
pub(super) fn beside(run: &Value) -> Vec<(Key<'_>, Vec<&Value>)> {
    let mut found: Vec<(Key<'_>, Vec<&Value>)> = Vec::new();
    for one in rows(run) {
        let key = [&one["variant"], &one["says"], &one["wanted"]];
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, list)) => list.push(one),
            None => found.push((key, vec![one])),
        }
    }
    // An expectation for only one edge stays with its variant. Without this sort, it would come after all
    // expectations for both edges.
    let order: Vec<&Value> = found.iter().map(|(key, _)| key[0]).collect();
    let mut variants: Vec<&Value> = Vec::new();
    order.into_iter().for_each(|variant| {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    });
    found.sort_by_key(|(key, _)| variants.iter().position(|variant| *variant == key[0]));
    found
}

fn rows(run: &Value) -> impl Iterator<Item = &Value> {
    run["expected"].as_array().into_iter().flatten()
}
