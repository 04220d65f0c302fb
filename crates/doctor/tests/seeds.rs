//! The published files of the field reports. The audit (reference/lab.md §1) lists flaws; those that a file, a host
//! or a load alone can show have to be found by their rule, at their line.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use weir_conf::{MemoryFiles, Tree};
use weir_doctor::{Facts, Finding, Version, compare, examine, explain};
use weir_host::{FileLimit, PamLimit, PortRest, Process, TIME_WAIT_MS, Unit};
use weir_words::Language;

/// Row of the audit, file, rule, line (0: no line of a file), words in its finding.
type Row = (&'static str, &'static str, &'static str, u32, &'static str);

const DEBIAN_12: Version = Version(1, 22, 1);
const NEW: Version = Version(1, 28, 0);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("0-1", "s0-snippet.conf", "unknown_directive", 3, "\"worker_connections\" directive is not allowed here"),
    ("0-3", "s0-final.conf", "connection_table", 5, "512 proxied clients"),
    ("0-4", "s0-final.conf", "use_epoll", 6, "nginx chooses epoll without this line"),
    ("0-6", "s0-final.conf", "multi_accept", 7, "one worker"),
    ("0-7", "s0-final.conf", "equals_default", 10, "60s is the default of nginx 1.22.1"),
    ("0-8", "s0-final.conf", "equals_default", 11, "60s"),
    ("0-9", "s0-final.conf", "equals_default", 13, "75s"),
    ("0-10", "s0-final.conf", "low_keepalive_requests", 14, "allows 1000"),
    ("0-11", "s0-final.conf", "websocket_upgrade", 24, "Upgrade"),
    ("0-12", "s0-final.conf", "socketio_without_stickiness", 17, "2 servers"),
    ("2-6", "s2-ports.conf", "upstream_without_keepalive", 4, "Above 470 requests a second"),
    ("2-7", "s2-inert.conf", "inert_upstream_keepalive", 11, "has no connection to keep"),
    ("2-8", "s2-inert.conf", "keepalive_pool_too_large", 6, "idle connections per worker"),
    ("3-1", "published.conf", "worker_processes_one", 2, "one worker"),
    ("3-5", "published.conf", "upstream_without_keepalive", 12, "every request needs a handshake"),
    ("3-6", "published.conf", "connection_table", 5, "960 idle clients"),
    ("3-11", "published.conf", "forwarded_headers", 41, "Host: honorsParkingBackend"),
    ("3-12", "published.conf", "unreachable_location", 24, "answers every request"),
    ("3-12", "published.conf", "unescaped_dot", 24, "well-known"),
    ("3-12", "published.conf", "index_without_handler", 38, "does not run index.php"),
    ("3-13", "published.conf", "listen_http2_deprecated", 32, "a separate directive"),
    ("3-14", "published.conf", "ssl_session_cache_missing", 32, "no ssl_session_cache"),
    ("3-15", "published.conf", "passive_ejection", 12, "3 servers"),
    ("4-1", "s4-final.conf", "unknown_zone", 7, "\"proxy_cache\" zone \"one\" is unknown"),
    ("4-2", "s4-final.conf", "unknown_directive", 17, "unknown directive \"status_zone\""),
    ("4-3", "s4-final.conf", "localhost_dual_stack", 22, "127.0.0.1 and ::1"),
    ("4-9", "s4-final.conf", "compression_lost", 14, "gzip is off"),
    ("4-12", "s4-cached.conf", "cache_stampede", 7, "no cache lock"),
    ("4-13", "s4-final.conf", "cache_foreground_refresh", 10, "client's own request"),
    ("4-14", "s4-final.conf", "cache_lock_polling", 8, "500 ms"),
    ("4-15", "s4-final.conf", "cache_stale_errors", 10, "passed on"),
    ("4-16", "s4-final.conf", "cache_personal_content", 7, "contains no cookie"),
    ("4-16", "s4-cached.conf", "cache_personal_content", 14, "stores the origin's answer although"),
    ("4-17", "s4-final.conf", "unknown_directive", 17, "belongs to NGINX Plus"),
];

/// The reports' applications are on other machines, and their files say 127.0.0.1: a port rests for a minute.
fn far() -> Facts {
    Facts { port_rest: PortRest { loopback_ms: TIME_WAIT_MS, others_ms: TIME_WAIT_MS }, ..Facts::default() }
}

#[test]
fn every_flaw_that_a_file_shows_is_found() {
    for (row, file, rule, line, words) in ROWS {
        let version = if *rule == "listen_http2_deprecated" { NEW } else { DEBIAN_12 };
        let tree = read(file);
        let findings = examine(&tree, version, &Facts { version_is_told: Some(version), ..far() });
        let is_it = |finding: &&Finding| {
            finding.rule == *rule && line_of(&tree, finding) == *line && finding.what.contains(words)
        };
        let of_rule: Vec<_> =
            findings.iter().filter(|f| f.rule == *rule).map(|f| (line_of(&tree, f), &f.what)).collect();
        assert!(findings.iter().any(|finding| is_it(&finding)), "{row}: {rule} in {file}:{line}: {of_rule:?}");
    }
}

#[test]
fn values_and_their_origin_settle_the_wrong_defaults() {
    // 0-2: 768 comes from Debian's file; 0-5: so does auto.
    let shown = explain::explain(&read("s0-before.conf"), DEBIAN_12, None, Language::English);
    assert!(shown.contains("default 512; as in Debian's package"), "{shown}");
    assert!(shown.contains("default 1; as in Debian's and nginx.org's packages"), "{shown}");
}

#[test]
fn s0_changes_one_thing_that_acts_and_that_for_the_worse() {
    let found = compare(&read("s0-before.conf"), &read("s0-final.conf"), DEBIAN_12);
    let what: Vec<&str> = found.iter().map(|finding| &*finding.what).collect();
    for word in [
        "use epoll",
        "multi_accept on",
        "proxy_connect_timeout",
        "proxy_read_timeout",
        "proxy_send_timeout",
        "keepalive_timeout 75s",
    ] {
        assert!(what.iter().any(|what| what.contains(word)), "{word}: {what:?}");
    }
    assert_eq!(what.len(), 6, "worker_connections and keepalive_requests do act: {what:?}");
}

#[test]
fn s0_had_headroom() {
    // 0-19: 4.9 sessions a second of 18 s each are 89 clients.
    let mut facts = Facts::default();
    facts.load.rate = Some(4.9);
    facts.load.seconds = Some(18.0);
    let findings = examine(&read("s0-before.conf"), DEBIAN_12, &facts);
    let headroom = findings.iter().find(|finding| finding.rule == "headroom").expect("headroom");
    assert!(headroom.what.contains("177 of 768"), "{:?}", headroom.what);
}

#[test]
fn s1_is_told_by_the_process() {
    let line = |domain: &str, item: &str| PamLimit {
        file: "/etc/security/limits.conf".to_owned(),
        line: 50,
        domain: domain.to_owned(),
        kind: "soft".to_owned(),
        item: item.to_owned(),
        value: "65535".to_owned(),
    };
    let facts = Facts {
        processes: vec![Process {
            id: 7,
            command: "nginx: worker process".to_owned(),
            files: Some(FileLimit { soft: 1024, hard: 524_288 }),
            open_files: Some(290),
            ..Process::default()
        }],
        unit: Some(Unit { name: "nginx.service".to_owned(), limit: None, is_known: true }),
        pam_limits: vec![line("www-data", "nofile"), line("*", "nproc")],
        ..Facts::default()
    };
    let findings = examine(&read("s0-final.conf"), DEBIAN_12, &facts);
    let has =
        |rule: &str, words: &str| findings.iter().any(|finding| finding.rule == rule && finding.what.contains(words));
    assert!(has(
        "fd_limit_running",
        "worker 7 may open 1024 files, 290 open now; 1024 connections need 2048. Limit set by systemd's default for nginx.service"
    ));
    assert!(has("pam_limits_do_not_apply", "nginx.service is started by systemd"));
    assert!(has("pam_limits_do_not_apply", "every user except root"));
}

#[test]
fn s2_is_about_ports_and_not_somaxconn() {
    let mut facts = Facts { somaxconn: Some(1024), local_ports: Some(28_232), ..far() };
    facts.load.rate = Some(989.0);
    let findings = examine(&read("s2-ports.conf"), DEBIAN_12, &Facts { version_is_told: Some(DEBIAN_12), ..facts });
    let has =
        |rule: &str, words: &str| findings.iter().any(|finding| finding.rule == rule && finding.what.contains(words));
    assert!(has("upstream_without_keepalive", "the expected load is 989 requests a second"), "{findings:?}");
    assert!(has("backlog_over_somaxconn", "the backlog is 4096, but net.core.somaxconn is 1024"), "{findings:?}");
}

fn read(file: &str) -> Tree {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = match file {
        "published.conf" => here.join("../../labs/s3-tls/published.conf"),
        file => here.join("testdata").join(file),
    };
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (tree, problems) = weir_doctor::load(&MemoryFiles::new().with("/nginx.conf", text), "/nginx.conf", "/");
    assert_eq!(problems, []);
    tree
}

fn line_of(tree: &Tree, finding: &Finding) -> u32 {
    finding.at.and_then(|at| Some(tree.source(&at)?.line_of(at.span.start))).unwrap_or(0)
}
