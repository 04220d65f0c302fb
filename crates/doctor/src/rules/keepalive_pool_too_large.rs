//! More idle connections than there are concurrent requests.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "keepalive_pool_too_large",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[Symptom::Limit],
    says: words(
        "keepalive keeps more idle connections than a worker can use",
        "keepalive가 필요 이상으로 많은 유휴 연결을 유지합니다",
    ),
    remedy: words(
        "The number counts idle connections per worker, not per user, and it does not limit connections. A number above the concurrent requests of one worker brings no gain, and the connections hold threads and descriptors of the origin.",
        "워커마다의 유휴 연결 수이지, 사용자당 수도 연결 상한도 아닙니다. 워커의 동시 요청보다 많으면 이득 없이 오리진의 자원만 잡습니다.",
    ),
    source: "nginx.org ngx_http_upstream_module, keepalive; mattermost/mattermost-load-test-ng#297; lab.md 2-8, 2-9",
    check,
    fires: Example::conf("upstream a { server 10.0.0.1; keepalive 1024; }"),
    silent: Example::conf("upstream a { server 10.0.0.1; keepalive 64; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("keepalive").filter(|spot| spot.is_in("upstream")) {
        let Ok(kept) = spot.arg(0).parse::<u64>() else { continue };
        let workers = case.facts.cpus.unwrap_or(1) as f64;
        let need = case.facts.load.clients().map(|clients| (clients / workers * 1.2).ceil().max(1.0) as u64);
        let enough = need.map_or(512, |need| need.saturating_mul(4).max(64));
        if kept >= enough {
            let what = match need {
                Some(need) => said!(
                    "{kept} idle connections per worker, but the expected load needs {need}",
                    "워커당 유휴 연결 {kept}개이지만 예상 부하에는 {need}개면 됩니다"
                ),
                None => said!("{kept} idle connections per worker", "워커당 유휴 연결 {kept}개"),
            };
            let line = format!("keepalive {}", need.unwrap_or(64).max(16));
            let fix = need.map(|_| edit::replace(spot.statement(), &line));
            found.add(Finding::at(spot, what).write(format!("{line};")).fix(fix));
        }
    }
}
