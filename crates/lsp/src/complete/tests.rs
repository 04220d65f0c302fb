#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::mentions::tests::tree;
use weir_words::Language;

/// The proposals at the `|` of the text, in their order.
fn at(text: &str, target: Target) -> Vec<Completion> {
    let offset = u32::try_from(text.find('|').expect("a |")).unwrap();
    let tree = tree(&[("/n", &text.replacen('|', "", 1))]);
    complete(&Look::new(&tree, target, Language::English), 0, offset, &|_| Vec::new())
}

fn labels(text: &str) -> Vec<String> {
    at(text, Target::Weir).into_iter().map(|one| one.label).collect()
}

/// The text after the first proposal with this label was taken.
fn taken(text: &str, label: &str) -> String {
    let all = at(text, Target::Weir);
    let one = all.iter().find(|one| one.label == label).expect(label);
    let clean = text.replacen('|', "", 1);
    let (start, end) = (one.replaces.start as usize, one.replaces.end as usize);
    format!("{}{}{}", &clean[..start], one.insert, &clean[end..])
}

#[test]
fn directives_of_the_block_are_offered() {
    let found = labels("http { server { proxy_rea|");
    assert_eq!(found.first().map(String::as_str), Some("proxy_read_timeout"), "{found:?}");
    assert!(labels("http { |").contains(&"upstream".to_owned()));
    assert!(!labels("http { |").contains(&"listen".to_owned()));
    assert!(labels("http { server {\n  |\n} }").contains(&"listen".to_owned()));
    assert!(labels("http { server { listen 80\n location / {\n pro|").contains(&"proxy_pass".to_owned()));
    assert!(labels("stream { server { |").contains(&"proxy_timeout".to_owned()));
    assert!(labels("|").contains(&"worker_processes".to_owned()));
    assert_eq!(labels("http { # wor|"), Vec::<String>::new());
    assert_eq!(taken("http {\n  serv|\n}", "server"), "http {\n  server {\n\t$0\n}\n}");
    assert_eq!(taken("http { gz| on;", "gzip"), "http { gzip on;");
}

#[test]
fn the_target_decides_which_directives_there_are() {
    let has = |target, name: &str| at("http { |", target).iter().any(|one| one.label == name);
    let nginx = Target::Nginx(weir_doctor::NEWEST);
    assert!(has(nginx, "perl_modules") && !has(Target::Weir, "perl_modules"));
    assert!(has(Target::Weir, "dashboard_history") && !has(nginx, "dashboard_history"));
}

#[test]
fn the_words_of_an_argument_are_offered() {
    assert_eq!(labels("http { gzip |"), ["off", "on"]);
    assert!(labels("http { server { listen 80 def|").contains(&"default_server".to_owned()));
    let again = labels("http { server { listen 80 ssl |");
    assert!(!again.contains(&"ssl".to_owned()) && again.contains(&"quic".to_owned()));
    assert!(labels("http { upstream a { server b:1 max|").contains(&"max_fails=".to_owned()));
    assert!(labels("http { server { location |").contains(&"~*".to_owned()));
    assert_eq!(labels("map $a $b { def|"), ["default"]);
    assert_eq!(
        taken("http { server { listen 80 ipv6only=o|;", "ipv6only=off"),
        "http { server { listen 80 ipv6only=off;"
    );
}

#[test]
fn names_of_the_configuration_are_offered() {
    let http = "upstream app { server a:1; } limit_req_zone $a zone=one:1m rate=1r/s; log_format main '$uri'; proxy_cache_path /c keys_zone=kept:1m;\nserver { location @a { } ";
    for (typed, label, expected) in [
        ("proxy_pass |", "http://app", "proxy_pass http://app"),
        ("proxy_pass http://a|:80/x;", "app", "proxy_pass http://app:80/x;"),
        ("fastcgi_pass |", "app", "fastcgi_pass app"),
        ("limit_req zone=|", "one", "limit_req zone=one"),
        ("limit_req |", "zone=one", "limit_req zone=one"),
        ("access_log /l m|", "main", "access_log /l main"),
        ("proxy_cache k|", "kept", "proxy_cache kept"),
        ("error_page 404 |", "@a", "error_page 404 @a"),
        ("try_files $uri @|;", "@a", "try_files $uri @a;"),
    ] {
        assert_eq!(taken(&format!("{http}{typed}"), label), format!("{http}{expected}"), "{typed}");
    }
}

#[test]
fn a_named_location_of_another_server_is_not_offered() {
    let text = "server { location @a { } error_page 404 @|; } server { location @b { } }";
    assert_eq!(labels(text), ["@a"]);
}

#[test]
fn variables_are_offered_behind_a_dollar() {
    let text = "map $x $mine { default 1; } server { return 200 ";
    let found = labels(&format!("{text}$mi|"));
    assert_eq!(found.first().map(String::as_str), Some("$mine"), "{found:?}");
    assert_eq!(taken(&format!("{text}\"a$re|b\";"), "$remote_addr"), format!("{text}\"a$remote_addr\";"));
    assert_eq!(taken(&format!("{text}${{mi|}}x;"), "${mine}"), format!("{text}${{mine}}x;"));
    assert!(labels(&format!("{text}$http|")).contains(&"$http_".to_owned()));
    assert_eq!(labels("server { location ~ ^/$|"), Vec::<String>::new());
    assert!(labels("stream { server { return $ssl_pre|").contains(&"$ssl_preread_server_name".to_owned()));
}

/// The labels for an include in `/etc/n`, beside which the folder has these entries: a folder's name ends in `/`.
fn included(typed: &str, beside: &[(&str, &[&str])]) -> Vec<String> {
    let text = format!("http {{ include conf/a; }}\ninclude {typed}");
    let files = weir_conf::MemoryFiles::new().with("/etc/n", &text).with("/etc/conf/a", "");
    let loaded = weir_conf::load(&files, "/etc/n", "/etc", &is_opaque).0;
    let list = |directory: &str| {
        let found = beside.iter().find(|(name, _)| *name == directory).map_or(&[][..], |(_, names)| *names);
        let entry = |name: &&str| {
            let folder = name.strip_suffix('/');
            BesideFile { name: folder.unwrap_or(*name).to_owned(), is_folder: folder.is_some() }
        };
        found.iter().map(entry).collect()
    };
    let look = Look::new(&loaded, Target::Weir, Language::English);
    let offset = u32::try_from(text.len()).unwrap();
    complete(&look, 0, offset, &list).into_iter().map(|one| one.label).collect()
}

#[test]
fn files_are_offered_for_include() {
    assert_eq!(included("", &[]), ["conf/a"]);
    let beside: [(&str, &[&str]); 3] =
        [("", &["n", "conf/", "b.conf", ".git/"]), ("conf/", &["a", "c.conf"]), ("/etc/conf/", &["a"])];
    assert_eq!(included("", &beside), ["b.conf", "conf/", "conf/a"]);
    assert_eq!(included("conf/", &beside), ["conf/a", "conf/c.conf"]);
    assert_eq!(included(".g", &beside), [".git/"]);
    assert_eq!(included("/etc/conf/", &beside), ["/etc/conf/a"]);
    assert_eq!(included("none/", &beside), [""; 0]);
}

/// A file accepts each word of a fixed set that is offered.
#[test]
fn each_word_of_a_fixed_set_is_accepted() {
    let mut refused = Vec::new();
    let known = &weir_edge::family::ALL.known;
    for directive in known.directives().filter(|one| !one.block && !one.idle && one.arity.admits(1)) {
        for (path, before, after) in [
            (&["http"][..], "events {} http { ", " }"),
            (&["http", "server"][..], "events {} http { server { ", " } }"),
            (&["http", "server", "location"][..], "events {} http { server { location / { ", " } } }"),
            (&["stream", "server"][..], "events {} stream { server { listen 1; return a; ", " } }"),
        ] {
            let here = inside(path);
            if !directive.contexts.meets(here.context()) {
                continue;
            }
            let block = path.last().copied().unwrap_or_default();
            let Some(positions) = arguments(directive.name, block, here.is_stream()) else { continue };
            for word in words_at(positions, 0) {
                let ArgumentWord::Fixed(word) = word else { continue };
                // A time must follow this word.
                if (directive.name, *word) == ("expires", "modified") {
                    continue;
                }
                let text = format!("{before}{} {word};{after}", directive.name);
                let problems = weir_edge::load::refused(&tree(&[("/n", &text)]));
                let bad =
                    problems.iter().find(|one| one.what.contains("invalid value") || one.what.contains("must be"));
                refused.extend(bad.map(|bad| format!("{text}: {}", bad.what)));
            }
        }
    }
    assert_eq!(refused, Vec::<String>::new());
}
