//! `multi_accept on`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "multi_accept",
    level: Level::Note,
    group: Group::NoEffect,
    says: words("multi_accept on does not accept faster", "multi_accept on은 연결을 더 빨리 받지 않습니다"),
    remedy: words(
        "Off means one accept per wake-up, not per second, and the next wake-up is at once. Below some thousand new connections a second it changes nothing, above it one worker takes them all. Take it out.",
        "off는 초당이 아니라 깨어날 때마다 하나이고, 바로 다시 깨어납니다. 초당 수천 연결 아래에서는 차이가 없고 그 위에서는 한 워커에 몰립니다. 지우세요.",
    ),
    source: "nginx.org ngx_core_module, multi_accept; mosip/mosip-infra#1920; lab.md B48, B13, 0-6",
    check,
    fires: Example::conf("events { multi_accept on; }"),
    silent: Example::conf("events { multi_accept off; }"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for spot in case.view.named("multi_accept").filter(|spot| spot.arg(0) == "on") {
        let fix = edit::remove(case.tree(), spot.statement());
        found.add(
            Finding::at(spot, said!("the accept queue is emptied by one worker", "워커 하나가 accept 큐를 비웁니다"))
                .write("# multi_accept on;")
                .fix(fix),
        );
    }
}
