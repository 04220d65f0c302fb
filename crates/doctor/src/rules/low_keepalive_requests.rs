//! `keepalive_requests` below nginx's own default.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "low_keepalive_requests",
    level: Level::Risk,
    group: Group::Speed,
    says: words("keepalive_requests is lower than the default", "keepalive_requests가 기본값보다 낮습니다"),
    remedy: words(
        "After so many requests the connection is closed and the client pays for TCP and TLS again; HTTP/2 clients lose what is on the way. The default is 1000 since 1.19.10: take the line out.",
        "그 횟수 뒤에는 연결이 닫혀 TCP와 TLS를 다시 맺습니다. 1.19.10부터 기본값이 1000이니 이 줄을 지우세요.",
    ),
    source: "nginx CHANGES 1.19.10; lab.md 0-10; gixy-ng low_keepalive_requests",
    check,
    fires: Example::conf("http { keepalive_requests 100; }"),
    silent: Example::conf("http { keepalive_requests 1000; }"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    if case.version < Version(1, 19, 10) {
        return;
    }
    for spot in case.view.named("keepalive_requests") {
        if spot.arg(0).parse::<u64>().is_ok_and(|requests| requests < 1000) {
            let what = said!(
                "{} requests a connection, where {} allows 1000 without this line",
                "연결당 요청 {}건입니다. 이 줄이 없으면 {}은(는) 1000건을 허용합니다",
                spot.arg(0),
                case.target
            );
            let fix = edit::remove(case.tree(), spot.statement());
            found.add(Finding::at(spot, what).write(format!("# {};", spot.line())).fix(fix));
        }
    }
}
