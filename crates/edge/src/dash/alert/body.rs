//! The bodies of alerts, in the form that their receiver knows.

use std::fmt::Write;

use serde_json::{Value, json};
use weir_dash::alarm::{Alert, Event, Subject};
use weir_dash::verdict::State;
use weir_wire::date;
use weir_words::{Language, Words, words};

use super::receiver::{Form, Receiver};

/// The path to which Alertmanager takes alerts.
pub const ALERTMANAGER_PATH: &str = "/api/v2/alerts";
/// Most lines of evidence in an alert.
const EVIDENCE_MAX: usize = 6;
/// Most letters that Discord takes.
const DISCORD_MAX: usize = 2000;
/// An alert of Alertmanager that is not told again ends by itself after this many intervals.
const INTERVALS: u64 = 4;

/// The kind of an alert as one word, for the log and for programs.
pub fn word(alert: &Alert) -> &'static str {
    match alert.event {
        Event::Begins => "begins",
        Event::Changes => "changes",
        Event::Lasts => "lasts",
        Event::Ends => "ends",
    }
}

/// The body for a receiver.
pub fn of(receiver: &Receiver, alert: &Alert) -> String {
    let language = receiver.language;
    match receiver.form {
        Form::Slack => json!({ "text": escaped(&text(alert, &receiver.name, language)) }).to_string(),
        Form::Discord => {
            let content: String = text(alert, &receiver.name, language).chars().take(DISCORD_MAX).collect();
            json!({ "content": content, "allowed_mentions": { "parse": [] } }).to_string()
        }
        Form::Alertmanager => alertmanager(receiver, alert).to_string(),
        Form::Json => {
            let (subject, since) = &alert.trouble;
            json!({
                "weir_alert": 1,
                "event": word(alert),
                "name": receiver.name,
                "state": subject.state,
                "subject": subject.what,
                "since": time(*since),
                "at": time(alert.at_ms),
                "text": text(alert, &receiver.name, language),
                "verdict": alert.verdict,
            })
            .to_string()
        }
    }
}

/// The alert in words, a line for each part.
fn text(alert: &Alert, name: &str, language: Language) -> String {
    let (subject, since) = &alert.trouble;
    let (state, lasted) = (state(subject.state).say(language), duration(alert.at_ms.saturating_sub(*since), language));
    let title = match (alert.event, language) {
        (Event::Begins | Event::Changes, _) => state.to_owned(),
        (Event::Lasts, Language::English) => format!("still {state}, for {lasted}"),
        (Event::Lasts, Language::Korean) => format!("{state} (계속, {lasted} 동안)"),
        (Event::Ends, Language::English) => format!("well again ({state} for {lasted})"),
        (Event::Ends, Language::Korean) => format!("정상으로 돌아왔습니다 ({state}, {lasted} 동안)"),
    };
    let verdict = &alert.verdict;
    let mut text = format!("weir {name}: {title}\n{}", verdict.words.say(language));
    for line in verdict.evidence.iter().take(EVIDENCE_MAX) {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- {}", line.say(language));
    }
    if let Some(remedy) = &verdict.remedy {
        let _ = write!(text, "\n→ {}", remedy.say(language));
    }
    text
}

fn state(state: State) -> Words {
    match state {
        State::Failing => words("failing", "요청 실패"),
        State::Limited => words("limited", "한도 도달"),
        State::Near => words("near a limit", "한도 근접"),
        State::Healthy | State::Waiting => words("healthy", "정상"),
    }
}

/// A duration in whole units: `45 s`, `12 min`, `3 h 5 min`.
fn duration(ms: u64, language: Language) -> String {
    let (s, min, h) = match language {
        Language::English => (" s", " min", " h"),
        Language::Korean => ("초", "분", "시간"),
    };
    match ms / 1000 {
        seconds @ ..120 => format!("{seconds}{s}"),
        seconds @ ..7200 => format!("{}{min}", seconds / 60),
        seconds => format!("{}{h} {}{min}", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Slack reads `<…>` as a link or as a call of all people, and `&` as the begin of an entity.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The alert that is told, and at a change of the subject also the end of the one before.
fn alertmanager(receiver: &Receiver, alert: &Alert) -> Value {
    let language = receiver.language;
    let one = |(subject, since): &(Subject, u64), ends_ms: u64| {
        let severity = if subject.state == State::Near { "warning" } else { "critical" };
        let mut labels = json!({
            "alertname": "WeirVerdict",
            "instance": receiver.name,
            "severity": severity,
            "state": subject.state,
        });
        // Alertmanager takes an empty label for none.
        if !subject.what.is_empty() {
            labels["subject"] = subject.what.clone().into();
        }
        let evidence: Vec<&str> =
            alert.verdict.evidence.iter().take(EVIDENCE_MAX).map(|line| line.say(language)).collect();
        json!({
            "labels": labels,
            "annotations": {
                "summary": format!("weir {}: {}", receiver.name, alert.verdict.words.say(language)),
                "description": evidence.join("\n"),
                "remedy": alert.verdict.remedy.as_ref().map_or("", |remedy| remedy.say(language)),
            },
            "startsAt": time(*since),
            "endsAt": time(ends_ms),
        })
    };
    let interval = receiver.interval.map_or(0, |interval| interval.as_millis() as u64);
    let ends = match alert.event {
        Event::Ends => alert.at_ms,
        Event::Begins | Event::Changes | Event::Lasts => alert.at_ms.saturating_add(INTERVALS * interval),
    };
    let before = alert.before.as_ref().map(|before| one(before, alert.at_ms));
    before.into_iter().chain([one(&alert.trouble, ends)]).collect()
}

/// A moment as RFC 3339 has it, in UTC.
fn time(ms: u64) -> String {
    String::from_utf8_lossy(&date::iso8601((ms / 1000) as i64, 0)).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::receiver;
    use super::*;
    use std::time::Duration;
    use weir_dash::verdict::Verdict;
    use weir_words::Said;

    fn alert(event: Event) -> Alert {
        let said = |en: &str, ko: &str| Said::of_both(en, ko);
        Alert {
            event,
            verdict: Verdict {
                state: State::Limited,
                words: said("Open files: 100 of 100 <fds>", "열린 파일: 100 중 100"),
                evidence: vec![said("a & b", "근거")],
                remedy: Some(said("LimitNOFILE=", "LimitNOFILE=")),
                ..Verdict::default()
            },
            trouble: (Subject { state: State::Limited, what: "fds".to_owned() }, 1_700_000_000_000),
            before: None,
            at_ms: 1_700_000_060_000,
        }
    }

    fn body(form: Form, language: Language, alert: &Alert) -> Value {
        let mut receiver = receiver("http://127.0.0.1:1/");
        (receiver.form, receiver.language) = (form, language);
        receiver.interval = Some(Duration::from_secs(60));
        serde_json::from_str(&of(&receiver, alert)).unwrap()
    }

    #[test]
    fn each_form_is_the_receivers() {
        let slack = body(Form::Slack, Language::English, &alert(Event::Begins));
        let expected = "weir edge-1: limited\nOpen files: 100 of 100 &lt;fds&gt;\n- a &amp; b\n→ LimitNOFILE=";
        assert_eq!(slack, json!({ "text": expected }));
        let discord = body(Form::Discord, Language::Korean, &alert(Event::Ends));
        let said = discord["content"].as_str().unwrap();
        assert!(said.starts_with("weir edge-1: 정상으로 돌아왔습니다 (한도 도달, 60초 동안)\n열린 파일"), "{said}");
        assert_eq!(discord["allowed_mentions"], json!({ "parse": [] }));
        let own = body(Form::Json, Language::English, &alert(Event::Lasts));
        assert_eq!(
            (&own["event"], &own["state"], &own["subject"]),
            (&json!("lasts"), &json!("limited"), &json!("fds"))
        );
        assert_eq!(own["since"], "2023-11-14T22:13:20+00:00");
        assert_eq!(own["verdict"]["words"]["ko"], "열린 파일: 100 중 100");
        assert!(own["text"].as_str().unwrap().starts_with("weir edge-1: still limited, for 60 s\n"));
    }

    #[test]
    fn alertmanager_gets_labels_that_stay_and_an_end() {
        let all = body(Form::Alertmanager, Language::English, &alert(Event::Begins));
        let labels = json!({
            "alertname": "WeirVerdict", "instance": "edge-1", "severity": "critical", "state": "limited", "subject": "fds",
        });
        assert_eq!((all.as_array().unwrap().len(), &all[0]["labels"]), (1, &labels));
        assert_eq!(
            (&all[0]["startsAt"], &all[0]["endsAt"]),
            (&json!("2023-11-14T22:13:20+00:00"), &json!("2023-11-14T22:18:20+00:00"))
        );
        let ended = body(Form::Alertmanager, Language::English, &alert(Event::Ends));
        assert_eq!((&ended[0]["labels"], &ended[0]["endsAt"]), (&labels, &json!("2023-11-14T22:14:20+00:00")));
        let mut changed = alert(Event::Changes);
        changed.before = Some((Subject { state: State::Near, what: String::new() }, 1_700_000_000_000));
        let both = body(Form::Alertmanager, Language::English, &changed);
        assert_eq!((both[0]["labels"]["severity"].as_str(), both[0]["labels"].get("subject")), (Some("warning"), None));
        assert_eq!((&both[0]["endsAt"], &both[1]["labels"]), (&json!("2023-11-14T22:14:20+00:00"), &labels));
    }

    #[test]
    fn long_alerts_are_cut_for_discord() {
        let mut long = alert(Event::Begins);
        long.verdict.words = Said::from("é".repeat(3000));
        let said = body(Form::Discord, Language::English, &long);
        assert_eq!(said["content"].as_str().unwrap().chars().count(), DISCORD_MAX);
    }

    #[test]
    fn durations_are_short() {
        let of = |s: u64| (duration(s * 1000, Language::English), duration(s * 1000, Language::Korean));
        assert_eq!(of(119), ("119 s".to_owned(), "119초".to_owned()));
        assert_eq!(of(600).0, "10 min");
        assert_eq!(of(7500), ("2 h 5 min".to_owned(), "2시간 5분".to_owned()));
    }
}
