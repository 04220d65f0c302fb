//! Patterns that take exponential time for certain texts.

use crate::regex::ambiguity::{self, Ambiguity};
use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "regex_redos",
    level: FindingLevel::Risk,
    group: Group::Safety,
    symptoms: &[Symptom::ServerError, Symptom::Slow],
    says: words(
        "A client can make a regular expression take very long",
        "클라이언트가 정규식 처리를 아주 오래 걸리게 할 수 있습니다",
    ),
    remedy: words(
        "If nested repeats match the same text and the end does not match, the engine tries all combinations. The worker does nothing else during that time. End each repeat with a character that the repeat cannot contain, or make the inner repeat possessive (`a++`).",
        "겹친 반복이 같은 문자열에 일치하고 끝이 일치하지 않으면 엔진이 모든 조합을 시험합니다. 그동안 워커는 다른 일을 하지 못합니다. 각 반복을 그 반복에 들어갈 수 없는 글자로 끝내거나, 안쪽 반복을 possessive(`a++`)로 쓰세요.",
    ),
    source: "Weideman et al., CIAA 2016; gixy-ng regex_redos",
    check,
    fires: Example::conf("location ~ ^/(a+)+$ { return 200; }"),
    silent: Example::conf("location ~ ^/([a-z]+/)+$ { return 200; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
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
                    "{}: two adjacent repeats match the same text, and the time grows with the square of its length",
                    "{}: 나란한 두 반복이 같은 문자열을 차지해 시간이 길이의 제곱으로 늘어납니다",
                    pattern.text
                );
                found.add_as(FindingLevel::Note, Finding::at(pattern.spot, what));
            }
            None => {}
        }
    }
}
