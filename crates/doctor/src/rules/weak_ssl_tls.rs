//! Broken protocols and ciphers, or an order of ciphers that slows mobile clients.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "weak_ssl_tls",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words("TLS allows insecure or outdated settings", "안전하지 않거나 오래된 TLS 설정이 있습니다"),
    remedy: words(
        "`ssl_protocols TLSv1.2 TLSv1.3;` and Mozilla's intermediate ciphers. All of them are strong, so let the client choose the order (`ssl_prefer_server_ciphers off`).",
        "`ssl_protocols TLSv1.2 TLSv1.3;`과 Mozilla intermediate 암호를 쓰고, 순서는 클라이언트에 맡기세요(`ssl_prefer_server_ciphers off`).",
    ),
    source: "RFC 8996; Mozilla Server Side TLS 5.7; gixy-ng weak_ssl_tls",
    check,
    fires: Example::conf("ssl_protocols TLSv1 TLSv1.2;"),
    silent: Example::conf("ssl_protocols TLSv1.2 TLSv1.3;"),
};

/// Parts of OpenSSL's names of weak ciphers, and names of groups with such ciphers.
const WEAK: [&str; 13] =
    ["RC4", "DES", "3DES", "MD5", "NULL", "EXP", "EXPORT", "LOW", "aNULL", "eNULL", "ADH", "AECDH", "SEED"];

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all() {
        match spot.name() {
            "ssl_protocols" | "proxy_ssl_protocols" => {
                let old: Vec<&str> =
                    spot.args().filter(|arg| matches!(*arg, "SSLv2" | "SSLv3" | "TLSv1" | "TLSv1.1")).collect();
                if !old.is_empty() {
                    let line = format!("{} TLSv1.2 TLSv1.3", spot.name());
                    let fix = edit::replace(spot.statement(), &line);
                    found.add(
                        Finding::at(spot, said!("{} is allowed", "허용된 버전: {}", old.join(", ")))
                            .write(format!("{line};"))
                            .fix(Some(fix)),
                    );
                }
            }
            "ssl_ciphers" => {
                let only_13 =
                    spot.scope().effective("ssl_protocols").is_some_and(|spot| spot.args().all(|arg| arg == "TLSv1.3"));
                let weak = spot.arg(0).split([':', ' ', ',']).find(|name| {
                    !name.starts_with(['!', '-', '@', '+']) && name.split(['-', '+']).any(|part| WEAK.contains(&part))
                });
                if let (Some(weak), false) = (weak, only_13) {
                    found.add(Finding::at(spot, said!("{weak} is broken", "안전하지 않은 암호: {weak}")));
                }
            }
            "ssl_prefer_server_ciphers" if spot.arg(0) == "on" => {
                let protocols = spot.scope().effective("ssl_protocols");
                let only_13 = protocols.is_some_and(|spot| spot.args().all(|arg| arg == "TLSv1.3"));
                let lets_chacha = spot
                    .scope()
                    .effective_all("ssl_conf_command")
                    .iter()
                    .any(|spot| spot.arg(1).contains("PrioritizeChaCha"));
                if !lets_chacha && !only_13 {
                    let fix = edit::replace(spot.statement(), "ssl_prefer_server_ciphers off");
                    let what = said!(
                        "clients without AES in hardware cannot choose ChaCha20",
                        "하드웨어 AES가 없는 클라이언트가 ChaCha20을 고를 수 없습니다"
                    );
                    found.add_as(
                        FindingLevel::Note,
                        Finding::at(spot, what).write("ssl_prefer_server_ciphers off;").fix(Some(fix)),
                    );
                }
            }
            _ => {}
        }
    }
}
