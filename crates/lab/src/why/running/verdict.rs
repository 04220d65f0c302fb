//! Words the verdict about a system that runs, with the command that would prove it.

use serde_json::{Value, json};
use weir_net::clock;

use super::past::{Present, is_slower};
use super::people::App;
use super::settings::{Facts, WatchSettings, block};
use crate::metric::digits;
use crate::said::{self, Said, say};
use crate::why::quiet;
use crate::why::rule::Tier;
use crate::why::rules::{self, Finding};
use crate::why::run::growth;
use crate::why::say::{self, EndFacts};
use crate::why::signals::Signals;

/// A larger share of failed requests counts. Clients of the internet make some fail themselves: they leave early, or ask
/// for nonsense.
const FAILED_MAX: f64 = 0.01;
/// Fewer failed requests than this say nothing.
const FAILED_MIN: u64 = 3;
/// Least connections of a proof's load.
const CONNECTIONS_MIN: u64 = 8;
/// Most connections of a proof's load, as the lab takes them.
const CONNECTIONS_MAX: u64 = 10_000;
/// Fields of an access log that tell where the time of a request goes.
const LOG_FORMAT: &str = "log_format why '$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent $request_time $upstream_addr $upstream_status $upstream_connect_time $upstream_header_time $upstream_response_time $upstream_cache_status';";

/// The run, as it is stored and printed.
pub fn of(wish: &WatchSettings, facts: Facts) -> Value {
    let mut run = match &facts.spoiled {
        Some(why) => say::no_verdict(&EndFacts { full: facts.signals.clone(), ..EndFacts::default() }, why),
        None => judged(wish, &facts),
    };
    run["version"] = 1.into();
    run["kind"] = "running".into();
    run["started_ms"] = facts.began_ms.into();
    run["is_interrupted"] = facts.is_interrupted.into();
    run["edge"] = json!({
        "pid": wish.edge.pid, "program": wish.edge.program, "is_weir": wish.edge.is_weir, "conf": wish.edge.conf,
    });
    run["watched"] = json!({ "seconds": facts.signals.load.length_s, "others": facts.others });
    said::keep_list(&mut run, "warned", &facts.cautions);
    if let Some(path) = &facts.poor_log {
        run["log_format"] = format!("{LOG_FORMAT} access_log {} why;", path.display()).into();
    }
    run
}

fn judged(wish: &WatchSettings, facts: &Facts) -> Value {
    let full = &facts.signals;
    let present = Present { failed: full.failed_share(), p95_ms: full.load.ms[2] };
    let quiet = facts.past.quietest(facts.began_ms, present);
    let half = half(facts, present);
    let is_failing = present.failed > FAILED_MAX && full.failed() >= FAILED_MIN;
    let at = ["mean", "p50", "p95", "p99", "max"].iter().position(|name| *name == wish.objective.quantile);
    let quantile = at.and_then(|at| full.load.ms.get(at)).copied().unwrap_or(0.0);
    let is_slow = quantile > wish.objective.limit_ms;
    let then = quiet.and_then(|(number, minute)| Some((number, minute.p95_ms()?)));
    let has_slowed = then.is_some_and(|(_, ms)| is_slower(present.p95_ms, ms));
    let grew = half.as_ref().filter(|_| is_slow || has_slowed).map(|half| growth(half, full));
    let mut findings = rules::find(full, grew.as_deref());
    findings.iter_mut().for_each(without_lab);
    // A rule of this tier has counted a limit that was met, or a resource that is full.
    let is_full = |finding: &Finding| !matches!(finding.rule.tier, Tier::Waste | Tier::Rest);
    let is_saturated =
        is_failing || is_slow || has_slowed || !quiet::unrest(full).is_empty() || findings.iter().any(is_full);
    if !is_saturated {
        findings.retain(|finding| finding.rule.tier != Tier::Rest);
    }
    let ends = EndFacts { full: full.clone(), half, is_saturated, findings, grew, ..EndFacts::default() };
    let mut run = say::outcome(&ends, None);
    let is_known = is_failing || is_slow || has_slowed;
    let since = facts.past.since(facts.began_ms, present, is_failing).filter(|_| is_known);
    let slow = say!(NOW_SLOW, wish.objective.quantile, digits(quantile), digits(wish.objective.limit_ms));
    let than = then
        .filter(|_| has_slowed)
        .map(|(number, ms)| say!(NOW_THAN, time_of(number), digits(ms), digits(present.p95_ms)));
    said::keep(&mut run, "since", since.map(|since| in_words(since, facts.began_ms)).as_ref());
    said::keep(&mut run, "slow", is_slow.then_some(slow).as_ref());
    said::keep(&mut run, "than", than.as_ref());
    if is_saturated {
        run["prove"] = prove(wish, facts).into();
        said::keep(&mut run, "proving", proving(&facts.apps).as_ref());
    }
    run
}

/// A quieter time to compare with: nginx's quietest minute, or the mean of all that weir has served before.
fn half(facts: &Facts, present: Present) -> Option<Signals> {
    if let Some(before) = facts.before.as_ref().filter(|before| before.requests > 0) {
        let total = |name: &str| before.steps.get(name).map_or(0, |(_, micros)| *micros) as f64;
        let sum: f64 = before.steps.keys().map(|name| total(name)).sum();
        return Some(block(before.requests, 0.0, sum / 1000.0 / before.requests as f64, before));
    }
    let (_, minute) = facts.past.quietest(facts.began_ms, present)?;
    (!minute.account.steps.is_empty())
        .then(|| block(minute.count, minute.p95_ms().unwrap_or(0.0), minute.mean_ms(), &minute.account))
}

/// Replaces what only a lab can do: the clients are not weir's to change.
fn without_lab(finding: &mut Finding) {
    let is_of_clients = matches!(finding.rule.id, "P01" | "P02" | "P03" | "P04" | "P05" | "P09");
    if is_of_clients {
        finding.found.knob = say!(NOW_POLICY_TRY);
    }
    if is_of_clients || matches!(finding.rule.id, "P06" | "P07" | "P08") {
        finding.found.expect = say!(NOW_POLICY_EXPECT);
    }
}

/// `17:32`, the beginning of a minute, in the time zone of this machine.
fn time_of(minute: u64) -> String {
    let text = clock::strftime(b"%H:%M", i64::try_from(minute * 60).unwrap_or(0), true, 16);
    text.map_or_else(String::new, |text| String::from_utf8_lossy(&text).into_owned())
}

fn in_words((minute, has_begun): (u64, bool), now_ms: u64) -> Said {
    let minutes = (now_ms / 60_000).saturating_sub(minute).max(1);
    match has_begun {
        true => say!(NOW_SINCE, time_of(minute), minutes),
        false => say!(NOW_SINCE_OR_LONGER, time_of(minute), minutes),
    }
}

/// The command of the lab that would prove the suspect, with the load that was observed.
fn prove(wish: &WatchSettings, facts: &Facts) -> String {
    let s = &facts.signals;
    let rate = s.sent_rate();
    let rate = if rate >= 10.0 { format!("{rate:.0}") } else { format!("{rate:.1}") };
    let in_flight = (s.load.ms[0] / 1000.0 * s.sent_rate()).ceil() as u64;
    let connections = s.edge.active_max.max(2 * in_flight).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX);
    let edge = if wish.edge.is_weir { String::new() } else { format!(" --edge {}", quoted(&wish.edge.program)) };
    let path = facts.requests.path().unwrap_or_else(|| "/".to_owned());
    let origin = match facts.apps.as_slice() {
        [app] => origin(app).map_or(String::new(), |command| format!(" --origin {}", quoted(&command))),
        _ => String::new(),
    };
    let conf = quoted(&wish.edge.conf.display().to_string());
    format!("weir lab why --prove{edge} {conf} --rate {rate} -c {connections} {}{origin}", quoted(&path))
}

/// The command that starts an application again, in its directory.
fn origin(app: &App) -> Option<String> {
    let words: Vec<String> = app.argv.iter().map(|word| quoted(word)).collect();
    // A title that a program wrote over its command line starts nothing.
    let is_command = app.argv.first().is_some_and(|first| !first.contains([' ', ':']));
    let cwd = app.cwd.as_ref().filter(|_| is_command)?;
    Some(format!("cd {} && exec {}", quoted(&cwd.display().to_string()), words.join(" ")))
}

/// The command that the lab starts in place of the applications.
fn proving(apps: &[App]) -> Option<Said> {
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    let is_known = matches!(apps, [app] if origin(app).is_some());
    (!is_known).then(|| match names.is_empty() {
        true => say!(NOW_PROVE_DUMMY),
        false => say!(NOW_PROVE_DUMMY_FOR, names.join(", ")),
    })
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=+@%,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;
    use std::time::Duration;

    use weir_conf::Tree;
    use weir_words::{Language, english_in, is_korean};

    use super::super::outside::Requests;
    use super::super::past::Past;
    use super::super::settings::{GOOD, RunningEdge};
    use super::*;
    use crate::capacity::Objective;
    use crate::watch::inside::Way;

    fn wish() -> WatchSettings {
        let edge = RunningEdge {
            pid: 7,
            is_weir: false,
            program: "/usr/sbin/nginx".into(),
            conf: PathBuf::from("/etc/nginx/nginx.conf"),
            tree: Tree::default(),
            prefix: PathBuf::new(),
            default_logs: (None, None),
            ask: None,
            points: Value::Null,
        };
        let objective = Objective { quantile: "p95", limit_ms: 1000.0, errors: 0.001 };
        WatchSettings {
            edge,
            length: Duration::from_secs(20),
            inside: Way::Off,
            good: GOOD.parse().unwrap(),
            objective,
        }
    }

    fn facts(mut signals: Signals) -> Facts {
        // The clients are not the lab's: what only a generator knows is not known.
        signals.processes.retain(|process| process.role != crate::why::signals::Role::Client);
        let load = &mut signals.load;
        (load.is_outside, load.is_closed, load.offered, load.connections) = (true, false, None, 0);
        let app = App {
            name: "node app.js".into(),
            argv: vec!["node".into(), "app.js".into()],
            cwd: Some("/srv/my app".into()),
        };
        Facts {
            signals,
            requests: Requests::default(),
            past: Past::default(),
            began_ms: 1_800_000_000_000,
            before: None,
            spoiled: None,
            cautions: Vec::new(),
            apps: vec![app],
            others: vec!["node app.js".into()],
            poor_log: None,
            is_interrupted: false,
        }
    }

    #[test]
    fn no_rule_speaks_of_a_load_that_nobody_sends() {
        let wish = wish();
        let mut wrong = Vec::new();
        let mut heard = 0;
        for rule in rules::all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let run = of(&wish, facts(signals));
            let (english, korean) = (say::text(&run, Language::English), say::text(&run, Language::Korean));
            let name = run["verdict"]["name"].as_str().unwrap_or_default();
            if !["POLICY", "SUSPECTED", "UNATTRIBUTED", "NOT SATURATED"].contains(&name) {
                wrong.push(format!("{}: {name}", rule.id));
            }
            heard += usize::from(run["verdict"]["rule"] == rule.id);
            let strange = ["virtual user", "load generator", "(--rate", "(-c)", "half the load", "the lab cannot"];
            wrong.extend(
                strange
                    .iter()
                    .filter(|text| english.contains(*text))
                    .map(|text| format!("{}: {text}: {english}", rule.id)),
            );
            assert_eq!(english.lines().count(), korean.lines().count(), "{}: {english}", rule.id);
            let unsaid = korean.lines().filter(|line| !line.contains("weir lab why")).filter_map(english_in);
            wrong.extend(unsaid.map(|text| format!("{}: {text}: {korean}", rule.id)));
            assert!(is_korean(korean.lines().next().unwrap_or_default()), "{korean}");
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // A generator's own rule, and those that need figures which only the lab has, are silent; most are not.
        assert!(heard > 40, "{heard}");
        let generators = rules::all().find(|rule| rule.id == "B38").unwrap();
        let mut signals = Signals::quiet();
        (generators.fires)(&mut signals);
        assert_eq!(of(&wish, facts(signals))["verdict"]["name"], "NOT SATURATED");
    }

    #[test]
    fn a_suspect_comes_with_the_command_that_would_prove_it() {
        let mut signals = Signals::quiet();
        signals.said.insert("connections".into(), 30);
        signals.load.errors.insert("502".into(), 200);
        let run = of(&wish(), facts(signals.clone()));
        assert_eq!((&run["verdict"]["name"], &run["verdict"]["rule"]), (&json!("SUSPECTED"), &json!("B05")));
        let command = "weir lab why --prove --edge /usr/sbin/nginx /etc/nginx/nginx.conf --rate 200 -c 20 / --origin 'cd '\\''/srv/my app'\\'' && exec node app.js'";
        assert_eq!(run["prove"], command);
        let mut two = facts(signals);
        two.apps.push(App { name: "php".into(), ..App::default() });
        let run = of(&wish(), two);
        assert!(run["proving"].as_str().unwrap().contains("in place of node app.js, php"), "{}", run["proving"]);
        assert!(!run["prove"].as_str().unwrap().contains("--origin"));
    }

    #[test]
    fn a_quiet_system_is_called_so_and_a_slow_one_is_not() {
        let run = of(&wish(), facts(Signals::quiet()));
        assert_eq!((&run["verdict"]["name"], &run["prove"]), (&json!("NOT SATURATED"), &Value::Null));
        let mut slow = Signals::quiet();
        slow.load.ms = [900.0, 800.0, 1900.0, 2500.0, 3000.0];
        slow.edge.steps.insert("wait".into(), (2000, 1_700_000_000));
        let run = of(&wish(), facts(slow));
        assert_eq!(run["verdict"]["name"], "UNATTRIBUTED");
        let text = say::text(&run, Language::English);
        assert!(
            text.contains("850 ms in the segment \"waiting for the upstream's answer\"")
                && text.contains("p95 is 1900 ms"),
            "{text}"
        );
        let mut spoiled = facts(Signals::quiet());
        spoiled.spoiled = Some(say!(NOW_NO_REQUESTS));
        assert_eq!(of(&wish(), spoiled)["verdict"]["name"], "no verdict");
    }
}
