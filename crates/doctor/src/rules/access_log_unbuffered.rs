//! A write to the log for each of many requests.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "access_log_unbuffered",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[Symptom::Slow],
    says: words("nginx writes to the access log once for each request", "요청마다 access log에 쓰기 한 번을 합니다"),
    remedy: words(
        "At this rate the system calls cost more than the text of the lines. With `buffer=64k flush=1s`, nginx writes many lines in one call.",
        "이 요청률에서는 줄의 내용보다 시스템 호출 비용이 더 큽니다. `buffer=64k flush=1s`를 쓰면 nginx가 여러 줄을 한 번에 씁니다.",
    ),
    source: "nginx.org ngx_http_log_module; lab.md B44",
    check,
    fires: Example::with("http { access_log /var/log/a.log; }", |facts| facts.load.rate = Some(5000.0)),
    silent: Example::with("http { access_log /var/log/a.log combined buffer=64k; }", |facts| {
        facts.load.rate = Some(5000.0)
    }),
};

/// Below this rate the system calls do not matter.
const RATE: f64 = 1000.0;

fn check(case: &Case<'_>, found: &mut Findings) {
    let measured = case.facts.live.and_then(|live| live.rate);
    let Some(rate) = case.facts.load.rate.or(measured).filter(|rate| *rate >= RATE) else { return };
    for spot in case.view.named("access_log").filter(|spot| spot.arg(0) != "off" && !spot.arg(0).starts_with("syslog:"))
    {
        if !spot.args().any(|arg| arg.starts_with("buffer=") || arg.starts_with("gzip")) {
            let format = if spot.args().count() > 1 { "" } else { " combined" };
            let line = format!("{}{format} buffer=64k flush=1s", spot.line());
            let fix = edit::replace(spot.statement(), &line);
            found.add(
                Finding::at(spot, said!("{rate:.0} requests a second", "초당 요청 {rate:.0}건"))
                    .write(format!("{line};"))
                    .fix(Some(fix)),
            );
        }
    }
}
