//! A dot in a path that matches any byte.

use crate::regex::Node;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "unescaped_dot",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[],
    says: words("A dot in a location's pattern matches any character", "location 패턴의 점이 모든 글자와 일치합니다"),
    remedy: words(
        "Write `\\.`, or a prefix location, which needs no escapes.",
        "`\\.`로 쓰거나 이스케이프가 필요 없는 접두사 location을 쓰세요.",
    ),
    source: "PCRE; lab.md 3-12",
    check,
    fires: Example::conf("location ~ /.well-known/acme-challenge/ { root /a; }"),
    silent: Example::conf("location ~ /\\.well-known/acme-challenge/ { root /a; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("location") {
        let Match::Pattern(text, caseless) = matches_by(spot) else { continue };
        let Some(Node::Seq(nodes)) = crate::regex::parse(text, caseless) else { continue };
        let is_one = |node: Option<&Node>, wanted: fn(u8) -> bool| matches!(node, Some(Node::Set(set)) if set.len() <= 2 && set.bytes().all(wanted));
        // A dot that matches one byte, with a letter after it and a letter or slash before it.
        let bare = nodes.iter().enumerate().any(|(index, node)| {
            let any = matches!(node, Node::Set(set) if set.len() > 200);
            let before = index.checked_sub(1).and_then(|index| nodes.get(index));
            any && is_one(nodes.get(index + 1), |byte| byte.is_ascii_alphanumeric())
                && is_one(before, |byte| byte.is_ascii_alphanumeric() || byte == b'/')
        });
        if bare {
            let line = spot.line().replace("/.", "/\\.");
            found.add(
                Finding::at(
                    spot,
                    said!(
                        "{text} also matches with another character there",
                        "그 자리에 다른 글자가 와도 일치하는 패턴: {text}"
                    ),
                )
                .write(format!("{line} {{")),
            );
        }
    }
}
