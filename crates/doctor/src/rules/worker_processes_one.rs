//! One worker on a machine with several CPUs.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "worker_processes_one",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words("One worker uses one CPU, even if the machine has more", "CPU가 몇 개든 워커 하나는 CPU 하나만 씁니다"),
    remedy: words(
        "A worker is one thread. A larger machine is not faster without `worker_processes auto;`.",
        "워커는 스레드 하나입니다. `worker_processes auto;`가 아니면 더 큰 서버로 옮겨도 빨라지지 않습니다.",
    ),
    source: "nginx.org ngx_core_module, worker_processes; lab.md B12, 3-1",
    check,
    fires: Example::conf("worker_processes 1; events { } http { }"),
    silent: Example::with("worker_processes 1; events { } http { }", |facts| facts.cpus = Some(1)),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    if case.facts.cpus == Some(1) || !case.view.is_whole() {
        return;
    }
    let cpus = case
        .facts
        .cpus
        .map_or(said!("the machine may have more CPUs", "머신의 CPU 수와 관계없습니다"), |cpus| {
            said!("this machine has {cpus} CPUs", "CPU는 {cpus}개입니다")
        });
    match case.view.root().get("worker_processes") {
        Some(spot) if spot.arg(0) == "1" => {
            let fix = edit::replace(spot.statement(), "worker_processes auto");
            found.add(
                Finding::at(spot, said!("one worker; ", "워커가 하나입니다. ") + cpus)
                    .write("worker_processes auto;")
                    .fix(Some(fix)),
            );
        }
        None if !case.is_weir() => {
            let first = case.view.root().statements().next();
            let fix = first.map(|first| {
                let start = first.at().span.start;
                edit::Edit {
                    file: first.at().file,
                    span: weir_conf::Span { start, end: start },
                    with: b"worker_processes auto;\n".to_vec(),
                }
            });
            let what = said!(
                "worker_processes is not set, and its default is 1; ",
                "worker_processes가 없어 기본값 1입니다. "
            ) + cpus;
            found.add(
                Finding { at: first.map(Spot::at), ..Finding::nowhere(what) }.write("worker_processes auto;").fix(fix),
            );
        }
        Some(_) | None => {}
    }
}
