//! One Node.js process on a machine with several CPUs.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "single_event_loop",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[Symptom::Timeout, Symptom::Slow],
    says: words("One Node.js process uses one CPU", "Node.js 프로세스 하나는 CPU 하나만 씁니다"),
    remedy: words(
        "If this process is the limit (its main thread is near 100 %), start one process per CPU: `pm2 start app.js -i max`. With Socket.IO, also send each client to the same process every time (sticky sessions).",
        "이 프로세스가 병목이라면(메인 스레드 100% 근처) CPU마다 프로세스를 하나씩 실행하세요: `pm2 start app.js -i max`. Socket.IO를 쓰면 각 클라이언트를 항상 같은 프로세스로 보내야 합니다(sticky session).",
    ),
    source: "Node.js cluster; lab.md B21",
    check,
    fires: Example::with("http { server { location / { proxy_pass http://127.0.0.1:3000; } } }", |facts| {
        facts.cpus = Some(4);
        facts.neighbours = vec![super::upstream_idle_timeout::node()];
    }),
    silent: Example::with("http { server { location / { proxy_pass http://127.0.0.1:3000; } } }", |facts| {
        facts.cpus = Some(1);
        facts.neighbours = vec![super::upstream_idle_timeout::node()];
    }),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let node: Vec<_> = case.facts.neighbours.iter().filter(|process| !process.command.starts_with("PM2 ")).collect();
    let proxies = case.view.named("proxy_pass").next().is_some();
    if let ([one], Some(cpus), true) = (node.as_slice(), case.facts.cpus.filter(|cpus| *cpus > 1), proxies) {
        let what = said!(
            "{cpus} CPUs, and one process ({}, {})",
            "CPU는 {cpus}개이고 프로세스는 하나입니다({}, {})",
            one.id,
            one.command
        );
        found.add(Finding::nowhere(what).write("pm2 start app.js -i max"));
    }
}
