//! An origin name that is resolved only once, or cannot be resolved at all.

use std::net::IpAddr;

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "missing_resolver",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway, Symptom::Timeout],
    says: words(
        "nginx resolves an origin's name once at start, or never",
        "오리진 이름을 시작할 때 한 번만 찾거나 아예 찾지 못합니다",
    ),
    remedy: words(
        "When the address changes (as with a cloud's load balancer), nginx sends requests to the old address until a reload. For a name in a variable, nginx needs `resolver`; without it every request gets 502. Write `server NAME resolve;` in an upstream with a `zone`, and add a `resolver`.",
        "주소가 바뀌어도(클라우드 로드밸런서) reload 전까지 옛 주소로 보냅니다. 변수로 된 이름은 `resolver`가 없으면 모두 502입니다. upstream에 `zone`과 `server NAME resolve;`를, 그리고 `resolver`를 쓰세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_pass; ngx_http_upstream_module, resolve; lab.md B45; gixy-ng missing_resolver",
    check,
    fires: Example::conf("location / { proxy_pass https://my-app.us-east-1.elb.amazonaws.com; }"),
    silent: Example::conf("location / { proxy_pass http://10.0.0.1:8080; }"),
};

/// Domain suffixes of names in private networks, which seldom change.
const OWN_NAMES: [&str; 22] = [
    "internal",
    "local",
    "localhost",
    "localdomain",
    "consul",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "test",
    "example",
    "invalid",
    "prod",
    "production",
    "staging",
    "stage",
    "svc",
    "cluster",
    "docker",
    "arpa",
    "default",
];

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let Some((_, rest)) = spot.arg(0).split_once("://") else { continue };
        let authority = rest.split('/').next().unwrap_or_default();
        if authority.contains('$') {
            by_variable(case, spot, authority, found);
            continue;
        }
        // With a variable anywhere, nginx resolves the name at each request.
        if !spot.arg(0).contains('$') && is_upstream(case, authority).is_none() && is_public(authority) {
            found.add(once(spot, authority));
        }
    }
    for upstream in case.view.named("upstream").filter(|spot| spot.is_block()) {
        for server in upstream.inside().named("server").filter(|server| !server.says("resolve")) {
            if is_public(server.arg(0)) {
                found.add(once(server, server.arg(0)));
            }
        }
    }
}

fn once(spot: Spot<'_>, name: &str) -> Finding {
    let what = said!("nginx resolves {} at start and never again", "시작할 때 한 번만 조회하는 이름: {}", host(name));
    Finding::at(spot, what).write(format!("server {} resolve;", name))
}

fn by_variable(case: &Case<'_>, spot: Spot<'_>, authority: &str, found: &mut Findings) {
    let Some(name) = authority.strip_prefix('$') else { return };
    let name = name.trim_matches(['{', '}']);
    let Some(set) = case.view.sets(name).next() else { return };
    if spot.scope().effective("resolver").is_none() && is_upstream(case, set.arg(1)).is_none() && is_public(set.arg(1))
    {
        let what = said!(
            "{} comes from a variable and there is no resolver: nginx answers every request with 502",
            "주소를 변수에서 얻지만({}) resolver가 없어 모든 요청에 502로 응답합니다",
            set.arg(1)
        );
        found.add_as(FindingLevel::Wrong, Finding::at(spot, what).write("resolver 127.0.0.53 valid=30s;"));
    }
}

fn is_upstream<'v>(case: &Case<'v>, name: &str) -> Option<Spot<'v>> {
    case.view.upstream(name)
}

/// The name without its port.
fn host(address: &str) -> &str {
    address
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))
        .map_or(address, |(host, _)| host)
}

/// Whether a name is in public DNS, where its addresses may change.
fn is_public(address: &str) -> bool {
    let name = host(address).trim_end_matches('.').to_ascii_lowercase();
    let is_address = name.parse::<IpAddr>().is_ok() || name.starts_with('[') || name.starts_with("unix");
    let Some((_, end)) = name.rsplit_once('.') else { return false };
    let is_name = end.bytes().any(|byte| byte.is_ascii_alphabetic());
    !is_address && is_name && !OWN_NAMES.contains(&end) && !name.ends_with(".home.arpa")
}
