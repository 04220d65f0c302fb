//! Retries that multiply failures.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "retry_amplification",
    level: Level::Risk,
    group: Group::Works,
    says: words(
        "A failing request is sent to one server after the other",
        "실패한 요청을 모든 서버에 차례로 다시 보냅니다",
    ),
    remedy: words(
        "When all are slow or down, load is multiplied just then, and with non_idempotent orders are placed twice. `proxy_next_upstream_tries 2;` and `proxy_next_upstream_timeout 5s;`.",
        "모두가 느리거나 죽었을 때 부하가 몇 배가 되고, non_idempotent이면 주문이 두 번 들어갑니다. `proxy_next_upstream_tries 2;`와 `proxy_next_upstream_timeout 5s;`를 쓰세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_next_upstream; lab.md B28",
    check,
    fires: Example::conf("server { proxy_next_upstream error timeout http_503; }"),
    silent: Example::conf("server { proxy_next_upstream error timeout http_503; proxy_next_upstream_tries 2; }"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.named("proxy_next_upstream").filter(|spot| !spot.is_in("stream")) {
        let answers = spot.args().any(|arg| arg.starts_with("http_5") || arg == "http_429");
        let twice = spot.says("non_idempotent");
        let bounded = ["proxy_next_upstream_tries", "proxy_next_upstream_timeout"]
            .iter()
            .any(|name| spot.scope().effective(name).is_some_and(|spot| spot.arg(0) != "0"));
        if twice {
            found.add_as(
                Level::Wrong,
                Finding::at(
                    spot,
                    said!(
                        "POST is sent again after it may have been carried out",
                        "이미 처리됐을 수 있는 POST를 다시 보냅니다"
                    ),
                )
                .write("# without non_idempotent"),
            );
        } else if answers && !bounded {
            let fix = edit::insert_after(case.tree(), spot.statement(), "proxy_next_upstream_tries 2");
            found.add(
                Finding::at(
                    spot,
                    said!(
                        "answers of a busy server are asked for again without a bound",
                        "바쁜 서버의 응답을 제한 없이 다시 요청합니다"
                    ),
                )
                .write("proxy_next_upstream_tries 2;")
                .fix(fix),
            );
        }
    }
}
