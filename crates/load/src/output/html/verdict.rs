//! The top of the page: the requested load, the arrivals, whether the generator was the limit, and the checks.

use serde_json::Value;
use weir_dash::inline::escape;
use weir_words::{Language, Said, Text, say};

use super::phrases::{self, CountedWords, grouped, many, told};
use crate::output::kept::said_list;
use crate::output::number::ms;
use crate::texts::page as texts;

/// Phases listed one by one; for more, the first and the number of the others.
const PHASES_TOLD: usize = 3;
/// Names of errors listed.
const ERRORS_TOLD: usize = 3;
/// From this share of failures on, the statement is red.
const FAILED_BAD: f64 = 0.01;

/// A statement and its colour: `ok`, `warn`, `bad`, or `plain`.
struct Statement {
    kind: &'static str,
    /// The subject, one word.
    about: Text,
    title: Said,
    /// HTML.
    more: String,
}

/// The facts that a reader needs before any figure.
pub fn strip(report: &Value, language: Language) -> String {
    let weir = &report["weir"];
    let rows =
        [asked(report, language), Some(arrived(report, language)), Some(generator(&weir["generator"], language))];
    let row: String = rows.into_iter().flatten().map(|one| one.render(language)).collect();
    let below = [incomplete(weir, language), checks(weir, language)];
    let below: String = below.into_iter().flatten().map(|one| one.render(language)).collect();
    let verdicts = texts::PAGE_VERDICTS.say(language);
    format!("<section class=\"strip\" aria-label=\"{verdicts}\"><div class=\"row\">{row}</div>{below}</section>\n")
}

impl Statement {
    fn render(&self, language: Language) -> String {
        let Statement { kind, about, title, more } = self;
        let (about, title) = (about.say(language), escape(title.say(language)));
        format!(
            "<div class=\"say {kind}\"><div class=\"about\">{about}</div><div><b class=\"{kind}\">{title}</b> {more}</div></div>\n"
        )
    }
}

fn asked(report: &Value, language: Language) -> Option<Statement> {
    let weir = &report["weir"];
    let created = count(report, "vusers.created");
    let skipped = count(report, "vusers.skipped");
    let missing = skipped + weir["dropped"].as_u64().unwrap_or(0);
    let phases: Vec<&Value> = weir["phases"].as_array().into_iter().flatten().collect();
    let mut lines: Vec<Said> = phases.iter().take(PHASES_TOLD).map(|phase| told(phase, language)).collect();
    let rest = phases.len().saturating_sub(PHASES_TOLD) as u64;
    lines.extend((rest > 0).then(|| many(rest, [texts::PAGE_MORE_PHASE, texts::PAGE_MORE_PHASES])));
    // After an incomplete run, the requested number is unknown.
    let is_cut = weir["incomplete"].as_array().is_some_and(|reasons| !reasons.is_empty());
    // The load of a single URL has no virtual users: it drops requests.
    let has_users = created + skipped > 0 || missing > 0 && count(report, "http.requests") == 0;
    let title = match (has_users, phases.is_empty()) {
        (true, _) if is_cut => say!(texts::PAGE_BEGUN, many(created, USERS)),
        (true, _) => many(created + missing, USERS),
        (false, false) => Said::list(&std::mem::take(&mut lines), "; "),
        (false, true) => return None,
    };
    let lag = &weir["schedule_lag"];
    let late = lag["p99"].as_f64().filter(|_| lag["count"].as_u64().unwrap_or(0) > 0);
    lines.extend(match (missing, late) {
        (0, Some(late)) if is_cut => Some(say!(texts::PAGE_LATE, ms(late))),
        (1.., _) => Some(say!(texts::PAGE_NEVER_BEGAN, grouped(missing))),
        (0, Some(late)) => Some(say!(texts::PAGE_ALL_BEGAN, ms(late))),
        (0, None) => None,
    });
    Some(Statement {
        kind: if missing > 0 || is_cut { "warn" } else { "plain" },
        about: texts::PAGE_ASKED,
        title,
        more: soft(&lines, language),
    })
}

fn arrived(report: &Value, language: Language) -> Statement {
    let (requests, codes, errors) = (count(report, "http.requests"), codes(report), errors(report));
    let answered: u64 = codes.iter().map(|(_, count)| count).sum();
    let messages = ["websocket.messages_sent", "socketio.emit"].iter().map(|name| count(report, name)).sum();
    let (created, completed) = (count(report, "vusers.created"), count(report, "vusers.completed"));
    let users_completed = || say!(texts::PAGE_COMPLETED, grouped(completed), many(created, USERS));
    let title = match (requests, messages) {
        (0, 0) if created == 0 => say!(texts::PAGE_NOTHING),
        (0, 0) => users_completed(),
        (0, _) => say!(texts::PAGE_SENT, many(messages, MESSAGES)),
        (1, _) if answered == 1 => say!(texts::PAGE_ONLY_ANSWERED),
        _ if answered == requests => say!(texts::PAGE_ALL_ANSWERED, many(requests, REQUESTS)),
        _ => say!(texts::PAGE_ANSWERED, grouped(answered), many(requests, REQUESTS)),
    };
    let mut lines: Vec<Said> = Vec::new();
    if messages > 0 && requests == 0 {
        lines.push(users_completed());
    }
    if !codes.is_empty() {
        let classes: Vec<_> = codes.iter().map(|(class, count)| format!("{} × {class}xx", grouped(*count))).collect();
        lines.push(Said::list(&[classes.join(", ").into(), cut_short(report)], ""));
    }
    let named: Vec<_> =
        errors.iter().take(ERRORS_TOLD).map(|(name, count)| format!("{} × {name}", grouped(*count))).collect();
    let more = if errors.len() > ERRORS_TOLD { ", …" } else { "" };
    lines.push(match errors.is_empty() {
        true => say!(texts::PAGE_NO_ERRORS),
        false => format!("{}{more}", named.join(", ")).into(),
    });
    let unmet = count(report, "plugins.expect.failed");
    lines.extend((unmet > 0).then(|| many(unmet, [texts::PAGE_UNMET, texts::PAGE_UNMET_MANY])));
    let users_failed = count(report, "vusers.failed");
    lines.extend(
        (users_failed > 0).then(|| say!(texts::PAGE_USERS_FAILED, grouped(users_failed), many(created, USERS))),
    );
    let broken: u64 = codes.iter().filter(|(class, _)| *class == '5').map(|(_, count)| count).sum();
    let failed = errors.iter().map(|(_, count)| count).sum::<u64>() + broken;
    let part = |failed: u64, of: u64| failed as f64 / of.max(1) as f64;
    let worst = part(failed, requests + messages).max(part(users_failed, created)).max(part(unmet, requests));
    let kind = match worst {
        _ if requests + messages + created == 0 => "warn",
        0.0 if answered < requests => "warn",
        0.0 => "ok",
        _ if worst < FAILED_BAD => "warn",
        _ => "bad",
    };
    Statement { kind, about: texts::PAGE_ARRIVED, title, more: soft(&lines, language) }
}

/// Answers that failed after their head.
fn cut_short(report: &Value) -> Said {
    let failures = report["weir"]["failures"].as_array().into_iter().flatten();
    let cut = failures.filter(|at| at["phase"] == "body").filter_map(|at| at["count"].as_u64()).sum::<u64>();
    if cut > 0 { say!(texts::PAGE_CUT_SHORT, grouped(cut)) } else { Said::default() }
}

fn generator(generator: &Value, language: Language) -> Statement {
    let about = texts::PAGE_GENERATOR;
    let cautions = said_list(generator, "cautions");
    if generator["is_limit"].as_bool() == Some(true) {
        let why = list(&said_list(generator, "limits"), language);
        let more = format!("{}{why}", texts::PAGE_WAS_LIMIT_MEANS.say(language));
        return Statement { kind: "bad", about, title: say!(texts::PAGE_WAS_LIMIT), more };
    }
    if !generator.is_object() {
        let more = soft(&[say!(texts::PAGE_NO_GENERATOR_MEANS)], language);
        return Statement { kind: "warn", about, title: say!(texts::PAGE_NO_GENERATOR), more };
    }
    let (kind, title) = match cautions.is_empty() {
        true => ("ok", say!(texts::PAGE_KEPT_UP)),
        false => ("warn", say!(texts::PAGE_KEPT_UP_BUT)),
    };
    let cautions = if cautions.is_empty() { String::new() } else { list(&cautions, language) };
    Statement { kind, about, title, more: cautions + &soft(&[phrases::generator(generator)], language) }
}

fn incomplete(weir: &Value, language: Language) -> Option<Statement> {
    let reasons = said_list(weir, "incomplete");
    let title = say!(texts::PAGE_INCOMPLETE);
    (!reasons.is_empty()).then(|| Statement {
        kind: "warn",
        about: texts::PAGE_RUN,
        title,
        more: list(&reasons, language),
    })
}

fn checks(weir: &Value, language: Language) -> Option<Statement> {
    let checks: Vec<&Value> = weir["checks"].as_array().into_iter().flatten().collect();
    let failed: Vec<&Value> = checks.iter().copied().filter(|check| check["ok"].as_bool() != Some(true)).collect();
    if checks.is_empty() {
        return None;
    }
    let is_strict = |check: &Value| check["strict"].as_bool() != Some(false);
    let shown = |check: &&Value| {
        let optional = if is_strict(check) { "" } else { texts::PAGE_OPTIONAL.say(language) };
        format!("<code>{}</code>{optional}", escape(check["check"].as_str().unwrap_or_default()))
    };
    let of = checks.len() as u64;
    let (kind, title) = match failed.is_empty() {
        true if of == 1 => ("ok", say!(texts::PAGE_ONLY_MET)),
        true => ("ok", say!(texts::PAGE_ALL_MET, many(of, CHECKS))),
        false => {
            let kind = if failed.iter().any(|check| is_strict(check)) { "bad" } else { "warn" };
            (kind, say!(texts::PAGE_NOT_MET, failed.len(), many(of, CHECKS)))
        }
    };
    let items: Vec<String> = failed.iter().map(shown).collect();
    let more = if items.is_empty() { String::new() } else { items_of(&items) };
    Some(Statement { kind, about: texts::PAGE_CHECKS, title, more })
}

fn count(report: &Value, name: &str) -> u64 {
    report["aggregate"]["counters"][name].as_u64().unwrap_or(0)
}

/// Numbers of answers by the first digit of their status.
fn codes(report: &Value) -> Vec<(char, u64)> {
    let mut classes = std::collections::BTreeMap::new();
    for (name, count) in report["aggregate"]["counters"].as_object().into_iter().flatten() {
        if let (Some(class), Some(count)) =
            (name.strip_prefix("http.codes.").and_then(|code| code.chars().next()), count.as_u64())
        {
            *classes.entry(class).or_insert(0) += count;
        }
    }
    classes.into_iter().collect()
}

/// Errors by name, the most frequent first.
fn errors(report: &Value) -> Vec<(String, u64)> {
    let counters = report["aggregate"]["counters"].as_object().into_iter().flatten();
    let errors = counters.filter_map(|(name, count)| Some((name.strip_prefix("errors.")?.to_owned(), count.as_u64()?)));
    let mut errors: Vec<_> = errors.collect();
    errors.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    errors
}

const USERS: CountedWords = [texts::PAGE_USER, texts::PAGE_USERS];
const REQUESTS: CountedWords = [texts::PAGE_REQUEST, texts::PAGE_REQUESTS];
const MESSAGES: CountedWords = [texts::PAGE_MESSAGE, texts::PAGE_MESSAGES];
const CHECKS: CountedWords = [texts::PAGE_CHECK, texts::PAGE_CHECKS_OF];

/// Sentences as a list.
fn list(items: &[Said], language: Language) -> String {
    items_of(&items.iter().map(|item| escape(item.say(language))).collect::<Vec<_>>())
}

/// Pieces of HTML as a list.
fn items_of(items: &[String]) -> String {
    format!("<ul>{}</ul>", items.iter().map(|item| format!("<li>{item}</li>")).collect::<String>())
}

/// Lines in small print.
fn soft(lines: &[Said], language: Language) -> String {
    let lines = lines.iter().map(|line| escape(line.say(language)));
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    format!("<div class=\"soft\">{}</div>", lines.join("<br>"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(counters: &Value, weir: &Value) -> String {
        strip(&json!({"aggregate": {"counters": counters}, "weir": weir}), Language::English).replace('\u{a0}', " ")
    }

    #[test]
    fn failures_are_never_green() {
        for (counters, kind) in [
            (json!({"http.requests": 10, "http.codes.200": 10, "vusers.created": 10}), "ok"),
            (json!({"http.requests": 1000, "http.codes.200": 999, "errors.E": 1, "vusers.created": 999}), "warn"),
            (json!({"http.requests": 10, "http.codes.200": 9, "errors.E": 1}), "bad"),
            (json!({"http.requests": 10, "http.codes.503": 10}), "bad"),
            (json!({"http.requests": 10, "http.codes.200": 10, "plugins.expect.failed": 1}), "bad"),
            (json!({"vusers.created": 10, "vusers.failed": 10}), "bad"),
            (json!({"http.requests": 10, "http.codes.200": 9}), "warn"),
            (json!({}), "warn"),
        ] {
            let page = said(&counters, &Value::Null);
            let arrived = page.lines().find(|line| line.contains("Arrived")).unwrap();
            assert!(
                page.contains(&format!("<div class=\"say {kind}\"><div class=\"about\">Arrived")),
                "{kind} {arrived}"
            );
        }
    }

    #[test]
    fn what_was_asked_and_what_came_of_it() {
        let phase = |n: u64| json!({"arrivals": format!("{n} a second"), "duration": "5s"});
        let page = said(
            &json!({"http.requests": 2000, "http.codes.200": 1990, "http.codes.404": 4, "errors.<E>": 8, "vusers.created": 1000}),
            &json!({
                "phases": [phase(1), phase(2), phase(3), phase(4)],
                "schedule_lag": {"count": 1000, "p99": 4.84},
                "failures": [{"phase": "body", "count": 2}, {"phase": "wait", "count": 6}],
            }),
        );
        for words in [
            "<b class=\"plain\">1 000 virtual users</b>",
            "1 a second for 5s<br>2 a second for 5s<br>3 a second for 5s<br>and 1 more phase<br>all began, 99 % at most 4.84 ms late",
            "1 994 of 2 000 requests answered",
            "1 990 × 2xx, 4 × 4xx; 2 cut short<br>8 × &lt;E&gt;",
        ] {
            assert!(page.contains(words), "{words}\n{page}");
        }
        let cut = said(&json!({"vusers.created": 8}), &json!({"incomplete": ["an agent was lost"]}));
        assert!(cut.contains("8 virtual users begun</b>") && !cut.contains("all began"), "{cut}");
        let page = said(&json!({"vusers.created": 8, "vusers.skipped": 1}), &json!({"dropped": 1}));
        assert!(page.contains("10 virtual users</b>") && page.contains("2 never began"), "{page}");
    }

    #[test]
    fn a_generator_without_room_is_no_quiet_matter() {
        for (generator, words) in [
            (json!({"is_limit": true, "limits": ["<x>"]}), "say bad\"><div class=\"about\">Generator"),
            (json!({"is_limit": true, "limits": ["<x>"]}), "<li>&lt;x&gt;</li>"),
            (json!({"is_limit": false, "cautions": ["full"]}), "say warn\"><div class=\"about\">Generator"),
            (json!({"is_limit": false}), "say ok\"><div class=\"about\">Generator"),
            (Value::Null, "The report has no data about the generator"),
        ] {
            let page = said(&json!({}), &json!({"generator": generator}));
            assert!(page.contains(words), "{words} {page}");
        }
    }

    #[test]
    fn checks_that_failed_are_listed_and_optional_ones_are_told() {
        let check = |ok: bool, strict: bool| json!({"check": "p95 < 5", "ok": ok, "strict": strict});
        for (checks, kind, words) in [
            (json!([check(true, true)]), "ok", "the only check met"),
            (json!([check(true, true), check(false, false)]), "warn", "1 of 2 checks not met"),
            (json!([check(true, true), check(false, true)]), "bad", "<code>p95 &lt; 5</code></li>"),
        ] {
            let page = said(&json!({}), &json!({"checks": checks}));
            assert!(
                page.contains(words) && page.contains(&format!("say {kind}\"><div class=\"about\">Checks")),
                "{page}"
            );
        }
    }
}
