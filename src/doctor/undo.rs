//! The files as they were before the doctor changed them, outside of every folder that a configuration includes; and
//! `weir doctor --undo`.
//!
//! A change is a numbered folder with two trees: `before/` has the files before the change, `after/` has them after it.
//! A file that the change made is only in `after/`.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use weir_doctor::mend::Mended;
use weir_net::process;
use weir_words::{Language, Said, say};

use crate::texts;

/// Most changes that are kept.
const CHANGES_MAX: u32 = 99;

/// Most files and folders of one change.
const ENTRIES_MAX: usize = 10_000;

/// Where changes are kept.
pub(super) struct Undo {
    folder: PathBuf,
}

impl Undo {
    /// The folder of this user: `$XDG_STATE_HOME/weir/undo`, else `/var/backups/weir/undo` for root and
    /// `~/.local/state/weir/undo` for others. `root` is the folder that has the machine's files.
    ///
    /// # Errors
    /// The user has no such folder, or another user can write to it.
    pub(super) fn of(root: &Path) -> Result<Undo, Said> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let is_root = process::is_root();
        let state = match (variable("XDG_STATE_HOME"), is_root) {
            (Some(state), _) => state,
            (None, true) => root.join("var/backups"),
            (None, false) => variable("HOME").ok_or_else(|| say!(texts::UNDO_NOWHERE))?.join(".local/state"),
        };
        let folder = state.join("weir/undo");
        if let Ok(found) = fs::symlink_metadata(&folder) {
            let is_own = found.is_dir() && found.uid() == process::effective_user();
            if !is_own || found.mode() & 0o022 != 0 {
                return Err(say!(texts::UNDO_UNSAFE, folder.display().to_string()));
            }
        }
        Ok(Undo { folder })
    }

    /// The numbers of the changes that are kept.
    fn numbers(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    fn change(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Keeps the files of a change, then writes them. If one cannot be written, those before it get their old content
    /// back.
    ///
    /// # Errors
    /// A file cannot be kept or written, has another content than the change began with, or the folder is full.
    pub(super) fn write(&self, files: &[Mended]) -> Result<(), Said> {
        for file in files {
            let now = present(Path::new(&file.name))?;
            if now.as_deref().unwrap_or_default() != file.before {
                return Err(say!(texts::UNDO_RACED, &file.name));
            }
        }
        let numbers = self.numbers();
        let number = numbers.last().map_or(1, |last| last + 1);
        if numbers.len() >= CHANGES_MAX as usize {
            return Err(say!(texts::UNDO_FULL, self.folder.display().to_string(), CHANGES_MAX));
        }
        let change = self.change(number);
        let kept = files.iter().try_for_each(|file| keep(&change, file));
        let written =
            kept.and_then(|()| files.iter().try_for_each(|file| put(Path::new(&file.name), Some(&file.after))));
        if written.is_err() {
            // Only files that were kept were written.
            let _ = take_back(&change);
            let _ = fs::remove_dir_all(&change);
        }
        written
    }

    /// Takes the last change back: the names of the files.
    ///
    /// # Errors
    /// There is no change, a file has changed since, or a file cannot be written. In the first two cases nothing is
    /// written.
    pub(super) fn take_back(&self) -> Result<Vec<String>, Said> {
        let numbers = self.numbers();
        let last = numbers.last().ok_or_else(|| say!(texts::UNDO_NONE, self.folder.display().to_string()))?;
        let change = self.change(*last);
        for (name, path) in files_in(&change.join("after"))? {
            if present(Path::new(&name))? != present(&path)? {
                return Err(say!(texts::UNDO_CHANGED, &name, change.join("before").display().to_string()));
            }
        }
        let names = take_back(&change)?;
        fs::remove_dir_all(&change).map_err(|error| of(&change, &error))?;
        Ok(names)
    }
}

/// `weir doctor --undo`.
///
/// # Errors
/// As [`Undo::take_back`].
pub(super) fn run(root: &Path, language: Language) -> Result<u8, Said> {
    for name in Undo::of(root)?.take_back()? {
        eprintln!("{}", say!(texts::UNDONE, name).say(language));
    }
    Ok(0)
}

/// Gives every file of a change its content from before it.
fn take_back(change: &Path) -> Result<Vec<String>, Said> {
    let mut names = Vec::new();
    for (name, _) in files_in(&change.join("after"))? {
        let before = present(&below(&change.join("before"), &name))?;
        put(Path::new(&name), before.as_deref())?;
        names.push(name);
    }
    Ok(names)
}

/// Keeps both contents of a file, and reads them again.
fn keep(change: &Path, file: &Mended) -> Result<(), Said> {
    let was_there = Path::new(&file.name).exists();
    let sides = [("before", &file.before, was_there), ("after", &file.after, true)];
    for (side, bytes, _) in sides.into_iter().filter(|(_, _, is_there)| *is_there) {
        let path = below(&change.join(side), &file.name);
        let folder = path.parent().unwrap_or(change);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| of(folder, &error))?;
        let kept = fs::write(&path, bytes).and_then(|()| fs::File::open(&path)?.sync_all());
        kept.map_err(|error| of(&path, &error))?;
        if present(&path)?.as_ref() != Some(bytes) {
            return Err(say!(texts::UNDO_RACED, path.display().to_string()));
        }
    }
    Ok(())
}

/// Writes a file in place, so that its owner, its mode and its links stay; `None` removes it.
fn put(path: &Path, bytes: Option<&[u8]>) -> Result<(), Said> {
    let written = match bytes {
        Some(bytes) => path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, bytes)),
        None if path.exists() => fs::remove_file(path),
        None => Ok(()),
    };
    written.map_err(|error| of(path, &error))
}

/// The content of a file; `None` if there is none.
fn present(path: &Path) -> Result<Option<Vec<u8>>, Said> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(of(path, &error)),
    }
}

/// The place of a file with an absolute name below a folder.
fn below(folder: &Path, name: &str) -> PathBuf {
    folder.join(name.trim_start_matches('/'))
}

/// Every file below a folder: the absolute name that it stands for, and its path.
fn files_in(folder: &Path) -> Result<Vec<(String, PathBuf)>, Said> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).map_err(|error| of(&next, &error))?.flatten() {
            let path = entry.path();
            match path.strip_prefix(folder) {
                _ if path.is_dir() => open.push(path),
                Ok(name) => files.push((format!("/{}", name.display()), path)),
                Err(_) => {}
            }
            if files.len() + open.len() > ENTRIES_MAX {
                return Err(say!(texts::UNDO_UNSAFE, folder.display().to_string()));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn of(path: &Path, error: &io::Error) -> Said {
    say!(texts::OF_FILE, path.display().to_string(), error.to_string())
}
