//! The control group's CPU quota has throttled the process.

use crate::facts::Facts;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cpu_throttled",
    level: FindingLevel::Risk,
    group: Group::Limits,
    symptoms: &[Symptom::Slow, Symptom::Limit],
    says: words("The CPU quota has stopped the process repeatedly", "CPU 쿼터 때문에 프로세스가 반복해서 멈췄습니다"),
    remedy: words(
        "Every thread then waits for the next period (100 ms), and the latency rises and falls with the period. Raise the quota, or run fewer threads.",
        "모든 스레드가 다음 주기(100ms)까지 기다려, 지연이 주기마다 오르내립니다. 쿼터를 올리거나 스레드를 줄이세요.",
    ),
    source: "Linux cgroup cpu.stat; lab.md B15, B16",
    check,
    fires: Example::with("events { }", |facts| facts.throttling = Some((1000, 200))),
    silent: Example::with("events { }", |facts| facts.throttling = Some((1000, 10))),
};

/// The periods of the quota, and those in which it stopped the process, if these are more than a few.
pub(super) fn often(facts: &Facts) -> Option<(u64, u64)> {
    // A share of few periods is not meaningful.
    facts.throttling.filter(|(periods, throttled)| *periods >= 100 && throttled * 20 > *periods)
}

fn check(case: &Case<'_>, found: &mut Findings) {
    if let Some((periods, throttled)) = often(case.facts) {
        let percent = throttled * 100 / periods;
        found.add(Finding::nowhere(said!(
            "{throttled} of {periods} periods ({percent} %) since the group began",
            "그룹이 생긴 뒤 {periods}주기 중 {throttled}주기({percent} %)"
        )));
    }
}
