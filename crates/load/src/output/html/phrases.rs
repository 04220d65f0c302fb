//! Phrases that several parts of the page have.

use serde_json::Value;
use weir_words::{Language, Said, Text, say};

use crate::output::kept::said;
use crate::output::number::{self, duration, ms};
use crate::texts::page as texts;

/// Groups thousands with a no-break space.
pub(super) fn grouped(count: u64) -> String {
    number::grouped(count).replace(' ', "\u{a0}")
}

/// Words for one thing, and for several.
pub(super) type CountedWords = [Text; 2];

/// `1 check`, `2 checks`.
pub(super) fn many(count: u64, [one, several]: CountedWords) -> Said {
    let text = if count == 1 { one } else { several };
    text.with(&[grouped(count).into()])
}

/// The name of a figure in a head: `p99`, `max`.
pub(super) fn figure_name(figure: &str, language: Language) -> &str {
    match figure {
        "p999" => "p99.9",
        "max" => texts::PAGE_MAX.say(language),
        "mean" => texts::PAGE_MEAN.say(language),
        "min" => texts::PAGE_MIN.say(language),
        "median" => texts::PAGE_MEDIAN.say(language),
        "count" => texts::PAGE_COUNT.say(language),
        quantile => quantile,
    }
}

/// `5 to 40 a second for 14s`.
pub(super) fn told(phase: &Value, language: Language) -> Said {
    let arrivals = said(phase, "arrivals");
    // The length as the script wrote it; other languages spell it.
    let written = phase["duration"].as_str().unwrap_or_default();
    let length = match (language, phase["duration_ms"].as_u64()) {
        (Language::English, _) | (_, None) => written.into(),
        (_, Some(ms)) => duration(ms),
    };
    say!(texts::PAGE_PHASE, arrivals, length)
}

/// One line with the generator's self-check; with agents, the worst value of each figure.
pub(super) fn generator(generator: &Value) -> Said {
    let agents: Vec<&Value> = generator["agents"].as_object().into_iter().flatten().map(|(_, agent)| agent).collect();
    let all = if agents.is_empty() { vec![generator] } else { agents };
    let worst = |of: &dyn Fn(&Value) -> Option<f64>| all.iter().filter_map(|one| of(one)).reduce(f64::max);
    let busiest =
        |one: &Value| one["worker_cpu"].as_array().into_iter().flatten().filter_map(Value::as_f64).reduce(f64::max);
    let mut parts = Vec::new();
    if let Some(busiest) = worst(&busiest) {
        let part = if busiest < 0.01 { say!(texts::PAGE_UNDER_ONE) } else { format!("{:.0}", busiest * 100.0).into() };
        parts.push(say!(texts::PAGE_BUSIEST, part));
    }
    if let Some(cpu) = worst(&|one| one["machine_cpu"].as_f64()) {
        parts.push(say!(texts::PAGE_MACHINE, format!("{:.0}", cpu * 100.0)));
    }
    if let Some(lag) = worst(&|one| one["lag_p99_ms"].as_f64()) {
        parts.push(say!(texts::PAGE_LAG, ms(lag)));
    }
    for (key, text) in [("ports", texts::PAGE_PORTS), ("descriptors", texts::PAGE_DESCRIPTORS)] {
        let fullest = all.iter().filter_map(|one| Some((one[key]["used"].as_u64()?, one[key]["of"].as_u64()?)));
        if let Some((used, all)) =
            fullest.max_by(|a, b| (a.0 as f64 / a.1 as f64).total_cmp(&(b.0 as f64 / b.1 as f64)))
        {
            parts.push(text.with(&[grouped(used).into(), grouped(all).into()]));
        }
    }
    match (parts.is_empty(), generator["agents"].as_object().map_or(0, serde_json::Map::len)) {
        (true, _) => Said::default(),
        (false, 0) => Said::list(&parts, ", "),
        (false, agents) => say!(texts::PAGE_WORST_OF, agents, Said::list(&parts, ", ")),
    }
}
