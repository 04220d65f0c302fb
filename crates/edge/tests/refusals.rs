//! What the families around rewrites, maps, access and limits refuse, in nginx's words.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use weir_conf::{Level, MemoryFiles};
use weir_edge::family::ALL;
use weir_http::exchange::conf::Conf;
use weir_http::hold::paths::Paths;

/// Compiles `http { TEXT }`; gives the configuration, the errors and the warnings.
fn compile(http: &str) -> (Option<Conf>, Vec<String>, Vec<String>) {
    let files = MemoryFiles::new().with("/etc/nginx.conf", format!("events {{ }} http {{ {http} }}"));
    let (tree, problems) = weir_conf::load(&files, "/etc/nginx.conf", "/etc/", &|_| false);
    assert!(problems.is_empty(), "{http}: {problems:?}");
    let resolve = |_: &str| Err("no names in tests".to_owned());
    let (conf, problems) = weir_http::read::compile::compile(
        &tree,
        Paths { prefix: "/".into(), conf_prefix: "/etc/".into(), ..Paths::default() },
        &resolve,
        1,
        &ALL,
    );
    let (errors, warnings) =
        problems.into_iter().partition::<Vec<_>, _>(|problem| matches!(problem.level, Level::Emerg));
    let words = |problems: Vec<weir_conf::Problem>| problems.into_iter().map(|problem| problem.what).collect();
    (conf, words(errors), words(warnings))
}

fn refuses(http: &str, words: &str) {
    let (conf, errors, _) = compile(http);
    assert_eq!(errors, [words], "{http}");
    assert!(conf.is_none(), "{http}");
}

fn accepts(http: &str) -> Conf {
    let (conf, errors, _) = compile(http);
    assert_eq!(errors, Vec::<String>::new(), "{http}");
    conf.expect("a configuration without errors")
}

fn refuses_in_location(statement: &str, words: &str) {
    refuses(&format!("server {{ location / {{ {statement} }} }}"), words);
}

#[test]
fn rewrite_rules() {
    for (statement, words) in [
        ("rewrite ^ '';", "empty replacement"),
        ("rewrite ^ /a first;", "invalid parameter \"first\""),
        ("rewrite ^;", "invalid number of arguments in \"rewrite\" directive"),
        ("rewrite ( /a;", "pcre2_compile() failed: missing closing parenthesis in \"(\""),
        ("return 1000;", "invalid return code \"1000\""),
        ("return text;", "invalid return code \"text\""),
        ("return http://a/ b;", "invalid return code \"http://a/\""),
        ("set x 1;", "invalid variable name \"x\""),
        ("set $host 1;", "the duplicate \"host\" variable"),
        ("return 200 $nobody;", "unknown \"nobody\" variable"),
        ("if ($args { }", "invalid condition \"$args\""),
        ("if ($args > 1) { }", "unexpected \">\" in condition"),
        ("if (-q /a) { }", "invalid condition \"-q\""),
        ("if (a = b) { }", "invalid condition \"a\""),
        ("if ($nobody) { }", "unknown \"nobody\" variable"),
        ("if () { }", "invalid condition \")\""),
        ("if ($args) { if ($args) { } }", "\"if\" directive is not allowed here"),
    ] {
        refuses_in_location(statement, words);
    }
    accepts("server { set $a 1; set $args $a; set $http_x 2; if ($a = 1) { return 200 $a; } location / { break; } }");
}

#[test]
fn maps_and_splits() {
    for (block, words) in [
        ("map $args x { }", "invalid variable name \"x\""),
        ("map $args $uri { }", "the duplicate \"uri\" variable"),
        ("map $args $x { a; }", "invalid number of the map parameters"),
        ("map $args $x { default 1; default 2; }", "duplicate default map parameter"),
        ("map $args $x { a 1; A 2; }", "conflicting parameter \"a\""),
        ("map $args $x { hostnames; *.*.a 1; }", "invalid hostname or wildcard \"*.*.a\""),
        ("split_clients $args $x { 60% a; 50% b; }", "percent total is greater than 100%"),
        ("split_clients $args $x { 60 a; }", "invalid percent value \"60\""),
        ("split_clients $args $x { 0% a; }", "invalid percent value \"0%\""),
    ] {
        refuses(block, words);
    }
    accepts(
        "map $y $x { a 1; ~*^b(?<c>.) $c; default $y; } map $args $y { volatile; \\default 1; } server { return 200 $x$c; }",
    );
}

#[test]
fn addresses() {
    for (block, words) in [
        ("geo $x { 10.0.0.0/33 1; }", "invalid network \"10.0.0.0/33\""),
        ("geo $x { 10.0.0.0; }", "invalid number of the geo parameters"),
        ("geo $x { ranges; 10.0.0.9-10.0.0.1 1; }", "invalid range \"10.0.0.9-10.0.0.1\""),
        (
            "geo $x { ranges; 10.0.0.0-10.0.0.9 1; 10.0.0.5-10.0.0.20 2; }",
            "range \"10.0.0.5-10.0.0.20\" overlaps \"10.0.0.0-10.0.0.9\"",
        ),
        (
            "geo $x { 10.0.0.0/8 1; ranges; }",
            "the \"ranges\" directive must be the first directive inside \"geo\" block",
        ),
        ("server { allow 1.2.3; }", "invalid parameter \"1.2.3\""),
        ("set_real_ip_from nowhere.test;", "host not found in set_real_ip_from \"nowhere.test\""),
        (
            "server { valid_referers none; }",
            "the \"none\" or \"blocked\" referers are specified in the \"valid_referers\" directive without any valid referer",
        ),
    ] {
        refuses(block, words);
    }
    let (_, _, warnings) = compile("geo $x { 10.0.0.0/8 1; 10.0.0.0/8 2; } server { deny 10.1.0.0/8; }");
    assert_eq!(
        warnings,
        [
            "duplicate network \"10.0.0.0/8\", value: \"2\", old value: \"1\"",
            "low address bits of 10.1.0.0/8 are meaningless"
        ]
    );
}

#[test]
fn limits() {
    for (block, words) in [
        ("limit_req_zone $args zone=a:1m rate=0r/s;", "invalid rate \"rate=0r/s\""),
        ("limit_req_zone $args zone=a:1k rate=1r/s;", "zone \"zone=a:1k\" is too small"),
        ("limit_req_zone $args rate=1r/s rate=1r/s;", "\"limit_req_zone\" must have \"zone\" parameter"),
        (
            "limit_req_zone $args zone=a:1m rate=1r/s; limit_req_zone $uri zone=a:1m rate=1r/s;",
            "limit_req_zone \"a\" is already bound to key \"$args\"",
        ),
        ("limit_req zone=a;", "zero size shared memory zone \"a\""),
        ("limit_req zone=;", "zero size shared memory zone \"\""),
        ("limit_req burst=1;", "\"limit_req\" must have \"zone\" parameter"),
        ("limit_req_zone $args zone=a:1m rate=1r/s; limit_req zone=a burst=x;", "invalid burst value \"burst=x\""),
        (
            "limit_req_zone $args zone=a:1m rate=1r/s; limit_req zone=a; limit_req zone=a;",
            "\"limit_req\" directive is duplicate",
        ),
        ("limit_conn_zone $args zone=a:1m; limit_conn a 0;", "invalid number of connections \"0\""),
        ("limit_conn_zone $args zone=a:1m; limit_conn a 70000;", "connection limit must be less 65536"),
        ("limit_conn a 1;", "zero size shared memory zone \"a\""),
        ("limit_conn_status 399;", "value must be between 400 and 599"),
    ] {
        refuses(block, words);
    }
}

#[test]
fn a_zone_lives_on_only_with_its_key() {
    let old = accepts("limit_req_zone $args zone=a:1m rate=1r/s; limit_conn_zone $args zone=b:1m;");
    let mut same = accepts("limit_req_zone $args zone=a:1m rate=9r/s; limit_conn_zone $uri zone=c:1m;");
    assert_eq!(ALL.adopt(&mut same, &old), Ok(()));
    let mut other = accepts("limit_req_zone $uri zone=a:1m rate=1r/s;");
    assert_eq!(
        ALL.adopt(&mut other, &old),
        Err("limit_req \"a\" uses the \"$uri\" key while previously it used the \"$args\" key".to_owned())
    );
    let mut other = accepts("limit_conn_zone $uri zone=b:1m;");
    assert_eq!(
        ALL.adopt(&mut other, &old),
        Err("limit_conn_zone \"b\" uses the \"$uri\" key while previously it used the \"$args\" key".to_owned())
    );
}
