//! The server has dropped connections since its start.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "connections_dropped",
    level: FindingLevel::Wrong,
    group: Group::Limits,
    symptoms: &[Symptom::ServerError, Symptom::Limit],
    says: words(
        "nginx accepted connections and dropped them: its connection table was full",
        "받은 연결을 버렸습니다: 연결 테이블이 가득 찼습니다",
    ),
    remedy: words(
        "Only a full table makes stub_status count fewer handled than accepted connections. Raise worker_connections, and set worker_rlimit_nofile to twice that value.",
        "handled가 accepts보다 적은 것은 이 경우뿐입니다. worker_connections를 올리고 worker_rlimit_nofile을 그 두 배로 하세요.",
    ),
    source: "nginx.org ngx_http_stub_status_module, handled; lab.md B05",
    check,
    fires: Example::with("events { worker_connections 512; }", |facts| {
        facts.live = Some(crate::facts::StubStatus { accepts: 100, handled: 90, ..crate::facts::StubStatus::default() })
    }),
    silent: Example::with("events { worker_connections 512; }", |facts| {
        facts.live =
            Some(crate::facts::StubStatus { accepts: 100, handled: 100, ..crate::facts::StubStatus::default() })
    }),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(live) = case.facts.live else { return };
    let dropped = live.accepts.saturating_sub(live.handled);
    if dropped > 0 {
        let spot = case.view.named("worker_connections").next();
        let written = spot.and_then(|spot| spot.arg(0).parse::<u64>().ok());
        let what =
            said!("{dropped} of {} connections since the start", "시작 이후 연결 {}개 중 {dropped}개", live.accepts);
        // Without the line, weir's limit is the limit on open files.
        let Some(limit) = written.or((!case.is_weir()).then_some(512)) else {
            found.add(Finding::nowhere(what));
            return;
        };
        let line = format!("worker_connections {}", limit.saturating_mul(4));
        // The counters keep their values until the program restarts, and do not show which limit would be enough. So
        // there is no automatic change: otherwise each check would raise the limit again.
        found.add(Finding { at: spot.map(Spot::at), ..Finding::nowhere(what) }.write(format!("{line};")));
    }
}
