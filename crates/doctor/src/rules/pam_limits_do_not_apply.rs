//! Lines of limits.conf that do not apply to a service.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "pam_limits_do_not_apply",
    level: FindingLevel::Risk,
    group: Group::NoEffect,
    symptoms: &[Symptom::ServerError, Symptom::Limit],
    says: words("limits.conf does not apply to a service", "limits.conf는 서비스에 적용되지 않습니다"),
    remedy: words(
        "pam_limits applies at login (sshd, login, su). It does not apply to a process that systemd starts. For a service, run `systemctl edit UNIT` and write LimitNOFILE=65535 under [Service].",
        "pam_limits는 로그인(sshd, login, su)에만 적용되고 systemd가 시작한 것에는 적용되지 않습니다. 서비스에는 `systemctl edit UNIT`에서 [Service] LimitNOFILE=65535를 쓰세요.",
    ),
    source: "systemd/systemd#1884; limits.conf(5); lab.md B09, 1-1, 1-5",
    check,
    fires: Example::with("events { }", |facts| {
        facts.unit = Some(weir_host::Unit { name: "nginx.service".to_owned(), limit: None, is_known: true });
        facts.pam_limits = vec![line("www-data", "nofile")];
    }),
    silent: Example::with("events { }", |facts| facts.pam_limits = vec![line("www-data", "nofile")]),
};

fn line(domain: &str, item: &str) -> weir_host::PamLimit {
    let [domain, item, kind, value] = [domain, item, "soft", "65535"].map(str::to_owned);
    weir_host::PamLimit { file: "/etc/security/limits.conf".to_owned(), line: 1, domain, kind, item, value }
}

fn check(case: &Case<'_>, found: &mut Findings) {
    for limit in &case.facts.pam_limits {
        let place = format!("{}:{}", limit.file, limit.line);
        if let (Some(unit), "nofile") = (&case.facts.unit, limit.item.as_str()) {
            let what = said!(
                "{place}, \"{} {} nofile {}\": {} is started by systemd",
                "{place}, \"{} {} nofile {}\": 서비스 {}, systemd가 시작합니다",
                limit.domain,
                limit.kind,
                limit.value,
                unit.name
            );
            found.add(
                Finding::nowhere(what)
                    .write(format!("systemctl edit {}   # [Service] LimitNOFILE={}", unit.name, limit.value)),
            );
        }
        if limit.domain == "*" && limit.item == "nproc" {
            let what = said!(
                "{place}, \"* {} nproc {}\" limits the processes and threads of every user except root",
                "{place}, \"* {} nproc {}\": root를 제외한 모든 사용자의 프로세스와 스레드를 제한합니다",
                limit.kind,
                limit.value
            );
            found.add_as(FindingLevel::Note, Finding::nowhere(what));
        }
    }
}
