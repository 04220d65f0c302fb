//! `add_header Content-Type`: a second Content-Type beside the answer's own.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "add_header_content_type",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "add_header adds a second Content-Type instead of changing it",
        "add_header는 Content-Type을 바꾸지 않고 하나 더 붙입니다",
    ),
    remedy: words(
        "A client then gets two Content-Type fields and chooses one. For files and `return`, write `default_type`. For an origin's answer, first hide the origin's field with `proxy_hide_header Content-Type`.",
        "클라이언트가 Content-Type 두 개를 받고 하나를 고릅니다. 파일과 return에는 `default_type`을 쓰세요. 오리진의 응답에는 먼저 `proxy_hide_header Content-Type`으로 오리진의 필드를 숨기세요.",
    ),
    source: "nginx.org ngx_http_headers_module, add_header; gixy-ng add_header_content_type",
    check,
    fires: Example::conf("location / { add_header Content-Type text/plain; }"),
    silent: Example::conf("location / { proxy_hide_header Content-Type; add_header Content-Type text/plain; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("add_header").filter(|spot| spot.arg(0).eq_ignore_ascii_case("content-type")) {
        let hides =
            ["proxy_hide_header", "fastcgi_hide_header", "uwsgi_hide_header", "scgi_hide_header", "grpc_hide_header"];
        let is_hidden = hides.iter().any(|name| {
            spot.scope().effective_all(name).iter().any(|hide| hide.arg(0).eq_ignore_ascii_case("content-type"))
        });
        if !is_hidden {
            let line = format!("default_type {};", spot.arg(1));
            found.add(
                Finding::at(
                    spot,
                    said!("a second Content-Type, {}, is added", "Content-Type이 하나 더 추가됩니다: {}", spot.arg(1)),
                )
                .write(line),
            );
        }
    }
}
