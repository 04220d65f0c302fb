//! Circles of files: files of one crate that import each other, directly or through others.
//!
//! The rule reads imports as text: `use` lines, and paths in the code. It leaves out tests, and `lib.rs`, which only declares
//! modules and re-exports names.

use super::checkout::Checkout;
use super::remark::Remark;
use std::collections::{BTreeMap, BTreeSet};

/// The most files that may import each other, directly or through others.
const LARGEST: usize = 4;

/// The number of circles in the checkout. If you open one, lower this number.
const CIRCLES: usize = 23;

/// Reports circles of more than [`LARGEST`] files, and a number of circles that differs from [`CIRCLES`].
pub fn circles(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut firsts = Vec::new();
    for folder in folders(checkout) {
        for circle in circles_of(&modules(checkout, &folder)) {
            let first = format!("{folder}/{}", circle.first().copied().unwrap_or_default());
            let count = circle.len();
            if count > LARGEST {
                remarks.push(Remark::error(format!("{first}: {count} files import each other: {}", circle.join(", "))));
            }
            firsts.push(first);
        }
    }
    if firsts.len() != CIRCLES {
        let (count, list) = (firsts.len(), firsts.join(", "));
        remarks.push(Remark::error(format!("there are {count} import cycles, but {} says {CIRCLES}: {list}", file!())));
    }
    remarks
}

/// The `src` folders of all crates, the one at the top too.
pub(super) fn folders(checkout: &Checkout) -> BTreeSet<String> {
    let ends = checkout.ending("src/lib.rs").chain(checkout.ending("src/main.rs"));
    ends.filter_map(|file| file.path.rsplit_once('/')).map(|(folder, _)| folder.to_owned()).collect()
}

/// A module: its file and text.
struct Module<'a> {
    file: &'a str,
    text: String,
}

/// The modules of a crate by their path; those that are tests are left out.
fn modules<'a>(checkout: &'a Checkout, folder: &str) -> BTreeMap<Vec<&'a str>, Module<'a>> {
    let mut modules = BTreeMap::new();
    for file in checkout.ending(".rs") {
        let Some(inside) = file.path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else { continue };
        let name = inside.trim_end_matches(".rs").trim_end_matches("/mod");
        let path: Vec<&str> = name.split('/').collect();
        if path.contains(&"tests") || matches!(name, "lib" | "main") {
            continue;
        }
        modules.insert(path, Module { file: inside, text: code_of(&file.text) });
    }
    modules
}

/// A file without comments and without its tests, which stand last.
pub(super) fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let next = lines.next().unwrap_or_default();
            if next.contains("mod ") && next.ends_with('{') {
                break;
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// Groups of files that all reach each other, each in the order of paths.
fn circles_of<'a>(modules: &BTreeMap<Vec<&'a str>, Module<'a>>) -> Vec<Vec<&'a str>> {
    let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, module) in modules {
        let imported = paths(&module.text).into_iter().filter_map(|named| resolved(modules, path, &named));
        below.entry(module.file).or_default().extend(imported.filter(|file| *file != module.file));
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = below.keys().map(|file| (*file, reached(&below, file))).collect();
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, all) in &reach {
        let circle: Vec<&str> = all.iter().copied().filter(|other| reach[other].contains(file)).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// All files that can be reached from one by at least one arrow.
fn reached<'a>(below: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(file) = open.pop() {
        for next in below.get(file).into_iter().flatten() {
            if reached.insert(*next) {
                open.push(next);
            }
        }
    }
    reached
}

/// The file of a path: the longest prefix that is a module decides.
fn resolved<'a>(modules: &BTreeMap<Vec<&'a str>, Module<'a>>, here: &[&'a str], named: &[&str]) -> Option<&'a str> {
    let (mut at, rest): (Vec<&str>, &[&str]) = match *named.first()? {
        "crate" => (Vec::new(), &named[1..]),
        "self" => (here.to_vec(), &named[1..]),
        "super" => {
            let ups = named.iter().take_while(|name| **name == "super").count();
            (here[..here.len().saturating_sub(ups)].to_vec(), &named[ups..])
        }
        _ if modules.contains_key(&child(here, named[0])) => (here.to_vec(), named),
        _ => return None,
    };
    let mut found = modules.get(&at).map(|module| module.file);
    for name in rest {
        at.push(name);
        let Some(module) = modules.get(&at) else { break };
        found = Some(module.file);
    }
    found
}

fn child<'a>(here: &[&'a str], name: &'a str) -> Vec<&'a str> {
    here.iter().copied().chain([name]).collect()
}

/// Every path of two or more names; braces are expanded.
fn paths(text: &str) -> Vec<Vec<&str>> {
    let tokens = tokens(text);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_inside = at > 0 && matches!(tokens[at - 1], "::" | ".");
        if is_name(tokens[at]) && !is_inside && tokens.get(at + 1) == Some(&"::") {
            at = path(&tokens, at, &mut Vec::new(), &mut paths);
        } else {
            at += 1;
        }
    }
    paths
}

/// Reads one path, or a tree of paths, from `at` on. Returns the position after it.
fn path<'a>(tokens: &[&'a str], mut at: usize, before: &mut Vec<&'a str>, paths: &mut Vec<Vec<&'a str>>) -> usize {
    let outside = before.len();
    while let Some(token) = tokens.get(at) {
        match *token {
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at = if is_name(tokens[at]) { path(tokens, at, before, paths) } else { at + 1 };
                }
                before.truncate(outside);
                return at + 1;
            }
            name if is_name(name) => before.push(name),
            _ => break,
        }
        at += 1;
        if tokens.get(at) != Some(&"::") {
            break;
        }
        at += 1;
    }
    paths.push(before.clone());
    before.truncate(outside);
    // The name after `as` is not a path.
    if tokens.get(at) == Some(&"as") { at + 2 } else { at }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

/// Names, `::`, and every other character by itself.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if is_name(rest) {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() {
            tokens.push(token);
        }
        rest = after;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text)).collect();
        let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let checkout = Checkout::of(&all);
        circles_of(&modules(&checkout, "crates/a/src")).into_iter().map(|circle| circle.join(" ")).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let lib = ("lib.rs", "mod a; mod b; mod c;");
        let none: [&str; 0] = [];
        assert_eq!(of(&[lib, ("a.rs", "use crate::b::X;"), ("b.rs", "use crate::c::Y;"), ("c.rs", "")]), none);
        assert_eq!(
            of(&[
                lib,
                ("a.rs", "use crate::b::X;"),
                ("b.rs", "use crate::c::Y;"),
                ("c.rs", "fn f() { crate::a::g() }")
            ]),
            ["a.rs b.rs c.rs"]
        );
    }

    #[test]
    fn a_folder_and_its_parent_are_a_circle_where_both_import() {
        assert_eq!(of(&[("a/mod.rs", "mod b; use b::X;"), ("a/b.rs", "use super::Y;")]), ["a/b.rs a/mod.rs"]);
        assert_eq!(
            of(&[("a.rs", "mod b; pub use b::X;"), ("a/b.rs", "use super::super::d::Y;"), ("d.rs", "")]),
            [""; 0]
        );
    }

    #[test]
    fn braces_are_written_out_and_tests_and_comments_do_not_count() {
        assert_eq!(
            of(&[("a.rs", "use crate::{c::{d as e, F}, b::G};"), ("b.rs", "use super::{a::H};"), ("c.rs", "")]),
            ["a.rs b.rs"]
        );
        let tests = "// crate::a::f\n#[cfg(test)]\nmod tests {\n use crate::a::X;\n}\n";
        assert_eq!(of(&[("a.rs", "use crate::b::X;"), ("b.rs", tests), ("b/tests.rs", "use crate::a::X;")]), [""; 0]);
    }

    #[test]
    fn nine_files_that_import_each_other_are_an_error() {
        let files: Vec<(String, String)> =
            (0..9).map(|n| (format!("crates/a/src/m{n}.rs"), format!("use crate::m{}::X;", (n + 1) % 9))).collect();
        let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("crates/a/src/lib.rs", ""));
        let remarks = circles(&Checkout::of(&files));
        assert!(remarks.iter().any(|remark| remark.is_error && remark.text.contains("9 files import each other")));
    }
}
