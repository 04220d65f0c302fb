//! References to groups that a pattern does not have, and patterns that PCRE rejects.

use weir_http::text::regex::Regex;
use weir_http::text::slots::VariableId;

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "invalid_regex",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "A pattern is invalid, or a directive uses a capture that the pattern does not have",
        "패턴이 잘못되었거나 패턴에 없는 캡처를 사용합니다",
    ),
    remedy: words(
        "nginx does not start with an invalid pattern. A missing capture is empty, and nginx reports nothing. Put parentheses around the part that you need, or use the number of an existing group.",
        "잘못된 패턴이면 nginx가 시작하지 않고, 없는 캡처는 아무 메시지 없이 빈 값이 됩니다. 필요한 부분을 괄호로 묶거나 있는 그룹의 번호를 쓰세요.",
    ),
    source: "nginx.org ngx_http_rewrite_module; gixy-ng invalid_regex",
    check,
    fires: Example::conf("location / { rewrite ^/a /$1 break; }"),
    silent: Example::conf("location / { rewrite ^/a(.*) /$1 break; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for pattern in reach::patterns(case.view) {
        if let Err(message) = Regex::new(pattern.text, pattern.caseless, false, |_| VariableId(0)) {
            found.add(Finding::at(pattern.spot, Said::from(message)));
            continue;
        }
        let Some(tree) = pattern.tree() else { continue };
        let groups = tree.groups();
        let spot = pattern.spot;
        match spot.name() {
            "rewrite" => missing(spot, spot.arg(1), groups, found),
            "if" => {
                // Up to the next pattern, which sets captures of its own.
                for inner in spot.inside().statements().take_while(|inner| !matches!(inner.name(), "rewrite" | "if")) {
                    for text in inner.args() {
                        missing(inner, text, groups, found);
                    }
                }
            }
            _ => {}
        }
    }
}

fn missing(spot: Spot<'_>, text: &str, groups: usize, found: &mut Findings) {
    let gone = reach::variables(text).filter_map(|name| name.parse::<usize>().ok()).find(|number| *number > groups);
    if let Some(number) = gone {
        let what = match groups {
            0 => said!(
                "${number} is always empty: the pattern has no group",
                "변수 ${number} 값은 항상 비어 있습니다. 패턴에 그룹이 없습니다"
            ),
            1 => said!(
                "${number} is always empty: the pattern has one group",
                "변수 ${number} 값은 항상 비어 있습니다. 패턴에 그룹이 하나뿐입니다"
            ),
            _ => said!(
                "${number} is always empty: the pattern has {groups} groups",
                "변수 ${number} 값은 항상 비어 있습니다. 패턴에 그룹이 {groups}개뿐입니다"
            ),
        };
        found.add(Finding::at(spot, what));
    }
}
