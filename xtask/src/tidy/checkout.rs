//! The input of the rules: the files that git knows, and the crates from `cargo metadata`.

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
    /// Path from the top of the checkout.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// A member of the workspace.
pub struct Crate {
    /// The name in `Cargo.toml`.
    pub name: String,
    /// The workspace members that it depends on; its tests may depend on others.
    pub arrows: Vec<String>,
    /// The outside crates that it depends on, including dev-dependencies.
    pub foreign: Vec<String>,
}

impl Checkout {
    /// Reads the checkout with git and cargo.
    pub fn read(root: &Path) -> Result<Self, String> {
        let list = output(Command::new("git").current_dir(root).args(["ls-files", "-co", "--exclude-standard"]))?;
        let mut files: Vec<File> = list
            .lines()
            .filter_map(|path| {
                // A file that cannot be read as text was deleted or is binary; neither has rules.
                std::fs::read_to_string(root.join(path)).ok().map(|text| File { path: path.to_owned(), text })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        let metadata = output(cargo("metadata --no-deps --format-version 1").current_dir(root))?;
        Ok(Self { files, crates: crates(&metadata)? })
    }

    /// Files whose path has this ending.
    pub fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(ending))
    }

    /// The text of one file; empty if it does not exist.
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
            let all = list(&package["dependencies"]).iter();
            let all = all.filter_map(|dependency| Some((dependency["name"].as_str()?, &dependency["kind"])));
            let (own, foreign): (Vec<_>, Vec<_>) = all.partition(|(name, _)| members.contains(name));
            let arrows = own.into_iter().filter(|(_, kind)| *kind != "dev").map(|(name, _)| name.to_owned()).collect();
            let foreign = foreign.into_iter().map(|(name, _)| name.to_owned()).collect();
            Crate { name: package["name"].as_str().unwrap_or_default().to_owned(), arrows, foreign }
        })
        .collect())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
impl Checkout {
    /// A checkout with these files, for the tests of rules.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|&(path, text)| File { path: path.to_owned(), text: text.to_owned() });
        Self { files: files.collect(), crates: Vec::new() }
    }
}
