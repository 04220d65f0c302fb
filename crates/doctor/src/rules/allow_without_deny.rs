//! `allow` with nothing denied.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "allow_without_deny",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words("allow without deny allows every client", "deny 없이 allow만 있으면 모든 접근이 허용됩니다"),
    remedy: words(
        "nginx also allows a client that no rule names. End the list with `deny all;`.",
        "목록에 없는 주소도 허용됩니다. 목록을 `deny all;`로 끝내세요.",
    ),
    source: "nginx.org ngx_http_access_module; gixy-ng allow_without_deny",
    check,
    fires: Example::conf("location / { allow 10.0.0.0/8; }"),
    silent: Example::conf("location / { allow 10.0.0.0/8; deny all; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let mut seen: Vec<Scope<'_>> = Vec::new();
    for spot in case.view.named("allow").filter(|spot| spot.arg(0) != "all") {
        let scope = spot.scope();
        if seen.iter().any(|other| other.is(scope)) || scope.get("deny").is_some() {
            continue;
        }
        seen.push(scope);
        let last = scope.named("allow").next_back().unwrap_or(spot);
        let fix = edit::insert_after(case.tree(), last.statement(), "deny all");
        let what = said!(
            "{} is allowed, and every other client is allowed too",
            "허용한 주소: {}. 그러나 나머지 모두도 허용됩니다",
            spot.arg(0)
        );
        found.add(Finding::at(spot, what).write("deny all;").fix(fix));
    }
}
