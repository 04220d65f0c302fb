//! `quic_bpf` together with `reuseport` and several workers.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "quic_bpf_reuseport",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "quic_bpf with reuseport loses QUIC connections on a reload",
        "quic_bpf와 reuseport를 같이 쓰면 reload 때 QUIC 연결이 끊깁니다",
    ),
    remedy: words(
        "With several workers, the eBPF program that routes packets does not know the new sockets. Remove one of the two.",
        "워커가 여럿이면 패킷을 나누는 eBPF 프로그램이 새 소켓을 모릅니다. 둘 중 하나를 지우세요.",
    ),
    source: "nginx.org ngx_http_v3_module, quic_bpf; gixy-ng quic_bpf_reuseport",
    check,
    fires: Example::conf("worker_processes auto; quic_bpf on; http { server { listen 443 quic reuseport; } }"),
    silent: Example::conf("worker_processes auto; http { server { listen 443 quic reuseport; } }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(bpf) = case.view.root().get("quic_bpf").filter(|spot| spot.arg(0) == "on") else { return };
    let many = case.view.root().get("worker_processes").is_some_and(|spot| spot.arg(0) != "1");
    let listens = case.view.named("listen").find(|listen| listen.says("quic") && listen.says("reuseport"));
    if let (true, Some(listen)) = (many, listens) {
        let fix = edit::remove(case.tree(), bpf.statement());
        found.add(
            Finding::at(
                listen,
                said!("reuseport here, quic_bpf above", "여기는 reuseport, 위에는 quic_bpf가 있습니다"),
            )
            .write("# quic_bpf on;")
            .fix(fix),
        );
    }
}
