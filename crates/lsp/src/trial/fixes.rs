//! Code actions.

use super::*;

#[test]
fn a_word_that_was_meant_is_written() {
    let mut trial = Trial::of(&[("nginx.conf", "events { }\nhttp { server { lsiten 80; return 200 $hots; } }\n")]);
    trial.open("nginx.conf");
    let actions = trial.actions("nginx.conf");
    let titled = |title: &str| actions.iter().find(|action| action["title"] == title).unwrap();
    let edit = &titled("Change to listen")["edit"];
    assert_eq!(edit["documentChanges"][0]["textDocument"]["version"], 1);
    assert!(trial.edited("nginx.conf", edit).contains("{ listen 80; return 200 $hots; }"));
    let edit = &titled("Change to host")["edit"];
    assert!(trial.edited("nginx.conf", edit).contains("{ lsiten 80; return 200 $host; }"), "{edit}");
}

const OLD: LspWish = LspWish {
    target: TargetWish::Nginx(Some(weir_doctor::Version(1, 22, 1))),
    root: None,
    prefix: None,
    language: weir_words::Language::English,
};

const POOL: &str = "events { }\nhttp {\n    upstream a {\n        server 10.0.0.1;\n    }\n    server {\n        listen 80;\n        error_log off;\n        location /b {\n            alias /c/;\n        }\n        location / {\n            proxy_pass http://a;\n        }\n    }\n}\n";

/// The client gets the edit when the user chooses, with the other edits that the fix needs.
#[test]
fn a_fix_is_made_with_what_it_needs() {
    let mut trial = Trial::with(&[("nginx.conf", POOL)], OLD, abilities());
    trial.open("nginx.conf");
    let actions = trial.actions("nginx.conf");
    let of_rule = |rule: &str| actions.iter().find(|action| action["data"]["rule"] == rule).unwrap().clone();
    let action = of_rule("upstream_without_keepalive");
    assert!(action["edit"].is_null() && action["diagnostics"][0]["code"] == "upstream_without_keepalive", "{action}");
    let resolved = trial.request("codeAction/resolve", action).unwrap();
    let after = trial.edited("nginx.conf", &resolved["edit"]);
    for line in ["keepalive ", "proxy_http_version 1.1;", "proxy_set_header Connection \"\";"] {
        assert!(after.contains(line), "{line}: {after}");
    }
    assert!(after.contains("error_log off") && after.contains("location /b {"), "only this finding: {after}");
    // The text changed since.
    let stale = of_rule("alias_traversal");
    trial.change("nginx.conf", "events { }\n");
    assert_eq!(trial.request("codeAction/resolve", stale).map_err(|error| error.code), Err(RpcError::REQUEST_FAILED));
}

#[test]
fn all_fixes_are_made_at_once() {
    let mut trial = Trial::with(&[("nginx.conf", POOL)], OLD, abilities());
    trial.open("nginx.conf");
    let actions = trial.actions("nginx.conf");
    let all = actions.iter().find(|action| action["kind"] == "source.fixAll.weir").unwrap().clone();
    let resolved = trial.request("codeAction/resolve", all).unwrap();
    let after = trial.edited("nginx.conf", &resolved["edit"]);
    assert!(after.contains("location /b/ {") && !after.contains("error_log off"), "{after}");
    trial.change("nginx.conf", &after);
    let left = trial.actions("nginx.conf");
    assert!(!left.iter().any(|action| action["kind"] == "source.fixAll.weir"), "{left:?}");
}

/// A client that takes only whole actions gets them whole.
#[test]
fn an_old_client_gets_whole_actions() {
    let mut old = abilities();
    old["textDocument"]["codeAction"] = json!({ "codeActionLiteralSupport": {} });
    old["workspace"] = json!({});
    let mut trial = Trial::with(&[("nginx.conf", POOL)], OLD, old);
    trial.open("nginx.conf");
    let actions = trial.actions("nginx.conf");
    assert!(!actions.is_empty() && actions.iter().all(|action| action["edit"]["changes"].is_object()), "{actions:?}");
    let mut none = abilities();
    none["textDocument"]["codeAction"] = json!({});
    let mut trial = Trial::with(&[("nginx.conf", POOL)], OLD, none);
    trial.open("nginx.conf");
    assert_eq!(trial.actions("nginx.conf"), Vec::<Value>::new());
}

/// A fix of a part changes the part, not the file around it.
#[test]
fn a_part_is_fixed_in_its_own_lines() {
    let part = "server {\n    listen 80;\n    location /a {\n        alias /b/;\n    }\n}\n";
    let mut trial = Trial::with(&[("conf.d/a.conf", part)], OLD, abilities());
    trial.open("conf.d/a.conf");
    let actions = trial.actions("conf.d/a.conf");
    let action = actions.iter().find(|action| action["data"]["rule"] == "alias_traversal").unwrap().clone();
    let resolved = trial.request("codeAction/resolve", action).unwrap();
    let after = trial.edited("conf.d/a.conf", &resolved["edit"]);
    assert!(after.starts_with(&part.replace("/a {", "/a/ {")[..part.len() - 1]), "{after}");
    assert_eq!(resolved["edit"]["documentChanges"].as_array().map(Vec::len), Some(1), "one file");
}
