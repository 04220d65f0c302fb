//! Retries that multiply failures.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "retry_amplification",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[Symptom::BadGateway, Symptom::Timeout, Symptom::Slow],
    says: words(
        "nginx sends a failing request to one server after the other",
        "nginx가 실패한 요청을 모든 서버에 차례로 다시 보냅니다",
    ),
    remedy: words(
        "When all servers are slow or down, the retries multiply their load. With non_idempotent, an application may place an order twice. Write `proxy_next_upstream_tries 2;` and `proxy_next_upstream_timeout 5s;`.",
        "모든 서버가 느리거나 죽었을 때 재시도가 부하를 몇 배로 늘립니다. non_idempotent이면 앱이 주문을 두 번 처리할 수 있습니다. `proxy_next_upstream_tries 2;`와 `proxy_next_upstream_timeout 5s;`를 쓰세요.",
    ),
    source: "nginx.org ngx_http_proxy_module, proxy_next_upstream; lab.md B28",
    check,
    fires: Example::conf("server { proxy_next_upstream error timeout http_503; }"),
    silent: Example::conf("server { proxy_next_upstream error timeout http_503; proxy_next_upstream_tries 2; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("proxy_next_upstream").filter(|spot| !spot.is_in("stream")) {
        let answers = spot.args().any(|arg| arg.starts_with("http_5") || arg == "http_429");
        let twice = spot.says("non_idempotent");
        let bounded = ["proxy_next_upstream_tries", "proxy_next_upstream_timeout"]
            .iter()
            .any(|name| spot.scope().effective(name).is_some_and(|spot| spot.arg(0) != "0"));
        if twice {
            found.add_as(
                FindingLevel::Wrong,
                Finding::at(
                    spot,
                    said!(
                        "nginx sends a POST again, although the origin may have processed it",
                        "오리진이 이미 처리했을 수 있는 POST를 nginx가 다시 보냅니다"
                    ),
                )
                .write("# without non_idempotent"),
            );
        } else if answers && !bounded {
            let what = said!(
                "nginx repeats a request without a limit when a busy server rejects it",
                "바쁜 서버가 거절한 요청을 nginx가 횟수 제한 없이 다시 보냅니다"
            );
            let mut finding = Finding::at(spot, what).write("proxy_next_upstream_tries 2;");
            finding.fix = edits_for(spot, &["proxy_next_upstream_tries 2".to_owned()]).unwrap_or_default();
            found.add(finding);
        }
    }
}
