//! WebSockets that are silent for a minute are closed.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "websocket_timeout",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[Symptom::WebSocket],
    says: words(
        "nginx closes a WebSocket that is silent for proxy_read_timeout",
        "nginx는 proxy_read_timeout 동안 메시지가 없는 WebSocket을 닫습니다",
    ),
    remedy: words(
        "proxy_read_timeout is the time between two reads from the origin, and it also applies after 101. keepalive_timeout does not. Let the origin send pings more often (Socket.IO: every 25 s), or raise proxy_read_timeout for this location.",
        "proxy_read_timeout은 오리진에서 읽는 간격이고 101 뒤에도 적용됩니다. keepalive_timeout은 적용되지 않습니다. 오리진이 더 자주 ping을 보내게 하거나(Socket.IO: 25초마다) 이 location의 proxy_read_timeout을 늘리세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_read_timeout; lab.md B39, 0-8, 0-9, 0-16",
    check,
    fires: Example::conf("server { location / { proxy_set_header Upgrade $http_upgrade; proxy_pass http://a; } }"),
    silent: Example::conf(
        "server { location / { proxy_set_header Upgrade $http_upgrade; proxy_read_timeout 1h; proxy_pass http://a; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for pass in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let scope = pass.scope();
        let upgrades =
            scope.effective_all("proxy_set_header").iter().any(|spot| spot.arg(0).eq_ignore_ascii_case("upgrade"));
        let written = scope.effective("proxy_read_timeout");
        let timeout =
            written.map_or(Some(60), |spot| weir_http::text::value::time_of(spot.arg(0)).map(|time| time.as_secs()));
        if upgrades && timeout.is_some_and(|seconds| seconds <= 60) {
            let what = said!(
                "nginx closes it after {} s without a message from the origin",
                "오리진의 메시지가 {}초 동안 없으면 nginx가 닫습니다",
                timeout.unwrap_or(60)
            );
            found.add(Finding::at(written.unwrap_or(pass), what).write("proxy_read_timeout 1h;"));
        }
    }
}
