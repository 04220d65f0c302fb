//! Circles of files: files of one crate that import each other, directly or through others.
//!
use super::checkout::Checkout;
use super::imports::{folders, imports};
use super::remark::Remark;
use std::collections::{BTreeMap, BTreeSet};

/// The most files that may import each other, directly or through others.
const LARGEST: usize = 4;

/// The number of circles in the checkout. If you open one, lower this number.
const CIRCLES: usize = 22;

/// Reports circles of more than [`LARGEST`] files, and a number of circles that differs from [`CIRCLES`].
pub fn circles(checkout: &Checkout) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let mut firsts = Vec::new();
    for folder in folders(checkout) {
        for circle in circles_of(&imports(checkout, &folder)) {
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

/// Groups of files that all reach each other, each in the order of paths.
fn circles_of<'a>(below: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = below.keys().map(|file| (*file, reached(below, file))).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let all: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text)).collect();
        let all: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let checkout = Checkout::of(&all);
        circles_of(&imports(&checkout, "crates/a/src")).into_iter().map(|circle| circle.join(" ")).collect()
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
