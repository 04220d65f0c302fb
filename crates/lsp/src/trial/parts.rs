//! Parts of configurations, templates, and files that are not there.

use super::*;

fn lines(name: &str, text: &str) -> Vec<String> {
    let mut trial = Trial::of(&[(name, text)]);
    trial.open(name);
    trial.lines(name)
}

#[test]
fn a_part_keeps_its_lines_and_is_read_in_its_block() {
    let told = lines("sites-available/a", "server {\n    listen 80;\n    sendfile yes;\n    lsiten 81;\n}\n");
    assert!(told.iter().any(|line| line.starts_with("3:5 emerg invalid value \"yes\"")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("4:5 emerg unknown directive \"lsiten\"")), "{told:?}");
    let told = lines("snippets/p.conf", "proxy_set_header Host $host;\nproxy_buffering maybe;\n");
    assert!(told.iter().any(|line| line.starts_with("2:1 emerg invalid value \"maybe\"")), "{told:?}");
    assert_eq!(lines("snippets/map", "~*bot 1;\ndefault 0;\n"), [""; 0]);
}

/// The rest of the configuration may define these names.
#[test]
fn a_part_misses_no_names() {
    let text = "server {\n    listen 443 ssl;\n    access_log /a.log shop;\n    location / { limit_req zone=z; proxy_cache c; proxy_pass http://$backend; return 200 $no_such; }\n}\n";
    let told = lines("conf.d/a.conf", text);
    assert!(!told.iter().any(|line| line.contains(" emerg ")), "{told:?}");
}

#[test]
fn a_template_has_no_values() {
    let text = "server {\n    listen ${PORT};\n    server_name ${HOST} a.b;\n    gzip ${GZIP};\n    lsiten 80;\n    location / { return 200 $host; }\n}\n";
    let told = lines("default.conf.template", text);
    assert_eq!(told.iter().filter(|line| line.contains(" emerg ")).count(), 1, "{told:?}");
    assert!(told.iter().any(|line| line.contains("lsiten")), "{told:?}");
    assert_eq!(
        lines("a.conf", "server {\n  server_name {{ host }};\n  {% if x %}\n  nope;\n  {% endif %}\n}\n"),
        [""; 0]
    );
}

#[test]
fn a_file_outside_is_named_and_counts_as_empty() {
    let main = "events { }\nhttp {\n    include /etc/nginx/no-such-place/*.conf;\n    include mime.types;\n    server { listen 80; access_log /a shop; }\n}\n";
    let told = lines("nginx.conf", main);
    assert!(
        told.iter()
            .any(|line| line.starts_with("3:5 unread_file weir lsp does not read /etc/nginx/no-such-place/*.conf")),
        "{told:?}"
    );
    assert!(told.iter().any(|line| line.starts_with("4:5 unread_file weir lsp does not find ")), "{told:?}");
    // The format may be defined in the file that was not read.
    assert!(!told.iter().any(|line| line.contains(" emerg ")), "{told:?}");
    // A file inside that is not there is an error, as for the server.
    let told = lines("nginx.conf", "events { }\nhttp { include a.conf; }\n");
    assert!(
        told.iter().any(|line| line.contains("open() \"") && line.contains("(2: No such file or directory)")),
        "{told:?}"
    );
}

#[test]
fn the_usual_directory_and_the_root_stand_for_the_machine() {
    let main = "events { }\nhttp { include /etc/nginx/conf.d/*.conf; }\n";
    let mut trial = Trial::of(&[("nginx/nginx.conf", main), ("nginx/conf.d/a.conf", "serve { }\n")]);
    trial.open("nginx/nginx.conf");
    assert!(!trial.told()["nginx/conf.d/a.conf"].is_empty());

    let elsewhere = Trial::of(&[("etc/nginx/conf.d/a.conf", "serve { }\n")]);
    let wish = LspWish { target: TargetWish::Weir, root: Some(elsewhere.folder.clone()), ..LspWish::default() };
    let mut trial = Trial::with(&[("nginx.conf", main)], wish, abilities());
    trial.open("nginx.conf");
    let told = trial.told();
    let (name, problems) = told.iter().find(|(name, _)| name.ends_with("etc/nginx/conf.d/a.conf")).unwrap();
    assert!(name.starts_with(&elsewhere.folder.display().to_string()) && !problems.is_empty(), "{told:?}");
}

#[test]
fn a_link_of_sites_enabled_is_the_open_file() {
    let mut trial = Trial::of(&[
        ("nginx.conf", "events { }\nhttp { include sites-enabled/*; }\n"),
        ("sites-available/a", "server { listen 80; }\n"),
    ]);
    std::fs::create_dir_all(trial.folder.join("sites-enabled")).unwrap();
    std::os::unix::fs::symlink("../sites-available/a", trial.folder.join("sites-enabled/a")).unwrap();
    trial.open_as("sites-available/a", "server { listen 80; nope; }\n");
    assert_eq!(trial.lines("sites-available/a"), ["1:21 emerg unknown directive \"nope\""]);
}

#[test]
fn a_document_without_a_file_is_a_part() {
    let mut trial = Trial::of(&[]);
    let document = json!({ "uri": "untitled:Untitled-1", "version": 1, "text": "server { nope; }" });
    trial.notify("textDocument/didOpen", json!({ "textDocument": document }));
    trial.session.diagnose(&trial.side);
    let sent = trial.side.sent.take();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0]["params"]["uri"], "untitled:Untitled-1");
    assert_eq!(sent[0]["params"]["diagnostics"][0]["code"], "emerg");
}
