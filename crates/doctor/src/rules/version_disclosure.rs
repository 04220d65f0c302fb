//! `server_tokens on`.

use crate::rule::prelude::*;
use crate::target::Target;

pub static RULE: Rule = Rule {
    id: "version_disclosure",
    level: FindingLevel::Note,
    group: Group::Safety,
    symptoms: &[],
    says: words("Answers show the server's version", "응답에 서버 버전이 드러납니다"),
    remedy: words(
        "A scanner then knows which attacks to try. Write `server_tokens off;` in http.",
        "스캐너가 어떤 공격을 시도할지 알게 됩니다. http에 `server_tokens off;`를 쓰세요.",
    ),
    source: "nginx.org ngx_http_core_module, server_tokens; gixy-ng version_disclosure",
    check,
    fires: Example::conf("server_tokens on;"),
    silent: Example::conf("server_tokens off;"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("server_tokens").filter(|spot| matches!(spot.arg(0), "on" | "build")) {
        let fix = edit::replace(spot.statement(), "server_tokens off");
        found.add(
            Finding::at(
                spot,
                said!(
                    "the Server header and error pages contain the version",
                    "Server 헤더와 오류 페이지에 버전이 나옵니다"
                ),
            )
            .write("server_tokens off;")
            .fix(Some(fix)),
        );
    }
    // weir does not show its version unless the file has `server_tokens on`.
    if case.target == Target::Weir {
        return;
    }
    for http in case.view.root().named("http") {
        let inside = http.inside();
        if inside.all().all(|spot| spot.name() != "server_tokens") && inside.get("server").is_some() {
            let fix = edit::insert_into(case.tree(), http.statement(), "server_tokens off");
            found.add(
                Finding::at(http, said!("server_tokens is on, its default", "server_tokens가 기본값인 on입니다"))
                    .write("server_tokens off;")
                    .fix(fix),
            );
        }
    }
}
