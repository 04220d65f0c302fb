//! Each request to an origin opens a connection.

use super::inert_upstream_keepalive::to_groups;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "upstream_without_keepalive",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::BadGateway, Symptom::Slow, Symptom::Limit],
    says: words("Each request to the origin opens a new connection", "오리진으로 가는 요청마다 새 연결을 엽니다"),
    remedy: words(
        "For each new connection the origin does an accept and, over TCP, a handshake. Write `keepalive 32;` in the upstream, and HTTP/1.1 with an empty Connection in the location.",
        "연결을 열 때마다 오리진은 accept를 하고, TCP에서는 핸드셰이크도 합니다. upstream에 `keepalive 32;`, location에 HTTP/1.1과 빈 Connection을 쓰세요.",
    ),
    source: "nginx.org ngx_http_upstream_module, keepalive; lab.md B01, 2-4, 2-6, 3-5",
    check,
    fires: Example::with(
        "http { upstream a { server 10.0.0.1; } server { location / { proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 22, 1)),
    ),
    silent: Example::with(
        "http { upstream a { server 10.0.0.1; } server { location / { proxy_pass http://a; } } }",
        |facts| facts.version_is_told = Some(Version(1, 29, 7)),
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    // From 1.29.7 on, `keepalive 32 local` and HTTP/1.1 are the default of a group.
    if !case.is_surely(Version(1, 29, 7)) {
        groups(case, found);
    }
    addresses(case, found);
}

fn groups(case: &Case<'_>, found: &mut Findings) {
    let mut seen = std::collections::HashSet::new();
    for (pass, upstream) in to_groups(case) {
        if upstream.inside().get("keepalive").is_some() || !seen.insert(upstream.arg(0)) {
            continue;
        }
        let scope = pass.scope();
        let persists = scope.effective("proxy_http_version").is_some_and(|spot| spot.arg(0) == "1.1")
            && upgrade::connection(pass).is_some_and(|field| {
                upgrade::values(field, pass, PossibleRequest::Plain).always(|value| !upgrade::ends(value))
            });
        let Ports { count: ports, rate, rests, are_here } = ports(case, upstream);
        let (level, what) = if ports == 0 {
            (
                FindingLevel::Note,
                said!(
                    "\"{}\" has no keepalive: every request opens a new connection to its unix socket",
                    "\"{}\"에 keepalive가 없어 요청마다 유닉스 소켓을 새로 엽니다",
                    upstream.arg(0)
                ),
            )
        } else if persists {
            (
                if are_here { FindingLevel::Risk } else { FindingLevel::Wrong },
                said!(
                    "HTTP/1.1 without keepalive: nginx closes each connection first, and the kernel keeps its port for {rests} s. Above {rate} requests a second to \"{}\", connect() fails with 99 and the client gets 502",
                    "keepalive 없이 HTTP/1.1을 씁니다. nginx가 연결을 먼저 닫고 커널이 포트를 {rests}초 동안 남겨 두므로 \"{}\"에 초당 {rate}건을 넘게 요청하면 connect()가 99로 실패하고 클라이언트는 502를 받습니다",
                    upstream.arg(0)
                ),
            )
        } else {
            (
                FindingLevel::Risk,
                said!(
                    "\"{}\" has no keepalive: every request needs a handshake. If nginx closes first, a port rests for {rests} s: {ports} local ports are enough for {rate} requests a second, and above that the client gets 502",
                    "\"{}\"에 keepalive가 없어 요청마다 핸드셰이크를 합니다. nginx가 먼저 닫으면 포트를 {rests}초 동안 다시 쓰지 못합니다. 로컬 포트 {ports}개로 초당 {rate}건까지만 가능하고 그 뒤 클라이언트는 502를 받습니다",
                    upstream.arg(0)
                ),
            )
        };
        let why = said!(
            " (on loopback, Linux gives a resting port to the next connection: net.ipv4.tcp_tw_reuse)",
            " (루프백에서는 Linux가 쉬는 포트를 다음 연결에 다시 줍니다: net.ipv4.tcp_tw_reuse)"
        );
        let what = if are_here && ports > 0 { what + why } else { what };
        let too_much = case.facts.load.rate.is_some_and(|load| persists && ports > 0 && load > rate as f64);
        let what = if too_much {
            what + said!(
                "; the expected load is {:.0} requests a second",
                ". 예상 부하는 초당 {:.0}건입니다",
                case.facts.load.rate.unwrap_or_default()
            )
        } else {
            what
        };
        let fix = upstream
            .inside()
            .named("server")
            .next_back()
            .and_then(|server| edit::insert_after(case.tree(), server.statement(), "keepalive 32"));
        found.add_as(level, Finding::at(upstream, what).write("keepalive 32;").fix(fix));
    }
}

/// The local ports towards the servers of a group.
struct Ports {
    /// The ports towards one server; 0 if all servers are unix sockets, which take no port.
    count: u64,
    /// Connections a second to all servers that find a port.
    rate: u64,
    /// The longest time for which a port rests after its connection; seconds.
    rests: u32,
    /// Whether every server is on loopback, where the kernel reuses resting ports.
    are_here: bool,
}

fn ports(case: &Case<'_>, upstream: Spot<'_>) -> Ports {
    let all = case.facts.local_ports.unwrap_or(28_232);
    let rest = case.facts.port_rest;
    let (mut servers, mut rests_ms, mut are_here) = (0, 0, rest.loopback_ms < rest.others_ms);
    for server in upstream.inside().named("server").filter(|server| !server.arg(0).starts_with("unix:")) {
        let is_here = is_loopback(server.arg(0));
        servers += 1;
        rests_ms = rests_ms.max(if is_here { rest.loopback_ms } else { rest.others_ms });
        are_here &= is_here;
    }
    // The servers take turns: the one whose ports rest longest decides.
    let rate = servers * all * 1000 / u64::from(rests_ms.max(1));
    Ports { count: if servers > 0 { all } else { 0 }, rate, rests: rests_ms.div_ceil(1000), are_here }
}

/// Whether the address of a `server` is on loopback.
fn is_loopback(address: &str) -> bool {
    let host = match address.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => address.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// nginx keeps no connection to an address in `proxy_pass`, in any version.
fn addresses(case: &Case<'_>, found: &mut Findings) {
    for pass in case.view.named("proxy_pass").filter(|spot| !spot.is_in("stream")) {
        let Some((_, rest)) = pass.arg(0).split_once("://") else { continue };
        let authority = rest.split('/').next().unwrap_or_default();
        let is_group = case.view.upstream(authority).is_some();
        if !is_group && !authority.contains('$') && !authority.is_empty() && !authority.starts_with("unix:") {
            let what = said!(
                "{authority} stands in proxy_pass itself, and nginx keeps no connection there. Write an upstream block for it",
                "proxy_pass에 주소 {authority} 자체를 써서 nginx가 연결을 유지하지 않습니다. upstream 블록을 쓰세요"
            );
            found.add_as(
                FindingLevel::Note,
                Finding::at(pass, what).write(format!("upstream app {{ server {authority}; keepalive 32; }}")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Facts;

    /// Measured by `bench/ports_reused.py`: on loopback the kernel gives a port away after a second.
    #[test]
    fn the_arithmetic_of_ports_reads_where_the_peer_is() {
        let said = |server: &str, rest: weir_host::PortRest| {
            let conf = format!(
                "http {{ upstream a {{ server {server}; }} server {{ location / {{ proxy_pass http://a; }} }} }}"
            );
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            let told = Some(Version(1, 22, 1));
            let facts = Facts { version_is_told: told, local_ports: Some(1000), port_rest: rest, ..Facts::default() };
            let all = crate::examine(&tree, Version(1, 22, 1), &facts);
            all.into_iter()
                .find(|finding| finding.rule == RULE.id)
                .map(|finding| finding.what.en().to_owned())
                .unwrap_or_default()
        };
        let usual = weir_host::PortRest::default();
        let never = weir_host::PortRest { loopback_ms: 60_000, ..usual };
        for here in ["127.0.0.1:3000", "localhost:3000", "[::1]:3000"] {
            assert!(said(here, usual).contains("rests for 1 s: 1000 local ports are enough for 1000"), "{here}");
            assert!(said(here, usual).ends_with("tcp_tw_reuse)"), "{here}");
            assert!(
                said(here, never).contains("rests for 60 s: 1000 local ports are enough for 16 requests"),
                "{here}"
            );
        }
        assert!(
            said("10.0.0.1", usual).contains("rests for 60 s: 1000 local ports are enough for 16 requests a second")
        );
    }

    /// A client decides the value of `$http_connection`, so HTTP/1.1 may end as HTTP/1.0 does.
    #[test]
    fn an_unknown_connection_is_only_at_risk() {
        let level = |value: &str| {
            let conf = format!(
                "http {{ upstream a {{ server 10.0.0.1; }} server {{ location / {{ proxy_http_version 1.1; proxy_set_header Connection {value}; proxy_pass http://a; }} }} }}"
            );
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            let facts = Facts { version_is_told: Some(Version(1, 22, 1)), ..Facts::default() };
            let all = crate::examine(&tree, Version(1, 22, 1), &facts);
            all.into_iter().find(|finding| finding.rule == RULE.id).map(|finding| finding.level)
        };
        assert_eq!((level("''"), level("$http_connection")), (Some(FindingLevel::Wrong), Some(FindingLevel::Risk)));
    }
}
