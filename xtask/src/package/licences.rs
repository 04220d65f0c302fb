//! The licences of the crates that are linked into the binary.

use super::sbom;
use crate::files::told;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files that hold a licence or a notice.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// One text: each licence once, below the crates that it is for.
pub fn of(root: &Path) -> Result<String, String> {
    let crates = sbom::crates(root)?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut said = String::from("weir contains these crates, each under its own licence.\n\n");
    for one in crates.iter().filter(|one| one.is_foreign()) {
        let name = format!("{} {}", one.name, one.version);
        let _ = writeln!(said, "{name}: {}", one.licence.as_deref().unwrap_or("see its files"));
        for text in texts_in(&one.folder)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut blocks: Vec<_> = texts.into_iter().map(|(text, names)| (names, text)).collect();
    blocks.sort();
    for (names, text) in blocks {
        let _ = write!(said, "\n{}\n{}\n\n{}\n", "-".repeat(80), names.join(", "), text);
    }
    Ok(said)
}

fn texts_in(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| told(folder, &error))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        path.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    });
    paths.sort();
    // Old files are not always in UTF-8.
    let text = |path: &PathBuf| {
        let bytes = fs::read(path).map_err(|error| told(path, &error))?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    paths.iter().map(text).collect()
}
