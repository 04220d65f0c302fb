//! What weir adds to Artillery's console: where the load goes, both latencies, lag, errors by place, and whether the
//! generator itself was the limit.

use super::console::{Console, GRAY, GREEN, RED, YELLOW};
use super::number::{grouped, ms};
use super::{Facts, SelfCheck};
use crate::record::{Figures, Outcome, phase};

/// Failures listed; the rest is one line.
const FAILURES_SHOWN: usize = 12;

/// The first line of all: where the load goes.
pub fn first_line(targets: &[String]) -> String {
    match targets {
        [] => "Load goes to: nowhere\n".to_owned(),
        targets => format!("Load goes to: {}\n", targets.join(", ")),
    }
}

/// Comes before the summary when the generator was the limit; otherwise nothing.
pub fn verdict_first(check: &SelfCheck, console: &Console) -> String {
    let limits = check.limits();
    if limits.is_empty() {
        return String::new();
    }
    let title = "The generator was the limit: these figures tell of it, not of the target.";
    let lines: String = limits.iter().map(|limit| format!("  {limit}\n")).collect();
    format!("{}\n{lines}\n", console.paint(RED, title))
}

/// The block after the summary. Of a quiet console only what makes the figures less than they seem.
pub fn block(outcome: &Outcome, facts: &Facts, console: &Console) -> String {
    if console.is_quiet {
        return incomplete(facts, console);
    }
    let own = &outcome.own;
    let mut text = format!("\nLoad went to: {}\n\n", facts.targets.join(", "));
    let head =
        format!("{:<22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}", "Latency, ms", "p50", "p90", "p99", "p99.9", "max", "count");
    text.push_str(&format!("{}\n", console.paint(GRAY, &head)));
    let rows = [
        ("response", &own.response, "from the intended start"),
        ("service", &own.service, "from the send"),
        ("schedule lag", &own.lag, "how late arrivals began"),
    ];
    for (name, hdr, meaning) in rows.into_iter().filter(|(_, hdr, _)| hdr.count() > 0) {
        text.push_str(&format!("{}  {}\n", row(name, &Figures::of(hdr)), console.paint(GRAY, meaning)));
    }
    let dropped = format!("{:<22}{:>9}", "dropped arrivals", grouped(own.dropped));
    text.push_str(&if own.dropped > 0 { console.paint(YELLOW, &dropped) } else { dropped });
    text.push('\n');
    text.push_str(&failures(outcome, console));
    text.push_str(&incomplete(facts, console));
    let check = &facts.self_check;
    let verdict =
        if check.limits().is_empty() { console.paint(GREEN, "ok") } else { console.paint(RED, "was the limit") };
    text.push_str(&format!("\nGenerator: {verdict} ({})\n", check.figures()));
    text
}

fn incomplete(facts: &Facts, console: &Console) -> String {
    let line = |reason: &String| format!("{}: {reason}\n", console.paint(YELLOW, "Incomplete"));
    facts.incomplete.iter().map(line).collect()
}

fn row(name: &str, figures: &Figures) -> String {
    let Figures { count, p50, p90, p99, p999, max, .. } = *figures;
    let times: String = [p50, p90, p99, p999, max].iter().map(|time| format!("{:>9}", ms(*time))).collect();
    format!("{name:<22}{times}{:>12}", grouped(count))
}

/// Errors by place, the most frequent first.
fn failures(outcome: &Outcome, console: &Console) -> String {
    let mut failures: Vec<_> = outcome.own.failures.iter().collect();
    if failures.is_empty() {
        return String::new();
    }
    failures.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let head = format!("{:<31}{:<22}{:<12}", "Errors", "hop", "phase");
    let mut text = format!("\n{}\n", console.paint(GRAY, head.trim_end()));
    for ((step, name), count) in failures.iter().take(FAILURES_SHOWN) {
        text.push_str(&format!("{:>9}  {:<20}{:<22}{}\n", grouped(**count), name, "target", phase(*step)));
    }
    if let Some(rest) = failures.get(FAILURES_SHOWN..).filter(|rest| !rest.is_empty()) {
        let count: u64 = rest.iter().map(|(_, count)| **count).sum();
        text.push_str(&format!("{:>9}  of {} other kinds\n", grouped(count), rest.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Merger, Recorder};
    use std::time::Duration;
    use weir_meter::Step;

    fn outcome() -> Outcome {
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
        let facts = Facts {
            targets: vec!["http://127.0.0.1:80".to_owned()],
            incomplete: vec!["stopped by Ctrl-C".to_owned()],
            self_check: SelfCheck { worker_cpu: vec![0.5], ..SelfCheck::default() },
            ..Facts::default()
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
        assert_eq!(block(&outcome(), &Facts::default(), &quiet), "");
    }

    #[test]
    fn a_generator_at_its_limit_is_said_first() {
        let busy = SelfCheck { worker_cpu: vec![0.99], ..SelfCheck::default() };
        let text = verdict_first(&busy, &Console::default());
        assert!(text.starts_with("The generator was the limit: "), "{text}");
        assert!(text.contains("  worker 0 used 99 % of its core"), "{text}");
        assert_eq!(verdict_first(&SelfCheck::default(), &Console::default()), "");
        let facts = Facts { self_check: busy, ..Facts::default() };
        assert!(
            block(&Outcome::default(), &facts, &Console::default()).contains("Generator: was the limit (1 worker 99 %")
        );
    }

    #[test]
    fn where_the_load_goes() {
        assert_eq!(
            first_line(&["http://a:1".to_owned(), "ws://b:2".to_owned()]),
            "Load goes to: http://a:1, ws://b:2\n"
        );
        assert_eq!(first_line(&[]), "Load goes to: nowhere\n");
    }
}
