//! Made-up `/proc` and `/sys` trees for the tests of this folder.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory that is removed when dropped.
pub(super) struct Tree(PathBuf);

impl Tree {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the files into a new directory.
pub(super) fn made_up(files: &[(&str, &str)]) -> Tree {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("weir-meter-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let root = std::env::temp_dir().join(name);
    fs::create_dir_all(&root).unwrap();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    Tree(root)
}
