//! An authority that cannot look at the challenges of a certificate, or that nginx cannot find.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "acme_unreachable",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "acme_certificate has no resolver, or no listener for the challenge",
        "acme_certificate에 resolver나 챌린지를 받을 listen이 없습니다",
    ),
    remedy: words(
        "The authority asks for http-01 at port 80 without TLS, and for tls-alpn-01 at port 443 with TLS. Without `resolver` in http, the server does not find the authority. If another host passes port 80 or 443 on to this one, ignore this.",
        "인증 기관은 http-01을 TLS 없는 80번 포트에서, tls-alpn-01을 TLS가 있는 443번 포트에서 확인합니다. http에 `resolver`가 없으면 인증 기관을 찾지 못합니다. 다른 호스트가 80번이나 443번 포트를 이 서버로 넘긴다면 무시하세요.",
    ),
    source: "RFC 8555 §8.3, RFC 8737 §3; nginx.org ngx_http_acme_module",
    check,
    fires: Example::conf(
        "resolver 127.0.0.53; acme_issuer ca { uri https://ca.example/dir; } server { listen 443 ssl; server_name a.example; acme_certificate ca; ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; }",
    ),
    silent: Example::conf(
        "resolver 127.0.0.53; acme_issuer ca { uri https://ca.example/dir; } server { listen 80; } server { listen 443 ssl; server_name a.example; acme_certificate ca; ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for certificate in case.view.named("acme_certificate") {
        let Some(issuer) = case.view.named("acme_issuer").find(|spot| spot.arg(0) == certificate.arg(0)) else {
            continue;
        };
        let challenge = issuer.inside().get("challenge").map_or("http-01", |spot| spot.arg(0));
        if !issuer.scope().statements().any(|spot| spot.name() == "resolver") {
            let what =
                said!("http has no resolver to find the authority", "http에 인증 기관을 찾을 resolver가 없습니다");
            found.add(Finding::at(issuer, what).write("resolver 127.0.0.53;"));
        }
        let (port, is_tls, line) = match challenge {
            "http-01" | "http" => ("80", false, "listen 80;"),
            "tls-alpn-01" | "tls-alpn" => ("443", true, "listen 443 ssl;"),
            _ => continue,
        };
        if !case.view.servers().any(|server| listens(server, port, is_tls)) {
            let what = match is_tls {
                true => said!(
                    "no server listens on port 443 with ssl, where the authority asks for {challenge}",
                    "인증 기관이 {challenge}을 확인하는 443번 포트(ssl)에서 listen하는 서버가 없습니다"
                ),
                false => said!(
                    "no server listens on port 80 without ssl, where the authority asks for {challenge}",
                    "인증 기관이 {challenge}을 확인하는 80번 포트(ssl 없음)에서 listen하는 서버가 없습니다"
                ),
            };
            found.add_as(FindingLevel::Risk, Finding::at(certificate, what).write(line));
        }
    }
}

/// Whether a server listens on this port; without any `listen` it listens on port 80.
fn listens(server: Scope<'_>, port: &str, is_tls: bool) -> bool {
    let mut listens = server.named("listen").peekable();
    if listens.peek().is_none() {
        return port == "80" && !is_tls;
    }
    listens.any(|listen| {
        let address = listen.arg(0);
        let own = match address.rsplit_once(':') {
            Some((_, port)) if !address.ends_with(']') => port,
            _ if address.bytes().all(|byte| byte.is_ascii_digit()) => address,
            _ => "80",
        };
        own == port && listen.says("ssl") == is_tls
    })
}
