//! Files of the checkout and of folders; an error names its path.

use crate::run::output;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The files below a folder, as paths from it, sorted.
pub fn files(top: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut waiting = vec![String::new()];
    while let Some(folder) = waiting.pop() {
        for name in names_in(&top.join(&folder))? {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let place = top.join(&path);
            match place.is_dir() && !place.is_symlink() {
                true => waiting.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The names in a folder, in no order.
pub fn names_in(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| told(folder, &error))?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

/// The files of git below a folder, sorted.
pub fn tracked(root: &Path, folder: &str) -> Result<Vec<String>, String> {
    let list = output(Command::new("git").current_dir(root).args(["ls-files", "--", folder]))?;
    match list.is_empty() {
        true => Err(format!("git has no file below {folder}/")),
        false => Ok(list.lines().map(str::to_owned).collect()),
    }
}

/// Reads a text file.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| told(path, &error))
}

/// An error with its path.
pub fn told(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
