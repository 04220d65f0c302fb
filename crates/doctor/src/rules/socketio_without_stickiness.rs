//! Socket.IO over several processes that do not share sessions.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "socketio_without_stickiness",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[Symptom::WebSocket],
    says: words(
        "nginx spreads Socket.IO's requests over servers that do not share sessions",
        "nginx가 Socket.IO 요청을 세션을 공유하지 않는 여러 서버로 나누어 보냅니다",
    ),
    remedy: words(
        "A polling handshake takes several requests. With N servers, (N-1)/N of the second requests get 400, code 1, \"Session ID unknown\". Write `ip_hash;` or `hash $remote_addr consistent;` in the upstream. Under PM2, use @socket.io/pm2 or only the websocket transport.",
        "polling 핸드셰이크에는 요청이 여러 번 필요합니다. 서버가 N대이면 두 번째 요청의 (N-1)/N이 400(code 1, \"Session ID unknown\")을 받습니다. upstream에 `ip_hash;`나 `hash $remote_addr consistent;`를, PM2에서는 @socket.io/pm2나 websocket 전용 transport를 쓰세요.",
    ),
    source: "socket.io, Using multiple nodes; Unitech/pm2#389; lab.md B41, 0-12",
    check,
    fires: Example::conf(
        "http { upstream a { server 10.0.0.1; server 10.0.0.2; } server { location /socket.io/ { proxy_pass http://a; } } }",
    ),
    silent: Example::conf(
        "http { upstream a { ip_hash; server 10.0.0.1; server 10.0.0.2; } server { location /socket.io/ { proxy_pass http://a; } } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for (pass, upstream) in super::inert_upstream_keepalive::to_groups(case) {
        let scope = pass.scope();
        let path = scope.location().map(|location| location.text()).unwrap_or_default();
        let upgrades =
            scope.effective_all("proxy_set_header").iter().any(|spot| spot.arg(0).eq_ignore_ascii_case("upgrade"));
        let inside = upstream.inside();
        let servers = inside.named("server").filter(|server| !server.says("backup") && !server.says("down")).count();
        let sticks =
            ["ip_hash", "hash", "sticky", "sticky_cookie_insert"].iter().any(|name| inside.get(name).is_some());
        let is_socketio = path.contains("socket.io");
        if servers > 1 && !sticks && (is_socketio || upgrades) {
            let fix = edit::insert_into(case.tree(), upstream.statement(), "ip_hash");
            let level = if is_socketio { FindingLevel::Wrong } else { FindingLevel::Note };
            let what = said!(
                "nginx chooses among {servers} servers of \"{}\" anew for each request",
                "nginx가 요청마다 \"{}\"의 server {servers}개 중에서 새로 고릅니다",
                upstream.arg(0)
            );
            found.add_as(level, Finding::at(upstream, what).write("ip_hash;").fix(fix));
        }
    }
    // A single server for nginx may be several processes under PM2.
    let cluster = case.facts.neighbours.iter().filter(|process| !process.command.starts_with("PM2 ")).count();
    let pm2 = case.facts.neighbours.iter().any(|process| process.command.starts_with("PM2 "));
    let upgrades = case.view.named("proxy_set_header").find(|spot| spot.arg(0).eq_ignore_ascii_case("upgrade"));
    if let (true, true, Some(spot)) = (pm2, cluster > 1, upgrades) {
        let what = said!(
            "{cluster} Node processes run under PM2 here: if they are one cluster, the requests of one polling handshake reach different processes",
            "여기서 PM2로 Node 프로세스 {cluster}개가 실행 중입니다. 한 클러스터라면 polling 핸드셰이크 하나의 요청들이 서로 다른 프로세스로 갑니다"
        );
        found.add_as(FindingLevel::Note, Finding::at(spot, what));
    }
}
