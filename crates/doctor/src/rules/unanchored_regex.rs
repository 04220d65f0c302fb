//! A file name extension that need not be at the end.

use crate::regex::Node;
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "unanchored_regex",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[],
    says: words(
        "A location for an extension matches it anywhere in the path",
        "확장자용 location이 경로 중간에서도 일치합니다",
    ),
    remedy: words(
        "`~ \\.php` also sends /uploads/x.php.jpg or /x.phpinfo to the application. End the pattern with `$`.",
        "`~ \\.php`는 /uploads/x.php.jpg도 앱으로 보냅니다. 패턴을 `$`로 끝내세요.",
    ),
    source: "nginx wiki, Pitfalls, Passing Uncontrolled Requests to PHP; gixy-ng unanchored_regex",
    check,
    fires: Example::conf("location ~ \\.php { fastcgi_pass unix:/run/php.sock; }"),
    silent: Example::conf("location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("location") {
        let Match::Pattern(text, caseless) = matches_by(spot) else { continue };
        let Some(Node::Seq(nodes)) = crate::regex::parse(text, caseless) else { continue };
        // A dot, then only letters up to the end of the pattern.
        let tail: Vec<&Node> = nodes.iter().rev().take_while(|node| is_letter(node)).collect();
        let before = nodes.len().checked_sub(tail.len() + 1).and_then(|index| nodes.get(index));
        let is_dot = matches!(before, Some(Node::Set(set)) if *set == ByteSet::one(b'.'));
        // A location that only refuses requests may refuse more of them.
        let refuses = spot
            .inside()
            .statements()
            .any(|inner| inner.name() == "deny" || (inner.name() == "return" && inner.arg(0).starts_with('4')));
        if !refuses && is_dot && (2..=5).contains(&tail.len()) && !text.starts_with('^') {
            let line = format!("{}$", spot.line());
            let fix = edit::replace(spot.statement(), &line);
            found.add(
                Finding::at(
                    spot,
                    said!(
                        "{text} also matches before the end of the path",
                        "경로의 끝이 아니어도 일치하는 패턴: {text}"
                    ),
                )
                .write(format!("{line} {{"))
                .fix(Some(fix)),
            );
        }
    }
}

fn is_letter(node: &Node) -> bool {
    matches!(node, Node::Set(set) if set.len() <= 2 && set.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
