//! `cargo xtask package`: everything that is given to users, in `target/package/`, the same bytes at each run.

mod build;
mod check;
mod deb;
mod given;
mod image;
mod licences;
mod make;
mod pages;
mod sbom;
mod stage;
mod sums;
mod tarball;

use crate::book;
use given::PackedWay;
use std::path::{Path, PathBuf};

const USAGE: &str = "\
usage: cargo xtask package [--binary FILE | --profile FILE] [--key FILE] [--no-book] [--check]

  --binary FILE   packs this binary of weir, and builds none
  --profile FILE  builds by this profile, target/weir.profdata of cargo xtask profile: less CPU time for each request
  --key FILE      signs SHA256SUMS with this secret key of minisign; without it, nothing is signed
  --no-book       leaves the book of the documents out, which needs mdBook (cargo xtask book)
  --check         builds and packs twice, in two folders of different names, and compares each byte";

/// Runs the command.
pub fn package(root: &Path, words: &[String]) -> Result<(), String> {
    let asked = Asked::parse(words)?;
    let mdbook = match asked.is_without_book {
        true => None,
        false => {
            Some(book::tool(root).map_err(|error| format!("{error}\n--no-book makes the packages without the book"))?)
        }
    };
    if asked.is_check {
        return check::check(root, &asked.way, mdbook.as_deref());
    }
    let out = root.join("target/package");
    let sums = make::all(root, &out, &asked.way, mdbook.as_deref())?;
    println!("{}", image::origin()?);
    sums::sign(&sums, asked.key.as_deref(), &format!("weir {}", make::version(root)?))
}

#[derive(Debug, Default, PartialEq)]
struct Asked {
    way: PackedWay,
    key: Option<PathBuf>,
    is_without_book: bool,
    is_check: bool,
}

impl Asked {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut asked = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut path = || words.next().map(PathBuf::from).ok_or_else(|| format!("{word} needs a file\n\n{USAGE}"));
            match word.as_str() {
                "--binary" | "--profile" if asked.way != PackedWay::Built => {
                    return Err(format!("--binary and --profile are two ways: name one\n\n{USAGE}"));
                }
                "--binary" => asked.way = PackedWay::Given(path()?),
                "--profile" => asked.way = PackedWay::BuiltBy(path()?),
                "--key" => asked.key = Some(path()?),
                "--no-book" => asked.is_without_book = true,
                "--check" => asked.is_check = true,
                _ => return Err(USAGE.to_owned()),
            }
        }
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn flags_take_a_file() {
        let words = ["--binary", "b", "--key", "k", "--no-book", "--check"].map(str::to_owned);
        let all =
            Asked { way: PackedWay::Given("b".into()), key: Some("k".into()), is_without_book: true, is_check: true };
        assert_eq!(Asked::parse(&words).unwrap(), all);
        assert!(Asked::parse(&words[..1]).unwrap_err().contains("--binary needs a file"));
        assert!(Asked::parse(&["--other".to_owned()]).is_err());
        let both = ["--profile", "p", "--binary", "b"].map(str::to_owned);
        assert_eq!(Asked::parse(&both[..2]).unwrap().way, PackedWay::BuiltBy("p".into()));
        assert!(Asked::parse(&both).unwrap_err().contains("name one"));
    }
}
