//! Key exchange groups that some builds of OpenSSL do not know.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "ssl_ecdh_curve",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "ssl_ecdh_curve names a group that some OpenSSL versions do not have",
        "ssl_ecdh_curve에 일부 OpenSSL 버전이 모르는 그룹이 있습니다",
    ),
    remedy: words(
        "OpenSSL refuses a list with an unknown group, and nginx does not start. In OpenSSL 3.3 and newer, a `?` before a group makes the group optional. X25519MLKEM768 needs OpenSSL 3.5.",
        "OpenSSL이 모르는 그룹이 하나라도 있으면 목록 전체를 거절하고 nginx가 시작하지 않습니다. OpenSSL 3.3 이상에서는 그룹 앞에 `?`를 붙이면 선택 사항이 됩니다. X25519MLKEM768에는 OpenSSL 3.5가 필요합니다.",
    ),
    source: "OpenSSL SSL_CTX_set1_groups_list(3); gixy-ng ssl_ecdh_curve",
    check,
    fires: Example::conf("ssl_ecdh_curve X25519MLKEM768:X25519;"),
    silent: Example::conf("ssl_ecdh_curve ?X25519MLKEM768:X25519;"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("ssl_ecdh_curve") {
        let is_new = |group: &&str| !group.starts_with('?') && (group.contains("MLKEM") || group.contains("Kyber"));
        if let Some(group) = spot.arg(0).split(':').find(is_new) {
            let line = format!("ssl_ecdh_curve {}", spot.arg(0).replace(group, &format!("?{group}")));
            let fix = edit::replace(spot.statement(), &line);
            found.add(
                Finding::at(
                    spot,
                    said!(
                        "nginx does not start if OpenSSL does not have {group}",
                        "OpenSSL에 없으면 nginx가 시작하지 않는 그룹: {group}"
                    ),
                )
                .write(format!("{line};"))
                .fix(Some(fix)),
            );
        }
    }
}
