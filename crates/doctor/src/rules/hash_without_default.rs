//! A `map` or `geo` without `default`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "hash_without_default",
    level: FindingLevel::Note,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "A map without default: a value that is not listed gives an empty text",
        "default가 없는 map: 목록에 없는 값은 빈 문자열이 됩니다",
    ),
    remedy: words(
        "Many files read an empty value as \"allowed\" or \"off\". Add a `default` line with the value that you want.",
        "빈 값이 \"허용\"이나 \"꺼짐\"으로 읽히는 경우가 많습니다. 원하는 값을 `default` 줄로 쓰세요.",
    ),
    source: "nginx.org ngx_http_map_module; gixy-ng hash_without_default",
    check,
    fires: Example::conf("http { map $host $a { x 1; y 2; } }"),
    silent: Example::conf("http { map $host $a { x 1; y 2; default 0; } }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all().filter(|spot| spot.is_block() && matches!(spot.name(), "map" | "geo")) {
        let entries: Vec<Spot<'_>> = spot.inside().statements().collect();
        let has_default = entries.iter().any(|entry| matches!(entry.name(), "default" | "include"));
        // A map with one entry is a switch. Its other value is empty on purpose (a key for limit_req).
        let is_switch = spot.name() == "map" && entries.len() <= 1;
        let covers_all = spot.name() == "geo" && entries.iter().any(|entry| entry.name() == "0.0.0.0/0");
        if !has_default && !is_switch && !covers_all {
            let variable = spot.args().last().unwrap_or_default();
            let fix = edit::insert_into(case.tree(), spot.statement(), "default \"\"");
            found.add(
                Finding::at(
                    spot,
                    said!(
                        "{variable} is empty if the value is not listed",
                        "목록에 없으면 {variable} 변수가 비어 있습니다"
                    ),
                )
                .write("default \"\";")
                .fix(fix),
            );
        }
    }
}
