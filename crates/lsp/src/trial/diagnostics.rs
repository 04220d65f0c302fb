//! Diagnostics: the same as `weir edge -t` and `weir doctor`, for the right file, as long as it is open.

use super::*;
use weir_doctor::{Facts, Target};

const SITE: &str = "events { }\nhttp {\n    include conf.d/*.conf;\n}\n";

#[test]
fn problems_of_the_edge_have_its_place_and_its_words() {
    let mut trial =
        Trial::of(&[("nginx.conf", "events { }\nhttp {\n    sendfile yes;\n    server { lsiten 80; }\n}\n")]);
    trial.open("nginx.conf");
    assert_eq!(
        trial.lines("nginx.conf"),
        [
            "3:5 emerg invalid value \"yes\" in \"sendfile\" directive, it must be \"on\" or \"off\"",
            "4:14 emerg unknown directive \"lsiten\"",
        ]
    );
}

/// Byte for byte: what the edge says of the same tree, and what the doctor says.
#[test]
fn nothing_is_added_and_nothing_is_lost() {
    let text = "worker_processes 1;\nevents { multi_accept on; }\nhttp {\n    server_tokens on;\n    upstream a { server 10.0.0.1; }\n    server {\n        listen 80;\n        location /a { alias /b/; }\n        location /c { proxy_pass http://a; proxy_cache none; }\n        location ~ \"(\" { }\n    }\n}\n";
    let tree = weir_doctor::load(&weir_conf::MemoryFiles::new().with("/f", text), "/f", "/").0;
    for target in [Target::Weir, Target::Nginx(weir_doctor::Version(1, 18, 0))] {
        let wish = match target {
            Target::Weir => TargetWish::Weir,
            Target::Nginx(version) => TargetWish::Nginx(Some(version)),
        };
        let mut trial =
            Trial::with(&[("nginx.conf", text)], LspWish { target: wish, ..LspWish::default() }, abilities());
        trial.open("nginx.conf");
        let mut told: Vec<String> = trial.told().remove("nginx.conf").unwrap().iter().map(shown).collect();
        let at = |at: Option<weir_conf::At>| {
            let lines = weir_conf::LineTable::of(text.as_bytes(), weir_conf::LineEnd::Any);
            let place =
                lines.position(text.as_bytes(), at.unwrap_or_default().span.start, weir_conf::ColumnUnit::Utf16);
            format!("{}:{}", place.line + 1, place.column + 1)
        };
        let mut expected = Vec::new();
        if target == Target::Weir {
            let checked = weir_edge::load::checked(&tree);
            expected.extend(checked.iter().map(|one| format!("{} {} {}", at(one.at), one.level.name(), one.what)));
        }
        let facts = Facts { version_is_told: wish.told(), ..Facts::default() };
        let findings = weir_doctor::examine(&tree, target, &facts);
        let is_own = |one: &&weir_doctor::Finding| target != Target::Weir || !weir_doctor::rules::refuses(one);
        expected
            .extend(findings.iter().filter(is_own).map(|one| format!("{} {} {}", at(one.at), one.rule, one.what.en())));
        told.sort();
        expected.sort();
        assert!(!expected.is_empty());
        assert_eq!(told, expected, "{target}");
    }
}

#[test]
fn a_problem_of_another_file_is_told_for_that_file() {
    let mut trial = Trial::of(&[("nginx.conf", SITE), ("conf.d/a.conf", "server {\n    listen 80\n}\n")]);
    trial.open("nginx.conf");
    let told = trial.told();
    assert_eq!(told["nginx.conf"], Vec::<Value>::new());
    assert!(!told["conf.d/a.conf"].is_empty(), "{told:?}");
    // The text of the editor counts, not that of the disk.
    trial.open_as("conf.d/a.conf", "server { listen 80; }\n");
    assert_eq!(trial.lines("conf.d/a.conf"), [""; 0]);
    // When its document closes, the file of the disk counts again, because the main file is still open.
    trial.close("conf.d/a.conf");
    assert!(!trial.lines("conf.d/a.conf").is_empty());
    trial.close("nginx.conf");
    let told = trial.told();
    assert!(told["conf.d/a.conf"].is_empty(), "{told:?}");
}

#[test]
fn an_included_file_belongs_to_its_main_file() {
    let files = [
        ("nginx.conf", "events { }\nhttp {\n    upstream app { server 10.0.0.1; }\n    include conf.d/*.conf;\n}\n"),
        ("conf.d/a.conf", "server { listen 80; location / { proxy_pass http://app; proxy_cache shop; } }\n"),
    ];
    let mut trial = Trial::of(&files);
    trial.open("conf.d/a.conf");
    let told = trial.lines("conf.d/a.conf");
    assert!(told.iter().any(|line| line.contains("\"shop\"")), "the zone is looked for in the whole: {told:?}");
    // A change of the main file on the disk.
    let main = files[0].1.replace("include", "proxy_cache_path /c keys_zone=shop:1m; include");
    trial.file("nginx.conf", &main);
    trial.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    let told = trial.lines("conf.d/a.conf");
    assert!(!told.iter().any(|line| line.contains("\"shop\"")), "{told:?}");
}

#[test]
fn a_file_that_is_deleted_loses_its_diagnostics() {
    let mut trial = Trial::of(&[("nginx.conf", SITE), ("conf.d/a.conf", "serve { }\n")]);
    trial.open("nginx.conf");
    assert!(!trial.told()["conf.d/a.conf"].is_empty());
    std::fs::remove_file(trial.folder.join("conf.d/a.conf")).unwrap();
    trial.notify("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert!(trial.told()["conf.d/a.conf"].is_empty());
}

#[test]
fn diagnostics_of_an_old_version_are_not_sent() {
    let mut trial = Trial::of(&[("nginx.conf", "events { }\nhttp { nope; }\n")]);
    trial.open("nginx.conf");
    // A newer change is in the queue: its number grows while the diagnostics are made.
    struct Growing(Cell<u64>);
    impl Outside for Growing {
        fn send(&self, message: &Value) {
            panic!("{message}");
        }
        fn changes(&self) -> u64 {
            self.0.set(self.0.get() + 1);
            self.0.get()
        }
    }
    trial.session.diagnose(&Growing(Cell::new(0)));
    assert!(trial.session.due.is_some(), "they stay due");
    assert_eq!(trial.lines("nginx.conf").len(), 1);
}

#[test]
fn settings_change_the_program_and_the_language() {
    let mut trial = Trial::of(&[("nginx.conf", "events { multi_accept on; }\nhttp { server { listen 80; } }\n")]);
    trial.open("nginx.conf");
    let weirs = trial.lines("nginx.conf");
    let settings = json!({ "weir": { "target": "nginx 1.18.0", "language": "ko" } });
    trial.notify("workspace/didChangeConfiguration", json!({ "settings": settings }));
    let theirs = trial.lines("nginx.conf");
    assert_ne!(weirs, theirs);
    assert!(theirs.iter().any(|line| weir_words::is_korean(line)), "{theirs:?}");
    trial.notify("workspace/didChangeConfiguration", json!({ "settings": { "weir": { "severity": "error" } } }));
    assert_eq!(trial.lines("nginx.conf"), [""; 0]);
    trial.notify("workspace/didChangeConfiguration", json!({ "settings": { "weir": { "target": "apache" } } }));
    let sent = trial.side.sent.take();
    assert!(sent.iter().any(|message| message["method"] == "window/showMessage"), "{sent:?}");
}

/// Certificates, users and hosts are facts of a machine. The file of the certificate is never read.
#[test]
fn what_only_a_machine_can_say_is_not_said() {
    let conf = "user nobody_at_all;\nevents { worker_connections 999999999; }\nhttp {\n    server { listen 443 ssl; ssl_certificate /dev/zero; ssl_certificate_key a.key; location / { proxy_pass http://no.such.host.invalid; } }\n}\n";
    let mut trial = Trial::of(&[("nginx.conf", conf)]);
    trial.open("nginx.conf");
    let told = trial.lines("nginx.conf");
    let is_of_machine = |line: &&String| {
        ["certificate", "nobody_at_all", "host not found", "open file"].iter().any(|word| line.contains(word))
    };
    assert!(!told.iter().any(|line| is_of_machine(&line)), "{told:?}");
}
