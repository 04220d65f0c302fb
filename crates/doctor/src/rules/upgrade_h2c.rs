//! `Upgrade: h2c` is forwarded: with an origin that speaks h2c, the client bypasses every location.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "upgrade_h2c",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "A client may switch to HTTP/2 here. If the origin supports h2c, the client then reaches every path of the origin",
        "클라이언트가 여기서 HTTP/2로 전환할 수 있고, 오리진이 h2c를 지원하면 오리진의 모든 경로에 접근합니다",
    ),
    remedy: words(
        "After the 101 answer nginx forwards bytes unread: no location, `deny` or limit applies to the requests in them. Forward only WebSockets: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }` and `proxy_set_header Connection $connection_upgrade;`.",
        "101 응답 뒤에는 바이트가 그대로 전달되어 location, `deny`, 제한이 그 안의 요청을 보지 못합니다. WebSocket만 전달하세요: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`와 `proxy_set_header Connection $connection_upgrade;`.",
    ),
    source: "RFC 9110 §7.8; RFC 7540 §3.2; bishopfox.com, h2c smuggling (2020)",
    check,
    fires: Example::conf(
        "http { map $http_upgrade $connection_upgrade { default upgrade; '' ''; } server { location / { proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; proxy_pass http://a; } } }",
    ),
    silent: Example::conf(
        "http { map $http_upgrade $connection_upgrade { websocket upgrade; default ''; } server { location / { proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_upgrade; proxy_pass http://a; } } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let mut told: Vec<Spot<'_>> = Vec::new();
    let passed = |spot: &Spot<'_>| {
        let is_upgrade = spot.arg(0).eq_ignore_ascii_case("upgrade");
        is_upgrade && reach::variables(spot.arg(1)).any(|name| name.eq_ignore_ascii_case("http_upgrade"))
    };
    for upgrade in case.view.named("proxy_set_header").filter(passed) {
        let mut beside = upgrade.scope().named("proxy_set_header");
        let Some(connection) = beside.find(|spot| spot.arg(0).eq_ignore_ascii_case("connection")) else { continue };
        let Some(culprit) = culprit(case, connection) else { continue };
        // One map may serve many locations: report it once.
        if !told.iter().any(|known| known.is(culprit)) {
            told.push(culprit);
            found.add(Finding::at(
                culprit,
                said!(
                    "nginx forwards a client's \"Upgrade: h2c\" with Connection: upgrade",
                    "클라이언트의 \"Upgrade: h2c\"가 Connection: upgrade와 함께 오리진에 전달됩니다"
                ),
            ));
        }
    }
}

/// The statement that puts the upgrade into `Connection` for a client that requests h2c.
fn culprit<'v>(case: &Case<'v>, connection: Spot<'v>) -> Option<Spot<'v>> {
    let value = connection.arg(1);
    if names_upgrade(value) || value.eq_ignore_ascii_case("$http_connection") {
        return Some(connection);
    }
    let map = case.view.named("map").find(|map| map.arg(1).eq_ignore_ascii_case(value))?;
    if !map.arg(0).eq_ignore_ascii_case("$http_upgrade") {
        return None;
    }
    let entries = || map.inside().statements();
    let literal = entries().find(|entry| entry.name().eq_ignore_ascii_case("h2c"));
    let pattern = || entries().find(|entry| entry.name().starts_with('~') && is_for_all(entry.name()));
    let taken = literal.or_else(pattern).or_else(|| entries().find(|entry| entry.name() == "default"))?;
    names_upgrade(taken.arg(0)).then_some(taken)
}

fn names_upgrade(value: &str) -> bool {
    value.split(',').any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
}

/// Whether a map's pattern clearly matches `h2c`. An unclear pattern counts as no match.
fn is_for_all(pattern: &str) -> bool {
    let plain = pattern.trim_start_matches(['~', '*']);
    plain.to_ascii_lowercase().contains("h2c") || [".", ".+", ".*", "^.+$", "^.*$", ".+$", "^."].contains(&plain)
}
