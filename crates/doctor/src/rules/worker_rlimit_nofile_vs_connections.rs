//! `worker_connections` that the limit on open files does not allow.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "worker_rlimit_nofile_vs_connections",
    level: FindingLevel::Risk,
    group: Group::Limits,
    symptoms: &[Symptom::ServerError, Symptom::WebSocket, Symptom::Limit],
    says: words(
        "A worker may open fewer files than its connections need",
        "워커가 열 수 있는 파일이 연결에 필요한 수보다 적습니다",
    ),
    remedy: words(
        "A proxied client takes two descriptors. When a worker has no descriptor left, nginx stops accepting for half a second at a time and answers requests with 500. Set `worker_rlimit_nofile` to twice worker_connections. The system needs no change, because the master runs as root.",
        "프록시되는 클라이언트는 디스크립터를 두 개 씁니다. 워커에 디스크립터가 남지 않으면 nginx가 0.5초씩 accept를 멈추고 요청에 500으로 응답합니다. `worker_rlimit_nofile`을 worker_connections의 두 배로 두세요. master가 root로 실행되므로 시스템을 바꿀 필요가 없습니다.",
    ),
    source: "nginx.org ngx_core_module; lab.md B07, 1-4; gixy-ng worker_rlimit_nofile_vs_connections",
    check,
    fires: Example::conf("worker_rlimit_nofile 1024; events { worker_connections 1024; }"),
    silent: Example::conf("worker_rlimit_nofile 2048; events { worker_connections 1024; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(connections) =
        case.view.named("worker_connections").find_map(|spot| Some((spot, spot.arg(0).parse::<u64>().ok()?)))
    else {
        return;
    };
    let (spot, connections) = connections;
    let need = connections.saturating_mul(2);
    let line = format!("worker_rlimit_nofile {need}");
    match case.view.named("worker_rlimit_nofile").next() {
        Some(limit) => {
            let written = limit.arg(0).parse::<u64>().unwrap_or(u64::MAX);
            if written < need {
                let what = said!(
                    "{written} files for {connections} connections: enough for {} proxied clients",
                    "연결 {connections}개에 파일 {written}개: 프록시하면 클라이언트 {}명입니다",
                    written / 2
                );
                let fix = edit::replace(limit.statement(), &line);
                found.add(Finding::at(limit, what).write(format!("{line};")).fix(Some(fix)));
            }
        }
        // If a worker runs, its own limit is more accurate, and another rule checks it. weir raises its soft limit to
        // the hard limit by itself.
        None if case.facts.processes.is_empty() && !case.is_weir() => {
            let root = spot.scope().opener().map_or(spot, |events| events);
            let what = said!(
                "{connections} connections may take {need} files; without worker_rlimit_nofile, the limit of the process that starts nginx applies, often 1024",
                "연결 {connections}개에 파일 {need}개가 필요할 수 있습니다. worker_rlimit_nofile이 없으면 nginx를 시작한 프로세스의 한도(흔히 1024)가 적용됩니다"
            );
            let fix = edit::insert_after(case.tree(), root.statement(), &line);
            found.add_as(FindingLevel::Note, Finding::at(spot, what).write(format!("{line};")).fix(fix));
        }
        None => {}
    }
}
