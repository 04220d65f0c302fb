//! Golden tests: each file of testdata/ contains an input, a line of ten dashes, and the expected output. `UPDATE=1
//! cargo test -p weir-conf` rewrites the expected outputs.
//!
//! A line `==> PATH` in the input starts another file; without it, the whole input is /etc/nginx/nginx.conf, with
//! which loading starts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use weir_conf::{MemoryFiles, Statement, Tree, Word, crossplane_with_comments, load, load_with_globals, render};

const MAIN: &str = "/etc/nginx/nginx.conf";
const PREFIX: &str = "/etc/nginx/";
const CUT: &str = "----------\n";

#[test]
fn trees_and_problems() {
    each("tree", |input| {
        let (tree, problems) = load(&files(input), MAIN, PREFIX, &is_lua);
        let mut shown = String::new();
        statements(&tree.root, 0, &mut shown);
        for problem in &problems {
            shown.push_str(&render(problem, &tree, "nginx"));
        }
        shown
    });
}

#[test]
fn crossplane_payloads() {
    each("crossplane", |input| {
        let (tree, problems) = load(&files(input), MAIN, PREFIX, &is_lua);
        let payload = crossplane_with_comments(&tree, &problems, &is_lua);
        format!("{}\n", serde_json::to_string_pretty(&payload).unwrap())
    });
}

#[test]
fn globals_of_the_command_line() {
    each("globals", |input| {
        let files = MemoryFiles::new().with(MAIN, "events {\n}\n");
        let globals = input.trim_end();
        let (tree, problems) = load_with_globals(&files, MAIN, PREFIX, &is_lua, globals);
        let mut shown = String::new();
        statements(&tree.root, 0, &mut shown);
        for problem in &problems {
            shown.push_str(&render(problem, &tree, "nginx"));
        }
        shown
    });
}

fn is_lua(name: &str) -> bool {
    name.ends_with("_by_lua_block")
}

/// The files in an input.
fn files(input: &str) -> MemoryFiles {
    let mut files = MemoryFiles::new();
    let mut path = MAIN.to_owned();
    let mut text = String::new();
    for line in input.split_inclusive('\n') {
        if let Some(next) = line.strip_prefix("==> ") {
            if !text.is_empty() {
                files = files.with(&path, &text);
            }
            path = next.trim_end().to_owned();
            text.clear();
        } else {
            text.push_str(line);
        }
    }
    files.with(&path, &text)
}

/// One statement a line: `FILE:LINE name "arg" …`, with the line of its end if that differs.
fn statements(list: &[Statement], depth: usize, shown: &mut String) {
    for statement in list {
        write!(shown, "{}:{:<3} ", statement.at.file, statement.at.line).unwrap();
        shown.push_str(&"    ".repeat(depth));
        let words: Vec<String> = statement.words().map(word).collect();
        shown.push_str(&words.join(" "));
        if let Some(block) = &statement.block {
            writeln!(shown, " {{}} to {}", statement.end.line).unwrap();
            statements(block, depth + 1, shown);
        } else {
            shown.push('\n');
        }
    }
}

fn word(word: &Word) -> String {
    let quote = word.quoted.map_or(String::new(), String::from);
    format!("{quote}{}", word.text.escape_debug())
}

/// Runs a check over every file of a testdata folder.
fn each(folder: &str, check: impl Fn(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no cases in {}", folder.display());
    let mut failed = String::new();
    for path in paths {
        let case = std::fs::read_to_string(&path).unwrap();
        let (input, expected) = case.split_once(CUT).unwrap_or((&case, ""));
        let shown = check(input);
        if shown == expected {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, format!("{input}{CUT}{shown}")).unwrap();
        } else {
            writeln!(failed, "{}\nexpected:\n{expected}\ngot:\n{shown}", path.display()).unwrap();
        }
    }
    assert!(failed.is_empty(), "{failed}");
}

#[test]
fn a_missing_main_file_has_no_place() {
    let (tree, problems) = load(&MemoryFiles::new(), MAIN, PREFIX, &is_lua);
    assert_eq!(tree, Tree { is_partial: true, ..Tree::default() });
    let shown: Vec<String> = problems.iter().map(|p| render(p, &tree, "nginx")).collect();
    let expected = "nginx: [emerg] open() \"/etc/nginx/nginx.conf\" failed \
                    (2: No such file or directory)\n";
    assert_eq!(shown, [expected]);
}
