//! `valid_referers none` admits every client that omits the header.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "valid_referers",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "valid_referers none accepts a client that sends no Referer",
        "valid_referers none은 Referer가 없으면 통과시킵니다",
    ),
    remedy: words(
        "With `Referrer-Policy: no-referrer`, any page makes the browser send no Referer, so the check does not protect. Remove `none` if the check must protect.",
        "어떤 페이지든 `Referrer-Policy: no-referrer`로 브라우저가 Referer를 보내지 않게 할 수 있어, 검사가 보호하지 못합니다. 검사로 보호해야 한다면 `none`을 빼세요.",
    ),
    source: "nginx.org ngx_http_referer_module; gixy valid_referers",
    check,
    fires: Example::conf("valid_referers none server_names;"),
    silent: Example::conf("valid_referers server_names *.none.com;"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("valid_referers").filter(|spot| spot.says("none")) {
        let line = spot.line_where(|arg| arg != "none");
        let fix = edit::replace(spot.statement(), &line);
        found.add(
            Finding::at(spot, said!("a request without Referer passes here", "여기서는 Referer가 없어도 통과합니다"))
                .write(format!("{line};"))
                .fix(Some(fix)),
        );
    }
}
