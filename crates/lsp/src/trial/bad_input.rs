//! Half-written files, hostile workspaces, messages in the wrong form.

use super::*;
use crate::files::WORKSPACE_BOUNDS;

/// The diagnostics of all files of a configuration that includes this, in a workspace that `make` prepares.
fn refusal(include: &str, make: impl Fn(&Trial)) -> Vec<String> {
    let mut trial = Trial::of(&[("nginx.conf", &format!("events {{ }}\nhttp {{\n    include {include};\n}}\n"))]);
    make(&trial);
    trial.open("nginx.conf");
    trial.told().values().flatten().map(shown).collect()
}

#[track_caller]
fn assert_refused(told: &[String], words: &str) {
    let is_it = |line: &&String| line.starts_with("3:") && line.contains(" refused_file ") && line.contains(words);
    assert_eq!(told.iter().filter(is_it).count(), 1, "{words}: {told:?}");
}

#[test]
fn hostile_files_are_refused_by_name() {
    use std::os::unix::fs::symlink;
    let told = refusal("zero.conf", |trial| symlink("/dev/zero", trial.folder.join("zero.conf")).unwrap());
    assert_refused(&told, "zero.conf: it is a link that leads out of the workspace");
    let told = refusal("passwd", |trial| symlink("/etc/passwd", trial.folder.join("passwd")).unwrap());
    assert_refused(&told, "leads out of the workspace");
    let told = refusal("pipe", |trial| {
        let made = std::process::Command::new("mkfifo").arg(trial.folder.join("pipe")).status().unwrap();
        assert!(made.success());
    });
    assert_refused(&told, "pipe: it is not a regular file");
    // It has holes: the disk has no room for it.
    let told = refusal("huge.conf", |trial| {
        std::fs::File::create(trial.folder.join("huge.conf")).unwrap().set_len(2 << 30).unwrap();
    });
    assert_refused(&told, "huge.conf: it has more than 4194304 bytes");
    // Outside, and never touched.
    let told = refusal("/dev/zero", |_| {});
    assert!(told.iter().any(|line| line.starts_with("3:5 unread_file weir lsp does not read /dev/zero")), "{told:?}");
    let told = refusal("../../../../../../etc/passwd", |_| {});
    assert!(told.iter().any(|line| line.contains(" unread_file ")), "{told:?}");
}

#[test]
fn links_in_circles_end() {
    use std::os::unix::fs::symlink;
    let told = refusal("loop", |trial| symlink("loop", trial.folder.join("loop")).unwrap());
    assert!(told.iter().any(|line| line.contains("\" failed (")), "{told:?}");
    let told = refusal("a.conf", |trial| trial.file("a.conf", "include a.conf;\n"));
    assert!(told.iter().any(|line| line.contains("the files include each other in a circle")), "{told:?}");
    // Three links to the folder itself: 3^12 directories.
    let told = refusal("*/*/*/*/*/*/*/*/*/*/*/*/*.conf", |trial| {
        ["a", "b", "c"].iter().for_each(|name| symlink(".", trial.folder.join(name)).unwrap());
    });
    assert_refused(&told, "a pattern 2000 directories");
}

#[test]
fn a_pattern_with_many_files_is_refused() {
    let told = refusal("many/*", |trial| {
        let many = trial.folder.join("many");
        std::fs::create_dir(&many).unwrap();
        for number in 0..=WORKSPACE_BOUNDS.names {
            std::fs::File::create(many.join(format!("{number}"))).unwrap();
        }
    });
    assert_refused(&told, "a directory may have 10000 names");
    let told = refusal("few/*", |trial| {
        let few = trial.folder.join("few");
        std::fs::create_dir(&few).unwrap();
        for number in 0..=WORKSPACE_BOUNDS.files {
            std::fs::File::create(few.join(format!("{number}"))).unwrap();
        }
    });
    assert_refused(&told, "few/*");
}

#[test]
fn many_includes_of_one_file_end() {
    // Each level doubles: 2^30 includes without a bound.
    let mut trial = Trial::of(&[("nginx.conf", "events { }\nhttp { include 0.conf; }\n"), ("30.conf", "a b;\n")]);
    for level in 0..30 {
        trial.file(&format!("{level}.conf"), &format!("include {0}.conf;\ninclude {0}.conf;\n", level + 1));
    }
    trial.open("nginx.conf");
    let told = trial.told();
    let all: Vec<String> = told.values().flatten().map(shown).collect();
    assert!(all.iter().any(|line| line.contains("the configuration has more than 400000 statements")), "{}", all.len());
}

#[test]
fn deep_blocks_are_refused() {
    let mut trial = Trial::of(&[("nginx.conf", &"a { ".repeat(100_000))]);
    trial.open("nginx.conf");
    let told = trial.lines("nginx.conf");
    assert!(told.iter().any(|line| line.contains("blocks are nested deeper than 256")), "{told:?}");
}

#[test]
fn a_document_that_is_too_large_says_so() {
    let mut trial = Trial::of(&[]);
    trial.open_as("nginx.conf", &"#".repeat(crate::document::DOCUMENT_BYTES_MAX + 1));
    assert_eq!(
        trial.lines("nginx.conf"),
        ["1:1 refused_file weir lsp does not read this document: it has more than 4194304 bytes"]
    );
}

#[test]
fn requests_in_another_form_get_their_error() {
    let mut trial = Trial::of(&[("nginx.conf", "events { }\n")]);
    trial.open("nginx.conf");
    let position = json!({ "line": 0, "character": 0 });
    for (method, params, code) in [
        ("textDocument/hover", json!(null), RpcError::INVALID_PARAMS),
        ("textDocument/hover", json!({ "textDocument": { "uri": 3 } }), RpcError::INVALID_PARAMS),
        ("textDocument/hover", json!({ "textDocument": { "uri": trial.uri("nginx.conf") } }), RpcError::INVALID_PARAMS),
        (
            "textDocument/hover",
            json!({ "textDocument": { "uri": "file:///x" }, "position": position }),
            RpcError::REQUEST_FAILED,
        ),
        ("textDocument/formatting", json!({ "textDocument": { "uri": "file:///x" } }), RpcError::INVALID_PARAMS),
        ("textDocument/rename", json!({}), RpcError::INVALID_PARAMS),
        ("codeAction/resolve", json!({ "title": "x" }), RpcError::INVALID_PARAMS),
        ("no/method", json!({}), RpcError::METHOD_NOT_FOUND),
        ("initialize", json!({}), RpcError::INVALID_REQUEST),
    ] {
        assert_eq!(trial.request(method, params).map_err(|error| error.code), Err(code), "{method}");
    }
    for (method, params) in [
        ("textDocument/didChange", json!({ "textDocument": { "uri": trial.uri("nginx.conf") }, "contentChanges": 3 })),
        ("textDocument/didChange", json!({ "textDocument": { "uri": "file:///x" }, "contentChanges": [] })),
        ("textDocument/didOpen", json!({ "textDocument": {} })),
    ] {
        assert!(trial.session.notify(method, &params, &trial.side).is_err(), "{method}");
    }
    assert_eq!(trial.request("shutdown", Value::Null), Ok(Value::Null));
    let late = trial.request("textDocument/hover", json!({}));
    assert_eq!(late.map_err(|error| error.code), Err(RpcError::INVALID_REQUEST));
}

/// The server has the same text as a client that makes ten thousand random edits, and answers all the while.
#[test]
fn ten_thousand_edits_are_the_client_s_text() {
    let mut random = fastrand::Rng::with_seed(0x5eed);
    let mut trial = Trial::of(&[]);
    let mut text: Vec<char> = "events { }\nhttp {\n    server { listen 80; }\n}\n".chars().collect();
    trial.open_as("nginx.conf", &text.iter().collect::<String>());
    let pieces = [
        "{",
        "}",
        ";",
        "\n",
        "\r\n",
        " ",
        "가",
        "😀",
        "\"",
        "$host",
        "server { ",
        "listen 80;",
        "include a;",
        "#",
        "${A}",
    ];
    for edit in 0..10_000 {
        let from = random.usize(0..=text.len());
        let to = (from + random.usize(0..6)).min(text.len());
        let piece = if random.bool() { pieces[random.usize(0..pieces.len())] } else { "" };
        // A client never divides a line break of two characters.
        let divides = |at: usize| at > 0 && text.get(at - 1) == Some(&'\r') && text.get(at) == Some(&'\n');
        if divides(from) || divides(to) || text.len() > 4_000 && piece.len() > to - from {
            continue;
        }
        let at = |end: usize| {
            let before: String = text[..end].iter().collect();
            let line = before.replace("\r\n", "\n").matches(['\n', '\r']).count();
            let last = before.rsplit(['\n', '\r']).next().unwrap_or_default();
            json!({ "line": line, "character": last.encode_utf16().count() })
        };
        let change = json!({ "range": { "start": at(from), "end": at(to) }, "text": piece });
        let document = json!({ "uri": trial.uri("nginx.conf"), "version": edit });
        let position = at(from);
        text.splice(from..to, piece.chars());
        trial.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
        if edit % 100 == 0 {
            let uri = trial.uri("nginx.conf");
            let held = String::from_utf8(trial.session.workspace.document(&uri).unwrap().bytes.clone()).unwrap();
            assert_eq!(held, text.iter().collect::<String>(), "edit {edit}");
            trial.told();
            let place = json!({ "textDocument": { "uri": uri }, "position": position });
            assert!(trial.request("textDocument/completion", place).is_ok());
        }
    }
}

mod mutate {
    use super::*;
    use std::cell::RefCell;

    const MAIN: &str = "user www-data;\nevents { worker_connections 1024; }\nhttp {\n    include conf.d/*.conf;\n    log_format main '$remote_addr \"$request\"';\n    limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;\n    map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n    upstream app { server 10.0.0.1:80 weight=2; keepalive 8; }\n    server {\n        listen 80;\n        server_name 가.example *.b;\n        location ~* \\.(png|jpg)$ { expires 1d; }\n        location / { proxy_pass http://app; proxy_set_header Host $host; limit_req zone=one; }\n        location @x { return 200 \"${host}😀\"; }\n        error_page 404 = @x;\n    }\n}\nstream { server { listen 1; proxy_pass app; } }\n";
    const PART: &str = "# a part\nserver { listen ${PORT}; location / { content_by_lua_block { ngx.say({{1}}) } } }\n";

    /// Any text: every request is answered, and nothing panics. Two files of one configuration change in turns.
    #[test]
    fn edits_of_documents() {
        let trial = RefCell::new(Trial::of(&[("nginx.conf", MAIN), ("conf.d/a.conf", PART)]));
        trial.borrow_mut().open("nginx.conf");
        trial.borrow_mut().open("conf.d/a.conf");
        let words = [
            "{",
            "}",
            ";",
            "\"",
            "'",
            "$",
            "${",
            "\\",
            "#",
            "\r\n",
            "include nginx.conf;",
            "include a.conf;",
            "http {",
            "{{ x }}",
            "가",
            "😀",
            "server ",
            "location ",
        ];
        let turn = std::cell::Cell::new(0_usize);
        weir_mutate::mutate(&[MAIN, PART], &words, |bytes| {
            let mut trial = trial.borrow_mut();
            turn.set(turn.get() + 1);
            let name = if turn.get().is_multiple_of(3) { "conf.d/a.conf" } else { "nginx.conf" };
            let text = String::from_utf8_lossy(bytes).into_owned();
            trial.change(name, &text);
            // Diagnostics and actions cost most: they are made for some of the texts.
            if turn.get().is_multiple_of(4) {
                trial.told();
                trial.actions(name);
            }
            let lines = text.lines().count().max(1);
            let line = turn.get() % lines;
            let columns = text.lines().nth(line).map_or(0, |line| line.chars().count());
            let position = json!({ "line": line, "character": turn.get() % (columns + 2) });
            let document = json!({ "uri": trial.uri(name) });
            let place = json!({ "textDocument": document, "position": position, "newName": "other", "context": {} });
            for method in ["hover", "completion", "definition", "references", "documentHighlight"] {
                assert!(trial.request(&format!("textDocument/{method}"), place.clone()).is_ok(), "{method}");
            }
            for method in ["prepareRename", "rename"] {
                let answer = trial.request(&format!("textDocument/{method}"), place.clone());
                assert!(answer.is_ok() || answer.is_err_and(|error| error.code == RpcError::REQUEST_FAILED));
            }
            for method in ["documentSymbol", "foldingRange", "formatting"] {
                assert!(trial.request(&format!("textDocument/{method}"), place.clone()).is_ok(), "{method}");
            }
        });
    }
}
