//! The running workers may open fewer files than they need.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "fd_limit_running",
    level: Level::Wrong,
    group: Group::Limits,
    says: words("A running worker may open fewer files than its connections need", "실행 중인 worker가 열 수 있는 파일이 필요한 연결보다 적습니다"),
    remedy: words(
        "It is the process's own limit that counts, /proc/PID/limits, per worker. `worker_rlimit_nofile` in nginx.conf, or LimitNOFILE= in a drop-in of the unit; a shell's ulimit and limits.conf reach neither.",
        "중요한 것은 프로세스 자신의 한도(/proc/PID/limits)이고 worker마다입니다. nginx.conf의 `worker_rlimit_nofile`이나 unit drop-in의 LimitNOFILE=을 쓰세요. 셸의 ulimit과 limits.conf는 닿지 않습니다.",
    ),
    source: "systemd/systemd#1884; lab.md B07, 1-1, 1-2, 1-4",
    check,
    fires: Example::with("events { worker_connections 4096; }", |facts| facts.processes = vec![example(1024)]),
    silent: Example::with("events { worker_connections 4096; }", |facts| facts.processes = vec![example(65_535)]),
};

fn example(soft: u64) -> weir_meter::host::Process {
    let files = Some(weir_meter::host::FileLimit { soft, hard: soft });
    weir_meter::host::Process { id: 7, command: "nginx: worker process".to_owned(), files, ..Default::default() }
}

fn check(case: &Case<'_>, found: &mut Found) {
    let connections = case.view.named("worker_connections").find_map(|spot| spot.arg(0).parse::<u64>().ok()).unwrap_or(512);
    let proxies = case.view.named("proxy_pass").next().is_some();
    let need = connections.saturating_mul(if proxies { 2 } else { 1 });
    // weir is one process; of nginx's, the master serves nobody.
    let workers = case.facts.processes.iter().filter(|process| !process.command.contains("master process"));
    let Some((worker, limit)) = workers.filter_map(|worker| Some((worker, worker.files?))).min_by_key(|(_, limit)| limit.soft) else { return };
    if limit.soft >= need {
        return;
    }
    let set_by = match (case.view.root().get("worker_rlimit_nofile"), &case.facts.unit) {
        (Some(spot), _) => format!("worker_rlimit_nofile in line {} (or the file was not reloaded)", spot.at().line),
        (None, Some(unit)) => match &unit.limit {
            Some((value, file)) => format!("LimitNOFILE={value} in {file}"),
            None => format!("systemd's default for {}, since no LimitNOFILE= is written", unit.name),
        },
        (None, None) => "whoever started it: it runs in no systemd unit".to_owned(),
    };
    let open = worker.open_files.map(|open| format!(", {open} open now")).unwrap_or_default();
    let what = format!("worker {} may open {} files{open}; {connections} connections need {need}. Set by {set_by}", worker.id, limit.soft);
    let line = format!("worker_rlimit_nofile {need}");
    let root = case.view.root();
    let fix = match root.get("worker_rlimit_nofile") {
        Some(spot) => Some(edit::replace(spot.statement(), &line)),
        None => root.get("events").map(|events| {
            let start = events.at().span.start;
            edit::Edit { file: events.at().file, span: weir_conf::Span { start, end: start }, with: format!("{line};\n").into_bytes() }
        }),
    };
    found.add(Finding::nowhere(what).write(format!("{line};")).fix(fix));
}
