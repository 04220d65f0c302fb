//! `listen … quic` in a server that does not tell clients of HTTP/3.

use crate::alt_svc;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "alt_svc_missing",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words(
        "No answer tells browsers that the server speaks HTTP/3",
        "서버가 HTTP/3를 지원한다고 브라우저에 알리는 응답이 없습니다",
    ),
    remedy: words(
        "A browser begins over TCP. It tries HTTP/3 after an answer with Alt-Svc, or if the name has an HTTPS record in DNS. Add the field to the answers over TLS.",
        "브라우저는 TCP로 시작합니다. Alt-Svc가 있는 응답을 받거나 DNS에 이름의 HTTPS 레코드가 있어야 HTTP/3를 시도합니다. TLS 응답에 헤더를 추가하세요.",
    ),
    source: "RFC 9114, section 3.1.1; RFC 9460; nginx.org ngx_http_v3_module",
    check,
    fires: Example::conf("http { server { listen 443 ssl; listen 443 quic; } }"),
    silent: Example::conf(
        "http { server { listen 443 ssl; listen 443 quic; add_header Alt-Svc 'h3=\":443\"; ma=86400' always; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let told_elsewhere = case.view.servers().any(|server| speaks_tls(server) && is_told(server));
    for server in case.view.servers() {
        let Some(listen) = server.named("listen").find(|listen| listen.says("quic")) else { continue };
        let says = |name: &str, value: &str| server.effective(name).is_some_and(|spot| spot.arg(0) == value);
        // One block may have the listeners of QUIC, and another one those over TCP.
        let is_told = is_told(server) || !speaks_tls(server) && told_elsewhere;
        if is_told || says("http3", "off") || says("ssl_reject_handshake", "on") {
            continue;
        }
        let port = alt_svc::port(listen).unwrap_or(443);
        let line = match case.is_weir() {
            true if speaks_tls(server) => "http3_alt_svc on;".to_owned(),
            true => format!("http3_alt_svc {port};"),
            false => format!("add_header Alt-Svc 'h3=\":{port}\"; ma=86400' always;"),
        };
        found.add(
            Finding::at(
                listen,
                said!(
                    "browsers do not use this listener without Alt-Svc",
                    "Alt-Svc가 없으면 브라우저는 이 listen을 쓰지 않습니다"
                ),
            )
            .write(line),
        );
    }
}

/// Whether a server answers over TLS and TCP.
fn speaks_tls(server: Scope<'_>) -> bool {
    server.named("listen").any(|listen| listen.says("ssl"))
}

/// Whether answers of a server name HTTP/3.
fn is_told(server: Scope<'_>) -> bool {
    alt_svc::of(server).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::super::finds;
    use super::RULE;
    use crate::Facts;

    #[test]
    fn a_field_of_any_block_that_clients_reach_counts() {
        let count = |conf: &str| finds(&RULE, conf, &Facts::default()).len();
        for told in [
            "http { add_header Alt-Svc 'h3=\":443\"'; server { listen 443 quic; } }",
            "http { server { listen 443 quic; location / { add_header alt-svc 'h3=\":443\"'; } } }",
            "http { server { listen 443 quic; more_set_headers 'Alt-Svc: h3=\":443\"'; } }",
            "http { server { listen 443 quic; add_header Alt-Svc $advertised; } }",
            "http { http3_alt_svc on; server { listen 443 quic; } }",
            "http { server { listen 443 quic; location / { http3_alt_svc 443; } } }",
            "http { server { listen 443 quic; } server { listen 443 ssl; add_header Alt-Svc 'h3=\":443\"'; } }",
            "http { server { listen 443 quic; http3 off; } }",
            "http { server { listen 443 quic default_server; ssl_reject_handshake on; } }",
            "http { server { listen 443 ssl; } }",
        ] {
            assert_eq!(count(told), 0, "{told}");
        }
        for silent in [
            "http { server { listen 443 quic; listen 443 ssl; } server { listen 443 ssl; add_header Alt-Svc 'h3=\":443\"'; } }",
            "http { server { listen 443 quic; add_header Alt-Svc clear; } }",
            "http { http3_alt_svc on; server { listen 443 quic; http3_alt_svc clear; } }",
            "http { server { listen 443 quic; add_header Alt-Svc 'h2=\":443\"'; } }",
            "http { server { listen 443 quic; } server { listen 80; add_header Alt-Svc 'h3=\":443\"'; } }",
        ] {
            assert_eq!(count(silent), 1, "{silent}");
        }
    }
}
