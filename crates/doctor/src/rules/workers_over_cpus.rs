//! More workers than CPUs that they may use.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "workers_over_cpus",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words("There are more workers than CPUs that they may use", "쓸 수 있는 CPU보다 워커가 많습니다"),
    remedy: words(
        "The workers share the CPUs, and under a quota all of them stop together until the next period. nginx's `auto` counts the machine's CPUs and ignores a container's quota. Write the number (weir's `auto` respects both).",
        "워커들이 CPU를 나누어 쓰고, 쿼터가 있으면 다음 주기까지 모두 함께 멈춥니다. nginx의 `auto`는 머신의 CPU를 세고 컨테이너 쿼터는 무시합니다. 숫자로 쓰세요(weir의 `auto`는 둘 다 따릅니다).",
    ),
    source: "Linux cgroup cpu.max; nginx ngx_ncpu; lab.md B14, B15",
    check,
    fires: Example::with("worker_processes 8; events { }", |facts| facts.cpus = Some(2)),
    silent: Example::with("worker_processes 2; events { }", |facts| facts.cpus = Some(2)),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let (Some(cpus), Some(spot)) = (case.facts.cpus, case.view.root().get("worker_processes")) else { return };
    let auto = spot.arg(0) == "auto";
    // weir's auto counts the CPUs of the quota.
    if auto && case.is_weir() {
        return;
    }
    let workers = if auto { case.facts.cpus_present } else { spot.arg(0).parse().ok() };
    if let Some(workers) = workers.filter(|workers| *workers > cpus) {
        let some_cpus = format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" });
        let what = if auto {
            Said::of_both(
                format!("auto gives {workers} workers in nginx, but the control group allows {some_cpus}"),
                format!("nginx에서 auto는 워커 {workers}개인데 컨트롤 그룹은 CPU {cpus}개만 허용합니다"),
            )
        } else {
            Said::of_both(
                format!("{workers} workers for {some_cpus}"),
                format!("CPU {cpus}개에 워커 {workers}개입니다"),
            )
        };
        let line = format!("worker_processes {cpus}");
        let fix = edit::replace(spot.statement(), &line);
        found.add(Finding::at(spot, what).write(format!("{line};")).fix(Some(fix)));
    }
}
