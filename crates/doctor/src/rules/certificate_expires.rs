//! A certificate whose time is over, or nearly over.

use crate::facts::Certificate;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "certificate_expires",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words("A certificate for clients expires soon", "클라이언트에 보여 주는 인증서가 곧 만료됩니다"),
    remedy: words(
        "Clients refuse an expired certificate. Renew it and reload; weir reads changed files again by itself with `ssl_certificate_refresh`, and gets certificates by itself with `acme_issuer`.",
        "만료된 인증서는 클라이언트가 거부합니다. 갱신한 뒤 reload하세요. weir는 `ssl_certificate_refresh`가 있으면 바뀐 파일을 스스로 다시 읽고, `acme_issuer`가 있으면 인증서를 스스로 받습니다.",
    ),
    source: "RFC 5280 §4.1.2.5; CA/Browser Forum SC-081v3",
    check,
    fires: Example::with("server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; }", |facts| {
        facts.now_s = Some(100 * DAY_S);
        facts.certificates.push(Certificate::of("a.pem", 11 * DAY_S, 101 * DAY_S));
    }),
    silent: Example::with("server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; }", |facts| {
        facts.now_s = Some(100 * DAY_S);
        facts.certificates.push(Certificate::of("a.pem", 90 * DAY_S, 180 * DAY_S));
    }),
};

const DAY_S: i64 = 24 * 3600;

/// This long before its end, a certificate needs somebody; one with a short life a fifth of its life before.
const SOON_S: i64 = 14 * DAY_S;

fn check(case: &Case<'_>, found: &mut Findings) {
    let Some(now) = case.facts.now_s else { return };
    for certificate in &case.facts.certificates {
        let left = certificate.ends - now;
        if left >= SOON_S.min((certificate.ends - certificate.begins) / 5) {
            continue;
        }
        let file = &certificate.file;
        let (level, what) = match left {
            ..=0 => (
                FindingLevel::Wrong,
                said!("{file} expired {} days ago", "{}일 전에 만료되었습니다: {file}", -left / DAY_S),
            ),
            _ => {
                let days = left / DAY_S;
                (FindingLevel::Risk, said!("{file} expires in {days} days", "{days}일 뒤에 만료됩니다: {file}"))
            }
        };
        let mut spots = case.view.named("ssl_certificate").filter(|spot| spot.arg(0) == certificate.source);
        match spots.next().or_else(|| case.view.named("acme_issuer").find(|spot| spot.arg(0) == certificate.source)) {
            Some(spot) => found.add_as(level, Finding::at(spot, what)),
            None => found.add_as(level, Finding::nowhere(what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use crate::facts::Facts;

    #[test]
    fn one_that_is_over_is_wrong_and_a_short_life_is_no_alarm() {
        let judge = |begins: i64, ends: i64| {
            let conf = "server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key; }";
            let facts = Facts {
                now_s: Some(100 * DAY_S),
                certificates: vec![Certificate::of("a.pem", begins * DAY_S, ends * DAY_S)],
                ..Facts::default()
            };
            let files = weir_conf::MemoryFiles::new().with("/example", conf);
            let (tree, _) = crate::load(&files, "/example", "/");
            let findings = crate::examine(&tree, Target::Weir, &facts);
            findings.iter().find(|finding| finding.rule == RULE.id).map(|finding| finding.level)
        };
        assert_eq!(judge(10, 99), Some(FindingLevel::Wrong));
        assert_eq!(judge(10, 105), Some(FindingLevel::Risk));
        assert_eq!(judge(97, 103), None);
        assert_eq!(judge(95, 101), Some(FindingLevel::Risk));
    }
}
