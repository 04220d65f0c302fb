//! weir's additions to Artillery's console: the target of the load, both latencies, lag, errors by place, and whether
//! the generator itself was the limit.

use weir_words::{Language, Said, Text, left, right, say};

use super::console::{Console, GRAY, GREEN, RED, YELLOW};
use super::number::{grouped, ms};
use super::{RunFacts, SelfCheck};
use crate::record::{Figures, RunResults};
use crate::texts::{self, phase_said};
use crate::tls::is_about_certificate;

/// Failures that are listed; the others share one line.
const FAILURES_SHOWN: usize = 12;

/// The line before the load: the targets.
pub fn first_line(targets: &[String], language: Language) -> String {
    let targets = if targets.is_empty() { say!(texts::NOWHERE) } else { targets.join(", ").into() };
    format!("{}\n", say!(texts::LOAD_GOES, targets).say(language))
}

/// The lines before the summary if the generator was the limit; otherwise nothing.
pub fn verdict_first(check: &SelfCheck, console: &Console) -> String {
    let limits = check.limits();
    if limits.is_empty() {
        return String::new();
    }
    let title = texts::GENERATOR_LIMIT.say(console.language);
    let lines: String = limits.iter().map(|limit| format!("  {}\n", limit.say(console.language))).collect();
    format!("{}\n{lines}\n", console.paint(RED, title))
}

/// The block after the summary. A quiet console gets only the reasons why the run is incomplete.
pub fn block(outcome: &RunResults, facts: &RunFacts, console: &Console) -> String {
    if console.is_quiet {
        return incomplete(facts, console);
    }
    let (own, language) = (&outcome.own, console.language);
    let went = say!(texts::LOAD_WENT, facts.targets.join(", "));
    let layout = Layout::of(console);
    let mut text = format!("\n{}\n\n{}\n", went.say(language), console.paint(GRAY, &layout.head(language)));
    let rows = [
        (texts::RESPONSE, &own.response, texts::FROM_INTENDED),
        (texts::SERVICE, &own.service, texts::FROM_SEND),
        (texts::SCHEDULE_LAG, &own.lag, texts::HOW_LATE_ARRIVALS),
    ];
    for (name, hdr, meaning) in rows.into_iter().filter(|(_, hdr, _)| hdr.count() > 0) {
        let row = layout.row(name.say(language), &Figures::of(hdr));
        let meaning = meaning.say(language);
        let meaning =
            if layout == Layout::Wide { format!("  {}", console.paint(GRAY, meaning)) } else { String::new() };
        text.push_str(&format!("{row}{meaning}\n"));
    }
    let name = left(texts::DROPPED.say(language), layout.name());
    let dropped = format!("{name}{:>1$}", grouped(own.dropped), layout.figure());
    text.push_str(&if own.dropped > 0 { console.paint(YELLOW, &dropped) } else { dropped });
    text.push('\n');
    text.push_str(&failures(outcome, console));
    text.push_str(&hint(outcome, console));
    text.push_str(&incomplete(facts, console));
    text.push('\n');
    for line in generator(&facts.self_check, console) {
        text.push_str(&console.wrap(&line));
        text.push('\n');
    }
    for caution in facts.self_check.cautions() {
        let word = console.paint(YELLOW, texts::CAUTION.say(language));
        text.push_str(&console.wrap(&format!("{word}: {}", caution.say(language))));
        text.push('\n');
    }
    text
}

/// The verdict on the generator, and a line for each agent.
fn generator(check: &SelfCheck, console: &Console) -> Vec<String> {
    let language = console.language;
    let (colour, word) = if check.limits().is_empty() { (GREEN, texts::IS_OK) } else { (RED, texts::WAS_LIMIT) };
    let verdict = console.paint(colour, word.say(language));
    if check.agents.is_empty() {
        return vec![say!(texts::GENERATOR_WITH, verdict, check.figures()).say(language).to_owned()];
    }
    let agents = check.agents.iter().map(|(name, check)| format!("  {name}: {}", check.figures().say(language)));
    std::iter::once(say!(texts::GENERATOR, verdict).say(language).to_owned()).chain(agents).collect()
}

/// The layout by width: all figures and their meaning, all figures, or the most important figures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Wide,
    Plain,
    Narrow,
}

impl Layout {
    /// Columns that the first two layouts need.
    const WIDE: usize = 104;
    const PLAIN: usize = 79;

    fn of(console: &Console) -> Layout {
        match console.columns {
            None | Some(Layout::WIDE..) => Layout::Wide,
            Some(Layout::PLAIN..) => Layout::Plain,
            Some(_) => Layout::Narrow,
        }
    }

    fn name(self) -> usize {
        if self == Layout::Narrow { 16 } else { 22 }
    }

    fn figure(self) -> usize {
        if self == Layout::Narrow { 8 } else { 9 }
    }

    fn head(self, language: Language) -> String {
        let name = left(texts::LATENCY_MS.say(language), self.name());
        let count = right(texts::COUNT.say(language), 12);
        match self {
            Layout::Narrow => format!("{name}{:>8}{:>8}{:>8}", "p50", "p99", "max"),
            _ => format!("{name}{:>9}{:>9}{:>9}{:>9}{:>9}{count}", "p50", "p90", "p99", "p99.9", "max"),
        }
    }

    fn row(self, name: &str, figures: &Figures) -> String {
        let Figures { count, p50, p90, p99, p999, max, .. } = *figures;
        let times = |times: &[f64]| -> String {
            times.iter().map(|time| format!("{:>1$}", ms(*time), self.figure())).collect()
        };
        let name = left(name, self.name());
        match self {
            Layout::Narrow => format!("{name}{}", times(&[p50, p99, max])),
            _ => format!("{name}{}{:>12}", times(&[p50, p90, p99, p999, max]), grouped(count)),
        }
    }
}

fn incomplete(facts: &RunFacts, console: &Console) -> String {
    let language = console.language;
    let word = console.paint(YELLOW, texts::INCOMPLETE.say(language));
    let line = |reason: &Said| console.wrap(&format!("{word}: {}", reason.say(language))) + "\n";
    facts.incomplete.iter().map(line).collect()
}

/// The line about certificates that were not accepted, if there were such. With `-k` there is none.
fn hint(outcome: &RunResults, console: &Console) -> String {
    if !outcome.own.failures.keys().any(|(_, name)| is_about_certificate(name)) {
        return String::new();
    }
    console.wrap(texts::INSECURE_SCRIPT.say(console.language)) + "\n"
}

/// Errors by place, the most frequent first.
fn failures(outcome: &RunResults, console: &Console) -> String {
    let mut failures: Vec<_> = outcome.own.failures.iter().collect();
    if failures.is_empty() {
        return String::new();
    }
    failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let say = |text: Text| text.say(console.language);
    let (errors, hop) = (left(say(texts::ERRORS), 31), left(say(texts::HOP), 22));
    let head = format!("{errors}{hop}{}", say(texts::PHASE));
    let mut text = format!("\n{}\n", console.paint(GRAY, head.trim_end()));
    for ((step, name), count) in failures.iter().take(FAILURES_SHOWN) {
        let target = left(say(texts::TARGET), 22);
        text.push_str(&format!(
            "{:>9}  {name:<20}{target}{}\n",
            grouped(**count),
            phase_said(*step).say(console.language)
        ));
    }
    if let Some(rest) = failures.get(FAILURES_SHOWN..).filter(|rest| !rest.is_empty()) {
        let count: u64 = rest.iter().map(|(_, count)| **count).sum();
        let rest = say!(texts::OTHER_KINDS, rest.len());
        text.push_str(&format!("{:>9}  {}\n", grouped(count), rest.say(console.language)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};
    use std::time::Duration;
    use weir_meter::Step;

    fn outcome() -> RunResults {
        let recorder = Recorder::at(1_795_186_840_000);
        for us in 1..=2000 {
            recorder.latency(Duration::from_micros(us * 100), Duration::from_micros(us));
        }
        recorder.lag(Duration::from_micros(10));
        recorder.failure(Step::Connect, "ECONNREFUSED");
        (0..3).for_each(|_| recorder.failure(Step::AwaitHead, "ETIMEDOUT"));
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        merger.outcome()
    }

    #[test]
    fn everything_in_one_block() {
        let facts = RunFacts {
            targets: vec!["http://127.0.0.1:80".to_owned()],
            incomplete: vec!["stopped by Ctrl-C".into()],
            self_check: SelfCheck { worker_cpu: vec![0.5], ..SelfCheck::default() },
            ..RunFacts::default()
        };
        let text = block(&outcome(), &facts, &Console::default());
        let expected = "
Load went to: http://127.0.0.1:80

Latency, ms                 p50      p90      p99    p99.9      max       count
response                    100      180      198      200      200       2 000  from the intended start
service                    1.00     1.80     1.98     2.00     2.00       2 000  from the send
schedule lag              0.010    0.010    0.010    0.010    0.010           1  how late arrivals began
dropped arrivals              0

Errors                         hop                   phase
        3  ETIMEDOUT           target                wait
        1  ECONNREFUSED        target                connect
Incomplete: stopped by Ctrl-C

Generator: ok (1 worker 50 % of a core)
";
        assert_eq!(text, expected);
        let quiet = Console { is_quiet: true, ..Console::default() };
        assert_eq!(block(&outcome(), &facts, &quiet), "Incomplete: stopped by Ctrl-C\n");
        assert_eq!(block(&outcome(), &RunFacts::default(), &quiet), "");
    }

    #[test]
    fn the_korean_block_has_the_same_figures() {
        let facts = RunFacts {
            targets: vec!["http://127.0.0.1:80".to_owned()],
            incomplete: vec![say!(texts::STOPPED)],
            self_check: SelfCheck { worker_cpu: vec![0.5], ..SelfCheck::default() },
            ..RunFacts::default()
        };
        let text = block(&outcome(), &facts, &Console { language: Language::Korean, ..Console::default() });
        let expected = "
부하 대상: http://127.0.0.1:80

지연 시간, ms               p50      p90      p99    p99.9      max        건수
응답 (response)             100      180      198      200      200       2 000  예정 시각 기준
서비스 (service)           1.00     1.80     1.98     2.00     2.00       2 000  요청을 보낸 시각 기준
시작 지연                 0.010    0.010    0.010    0.010    0.010           1  도착이 늦게 시작된 정도
시작하지 못한 도착            0

오류                           위치                  단계
        3  ETIMEDOUT           대상                  응답 대기
        1  ECONNREFUSED        대상                  연결
불완전: 실행이 끝나기 전에 시그널을 받아 중단되었습니다

부하 생성기: 정상 (워커 1개, 코어의 50 %)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_certificate_that_is_not_accepted_has_a_hint() {
        let recorder = Recorder::at(1_795_186_840_000);
        recorder.failure(Step::TlsOrigin, "DEPTH_ZERO_SELF_SIGNED_CERT");
        let mut merger = Merger::default();
        merger.add(recorder.take(u64::MAX));
        merger.close(u64::MAX);
        let of = |console: Console| block(&merger.outcome(), &RunFacts::default(), &console);
        let text = of(Console::default());
        let line = "To load it all the same, add -k (--insecure), or write config.tls.rejectUnauthorized: false in the script.\n";
        assert!(text.contains("DEPTH_ZERO_SELF_SIGNED_CERT") && text.contains(line), "{text}");
        let text = of(Console { language: Language::Korean, ..Console::default() });
        assert!(text.contains("스크립트에 config.tls.rejectUnauthorized: false를 쓰세요"), "{text}");
        assert_eq!(of(Console { is_quiet: true, ..Console::default() }), "");
    }

    #[test]
    fn agents_have_a_line_each() {
        let agent = SelfCheck { worker_cpu: vec![0.5], ..SelfCheck::default() };
        let agents = ["a", "b"].map(|name| (name.to_owned(), agent.clone())).into();
        let facts = RunFacts { self_check: SelfCheck { agents, ..SelfCheck::default() }, ..RunFacts::default() };
        let text = block(&outcome(), &facts, &Console::default());
        assert!(
            text.ends_with("\nGenerator: ok\n  a: 1 worker 50 % of a core\n  b: 1 worker 50 % of a core\n"),
            "{text}"
        );
    }

    #[test]
    fn it_fits_its_terminal() {
        let facts = RunFacts {
            self_check: SelfCheck { worker_cpu: vec![0.5], machine_cpu: Some(0.99), ..SelfCheck::default() },
            incomplete: vec!["agent a (share 1 of 2) was lost after 3.5 s".into()],
            ..RunFacts::default()
        };
        for columns in [40, 60, 79, 80, 103, 104, 200] {
            let text = block(&outcome(), &facts, &Console { columns: Some(columns), ..Console::default() });
            let widest = text.lines().map(|line| line.chars().count()).max();
            // Errors keep their three columns, even if a long name wraps the line.
            assert!(widest <= Some(columns.max(61)), "{columns}\n{text}");
            assert_eq!(text.contains("from the send"), columns >= 104, "{text}");
        }
    }

    #[test]
    fn a_generator_at_its_limit_is_said_first() {
        let busy = SelfCheck { worker_cpu: vec![0.99], ..SelfCheck::default() };
        let text = verdict_first(&busy, &Console::default());
        assert!(text.starts_with("The generator was the limit: "), "{text}");
        assert!(text.contains("  worker 0 used 99 % of its core"), "{text}");
        assert_eq!(verdict_first(&SelfCheck::default(), &Console::default()), "");
        let facts = RunFacts { self_check: busy, ..RunFacts::default() };
        assert!(
            block(&RunResults::default(), &facts, &Console::default())
                .contains("Generator: was the limit (1 worker 99 %")
        );
    }

    #[test]
    fn where_the_load_goes() {
        assert_eq!(
            first_line(&["http://a:1".to_owned(), "ws://b:2".to_owned()], Language::English),
            "Load goes to: http://a:1, ws://b:2\n"
        );
        assert_eq!(first_line(&[], Language::English), "Load goes to: nowhere\n");
    }
}
