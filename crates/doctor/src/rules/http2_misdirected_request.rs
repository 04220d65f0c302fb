//! A default server that rejects handshakes, but answers requests on connections that were opened for other names.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "http2_misdirected_request",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "Reused HTTP/2 connections reach the default server, and it does not answer 421",
        "재사용된 HTTP/2 연결이 default server로 오는데 421로 응답하지 않습니다",
    ),
    remedy: words(
        "A browser may send a request for one name over a connection that it opened for another name. After 421 it opens a new connection. It takes any other status as the answer.",
        "브라우저는 다른 이름으로 연 연결로 요청을 보낼 수 있습니다. 421을 받으면 새 연결을 열고, 다른 상태 코드는 그대로 응답으로 받아들입니다.",
    ),
    source: "RFC 9113 §9.1.2, RFC 9110 §15.5.20; gixy-ng http2_misdirected_request",
    check,
    fires: Example::conf("http { server { listen 443 ssl default_server; http2 on; ssl_reject_handshake on; } }"),
    silent: Example::conf(
        "http { server { listen 443 ssl default_server; http2 on; ssl_reject_handshake on; return 421; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for server in case.view.servers() {
        let refuses = server.effective("ssl_reject_handshake").is_some_and(|spot| spot.arg(0) == "on");
        let Some(listen) = server.named("listen").find(|listen| listen.says("default_server")) else { continue };
        let speaks = server.effective("http2").is_some_and(|spot| spot.arg(0) == "on")
            || server.named("listen").any(|listen| listen.says("http2"));
        let answers = server.all().any(|spot| spot.name() == "return" && spot.arg(0) == "421");
        if refuses && speaks && !answers {
            found.add(
                Finding::at(
                    listen,
                    said!(
                        "the default server does not answer 421 for a name without a server",
                        "default server가 server 없는 이름에 421로 응답하지 않습니다"
                    ),
                )
                .write("location / { return 421; }"),
            );
        }
    }
}
