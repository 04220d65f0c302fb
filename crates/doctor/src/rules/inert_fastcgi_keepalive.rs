//! `keepalive` in an upstream of FastCGI servers that close each connection.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "inert_fastcgi_keepalive",
    level: FindingLevel::Wrong,
    group: Group::Speed,
    symptoms: &[Symptom::BadGateway, Symptom::Slow, Symptom::Limit],
    says: words(
        "The keepalive of this upstream has no connection to keep",
        "이 upstream의 keepalive가 유지할 연결이 없습니다",
    ),
    remedy: words(
        "A FastCGI application closes the connection after each answer unless the request asks it to keep the connection: `fastcgi_keep_conn on;`.",
        "FastCGI 앱은 요청이 연결 유지를 부탁하지 않으면 응답마다 연결을 닫습니다. `fastcgi_keep_conn on;`을 쓰세요.",
    ),
    source: "nginx.org ngx_http_fastcgi_module, fastcgi_keep_conn",
    check,
    fires: Example::conf(
        "http { upstream php { server unix:/p; keepalive 8; } server { location / { fastcgi_pass php; } } }",
    ),
    silent: Example::conf(
        "http { upstream php { server unix:/p; keepalive 8; } server { location / { fastcgi_keep_conn on; fastcgi_pass php; } } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for pass in case.view.named("fastcgi_pass") {
        let kept = case.view.upstream(pass.arg(0)).and_then(|upstream| upstream.inside().get("keepalive"));
        let stays = pass.scope().effective("fastcgi_keep_conn").is_some_and(|spot| spot.says("on"));
        if let (Some(kept), false) = (kept, stays) {
            let what = said!(
                "each request to \"{}\" opens and closes a connection in spite of keepalive {}",
                "업스트림 \"{}\": keepalive {} 줄이 있지만 요청마다 연결을 열고 닫습니다",
                pass.arg(0),
                kept.arg(0)
            );
            let mut finding = Finding::at(pass, what).write("fastcgi_keep_conn on;");
            finding.fix = edits_for(pass, &["fastcgi_keep_conn on".to_owned()]).unwrap_or_default();
            found.add(finding);
        }
    }
}
