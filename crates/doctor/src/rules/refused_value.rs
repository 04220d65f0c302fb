//! Lines that nginx refuses although it knows their directives: a value, a number of arguments, a name.

use std::collections::BTreeSet;

use weir_conf::Problem;
use weir_http::nginx_only::{self, Origin};

use crate::rule::prelude::*;
use crate::view::View;

pub static RULE: Rule = Rule {
    id: "refused_value",
    level: Level::Wrong,
    group: Group::Works,
    says: words("nginx refuses the configuration", "nginx가 설정을 거부합니다"),
    remedy: words(
        "nginx does not start, and a reload keeps the old configuration. weir reads values as nginx 1.31.5 does; an older nginx also refuses values that are newer than itself.",
        "nginx가 시작하지 않으며, reload해도 이전 설정을 유지합니다. weir는 nginx 1.31.5처럼 값을 읽습니다. 더 오래된 nginx는 자신보다 새로운 값도 거부합니다.",
    ),
    source: "the same reader as weir edge -t; nginx's messages",
    check,
    fires: Example::conf("events { } http { sendfile yes; }"),
    silent: Example::conf("events { } http { sendfile on; }"),
};

/// Rules that name a refused line in words of their own.
const TOLD_BY: [&str; 3] = ["invalid_regex", "unknown_directive", "unknown_zone"];

/// Most names of directives in the sentence about what was not checked.
const NAMES_MAX: usize = 3;

fn check(case: &Case<'_>, found: &mut Found) {
    if !is_readable(case.view) {
        return;
    }
    let knows_all = foreign(case.view).is_empty();
    let problems = crate::weirs::refused(case.tree());
    for problem in
        problems.iter().filter(|problem| case.is_weir() && is_of_file(problem) || is_nginxs(problem, knows_all))
    {
        for at in problem
            .at
            .map_or(vec![None], |at| std::iter::once(at).chain(problem.also.iter().copied()).map(Some).collect())
        {
            let what = said!("the message of -t: {}", "-t의 메시지: {}", problem.what);
            let todo = problem.todo.as_deref().and_then(|todo| todo.lines().next());
            let mut finding = Finding { at, ..Finding::nowhere(what) };
            finding.write = todo.filter(|todo| !todo.contains("weir")).map(str::to_owned);
            found.add(finding);
        }
    }
}

/// Whether another rule has named the refusal of this line.
pub fn is_told(finding: &Finding, all: &[&Finding]) -> bool {
    let line = |finding: &Finding| finding.at.map(|at| (at.file, at.line));
    finding.rule == RULE.id
        && all
            .iter()
            .any(|other| TOLD_BY.contains(&other.rule) && other.level == Level::Wrong && line(other) == line(finding))
}

/// Whether a finding says that the program does not start with the file.
pub fn refuses(finding: &Finding) -> bool {
    let names = finding.rule == RULE.id || finding.rule == "unknown_directive" || finding.rule == "unknown_zone";
    names && finding.level == Level::Wrong
}

/// The parts of the file whose values weir cannot judge.
pub fn unchecked(view: &View<'_>) -> Vec<Said> {
    if !view.is_whole() {
        return vec![said!(
            "this file is a part of a configuration: weir did not check values, names of zones and variables; the whole file gives these",
            "설정의 일부인 파일이므로 값, 존과 변수의 이름은 검사하지 않았습니다. 전체 설정 파일을 지정하면 검사합니다"
        )];
    }
    if !is_readable(view) {
        return vec![said!(
            "weir could not read a part of the configuration, so it did not check values",
            "설정의 일부를 읽을 수 없어 값을 검사하지 않았습니다"
        )];
    }
    let foreign = foreign(view);
    if foreign.is_empty() {
        return Vec::new();
    }
    let names = foreign.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    let count = foreign.len();
    vec![said!(
        "weir does not know the values of {count} directives of other modules ({names}), nor the variables that these modules add",
        "다른 모듈의 지시어 {count}개({names})의 값과 그 모듈이 더하는 변수는 검사하지 않았습니다"
    )]
}

fn is_readable(view: &View<'_>) -> bool {
    view.is_whole() && !view.tree().is_partial
}

/// Names of directives that neither weir nor nginx has, and of those that load further ones.
fn foreign<'v>(view: &'v View<'v>) -> BTreeSet<&'v str> {
    // In these blocks every word is data, not a directive.
    let is_data = |block: Spot<'_>| {
        ["map", "types", "geo", "split_clients", "charset_map"].contains(&block.name()) || is_foreign(block.name())
    };
    let all = view.all().filter(|spot| is_foreign(spot.name()) && !spot.around().any(is_data));
    all.map(Spot::name).collect()
}

fn is_foreign(name: &str) -> bool {
    let is_nginxs = nginx_only::lookup(name).is_some_and(|entry| entry.origin() == Origin::Nginx);
    name == "load_module" || !is_nginxs && !crate::weirs::known().has(name)
}

/// Whether the problem is about the file alone, not about this machine's other files, names and users.
fn is_of_file(problem: &Problem) -> bool {
    let of_machine = [" failed (", "host not found", "cannot load ", "No such file"];
    !of_machine.iter().any(|words| problem.what.contains(words))
}

/// Whether nginx refuses the file, too. Some refusals are weir's own.
fn is_nginxs(problem: &Problem, knows_all: bool) -> bool {
    let what = problem.what.as_str();
    let own = what.contains("weir") || what.ends_with("is not supported") || what.starts_with("unknown directive");
    let variable = what.strip_prefix("unknown \"").and_then(|rest| rest.strip_suffix("\" variable"));
    let is_foreign = variable.is_some_and(|name| !knows_all || nginx_only::variable_module(name).is_some());
    is_of_file(problem) && !own && !is_foreign
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, NEWEST};

    fn messages(conf: &str) -> Vec<String> {
        let (tree, problems) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        assert_eq!(problems, [], "{conf}");
        let findings = crate::examine(&tree, NEWEST, &Facts::default());
        findings.into_iter().filter(refuses).map(|finding| finding.what.en).collect()
    }

    /// nginx 1.31.5 refuses each of these files.
    #[test]
    fn values_that_nginx_refuses_are_named() {
        let of_http = [
            "sendfile yes;",
            "gzip_comp_level 99;",
            "client_max_body_size 10mb;",
            "keepalive_timeout 65x;",
            "limit_req_zone $binary_remote_addr zone=a:10m;",
            "log_format a;",
            "log_format a '$no_such';",
            "access_log /tmp/a no_such_format;",
            "error_log /tmp/f badlevel;",
            "gzip;",
            "gzip on off;",
            "upstream u { }",
            "upstream u { server 10.0.0.1; } upstream u { server 10.0.0.2; }",
            "upstream u { server 10.0.0.1 wait=3; }",
            "server { listen 80 fast; }",
            "server { listen 80; listen 80; }",
            "server { listen 70000; }",
            "server { allow foo; }",
            "server { return 99999; }",
            "server { location / { if ($a) { proxy_pass http://10.0.0.1/x; } } }",
            "server { location / { return 200 $no_such; } }",
            "server { location ~ ^/a { proxy_pass http://10.0.0.1/x; } }",
            "server { location / { } location / { } }",
            "server { location / { proxy_pass ftp://10.0.0.1; } }",
            "server { location / { try_files $uri; } }",
            "server { location / { proxy_http_version 3; } }",
            "server { location / { expires soon; } }",
            "map $uri $a { default 1; default 2; }",
            "resolver_timeout 5s; resolver;",
        ];
        for line in of_http {
            let conf = format!("events {{ }} http {{ {line} }}");
            assert!(!messages(&conf).is_empty(), "{line}");
        }
        assert!(!messages("events { use kqueue; }").is_empty());
        assert!(!messages("events { worker_connections many; }").is_empty());
        assert_eq!(messages("events { } http { server { listen 80; } }"), Vec::<String>::new());
    }

    /// These depend on the machine, or on modules that weir does not have.
    #[test]
    fn what_weir_cannot_judge_is_not_called_wrong() {
        for line in [
            "server { listen 443 ssl; ssl_certificate /no/such.pem; ssl_certificate_key /no/such.key; }",
            "upstream u { server app.internal:3000; } server { location / { proxy_pass http://app.internal; } }",
            "geoip2 /a.mmdb { $country country iso_code; } server { return 200 $country; }",
            "server { listen 443 quic; }",
            "server { return 200 $geoip_city; }",
        ] {
            let conf = format!("events {{ }} http {{ {line} }}");
            assert_eq!(messages(&conf), Vec::<String>::new(), "{line}");
        }
        let view = |conf: &str| {
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            unchecked(&View::new(&tree)).iter().map(|said| said.en.clone()).collect::<String>()
        };
        assert!(view("server { listen 80; }").contains("a part of a configuration"));
        assert!(view("events { } http { geoip2 /a { $c c; } }").contains("1 directives of other modules (geoip2)"));
        assert_eq!(view("events { } http { map $uri $a { geoip2 x; } }"), "");
    }
}
