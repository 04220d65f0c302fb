//! Stapling for a certificate authority that no longer answers.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "ssl_stapling_letsencrypt",
    level: FindingLevel::Note,
    group: Group::NoEffect,
    symptoms: &[],
    says: words(
        "Let's Encrypt no longer answers OCSP: stapling does nothing",
        "Let's Encrypt는 OCSP를 중단해서 stapling이 동작하지 않습니다",
    ),
    remedy: words(
        "Let's Encrypt's certificates since May 2025 name no OCSP server, and nginx logs \"ssl_stapling\" ignored. Remove the ssl_stapling lines.",
        "2025년 5월 이후 Let's Encrypt 인증서에는 OCSP 서버가 없어 nginx가 \"ssl_stapling\" ignored를 기록합니다. ssl_stapling 줄들을 지우세요.",
    ),
    source: "letsencrypt.org, Ending OCSP Support in 2025; gixy-ng ssl_stapling_letsencrypt",
    check,
    fires: Example::conf(
        "server { listen 443 ssl; ssl_certificate /etc/letsencrypt/live/a/fullchain.pem; ssl_stapling on; }",
    ),
    silent: Example::conf("server { listen 443 ssl; ssl_certificate /etc/ssl/a.pem; ssl_stapling on; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for server in case.view.servers() {
        let certificates = server.effective_all("ssl_certificate");
        let Some(stapling) = server.effective("ssl_stapling").filter(|spot| spot.arg(0) == "on") else { continue };
        if certificates.iter().any(|spot| spot.arg(0).contains("/letsencrypt/")) {
            let fix = edit::remove(case.tree(), stapling.statement());
            found.add(
                Finding::at(
                    stapling,
                    said!("Let's Encrypt issued this certificate", "Let's Encrypt가 발급한 인증서입니다"),
                )
                .write("# ssl_stapling on;")
                .fix(fix),
            );
        }
    }
}
