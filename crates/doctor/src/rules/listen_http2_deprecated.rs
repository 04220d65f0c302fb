//! `listen … http2`.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "listen_http2_deprecated",
    level: FindingLevel::Note,
    group: Group::Works,
    symptoms: &[],
    says: words("listen … http2 is deprecated", "listen … http2는 더 이상 권장되지 않습니다"),
    remedy: words(
        "Since 1.25.1, http2 is a directive of the server: `http2 on;`. nginx warns at every start.",
        "1.25.1부터는 server의 지시어 `http2 on;`입니다. 시작할 때마다 경고가 나옵니다.",
    ),
    source: "nginx CHANGES 1.25.1; lab.md 3-13",
    check,
    fires: Example::conf("server { listen 443 ssl http2; }"),
    silent: Example::conf("server { listen 443 ssl; http2 on; }"),
};

fn check(case: &Case<'_>, found: &mut Findings) {
    if case.version < Version(1, 25, 1) {
        return;
    }
    for listen in case.view.named("listen").filter(|listen| listen.says("http2") && !listen.is_in("stream")) {
        let line = listen.line_where(|arg| arg != "http2");
        let mut finding = Finding::at(
            listen,
            said!("the parameter is a separate directive now", "이 매개변수는 이제 별도의 지시어입니다"),
        )
        .write(format!("{line}; http2 on;"));
        let has = listen.scope().get("http2").is_some();
        let first =
            listen.scope().named("listen").find(|other| other.says("http2")).is_some_and(|other| other.is(listen));
        let with = if has || !first { line } else { format!("{line};\n    http2 on") };
        finding = finding.fix(Some(edit::replace(listen.statement(), &with)));
        found.add(finding);
    }
}
