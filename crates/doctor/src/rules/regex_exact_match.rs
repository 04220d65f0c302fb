//! A pattern that matches only one text.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "regex_exact_match",
    level: FindingLevel::Note,
    group: Group::Speed,
    symptoms: &[],
    says: words("A regular expression matches one text only", "정규식이 한 가지 문자열에만 일치합니다"),
    remedy: words(
        "nginx finds `location = /path` in a tree and ends the search there. It tries patterns one after the other, for every request.",
        "`location = /path`는 트리에서 바로 찾고 탐색을 끝냅니다. 정규식은 요청마다 차례로 시험됩니다.",
    ),
    source: "nginx.org ngx_http_core_module, location; gixy-ng regex_exact_match",
    check,
    fires: Example::conf("location ~ ^/api/health$ { return 200; }"),
    silent: Example::conf("location ~ ^/api/v[12]/health$ { return 200; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("location") {
        let Match::Pattern(text, false) = matches_by(spot) else { continue };
        let only = crate::regex::parse(text, false).and_then(|tree| tree.only_text());
        if let Some(path) = only.and_then(|path| String::from_utf8(path).ok()) {
            let line = format!("location = {path}");
            let fix = edit::replace(spot.statement(), &line);
            found.add(
                Finding::at(spot, said!("only {path} matches", "{path}만 일치합니다"))
                    .write(format!("{line} {{"))
                    .fix(Some(fix)),
            );
        }
    }
}
