//! `if` in a location with directives other than `return` and `rewrite`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "if_is_evil",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "if inside a location contains a directive other than return or rewrite … last",
        "location 안의 if에 return이나 rewrite … last가 아닌 것이 있습니다",
    ),
    remedy: words(
        "Each if is a separate location. The last if that is true handles the request with the directives that it inherits, and nginx skips the rest of the outer location. Choose a value with `map`, or write separate locations.",
        "if는 각각 별도의 location입니다. 참인 마지막 if가 상속받은 지시어로 요청을 처리하고, nginx는 바깥 location의 나머지를 건너뜁니다. `map`으로 값을 고르거나 별도 location으로 나누세요.",
    ),
    source: "nginx wiki, If is Evil; nginx.org ngx_http_rewrite_module; gixy if_is_evil",
    check,
    fires: Example::conf("location / { if ($arg_a) { add_header X-A 1; } if ($arg_b) { add_header X-B 1; } }"),
    silent: Example::conf("location / { if ($arg_a) { return 403; } }"),
};

/// Directives that are safe in an `if`: they end the request, or only set a value.
const HARMLESS: [&str; 7] = ["return", "set", "break", "rewrite_log", "access_log", "limit_rate", "expires"];

fn check(case: &Case<'_>, found: &mut Findings) {
    for block in case.view.named("if") {
        if block.scope().opener().is_none_or(|outer| outer.name() != "location") {
            continue;
        }
        for spot in block.inside().statements() {
            let harmless = match spot.name() {
                "rewrite" => spot.arg(2) != "break",
                // Their documentation allows the context "if in location". Alone in it, they work as written.
                "proxy_pass" | "fastcgi_pass" => true,
                name => HARMLESS.contains(&name),
            };
            if !harmless {
                let what = said!(
                    "{} applies only if no later \"if\" of this location is true as well, and nginx skips the rest of the location",
                    "이 location의 뒤쪽 \"if\"가 모두 거짓일 때만 적용되고, location의 나머지는 무시됩니다: {}",
                    spot.name()
                );
                found.add(Finding::at(spot, what));
                break;
            }
        }
    }
}
