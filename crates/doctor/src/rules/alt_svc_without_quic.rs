//! `Alt-Svc` that names HTTP/3 at a port without a listener of QUIC.

use crate::alt_svc;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "alt_svc_without_quic",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "Alt-Svc sends browsers to a port without HTTP/3",
        "Alt-Svc가 HTTP/3를 제공하지 않는 포트로 브라우저를 보냅니다",
    ),
    remedy: words(
        "The browser tries QUIC at that port, waits, and goes on over TCP. Listen there, or remove the field. A container or a load balancer that passes the port on to another one is no mistake.",
        "브라우저는 그 포트로 QUIC을 시도하고 기다리다가 TCP로 돌아갑니다. 그 포트에서 리슨하거나 헤더를 지우세요. 컨테이너나 로드 밸런서가 포트를 다른 포트로 넘긴다면 잘못이 아닙니다.",
    ),
    source: "RFC 7838, section 2.4; RFC 9114, section 3.1.1",
    check,
    fires: Example::conf("http { server { listen 443 ssl; add_header Alt-Svc 'h3=\":443\"; ma=86400'; } }"),
    silent: Example::conf(
        "http { server { listen 443 ssl; listen 443 quic; add_header Alt-Svc 'h3=\":443\"; ma=86400'; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    // A part of a configuration may have its listeners elsewhere.
    if case.view.servers().next().is_none() {
        return;
    }
    let is_open = |port: u16| {
        let mut listens = case.view.named("listen").filter(|listen| listen.says("quic"));
        listens.any(|listen| alt_svc::port(listen).is_none_or(|open| open == port))
    };
    for spot in case.view.all() {
        for port in alt_svc::ports(spot).filter(|port| !is_open(*port)) {
            found.add(
                Finding::at(
                    spot,
                    said!("no listen … quic has the port {port}", "포트 {port}에는 listen … quic이 없습니다"),
                )
                .write(format!("listen {port} quic;")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finds;
    use super::RULE;
    use crate::Facts;

    #[test]
    fn ports_are_compared_with_the_listeners_of_quic() {
        let count = |conf: &str| finds(&RULE, conf, &Facts::default()).len();
        let server =
            |listen: &str, field: &str| format!("http {{ server {{ listen {listen}; add_header Alt-Svc {field}; }} }}");
        for (listen, field) in [
            ("[::]:8443 quic", "'h3=\":8443\"'"),
            ("443-445 quic", "'h3=\":444\"'"),
            ("443 ssl", "clear"),
            ("443 ssl", "'h2=\":443\"'"),
            ("443 ssl", "'h3=\":$server_port\"'"),
            ("443 ssl", "'h3=\"edge.example.org:443\"'"),
            ("10.0.0.1 quic", "'h3=\":80\"'"),
        ] {
            assert_eq!(count(&server(listen, field)), 0, "{listen} {field}");
        }
        for (listen, field) in [
            ("443 quic", "'h3=\":8443\"'"),
            ("443 ssl", "'h3=\":443\", h3-29=\":443\"'"),
            ("443 ssl", "'h2=\":443\", h3=\":8443\"; ma=60'"),
        ] {
            assert_eq!(count(&server(listen, field)), 1, "{listen} {field}");
        }
        let own = |listen: &str, word: &str| format!("http {{ server {{ listen {listen}; http3_alt_svc {word}; }} }}");
        for (listen, word, expected) in
            [("443 quic", "443", 0), ("443 ssl", "on", 0), ("443 ssl", "off", 0), ("443 quic", "8443 ma=60", 1)]
        {
            assert_eq!(count(&own(listen, word)), expected, "{listen} {word}");
        }
        assert_eq!(count("add_header Alt-Svc 'h3=\":443\"';"), 0, "a part of a configuration");
    }
}
