//! `multi_accept on`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "multi_accept",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words("multi_accept on does not accept faster", "multi_accept on은 연결을 더 빨리 받지 않습니다"),
    remedy: words(
        "Off means one accept per wake-up, not one per second, and the next wake-up follows at once. Below some thousand new connections a second, on changes nothing. Above that rate, one worker takes all new connections. Remove the line.",
        "off는 초당 한 번이 아니라 깨어날 때마다 accept 한 번이며, 워커는 바로 다시 깨어납니다. 초당 새 연결이 수천 개보다 적으면 on은 차이가 없고, 그보다 많으면 워커 하나가 새 연결을 모두 받습니다. 이 줄을 지우세요.",
    ),
    source: "nginx.org ngx_core_module, multi_accept; mosip/mosip-infra#1920; lab.md B48, B13, 0-6",
    check,
    fires: Example::conf("events { multi_accept on; }"),
    silent: Example::conf("events { multi_accept off; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("multi_accept").filter(|spot| spot.arg(0) == "on") {
        let fix = edit::remove(case.tree(), spot.statement());
        found.add(
            Finding::at(spot, said!("one worker empties the accept queue", "워커 하나가 accept 큐를 비웁니다"))
                .write("# multi_accept on;")
                .fix(fix),
        );
    }
}
