//! Each request to an origin opens a connection.

use super::inert_upstream_keepalive::passes;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "upstream_without_keepalive",
    level: Level::Risk,
    group: Group::Speed,
    says: words("Every request to the origin opens a connection of its own", "원본 서버로 가는 요청마다 새 연결을 엽니다"),
    remedy: words(
        "That costs a handshake each and, when nginx closes first, a local port for 60 s: 28,232 ports are 470 requests a second to one origin, and then 502. `keepalive 32;` in the upstream, HTTP/1.1 and an empty Connection in the location.",
        "매번 핸드셰이크가 들고, nginx가 먼저 닫으면 로컬 포트가 60초 묶입니다. 포트 28,232개면 초당 470요청이 한계이고 그 뒤는 502입니다. upstream에 `keepalive 32;`, location에 HTTP/1.1과 빈 Connection을 쓰세요.",
    ),
    source: "nginx.org ngx_http_upstream_module, keepalive; lab.md B01, 2-4, 2-6, 3-5",
    check,
    fires: Example::with(
        "http { upstream a { server 10.0.0.1; } server { location / { proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 22, 1)),
    ),
    silent: Example::with(
        "http { upstream a { server 10.0.0.1; } server { location / { proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 29, 7)),
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    // From 1.29.7 on, `keepalive 32 local` and HTTP/1.1 are the default.
    if case.is_surely(Version(1, 29, 7)) {
        return;
    }
    let mut seen = std::collections::HashSet::new();
    for (pass, upstream) in passes(case) {
        if upstream.inside().get("keepalive").is_some() || !seen.insert(upstream.arg(0)) {
            continue;
        }
        let scope = pass.scope();
        let persists = scope.effective("proxy_http_version").is_some_and(|spot| spot.arg(0) == "1.1")
            && scope.effective_all("proxy_set_header").iter().any(|spot| spot.arg(0).eq_ignore_ascii_case("connection") && spot.arg(1).is_empty());
        let ports = case.facts.local_ports.unwrap_or(28_232);
        let servers = upstream.inside().named("server").count().max(1) as u64;
        let rate = ports * servers / 60;
        let (level, what) = if persists {
            (Level::Wrong, format!("HTTP/1.1 without a pool: nginx closes first and keeps the port for 60 s, so above {rate} requests a second to \"{}\" connect() fails with 99 and the client gets 502", upstream.arg(0)))
        } else {
            (Level::Risk, format!("\"{}\" has no keepalive: a handshake for every request", upstream.arg(0)))
        };
        let too_much = case.facts.load.rate.is_some_and(|load| persists && load > rate as f64);
        let what = if too_much { format!("{what}; {:.0} a second are expected", case.facts.load.rate.unwrap_or_default()) } else { what };
        let fix = upstream.inside().named("server").next_back().and_then(|server| edit::insert_after(case.tree(), server.statement(), "keepalive 32"));
        found.add_as(level, Finding::at(upstream, what).write("keepalive 32;").fix(fix));
    }
    // Addresses written into proxy_pass cannot keep anything before 1.29.7.
    for pass in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let Some((_, rest)) = pass.arg(0).split_once("://") else { continue };
        let authority = rest.split('/').next().unwrap_or_default();
        let is_group = case.view.upstream(authority).is_some();
        if !is_group && !authority.contains('$') && !authority.is_empty() && !authority.starts_with("unix:") {
            let what = format!("{authority} stands in proxy_pass itself, where nothing is kept open; it needs an upstream");
            found.add_as(Level::Note, Finding::at(pass, what).write(format!("upstream app {{ server {authority}; keepalive 32; }}")));
        }
    }
}
