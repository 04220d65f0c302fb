//! What the rules are applied to: the files git knows and what `cargo metadata` says of the crates.

use crate::run::{cargo, output};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A checkout, read once.
#[derive(Default)]
pub struct Checkout {
    /// Text files that git tracks or would track, in order of their paths.
    pub files: Vec<File>,
    /// Members of the workspace.
    pub crates: Vec<Crate>,
}

/// A text file.
pub struct File {
    /// From the top of the checkout.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// A member of the workspace.
pub struct Crate {
    /// Its name in `Cargo.toml`.
    pub name: String,
    /// The members it depends on, dev-dependencies too.
    pub arrows: Vec<String>,
    /// What it depends on from outside, dev-dependencies too.
    pub foreign: Vec<String>,
}

impl Checkout {
    /// Asks git and cargo.
    pub fn read(root: &Path) -> Result<Self, String> {
        let list = output(Command::new("git").current_dir(root).args(["ls-files", "-co", "--exclude-standard"]))?;
        let mut files: Vec<File> = list
            .lines()
            .filter_map(|path| {
                // What cannot be read as text is deleted or no text; neither has rules.
                std::fs::read_to_string(root.join(path)).ok().map(|text| File { path: path.to_owned(), text })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let metadata = output(cargo("metadata --no-deps --format-version 1").current_dir(root))?;
        Ok(Self { files, crates: crates(&metadata)? })
    }

    /// Files whose path ends so.
    pub fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// The text of one file, empty if there is none.
    pub fn text(&self, path: &str) -> &str {
        self.files.iter().find(|file| file.path == path).map_or("", |file| &file.text)
    }
}

fn crates(metadata: &str) -> Result<Vec<Crate>, String> {
    let metadata: Value = serde_json::from_str(metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = list(&metadata["packages"]);
    let members: Vec<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    Ok(packages
        .iter()
        .map(|package| {
            let names = list(&package["dependencies"]).iter().filter_map(|dependency| dependency["name"].as_str());
            let (arrows, foreign) = names.map(str::to_owned).partition(|name| members.contains(&name.as_str()));
            Crate { name: package["name"].as_str().unwrap_or_default().to_owned(), arrows, foreign }
        })
        .collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
impl Checkout {
    /// A checkout of these files, for the tests of rules.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| File { path: path.to_owned(), text: text.to_owned() });
        Self { files: files.collect(), crates: Vec::new() }
    }
}
