//! `fastcgi_pass` to PHP without the parameter that names the script.

use crate::rule::prelude::*;

pub static RULE: Rule = Rule {
    id: "fastcgi_without_script",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words(
        "PHP does not learn which script to run: SCRIPT_FILENAME is missing",
        "SCRIPT_FILENAME이 없어 PHP가 실행할 스크립트를 알 수 없습니다",
    ),
    remedy: words(
        "PHP-FPM then answers 200 with an empty page, or \"File not found\". A `fastcgi_param` in a block drops all those of the blocks around it. nginx's `fastcgi_params` has no SCRIPT_FILENAME, and its `fastcgi.conf` has one.",
        "그러면 PHP-FPM은 빈 200 응답이나 \"File not found\"를 보냅니다. 블록에 `fastcgi_param`이 하나라도 있으면 바깥 블록의 것은 모두 무시됩니다. nginx의 `fastcgi_params`에는 SCRIPT_FILENAME이 없고 `fastcgi.conf`에는 있습니다.",
    ),
    source: "nginx.org ngx_http_fastcgi_module, fastcgi_param; PHP manual, FPM",
    check,
    fires: Example::conf(
        "http { server { location ~ \\.php$ { fastcgi_param QUERY_STRING $query_string; fastcgi_pass unix:/run/php.sock; } } }",
    ),
    silent: Example::conf(
        "http { server { location ~ \\.php$ { fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; fastcgi_pass unix:/run/php.sock; } } }",
    ),
};

const LINE: &str = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name";

fn check(case: &Case<'_>, found: &mut Findings) {
    // An included file that cannot be read may have the parameter.
    if !case.view.is_whole() {
        return;
    }
    for pass in case.view.named("fastcgi_pass") {
        let is_php = pass.arg(0).contains("php") || pass.scope().location().is_some_and(|at| at.text().contains("php"));
        let params = pass.scope().effective_all("fastcgi_param");
        if is_php && !params.iter().any(|param| param.arg(0) == "SCRIPT_FILENAME") {
            let what = match params.len() {
                0 => said!("no fastcgi_param is in force here", "여기에 적용되는 fastcgi_param이 없습니다"),
                count => said!(
                    "none of the {} fastcgi_param lines in force here is SCRIPT_FILENAME",
                    "여기에 적용되는 fastcgi_param {}개 중 SCRIPT_FILENAME이 없습니다",
                    count
                ),
            };
            // In a block of its own the line would drop those of the blocks around it.
            let joins = params.iter().any(|param| param.scope().is(pass.scope()));
            let fix = edit::insert_after(case.tree(), pass.statement(), LINE).filter(|_| joins);
            found.add(Finding::at(pass, what).write(format!("{LINE};")).fix(fix));
        }
    }
}
