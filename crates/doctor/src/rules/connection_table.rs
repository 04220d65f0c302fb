//! The number of clients that `worker_connections` allows.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "connection_table",
    level: FindingLevel::Note,
    group: Group::Limits,
    symptoms: &[Symptom::ServerError, Symptom::WebSocket, Symptom::Limit],
    says: words(
        "worker_connections counts both sides: a proxied client takes two connections",
        "worker_connections는 양쪽을 다 셉니다: 프록시되는 클라이언트 하나가 연결 두 개를 씁니다",
    ),
    remedy: words(
        "Connections to origins count as well. If active requests fill the table, nginx resets new clients (\"worker_connections are not enough\"). If idle keep-alive clients fill 15/16 of it, nginx closes some of them without a message, and each of those clients needs a new TLS handshake.",
        "오리진으로의 연결도 셉니다. 처리 중인 요청이 테이블을 채우면 nginx가 새 클라이언트를 끊습니다(\"worker_connections are not enough\"). 유휴 keep-alive 클라이언트가 15/16을 채우면 nginx가 그중 일부를 메시지 없이 닫고, 그 클라이언트는 TLS 핸드셰이크를 다시 합니다.",
    ),
    source: "nginx ngx_drain_connections; lab.md B05, B06, 0-3, 3-6",
    check,
    fires: Example::with(
        "events { worker_connections 1024; } http { server { location / { proxy_pass http://10.0.0.1; } } }",
        |facts| facts.load.clients = Some(900.0),
    ),
    silent: Example::with(
        "events { worker_connections 8192; } http { server { location / { proxy_pass http://10.0.0.1; } } }",
        |facts| facts.load.clients = Some(900.0),
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let proxies = case.view.named("proxy_pass").any(|spot| !spot.is_in("stream"));
    if !proxies {
        return;
    }
    let written = case.view.named("worker_connections").find_map(|spot| Some((spot, spot.arg(0).parse::<u64>().ok()?)));
    // Without the line, weir's limit is the limit on open files, which is unknown here.
    let Some(limit) = written.map(|(_, limit)| limit).or((!case.is_weir()).then_some(512)) else { return };
    let workers = super::headroom::workers(case);
    let need = case.facts.load.clients().map(|clients| (clients * 2.0).ceil() as u64);
    let slots = limit.saturating_mul(workers);
    let spot = written.map(|(spot, _)| spot).or_else(|| case.view.root().get("events"));
    let at = spot.map(Spot::at);
    let write = |number: u64| format!("worker_connections {number};");
    match need {
        Some(need) if need > slots => {
            let enough = (need * 2 / workers.max(1)).next_power_of_two();
            let what = said!(
                "{:.0} clients take up to {need} connections, and there are {slots}",
                "클라이언트 {:.0}명이 연결을 최대 {need}개 쓰지만 {slots}개뿐입니다",
                need as f64 / 2.0
            );
            let fix = written.map(|(spot, _)| edit::replace(spot.statement(), &format!("worker_connections {enough}")));
            found.add_as(FindingLevel::Wrong, Finding { at, ..Finding::nowhere(what) }.write(write(enough)).fix(fix));
        }
        Some(_) => {}
        // Without a load there is nothing to compare with. For small tables, the calculation is still useful.
        None if limit <= 1024 && !case.is_weir() => {
            let what = said!(
                "{limit} connections of a worker are enough for {} proxied clients at once, or for {} idle clients before nginx closes some",
                "워커당 {limit}개는 동시에 프록시되는 클라이언트 {}명, 또는 nginx가 닫기 전까지 유휴 클라이언트 {}명입니다",
                limit / 2,
                limit - limit / 16
            );
            found.add(Finding { at, ..Finding::nowhere(what) }.write("# weir doctor --clients N"));
        }
        None => {}
    }
}
