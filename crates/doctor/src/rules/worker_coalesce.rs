//! The machine limits weir's CPU time, and weir may save some.

use crate::rule::prelude::*;

/// From this share of its CPUs' time that the hypervisor took, a machine has fewer CPUs than it seems to.
const STOLEN_MIN: f64 = 0.05;

pub static RULE: Rule = Rule {
    id: "worker_coalesce",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words(
        "CPU time is the limit here, and worker_coalesce saves a part of it",
        "CPU 시간이 한도입니다. worker_coalesce로 일부를 아낄 수 있습니다",
    ),
    remedy: words(
        "One wake-up of a worker then serves several requests. With auto, a request waits up to a fiftieth of its time for that. Compare both under your own load: `weir lab ab`.",
        "그러면 워커가 한 번 깨어나 여러 요청을 처리합니다. auto에서는 요청이 자기 시간의 최대 50분의 1만큼 기다립니다. 직접 만든 부하로 비교하세요: `weir lab ab`.",
    ),
    source: "docs/guide/coalescing.md",
    check,
    fires: Example::with("dashboard 127.0.0.1:8081; events { } http { }", |facts| facts.throttling = Some((1000, 200))),
    silent: Example::with("worker_coalesce off; events { } http { }", |facts| facts.throttling = Some((1000, 200))),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    // If the file has the line, its author has decided, also with `off`.
    if !case.is_weir() || !case.view.is_whole() || case.view.root().get("worker_coalesce").is_some() {
        return;
    }
    let stolen = case.facts.stolen.filter(|share| *share >= STOLEN_MIN);
    let what = match (super::cpu_throttled::often(case.facts), stolen) {
        (Some((periods, throttled)), _) => said!(
            "the quota stopped the process in {throttled} of {periods} periods",
            "쿼터가 {periods}주기 중 {throttled}주기에서 프로세스를 멈췄습니다"
        ),
        (None, Some(share)) => {
            let percent = (share * 100.0).round();
            said!(
                "the hypervisor took {percent} % of the CPUs' time since the start, as it does without CPU credits",
                "하이퍼바이저가 시작 이후 CPU 시간의 {percent} %를 가져갔습니다. CPU 크레딧이 없으면 그렇게 됩니다"
            )
        }
        (None, None) => return,
    };
    found.add(Finding::nowhere(what).write("worker_coalesce auto;"));
}

#[cfg(test)]
mod tests {
    use crate::facts::Facts;
    use crate::target::Target;

    /// Whether the rule speaks about a file on a machine whose hypervisor took this share.
    fn speaks(target: Target, stolen: f64) -> bool {
        let files = weir_conf::MemoryFiles::new().with("/example", "events { } http { }");
        let (tree, _) = crate::load(&files, "/example", "/");
        let facts = Facts { stolen: Some(stolen), ..Facts::default() };
        crate::examine(&tree, target, &facts).iter().any(|finding| finding.rule == super::RULE.id)
    }

    #[test]
    fn it_is_about_machines_without_credits_and_about_weir() {
        assert!(speaks(Target::Weir, 0.3));
        assert!(!speaks(Target::Weir, 0.01));
        assert!(!speaks(crate::NEWEST.into(), 0.3), "nginx has no such directive");
    }
}
