//! A proxy for CONNECT that everyone may use.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "open_proxy",
    level: FindingLevel::Wrong,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "Every client may connect to any address through this server",
        "누구나 이 서버를 거쳐 어떤 주소에든 연결할 수 있습니다",
    ),
    remedy: words(
        "A client of tunnel_pass reaches each address that this machine reaches, also its loopback and your internal network. Say who may use it with allow and deny, auth_basic or a client certificate, and test $request_port.",
        "tunnel_pass의 클라이언트는 이 머신에서 접근할 수 있는 모든 주소에 연결할 수 있습니다. 루프백과 내부망도 포함됩니다. allow와 deny, auth_basic, 클라이언트 인증서로 쓸 수 있는 사람을 정하고 $request_port를 검사하세요.",
    ),
    source: "RFC 9110 §9.3.6; nginx.org ngx_http_tunnel_module",
    check,
    fires: Example::conf("http { server { listen 3128; tunnel_pass; } }"),
    silent: Example::conf("http { server { listen 3128; allow 10.0.0.0/8; deny all; tunnel_pass; } }"),
};

/// Directives that refuse some clients.
const GUARDS: [&str; 4] = ["deny", "auth_basic", "auth_request", "ssl_verify_client"];

fn check(case: &Case<'_>, found: &mut Findings) {
    for pass in case.view.named("tunnel_pass") {
        let is_fixed = !pass.arg(0).is_empty() && !pass.arg(0).contains('$');
        let is_guarded = GUARDS.iter().any(|guard| {
            let lines = pass.scope().effective_all(guard);
            lines.iter().any(|line| !line.says("off"))
        });
        let server = pass.scope().server().unwrap_or(pass.scope());
        let mut listens = server.named("listen").peekable();
        let is_local = listens.peek().is_some() && listens.all(|listen| is_local(listen.arg(0)));
        if !is_fixed && !is_guarded && !is_local {
            let what = said!("nothing here refuses a client", "여기에는 클라이언트를 거절하는 설정이 없습니다");
            found.add(Finding::at(pass, what).write("allow 10.0.0.0/8; deny all;"));
        }
    }
}

/// Whether only programs of this machine reach the address of a `listen`.
fn is_local(address: &str) -> bool {
    ["127.", "localhost", "[::1]", "unix:"].iter().any(|start| address.starts_with(start))
}
