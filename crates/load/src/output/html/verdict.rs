//! The top of the page: the requested load, the arrivals, whether the generator was the limit, and the checks.

use serde_json::Value;

use super::{escape, grouped, tables};
use crate::output::number::ms;

/// Phases listed one by one; for more, the first and the number of the others.
const PHASES_TOLD: usize = 3;
/// Names of errors listed.
const ERRORS_TOLD: usize = 3;
/// From this share of failures on, the statement is red.
const FAILED_BAD: f64 = 0.01;

/// A statement and its colour: `ok`, `warn`, `bad`, or `plain`.
struct Say {
    kind: &'static str,
    /// The subject, one word.
    about: &'static str,
    title: String,
    /// HTML.
    more: String,
}

/// The facts that a reader needs before any figure.
pub fn strip(report: &Value) -> String {
    let says = [asked(report), Some(arrived(report)), Some(generator(&report["weir"]["generator"]))];
    let row: String = says.into_iter().flatten().map(|say| say.render()).collect();
    let below: String =
        [incomplete(&report["weir"]), checks(&report["weir"])].into_iter().flatten().map(|say| say.render()).collect();
    format!("<section class=\"strip\" aria-label=\"Verdicts\"><div class=\"row\">{row}</div>{below}</section>\n")
}

impl Say {
    fn render(&self) -> String {
        let Say { kind, about, title, more } = self;
        let title = escape(title);
        format!(
            "<div class=\"say {kind}\"><div class=\"about\">{about}</div><div><b class=\"{kind}\">{title}</b> {more}</div></div>\n"
        )
    }
}

fn asked(report: &Value) -> Option<Say> {
    let weir = &report["weir"];
    let created = count(report, "vusers.created");
    let skipped = count(report, "vusers.skipped");
    let missing = skipped + weir["dropped"].as_u64().unwrap_or(0);
    let phases: Vec<&Value> = weir["phases"].as_array().into_iter().flatten().collect();
    let mut told: Vec<String> = phases.iter().take(PHASES_TOLD).map(|phase| escape(&told(phase))).collect();
    let rest = phases.len().saturating_sub(PHASES_TOLD) as u64;
    told.extend((rest > 0).then(|| format!("and {}", many(rest, "more phase"))));
    // After an incomplete run, the requested number is unknown.
    let is_cut = weir["incomplete"].as_array().is_some_and(|reasons| !reasons.is_empty());
    // The load of a single URL has no virtual users: it drops requests.
    let has_users = created + skipped > 0 || missing > 0 && count(report, "http.requests") == 0;
    let title = match (has_users, phases.is_empty()) {
        (true, _) if is_cut => format!("{} begun", many(created, "virtual user")),
        (true, _) => many(created + missing, "virtual user"),
        (false, false) => std::mem::take(&mut told).join("; "),
        (false, true) => return None,
    };
    let lag = &weir["schedule_lag"];
    let late = lag["p99"].as_f64().filter(|_| lag["count"].as_u64().unwrap_or(0) > 0);
    let begun = match (missing, late) {
        (0, Some(late)) if is_cut => format!("99 % at most {} ms late", ms(late)),
        (1.., _) => format!("{} never began", grouped(missing)),
        (0, Some(late)) => format!("all began, 99 % at most {} ms late", ms(late)),
        (0, None) => String::new(),
    };
    told.push(begun);
    told.retain(|line| !line.is_empty());
    Some(Say {
        kind: if missing > 0 || is_cut { "warn" } else { "plain" },
        about: "Asked",
        title,
        more: soft(&told.join("<br>")),
    })
}

/// `5 to 40 a second for 14s`.
fn told(phase: &Value) -> String {
    let text = |key: &str| phase[key].as_str().unwrap_or_default();
    format!("{} for {}", text("arrivals"), text("duration"))
}

fn arrived(report: &Value) -> Say {
    let (requests, codes, errors) = (count(report, "http.requests"), codes(report), errors(report));
    let answered: u64 = codes.iter().map(|(_, count)| count).sum();
    let messages = ["websocket.messages_sent", "socketio.emit"].iter().map(|name| count(report, name)).sum();
    let (created, completed) = (count(report, "vusers.created"), count(report, "vusers.completed"));
    let title = match (requests, messages) {
        (0, 0) if created == 0 => "nothing".to_owned(),
        (0, 0) => format!("{} of {} completed", grouped(completed), many(created, "virtual user")),
        (0, _) => format!("{} sent", many(messages, "message")),
        _ if answered == requests => format!("{} answered", all(requests, "request")),
        _ => format!("{} of {} answered", grouped(answered), many(requests, "request")),
    };
    let mut lines = Vec::new();
    if messages > 0 && requests == 0 {
        lines.push(format!("{} of {} completed", grouped(completed), many(created, "virtual user")));
    }
    if !codes.is_empty() {
        let classes: Vec<_> = codes.iter().map(|(class, count)| format!("{} × {class}xx", grouped(*count))).collect();
        lines.push(format!("{}{}", classes.join(", "), cut_short(report)));
    }
    let named: Vec<_> =
        errors.iter().take(ERRORS_TOLD).map(|(name, count)| format!("{} × {name}", grouped(*count))).collect();
    let more = if errors.len() > ERRORS_TOLD { ", …" } else { "" };
    lines.push(if errors.is_empty() { "no errors".to_owned() } else { format!("{}{more}", named.join(", ")) });
    let unmet = count(report, "plugins.expect.failed");
    lines.extend((unmet > 0).then(|| format!("{} not met", many(unmet, "expectation"))));
    let users_failed = count(report, "vusers.failed");
    lines.extend(
        (users_failed > 0).then(|| format!("{} of {} failed", grouped(users_failed), many(created, "virtual user"))),
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
    let lines: Vec<_> = lines.iter().map(|line| escape(line)).collect();
    Say { kind, about: "Arrived", title, more: soft(&lines.join("<br>")) }
}

/// Answers that failed after their head.
fn cut_short(report: &Value) -> String {
    let failures = report["weir"]["failures"].as_array().into_iter().flatten();
    let cut = failures.filter(|at| at["phase"] == "body").filter_map(|at| at["count"].as_u64()).sum::<u64>();
    if cut > 0 { format!("; {} cut short", grouped(cut)) } else { String::new() }
}

fn generator(generator: &Value) -> Say {
    let about = "Generator";
    let cautions = texts(&generator["cautions"]);
    if generator["is_limit"].as_bool() == Some(true) {
        let why = list(texts(&generator["limits"]));
        let more = format!("These figures measure the generator, not the target.{why}");
        return Say { kind: "bad", about, title: "The generator was the limit.".to_owned(), more };
    }
    if !generator.is_object() {
        let more = soft("The report does not say whether the generator was the limit.");
        return Say { kind: "warn", about, title: "The report has no data about the generator.".to_owned(), more };
    }
    let (kind, title) = match cautions.is_empty() {
        true => ("ok", "The generator kept up."),
        false => ("warn", "The generator kept up, with a caution."),
    };
    let cautions = if cautions.is_empty() { String::new() } else { list(cautions) };
    Say { kind, about, title: title.to_owned(), more: cautions + &soft(&escape(&tables::generator(generator))) }
}

fn incomplete(weir: &Value) -> Option<Say> {
    let reasons = texts(&weir["incomplete"]);
    let title = "Incomplete.".to_owned();
    (!reasons.is_empty()).then(|| Say { kind: "warn", about: "Run", title, more: list(reasons) })
}

fn checks(weir: &Value) -> Option<Say> {
    let checks: Vec<&Value> = weir["checks"].as_array().into_iter().flatten().collect();
    let failed: Vec<&Value> = checks.iter().copied().filter(|check| check["ok"].as_bool() != Some(true)).collect();
    if checks.is_empty() {
        return None;
    }
    let is_strict = |check: &Value| check["strict"].as_bool() != Some(false);
    let shown = |check: &&Value| {
        let optional = if is_strict(check) { "" } else { " (optional)" };
        format!("<code>{}</code>{optional}", escape(check["check"].as_str().unwrap_or_default()))
    };
    let of = checks.len() as u64;
    let (kind, title) = match failed.is_empty() {
        true => ("ok", format!("{} met", all(of, "check"))),
        false => {
            let kind = if failed.iter().any(|check| is_strict(check)) { "bad" } else { "warn" };
            (kind, format!("{} of {} not met", failed.len(), many(of, "check")))
        }
    };
    let more = if failed.is_empty() { String::new() } else { list(failed.iter().map(shown).collect()) };
    Some(Say { kind, about: "Checks", title, more })
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

/// `1 check`, `2 checks`.
fn many(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// `the only check`, `all 2 checks`.
fn all(count: u64, what: &str) -> String {
    if count == 1 { format!("the only {what}") } else { format!("all {}", many(count, what)) }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(escape).collect()
}

fn list(items: Vec<String>) -> String {
    format!("<ul>{}</ul>", items.iter().map(|item| format!("<li>{item}</li>")).collect::<String>())
}

fn soft(html: &str) -> String {
    format!("<div class=\"soft\">{html}</div>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(counters: &Value, weir: &Value) -> String {
        strip(&json!({"aggregate": {"counters": counters}, "weir": weir})).replace('\u{a0}', " ")
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
