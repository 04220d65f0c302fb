//! `stub_status` that every client can read.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "status_page_exposed",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words("The status page is open to everybody", "상태 페이지가 모두에게 열려 있습니다"),
    remedy: words(
        "The page shows how busy the server is, so an attacker sees whether an attack works. Write `allow 127.0.0.1; deny all;`.",
        "이 페이지는 서버가 얼마나 바쁜지 보여 주므로 공격자가 공격의 효과를 알 수 있습니다. `allow 127.0.0.1; deny all;`을 추가하세요.",
    ),
    source: "nginx.org ngx_http_stub_status_module; gixy-ng status_page_exposed",
    check,
    fires: Example::conf("location /status { stub_status; }"),
    silent: Example::conf("location /status { stub_status; allow 127.0.0.1; deny all; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case
        .view
        .all()
        .filter(|spot| matches!(spot.name(), "stub_status" | "status" | "api") && spot.scope().location().is_some())
    {
        if spot.name() != "stub_status" && spot.args().next().is_some() {
            continue;
        }
        let scope = spot.scope();
        let guards = ["deny", "auth_basic", "auth_request", "auth_jwt", "internal"];
        let is_guarded = guards.iter().any(|name| scope.outwards().any(|scope| scope.named(name).next().is_some()));
        let is_own = |listen: &Spot<'_>| {
            ["unix:", "127.", "localhost", "[::1]"].iter().any(|own| listen.arg(0).starts_with(own))
        };
        let listens: Vec<Spot<'_>> = scope.server().map(|server| server.named("listen").collect()).unwrap_or_default();
        let is_local = !listens.is_empty() && listens.iter().all(is_own);
        if !is_guarded && !is_local {
            let fix = edit::insert_after(case.tree(), spot.statement(), "allow 127.0.0.1; deny all");
            found.add(
                Finding::at(
                    spot,
                    said!(
                        "no allow, deny or password is in force here",
                        "여기에 적용되는 allow, deny, 비밀번호가 없습니다"
                    ),
                )
                .write("allow 127.0.0.1; deny all;")
                .fix(fix),
            );
        }
    }
}
