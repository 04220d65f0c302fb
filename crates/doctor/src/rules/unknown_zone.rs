//! A cache or limit that names a missing zone.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "unknown_zone",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words("A directive uses a zone that no directive defines", "정의되지 않은 zone을 사용합니다"),
    remedy: words(
        "nginx does not start. Write the name that keys_zone= or zone= defines.",
        "nginx가 시작하지 않습니다. keys_zone=이나 zone=의 이름과 같아야 합니다.",
    ),
    source: "nginx's message \"zone … is unknown\"; lab.md 4-1",
    check,
    fires: Example::conf("http { proxy_cache_path /c keys_zone=cache:1m; server { proxy_cache one; } }"),
    silent: Example::conf("http { proxy_cache_path /c keys_zone=one:1m; server { proxy_cache one; } }"),
};

/// Directives that use a zone, and the directives that define it.
const USERS: [(&str, &str, &str); 6] = [
    ("proxy_cache", "proxy_cache_path", "keys_zone="),
    ("fastcgi_cache", "fastcgi_cache_path", "keys_zone="),
    ("uwsgi_cache", "uwsgi_cache_path", "keys_zone="),
    ("scgi_cache", "scgi_cache_path", "keys_zone="),
    ("limit_req", "limit_req_zone", "zone="),
    ("limit_conn", "limit_conn_zone", "zone="),
];

fn check(case: &Case<'_>, found: &mut Findings) {
    if !case.view.is_whole() {
        return;
    }
    for (user, definer, parameter) in USERS {
        let zones: Vec<&str> = case
            .view
            .named(definer)
            .filter_map(|spot| spot.args().find_map(|arg| arg.strip_prefix(parameter)))
            .map(|zone| zone.split(':').next().unwrap_or_default())
            .collect();
        for spot in case.view.named(user) {
            let name = if user == "limit_req" {
                spot.args().find_map(|arg| arg.strip_prefix("zone=")).unwrap_or_default()
            } else {
                spot.arg(0)
            };
            if name.is_empty() || name == "off" || name.contains('$') || zones.contains(&name) {
                continue;
            }
            let mut finding = Finding::at(
                spot,
                said!("\"{user}\" zone \"{name}\" is unknown", "정의되지 않은 존입니다: \"{user}\"의 \"{name}\""),
            );
            if let [only] = zones.as_slice() {
                let line = spot.line().replace(name, only);
                let fix = edit::replace(spot.statement(), &line);
                finding = finding.write(format!("{line};")).fix(Some(fix));
            } else {
                finding = finding.write(format!("{definer} … {parameter}{name}:10m …;"));
            }
            found.add(finding);
        }
    }
}
