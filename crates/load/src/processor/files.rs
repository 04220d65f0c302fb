//! Files of a processor: finds the path for a name, and the kind of a module file, by Node's rules.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Largest file that is loaded for a processor or read by it, in bytes.
pub const FILE_MAX: u64 = 256 << 20;

/// The file that the path `name` means in the file `from`. As in Node's `require`, the ending may be left out.
pub fn resolve(from: &Path, name: &str) -> Option<String> {
    let folder = from.parent().unwrap_or(Path::new("/"));
    let whole = plain(&folder.join(name));
    let text = whole.to_string_lossy().into_owned();
    let candidates = ["", ".js", ".json", ".mjs", ".cjs", "/index.js", "/index.mjs", "/index.json"];
    candidates.iter().map(|ending| format!("{text}{ending}")).find(|path| Path::new(path).is_file())
}

/// The path without `.` and `..`.
pub fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

/// True if the file is TypeScript.
pub fn is_typescript(path: &Path) -> bool {
    ending(path).is_some_and(|ending| ["ts", "mts", "cts", "tsx"].contains(&ending))
}

/// True if a file is an ES module: by its ending, by `type` in the nearest package.json, or by its text.
pub fn is_module(path: &Path) -> bool {
    match ending(path) {
        Some("mjs") => true,
        Some("cjs" | "json") => false,
        _ => match package_type(path).as_deref() {
            Some("module") => true,
            Some("commonjs") => false,
            _ => text(path).is_ok_and(|text| reads_as_module(&text)),
        },
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

fn package_type(path: &Path) -> Option<String> {
    let package = path.ancestors().skip(1).map(|folder| folder.join("package.json")).find(|path| path.is_file())?;
    let value: serde_json::Value = serde_json::from_slice(&read(&package).ok()?).ok()?;
    Some(value.get("type")?.as_str()?.to_owned())
}

fn reads_as_module(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        ["import", "export"].iter().any(|word| {
            let Some(rest) = line.strip_prefix(word) else { return false };
            let is_call = *word == "import" && rest.trim_start().starts_with(['(', '.']);
            rest.starts_with([' ', '{', '*', '"', '\'']) && !is_call
        })
    })
}

/// A file's text.
pub fn text(path: &Path) -> Result<String, String> {
    let bytes = read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{}: is not UTF-8", path.display()))?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// A file's bytes, at most [`FILE_MAX`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_syntax_is_seen() {
        for (text, is_module) in [
            ("export const a = 1;", true),
            ("  export { a };", true),
            ("import fs from 'fs'", true),
            ("import './a.js'", true),
            ("import('x')", false),
            ("exports.a = 1; important = 2", false),
            ("const a = require('a')", false),
        ] {
            assert_eq!(reads_as_module(text), is_module, "{text}");
        }
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(plain(Path::new("/a/b/../c/./d.js")), Path::new("/a/c/d.js"));
        assert_eq!(plain(Path::new("/../x")), Path::new("/x"));
    }
}
