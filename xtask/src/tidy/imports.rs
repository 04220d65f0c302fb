//! What the files of a crate import, read as text: `use` lines, and paths in the code.
//!
//! It leaves out tests, and `lib.rs`, which only declares modules and re-exports names.

use super::checkout::Checkout;
use std::collections::{BTreeMap, BTreeSet};

/// From each file of a folder `src` to the files that it imports.
pub fn imports<'a>(checkout: &'a Checkout, folder: &str) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let modules = modules(checkout, folder);
    let mut imports: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, module) in &modules {
        // The names of paths live as long as the module's text, the names of files as long as the checkout.
        let named: Vec<&'a str> =
            paths(&module.text).iter().filter_map(|named| resolved(&modules, path, named)).collect();
        imports.entry(module.file).or_default().extend(named.into_iter().filter(|file| *file != module.file));
    }
    imports
}

/// The `src` folders of all crates, the one at the top too.
pub fn folders(checkout: &Checkout) -> BTreeSet<String> {
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
pub fn code_of(text: &str) -> String {
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
