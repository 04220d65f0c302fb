//! The running workers may open fewer files than they need.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "fd_limit_running",
    level: FindingLevel::Wrong,
    group: Group::Limits,
    symptoms: &[Symptom::ServerError, Symptom::WebSocket, Symptom::Limit],
    says: words(
        "A running worker may open fewer files than its connections need",
        "실행 중인 워커가 열 수 있는 파일이 필요한 연결보다 적습니다",
    ),
    remedy: words(
        "The limit of the worker process itself counts (/proc/PID/limits). Set `worker_rlimit_nofile` in nginx.conf, or LimitNOFILE= in a drop-in of the unit. A shell's ulimit and limits.conf do not apply to a service.",
        "워커 프로세스 자신의 한도(/proc/PID/limits)가 적용됩니다. nginx.conf의 `worker_rlimit_nofile`이나 유닛 드롭인의 LimitNOFILE=을 쓰세요. 셸의 ulimit과 limits.conf는 서비스에 적용되지 않습니다.",
    ),
    source: "systemd/systemd#1884; lab.md B07, 1-1, 1-2, 1-4",
    check,
    fires: Example::with("events { worker_connections 4096; }", |facts| facts.processes = vec![example(1024)]),
    silent: Example::with("events { worker_connections 4096; }", |facts| facts.processes = vec![example(65_535)]),
};

fn example(soft: u64) -> weir_host::Process {
    let files = Some(weir_host::FileLimit { soft, hard: soft });
    weir_host::Process { id: 7, command: "nginx: worker process".to_owned(), files, ..Default::default() }
}

/// Connections of a worker, and the files that they need.
pub(super) fn need(case: &Case<'_>) -> Option<(u64, u64)> {
    let written = case.view.named("worker_connections").find_map(|spot| spot.arg(0).parse::<u64>().ok());
    // weir's workers are threads of one process. Without the line, that process's limit on open files decides.
    let connections = written.or((!case.is_weir()).then_some(512))?;
    let connections =
        if case.is_weir() { connections.saturating_mul(super::headroom::workers(case)) } else { connections };
    let proxies = case.view.named("proxy_pass").next().is_some();
    Some((connections, connections.saturating_mul(if proxies { 2 } else { 1 })))
}

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some((connections, need)) = need(case) else { return };
    // weir is one process. nginx's master serves no clients.
    let workers = case.facts.processes.iter().filter(|process| !process.command.contains("master process"));
    let Some((worker, limit)) =
        workers.filter_map(|worker| Some((worker, worker.files?))).min_by_key(|(_, limit)| limit.soft)
    else {
        return;
    };
    if limit.soft >= need {
        return;
    }
    let set_by = match (case.view.root().get("worker_rlimit_nofile"), &case.facts.unit) {
        (Some(spot), _) => said!(
            "worker_rlimit_nofile in line {} (or the file was not reloaded)",
            "{}번째 줄의 worker_rlimit_nofile(또는 파일을 reload하지 않음)",
            spot.at().line
        ),
        (None, Some(unit)) => match &unit.limit {
            Some((value, file)) => said!("LimitNOFILE={value} in {file}", "{file}의 LimitNOFILE={value}"),
            None => said!(
                "systemd's default for {}, since no LimitNOFILE= is written",
                "LimitNOFILE=이 없어 {}의 systemd 기본값",
                unit.name
            ),
        },
        (None, None) => {
            said!(
                "the process that started it: it does not run in a systemd unit",
                "시작한 프로세스(systemd 유닛에 속하지 않음)"
            )
        }
    };
    let open = worker.open_files.map(|open| said!(", {open} open now", ", 지금 {open}개 열림")).unwrap_or_default();
    let may =
        said!("worker {} may open {} files", "워커 {}은(는) 파일을 {}개까지 열 수 있습니다", worker.id, limit.soft);
    let needs = said!(
        "; {connections} connections need {need}. Limit set by ",
        ". 연결 {connections}개에는 {need}개가 필요합니다. 한도를 정한 곳: "
    );
    let what = may + open + needs + set_by;
    let line = format!("worker_rlimit_nofile {need}");
    let root = case.view.root();
    let written = root.get("worker_rlimit_nofile");
    if written.and_then(|spot| spot.arg(0).parse::<u64>().ok()).is_some_and(|written| written >= need) {
        found.add(Finding::nowhere(what).write("nginx -s reload"));
        return;
    }
    let fix = match root.get("worker_rlimit_nofile") {
        Some(spot) => Some(edit::replace(spot.statement(), &line)),
        None => root.get("events").map(|events| {
            let start = events.at().span.start;
            edit::Edit {
                file: events.at().file,
                span: weir_conf::Span { start, end: start },
                with: format!("{line};\n").into_bytes(),
            }
        }),
    };
    found.add(Finding::nowhere(what).write(format!("{line};")).fix(fix));
}
