//! `add_header` in a block drops those of the blocks around it.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "add_header_redefinition",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "add_header here removes every header that the outer block adds",
        "여기의 add_header가 바깥 블록에서 추가한 헤더를 모두 없앱니다",
    ),
    remedy: words(
        "A block inherits add_header only if it has no add_header of its own. Repeat the outer lines here, put them in a file that both blocks include, or write `add_header_inherit merge;` (nginx 1.29.3 and newer).",
        "add_header는 블록에 하나도 없을 때만 상속됩니다. 여기서 다시 쓰거나, 양쪽에서 include 하거나, nginx 1.29.3 이상이면 `add_header_inherit merge;`를 쓰세요.",
    ),
    source: "nginx.org ngx_http_headers_module, add_header; gixy add_header_redefinition",
    check,
    fires: Example::conf("server { add_header X-Frame-Options DENY; location / { add_header X-A b; } }"),
    silent: Example::conf(
        "server { add_header X-Frame-Options DENY; location / { add_header X-Frame-Options DENY; add_header X-A b; } }",
    ),
};

/// Headers that protect against an attack. Without the others, only the display changes.
const MATTER: [&str; 12] = [
    "x-frame-options",
    "x-content-type-options",
    "x-xss-protection",
    "content-security-policy",
    "cache-control",
    "strict-transport-security",
    "referrer-policy",
    "permissions-policy",
    "content-disposition",
    "pragma",
    "expires",
    "cross-origin-opener-policy",
];

fn check(case: &Case<'_>, found: &mut Findings) {
    for name in ["add_header", "add_trailer"] {
        let mode = if name == "add_header" { "add_header_inherit" } else { "add_trailer_inherit" };
        let mut seen: Vec<Scope<'_>> = Vec::new();
        for spot in case.view.named(name) {
            let scope = spot.scope();
            let merges = scope.effective(mode).is_some_and(|mode| mode.arg(0) == "merge");
            if merges || scope.opener().is_none() || seen.iter().any(|other| other.is(scope)) {
                continue;
            }
            seen.push(scope);
            let Some(outer) = scope.outer() else { continue };
            let here: Vec<String> = scope.named(name).map(|own| own.arg(0).to_ascii_lowercase()).collect();
            let lost: Vec<&str> = outer
                .effective_all(name)
                .iter()
                .map(|spot| spot.arg(0))
                .filter(|lost| !here.contains(&lost.to_ascii_lowercase()))
                .collect();
            if lost.is_empty() {
                continue;
            }
            let matters = lost.iter().any(|lost| MATTER.contains(&lost.to_ascii_lowercase().as_str()));
            let level = if matters { FindingLevel::Risk } else { FindingLevel::Note };
            let what =
                said!("nginx sends answers from here without {}", "여기의 응답에 없는 헤더: {}", lost.join(", "));
            let write = if case.version >= Version(1, 29, 3) {
                format!("{mode} merge;")
            } else {
                outer.effective_all(name).first().map(|spot| format!("{};", spot.line())).unwrap_or_default()
            };
            found.add_as(level, Finding::at(spot, what).write(write));
        }
    }
}
