//! Stapling that cannot resolve the responder's name.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "ssl_stapling_without_resolver",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "ssl_stapling has no resolver to find the OCSP server",
        "ssl_stapling이 OCSP 서버를 찾을 resolver가 없습니다",
    ),
    remedy: words(
        "nginx resolves the OCSP server's name while it runs. Write `resolver 127.0.0.53;`.",
        "nginx는 실행 중에 OCSP 서버의 이름을 찾습니다. `resolver 127.0.0.53;`을 추가하세요.",
    ),
    source: "nginx.org ngx_http_ssl_module, ssl_stapling; gixy-ng ssl_stapling_without_resolver",
    check,
    fires: Example::conf("server { listen 443 ssl; ssl_stapling on; }"),
    silent: Example::conf("server { listen 443 ssl; resolver 127.0.0.53; ssl_stapling on; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for server in case.view.servers().filter(|server| server.named("listen").any(|listen| listen.says("ssl"))) {
        let Some(stapling) = server.effective("ssl_stapling").filter(|spot| spot.arg(0) == "on") else { continue };
        let has_file = server.effective("ssl_stapling_file").is_some();
        if server.effective("resolver").is_none() && !has_file {
            let fix = edit::insert_after(case.tree(), stapling.statement(), "resolver 127.0.0.53");
            found.add(
                Finding::at(stapling, said!("no resolver is in force here", "여기에 적용되는 resolver가 없습니다"))
                    .write("resolver 127.0.0.53;")
                    .fix(fix),
            );
        }
    }
}
