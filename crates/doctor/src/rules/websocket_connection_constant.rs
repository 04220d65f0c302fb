//! `Connection: upgrade` on requests that do not upgrade.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "websocket_connection_constant",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[Symptom::WebSocket],
    says: words(
        "nginx sends Connection: upgrade with every request",
        "nginx가 모든 요청에 Connection: upgrade를 보냅니다",
    ),
    remedy: words(
        "nginx still keeps its connections to the origin. But the field announces an upgrade, and a plain request has none. Some origins refuse such a request: ASP.NET's Kestrel refuses its body. Send the field with WebSockets alone: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
        "nginx는 그래도 오리진과의 연결을 유지합니다. 하지만 이 헤더는 업그레이드를 알리는데 일반 요청에는 업그레이드가 없습니다. 그런 요청을 거절하는 오리진이 있습니다. ASP.NET의 Kestrel은 그 요청의 본문을 거절합니다. WebSocket 요청에만 이 헤더를 보내세요: `map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }`.",
    ),
    source: "nginx.org, WebSocket proxying; RFC 9110 §7.6.1, §7.8",
    check,
    fires: Example::conf("server { location / { proxy_set_header Connection upgrade; proxy_pass http://a; } }"),
    silent: Example::conf(
        "http { map $http_upgrade $c { websocket upgrade; default ''; } server { location / { proxy_set_header Connection $c; proxy_pass http://a; } } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let variable = upgrade::upgrade_variable(case.view);
    let line = format!("proxy_set_header Connection {}", variable.name);
    for (field, pass) in fields(case) {
        // A location only for WebSockets has no plain requests.
        let path = pass.scope().location().map(|location| location.text()).unwrap_or_default();
        let is_own = ["socket", "/ws", "cable"].iter().any(|word| path.contains(word));
        let values = upgrade::values(field, pass, PossibleRequest::Plain);
        if is_own || !values.always(|value| upgrade::has_option(value, "upgrade")) {
            continue;
        }
        let what = said!("this includes requests that are not WebSockets", "WebSocket이 아닌 요청도 포함됩니다");
        let mut finding = Finding::at(field, what).write(variable.to_write(&line));
        finding.fix = variable.with_map(vec![edit::replace(field.statement(), &line)]).unwrap_or_default();
        found.add(finding);
    }
}

/// Each `proxy_set_header Connection` with each `proxy_pass` that uses it. In a part of a configuration without
/// `proxy_pass`, each one with itself.
fn fields<'v>(case: &Case<'v>) -> Vec<(Spot<'v>, Spot<'v>)> {
    let passes: Vec<_> = case.view.named("proxy_pass").collect();
    if passes.is_empty() {
        let is_field = |spot: &Spot<'_>| spot.arg(0).eq_ignore_ascii_case("connection");
        return case.view.named("proxy_set_header").filter(is_field).map(|spot| (spot, spot)).collect();
    }
    passes.into_iter().filter_map(|pass| Some((upgrade::connection(pass)?, pass))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    fn mended(conf: &str) -> (String, String) {
        let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        let facts = Facts { version_is_told: Some(Version(1, 31, 5)), ..Facts::default() };
        let is_own = |finding: &Finding| finding.rule == RULE.id;
        let judges = crate::fixes::Judges::lenient(&is_own);
        let whole = crate::fixes::choose(&tree, Version(1, 31, 5).into(), &facts, &judges);
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
                "map $http_upgrade $connection_upgrade_2 { websocket upgrade; default ''; }",
                "$connection_upgrade_2",
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
