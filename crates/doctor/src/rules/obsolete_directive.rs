//! Directives that a newer nginx ignores or rejects.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "obsolete_directive",
    level: FindingLevel::Risk,
    group: Group::NoEffect,
    symptoms: &[],
    says: words(
        "This version of nginx ignores or refuses the directive",
        "이 nginx 버전은 이 지시어를 무시하거나 거부합니다",
    ),
    remedy: words("Write the directive that replaced it.", "대신하는 지시어를 쓰세요."),
    source: "nginx CHANGES",
    check,
    fires: Example::conf("server { ssl on; }"),
    silent: Example::conf("server { listen 443 ssl; }"),
};

/// Name, first version in which it is obsolete, whether nginx then fails to start, replacement.
const OBSOLETE: [(&str, Version, bool, &str); 10] = [
    ("ssl", Version(1, 25, 1), true, "listen 443 ssl;"),
    ("http2_push", Version(1, 25, 1), false, "add_header Link …;"),
    ("http2_push_preload", Version(1, 25, 1), false, "add_header Link …;"),
    ("http2_max_concurrent_pushes", Version(1, 25, 1), false, "# gone"),
    ("http2_idle_timeout", Version(1, 19, 7), false, "keepalive_timeout …;"),
    ("http2_recv_timeout", Version(1, 19, 7), false, "client_header_timeout …;"),
    ("http2_max_requests", Version(1, 19, 7), false, "keepalive_requests …;"),
    ("http2_max_field_size", Version(1, 19, 7), false, "large_client_header_buffers …;"),
    ("http2_max_header_size", Version(1, 19, 7), false, "large_client_header_buffers …;"),
    ("spdy_headers_comp", Version(1, 9, 5), false, "http2 on;"),
];

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all().filter(|spot| !spot.is_in("mail") && !spot.is_in("stream")) {
        let Some((name, since, refused, instead)) = OBSOLETE.iter().find(|(name, ..)| *name == spot.name()) else {
            continue;
        };
        if case.version >= *since {
            let (level, what) = if *refused {
                (
                    FindingLevel::Wrong,
                    said!("nginx refuses {name} since {since}", "{since}부터 거부하는 지시어: {name}"),
                )
            } else {
                (FindingLevel::Risk, said!("nginx ignores {name} since {since}", "{since}부터 무시하는 지시어: {name}"))
            };
            let fix = edit::remove(case.tree(), spot.statement());
            found.add_as(level, Finding::at(spot, what).write(*instead).fix(fix));
        }
    }
}
