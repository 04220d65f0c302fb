//! `proxy_set_header` in a block drops those of the outer blocks.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "proxy_headers_dropped",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[Symptom::WebSocket],
    says: words(
        "proxy_set_header here removes every proxy_set_header of the outer block",
        "여기의 proxy_set_header가 바깥 블록의 proxy_set_header를 모두 없앱니다",
    ),
    remedy: words(
        "A block inherits proxy_set_header only if it has no proxy_set_header of its own. Repeat the outer lines here.",
        "블록에 proxy_set_header가 하나라도 있으면 바깥 블록의 것을 상속하지 않습니다. 바깥의 줄을 여기서 다시 쓰세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_set_header",
    check,
    fires: Example::conf(
        "server { proxy_set_header Host $host; location / { proxy_set_header X-A b; proxy_pass http://a; } }",
    ),
    silent: Example::conf(
        "server { proxy_set_header Host $host; location / { proxy_set_header Host $host; proxy_set_header X-A b; proxy_pass http://a; } }",
    ),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for pass in case.view.named("proxy_pass") {
        let scope = pass.scope();
        let Some(first) = scope.get("proxy_set_header") else { continue };
        let Some(outer) = scope.outer() else { continue };
        let own: Vec<String> = scope.named("proxy_set_header").map(|spot| spot.arg(0).to_ascii_lowercase()).collect();
        let lost: Vec<Spot<'_>> = outer
            .effective_all("proxy_set_header")
            .into_iter()
            .filter(|spot| !own.contains(&spot.arg(0).to_ascii_lowercase()))
            .collect();
        if !lost.is_empty() {
            let names: Vec<&str> = lost.iter().map(|spot| spot.arg(0)).collect();
            let lines: Vec<String> = lost.iter().map(|spot| spot.line()).collect();
            let fix = edit::insert_after(case.tree(), first.statement(), &lines.join("\n"));
            let what =
                said!("nginx sends requests from here without {}", "여기의 요청에 없는 헤더: {}", names.join(", "));
            found.add(Finding::at(first, what).write(format!("{};", lines.join("; "))).fix(fix));
        }
    }
}
