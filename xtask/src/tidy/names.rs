//! Names of types: one name means one thing in a crate, and few things in the house.
//!
//! The rule counts types that other files can see, at the beginning of a line. It leaves out tests, and the names that every
//! family of directives has.

use super::checkout::Checkout;
use super::code::ours;
use super::imports::{code_of, folders};
use super::remark::Remark;
use std::collections::BTreeMap;

/// The most types of one name in all crates together.
const HOUSE_MAX: usize = 3;

/// The types whose crate has another of the same name, without the first of each name. If you rename one, lower this number.
const IN_CRATES: usize = 0;

/// The types of a name beyond the first [`HOUSE_MAX`] in the house. If you rename one, lower this number.
const IN_HOUSE: usize = 0;

/// Every family of directives has types of these names; the family is their prefix.
const OF_FAMILIES: &[&str] = &["Settings", "Values", "Declared"];

/// Reports numbers that differ from [`IN_CRATES`] and [`IN_HOUSE`], with the places.
pub fn names(checkout: &Checkout) -> Vec<Remark> {
    let types = types(checkout);
    let mut crates: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let mut house: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (folder, name, path) in &types {
        crates.entry((name, folder)).or_default().push(path);
        house.entry(name).or_default().push(path);
    }
    let crates = crates.iter().map(|((name, _), paths)| (*name, paths.as_slice()));
    let house = house.iter().map(|(name, paths)| (*name, paths.as_slice()));
    let counts = [
        (beyond(crates, 1), IN_CRATES, "stand again in their crate".to_owned()),
        (beyond(house, HOUSE_MAX), IN_HOUSE, format!("stand more than {HOUSE_MAX} times in the house")),
    ];
    let differ = counts.into_iter().filter(|((count, _), frozen, _)| count != frozen);
    differ
        .map(|((count, places), frozen, said)| {
            Remark::error(format!("{count} type names {said}, but {} says {frozen}: {places}", file!()))
        })
        .collect()
}

/// The number of types beyond `max` of each name, and the places of these names.
fn beyond<'a>(names: impl Iterator<Item = (&'a str, &'a [&'a str])>, max: usize) -> (usize, String) {
    let many: Vec<_> = names.filter(|(_, paths)| paths.len() > max).collect();
    let places: Vec<String> = many.iter().map(|(name, paths)| format!("{name} ({})", paths.join(", "))).collect();
    (many.iter().map(|(_, paths)| paths.len() - max).sum(), places.join("; "))
}

/// The types that other files can see: the crate's `src` folder, the name, the file.
fn types(checkout: &Checkout) -> Vec<(String, String, &str)> {
    let folders = folders(checkout);
    let mut types = Vec::new();
    for file in ours(checkout) {
        let Some((folder, inside)) = folders
            .iter()
            .filter_map(|folder| Some((folder, file.path.strip_prefix(folder.as_str())?.strip_prefix('/')?)))
            .next()
        else {
            continue;
        };
        if inside.trim_end_matches(".rs").split('/').any(|part| part == "tests") {
            continue;
        }
        let text = code_of(&file.text);
        let names = text.lines().filter_map(type_of).filter(|name| !OF_FAMILIES.contains(name));
        types.extend(names.map(|name| (folder.clone(), name.to_owned(), file.path.as_str())));
    }
    types
}

/// The name of the type that a line declares for other files.
fn type_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub")?;
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
    let mut words = rest.split_whitespace().skip_while(|word| *word == "unsafe");
    if !matches!(words.next()?, "struct" | "enum" | "trait" | "type") {
        return None;
    }
    words.next()?.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]

    use super::*;

    #[test]
    fn types_that_other_files_see_count() {
        let lines = [
            "pub struct Kind;",
            "pub(crate) enum Kind {",
            "pub(super) type Kind<T> = T;",
            "pub unsafe trait Kind: X {",
        ];
        assert_eq!(lines.map(type_of), [Some("Kind"); 4]);
        let others =
            ["struct Kind;", "    pub struct Kind;", "pub fn kind()", "pub use a::Kind;", "pub static KIND: Kind"];
        assert_eq!(others.map(type_of), [None; 5]);
    }

    #[test]
    fn a_name_again_in_a_crate_is_counted_with_its_places() {
        let tests = "#[cfg(test)]\nmod tests {\npub struct Kind;\n}\n";
        let checkout = Checkout::of(&[
            ("crates/a/src/lib.rs", ""),
            ("crates/a/src/x.rs", "pub struct Kind;\npub struct Settings;"),
            ("crates/a/src/y.rs", "pub enum Kind {}\npub struct Settings;"),
            ("crates/a/src/z.rs", tests),
            ("crates/a/src/z/tests.rs", "pub struct Kind;"),
            ("crates/b/src/lib.rs", "pub struct Kind;"),
            ("crates/c/src/lib.rs", "pub struct Kind;"),
        ]);
        let texts: Vec<String> = names(&checkout).into_iter().map(|remark| remark.text).collect();
        let [crates, house] = texts.as_slice() else { panic!("{texts:?}") };
        assert!(crates.starts_with("1 type names stand again in their crate"), "{crates}");
        assert!(crates.ends_with("Kind (crates/a/src/x.rs, crates/a/src/y.rs)"), "{crates}");
        assert!(house.starts_with("1 type names stand more than 3 times"), "{house}");
        assert!(house.ends_with("crates/b/src/lib.rs, crates/c/src/lib.rs)"), "{house}");
    }
}
