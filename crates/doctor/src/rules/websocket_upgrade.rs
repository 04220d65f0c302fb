//! WebSocket handshakes that nginx forwards as plain requests.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "websocket_upgrade",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[Symptom::WebSocket],
    says: words("WebSockets do not get through this location", "이 location으로는 WebSocket이 통과하지 못합니다"),
    remedy: words(
        "Upgrade is a hop-by-hop header: nginx must send it again, over HTTP/1.1, with a Connection header that names it. Without it, Socket.IO stays with polling and reports nothing. weir edge forwards upgrades without these lines.",
        "Upgrade는 hop-by-hop 헤더입니다: nginx가 HTTP/1.1로, Upgrade를 적은 Connection 헤더와 함께 다시 보내야 합니다. 그러지 않으면 Socket.IO는 polling을 계속 쓰고 아무것도 알리지 않습니다. weir edge는 이 줄들이 없어도 업그레이드를 전달합니다.",
    ),
    source: "nginx.org, WebSocket proxying; lab.md B40, 0-11",
    check,
    fires: Example::conf("http { server { location /socket.io/ { proxy_pass http://a; } } }"),
    silent: Example::conf(
        "http { server { location /socket.io/ { proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_pass http://a; } } }",
    ),
};

/// Paths that use WebSocket by convention.
const PATHS: [&str; 7] = ["socket.io", "/ws", "websocket", "/cable", "sockjs", "/hmr", "signalr"];

fn check(case: &Case<'_>, found: &mut Findings) {
    let variable = upgrade::upgrade_variable(case.view);
    for pass in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let scope = pass.scope();
        let headers = scope.effective_all("proxy_set_header");
        let header = |name: &str| headers.iter().find(|spot| spot.arg(0).eq_ignore_ascii_case(name));
        let path = scope.location().map(|location| location.text().to_ascii_lowercase()).unwrap_or_default();
        // A request that asks for a WebSocket decides.
        let gets = |field: Spot<'_>, is_such: fn(&str) -> bool| {
            !upgrade::values(field, pass, PossibleRequest::WebSocket).always(|value| !is_such(value))
        };
        let sent = header("upgrade").filter(|spot| gets(**spot, |value| !value.is_empty()));
        let is_meant = sent.is_some() || PATHS.iter().any(|known| path.contains(known));
        if !is_meant {
            continue;
        }
        let (mut missing, mut names) = (Vec::new(), Vec::new());
        let one = scope
            .effective("proxy_http_version")
            .map_or(case.is_surely(Version(1, 29, 7)), |spot| spot.arg(0) == "1.1");
        if !one {
            missing.push("proxy_http_version 1.1".to_owned());
            names.push("proxy_http_version");
        }
        if sent.is_none() {
            missing.push("proxy_set_header Upgrade $http_upgrade".to_owned());
            names.push("Upgrade");
        }
        let connection = upgrade::connection(pass);
        let lacks_option = !connection.is_some_and(|spot| gets(spot, |value| upgrade::has_option(value, "upgrade")));
        if lacks_option {
            missing.push(format!("proxy_set_header Connection {}", variable.name));
            names.push(if connection.is_some() { "Connection: upgrade" } else { "Connection" });
        }
        if missing.is_empty() {
            continue;
        }
        let what = said!(
            "{} missing: the handshake reaches the origin as a plain GET",
            "핸드셰이크가 일반 GET으로 오리진에 전달됩니다. 없는 줄: {}",
            names.join(", ")
        );
        let (lines, edits) = (missing.join("; "), edits_for(pass, &missing));
        let (write, edits) = match lacks_option {
            true => (variable.to_write(&lines), edits.and_then(|edits| variable.with_map(edits))),
            false => (format!("{lines};"), edits),
        };
        let mut finding = Finding::at(pass, what).write(write);
        finding.fix = edits.unwrap_or_default();
        found.add(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    #[test]
    fn the_lines_to_write_have_their_map() {
        let written = |conf: &str| {
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            let all = crate::examine(&tree, crate::NEWEST, &Facts::default());
            all.into_iter()
                .find(|finding| finding.rule == RULE.id)
                .and_then(|finding| finding.write)
                .unwrap_or_default()
        };
        let lines = "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection";
        let map = "map $http_upgrade $connection_upgrade { websocket upgrade; default ''; }";
        // The second file is a part: its map belongs to another file.
        for conf in [RULE.fires.conf, "server { location /ws { proxy_pass http://a; } }"] {
            assert_eq!(written(conf), format!("{map} {lines} $connection_upgrade;"), "{conf}");
        }
        let has_map =
            RULE.fires.conf.replace("http {", "http { map $http_upgrade $c { websocket upgrade; default ''; }");
        assert_eq!(written(&has_map), format!("{lines} $c;"));
    }
}
