//! Whether two builds are the same, bit by bit: in two clones, whose paths have different lengths.

use super::given::PackedWay;
use super::make;
use super::stage::sha256;
use crate::files::{files, told};
use crate::run::{output, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds and packs the last commit twice, and compares the products.
pub fn check(root: &Path, way: &PackedWay, mdbook: Option<&Path>) -> Result<(), String> {
    let top = root.join("target/package-check");
    let commit = output(Command::new("git").current_dir(root).args(["rev-parse", "HEAD"]))?;
    let mut products = Vec::new();
    for name in ["one", "two/in-a-longer-folder"] {
        let clone = top.join(name);
        refresh(root, &clone, commit.trim())?;
        make::all(&clone, &clone.join("target/package"), way, mdbook)?;
        products.push(sums_of(&clone.join("target/package"))?);
    }
    same(&products[0], &products[1])
}

/// A clone at this commit. What an earlier check compiled there stays.
fn refresh(root: &Path, clone: &Path, commit: &str) -> Result<(), String> {
    if !clone.exists() {
        fs::create_dir_all(clone).map_err(|error| told(clone, &error))?;
        run(Command::new("git").args(["clone", "--quiet", "--shared"]).arg(root).arg(clone))?;
    }
    run(Command::new("git").current_dir(clone).args(["fetch", "--quiet", "origin", "HEAD"]))?;
    run(Command::new("git").current_dir(clone).args(["reset", "--quiet", "--hard", commit]))
}

type Sums = Vec<(String, String)>;

fn sums_of(folder: &Path) -> Result<Sums, String> {
    let names = files(folder)?.into_iter().filter(|name| !name.contains('/'));
    names.map(|name| Ok((name.clone(), sha256(&PathBuf::from(folder).join(&name))?))).collect()
}

fn same(one: &Sums, two: &Sums) -> Result<(), String> {
    if one == two {
        println!("two builds, {} files, the same bytes", one.len());
        return Ok(());
    }
    let differ: Vec<&str> = one.iter().filter(|sum| !two.contains(sum)).map(|(name, _)| name.as_str()).collect();
    Err(format!("two builds differ: {} (diffoscope tells where)", differ.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_that_differs_is_named() {
        let sums = |deb: &str| vec![("a.deb".to_owned(), deb.to_owned()), ("b.tar".to_owned(), "2".to_owned())];
        assert_eq!(same(&sums("1"), &sums("1")), Ok(()));
        let told = same(&sums("1"), &sums("3")).unwrap_err();
        assert!(told.contains("a.deb") && !told.contains("b.tar"));
    }
}
