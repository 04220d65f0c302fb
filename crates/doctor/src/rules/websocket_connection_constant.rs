//! `Connection: upgrade` on requests that do not upgrade.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "websocket_connection_constant",
    level: Level::Note,
    group: Group::Speed,
    says: words(
        "nginx sends Connection: upgrade with every request, so it keeps no connection to the origin",
        "nginx가 모든 요청에 Connection: upgrade를 보내 오리진 연결을 재사용하지 못합니다",
    ),
    remedy: words(
        "nginx keeps a connection open only if plain requests have an empty Connection: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
        "일반 요청은 Connection이 비어야 연결이 유지됩니다: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
    ),
    source: "nginx.org, WebSocket proxying; RFC 9110 §7.8",
    check,
    fires: Example::conf("server { location / { proxy_set_header Connection upgrade; proxy_pass http://a; } }"),
    silent: Example::conf(
        "server { location / { proxy_set_header Connection $connection_upgrade; proxy_pass http://a; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.named("proxy_set_header") {
        // A location only for WebSockets has no plain requests.
        let path = spot.scope().location().map(|location| location.text()).unwrap_or_default();
        let is_own = ["socket", "/ws", "cable"].iter().any(|word| path.contains(word));
        if spot.arg(0).eq_ignore_ascii_case("connection") && spot.arg(1).eq_ignore_ascii_case("upgrade") && !is_own {
            let line = "proxy_set_header Connection $connection_upgrade";
            let mut finding = Finding::at(
                spot,
                said!("this includes requests that are not WebSockets", "WebSocket이 아닌 요청도 포함됩니다"),
            )
            .write(format!("{line};"));
            if case.view.named("map").any(|map| map.arg(1) == "$connection_upgrade") {
                finding = finding.fix(Some(edit::replace(spot.statement(), line)));
            }
            found.add(finding);
        }
    }
}
