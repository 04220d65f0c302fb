//! A cache whose key is empty: every request gets the first answer.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "cache_without_key",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "The cache has no key, so every URL gets the same answer",
        "캐시에 키가 없어 모든 URL에 같은 응답이 나갑니다",
    ),
    remedy: words(
        "Only proxy_cache_key has a default. nginx starts with a warning, stores the first answer, and gives it to all clients for all URLs. Write the key.",
        "기본값이 있는 것은 proxy_cache_key뿐입니다. nginx는 경고만 하고 시작해 처음 저장한 응답을 모든 클라이언트의 모든 URL에 줍니다. 키를 쓰세요.",
    ),
    source: "nginx.org ngx_http_fastcgi_module, fastcgi_cache_key; nginx's message \"no \\\"fastcgi_cache_key\\\" for \\\"fastcgi_cache\\\"\"",
    check,
    fires: Example::conf("server { location / { fastcgi_cache c; fastcgi_pass unix:/p; } }"),
    silent: Example::conf(
        "http { fastcgi_cache_key $host$request_uri; server { location / { fastcgi_cache c; fastcgi_pass unix:/p; } } }",
    ),
};

/// A key that tells methods, hosts and URLs apart.
const KEY: &str = "\"$scheme$request_method$host$request_uri\"";

fn check(case: &Case<'_>, found: &mut Findings) {
    for (spot, names) in caches(case.view).into_iter().filter(|(_, names)| names.family != "proxy") {
        let scope = spot.scope();
        if scope.effective(names.key).is_some() || scope.all().any(|inner| inner.name() == names.key) {
            continue;
        }
        let line = format!("{} {KEY}", names.key);
        let what = said!(
            "there is no {}: nginx gives the first answer in the zone \"{}\" to every request",
            "없는 줄: {}. nginx는 존 \"{}\"의 첫 응답을 모든 요청에 줍니다",
            names.key,
            spot.arg(0)
        );
        let fix = edit::insert_after(case.tree(), spot.statement(), &line);
        found.add(Finding::at(spot, what).write(format!("{line};")).fix(fix));
    }
}
