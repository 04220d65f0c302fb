//! TLS without a session cache.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "ssl_session_cache_missing",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words(
        "nginx stores no TLS sessions: a returning client does a full handshake",
        "nginx가 TLS 세션을 저장하지 않아, 다시 온 클라이언트도 전체 핸드셰이크를 합니다",
    ),
    remedy: words(
        "nginx stores no sessions by default. Clients that do not use tickets (many load generators and libraries) do a full handshake for every connection. `ssl_session_cache shared:SSL:10m;` stores about 40,000 sessions.",
        "nginx는 기본값으로 세션을 저장하지 않습니다. 티켓을 쓰지 않는 클라이언트(많은 부하 도구와 라이브러리)는 연결마다 전체 핸드셰이크를 합니다. `ssl_session_cache shared:SSL:10m;`은 약 4만 세션을 저장합니다.",
    ),
    source: "nginx.org ngx_http_ssl_module, ssl_session_cache; lab.md B17, 3-14",
    check,
    fires: Example::conf("http { server { listen 443 ssl; } }"),
    silent: Example::conf("http { ssl_session_cache shared:SSL:10m; server { listen 443 ssl; } }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let mut servers = case.view.servers().filter(|server| server.named("listen").any(|listen| listen.says("ssl")));
    let bare = servers.find(|server| {
        let refuses = server.get("ssl_reject_handshake").is_some_and(|spot| spot.arg(0) == "on");
        !refuses && server.effective("ssl_session_cache").is_none_or(|spot| matches!(spot.arg(0), "off" | "none"))
    });
    let Some(listen) = bare.and_then(|server| server.named("listen").find(|listen| listen.says("ssl"))) else { return };
    let line = "ssl_session_cache shared:SSL:10m";
    let written = listen.scope().effective("ssl_session_cache");
    let fix = match written {
        Some(spot) => Some(edit::replace(spot.statement(), line)),
        None => edit::insert_after(case.tree(), listen.statement(), line),
    };
    found.add(
        Finding::at(listen, said!("no ssl_session_cache is in force", "적용되는 ssl_session_cache가 없습니다"))
            .write(format!("{line};"))
            .fix(fix),
    );
}
