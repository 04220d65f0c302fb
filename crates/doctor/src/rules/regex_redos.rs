//! Patterns that take exponential time for certain texts.

use crate::regex::ambiguity::{self, Ambiguity};
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "regex_redos",
    level: Level::Risk,
    group: Group::Safety,
    says: words(
        "A regular expression can be made to take very long",
        "정규식이 아주 오래 걸리도록 공격당할 수 있습니다",
    ),
    remedy: words(
        "Repeats inside of repeats that match the same text are tried in all combinations when the end does not fit, and the worker does nothing else meanwhile. Let each round end in something it cannot contain, or make the inner one possessive (`a++`).",
        "같은 문자열에 맞는 반복이 겹치면 끝이 맞지 않을 때 모든 조합을 시험하고, 그동안 워커는 멈춥니다. 각 반복이 자신에 포함될 수 없는 글자로 끝나게 하거나 `a++`로 쓰세요.",
    ),
    source: "Weideman et al., CIAA 2016; gixy-ng regex_redos",
    check,
    fires: Example::conf("location ~ ^/(a+)+$ { return 200; }"),
    silent: Example::conf("location ~ ^/([a-z]+/)+$ { return 200; }"),
};

fn check(case: &Case<'_>, found: &mut Found) {
    for pattern in reach::patterns(case.view) {
        match pattern.tree().and_then(|tree| ambiguity::find(&tree)) {
            Some(Ambiguity::Exponential) => {
                found.add(Finding::at(
                    pattern.spot,
                    said!(
                        "{}: each further byte may double the time",
                        "{}: 한 바이트가 늘 때마다 시간이 두 배가 될 수 있습니다",
                        pattern.text
                    ),
                ));
            }
            Some(Ambiguity::Polynomial) => {
                let what = said!(
                    "{}: two repeats side by side take the same text, the time grows with its square",
                    "{}: 나란한 두 반복이 같은 문자열을 차지해 시간이 길이의 제곱으로 늘어납니다",
                    pattern.text
                );
                found.add_as(Level::Note, Finding::at(pattern.spot, what));
            }
            None => {}
        }
    }
}
