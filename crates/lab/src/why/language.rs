//! Tests: `weir lab why` speaks Korean wherever it speaks English.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use serde_json::{Value, json};
use weir_words::{Language, english_in, is_korean};

use super::arm::Elasticity;
use super::asked::Why;
use super::prove::Proof;
use super::rule::{FiredRule, Segment};
use super::rules::{self, Finding};
use super::say::{EndFacts, no_verdict, outcome, text};
use super::signals::Signals;
use crate::said::{Said, say};
use crate::texts;

fn korean(said: &Said) -> &str {
    said.say(Language::Korean)
}

/// The finding of a rule in its own case.
fn found(rule: &rules::Finding) -> &FiredRule {
    &rule.found
}

/// Every rule with its finding in its own case, and the signals of that case.
fn all() -> Vec<(Finding, Signals)> {
    let one = |rule: &'static super::rule::Rule| {
        let mut signals = Signals::quiet();
        (rule.fires)(&mut signals);
        let found = (rule.check)(&signals).unwrap_or_default();
        (Finding { rule, found, score: 1.0 }, signals)
    };
    rules::all().map(one).collect()
}

/// A rule that words its finding in English alone would print English within a Korean report.
#[test]
fn every_rule_speaks_korean() {
    let mut lacking = Vec::new();
    for (finding, _) in all() {
        let (id, found) = (finding.rule.id, found(&finding));
        let mut said =
            vec![Said::from(finding.rule.says), found.subject.clone(), found.knob.clone(), found.expect.clone()];
        for (label, text) in &found.evidence {
            said.push(text.clone());
            if *label != texts::LABEL_CPU && !is_korean(label.ko) {
                lacking.push(format!("{id}: label {}", label.en));
            }
        }
        // The lines of a configuration are the same in every language.
        let is_lacking =
            |said: &&Said| !is_korean(korean(said)) || english_in(korean(said)).is_some() || is_korean(said);
        lacking.extend(said.iter().filter(is_lacking).map(|said| format!("{id}: {}", korean(said))));
    }
    lacking.extend(Segment::ALL.iter().filter(|it| !is_korean(it.name().ko)).map(|it| it.name().en.to_owned()));
    assert!(lacking.is_empty(), "no Korean for:\n{}", lacking.join("\n"));
}

fn arm(finding: Option<usize>, name: Said, is_relaxed: bool) -> Elasticity {
    let (from, to, value, low, high) = (1.0, 0.8, 0.97, 0.92, 1.02);
    Elasticity { name, finding, from, to, value, low, high, rounds: 6, is_relaxed, needed: 0.0 }
}

/// The report of each rule with each verdict, as a stored run is printed.
#[test]
fn no_report_has_english_in_its_korean() {
    let it = Why::of_tests();
    let mut wrong = Vec::new();
    let mut check = |what: &str, run: &Value| {
        let (english, korean) = (text(run, Language::English), text(run, Language::Korean));
        let name = run["verdict"]["name"].as_str().unwrap_or_default();
        let first = korean.lines().next().unwrap_or_default();
        if !first.starts_with(name) || !is_korean(first) {
            wrong.push(format!("{what}: {name}: {first}"));
        }
        wrong.extend(is_korean(&english).then(|| format!("{what}: {english}")));
        assert_eq!(english.lines().count(), korean.lines().count(), "{what}");
        wrong.extend(korean.lines().filter_map(|line| Some(format!("{what}: {}: {line}", english_in(line)?))));
    };
    for (finding, signals) in all() {
        let id = finding.rule.id;
        let facts = EndFacts {
            findings: vec![finding.clone(), finding],
            full: signals.clone(),
            half: Some(Signals::quiet()),
            is_saturated: true,
            knee: Some(190.0),
            grew: Some(Segment::ALL.iter().map(|segment| (*segment, 0.2)).collect()),
            elasticities: vec![arm(Some(0), say!(CPU_OF, "app"), false), arm(None, say!(LINK_OF, "edge"), true)],
            unproved: Some(say!(NO_OTHER_SUSPECT_SQUEEZE)),
            ..EndFacts::default()
        };
        for proof in [None, Some(Proof::Proved(0)), Some(Proof::Shared(vec![0, 1])), Some(Proof::RuledOut)] {
            check(id, &outcome(&EndFacts { proof, ..facts.clone() }, Some(&it)));
        }
        check(id, &outcome(&EndFacts { is_saturated: false, ..facts.clone() }, Some(&it)));
        check(id, &no_verdict(&facts, &say!(SATURATED, "97")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_policy_is_said_in_korean() {
    let of = say!(OF, 1320u64, 2000u64, "66 %");
    let subject = say!(REFUSED_REQUESTS, "limit_conn addr 5", "nginx.conf:14", of);
    let said = say!(POLICY, say!(RULE, subject, "P02"));
    assert_eq!(said, "POLICY  limit_conn addr 5 at nginx.conf:14 refused 1320 of 2000 (66 %) requests   (rule P02)");
    assert_eq!(
        korean(&said),
        "POLICY (정책)  nginx.conf:14의 limit_conn addr 5: 요청 2000건 중 1320건(66 %)을 거절했습니다   (규칙 P02)"
    );
}

/// A run from before texts had names has English sentences alone.
#[test]
fn an_old_run_stays_english() {
    let old = json!({
        "verdict": {"name": "PROVED", "text": "PROVED  edge: its CPUs   (rule B19)"}, "lead": 0,
        "findings": [{"rule": "B19", "subject": "edge: its CPUs", "knob": "more CPUs for the edge", "expect": "x",
            "evidence": [["edge", "1 CPUs used of 1"]]}],
        "grew": [["bodies", 0.9]], "unread": ["the machine's CPUs"],
    });
    let korean = text(&old, Language::Korean);
    assert!(korean.starts_with("PROVED  edge: its CPUs   (rule B19)\n"), "{korean}");
    for line in ["  edge         1 CPUs used of 1", "bodies 90 %", "the machine's CPUs"] {
        assert!(korean.contains(line), "{line}:\n{korean}");
    }
}

/// The files that print. Every sentence in them is a text of the tables.
const SOURCES: &[(&str, &str)] = &[
    ("rules/behind.rs", include_str!("rules/behind.rs")),
    ("rules/cache.rs", include_str!("rules/cache.rs")),
    ("rules/cpu.rs", include_str!("rules/cpu.rs")),
    ("rules/ended.rs", include_str!("rules/ended.rs")),
    ("rules/inside.rs", include_str!("rules/inside.rs")),
    ("rules/limits.rs", include_str!("rules/limits.rs")),
    ("rules/load.rs", include_str!("rules/load.rs")),
    ("rules/network.rs", include_str!("rules/network.rs")),
    ("rules/outage.rs", include_str!("rules/outage.rs")),
    ("rules/policy.rs", include_str!("rules/policy.rs")),
    ("rules/rejected.rs", include_str!("rules/rejected.rs")),
    ("rules/upstream.rs", include_str!("rules/upstream.rs")),
    ("rules/waits.rs", include_str!("rules/waits.rs")),
    ("assign.rs", include_str!("assign.rs")),
    ("attempt.rs", include_str!("attempt.rs")),
    ("prove.rs", include_str!("prove.rs")),
    ("proving.rs", include_str!("proving.rs")),
    ("quiet.rs", include_str!("quiet.rs")),
    ("remedy.rs", include_str!("remedy.rs")),
    ("run.rs", include_str!("run.rs")),
    ("say.rs", include_str!("say.rs")),
    ("told.rs", include_str!("told.rs")),
    ("unread.rs", include_str!("unread.rs")),
    ("widen.rs", include_str!("widen.rs")),
    ("../watch.rs", include_str!("../watch.rs")),
    ("../watch/errors.rs", include_str!("../watch/errors.rs")),
];

/// Texts that no report contains: keys, other programs' log messages, progress lines, errors of a lab that cannot
/// be made.
const NOT_SAID: &[&str] = &[
    "no verdict",
    "Unexpected server response: 426",
    "Unexpected server response",
    "Session ID unknown",
    "Invalid status",
    "websocket error",
    "xhr poll error",
    "the load as asked",
    "half of it",
    "half of the load, once more",
    "as it is",
    "cannot be tried",
    "not tried",
    "makes it worse",
    "does not help",
    "not shown to help",
    // Progress lines and commands are the same in every language.
    "giving more",
    "trying the remedy",
    "two programs on one CPU competed: the lab repeats the load with other CPUs",
    "the given load, with other CPUs",
    "cp {} {} && ",
    " --edge {}",
    " --metric errors",
    "--rate {} -c {} {}",
    "--load {}",
    " --together {}",
    " --origin {}",
    " --edge-quota {}",
    "{}weir lab ab{} {} {} {}{}{}",
    "{}: {}/s answered, {} failed, p95 {} ms",
    "{}: again: {}",
    "the lab has no stack",
    "futex 0x7f00",
    "upstream {} {{} }",
    "proxy_pass http://{}{}",
    "--pool: there is no process {}",
    "the injected change: {}",
    "it failed",
    "refused limit_req one",
    "limit_req zone=one burst=5 (10r/s)",
    "limit_conn addr",
    "limit_conn addr 5",
    "limit_rate 20k",
    "server app:3000 max_conns=2",
    "server app:3000 max_fails=1 fail_timeout=10s",
    "queue 10 timeout=5s",
    "queue app",
    "deny all",
    "proxy_cache_lock on",
    // A block with so few requests is still explained.
    // Messages of nginx, Apache and PHP-FPM.
    "reusing connections",
    "worker_connections are not enough",
    "no live upstreams",
    "timed out (110: Connection timed out) while connecting to upstream",
    "timed out (110: Connection timed out) while reading response header from upstream",
    "timed out (110: Connection timed out) while reading upstream",
    "timed out (110: Connection timed out) while sending request to upstream",
    "timed out (110: Connection timed out) while proxying upgraded connection",
    "prematurely closed connection",
    "access forbidden by rule",
    "could not be resolved (",
    "is buffered to a temporary file",
    "server reached MaxRequestWorkers setting",
    "server reached pm.max_children setting",
    "exited on signal",
    "execution timed out (",
    "exit signal ",
    "was sent SIGKILL",
    "DAMN ! worker",
    ", dry run",
    "limiting requests, excess: ",
    "delaying request, excess: ",
    "limiting connections by zone ",
    "by zone \"",
    "refused limit_req",
    "delayed limit_req",
    "refused limit_conn",
];

/// The string literals of a source without its tests, with `{}` for each hole.
fn literals(source: &str) -> Vec<String> {
    let end = ["mod tests", "pub(crate) mod tests", "impl"]
        .map(|what| source.find(&format!("#[cfg(test)]\n{what}")).unwrap_or(source.len()));
    let source: Vec<char> = source[..end.into_iter().min().unwrap_or(0)].chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    let is_at = |at: usize, what: char| source.get(at) == Some(&what);
    while at < source.len() {
        match source[at] {
            '/' if is_at(at + 1, '/') => at = (at..source.len()).find(|at| is_at(*at, '\n')).unwrap_or(source.len()),
            // A character literal, not a lifetime.
            '\'' if is_at(at + 2, '\'') => at += 3,
            '\'' if is_at(at + 1, '\\') && is_at(at + 3, '\'') => at += 4,
            '"' => {
                let mut text = String::new();
                at += 1;
                while !is_at(at, '"') {
                    if is_at(at, '\\') {
                        at += 1;
                        match source[at] {
                            '\n' => {
                                while source[at + 1].is_whitespace() {
                                    at += 1;
                                }
                            }
                            'n' => text.push('\n'),
                            other => text.push(other),
                        }
                    } else {
                        text.push(source[at]);
                    }
                    at += 1;
                }
                at += 1;
                found.push(template(&text));
            }
            _ => at += 1,
        }
    }
    found
}

/// A format string with empty holes and single braces for doubled ones. A brace before a space belongs to a
/// configuration.
fn template(text: &str) -> String {
    let doubled = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let (mut plain, mut rest) = (String::new(), doubled.as_str());
    while let Some((before, after)) = rest.split_once('{') {
        plain.push_str(before);
        let hole = after.split_once('}').filter(|(hole, _)| !hole.starts_with(' '));
        plain.push_str(if hole.is_some() { "{}" } else { "{" });
        rest = hole.map_or(after, |(_, after)| after);
    }
    plain.push_str(rest);
    plain.replace('\u{1}', "{").replace('\u{2}', "}")
}

/// A sentence that is written beside the code has no name and no Korean.
#[test]
fn every_sentence_is_in_a_table() {
    assert_eq!(literals("a(\"x {y:.2} \\\"z\\\" {{ }}\"); // \"no\"\n'\"'; \"b\""), ["x {} \"z\" { }", "b"]);
    let is_sentence = |text: &str| {
        let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() >= 2).count();
        text.trim().contains(' ') && words >= 1 && text.chars().any(char::is_lowercase)
    };
    let mut beside = Vec::new();
    for (file, source) in SOURCES {
        let all = literals(source);
        assert!(!all.is_empty(), "{file}: nothing was read");
        let found = all.iter().filter(|text| is_sentence(text) && !NOT_SAID.contains(&text.as_str()));
        beside.extend(found.map(|text| format!("{file}: {text}")));
    }
    assert!(beside.is_empty(), "a sentence without a name:\n{}", beside.join("\n"));
}
