//! `keepalive_requests` below nginx's own default.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "low_keepalive_requests",
    level: FindingLevel::Risk,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words("keepalive_requests is lower than the default", "keepalive_requests가 기본값보다 낮습니다"),
    remedy: words(
        "After this number of requests nginx closes the connection, and the client needs new TCP and TLS handshakes. HTTP/2 clients may lose requests that they have already sent. The default is 1000 since 1.19.10: remove the line.",
        "이 횟수 뒤에는 nginx가 연결을 닫아 클라이언트가 TCP와 TLS 핸드셰이크를 다시 합니다. HTTP/2 클라이언트는 이미 보낸 요청을 잃을 수 있습니다. 1.19.10부터 기본값이 1000이므로 이 줄을 지우세요.",
    ),
    source: "nginx CHANGES 1.19.10; lab.md 0-10; gixy-ng low_keepalive_requests",
    check,
    fires: Example::conf("http { keepalive_requests 100; }"),
    silent: Example::conf("http { keepalive_requests 1000; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    if case.version < Version(1, 19, 10) {
        return;
    }
    for spot in case.view.named("keepalive_requests") {
        if spot.arg(0).parse::<u64>().is_ok_and(|requests| requests < 1000) {
            let what = said!(
                "{} requests per connection; without this line {} allows 1000",
                "연결당 요청 {}건입니다. 이 줄이 없으면 1000건까지 허용됩니다 ({})",
                spot.arg(0),
                case.target
            );
            let fix = edit::remove(case.tree(), spot.statement());
            found.add(Finding::at(spot, what).write(format!("# {};", spot.line())).fix(fix));
        }
    }
}
