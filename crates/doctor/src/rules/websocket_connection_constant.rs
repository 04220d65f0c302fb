//! `Connection: upgrade` on requests that do not upgrade.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "websocket_connection_constant",
    level: Level::Note,
    group: Group::Works,
    says: words(
        "nginx sends Connection: upgrade with every request",
        "nginx가 모든 요청에 Connection: upgrade를 보냅니다",
    ),
    remedy: words(
        "nginx keeps its connections in spite of it. But the field announces an upgrade that a plain request does not have, and some origins refuse it: ASP.NET's Kestrel refuses a body in such a request. Send it with WebSockets alone: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
        "연결은 그래도 유지됩니다. 하지만 일반 요청에 없는 업그레이드를 알리는 셈이라 거절하는 오리진이 있습니다: ASP.NET의 Kestrel은 그런 요청의 본문을 거절합니다. WebSocket에만 보내세요: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
    ),
    source: "nginx.org, WebSocket proxying; RFC 9110 §7.6.1, §7.8",
    check,
    fires: Example::conf("server { location / { proxy_set_header Connection upgrade; proxy_pass http://a; } }"),
    silent: Example::conf(
        "server { location / { proxy_set_header Connection $connection_upgrade; proxy_pass http://a; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.named("proxy_set_header").filter(|spot| spot.arg(0).eq_ignore_ascii_case("connection")) {
        // A location only for WebSockets has no plain requests.
        let path = spot.scope().location().map(|location| location.text()).unwrap_or_default();
        let is_own = ["socket", "/ws", "cable"].iter().any(|word| path.contains(word));
        let is_constant = upgrade::values(spot, Request::Plain).always(|value| upgrade::names(value, "upgrade"));
        if !is_constant || is_own {
            continue;
        }
        let mut finding = Finding::at(
            spot,
            said!("this includes requests that are not WebSockets", "WebSocket이 아닌 요청도 포함됩니다"),
        );
        let right = upgrade::right(case.view);
        let variable = right.as_ref().map_or("$connection_upgrade", |right| right.variable.as_str());
        let line = format!("proxy_set_header Connection {variable}");
        let map = right
            .as_ref()
            .filter(|right| right.map.is_some())
            .map_or(String::new(), |right| format!("{} ", right.line));
        finding = finding.write(format!("{map}{line};"));
        if let Some(right) = right {
            finding = finding.fix(right.map).fix(Some(edit::replace(spot.statement(), &line)));
        }
        found.add(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    fn mended(conf: &str) -> (String, String) {
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        let facts = Facts { version_is_told: Some(Version(1, 31, 5)), ..Facts::default() };
        let look = |tree: &weir_conf::Tree| {
            let mut findings = crate::examine(tree, Version(1, 31, 5), &facts);
            findings.retain(|finding| finding.rule == RULE.id);
            findings
        };
        let whole = crate::mend::mend_whole(&tree, &look);
        let after = whole.files.first().map_or(conf.as_bytes(), |file| &file.after).to_vec();
        let (again, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", &after), "/f", "/");
        let left = crate::examine(&again, Version(1, 31, 5), &facts);
        let of = |rule: &str| left.iter().filter(|finding| finding.rule == rule).count();
        let left = format!("{} {}", of(RULE.id), of("inert_upstream_keepalive"));
        (String::from_utf8_lossy(&after).into_owned(), left)
    }

    /// A map that says `close` for plain requests would end the connections that a constant keeps.
    #[test]
    fn the_fix_takes_a_map_that_is_empty_for_plain_requests() {
        let conf = |maps: &str| {
            format!(
                "http {{ {maps} upstream a {{ server 10.0.0.1; keepalive 16; }} server {{ location / {{ proxy_set_header Connection upgrade; proxy_pass http://a; }} }} }}"
            )
        };
        let rows = [
            ("", "{ map $http_upgrade $connection_upgrade { websocket upgrade; default ''; } ", "$connection_upgrade"),
            (
                "map $http_upgrade $connection_upgrade { default upgrade; '' close; }",
                "map $http_upgrade $connection_or_empty { websocket upgrade; default ''; }",
                "$connection_or_empty",
            ),
            ("map $http_upgrade $ws { default upgrade; '' ''; }", "http { map $http_upgrade $ws", "$ws"),
        ];
        for (maps, map, variable) in rows {
            let (after, left) = mended(&conf(maps));
            assert!(
                after.contains(map) && after.contains(&format!("proxy_set_header Connection {variable};")),
                "{after}"
            );
            assert_eq!(left, "0 0", "{after}");
        }
    }
}
