//! A listen queue that the kernel shortens.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "backlog_over_somaxconn",
    level: FindingLevel::Risk,
    group: Group::Limits,
    symptoms: &[Symptom::Slow, Symptom::Limit],
    says: words(
        "The kernel makes the listen queue shorter than the configured backlog",
        "커널이 listen 큐를 설정값보다 작게 잡습니다",
    ),
    remedy: words(
        "net.core.somaxconn limits every backlog, and the kernel reports nothing. If the queue is full, the kernel drops SYNs, and connecting takes 1, 3 or 7 s. The number of local ports has no influence on this queue.",
        "net.core.somaxconn이 모든 backlog를 제한하며, 커널은 이를 알리지 않습니다. 큐가 차면 커널이 SYN을 버려 연결에 1·3·7초가 걸립니다. 로컬 포트 수와는 관계없습니다.",
    ),
    source: "listen(2); lab.md B10, 2-4",
    check,
    fires: Example::with("server { listen 80 backlog=4096; }", |facts| facts.somaxconn = Some(128)),
    silent: Example::with("server { listen 80 backlog=4096; }", |facts| facts.somaxconn = Some(4096)),
};

/// nginx's default backlog on Linux.
const BACKLOG: u64 = 511;

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(somaxconn) = case.facts.somaxconn else { return };
    for spot in case.view.named("listen") {
        let asked = spot.args().find_map(|arg| arg.strip_prefix("backlog=")).and_then(|text| text.parse::<u64>().ok());
        let Some(wanted) = asked.or((!case.is_weir()).then_some(BACKLOG)) else { continue };
        if wanted > somaxconn {
            let what = if asked.is_some() {
                said!(
                    "the backlog is {wanted}, but net.core.somaxconn is {somaxconn}",
                    "backlog는 {wanted}이지만 net.core.somaxconn은 {somaxconn}입니다"
                )
            } else {
                said!(
                    "the default backlog is {wanted}, but net.core.somaxconn is {somaxconn}",
                    "backlog의 기본값은 {wanted}이지만 net.core.somaxconn은 {somaxconn}입니다"
                )
            };
            let level = if asked.is_some() { FindingLevel::Risk } else { FindingLevel::Note };
            found.add_as(level, Finding::at(spot, what).write(format!("sysctl -w net.core.somaxconn={wanted}")));
        }
    }
}
