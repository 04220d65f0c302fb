//! The rules, one file each: a row of the table (name, level, sentences, source), the check, a case in which it fires
//! and one in which it is silent.
//!
//! To add a rule, add a file and its name in `rules!`.

use crate::rule::Rule;

macro_rules! rules {
    ($($name:ident)*) => {
        $( mod $name; )*

        /// All rules, by name.
        pub static RULES: &[&Rule] = &[$( &$name::RULE, )*];
    };
}

rules! {
    access_log_unbuffered
    acme_unreachable
    add_header_content_type
    add_header_multiline
    add_header_redefinition
    alias_traversal
    allow_without_deny
    alt_svc_missing
    alt_svc_without_quic
    app_workers
    backlog_over_somaxconn
    cache_foreground_refresh
    cache_lock_polling
    cache_needs_buffering
    cache_personal_content
    cache_stale_errors
    cache_stampede
    cache_without_key
    certificate_expires
    compression_lost
    conflicting_server_name
    connection_table
    connections_dropped
    cpu_throttled
    default_server_flag
    equals_default
    error_log_off
    fastcgi_without_script
    fd_limit_running
    filesystem_root_exposure
    forwarded_headers
    hash_without_default
    headroom
    host_spoofing
    hsts_header
    http2_misdirected_request
    http_splitting
    if_is_evil
    index_without_handler
    inert_fastcgi_keepalive
    inert_upstream_keepalive
    invalid_regex
    keepalive_pool_too_large
    keepalive_timeout_websocket
    listen_http2_deprecated
    localhost_dual_stack
    low_keepalive_requests
    missing_resolver
    multi_accept
    nginx_cves
    obsolete_directive
    open_proxy
    origin_listens_elsewhere
    origins
    pam_limits_do_not_apply
    passive_ejection
    proxy_headers_dropped
    proxy_pass_normalized
    quic_bpf_reuseport
    refused_value
    regex_exact_match
    regex_redos
    resolver_external
    retry_amplification
    return_bypasses_allow_deny
    single_event_loop
    socketio_without_stickiness
    ssl_ecdh_curve
    ssl_session_cache_missing
    ssl_stapling_letsencrypt
    ssl_stapling_without_resolver
    ssrf
    status_page_exposed
    try_files_is_evil_too
    udp_receive_buffer
    unanchored_regex
    unescaped_dot
    unknown_directive
    unknown_zone
    unreachable_location
    upgrade_h2c
    upstream_idle_timeout
    upstream_without_keepalive
    use_epoll
    valid_referers
    version_disclosure
    weak_ssl_tls
    websocket_connection_constant
    websocket_timeout
    websocket_upgrade
    worker_coalesce
    worker_processes_one
    worker_rlimit_nofile_vs_connections
    workers_over_cpus
    worse_than_default
}

/// Rules about behaviour of nginx that weir does not share. They are silent if weir reads the file. The edge's table of
/// directives has weir's own behaviour; `weir edge -t` lists the directives that weir refuses or ignores, with reasons.
pub const NGINXS_ALONE: [&str; 11] = [
    // weir serves the stale object while it fetches, and wakes waiting requests.
    "cache_foreground_refresh",
    "cache_lock_polling",
    "multi_accept",
    "nginx_cves",
    "obsolete_directive",
    "quic_bpf_reuseport",
    // weir's key exchange groups do not depend on an OpenSSL.
    "ssl_ecdh_curve",
    "unknown_directive",
    "upstream_without_keepalive",
    "use_epoll",
    // weir forwards upgrades by default.
    "websocket_upgrade",
];

/// The place and the words of a refusal that a rule names in words of its own.
pub(crate) fn told(finding: &crate::Finding) -> Option<(weir_conf::At, String)> {
    refused_value::told(finding)
}

/// Whether another rule has named the same refusal, by the results of [`told`].
pub(crate) fn is_told(finding: &crate::Finding, told: &[(weir_conf::At, String)]) -> bool {
    refused_value::is_told(finding, told)
}

/// Whether a finding says that the program does not start with the file.
pub fn refuses(finding: &crate::Finding) -> bool {
    refused_value::refuses(finding)
}

/// Whether a problem is about the file alone, not about this machine's other files, names and users.
pub fn is_of_file(problem: &weir_conf::Problem) -> bool {
    refused_value::is_of_file(problem)
}

/// The parts of the file whose values weir cannot judge.
pub fn unchecked(tree: &weir_conf::Tree) -> Vec<weir_words::Said> {
    refused_value::unchecked(&crate::view::View::new(tree))
}

/// Whether nginx, an nginx module or weir has a directive of this name.
pub fn is_known(name: &str) -> bool {
    weir_http::read::nginx_only::lookup(name).is_some() || is_weirs(name)
}

/// Whether weir's edge has a directive of this name, independently of nginx.
pub fn is_weirs(name: &str) -> bool {
    crate::weirs::known().has(name)
}

/// The rule of this name.
pub fn lookup(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}

/// Number of files that a worker needs, by the rule about running workers.
pub(crate) fn files_needed(case: &crate::rule::Case<'_>) -> Option<u64> {
    fd_limit_running::need(case).map(|(_, files)| files)
}

/// A file after the fixes of one rule.
#[cfg(test)]
fn mended(rule: &Rule, conf: &str) -> String {
    let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
    let is_own = |finding: &crate::Finding| finding.rule == rule.id;
    let judges = crate::fixes::Judges::lenient(&is_own);
    let whole = crate::fixes::choose(&tree, crate::NEWEST.into(), &crate::Facts::default(), &judges);
    String::from_utf8_lossy(whole.files.first().map_or(conf.as_bytes(), |file| &file.after)).into_owned()
}

/// The findings of one rule about a file and facts.
#[cfg(test)]
fn finds(rule: &Rule, conf: &str, facts: &crate::Facts) -> Vec<crate::Finding> {
    let (tree, _) = crate::load(&weir_conf::MemoryFiles::new().with("/f", conf), "/f", "/");
    let all = crate::examine(&tree, crate::NEWEST, facts);
    all.into_iter().filter(|finding| finding.rule == rule.id).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use crate::facts::Facts;
    use crate::fixes::{self, Judges};
    use crate::rule::Example;
    use crate::target::Target;
    use crate::version::Version;
    use crate::view::View;

    /// The findings of one rule for an example.
    fn found(rule: &Rule, example: &Example) -> Vec<crate::Finding> {
        let mut facts = Facts::default();
        (example.facts)(&mut facts);
        let files = weir_conf::MemoryFiles::new().with("/example", example.conf);
        let (tree, problems) = crate::load(&files, "/example", "/");
        assert_eq!(problems, [], "{}", rule.id);
        let target = match Target::is_weirs_alone(&View::new(&tree)) {
            true => Target::Weir,
            false => facts.version_is_told.unwrap_or(crate::NEWEST).into(),
        };
        let findings = crate::examine(&tree, target, &facts);
        for mended in crate::mend::mend(&tree, &findings) {
            let files = weir_conf::MemoryFiles::new().with("/example", &mended.after);
            let (_, problems) = crate::load(&files, "/example", "/");
            assert_eq!(problems, [], "{}: {}", rule.id, String::from_utf8_lossy(&mended.after));
        }
        findings.into_iter().filter(|finding| finding.rule == rule.id).collect()
    }

    #[test]
    fn every_rule_speaks_and_is_silent_where_it_says() {
        for rule in RULES {
            assert!(!found(rule, &rule.fires).is_empty(), "{} does not speak", rule.id);
            let silent = found(rule, &rule.silent);
            assert!(silent.is_empty(), "{} is not silent: {silent:?}", rule.id);
        }
    }

    /// A rule about caches speaks of the caches of every family.
    #[test]
    fn rules_about_caches_know_every_family() {
        for rule in RULES.iter().filter(|rule| rule.id.starts_with("cache_") && rule.id != "cache_without_key") {
            for names in &crate::caches::FAMILIES {
                let of_family = |example: &Example| {
                    let conf = example.conf.replace("proxy_", &format!("{}_", names.family));
                    let tree = tree_of(conf.as_bytes());
                    let findings = crate::examine(&tree, crate::NEWEST, &Facts::default());
                    let own = findings.into_iter().filter(|finding| finding.rule == rule.id);
                    own.map(|finding| finding.write.unwrap_or_default()).collect::<Vec<_>>()
                };
                let (fires, silent) = (of_family(&rule.fires), of_family(&rule.silent));
                assert!(!fires.is_empty() && silent.is_empty(), "{} {}: {silent:?}", rule.id, names.family);
                let is_own = |line: &String| line.is_empty() || line.starts_with(names.family);
                assert!(fires.iter().all(is_own), "{} {}: {fires:?}", rule.id, names.family);
            }
        }
    }

    fn tree_of(conf: &[u8]) -> weir_conf::Tree {
        crate::load(&weir_conf::MemoryFiles::new().with("/example", conf), "/example", "/").0
    }

    /// After one round of changes nothing is left to change: a change that requires another one makes both.
    #[test]
    fn what_was_mended_once_leaves_nothing_to_mend() {
        for rule in RULES {
            let mut facts = Facts::default();
            (rule.fires.facts)(&mut facts);
            let version = facts.version_is_told.unwrap_or(crate::NEWEST);
            for target in [Target::Nginx(version), Target::Nginx(Version(1, 22, 1)), Target::Weir] {
                let told = Facts { version_is_told: Some(target.version()), ..facts.clone() };
                let tree = tree_of(rule.fires.conf.as_bytes());
                let whole = fixes::choose(&tree, target, &told, &Judges::lenient(&|_| true));
                let after = whole.files.first().map_or(rule.fires.conf.as_bytes(), |file| &file.after);
                let left: Vec<_> = crate::examine(&tree_of(after), target, &told)
                    .into_iter()
                    .filter(|finding| !finding.fix.is_empty())
                    .collect();
                assert!(
                    left.is_empty() && whole.left == 0,
                    "{}: {left:?}\n{}",
                    rule.id,
                    String::from_utf8_lossy(after)
                );
            }
        }
    }

    /// How many findings each rule has that are at least as grave as this level.
    fn count(findings: &[crate::Finding], rule: &str, level: crate::FindingLevel) -> usize {
        findings.iter().filter(|finding| finding.rule == rule && finding.level <= level).count()
    }

    /// Further files whose fixes nginx has to take: a line is there already, or a block takes no such line.
    const MORE: [Example; 7] = [
        Example::conf("server { proxy_cache c; proxy_cache_lock off; proxy_cache_use_stale off; }"),
        Example::conf("server { proxy_cache c; proxy_cache_use_stale updating; proxy_cache_background_update off; }"),
        Example::conf("server { listen 80; location /ws { if ($arg_a) { proxy_pass http://a; } } }"),
        Example::conf("server { listen 80; location /ws { limit_except GET { proxy_pass http://a; } } }"),
        Example::conf(
            "upstream a { server 10.0.0.1; keepalive 8; } server { location / { fastcgi_keep_conn off; fastcgi_pass a; } }",
        ),
        Example::conf("server { location / { gzip off; proxy_set_header Accept-Encoding ''; proxy_pass http://a; } }"),
        Example::conf("server { proxy_next_upstream error http_503; proxy_next_upstream_tries 0; }"),
    ];

    /// An example with the blocks, zones and keys that it needs: nginx refuses a part of a file.
    fn complete(conf: &str) -> String {
        let has = |name: &str| View::new(&tree_of(conf.as_bytes())).root().get(name).is_some();
        let events = if has("events") { "" } else { "events { } " };
        let caches = crate::caches::FAMILIES.iter().filter(|names| conf.contains(&format!("{} c;", names.cache)));
        let mut needs: String = caches.map(|names| format!("{}_path /c keys_zone=c:1m; ", names.cache)).collect();
        for line in ["ssl_certificate /c.pem; ", "ssl_certificate_key /c.key; "] {
            let speaks_tls = conf.contains(" ssl") || conf.contains(" quic");
            let is_lacking = speaks_tls && !conf.contains(line.split('/').next().unwrap_or_default());
            needs.push_str(if is_lacking { line } else { "" });
        }
        let all =
            [("", ""), ("http { ", " }"), ("http { server { ", " } }"), ("http { server { location / { ", " } } }")]
                .map(|(before, after)| format!("{events}{before}{conf}{after}"))
                .map(|conf| conf.replacen("http { ", &format!("http {{ {needs}"), 1));
        let is_misplaced = |conf: &String| {
            let refused = crate::weirs::refused(&tree_of(conf.as_bytes()));
            refused.iter().any(|problem| problem.what.ends_with("directive is not allowed here"))
        };
        all.iter().find(|conf| !is_misplaced(conf)).unwrap_or(&all[0]).clone()
    }

    /// The statements that stand in one block more than once, with their block.
    fn repeated(statements: &[weir_conf::Statement], found: &mut Vec<String>) {
        let words =
            |one: &weir_conf::Statement| one.words().map(|word| word.text.clone()).collect::<Vec<_>>().join(" ");
        for (at, one) in statements.iter().enumerate() {
            if statements[..at].iter().any(|other| !other.is_block() && words(other) == words(one)) {
                found.push(words(one));
            }
            repeated(one.children(), found);
        }
    }

    /// Rules that want the same line in one block write it once.
    #[test]
    fn all_fixes_together_write_no_line_twice() {
        let streams = include_str!("../../../../tests/fixes/streams.conf").to_owned();
        let examples = RULES.iter().flat_map(|rule| [&rule.fires, &rule.silent]).chain(MORE.iter());
        let all = examples.map(|example| complete(example.conf)).chain([streams]);
        for conf in all {
            let tree = tree_of(conf.as_bytes());
            let target = Target::Nginx(Version(1, 22, 1));
            let told = Facts { version_is_told: Some(target.version()), ..Facts::default() };
            let whole = fixes::choose(&tree, target, &told, &Judges::lenient(&|_| true));
            let Some(file) = whole.files.first() else { continue };
            let (mut before, mut after) = (Vec::new(), Vec::new());
            repeated(&tree.root, &mut before);
            repeated(&tree_of(&file.after).root, &mut after);
            assert!(after.len() <= before.len(), "{after:?}\n{}", String::from_utf8_lossy(&file.after));
        }
    }

    /// The fix of one rule, with everything that belongs to it, brings no finding of another rule.
    #[test]
    fn no_fix_brings_a_new_finding() {
        let of_rules = RULES.iter().flat_map(|rule| [(rule.id, &rule.fires), (rule.id, &rule.silent)]);
        let mut worse = Vec::new();
        for (name, example) in of_rules.chain(MORE.iter().map(|example| ("further", example))) {
            let mut facts = Facts::default();
            (example.facts)(&mut facts);
            let conf = complete(example.conf);
            for target in [Target::Nginx(crate::NEWEST), Target::Nginx(Version(1, 22, 1)), Target::Weir] {
                let told = Facts { version_is_told: Some(target.version()), ..facts.clone() };
                let tree = tree_of(conf.as_bytes());
                let before = crate::examine(&tree, target, &told);
                // A refusal hides those that come after it.
                if target != Target::Weir {
                    let is_meant =
                        |rule: &str| rule == name || (name, rule) == ("obsolete_directive", "unknown_directive");
                    let unmeant = before.iter().filter(|finding| refuses(finding) && !is_meant(finding.rule));
                    worse.extend(unmeant.map(|finding| format!("{name}, {target}: {}\n{conf}", finding.what.en())));
                }
                let mut fixed: Vec<&str> =
                    before.iter().filter(|finding| !finding.fix.is_empty()).map(|finding| finding.rule).collect();
                fixed.dedup();
                for fix in fixed {
                    let is_own = |finding: &crate::Finding| finding.rule == fix;
                    let whole = fixes::choose(&tree, target, &told, &Judges::lenient(&is_own));
                    worse.extend(
                        whole
                            .dropped
                            .iter()
                            .map(|one| format!("{name}, {target}: {fix} is dropped: {}\n{conf}", one.why.en())),
                    );
                    let Some(file) = whole.files.first() else { continue };
                    let after = crate::examine(&tree_of(&file.after), target, &told);
                    for finding in &after {
                        let is_more =
                            count(&after, finding.rule, finding.level) > count(&before, finding.rule, finding.level);
                        if is_more && !fixes::MAY_COME.contains(&(fix, finding.rule)) {
                            let text = String::from_utf8_lossy(&file.after).into_owned();
                            worse.push(format!(
                                "{name}, {target}: {fix} brings {}: {}\n{text}",
                                finding.rule,
                                finding.what.en()
                            ));
                        }
                    }
                }
            }
        }
        assert!(worse.is_empty(), "{}", worse.join("\n"));
    }

    #[test]
    fn a_pool_is_mended_together_with_what_lets_it_be_used() {
        let conf = "http {\n    upstream a {\n        server 10.0.0.1;\n    }\n    server {\n        location / {\n            proxy_pass http://a;\n        }\n    }\n}\n";
        let facts = Facts { version_is_told: Some(Version(1, 22, 1)), ..Facts::default() };
        let tree = tree_of(conf.as_bytes());
        let whole = fixes::choose(&tree, Version(1, 22, 1).into(), &facts, &Judges::lenient(&|_| true));
        let after = String::from_utf8_lossy(&whole.files[0].after).into_owned();
        for line in ["keepalive 32;", "proxy_http_version 1.1;", "proxy_set_header Connection \"\";"] {
            assert!(after.contains(line), "{line}: {after}");
        }
    }

    /// Ports, handshakes and TIME_WAIT belong to TCP: no rule may mention them if every peer is a unix socket.
    #[test]
    fn nothing_is_said_of_ports_where_peers_are_unix_sockets() {
        let conf = |server: &str, more: &str| {
            format!(
                "http {{ upstream a {{ server {server}; }} server {{ listen 80; location / {{ proxy_pass http://a; {more} }} }} }}"
            )
        };
        let speaks = |conf: String| {
            let facts = Facts {
                version_is_told: Some(Version(1, 22, 1)),
                local_ports: Some(100),
                load: crate::facts::Load { rate: Some(1e6), clients: Some(1e5), ..Default::default() },
                ..Facts::default()
            };
            let found = crate::examine(&tree_of(conf.as_bytes()), Version(1, 22, 1), &facts);
            found
                .iter()
                .filter(|finding| {
                    finding.rule == "upstream_without_keepalive"
                        || finding.rule == "inert_upstream_keepalive"
                        || finding.rule == "missing_resolver"
                        || finding.rule == "localhost_dual_stack"
                })
                .any(|finding| {
                    let remedy = lookup(finding.rule).map_or("", |rule| rule.remedy.en);
                    finding.level < crate::FindingLevel::Note
                        || finding.what.contains(" port")
                        || remedy.contains(" port")
                })
        };
        for more in ["", "proxy_http_version 1.1; proxy_set_header Connection '';"] {
            assert!(speaks(conf("10.0.0.1", more)), "{more}");
            assert!(!speaks(conf("unix:/run/app.sock", more)), "{more}");
        }
    }

    /// Behaviour that weir has by default is no advice for a file that weir reads.
    #[test]
    fn nginxs_own_rules_are_silent_where_weir_reads_the_file() {
        let rules = |target: Target, conf: &str| -> Vec<&str> {
            let facts = Facts {
                version_is_told: Some(target.version()),
                cpus: Some(2),
                cpus_present: Some(8),
                ..Facts::default()
            };
            crate::examine(&tree_of(conf.as_bytes()), target, &facts).iter().map(|finding| finding.rule).collect()
        };
        let conf = "events { } http { upstream a { server 10.0.0.1; } server { location / { proxy_pass http://a; } } }";
        let theirs = rules(Target::Nginx(Version(1, 22, 1)), conf);
        for rule in ["worker_processes_one", "upstream_without_keepalive"] {
            assert!(theirs.contains(&rule) && !rules(Target::Weir, conf).contains(&rule), "{rule}: {theirs:?}");
        }
        assert!(rules(Target::Weir, "worker_processes 1; events { } http { }").contains(&"worker_processes_one"));
        assert!(!rules(Target::Weir, "worker_processes auto; events { } http { }").contains(&"workers_over_cpus"));
        let idle = "http { directio 4m; server { listen 80; } }";
        assert!(
            rules(Target::Weir, idle).contains(&"equals_default")
                && !rules(Target::Nginx(Version(1, 22, 1)), idle).contains(&"equals_default")
        );
        assert!(NGINXS_ALONE.iter().all(|name| lookup(name).is_some()));
    }

    #[test]
    fn korean_keeps_to_the_glossary() {
        let mut lacking = Vec::new();
        for rule in RULES {
            let own = found(rule, &rule.fires).into_iter().map(|finding| finding.what.ko().to_owned());
            for text in own.chain([rule.says.ko.to_owned(), rule.remedy.ko.to_owned()]) {
                let other = weir_words::glossary::forbidden_in(&text);
                lacking.extend(other.map(|other| format!("{}: {other}: {text}", rule.id)));
            }
        }
        assert!(lacking.is_empty(), "{}", lacking.join("\n"));
    }

    #[test]
    fn every_finding_has_its_korean() {
        for rule in RULES {
            for finding in found(rule, &rule.fires) {
                let is_korean = finding.what.ko().chars().any(|c| ('가'..='힣').contains(&c));
                assert!(is_korean && finding.what.ko() != finding.what.en(), "{}: {:?}", rule.id, finding.what);
            }
        }
    }

    #[test]
    fn a_change_that_is_proposed_silences_its_rule() {
        for rule in RULES {
            let fixable: Vec<_> =
                found(rule, &rule.fires).into_iter().filter(|finding| !finding.fix.is_empty()).collect();
            if fixable.is_empty() {
                continue;
            }
            let files = weir_conf::MemoryFiles::new().with("/example", rule.fires.conf);
            let (tree, _) = crate::load(&files, "/example", "/");
            let Some(mended) = crate::mend::mend(&tree, &fixable).pop() else { panic!("{}: no file changes", rule.id) };
            let mut facts = Facts::default();
            (rule.fires.facts)(&mut facts);
            let files = weir_conf::MemoryFiles::new().with("/example", &mended.after);
            let (tree, _) = crate::load(&files, "/example", "/");
            let again = crate::examine(&tree, facts.version_is_told.unwrap_or(crate::NEWEST), &facts);
            let again: Vec<_> = again
                .iter()
                .filter(|finding| finding.rule == rule.id && fixable.iter().any(|old| old.what == finding.what))
                .collect();
            // Counters keep their values, so these findings stay.
            assert!(
                again.is_empty() || matches!(rule.id, "connections_dropped" | "fd_limit_running"),
                "{}: {again:?}\n{}",
                rule.id,
                String::from_utf8_lossy(&mended.after)
            );
        }
    }

    /// Each symptom has rules of two levels, and a rule about a line without effect can cause nothing.
    #[test]
    fn rules_name_the_symptoms_that_they_can_cause() {
        use crate::symptom::Symptom;
        for symptom in Symptom::ALL {
            let of_it: Vec<_> = RULES.iter().filter(|rule| rule.symptoms.contains(&symptom)).collect();
            let levels = of_it.iter().map(|rule| rule.level).collect::<Vec<_>>();
            assert!(of_it.len() >= 4 && levels.iter().any(|level| *level != levels[0]), "{symptom:?}: {levels:?}");
        }
        for rule in RULES {
            let mut left = rule.symptoms.iter();
            while let Some(symptom) = left.next() {
                assert!(!left.as_slice().contains(symptom), "{}: {symptom:?} twice", rule.id);
            }
            assert!(!rule.id.contains("websocket") || rule.symptoms.contains(&Symptom::WebSocket), "{}", rule.id);
            let is_idle = rule.group == crate::rule::Group::NoEffect && rule.level == crate::FindingLevel::Note;
            assert!(!is_idle || rule.symptoms.iter().all(|it| *it == Symptom::WebSocket), "{}", rule.id);
        }
    }

    #[test]
    fn rows_are_whole_and_in_order() {
        assert!(RULES.is_sorted_by_key(|rule| rule.id));
        for rule in RULES {
            for text in [rule.says.en, rule.says.ko, rule.remedy.en, rule.remedy.ko, rule.source] {
                assert!(text.len() > 4, "{}", rule.id);
            }
            assert!(!rule.says.en.ends_with('.') && rule.remedy.en.ends_with('.'), "{}", rule.id);
            assert!(rule.says.ko.chars().any(|c| ('가'..='힣').contains(&c)), "{}", rule.id);
        }
    }
}
