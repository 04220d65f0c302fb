//! `keepalive_timeout` that was set for WebSockets.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "keepalive_timeout_websocket",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[Symptom::WebSocket],
    says: words("keepalive_timeout has no effect on WebSockets", "keepalive_timeout은 WebSocket에 효과가 없습니다"),
    remedy: words(
        "keepalive_timeout is the time that an idle HTTP connection waits for its next request. It never applies after 101. For a WebSocket without messages, set proxy_read_timeout.",
        "keepalive_timeout은 유휴 HTTP 연결이 다음 요청을 기다리는 시간이며 101 뒤에는 적용되지 않습니다. 메시지가 없는 WebSocket에는 proxy_read_timeout을 설정하세요.",
    ),
    source: "nginx.org ngx_http_core_module, keepalive_timeout; lab.md 0-9",
    check,
    fires: Example::conf(
        "server { location /ws { keepalive_timeout 600s; proxy_set_header Upgrade $http_upgrade; proxy_pass http://a; } }",
    ),
    silent: Example::conf("server { location / { keepalive_timeout 600s; proxy_pass http://a; } }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("keepalive_timeout").filter(|spot| !spot.is_in("upstream")) {
        // A whole http block has plain requests too. A block in which every location upgrades has none.
        let passes: Vec<Spot<'_>> = spot.scope().all().filter(|spot| spot.name() == "proxy_pass").collect();
        let upgrades = |pass: &Spot<'_>| {
            pass.scope()
                .effective_all("proxy_set_header")
                .iter()
                .any(|spot| spot.arg(0).eq_ignore_ascii_case("upgrade"))
        };
        if !passes.is_empty() && passes.iter().all(upgrades) {
            found.add(Finding::at(
                spot,
                said!(
                    "every location with this value upgrades its connections",
                    "이 값이 적용되는 모든 location이 연결을 업그레이드합니다"
                ),
            ));
        }
    }
}
