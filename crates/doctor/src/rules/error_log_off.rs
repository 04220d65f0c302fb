//! `error_log off` writes a file named `off`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "error_log_off",
    level: FindingLevel::Risk,
    group: Group::Works,
    symptoms: &[],
    says: words("error_log off does not switch the log off", "error_log off는 로그를 끄지 않습니다"),
    remedy: words(
        "nginx writes the log to a file named \"off\". You need the error log first when you look for a problem: keep it. If it has too many lines, write `error_log /var/log/nginx/error.log crit;`.",
        "\"off\"라는 파일에 기록됩니다. 오류 로그는 문제를 찾을 때 가장 먼저 보는 것이니 남겨 두고, 너무 많으면 `error_log /var/log/nginx/error.log crit;`로 줄이세요.",
    ),
    source: "nginx.org ngx_core_module, error_log; gixy-ng error_log_off",
    check,
    fires: Example::conf("error_log off;"),
    silent: Example::conf("error_log /var/log/nginx/error.log;"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    for spot in case.view.named("error_log").filter(|spot| spot.arg(0) == "off") {
        let line = "error_log /var/log/nginx/error.log crit";
        let fix = edit::replace(spot.statement(), line);
        found.add(
            Finding::at(
                spot,
                said!(
                    "nginx writes errors to a file named \"off\" below nginx's prefix",
                    "오류가 nginx prefix 아래의 \"off\"라는 파일에 기록됩니다"
                ),
            )
            .write(format!("{line};"))
            .fix(Some(fix)),
        );
    }
}
