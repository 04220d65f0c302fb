//! A single failed try takes a server out for ten seconds.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "passive_ejection",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway],
    says: words(
        "After one failure nginx does not use a server for 10 s, and the other servers take its load",
        "실패 한 번이면 nginx가 서버를 10초 동안 쓰지 않고, 나머지 서버가 그 부하를 받습니다",
    ),
    remedy: words(
        "The defaults are max_fails=1 fail_timeout=10s: under load, failures can make one server after the other unavailable, until nginx logs \"no live upstreams\". Write `max_fails=3 fail_timeout=5s`.",
        "기본값이 max_fails=1 fail_timeout=10s라서 부하 중에는 실패가 한 번 날 때마다 서버가 하나씩 빠지고, 결국 nginx가 \"no live upstreams\"를 기록합니다. `max_fails=3 fail_timeout=5s`로 쓰세요.",
    ),
    source: "nginx.org ngx_http_upstream_module, server; lab.md B27, 3-15",
    check,
    fires: Example::conf("upstream a { server 10.0.0.1; server 10.0.0.2; }"),
    silent: Example::conf("upstream a { server 10.0.0.1 max_fails=3; server 10.0.0.2 max_fails=3; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for upstream in case.view.named("upstream").filter(|spot| spot.is_block()) {
        let servers: Vec<Spot<'_>> = upstream.inside().named("server").filter(|server| !server.says("down")).collect();
        let plain = servers.iter().filter(|server| !server.args().any(|arg| arg.starts_with("max_fails="))).count();
        if servers.len() > 1 && plain == servers.len() {
            let mut finding = Finding::at(
                upstream,
                said!(
                    "{} servers of \"{}\" have the defaults",
                    "server {}개가 \"{}\"에서 기본값을 씁니다",
                    servers.len(),
                    upstream.arg(0)
                ),
            );
            if let Some(first) = servers.first() {
                finding = finding.write(format!("{} max_fails=3 fail_timeout=5s;", first.line()));
            }
            for server in &servers {
                finding = finding.fix(Some(edit::replace(
                    server.statement(),
                    &format!("{} max_fails=3 fail_timeout=5s", server.line()),
                )));
            }
            found.add(finding);
        }
    }
}
