//! Rules about documents: they must match the checkout.

use super::checkout::Checkout;
use super::remark::Remark;
use std::collections::BTreeSet;

/// Every document has one title, on the first line.
pub fn titles(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for file in checkout.ending(".md") {
        let titles = headings(&file.text).filter(|line| line.starts_with("# ")).count();
        if titles != 1 || !file.text.starts_with("# ") {
            remarks.push(Remark::error(format!(
                "{}:1: a document has one `# Title`, on its first line; this one has {titles}",
                file.path
            )));
        }
    }
    remarks
}

/// `ARCHITECTURE.md` names every crate and every folder at the top, and no crate that does not exist.
pub fn architecture(checkout: &Checkout) -> Vec<Remark> {
    let map = checkout.text("ARCHITECTURE.md");
    let mut remarks = Vec::new();
    let folders: BTreeSet<&str> =
        checkout.files.iter().filter_map(|file| file.path.split_once('/')).map(|(folder, _)| folder).collect();
    for folder in folders.iter().filter(|folder| !map.contains(&format!("`{folder}/"))) {
        remarks.push(Remark::error(format!("ARCHITECTURE.md: names no `{folder}/`")));
    }
    let crates: BTreeSet<&str> =
        checkout.files.iter().filter_map(|file| file.path.strip_prefix("crates/")?.split('/').next()).collect();
    for name in crates.iter().filter(|name| !map.contains(&format!("`crates/{name}`"))) {
        remarks.push(Remark::error(format!("ARCHITECTURE.md: names no `crates/{name}`")));
    }
    for name in map.split("`crates/").skip(1).filter_map(|rest| rest.split(['`', '/']).next()) {
        if !name.is_empty() && !crates.contains(name) {
            remarks.push(Remark::error(format!("ARCHITECTURE.md: `crates/{name}` is not there")));
        }
    }
    remarks
}

/// The `//!` of a crate's `src/lib.rs` names each folder of `src` as `` `folder/` ``. The items of its list begin with names
/// of files and folders, and all of them are there.
pub fn maps(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for root in checkout.ending("/src/lib.rs").filter(|file| file.path.starts_with("crates/")) {
        let source = root.path.trim_end_matches("lib.rs");
        let inside: Vec<&str> = checkout.files.iter().filter_map(|file| file.path.strip_prefix(source)).collect();
        let map: Vec<&str> = root.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let text = map.join("\n");
        let folders: BTreeSet<&str> = inside.iter().filter_map(|path| Some(path.split_once('/')?.0)).collect();
        for folder in folders.iter().filter(|folder| !text.contains(&format!("`{folder}/"))) {
            remarks.push(Remark::error(format!("{}: the map names no `{folder}/`", root.path)));
        }
        let is_there = |name: &str| {
            let (file, folder) = (format!("{name}.rs"), format!("{name}/"));
            inside.iter().any(|path| *path == file || path.starts_with(&folder))
        };
        for name in map.iter().flat_map(|line| heads(line)).filter(|name| !is_there(name.trim_end_matches('/'))) {
            remarks.push(Remark::error(format!("{}: the map names `{name}`, which is not there", root.path)));
        }
    }
    remarks
}

/// The names at the beginning of a list's item: ``- `one`, `two/`: what they do``.
fn heads(line: &str) -> impl Iterator<Item = &str> {
    let item = line.strip_prefix(" - `").and_then(|rest| rest.split("`:").next()).unwrap_or_default();
    item.split("`, `").filter(|name| !name.is_empty() && !name.contains('`'))
}

/// Documents that name places of the checkout, for people who change it.
const NAMES_PLACES: &[&str] = &[
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "HACKING.md",
    "RELEASES.md",
    "bench/README.md",
    "fuzz/README.md",
    "tests/README.md",
];

/// A path in backquotes that begins with a folder at the top is there. A word in capitals stands for a name.
pub fn places(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let is_there = |place: &str| checkout.files.iter().any(|file| file.path.starts_with(place));
    let pages = checkout.files.iter().filter(|file| NAMES_PLACES.contains(&file.path.as_str()));
    for page in pages {
        for place in page.text.split('`').skip(1).step_by(2) {
            let is_path = place.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c));
            let top = place.split_inclusive('/').next().filter(|top| top.ends_with('/') && is_there(top));
            if is_path && top.is_some() && !is_there(place) {
                remarks.push(Remark::error(format!("{}: `{place}` is not there", page.path)));
            }
        }
    }
    remarks
}

/// Every outside dependency has its reason, and every reason belongs to a dependency.
pub fn dependencies(checkout: &Checkout) -> Vec<Remark> {
    let page = "docs/why/dependencies.md";
    let reasons = checkout.text(page);
    let foreign: BTreeSet<&String> = checkout.crates.iter().flat_map(|member| &member.foreign).collect();
    let unexplained = foreign.iter().filter(|name| !reasons.contains(&format!("`{name}`")));
    let unexplained = unexplained.map(|name| Remark::error(format!("{page}: does not mention `{name}`")));
    let explained = reasons.lines().filter(|line| line.starts_with("| `")).flat_map(names_of_row);
    let unused = explained.filter(|name| !foreign.contains(&(*name).to_owned()));
    let unused = unused.map(|name| Remark::error(format!("{page}: has a row for `{name}`, but no crate uses it")));
    unexplained.chain(unused).collect()
}

/// The names in the first cell of a table row: the words in backquotes.
fn names_of_row(row: &str) -> impl Iterator<Item = &str> {
    let cell = row.trim_start_matches('|').split('|').next().unwrap_or_default();
    cell.split('`').skip(1).step_by(2)
}

/// Lines outside of code fences.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::super::checkout::Crate;
    use super::*;

    #[test]
    fn a_document_has_one_title() {
        assert_eq!(titles(&Checkout::of(&[("a.md", "# A\n\n```\n# a comment\n```\n## B\n")])), []);
        assert_eq!(titles(&Checkout::of(&[("a.md", "# A\n# B\n")])).len(), 1);
        assert_eq!(titles(&Checkout::of(&[("a.md", "text\n# A\n")])).len(), 1);
    }

    #[test]
    fn the_map_names_what_is_there_and_only_that() {
        let files = [("crates/wire/src/lib.rs", ""), ("tests/main.rs", "")];
        let of = |map| architecture(&Checkout::of(&[files[0], files[1], ("ARCHITECTURE.md", map)]));
        assert_eq!(of("`crates/` `crates/wire` `tests/`"), []);
        assert_eq!(of("`crates/` `crates/wire`"), [Remark::error("ARCHITECTURE.md: names no `tests/`")]);
        assert_eq!(of("`crates/` `crates/wire` `tests/` `crates/gone`").len(), 1);
        assert_eq!(of("`crates/` `tests/`").len(), 1);
    }

    #[test]
    fn the_map_of_a_crate_names_its_folders_and_only_what_is_there() {
        let of = |map| maps(&Checkout::of(&[("crates/a/src/lib.rs", map), ("crates/a/src/b/c.rs", "")]));
        assert_eq!(of("//! A.\n//!\n//! - `b/`: `x`\n"), []);
        assert_eq!(of("//! A.\n").len(), 1);
        let gone = "crates/a/src/lib.rs: the map names `gone`, which is not there";
        assert_eq!(of("//! A.\n//!\n//! - `b/`, `gone`: `x`\n"), [Remark::error(gone)]);
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let of = |text| places(&Checkout::of(&[("CONTRIBUTING.md", text), ("tests/route/a.vtc", "")]));
        assert_eq!(of("in `tests/route/`, `tests/AREA/`, `tests/a b`, `auto/modules`"), []);
        assert_eq!(of("in `tests/regress`"), [Remark::error("CONTRIBUTING.md: `tests/regress` is not there")]);
    }

    #[test]
    fn a_dependency_without_a_reason_is_named() {
        let mut checkout = Checkout::of(&[("docs/why/dependencies.md", "# Dependencies\n\n`libc`: calls\n")]);
        let foreign = vec!["libc".to_owned(), "other".to_owned()];
        checkout.crates.push(Crate { name: "weir-net".to_owned(), arrows: Vec::new(), foreign });
        assert_eq!(dependencies(&checkout), [Remark::error("docs/why/dependencies.md: does not mention `other`")]);
    }

    #[test]
    fn each_reason_has_a_dependency() {
        let member = Crate { name: "a".into(), arrows: Vec::new(), foreign: vec!["one".into()] };
        let page = "| crate | used by |\n|---|---|\n| `one`, `gone` | a | says `other` |\n";
        let mut checkout = Checkout::of(&[("docs/why/dependencies.md", page)]);
        checkout.crates.push(member);
        let remark = "docs/why/dependencies.md: has a row for `gone`, but no crate uses it";
        assert_eq!(dependencies(&checkout), [Remark::error(remark)]);
    }
}
