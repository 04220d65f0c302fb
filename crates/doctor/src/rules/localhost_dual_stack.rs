//! `localhost` as an origin: two addresses.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "localhost_dual_stack",
    level: Level::Risk,
    group: Group::Works,
    says: words(
        "localhost may be two origins, one of which refuses",
        "localhost가 두 개의 오리진이 되고 하나는 거절할 수 있습니다",
    ),
    remedy: words(
        "nginx takes 127.0.0.1 and ::1 as two servers. An application that listens on one of them refuses every second try: errors in the log, an ejected peer, a retry's time. Write the address.",
        "nginx는 127.0.0.1과 ::1을 두 서버로 봅니다. 하나만 듣는 앱은 시도의 절반을 거절합니다. 주소를 직접 쓰세요.",
    ),
    source: "nginx.org ngx_http_upstream_module, server; lab.md B45, 4-3",
    check,
    fires: Example::conf("upstream a { server localhost:80; }"),
    silent: Example::with("upstream a { server localhost:80; }", |facts| facts.localhost_is_dual = Some(false)),
};

fn check(case: &Case<'_>, found: &mut Found) {
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
