//! The report for a symptom: what nginx's error log says, the findings that can cause it, and where to look next.

use std::cmp::Reverse;
use std::fmt::Write;

use serde_json::{Value, json};

use crate::error_log::causes::Cause;
use crate::error_log::{CountedLogs, NameCounts, Seen};
use crate::report::{self, COLUMNS, Subject, wrap};
use crate::rule::Finding;
use crate::rules;
use crate::symptom::Symptom;
use weir_words::{Language, Said, said, words};

/// Most servers, and most locations, that are shown for a message.
const NAMES_SHOWN_MAX: usize = 4;

/// Most findings of one rule that are shown.
const FINDINGS_SHOWN_MAX: usize = 3;

/// A symptom, and the error logs of its server.
pub struct AskedSymptom<'a> {
    /// The symptom.
    pub symptom: Symptom,
    /// The messages of the logs, counted.
    pub log: &'a CountedLogs,
    /// Each log, and how much of it was read, or why it was not read.
    pub read: &'a [(String, Said)],
}

/// Whether a rule is about something that can cause the symptom.
pub fn can_cause(finding: &Finding, symptom: Symptom) -> bool {
    rules::lookup(finding.rule).is_some_and(|rule| rule.symptoms.contains(&symptom))
}

impl AskedSymptom<'_> {
    /// Keeps the findings that can cause the symptom, the most likely first: those of whose cause the log speaks, by
    /// the number of lines; then by level.
    pub fn choose(&self, findings: &mut Vec<Finding>) {
        findings.retain(|finding| can_cause(finding, self.symptom));
        // The sort is stable: within a level, the order stays.
        findings.sort_by_key(|finding| (Reverse(self.log.speaks_for(finding.rule)), finding.level));
    }

    fn seen(&self) -> Vec<(&Seen, &'static Cause)> {
        self.log.seen(|cause| cause.symptoms.contains(&self.symptom))
    }

    /// Whether the log has a line that explains the symptom.
    pub fn is_explained(&self) -> bool {
        !self.seen().is_empty()
    }

    /// A line for each message of the log that explains the symptom, with its number.
    pub fn brief(&self) -> String {
        self.seen().iter().map(|(seen, cause)| format!("{} × {}\n", seen.count, cause.words)).collect()
    }

    /// The report. The findings are those of [`AskedSymptom::choose`].
    pub fn text(&self, subject: &Subject<'_>, findings: &[Finding], language: Language) -> String {
        let mut text = format!("{}\n\n", self.symptom.means().say(language));
        self.log_text(&mut text, subject, language);
        let speaks = |finding: &Finding| self.log.speaks_for(finding.rule) > 0;
        // A finding that the lines of the log contradict must not look like their cause.
        let is_other = self.is_explained() && !findings.first().is_some_and(speaks);
        let heading = match findings.len() {
            0 => words(
                "The configuration and this machine: no finding that can cause it",
                "설정과 이 머신: 원인이 될 만한 결과가 없습니다",
            ),
            _ if is_other => words(
                "The configuration and this machine: no finding explains these lines of the log. These can cause others",
                "설정과 이 머신: 위의 로그 줄을 설명하는 결과는 없습니다. 다른 경우의 원인이 될 수 있는 것",
            ),
            _ => words(
                "The configuration and this machine: what can cause it, the most likely first",
                "설정과 이 머신: 원인이 될 수 있는 것, 가능성이 큰 순서",
            ),
        };
        let _ = writeln!(text, "{}", heading.say(language));
        let mut shown: Vec<Finding> = Vec::new();
        for finding in findings {
            let is_same = |other: &&Finding| other.rule == finding.rule;
            if shown.iter().filter(is_same).count() < FINDINGS_SHOWN_MAX {
                shown.push(finding.clone());
            }
        }
        for line in report::lines(subject, &shown, language).lines() {
            let _ = writeln!(text, "  {line}");
        }
        if shown.len() < findings.len() {
            let more = findings.len() - shown.len();
            let more = said!("… and {more} more of the same rules", "… 같은 규칙의 결과 {more}건 더");
            let _ = writeln!(text, "  {}", more.say(language));
        }
        text.push('\n');
        let first = findings.first().filter(|_| !is_other);
        if let Some((first, rule)) = first.and_then(|first| Some((first, rules::lookup(first.rule)?))) {
            report::paragraph(&mut text, subject, rule, &shown, language);
            if !first.fix.is_empty() {
                let how = said!(
                    "weir doctor CONF --fix --only {0} shows the change as a diff, and --write writes it",
                    "weir doctor CONF --fix --only {0}로 변경을 diff로 보고, --write를 더하면 파일에 씁니다",
                    first.rule
                );
                let _ = writeln!(text, "  {}\n", how.say(language));
            }
            let more = words(
                "weir doctor CONF --only RULE shows another one in full",
                "weir doctor CONF --only 규칙으로 다른 결과를 자세히 봅니다",
            );
            if findings.iter().any(|finding| finding.rule != first.rule) {
                let _ = writeln!(text, "  {}\n", more.say(language));
            }
        }
        self.next_text(&mut text, language);
        text + &report::summary(subject, findings, language)
    }

    fn log_text(&self, text: &mut String, subject: &Subject<'_>, language: Language) {
        for (name, how) in self.read {
            let heading = words("Error log", "오류 로그").say(language);
            let _ = writeln!(text, "{heading}: {name}, {}", how.say(language));
        }
        if self.read.is_empty() {
            let none = words(
                "Error log: none is known. Name it with --error-log FILE; it says most about this symptom",
                "오류 로그: 알려진 로그가 없습니다. --error-log FILE로 지정하세요. 원인이 가장 잘 나옵니다",
            );
            let _ = writeln!(text, "{}", none.say(language));
        }
        for (seen, cause) in self.seen() {
            message(text, subject, seen, cause, language);
        }
        if self.log.lines > 0 && !self.is_explained() {
            let none = match self.symptom {
                Symptom::BadGateway | Symptom::Timeout | Symptom::ServerError => words(
                    "no line explains it. nginx logs each failed try at an application: if it happened in this time, the application itself sent the status",
                    "설명하는 줄이 없습니다. nginx는 앱에 실패한 시도마다 로그를 남깁니다. 이 시간에 일어난 일이라면 앱이 직접 이 상태 코드로 응답했습니다",
                ),
                _ => words("no line explains it", "설명하는 줄이 없습니다"),
            };
            let _ = writeln!(text, "  {}", none.say(language));
        }
        let others = self.log.seen(|cause| !cause.symptoms.contains(&self.symptom));
        if !others.is_empty() && self.is_explained() {
            text.push('\n');
        }
        for (seen, cause) in others {
            let (count, other) = (seen.count, cause.symptoms.first().map_or("", |symptom| symptom.name()));
            let also = said!(
                "also {count} × {} (weir doctor {other})",
                "그 밖에 {count} × {} (weir doctor {other})",
                cause.words
            );
            let _ = writeln!(text, "  {}", also.say(language));
        }
        text.push('\n');
    }

    fn next_text(&self, text: &mut String, language: Language) {
        let _ = writeln!(text, "{}", words("Where to look next", "다음에 볼 것").say(language));
        for (what, shows) in self.symptom.next() {
            let _ = writeln!(text, "  {what}");
            for line in wrap(shows.say(language), COLUMNS - 6) {
                let _ = writeln!(text, "      {line}");
            }
        }
        text.push('\n');
    }

    /// The messages of the logs as JSON, for programs. These keys stand beside those of the findings.
    pub fn json(&self) -> Value {
        let names = |names: &NameCounts| -> Value {
            names.sorted().iter().map(|(name, count)| json!({ "name": name, "count": count })).collect()
        };
        let row = |(seen, cause): (&Seen, &'static Cause)| {
            json!({
                "message": seen.message.name(),
                "words": cause.words,
                "explains": cause.symptoms.contains(&self.symptom),
                "count": seen.count,
                "first": seen.times.0,
                "last": seen.times.1,
                "servers": names(&seen.peers),
                "locations": names(&seen.places),
                "cause": cause.cause.en,
                "remedy": cause.remedy.en,
                "rules": cause.rules,
            })
        };
        let logs: Vec<Value> = self.read.iter().map(|(name, how)| json!({ "file": name, "read": how.en() })).collect();
        json!({
            "logs": logs,
            "messages": self.log.seen(|_| true).into_iter().map(row).collect::<Vec<_>>(),
        })
    }
}

/// One message of the log, with its cause and its remedy.
fn message(text: &mut String, subject: &Subject<'_>, seen: &Seen, cause: &Cause, language: Language) {
    let (first, last) = &seen.times;
    let when = match () {
        () if first.is_empty() => String::new(),
        () if first == last => format!("  ({first})"),
        () => format!("  ({first} – {last})"),
    };
    let _ = writeln!(text, "\n  {} × {}{when}", seen.count, cause.words);
    let peers = seen.peers.sorted();
    let groups = [(words("servers", "서버"), &peers), (words("locations", "location"), &seen.places.sorted())];
    for (heading, names) in groups.iter().filter(|(_, names)| !names.is_empty()) {
        let mut shown: Vec<String> =
            names.iter().take(NAMES_SHOWN_MAX).map(|(name, count)| format!("{name} ×{count}")).collect();
        shown.extend((names.len() > NAMES_SHOWN_MAX).then(|| "…".to_owned()));
        let mut line = shown.join(", ");
        if !subject.directory.is_empty() {
            line = line.replace(&format!("({}", subject.directory), "(");
        }
        let _ = writeln!(text, "    {}: {line}", heading.say(language));
    }
    for line in [cause.cause, cause.remedy].iter().flat_map(|said| wrap(said.say(language), COLUMNS - 4)) {
        let _ = writeln!(text, "    {line}");
    }
    let peer = peers.first().map_or("ADDRESS", |(name, _)| *name);
    // Only a server with a port is one that a command can name.
    let port = peer.rsplit_once(':').map_or("", |(_, port)| port);
    let is_address = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let (peer, port) = if is_address { (peer, port) } else { ("ADDRESS", "PORT") };
    if !cause.write.is_empty() {
        let _ = writeln!(text, "      → {}", cause.write.replace("{peer}", peer).replace("{port}", port));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::error_log::LogReader;
    use crate::facts::Facts;
    use crate::view::View;

    const CONF: &str = "events { }\nhttp { upstream a { server 10.0.0.1:3000; server 10.0.0.2:3000; keepalive 8; }\nserver { listen 80; server_name s;\nlocation /x/ { proxy_set_header Connection close; proxy_http_version 1.1; proxy_pass http://a; } } }";

    fn asked(symptom: Symptom, lines: &str, language: Language) -> (String, Vec<&'static str>) {
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/d/n", CONF), "/d/n", "/");
        let facts = Facts::default();
        let target = crate::NEWEST;
        let mut findings = crate::examine(&tree, target, &facts);
        let view = View::new(&tree);
        let mut reader = LogReader::new(&view);
        reader.read(lines.as_bytes(), false);
        let log = reader.finish();
        let read = [("/l/error.log".to_owned(), weir_words::Said::from("whole"))];
        let asked = AskedSymptom { symptom, log: &log, read: &read };
        asked.choose(&mut findings);
        let subject =
            Subject { tree: &tree, target: target.into(), version_is_told: true, facts: &facts, directory: "/d/" };
        (asked.text(&subject, &findings, language), findings.iter().map(|finding| finding.rule).collect())
    }

    const NO_LIVE: &str = "2026/01/01 10:00:04 [error] 7#7: *9 no live upstreams while connecting to upstream, client: ::1, server: s, request: \"GET /x/ HTTP/1.1\", upstream: \"http://a/x/\", host: \"x\"\n";

    #[test]
    fn the_log_decides_what_is_likely() {
        let (text, rules) = asked(Symptom::BadGateway, "", Language::English);
        assert_eq!(rules.first(), Some(&"inert_upstream_keepalive"), "{text}");
        assert!(rules.contains(&"passive_ejection") && !rules.contains(&"version_disclosure"), "{rules:?}");
        let (text, rules) = asked(Symptom::BadGateway, NO_LIVE, Language::English);
        assert_eq!(rules.first(), Some(&"passive_ejection"), "{text}");
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(at("1 × no live upstreams  (2026/01/01 10:00:04)") < at("servers: a ×1"));
        assert!(at("locations: location /x/ (n:4) ×1") < at("  note   n:2"), "{text}");
        assert!(
            at("  note   n:2") < at("   [passive_ejection]") && at("[passive_ejection]") < at("Where to look next")
        );
        assert!(text.contains("→ server ADDRESS max_fails=3"), "a group is no server: {text}");
    }

    #[test]
    fn other_messages_are_named_with_their_symptom() {
        let (text, _) = asked(Symptom::Timeout, NO_LIVE, Language::English);
        assert!(text.contains("also 1 × no live upstreams (weir doctor 502)"), "{text}");
        assert!(text.contains("no line explains it. nginx logs each failed try"), "{text}");
    }

    #[test]
    fn every_symptom_speaks_korean() {
        for symptom in Symptom::ALL {
            let (text, _) = asked(symptom, NO_LIVE, Language::Korean);
            assert!(text.contains("오류 로그: /l/error.log") && text.contains("다음에 볼 것"), "{text}");
            assert_eq!(weir_words::glossary::forbidden_in(&text), None, "{text}");
        }
    }
}
