//! Rules about Rust files, and about words in all files.

use super::checkout::{Checkout, File};
use super::remark::Remark;

/// For a longer file, tidy suggests splitting it by meaning.
const FILE_LINES_MAX: usize = 600;
/// For a longer function, tidy suggests splitting it by meaning.
const FUNCTION_LINES_MAX: usize = 70;
/// The one file that may hold `unsafe`.
const UNSAFE_HOME: &str = "crates/net/src/sys.rs";
/// Files outside of `net` that start a thread themselves, because they wait for its end.
const THREAD_STARTERS: &[&str] = &["crates/load/src/agent/conduct.rs", "crates/load/src/agent/serve.rs", "src/demo.rs"];
/// Separate workspaces (benchmark peers, fuzz targets): their code is not weir's.
const OTHER_WORKSPACES: &[&str] = &["bench/", "fuzz/"];

pub fn unsafe_places(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (file, number, line) in code_lines(checkout).filter(|(file, ..)| file.path != UNSAFE_HOME) {
        if words_of(line).any(|word| word == "unsafe") {
            let at = format!("{}:{number}", file.path);
            remarks.push(Remark::error(format!("{at}: only {UNSAFE_HOME} may contain unsafe")));
        }
    }
    remarks
}

/// Starts of threads that clippy's bans do not see, in code outside of `net`.
pub fn threads(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let starts_them = |path: &str| ["crates/net/", "xtask/"].iter().any(|place| path.starts_with(place));
    let is_test = |path: &str| ["tests", "examples"].iter().any(|word| path.contains(word));
    for file in ours(checkout).filter(|file| !starts_them(&file.path) && !is_test(&file.path)) {
        let code = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let starts = code.lines().any(|line| line.contains("thread::Builder") || line.contains("thread::spawn("));
        match (starts, THREAD_STARTERS.contains(&file.path.as_str())) {
            (true, false) => {
                remarks.push(Remark::error(format!("{}: start the thread with weir_net::worker", file.path)));
            }
            (false, true) => remarks.push(Remark::error(format!(
                "{}: starts no thread any more: remove it from xtask/src/tidy/code.rs and ARCHITECTURE.md",
                file.path
            ))),
            (true, true) | (false, false) => {}
        }
    }
    remarks
}

/// Only `net` depends on the libraries of system calls.
pub fn system_calls(checkout: &Checkout) -> Vec<Remark> {
    let others = checkout.crates.iter().filter(|member| member.name != "weir-net");
    let calls = others.flat_map(|member| member.foreign.iter().map(move |name| (member, name)));
    calls
        .filter(|(_, name)| ["libc", "rustix", "nix"].contains(&name.as_str()))
        .map(|(member, name)| Remark::error(format!("{} depends on {name}: system calls are in weir-net", member.name)))
        .collect()
}

/// Every crate except net forbids unsafe code itself, so that the compiler enforces it.
pub fn forbids_unsafe(checkout: &Checkout) -> Vec<Remark> {
    let roots = ours(checkout).filter(|file| {
        ["src/lib.rs", "src/main.rs"].iter().any(|root| file.path.ends_with(root))
            && !file.path.starts_with("crates/net/")
    });
    roots
        .filter(|file| !file.text.contains("#![forbid(unsafe_code)]"))
        .map(|file| Remark::error(format!("{}: #![forbid(unsafe_code)] is missing", file.path)))
        .collect()
}

/// Prompts about length; `// long: reason` in the file or on the function's first lines silences them.
pub fn lengths(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for file in ours(checkout) {
        let length = file.text.lines().count();
        if length > FILE_LINES_MAX && !["// long:", "//! long:"].iter().any(|said| file.text.contains(said)) {
            remarks.push(Remark::prompt(format!("{}: {length} lines; can you split it into two files?", file.path)));
        }
        for (number, name, length) in functions(&file.text) {
            if length > FUNCTION_LINES_MAX {
                let at = format!("{}:{number}", file.path);
                remarks.push(Remark::prompt(format!(
                    "{at}: {name} has {length} lines; can you split it into two functions?"
                )));
            }
        }
    }
    remarks
}

/// Words that promise work instead of doing it; and tests that never run.
pub fn words(checkout: &Checkout) -> Vec<Remark> {
    // Written in two halves, so that this list does not break its own rule.
    let banned = [
        (concat!("TO", "DO"), "do it, or open an issue"),
        (concat!("FIX", "ME"), "do it, or open an issue"),
        (concat!("to", "do!("), "write it"),
        (concat!("unimple", "mented!("), "write it"),
        (concat!("db", "g!("), "take it out"),
        (concat!("#[ig", "nore"), "a test runs or goes"),
    ];
    let mut remarks = Vec::new();
    for file in checkout.files.iter().filter(|file| !file.path.ends_with(".lock")) {
        for (number, line) in file.text.lines().enumerate() {
            for (word, instead) in banned.iter().filter(|(word, _)| line.contains(word)) {
                remarks.push(Remark::error(format!("{}:{}: {word}: {instead}", file.path, number + 1)));
            }
        }
    }
    remarks
}

/// A test that itself reports a skip counts as passed; and a `#[test]` in a program with its own `main` never runs.
pub fn silent_tests(checkout: &Checkout) -> Vec<Remark> {
    let manifest = checkout.text("Cargo.toml");
    let own_main = manifest.split("[[test]]").skip(1).filter(|target| target.contains("harness = false"));
    let own_main: Vec<&str> =
        own_main.filter_map(|target| target.split("path = \"").nth(1)?.split(".rs\"").next()).collect();
    let mut remarks = Vec::new();
    for file in ours(checkout).filter(|file| file.path.starts_with("tests/") || file.path.contains("/tests/")) {
        let has_main = own_main
            .iter()
            .any(|path| file.path.strip_prefix(path).is_some_and(|rest| rest.starts_with('/') || rest == ".rs"));
        for (number, line) in file.text.lines().enumerate() {
            let at = format!("{}:{}", file.path, number + 1);
            if line.to_ascii_lowercase().contains(concat!("\"skip", "ped")) {
                remarks
                    .push(Remark::error(format!("{at}: a skipped test passes: name its need, tests/support/needs.rs")));
            }
            if has_main && line.trim() == "#[test]" {
                remarks
                    .push(Remark::error(format!("{at}: the harness does not run #[test] here: list the test in main")));
            }
        }
    }
    remarks
}

/// An example in a doc comment is a test that `cargo xtask ci` does not run: it has to be text.
pub fn doc_tests(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for file in ours(checkout) {
        let mut is_open = false;
        for (number, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            let Some(fence) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else { continue };
            if !is_open && fence != "text" {
                let at = format!("{}:{}", file.path, number + 1);
                remarks.push(Remark::error(format!(
                    "{at}: no test of documentation runs: begin the example with ```text"
                )));
            }
            is_open = !is_open;
        }
    }
    remarks
}

/// Rust files of this workspace.
pub(super) fn ours(checkout: &Checkout) -> impl Iterator<Item = &File> {
    checkout.ending(".rs").filter(|file| !OTHER_WORKSPACES.iter().any(|other| file.path.starts_with(other)))
}

/// Lines of those files without their comments, numbered from 1.
fn code_lines(checkout: &Checkout) -> impl Iterator<Item = (&File, usize, &str)> {
    ours(checkout).flat_map(|file| {
        let lines = file.text.lines().enumerate();
        lines.map(move |(index, line)| (file, index + 1, line.split("//").next().unwrap_or_default()))
    })
}

/// Identifiers outside of string literals; `unsafe_code` is one word.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    let outside = line.split('"').step_by(2);
    outside.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'))
}

/// Line, name and length of every function longer than one line: from its `fn` to the brace in the same column.
fn functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let Some((before, after)) = trimmed.split_once("fn ") else {
            continue;
        };
        let starts =
            before.split_whitespace().all(|word| word.starts_with("pub") || ["async", "const"].contains(&word));
        let is_long = lines.iter().skip(start).take(3).any(|line| line.contains("// long:"));
        if !starts || is_long {
            continue;
        }
        // A function that is only declared, or that ends on its line, has no length.
        let head_end = lines.iter().skip(start).find(|line| line.ends_with(['{', ';', '}']));
        if head_end.is_some_and(|line| !line.ends_with('{')) {
            continue;
        }
        let name = after.split(['(', '<']).next().unwrap_or_default();
        let end = lines.iter().skip(start).position(|line| {
            let trimmed = line.trim_start();
            line.len() - trimmed.len() == indent && trimmed == "}"
        });
        found.extend(end.map(|end| (start + 1, name, end + 1)));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::super::checkout::Crate;
    use super::*;

    #[test]
    fn an_example_in_a_doc_comment_is_text() {
        let fine = "/// A.\n/// ```text\n/// a\n/// ```\nfn a() {}\n";
        assert_eq!(doc_tests(&Checkout::of(&[("crates/http/src/a.rs", fine)])), []);
        let code = "/// A.\n/// ```\n/// a();\n/// ```\nfn a() {}\n";
        assert_eq!(doc_tests(&Checkout::of(&[("crates/http/src/a.rs", code)])).len(), 1);
    }

    #[test]
    fn unsafe_is_seen_in_code_only() {
        let fine = "// unsafe\n#![forbid(unsafe_code)]\nlet a = \"unsafe\";\n";
        assert_eq!(unsafe_places(&Checkout::of(&[("crates/edge/src/lib.rs", fine)])), []);
        let block = "fn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(unsafe_places(&Checkout::of(&[("crates/edge/src/lib.rs", block)])).len(), 1);
        assert_eq!(unsafe_places(&Checkout::of(&[(UNSAFE_HOME, block), ("bench/floor/src/sys.rs", block)])), []);
    }

    #[test]
    fn a_thread_outside_of_net_is_named() {
        let starts = "fn f() {\n    std::thread::Builder::new();\n}\n";
        let in_test = "#[cfg(test)]\nmod tests {\n    std::thread::spawn(f);\n}\n";
        let of = |path: &str, text: &str| threads(&Checkout::of(&[(path, text)])).len();
        assert_eq!([of("crates/dash/src/a.rs", starts), of("src/demo.rs", "fn f() {}\n")], [1; 2]);
        assert_eq!([of("crates/net/src/a.rs", starts), of("src/demo.rs", starts), of("src/a.rs", in_test)], [0; 3]);
    }

    #[test]
    fn a_library_of_system_calls_outside_of_net_is_named() {
        let member = |name: &str| Crate { name: name.into(), arrows: Vec::new(), foreign: vec!["rustix".into()] };
        let of = |name| system_calls(&Checkout { crates: vec![member(name)], ..Checkout::default() }).len();
        assert_eq!([of("weir-net"), of("weir-lab")], [0, 1]);
    }

    #[test]
    fn a_crate_that_does_not_forbid_unsafe_is_named() {
        assert_eq!(forbids_unsafe(&Checkout::of(&[("crates/wire/src/lib.rs", "//! Wire.\n")])).len(), 1);
        assert_eq!(forbids_unsafe(&Checkout::of(&[("crates/net/src/lib.rs", "//! Net.\n")])), []);
    }

    #[test]
    fn a_test_that_skips_itself_or_is_never_run_is_named() {
        let manifest = "[[test]]\nname = \"a\"\npath = \"tests/a.rs\"\nharness = false\n";
        let manifest = format!("{manifest}[[test]]\nname = \"b\"\npath = \"tests/b.rs\"\n");
        let of = |path: &str, text: &str| silent_tests(&Checkout::of(&[("Cargo.toml", &manifest), (path, text)])).len();
        let (test, skips) = ("#[test]\nfn f() {}\n", concat!("eprintln!(\"skip", "ped: needs root\");\n"));
        assert_eq!([of("tests/a.rs", test), of("tests/a/stage.rs", test), of("tests/b.rs", skips)], [1; 3]);
        assert_eq!(of("crates/net/tests/tls.rs", skips), 1);
        assert_eq!([of("tests/b.rs", test), of("tests/ab.rs", test), of("src/a.rs", skips)], [0; 3]);
    }

    #[test]
    fn long_functions_and_files_are_prompts() {
        let body = "    work();\n".repeat(FUNCTION_LINES_MAX);
        let long = format!("pub async fn many(a: u8) {{\n{body}}}\n");
        let remarks = lengths(&Checkout::of(&[("src/main.rs", &long)]));
        assert_eq!(remarks.len(), 1);
        assert!(!remarks[0].is_error && remarks[0].text.starts_with("src/main.rs:1: many has 72 lines"), "{remarks:?}");
        let declared = format!("trait T {{\n    fn few(\n        a: u8,\n    );\n{body}    }}\n}}\n");
        assert_eq!(lengths(&Checkout::of(&[("src/main.rs", &declared)])), []);
        let said = format!("// long: a table\n{}", "// line\n".repeat(FILE_LINES_MAX + 1));
        assert_eq!(lengths(&Checkout::of(&[("src/main.rs", &said)])), []);
    }

    #[test]
    fn banned_words_are_found_with_their_line() {
        let text = format!("fine\n// {} later\n", concat!("TO", "DO"));
        let remarks = words(&Checkout::of(&[("docs/a.md", &text)]));
        assert_eq!(remarks.len(), 1);
        assert!(remarks[0].text.starts_with("docs/a.md:2: "), "{remarks:?}");
    }
}
