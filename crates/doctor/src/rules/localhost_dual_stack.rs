//! `localhost` as an origin: two addresses.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "localhost_dual_stack",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway],
    says: words(
        "localhost may be two origins, and one of them may refuse connections",
        "localhost가 두 개의 오리진이 되고 하나는 거절할 수 있습니다",
    ),
    remedy: words(
        "nginx uses 127.0.0.1 and ::1 as two servers. If the application listens on only one, every second try fails: nginx logs errors, marks one server as unavailable and needs time for retries. Write the address.",
        "nginx는 127.0.0.1과 ::1을 두 서버로 씁니다. 앱이 한 주소에서만 리슨하면 시도의 절반이 실패합니다: nginx가 오류를 기록하고, 서버 하나를 사용 불가로 표시하고, 재시도에 시간을 씁니다. 주소를 직접 쓰세요.",
    ),
    source: "nginx.org ngx_http_upstream_module, server; lab.md B45, 4-3",
    check,
    fires: Example::conf("upstream a { server localhost:80; }"),
    silent: Example::with("upstream a { server localhost:80; }", |facts| facts.localhost_is_dual = Some(false)),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    if case.facts.localhost_is_dual == Some(false) {
        return;
    }
    let is_local = |address: &str| address == "localhost" || address.starts_with("localhost:");
    for spot in case.view.all() {
        let address = match spot.name() {
            "server" if !spot.is_block() => spot.arg(0),
            "proxy_pass" => {
                spot.arg(0).split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default())
            }
            _ => continue,
        };
        if is_local(address) {
            let line = spot.line().replacen("localhost", "127.0.0.1", 1);
            let fix = edit::replace(spot.statement(), &line);
            found.add(
                Finding::at(spot, said!("localhost is 127.0.0.1 and ::1", "localhost는 127.0.0.1과 ::1입니다"))
                    .write(format!("{line};"))
                    .fix(Some(fix)),
            );
        }
    }
}
