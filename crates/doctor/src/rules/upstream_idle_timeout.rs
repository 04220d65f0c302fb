//! The edge keeps connections longer than the origin does.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "upstream_idle_timeout",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway],
    says: words(
        "nginx keeps idle connections longer than Node.js does",
        "nginx가 유휴 연결을 Node.js보다 오래 유지합니다",
    ),
    remedy: words(
        "Node closes an idle connection after 5 or 6 s, by its version. If nginx sends a request at that moment, the client gets 502, and the log has \"upstream prematurely closed\" or \"Connection reset by peer\". Write `keepalive_timeout 4s;` in the upstream, or raise server.keepAliveTimeout in Node above nginx's value.",
        "Node는 유휴 연결을 버전에 따라 5초나 6초 뒤에 닫습니다. nginx가 그 순간 요청을 보내면 클라이언트가 502를 받고, 로그에는 \"upstream prematurely closed\"나 \"Connection reset by peer\"가 남습니다. upstream에 `keepalive_timeout 4s;`를 쓰거나 Node의 server.keepAliveTimeout을 nginx의 값보다 크게 하세요.",
    ),
    source: "nginx.org ngx_http_upstream_module, keepalive_timeout; Node.js http, server.keepAliveTimeout; lab.md B04",
    check,
    fires: Example::with("upstream a { server 127.0.0.1:3000; keepalive 16; }", |facts| {
        facts.neighbours = vec![node()]
    }),
    silent: Example::with("upstream a { server 127.0.0.1:3000; keepalive 16; keepalive_timeout 4s; }", |facts| {
        facts.neighbours = vec![node()]
    }),
};

/// A Node.js process for examples.
pub fn node() -> weir_host::Process {
    weir_host::Process { id: 9, command: "node app.js".to_owned(), ..Default::default() }
}

/// The default of Node.js' `server.keepAliveTimeout`. Newer versions close a second later.
const NODE_SECONDS: u64 = 5;

fn check(case: &Case<'_>, found: &mut Findings) {
    // weir reads the time from the field Keep-Alive of Node's answers.
    if case.facts.neighbours.is_empty() || case.is_weir() {
        return;
    }
    for upstream in case.view.named("upstream").filter(|spot| spot.is_block()) {
        let inside = upstream.inside();
        let is_here = |server: &Spot<'_>| server.arg(0).starts_with("127.") || server.arg(0).starts_with("localhost");
        let Some(keepalive) = inside.get("keepalive").filter(|_| inside.named("server").any(|server| is_here(&server)))
        else {
            continue;
        };
        let written = inside.get("keepalive_timeout");
        let seconds =
            written.map_or(Some(60), |spot| weir_http::text::value::time_of(spot.arg(0)).map(|time| time.as_secs()));
        if seconds.is_some_and(|seconds| seconds >= NODE_SECONDS) {
            let what = said!(
                "nginx keeps idle connections for up to {} s, and Node processes run on this machine",
                "유휴 연결을 최대 {}초 유지하고, 이 머신에서 Node 프로세스가 실행 중입니다",
                seconds.unwrap_or(60)
            );
            let line = "keepalive_timeout 4s";
            let fix = match written {
                Some(spot) => Some(edit::replace(spot.statement(), line)),
                None => edit::insert_after(case.tree(), keepalive.statement(), line),
            };
            found.add(Finding::at(written.unwrap_or(keepalive), what).write(format!("{line};")).fix(fix));
        }
    }
}
