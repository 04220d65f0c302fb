//! The files that an `include` may name, and names that stay known between requests.

use super::*;
use crate::files::{BESIDE_MAX, WORKSPACE_BOUNDS};

/// The labels that are offered at the end of this last line of a main file.
fn offered(trial: &mut Trial, line: &str) -> Vec<String> {
    let text = format!("events {{ }}\nhttp {{ }}\n{line}");
    trial.open_as("nginx.conf", &text);
    let position = json!({ "line": 2, "character": line.len() });
    let document = json!({ "uri": trial.uri("nginx.conf") });
    let answer = trial.request("textDocument/completion", json!({ "textDocument": document, "position": position }));
    let items = answer.unwrap()["items"].take();
    items.as_array().unwrap().iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn files_beside_the_main_file_are_offered_for_include() {
    let mut trial = Trial::of(&[("nginx.conf", ""), ("conf.d/a.conf", ""), ("conf.d/.hidden", ""), ("mime.types", "")]);
    trial.open_as("conf.d/new.conf", "gzip on;");
    assert_eq!(offered(&mut trial, "include "), ["conf.d/", "mime.types"]);
    assert_eq!(offered(&mut trial, "include conf.d/"), ["conf.d/a.conf", "conf.d/new.conf"], "one is not on the disk");
    let whole = trial.path("conf.d/");
    assert_eq!(offered(&mut trial, &format!("include {whole}a")), [format!("{whole}a.conf")]);
}

#[test]
fn nothing_outside_of_the_workspace_is_offered() {
    use std::os::unix::fs::symlink;
    let mut trial = Trial::of(&[("nginx.conf", ""), ("good.conf", "")]);
    symlink("/etc/passwd", trial.folder.join("passwd")).unwrap();
    symlink("/etc", trial.folder.join("etc")).unwrap();
    symlink("good.conf", trial.folder.join("link.conf")).unwrap();
    assert_eq!(offered(&mut trial, "include "), ["good.conf", "link.conf"]);
    for line in ["include etc/", "include /etc/", "include ../", "include /proc/self/"] {
        assert_eq!(offered(&mut trial, line), [""; 0], "{line}");
    }
}

#[test]
fn a_directory_with_many_files_has_bounds() {
    let mut trial = Trial::of(&[("nginx.conf", "")]);
    let many = trial.folder.join("many");
    std::fs::create_dir(&many).unwrap();
    let file = |number: usize| drop(std::fs::File::create(many.join(format!("{number:05}"))).unwrap());
    (0..=BESIDE_MAX).for_each(file);
    assert_eq!(offered(&mut trial, "include many/").len(), BESIDE_MAX);
    (BESIDE_MAX..=WORKSPACE_BOUNDS.names).for_each(file);
    assert_eq!(offered(&mut trial, "include many/"), [""; 0], "too many to list");
}

/// Names are kept with the configuration, and a change of the text changes them.
#[test]
fn names_are_those_of_the_newest_text() {
    let mut trial = Trial::of(&[]);
    let text = |name: &str| {
        format!(
            "events {{ }}\nhttp {{\nupstream {name} {{ server a:1; }}\nserver {{ location / {{ proxy_pass http://{name}; }} }}\n}}\n"
        )
    };
    trial.open_as("nginx.conf", &text("app"));
    let place =
        json!({ "textDocument": { "uri": trial.uri("nginx.conf") }, "position": { "line": 2, "character": 10 } });
    let hover = |trial: &mut Trial| {
        let answer = trial.request("textDocument/hover", place.clone()).unwrap();
        answer["contents"]["value"].as_str().unwrap().to_owned()
    };
    let first = hover(&mut trial);
    assert!(first.contains("upstream app") && !first.contains('`'), "without Markdown: {first}");
    assert_eq!(hover(&mut trial), first, "kept");
    trial.change("nginx.conf", &text("others"));
    assert!(hover(&mut trial).contains("upstream others"));
}
