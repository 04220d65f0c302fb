//! `valid_referers none` admits every client that omits the header.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "valid_referers",
    level: Level::Risk,
    group: Group::Safety,
    says: words(
        "valid_referers none lets in who sends no Referer",
        "valid_referers none은 Referer가 없으면 통과시킵니다",
    ),
    remedy: words(
        "A page leaves the header out with `Referrer-Policy: no-referrer`, so it is no protection. Take `none` out where the check is meant to protect.",
        "`Referrer-Policy: no-referrer` 한 줄로 헤더를 없앨 수 있어 보호가 되지 않습니다. `none`을 빼세요.",
    ),
    source: "nginx.org ngx_http_referer_module; gixy valid_referers",
    check,
    fires: Example::conf("valid_referers none server_names;"),
    silent: Example::conf("valid_referers server_names *.none.com;"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.named("valid_referers").filter(|spot| spot.says("none")) {
        let line = spot.line_where(|arg| arg != "none");
        let fix = edit::replace(spot.statement(), &line);
        found.add(
            Finding::at(spot, said!("no Referer is a valid Referer here", "여기서는 Referer가 없어도 통과합니다"))
                .write(format!("{line};"))
                .fix(Some(fix)),
        );
    }
}
