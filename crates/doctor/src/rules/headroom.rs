//! A limit far above its need: changing it has no effect.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "headroom",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words(
        "The peak uses less than half of the limit: raising it changes nothing",
        "최대 사용량이 한도의 절반도 안 되어 올려도 달라지지 않습니다",
    ),
    remedy: words(
        "Little's law: concurrent clients = arrivals per second × seconds that each client stays. Another resource is the limit.",
        "리틀의 법칙: 동시 클라이언트 = 초당 도착 × 머무는 초. 병목은 다른 자원에 있습니다.",
    ),
    source: "Little 1961; lab.md B08, 0-19, 1-11",
    check,
    fires: Example::with(
        "events { worker_connections 1024; } http { server { location / { proxy_pass http://10.0.0.1; } } }",
        |facts| {
            facts.load.rate = Some(4.9);
            facts.load.seconds = Some(18.0);
        },
    ),
    silent: Example::with(
        "events { worker_connections 128; } http { server { location / { proxy_pass http://10.0.0.1; } } }",
        |facts| {
            facts.load.rate = Some(4.9);
            facts.load.seconds = Some(18.0);
        },
    ),
};

/// The number of workers.
pub fn workers(case: &Case<'_>) -> u64 {
    let default = case.default_of("worker_processes", &[]).unwrap_or("1");
    let written = case.view.root().get("worker_processes").map_or(default, |spot| spot.arg(0));
    // weir counts the CPUs of the quota, nginx only those of the machine.
    let cpus = if case.is_weir() {
        case.facts.cpus.or(case.facts.cpus_present)
    } else {
        case.facts.cpus_present.or(case.facts.cpus)
    };
    let auto = || cpus.unwrap_or(1) as u64;
    written.parse().unwrap_or_else(|_| auto()).max(1)
}

fn check(case: &Case<'_>, found: &mut Findings) {
    let proxies = case.view.named("proxy_pass").any(|spot| !spot.is_in("stream"));
    let sides = if proxies { 2.0 } else { 1.0 };
    let used = case.facts.load.clients().map(|clients| clients * sides);
    let live = case.facts.live.map(|live| live.active as f64);
    let Some((need, from)) = used
        .map(|used| (used, said!("the expected load", "예상 부하")))
        .or(live.map(|live| (live * sides, said!("what is open now", "지금 열린 연결"))))
    else {
        return;
    };
    let Some(spot) = case.view.named("worker_connections").next() else { return };
    let Ok(limit) = spot.arg(0).parse::<u64>() else { return };
    let slots = limit.saturating_mul(workers(case));
    if need < slots as f64 / 2.0 {
        let what = from
            + said!(
                " needs {:.0} of {slots} connections ({:.0} %)",
                "에는 연결 {slots}개 중 {:.0}개가 필요합니다({:.0} %)",
                need.ceil(),
                need * 100.0 / slots as f64
            );
        found.add(Finding::at(spot, what));
    }
}
