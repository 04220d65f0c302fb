//! `keepalive` in an upstream, but requests to it have `Connection: close`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "inert_upstream_keepalive",
    level: Level::Wrong,
    group: Group::Speed,
    says: words("nginx never uses the keepalive of this upstream", "upstream의 keepalive가 전혀 쓰이지 않습니다"),
    remedy: words(
        "Before 1.29.7, nginx sends HTTP/1.0 and \"Connection: close\" to origins unless both lines are there: `proxy_http_version 1.1;` and `proxy_set_header Connection \"\";`.",
        "1.29.7 이전의 nginx는 두 줄 `proxy_http_version 1.1;`과 `proxy_set_header Connection \"\";`이 없으면 HTTP/1.0과 \"Connection: close\"로 요청합니다.",
    ),
    source: "nginx.org ngx_http_upstream_module, keepalive; nginx CHANGES 1.29.7; lab.md B02, 2-7, E2d",
    check,
    fires: Example::with(
        "http { upstream a { server 10.0.0.1; keepalive 64; } server { location / { proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 22, 1)),
    ),
    silent: Example::with(
        "http { upstream a { server 10.0.0.1; keepalive 64; } server { location / { proxy_http_version 1.1; proxy_set_header Connection ''; proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 22, 1)),
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    if case.is_surely(Version(1, 29, 7)) {
        return;
    }
    for (pass, upstream) in passes(case) {
        if upstream.inside().get("keepalive").is_none() {
            continue;
        }
        let scope = pass.scope();
        let version = scope.effective("proxy_http_version").is_some_and(|spot| spot.arg(0) != "1.0");
        let headers = scope.effective_all("proxy_set_header");
        let connection = headers.iter().find(|spot| spot.arg(0).eq_ignore_ascii_case("connection"));
        // A map on $http_upgrade may give an empty value for plain requests.
        let open = connection.is_some_and(|spot| spot.arg(1).is_empty() || spot.arg(1).contains('$'));
        let missing = match (version, open) {
            (true, true) => continue,
            (false, true) => vec!["proxy_http_version 1.1"],
            (true, false) => vec!["proxy_set_header Connection \"\""],
            (false, false) => vec!["proxy_http_version 1.1", "proxy_set_header Connection \"\""],
        };
        let lines: Vec<String> = missing.iter().map(|line| format!("{line};")).collect();
        let what = said!(
            "each request to \"{}\" opens and closes a connection: keepalive {} has no connection to keep",
            "\"{}\"(으)로 가는 요청마다 연결을 열고 닫습니다. keepalive {}이(가) 유지할 연결이 없습니다",
            upstream.arg(0),
            upstream.inside().get("keepalive").map_or("", |spot| spot.arg(0))
        );
        let mut finding = Finding::at(pass, what).write(lines.join(" "));
        // If the nginx version is unknown, it may be new enough.
        let level = if case.facts.version_is_told.is_some() { RULE.level } else { Level::Risk };
        let adds_header = missing.len() == 2 || !version || !open;
        // A first proxy_set_header here would drop those of the outer blocks.
        let drops = !headers.is_empty() && headers.iter().all(|spot| !spot.scope().is(scope));
        if adds_header && !drops && connection.is_none() {
            finding = finding.fix(edit::insert_after(case.tree(), pass.statement(), &missing.join("\n")));
        }
        found.add_as(level, finding);
    }
}

/// Each `proxy_pass` to an upstream of this file, with that upstream.
pub fn passes<'v>(case: &Case<'v>) -> Vec<(Spot<'v>, Spot<'v>)> {
    let pass = case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream"));
    pass.filter_map(|spot| {
        let (_, rest) = spot.arg(0).split_once("://")?;
        let name = rest.split('/').next()?;
        Some((spot, case.view.upstream(name)?))
    })
    .collect()
}
