//! Translates sentences to Korean. A sentence is looked up by its English text: so rules word each sentence once, and
//! a stored run can be printed in either language. Text that the table lacks stays as it is: names, numbers,
//! directives, messages of other programs.

mod phrases;

use phrases::{LABELS, NAMES, PHRASES};
use weir_conf::language::particles;

/// Longer texts are not looked up.
const TEXT_MAX: usize = 4096;

/// The Korean for a text, if the table has it. A hole is `{}` in English and `{1}`, `{2}` … in Korean, numbered in
/// the English order; its content is looked up as well. If several phrases fit, the one with the longest fixed
/// beginning wins; among those, the one with the most fixed text.
pub fn say(text: &str) -> Option<String> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let fits = PHRASES.iter().filter_map(|(en, ko)| Some((begins(en), en.len(), ko, holes(en, text)?)));
    // A sentence is recognised by its beginning. A phrase that begins with a hole would take any beginning for a
    // name.
    let (_, _, ko, holes) = fits.max_by_key(|(begins, length, _, holes)| (*begins, length - 2 * holes.len()))?;
    let mut said = (*ko).to_owned();
    for (number, hole) in holes.iter().enumerate() {
        // This recursion ends: a hole is shorter than the text around it.
        let inner = say(hole).unwrap_or_else(|| (*hole).to_owned());
        said = said.replace(&format!("{{{}}}", number + 1), &inner);
    }
    Some(particles(&said))
}

/// As [`say`], but text that the table lacks stays as it is.
pub fn or_as_it_is(text: &str) -> String {
    say(text).unwrap_or_else(|| text.to_owned())
}

/// The Korean for the label of a line.
pub fn label(label: &str) -> &str {
    LABELS.iter().find(|(en, _)| *en == label).map_or(label, |(_, ko)| ko)
}

/// A label padded with spaces to a number of columns. A Korean syllable takes two columns.
pub fn padded(label: &str, columns: usize) -> String {
    let width: usize = label.chars().map(|c| if ('가'..='힣').contains(&c) { 2 } else { 1 }).sum();
    format!("{label}{}", " ".repeat(columns.saturating_sub(width)))
}

/// Number of characters before the first hole. 0 for a name, which itself fills a hole of the sentence that it
/// begins.
fn begins(phrase: &str) -> usize {
    if NAMES.contains(&phrase) { 0 } else { phrase.find("{}").unwrap_or(phrase.len()) }
}

/// The contents of a phrase's holes, if a text has the form of the phrase.
fn holes<'a>(phrase: &str, text: &'a str) -> Option<Vec<&'a str>> {
    let Some((first, rest)) = phrase.split_once("{}") else { return (phrase == text).then(Vec::new) };
    let mut found = Vec::new();
    let mut left = text.strip_prefix(first)?;
    let mut parts = rest.split("{}").peekable();
    while let Some(part) = parts.next() {
        let at = match (parts.peek(), part) {
            (None, "") => left.len(),
            (None, part) => left.strip_suffix(part)?.len(),
            (Some(_), part) => left.find(part)?,
        };
        let (hole, after) = left.split_at(at);
        if hole.is_empty() {
            return None;
        }
        found.push(hole);
        left = after.strip_prefix(part)?;
    }
    left.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use crate::why::rule::Segment;
    use crate::why::rules;
    use crate::why::say::WORDS;
    use crate::why::signals::Signals;

    fn is_korean(text: &str) -> bool {
        text.chars().any(|c| ('가'..='힣').contains(&c))
    }

    /// The files that print: the table has every sentence in them, word for word.
    const SOURCES: &[(&str, &str)] = &[
        ("rules/behind.rs", include_str!("rules/behind.rs")),
        ("rules/cache.rs", include_str!("rules/cache.rs")),
        ("rules/cpu.rs", include_str!("rules/cpu.rs")),
        ("rules/inside.rs", include_str!("rules/inside.rs")),
        ("rules/limits.rs", include_str!("rules/limits.rs")),
        ("rules/load.rs", include_str!("rules/load.rs")),
        ("rules/network.rs", include_str!("rules/network.rs")),
        ("rules/policy.rs", include_str!("rules/policy.rs")),
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

    /// Parts of sentences, each with a whole sentence that contains it. The table has to have the whole sentence.
    const PARTS: &[(&str, &str)] = &[
        (
            " (pm.max_children, uwsgi's processes, MaxRequestWorkers, server.tomcat.threads.max)",
            "find the resource that its workers wait for; add workers only if that resource has room (pm.max_children, uwsgi's processes, MaxRequestWorkers, server.tomcat.threads.max)",
        ),
        (
            "find the resource that its workers wait for; add workers only if that resource has room{}",
            "find the resource that its workers wait for; add workers only if that resource has room",
        ),
        ("{} {} ms", "upstream: proxy_read_timeout 500 ms"),
        (", elasticity {} [{}, {}]", "PROVED  app: its CPUs   (rule B20), elasticity 0.97 [0.91, 1.03]"),
        (
            "; noticed: {}",
            "NOT SATURATED  1/s offered and 1/s answered: capacity unknown (weir lab capacity finds it); noticed: edge: its CPUs   (rule B19)",
        ),
        (
            "NOT SATURATED  {}: capacity unknown (weir lab capacity finds it){}",
            "NOT SATURATED  1/s offered and 1/s answered: capacity unknown (weir lab capacity finds it)",
        ),
        (
            "UNATTRIBUTED  squeezing a suspect changes nothing; {}",
            "UNATTRIBUTED  squeezing a suspect changes nothing; 7 ms in the segment \"bodies\", 0 % of requests failed",
        ),
        (
            " more than at half the load",
            "7 ms more than at half the load in the segment \"bodies\", 0 % of requests failed",
        ),
        (
            "; the lab does not see the application's work in that time: use --inside, the application's metrics, or a profiler",
            "7 ms more than at half the load in the segment \"connecting to the upstream\", 0 % of requests failed; the lab does not see the application's work in that time: use --inside, the application's metrics, or a profiler",
        ),
        (
            "{} ms{} in the segment \"{}\", {} of requests failed{}",
            "7 ms in the segment \"bodies\", 0 % of requests failed",
        ),
        ("{} from {} to {}: elasticity {} [{}, {}]", "CPU of app from 1 to 0.8: elasticity 0.02 [-0.01, 0.04]"),
        ("none × {}", "7 of 9 good (2xx, 3xx): 200 × 7, none × 2"),
        ("no verdict: stopped before its end", "no verdict: stopped before its end"),
        (
            "the CPU quota stopped the load generator in {} % of its periods",
            "the CPU quota stopped the load generator in 60 % of its periods",
        ),
        ("load generator saturated (core {} %)", "load generator saturated (core 97 %)"),
        (
            "the load generator's CPU was {} % busy: {}",
            "the load generator's CPU was 99 % busy: other work on this CPU, perhaps the origin, made requests wait",
        ),
        (
            "other work on this CPU, perhaps the origin, made requests wait",
            "the load generator's CPU was 99 % busy: other work on this CPU, perhaps the origin, made requests wait",
        ),
        ("other work used", "other work used 20 % of the CPUs (at most 5 %)"),
        ("the hypervisor took", "the hypervisor took 20 % of the CPUs (steal, at most 2 %)"),
        ("{} {} % of the CPUs (at most {} %)", "other work used 20 % of the CPUs (at most 5 %)"),
        ("{} with 504: {}", "3 of 9 (33 %) with 504: the application did not accept the connection"),
        (
            "at requests",
            "threads of app: 2 of 8 at requests on the average: ran 9 %, for a CPU 1 %, a lock 90 %, a peer 0 %, a disk 0 %, other 0 %",
        ),
        (
            "not idle",
            "threads of app: 2 of 8 not idle on the average: ran 9 %, for a CPU 1 %, a lock 90 %, a peer 0 %, a disk 0 %, other 0 %",
        ),
        (
            "threads of {}: {} of {} {} on the average: ran {}, for a CPU {}, a lock {}, a peer {}, a disk {}, other {}",
            "threads of app: 2 of 8 not idle on the average: ran 9 %, for a CPU 1 %, a lock 90 %, a peer 0 %, a disk 0 %, other 0 %",
        ),
        ("{} on CPU {}", "edge on CPU 0; load generator and application share CPU 1, of which they used 64 %"),
        ("{} and {}", "load generator and application share CPU 1, of which they used 64 %"),
        ("good answers", "helps: good answers +10 % [+9 %, +11 %], from 100 to 110/s, 8 pairs of blocks"),
        (
            "{}: {} {} [{}, {}], from {} to {}{}, {} pairs of blocks",
            "makes it worse: p95 +10 % [+9 %, +11 %], from 100 to 110 ms, 8 pairs of blocks",
        ),
    ];

    /// Texts that no report contains: keys, other programs' log messages, progress lines, errors of a lab that cannot
    /// be made.
    const NOT_SAID: &[&str] = &[
        "no verdict",
        "not quiet",
        "not read",
        "not proved",
        "ruled out",
        "given more",
        "stood still",
        "taken off",
        "the stack did not answer the whole load in time",
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
        "squeezing: {}",
        "cannot be tried",
        "not tried",
        "makes it worse",
        "does not help",
        "not shown to help",
        // Progress lines and commands are the same in every language.
        "giving more",
        "trying the remedy",
        "two programs on one CPU competed: the lab repeats the load with other CPUs",
        "they compete for CPUs, and the lab keeps the CPUs that you named (--edge-cpus, --client-cpus, --origin-cpus)",
        "the given load, with other CPUs",
        "upstream … { keepalive {}; }{}",
        "upstream origin { server {}; keepalive {}; } proxy_pass http://origin;{}",
        " proxy_http_version 1.1; proxy_set_header Connection \"\";",
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
        "the lab cannot start a watcher for the block: {}",
        "it failed",
        "| verdict | condition |\n|---|---|\n{}",
        "limit_req one",
        "refused limit_req one",
        "limit_req zone=one burst=5 (10r/s)",
        "limit_conn addr",
        "limit_conn addr 5",
        "limit_rate 20k",
        "server app:3000 max_conns=2",
        "queue 10 timeout=5s",
        "queue app",
        "deny all",
        "proxy_cache_lock on",
        "502 no peer",
        "Failed capture or match",
        // A block with so few requests is still explained.
        "{} requests are too few for a result",
        "are too few for a result",
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
                '/' if is_at(at + 1, '/') => {
                    at = (at..source.len()).find(|at| is_at(*at, '\n')).unwrap_or(source.len())
                }
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

    /// An untranslated sentence would appear in English within Korean text, or be mistaken for another sentence.
    #[test]
    fn every_sentence_that_can_be_printed_is_in_the_table() {
        assert_eq!(literals("a(\"x {y:.2} \\\"z\\\" {{ }}\"); // \"no\"\n'\"'; \"b\""), ["x {} \"z\" { }", "b"]);
        let is_sentence = |text: &str| {
            let words = text.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() >= 2).count();
            text.trim().contains(' ') && words >= 1 && text.chars().any(char::is_lowercase)
        };
        let has_words = |text: &str| WORDS.iter().any(|(_, when)| *when == text);
        let mut lacking = Vec::new();
        for (file, source) in SOURCES {
            let all = literals(source);
            assert!(!all.is_empty(), "{file}: nothing was read");
            for text in all.iter().filter(|text| is_sentence(text)) {
                let is_known = PHRASES.iter().any(|(en, _)| en == text)
                    || PARTS.iter().any(|(part, _)| part == text)
                    || NOT_SAID.contains(&text.as_str())
                    || has_words(text);
                lacking.extend((!is_known).then(|| format!("{file}: {text}")));
            }
        }
        assert!(lacking.is_empty(), "no Korean for:\n{}", lacking.join("\n"));
        let parts = PARTS.iter().filter(|(_, whole)| !say(whole).is_some_and(|ko| is_korean(&ko)));
        assert_eq!(parts.map(|(_, whole)| *whole).collect::<Vec<_>>(), Vec::<&str>::new(), "no Korean for the whole");
    }

    #[test]
    fn a_policy_is_said_in_korean() {
        let text = "POLICY  limit_conn addr 5 at nginx.conf:14 refused 1320 of 2000 (66 %) requests   (rule P02)";
        let ko =
            "POLICY (정책)  nginx.conf:14의 limit_conn addr 5: 요청 2000건 중 1320건(66 %)을 거절했습니다   (규칙 P02)";
        assert_eq!(say(text).as_deref(), Some(ko));
        let text = "16 of 2000 good (2xx, 3xx): 503 × 1984, 200 × 16";
        assert_eq!(say(text).as_deref(), Some("2000건 중 16건이 정상(2xx, 3xx): 503 × 1984, 200 × 16"));
    }

    #[test]
    fn every_rule_speaks_korean() {
        let mut lacking = Vec::new();
        for rule in rules::all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let found = (rule.check)(&signals).unwrap_or_default();
            let mut texts = vec![rule.says.to_owned(), found.subject, found.knob, found.expect];
            for (name, text) in found.evidence {
                texts.push(text);
                if name != "cpu" && !is_korean(label(name)) {
                    lacking.push(format!("{}: label {name}", rule.id));
                }
            }
            let is_lacking = |text: &String| !say(text).is_some_and(|ko| is_korean(&ko) && !ko.contains("{1}"));
            lacking.extend(texts.into_iter().filter(is_lacking).map(|text| format!("{}: {text}", rule.id)));
        }
        for segment in Segment::ALL {
            lacking.extend(say(segment.name()).is_none().then(|| segment.name().to_owned()));
        }
        assert!(lacking.is_empty(), "no Korean for:\n{}", lacking.join("\n"));
    }

    /// Each sentence is found again as itself, alone and within each verdict.
    #[test]
    fn a_sentence_is_never_taken_for_another() {
        let filled = |text: &str, hole: &dyn Fn(usize) -> String, from: usize| -> String {
            let count = text.matches("{}").count().max(from);
            (0..count).fold(text.to_owned(), |text, number| {
                let text = text.replacen("{}", &hole(number), 1);
                text.replace(&format!("{{{}}}", number + 1), &hole(number))
            })
        };
        let value = |number: usize| format!("{}", 70 + number);
        let mut wrong = Vec::new();
        for (en, ko) in PHRASES.iter().filter(|(en, _)| *en != "{}") {
            let holes = en.matches("{}").count();
            let (english, korean) = (filled(en, &value, 0), particles(&filled(ko, &value, holes)));
            if say(&english).as_deref() != Some(&korean) {
                wrong.push(format!("{english}\n  said {:?}\n  not  {korean}", say(&english)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let offered = "NOT SATURATED  100/s offered and 101/s answered: capacity unknown (weir lab capacity finds it)";
        let said = say(offered).unwrap_or_default();
        assert!(said.starts_with("NOT SATURATED (포화되지 않음)"), "{said}");
        assert!(
            say(&format!("{offered}; noticed: edge: local ports   (rule B01)"))
                .is_some_and(|ko| ko.starts_with("NOT SATURATED ("))
        );
    }

    /// Sentences of several parts. The parts are names that this program gives, numbers, and other sentences.
    #[test]
    fn what_is_made_of_parts_is_said_whole() {
        let shared = "load generator and application share CPU 1, of which they used 64 %";
        let crowd = "edge and load generator and application used 97 % of the CPUs that they share";
        for (en, ko) in [
            (format!("edge on CPU 0; {shared}"), "엣지: CPU 0; 부하 생성기와 앱: CPU 1 공유, 사용률 64 %"),
            (
                format!("edge on CPU 0; {shared}; the lab chose this, because the first assignment was full"),
                "엣지: CPU 0; 부하 생성기와 앱: CPU 1 공유, 사용률 64 %; 처음 배정한 CPU가 가득 차서 랩이 이렇게 다시 배정했습니다",
            ),
            (
                "edge and application share CPU 0, of which they used 9 %; load generator on CPU 1,2".to_owned(),
                "엣지와 앱: CPU 0 공유, 사용률 9 %; 부하 생성기: CPU 1,2",
            ),
            (
                format!(
                    "{crowd}, and there is only one CPU, so the lab cannot separate them (run weir load from another machine)"
                ),
                "엣지와 부하 생성기와 앱: 공유하는 CPU의 사용률 97 %. CPU가 하나뿐이라 랩이 나눌 수 없습니다 (다른 머신에서 weir load를 실행하세요)",
            ),
            (
                "cannot be tried: this file has no upstream block for this line".to_owned(),
                "시험할 수 없습니다: 이 파일에는 이 줄을 넣을 upstream 블록이 없습니다",
            ),
            (
                "helps: good answers more than tenfold [+9 %, more than tenfold], from 0 to 200/s, 8 pairs of blocks"
                    .to_owned(),
                "도움이 됩니다: 정상 응답 10배 초과 [+9 %, 10배 초과], 초당 0건에서 200건으로, 블록 쌍 8개",
            ),
            (
                "CPU of app from 1 to 1.5: answers tenfold and more [40 %, tenfold and]".to_owned(),
                "app의 CPU 1 → 1.5: 응답 10배 이상 증가 [40 %, 10배 이상]",
            ),
            (
                "link of app from 1 to 2: answers 9 % more [8 %, 10 %]; CPU of edge that app leaves from 1 to 2: answers 5 % more [4 %, 6 %]"
                    .to_owned(),
                "app의 링크 1 → 2: 응답 9 % 증가 [8 %, 10 %]; app에서 쓰고 남은 엣지의 CPU 1 → 2: 응답 5 % 증가 [4 %, 6 %]",
            ),
            (
                "pool of app (POOL_SIZE) may matter too: elasticity up to 0.31".to_owned(),
                "app의 풀 (POOL_SIZE)도 영향을 줄 수 있습니다: 탄력도 최대 0.31",
            ),
            (
                "answers shrink with CPU of app and local ports of edge, but no other measurement confirms this".to_owned(),
                "app의 CPU와 엣지의 로컬 포트를 줄이면 응답이 줄지만, 이를 뒷받침하는 다른 측정값이 없습니다",
            ),
            ("link of app 97 %".to_owned(), "app의 링크 97 %"),
            (
                "the other CPU has no room: 97 % of it is used, by app and the load generator".to_owned(),
                "다른 CPU에 여유가 없습니다: app, 부하 생성기에서 이미 97 % 사용 중입니다",
            ),
        ] {
            assert_eq!(say(&en).as_deref(), Some(ko));
        }
    }

    #[test]
    fn the_glossary_is_kept() {
        let others = || weir_conf::language::GLOSSARY.iter().flat_map(|(_, others)| *others);
        let all = PHRASES.iter().chain(LABELS).map(|(_, ko)| *ko);
        let wrong: Vec<&str> = all.filter(|ko| others().any(|other| ko.contains(*other))).collect();
        assert_eq!(wrong, Vec::<&str>::new());
    }

    #[test]
    fn each_phrase_is_there_once_and_fills_its_holes() {
        for (number, (en, ko)) in PHRASES.iter().enumerate() {
            assert!(PHRASES.iter().skip(number + 1).all(|(other, _)| other != en), "twice: {en}");
            let count = en.matches("{}").count();
            assert!((1..=count).all(|hole| ko.contains(&format!("{{{hole}}}"))), "{ko}");
            assert!(!ko.contains(&format!("{{{}}}", count + 1)), "{ko}");
        }
        let is_there = |name: &&&str| PHRASES.iter().any(|(en, _)| en == *name);
        assert_eq!(NAMES.iter().filter(is_there).count(), NAMES.len());
    }

    #[test]
    fn the_words_stay_and_what_is_unknown_does() {
        for (word, _) in WORDS {
            let sentence = if *word == "no verdict" { format!("{word}: x") } else { format!("{word}  x") };
            assert!(say(&sentence).is_some_and(|ko| ko.starts_with(word) && is_korean(&ko)), "{word}");
        }
        let text = "PROVED  edge → 10.0.0.2:3000: local ports   (rule B01), elasticity 0.97 [0.91, 1.03]";
        let ko = "PROVED (증명됨)  엣지 → 10.0.0.2:3000: 로컬 포트   (규칙 B01), 탄력도 0.97 [0.91, 1.03]";
        assert_eq!(say(text).as_deref(), Some(ko));
        assert_eq!(or_as_it_is("mysql: no client"), "mysql: no client");
        assert_eq!((padded("풀", 4), padded("pool", 5)), ("풀  ".to_owned(), "pool ".to_owned()));
    }
}
