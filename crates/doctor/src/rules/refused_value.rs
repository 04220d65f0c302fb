//! Lines that nginx refuses although it knows their directives: a value, a number of arguments, a name.

use std::collections::BTreeSet;

use weir_conf::{At, Problem};
use weir_http::read::nginx_only::{self, DirectiveOrigin};

use crate::rule::prelude::*;
use crate::view::View;

pub static RULE: Rule = Rule {
    id: "refused_value",
    level: FindingLevel::Wrong,
    group: Group::Works,
    symptoms: &[],
    says: words("The server refuses the configuration", "서버가 설정을 거부합니다"),
    remedy: words(
        "The server does not start, and a reload keeps the old configuration. weir reads values as nginx 1.31.5 does; an older nginx also refuses values that are newer than itself.",
        "서버가 시작하지 않으며, reload해도 이전 설정을 유지합니다. weir는 nginx 1.31.5처럼 값을 읽습니다. 더 오래된 nginx는 자신보다 새로운 값도 거부합니다.",
    ),
    source: "the same reader as weir edge -t; nginx's messages",
    check,
    fires: Example::conf("events { } http { sendfile yes; }"),
    silent: Example::conf("events { } http { sendfile on; }"),
};

/// The first words of nginx about a pattern.
const OF_PATTERN: &str = "pcre2_compile() failed";

/// Most names of directives in the sentence about what was not checked.
const NAMES_MAX: usize = 3;

fn check(case: &Case<'_>, found: &mut Findings) {
    if !is_readable(case.view) {
        return;
    }
    let program = if case.is_weir() { "weir edge" } else { "nginx" };
    let knows_variables = case.view.root().get("load_module").is_none() && foreign(case.view).is_empty();
    let problems = case.refused.map_or_else(|| crate::weirs::refused(case.tree()), <[Problem]>::to_vec);
    let is_meant = |problem: &&Problem| is_of_file(problem) && (case.is_weir() || is_nginxs(problem, knows_variables));
    for problem in problems.iter().filter(is_meant) {
        let mut what = said!("{program} -t says: {}", "{program} -t의 메시지: {}", problem.what);
        let hint = problem.todo.as_deref().and_then(|todo| todo.lines().next());
        if let Some(hint) = hint.filter(|hint| case.is_weir() || !hint.contains("weir")) {
            what += said!(" (hint: {hint})", " (힌트: {hint})");
        }
        for at in std::iter::once(problem.at).chain(problem.also.iter().copied().map(Some)) {
            found.add(Finding { at, ..Finding::nowhere(what.clone()) });
        }
    }
}

/// The place of a refusal that another rule has named, and the words that nginx has about the same refusal.
pub fn told(finding: &Finding) -> Option<(At, String)> {
    let quoted = |number: usize| Some(format!("\"{}\"", finding.what.split('"').nth(number)?));
    let words = match finding.rule {
        _ if !refuses(finding) => None,
        "invalid_regex" => Some(OF_PATTERN.to_owned()),
        "unknown_directive" => quoted(1),
        "unknown_zone" => quoted(3),
        _ => None,
    };
    finding.at.zip(words)
}

/// Whether another rule has named the same refusal, by the results of [`told`].
pub fn is_told(finding: &Finding, told: &[(At, String)]) -> bool {
    let is_same = |(at, words): &(At, String)| finding.at == Some(*at) && finding.what.contains(words);
    finding.rule == RULE.id && told.iter().any(is_same)
}

/// Whether a finding says that the program does not start with the file.
pub fn refuses(finding: &Finding) -> bool {
    let is_refusal = match finding.rule {
        "invalid_regex" => finding.what.starts_with(OF_PATTERN),
        rule => [RULE.id, "unknown_directive", "unknown_zone"].contains(&rule),
    };
    is_refusal && finding.level == FindingLevel::Wrong
}

/// The parts of the file whose values weir cannot judge.
pub fn unchecked(view: &View<'_>) -> Vec<Said> {
    if !view.is_whole() {
        return vec![said!(
            "This file is a part of a configuration. weir did not check its values, zones and variables. Name the main file to check them.",
            "이 파일은 설정의 일부입니다. weir는 이 파일의 값, 존, 변수를 검사하지 않았습니다. 검사하려면 주 설정 파일을 지정하세요."
        )];
    }
    if !is_readable(view) {
        return vec![said!(
            "weir could not read a part of the configuration. It did not check the values, zones and variables.",
            "weir가 설정의 일부를 읽지 못했습니다. 값, 존, 변수는 검사하지 않았습니다."
        )];
    }
    let foreign = foreign(view);
    if foreign.is_empty() {
        return Vec::new();
    }
    let names = foreign.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    let more = match foreign.len().saturating_sub(NAMES_MAX) {
        0 => Said::from(""),
        more => said!(" and {more} more", " 외 {more}개"),
    };
    let sentence = said!("Other modules have these directives: {names}", "다른 모듈의 지시어입니다: {names}") + more;
    vec![
        sentence
            + said!(
                ". weir did not check their values and variables.",
                ". weir는 이 지시어의 값과 변수를 검사하지 않았습니다."
            ),
    ]
}

fn is_readable(view: &View<'_>) -> bool {
    view.is_whole() && !view.tree().is_partial
}

/// Names of directives that neither weir nor nginx has.
fn foreign<'v>(view: &'v View<'v>) -> BTreeSet<&'v str> {
    // In these blocks every word is data, not a directive.
    let is_data = |block: Spot<'_>| {
        ["map", "types", "geo", "split_clients", "charset_map"].contains(&block.name()) || is_foreign(block.name())
    };
    let all = view.all().filter(|spot| is_foreign(spot.name()) && !spot.around().any(is_data));
    all.map(Spot::name).collect()
}

fn is_foreign(name: &str) -> bool {
    let is_nginxs = nginx_only::lookup(name).is_some_and(|entry| entry.origin() == DirectiveOrigin::Nginx);
    !is_nginxs && !crate::weirs::known().has(name)
}

/// Whether the problem is about the file alone, not about this machine's other files, names and users.
pub fn is_of_file(problem: &Problem) -> bool {
    let of_machine = [" failed (", "host not found", "cannot load ", "No such file"];
    !of_machine.iter().any(|words| problem.what.contains(words))
}

/// Whether nginx refuses the file, too. A module that weir does not have may have a variable of any name.
fn is_nginxs(problem: &Problem, knows_variables: bool) -> bool {
    let is_of_variable = problem.what.starts_with("unknown \"") && problem.what.ends_with("\" variable");
    !problem.is_weirs_own && (knows_variables || !is_of_variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Facts, NEWEST};

    fn messages(conf: &str) -> Vec<String> {
        let (tree, problems) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
        assert_eq!(problems, [], "{conf}");
        let findings = crate::examine(&tree, NEWEST, &Facts::default());
        findings.into_iter().filter(refuses).map(|finding| finding.what.en().to_owned()).collect()
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
        assert!(!messages("events { use nothing; }").is_empty());
        assert!(!messages("events { worker_connections many; }").is_empty());
        assert_eq!(messages("events { } http { server { listen 80; } }"), Vec::<String>::new());
    }

    /// Another rule hides a refusal only if it names the same refusal.
    #[test]
    fn no_refusal_is_lost() {
        // The lines, and the words of each refusal.
        let rows: [(&str, &[&str]); 10] = [
            ("server { rewrite ^/a /$1 sometimes; }", &["invalid parameter \"sometimes\""]),
            ("server { location ~ \"(\" { } }", &["pcre2_compile() failed"]),
            ("server { if ($uri ~ \"(\") { } }", &["pcre2_compile() failed"]),
            ("server { rewrite ( /a; }", &["pcre2_compile() failed"]),
            ("server { server_name ~(; }", &["pcre2_compile() failed"]),
            ("map $uri $a { ~( 1; }", &["pcre2_compile() failed"]),
            ("server { limit_req zone=a burst=x; }", &["zone \"a\" is unknown", "invalid burst value \"burst=x\""]),
            ("server { limit_req zone=a; proxy_cache b; }", &["zone \"a\" is unknown", "zone \"b\" is unknown"]),
            (
                "server { no_such on; listen 80 fast; }",
                &["unknown directive \"no_such\"", "invalid parameter \"fast\""],
            ),
            ("server { events { } }", &["\"events\" directive is not allowed here"]),
        ];
        for (line, words) in rows {
            let messages = messages(&format!("events {{ }} http {{ {line} }}"));
            let has_all = words.iter().all(|words| messages.iter().any(|message| message.contains(words)));
            assert!(has_all && messages.len() == words.len(), "{line}: {messages:?}");
        }
    }

    /// nginx accepts the first four lines. The last one depends on the system for which nginx was built.
    #[test]
    fn limits_of_weir_are_no_refusals_of_nginx() {
        let servers = (1..=65).map(|n| format!(" 10.0.0.{n}")).collect::<String>();
        let depth = (1..=65).fold(("/".to_owned(), String::new()), |(path, text), n| {
            (format!("{path}{n}/"), format!("{text}location {path}{n}/ {{ "))
        });
        let nested = format!("server {{ {} {} }}", depth.1, "} ".repeat(65));
        for (main, event, http) in [
            ("worker_processes 300;", "", ""),
            ("", "", "server { slice 512m; }"),
            ("", "", format!("resolver{servers};").as_str()),
            ("", "", nested.as_str()),
            ("", "use kqueue;", ""),
        ] {
            let conf = format!("{main} events {{ {event} }} http {{ {http} }}");
            assert_eq!(messages(&conf), Vec::<String>::new(), "{conf}");
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", &conf), "/f", "/");
            let findings = crate::examine(&tree, crate::Target::Weir, &Facts::default());
            assert!(findings.iter().any(refuses), "{conf}");
        }
    }

    /// A name of a host is one address, and two names are two.
    #[test]
    fn two_names_of_hosts_are_no_duplicate() {
        let listens = |one: &str, other: &str| messages(&format!("events {{ }} http {{ server {{ {one} {other} }} }}"));
        assert_eq!(listens("listen a.test:80;", "listen b.test:80;"), [""; 0]);
        assert!(!listens("listen a.test:80;", "listen a.test:80;").is_empty());
        let conf = "events { } http { server { listen a.test:80 default_server; } server { listen b.test:80 default_server; } }";
        assert_eq!(messages(conf), [""; 0]);
    }

    /// A file of `stream` may be a part that the main file includes.
    #[test]
    fn a_part_needs_no_events() {
        assert_eq!(messages("stream { server { listen 1; proxy_pass 10.0.0.1:1; } }"), [""; 0]);
        assert!(!messages("http { }").is_empty());
    }

    /// A line to write is a line of a file. A hint belongs to the sentence.
    #[test]
    fn a_hint_is_no_line_to_write() {
        let finding = |target: crate::Target, conf: &str| {
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            let all = crate::examine(&tree, target, &Facts::default());
            all.into_iter().find(|finding| finding.rule == RULE.id)
        };
        let told = |target: crate::Target, conf: &str| {
            finding(target, conf)
                .map(|finding| (finding.what.en().to_owned(), finding.what.ko().to_owned(), finding.write))
        };
        let conf = "events { } http { server { location / { proxy_http_version 3; } } }";
        let (en, ko) = (" -t says: invalid value \"3\"", " -t의 메시지: invalid value \"3\"");
        let (hint, of_korean) = (" (hint: write 1.0, 1.1 or 2)", " (힌트: write 1.0, 1.1 or 2)");
        for (target, program) in [(NEWEST.into(), "nginx"), (crate::Target::Weir, "weir edge")] {
            let expected = (format!("{program}{en}{hint}"), format!("{program}{ko}{of_korean}"), None);
            assert_eq!(told(target, conf), Some(expected));
        }
        let conf = "events { use nothing; }";
        assert_eq!(
            told(NEWEST.into(), conf).map(|told| told.0),
            Some("nginx -t says: invalid event type \"nothing\"".into())
        );
    }

    /// These depend on the machine, or on modules that weir does not have.
    #[test]
    fn what_weir_cannot_judge_is_not_called_wrong() {
        for line in [
            "server { listen 443 ssl; ssl_certificate /no/such.pem; ssl_certificate_key /no/such.key; }",
            "upstream u { server app.internal:3000; } server { location / { proxy_pass http://app.internal; } }",
            "geoip2 /a.mmdb { $country country iso_code; } server { return 200 $country; }",
            "server { listen 443 quic; ssl_certificate /no/such.pem; ssl_certificate_key /no/such.key; }",
            "server { return 200 $geoip_city; }",
        ] {
            let conf = format!("events {{ }} http {{ {line} }}");
            assert_eq!(messages(&conf), Vec::<String>::new(), "{line}");
        }
        let view = |conf: &str| {
            let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
            unchecked(&View::new(&tree)).iter().map(|said| said.en().to_owned()).collect::<String>()
        };
        assert!(view("server { listen 80; }").starts_with("This file is a part of a configuration."));
        let foreign = |names: &str| {
            format!("Other modules have these directives: {names}. weir did not check their values and variables.")
        };
        assert_eq!(view("events { } http { geoip2 /a { $c c; } }"), foreign("geoip2"));
        assert_eq!(view("events { } http { d_d 1; b_b 1; c_c 1; a_a 1; }"), foreign("a_a, b_b, c_c and 1 more"));
        assert_eq!(view("events { } http { map $uri $a { geoip2 x; } }"), "");
        // The module may add variables, but the file has no directive of it.
        assert_eq!(view("load_module a.so; events { } http { server { return 200 $no_such; } }"), "");
        assert_eq!(messages("load_module a.so; events { } http { server { return 200 $no_such; } }"), [""; 0]);
    }
}
