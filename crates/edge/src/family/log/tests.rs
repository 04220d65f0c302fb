//! Tests which `access_log`, `log_format` and `error_log` weir accepts, refuses and inherits.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use weir_http::exchange::conf::Conf;
use weir_http::hold::paths::Paths;

use super::*;

fn compile(text: &str) -> (Option<Conf>, Vec<String>) {
    let files = weir_conf::MemoryFiles::new().with("/c/nginx.conf", text);
    let (tree, problems) = weir_conf::load(&files, "/c/nginx.conf", "/c/", &|_| false);
    assert!(problems.is_empty(), "{problems:?}");
    let paths = Paths { prefix: "/p/".to_owned(), conf_prefix: "/c/".to_owned(), ..Paths::default() };
    let (conf, problems) = weir_http::read::compile::compile(
        &tree,
        paths,
        &|_| Err("no resolver here".to_owned()),
        1,
        &crate::family::ALL,
    );
    (conf, problems.into_iter().map(|problem| problem.what).collect())
}

/// A configuration with these statements in `http`, in `server`, and in `location /`.
fn http(http: &str, server: &str, location: &str) -> (Option<Conf>, Vec<String>) {
    compile(&format!("events {{}} http {{ {http} server {{ {server} location / {{ {location} }} }} }}"))
}

fn paths(files: &[Arc<LogFile>]) -> Vec<&str> {
    files.iter().map(|file| file.path()).collect()
}

#[test]
fn refusals_are_nginx_words() {
    for (statements, what) in [
        ("access_log off x;", "invalid parameter \"x\""),
        ("access_log a b;", "unknown log format \"b\""),
        ("access_log a combined flush=1s;", "no buffer is defined for access_log \"a\""),
        ("access_log a combined buffer=0;", "invalid buffer size \"0\""),
        ("access_log a combined buffer=1k flush=x;", "invalid flush time \"x\""),
        ("access_log a combined gzip=10;", "invalid compression level \"10\""),
        ("access_log a combined loud;", "invalid parameter \"loud\""),
        ("access_log $uri combined buffer=1k;", "buffered logs cannot have variables in name"),
        ("access_log syslog:server=127.0.0.1 combined buffer=1k;", "logs to syslog cannot be buffered"),
        (
            "access_log a combined buffer=1k; access_log a combined buffer=2k;",
            "access_log \"a\" already defined with conflicting parameters",
        ),
        ("log_format combined x;", "duplicate \"log_format\" name \"combined\""),
        ("log_format a escape=xml x;", "unknown log format escaping \"xml\""),
        ("log_format a $nothing_like_it; access_log l a;", "unknown \"nothing_like_it\" variable"),
        ("open_log_file_cache inactive=1s;", "\"open_log_file_cache\" must have \"max\" parameter"),
        ("open_log_file_cache max=x;", "invalid \"open_log_file_cache\" parameter \"max=x\""),
        ("error_log a loud;", "invalid log level \"loud\""),
        ("error_log a info warn;", "duplicate log level \"warn\""),
        ("error_log syslog:tag=x;", "no syslog server specified"),
        ("error_log memory:1m;", "error_log to \"memory:\" is not supported: weir has no debug log"),
    ] {
        let (conf, problems) = http(statements, "", "");
        assert!(conf.is_none(), "{statements}");
        assert_eq!(problems, [what], "{statements}");
    }
}

#[test]
fn a_server_without_a_log_gets_the_default_one() {
    let conf = http("", "", "").0.expect("valid");
    assert_eq!(paths(&crate::declared(&conf).log.files), ["/p/logs/access.log"]);
    let conf = http("access_log off;", "", "access_log inner;").0.expect("valid");
    assert_eq!(paths(&crate::declared(&conf).log.files), ["/p/inner"]);
    let conf = http("", "access_log a; access_log /b;", "").0.expect("valid");
    assert_eq!(paths(&crate::declared(&conf).log.files), ["/p/a", "/b"]);
}

#[test]
fn a_location_inherits_all_logs_or_none() {
    let counts = |location: &str| {
        let conf = http("", "access_log a; access_log b; access_log off;", location).0.expect("valid");
        let logs = &crate::values(conf.locations.last().expect("a location")).log.logs;
        (logs.off, logs.list.len())
    };
    assert_eq!(counts(""), (true, 2));
    assert_eq!(counts("access_log c;"), (false, 1));
}

#[test]
fn error_logs_are_inherited_from_main() {
    let takes = |text: &str| {
        let conf = compile(text).0.expect("valid");
        let inner = &conf.locations.last().expect("a location").values.error_log;
        let levels = [Level::Error, Level::Warn, Level::Info];
        (levels.map(|level| conf.main.error_log.main.takes(level)), levels.map(|level| inner.sinks.takes(level)))
    };
    let at = |main: &str, http: &str, location: &str| {
        takes(&format!("{main} events {{}} http {{ {http} server {{ location / {{ {location} }} }} }}"))
    };
    let (errors, warnings, all) = ([true, false, false], [true, true, false], [true, true, true]);
    assert_eq!(at("", "", ""), (errors, errors));
    assert_eq!(at("error_log a warn;", "", ""), (warnings, warnings));
    assert_eq!(at("", "error_log a info;", ""), (errors, all));
    assert_eq!(at("error_log a info;", "error_log b; error_log stderr warn;", ""), (all, warnings));
    assert_eq!(at("error_log a info;", "error_log b;", "error_log c crit;"), (all, [false, false, false]));
    // nginx: if all logs go to syslog, errors still go to the default file.
    assert_eq!(at("error_log syslog:server=127.0.0.1 crit;", "", "").1, errors);
}

#[test]
fn only_empty_and_zero_filter_a_request_out() {
    for (value, passes) in [(&b""[..], false), (b"0", false), (b"00", true), (b"1", true), (b"off", true)] {
        assert_eq!(is_true(value), passes, "{value:?}");
    }
}
