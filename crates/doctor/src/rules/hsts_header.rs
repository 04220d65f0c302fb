//! A TLS server without Strict-Transport-Security.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "hsts_header",
    level: FindingLevel::Note,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "A TLS server does not send Strict-Transport-Security",
        "TLS server가 Strict-Transport-Security를 보내지 않습니다",
    ),
    remedy: words(
        "A visitor's first request may go over plain HTTP, and an attacker may answer it. When every page works over TLS, add the header with `always`.",
        "방문자의 첫 요청이 평문 HTTP로 나가면 공격자가 응답할 수 있습니다. 모든 페이지가 TLS로 동작하면 `always`와 함께 헤더를 추가하세요.",
    ),
    source: "RFC 6797; gixy-ng hsts_header",
    check,
    fires: Example::conf("http { server { listen 443 ssl; } }"),
    silent: Example::conf(
        "http { server { listen 443 ssl; add_header Strict-Transport-Security max-age=31536000 always; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for server in case.view.servers() {
        let Some(listen) = server.named("listen").find(|listen| listen.says("ssl")) else { continue };
        let names = |text: &str| text.to_ascii_lowercase().contains("strict-transport-security");
        let says = |scope: Scope<'_>| {
            ["add_header", "more_set_headers", "add_headers"]
                .iter()
                .any(|name| scope.effective_all(name).iter().any(|spot| spot.args().any(names)))
        };
        let below = || {
            server.all().any(|spot| matches!(spot.name(), "add_header" | "more_set_headers") && spot.args().any(names))
        };
        let module = server.effective("security_headers").is_some_and(|spot| spot.arg(0) == "on");
        let refuses = server.get("ssl_reject_handshake").is_some_and(|spot| spot.arg(0) == "on");
        if !says(server) && !below() && !module && !refuses {
            let line = "add_header Strict-Transport-Security \"max-age=31536000\" always;";
            found.add(
                Finding::at(
                    listen,
                    said!(
                        "nginx does not tell browsers to stay on TLS",
                        "nginx가 브라우저에 TLS를 계속 쓰라고 알리지 않습니다"
                    ),
                )
                .write(line),
            );
        }
    }
}
