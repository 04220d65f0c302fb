//! A header value over several lines of the file.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "add_header_multiline",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words("The value of a header contains a line break", "헤더 값 안에 줄바꿈이 들어 있습니다"),
    remedy: words(
        "nginx sends the line break unchanged. Folded header lines are obsolete (RFC 9112 §5.2): clients reject the answer or cut the value. Write the value on one line.",
        "nginx는 줄바꿈을 그대로 보냅니다. 접힌 헤더는 폐기된 문법이어서(RFC 9112 §5.2) 클라이언트가 응답을 거절하거나 값을 자릅니다. 값을 한 줄로 쓰세요.",
    ),
    source: "RFC 9112 §5.2; gixy add_header_multiline",
    check,
    fires: Example::conf("add_header Content-Security-Policy \"default-src 'none';\n  font-src data:\";"),
    silent: Example::conf("add_header Content-Security-Policy \"default-src 'none'; font-src data:\";"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.all() {
        let broken = match spot.name() {
            "add_header" | "add_trailer" | "proxy_set_header" => spot.arg(1).contains('\n'),
            "more_set_headers" | "more_set_input_headers" => {
                // `-t` and `-s` take a list, which may span several lines.
                let mut is_option = false;
                spot.args().any(|arg| {
                    let is_value = is_option;
                    is_option = matches!(arg, "-t" | "-s");
                    !is_value && arg.contains('\n')
                })
            }
            _ => false,
        };
        if broken {
            found.add(Finding::at(
                spot,
                said!(
                    "the value of {} goes over several lines",
                    "{}의 값이 여러 줄에 걸쳐 있습니다",
                    spot.arg(0).lines().next().unwrap_or_default()
                ),
            ));
        }
    }
}
