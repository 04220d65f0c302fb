//! Locations of a server that answers before it searches for a location.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "unreachable_location",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "No request reaches a location: the server returns earlier",
        "server가 먼저 return해서 요청이 location에 도달하지 않습니다",
    ),
    remedy: words(
        "nginx runs return and rewrite of a server before it looks for a location. Put the return into `location / { }`.",
        "server 수준의 return과 rewrite는 location을 찾기 전에 실행됩니다. return을 `location / { }` 안에 넣으세요.",
    ),
    source: "nginx.org ngx_http_rewrite_module; lab.md 3-12",
    check,
    fires: Example::conf("server { location /.well-known/ { root /a; } return 301 https://a; }"),
    silent: Example::conf("server { location /.well-known/ { root /a; } location / { return 301 https://a; } }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for server in case.view.servers() {
        let Some(answer) = server.get("return") else { continue };
        let has_root = server.named("location").any(|location| location.arg(0) == "/");
        for location in server.named("location") {
            let what = said!(
                "no request reaches {}: \"{}\" answers every request of this server",
                "{}에는 도달하지 않습니다. 이 server의 모든 요청에 응답하는 줄: \"{}\"",
                location.line(),
                answer.line()
            );
            let line = format!("location / {{ {}; }}", answer.line());
            let mut finding = Finding::at(location, what).write(line.clone());
            if !has_root {
                // The `;` of the statement moves inside the braces.
                let open = edit::replace(answer.statement(), &format!("location / {{ {}", answer.line()));
                let end = answer.statement().end.span.end;
                let close = edit::Edit {
                    file: answer.at().file,
                    span: weir_conf::Span { start: end, end },
                    with: b" }".to_vec(),
                };
                finding = finding.fix(Some(open)).fix(Some(close));
            }
            found.add(finding);
        }
    }
}
