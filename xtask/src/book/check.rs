//! Whether the finished site is whole: each link leads to a page and a heading that are there, and nothing is fetched from
//! another host.

use super::html::{PagePiece, attribute, name, pieces, plain};
use super::pages::resolved;
use crate::files::{files, read};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks every page and style sheet; an error lists all that is wrong.
pub fn check(site: &Path) -> Result<usize, String> {
    let names = files(site)?;
    let mut pages = BTreeMap::new();
    let mut wrong = Vec::new();
    for name in &names {
        if name.ends_with(".html") {
            pages.insert(name.clone(), References::of(&read(&site.join(name))?));
        } else if name.ends_with(".css") && fetches(&read(&site.join(name))?) {
            wrong.push(format!("{name}: it fetches from another host"));
        }
    }
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut count = 0;
    for (path, page) in &pages {
        for reference in &page.references {
            count += 1;
            wrong.extend(
                broken(path, reference, &pages, &names).map(|why| format!("{path}: {}: {why}", reference.target)),
            );
        }
    }
    if wrong.is_empty() { Ok(count) } else { Err(wrong.join("\n")) }
}

/// Everything that a page refers to, and the ids to which others may refer.
#[derive(Default)]
struct References {
    ids: BTreeSet<String>,
    references: Vec<Reference>,
}

struct Reference {
    target: String,
    /// Whether the browser fetches it by itself.
    is_fetched: bool,
}

impl References {
    fn of(html: &str) -> Self {
        let mut found = Self::default();
        for piece in pieces(html) {
            let PagePiece::Tag(tag) = piece else { continue };
            found.ids.extend(attribute(tag, "id").map(plain));
            let targets = ["href", "src"].into_iter().filter_map(|key| attribute(tag, key));
            let is_fetched = name(tag) != "a";
            found.references.extend(targets.map(|target| Reference { target: plain(target), is_fetched }));
        }
        found
    }
}

/// The reason why a reference leads nowhere.
fn broken(
    from: &str,
    reference: &Reference,
    pages: &BTreeMap<String, References>,
    names: &BTreeSet<&str>,
) -> Option<&'static str> {
    let target = decoded(&reference.target);
    if target.contains("://") || target.starts_with("mailto:") {
        return reference.is_fetched.then_some("it comes from another host");
    }
    let (path, id) = target.split_once('#').unwrap_or((&target, ""));
    let path = if path.is_empty() { Some(from.to_owned()) } else { resolved(from, path) };
    let Some(path) = path.filter(|path| names.contains(path.as_str())) else { return Some("no such file") };
    let is_there = |page: &References| id.is_empty() || page.ids.contains(id);
    pages.get(&path).is_some_and(|page| !is_there(page)).then_some("no such heading")
}

/// Whether a style sheet names another sheet or a picture by a whole URL.
fn fetches(style: &str) -> bool {
    let whole = |target: &str| {
        target
            .trim_start_matches(['"', '\'', ' '])
            .split(['"', '\'', ')', ';'])
            .next()
            .is_some_and(|url| url.contains("//"))
    };
    style.split("url(").skip(1).chain(style.split("@import ").skip(1)).any(whole)
}

/// A URL without percent signs.
fn decoded(url: &str) -> String {
    let mut bytes = Vec::with_capacity(url.len());
    let mut rest = url.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    fn checked(test: &str, files: &[(&str, &str)]) -> Result<usize, String> {
        let site = std::env::temp_dir().join(format!("weir-book-{test}-{}", std::process::id()));
        for (name, text) in files {
            fs::create_dir_all(site.join(name).parent().unwrap()).unwrap();
            fs::write(site.join(name), text).unwrap();
        }
        let result = check(&site);
        fs::remove_dir_all(site).unwrap();
        result
    }

    #[test]
    fn a_whole_site_passes() {
        let page = "<h1 id=\"가\"></h1><a href=\"#%EA%B0%80\"></a><a href=\"sub/b.html\"></a><a href=\"https://nginx.org/\"></a>";
        let below = "<img src=\"../p.webp\"><a href=\"../a.html#가\"></a><link href=\"../c.css\">";
        assert_eq!(
            checked(
                "whole",
                &[
                    ("a.html", page),
                    ("sub/b.html", below),
                    ("p.webp", ""),
                    ("c.css", "/* https://h/ */ a{background:url('d.png')}")
                ]
            ),
            Ok(6)
        );
    }

    #[test]
    fn what_is_broken_is_named() {
        let page = "<a href=\"b.html\"></a><a href=\"#b\"></a><img src=\"https://h/p.png\"><a href=\"../x\"></a><a href=\"sub\"></a>";
        let told =
            checked("broken", &[("a.html", page), ("c.css", "@import url(https://h/)"), ("sub/d", "")]).unwrap_err();
        let expected = [
            "c.css: it fetches from another host",
            "a.html: b.html: no such file",
            "a.html: #b: no such heading",
            "a.html: https://h/p.png: it comes from another host",
            "a.html: ../x: no such file",
            "a.html: sub: no such file",
        ];
        assert_eq!(told.lines().collect::<Vec<_>>(), expected);
    }
}
