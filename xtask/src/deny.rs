//! The rules for dependencies (`deny.toml`): licences, sources, versions.
//!
//! cargo-deny checks the same file and knows advisories too. Its advisories come from GitHub, and CI has only registries, so
//! CI checks the three parts that need no network.

use crate::run::{cargo, output};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The only registry, as `cargo metadata` names it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks every crate of the lock file, also those of tests, of build scripts and of other systems.
pub fn deny(root: &Path) -> Result<(), String> {
    let rules = std::fs::read_to_string(root.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
    let metadata = output(cargo("metadata --locked --format-version 1").current_dir(root))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for line in repeated(packages) {
        println!("several versions: {line}");
    }
    let wrong = wrong(packages, &allowed(&rules));
    match wrong.as_slice() {
        [] => {
            println!("deny: {} crates, no rule broken", packages.len());
            Ok(())
        }
        _ => Err(format!("deny: {}", wrong.join("\ndeny: "))),
    }
}

/// The licences of `allow` in the section `[licenses]`.
fn allowed(rules: &str) -> BTreeSet<&str> {
    let section = rules.split("\n[licenses]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or_default();
    let lines = section.lines().skip_while(|line| !line.starts_with("allow = [")).take_while(|line| *line != "]");
    lines.filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\",")).collect()
}

fn wrong(packages: &[Value], allowed: &BTreeSet<&str>) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        // A crate of this workspace has no source.
        let Some(source) = package["source"].as_str() else { continue };
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        if source != CRATES_IO {
            wrong.push(format!("{name}: its source is {source}, not crates.io"));
        }
        match package["license"].as_str() {
            None => wrong.push(format!("{name}: its manifest names no licence")),
            Some(licence) if !may(licence, allowed) => {
                wrong.push(format!("{name}: deny.toml does not allow {licence}"));
            }
            Some(_) => {}
        }
    }
    wrong
}

/// Whether the allowed licences are enough for an expression of SPDX; a slash is the old form of OR.
fn may(licence: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced =
        licence.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ").replace(" WITH ", "\u{a0}WITH\u{a0}");
    let words: Vec<&str> = spaced.split([' ', '\n']).filter(|word| !word.is_empty()).collect();
    let (result, rest) = any(&words, allowed);
    result && rest.is_empty()
}

/// Terms between ORs; the words after them.
fn any<'w>(words: &'w [&'w str], allowed: &BTreeSet<&str>) -> (bool, &'w [&'w str]) {
    let (mut result, mut rest) = all(words, allowed);
    while let ["OR", after @ ..] = rest {
        let (next, after) = all(after, allowed);
        (result, rest) = (result || next, after);
    }
    (result, rest)
}

/// Licences between ANDs.
fn all<'w>(words: &'w [&'w str], allowed: &BTreeSet<&str>) -> (bool, &'w [&'w str]) {
    let (mut result, mut rest) = one(words, allowed);
    while let ["AND", after @ ..] = rest {
        let (next, after) = one(after, allowed);
        (result, rest) = (result && next, after);
    }
    (result, rest)
}

fn one<'w>(words: &'w [&'w str], allowed: &BTreeSet<&str>) -> (bool, &'w [&'w str]) {
    match words {
        ["(", inside @ ..] => match any(inside, allowed) {
            (result, [")", rest @ ..]) => (result, rest),
            (_, rest) => (false, rest),
        },
        [name, rest @ ..] => (allowed.contains(name.replace('\u{a0}', " ").as_str()), rest),
        [] => (false, &[]),
    }
}

/// Crates with several versions.
fn repeated(packages: &[Value]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(text(&package["name"])).or_default().insert(text(&package["version"]));
    }
    let several = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    several.map(|(name, versions)| format!("{name} {}", versions.into_iter().collect::<Vec<_>>().join(", "))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const RULES: &str = "[graph]\n[licenses]\nallow = [\n    \"MIT\",\n    # why\n    \"A WITH b\",\n]\n\n[sources]\nx = [\n    \"Z\",\n]\n";

    #[test]
    fn licences_are_judged_as_expressions() {
        let allowed = allowed(RULES);
        assert_eq!(allowed.iter().copied().collect::<Vec<_>>(), ["A WITH b", "MIT"]);
        for (licence, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("MIT AND GPL-3.0", false),
            ("MIT AND (GPL-3.0 OR MIT)", true),
            ("(MIT OR GPL-3.0) AND GPL-3.0", false),
            ("A WITH b", true),
            ("A", false),
            ("MIT MIT", false),
            ("(MIT", false),
            ("", false),
        ] {
            assert_eq!(may(licence, &allowed), expected, "{licence}");
        }
    }

    #[test]
    fn other_sources_and_missing_licences_are_named() {
        let package = |name: &str, source: Value, licence: Value| json!({"name": name, "version": "1.0.0", "source": source, "license": licence});
        let packages = [
            package("weir", Value::Null, Value::Null),
            package("good", json!(CRATES_IO), json!("MIT")),
            package("git", json!("git+https://example.com/a"), json!("MIT")),
            package("bare", json!(CRATES_IO), Value::Null),
            package("bad", json!(CRATES_IO), json!("GPL-3.0")),
        ];
        let said = wrong(&packages, &allowed(RULES)).join("\n");
        assert_eq!(said.lines().count(), 3, "{said}");
        for part in ["git 1.0.0: its source", "bare 1.0.0: its manifest", "bad 1.0.0: deny.toml does not allow GPL-3.0"]
        {
            assert!(said.contains(part), "{said}");
        }
        assert!(repeated(&packages).is_empty());
        let two = [json!({"name": "a", "version": "1"}), json!({"name": "a", "version": "2"})];
        assert_eq!(repeated(&two), ["a 1, 2"]);
    }
}
