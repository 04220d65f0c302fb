//! Files in memory: tests, `doctor` and `lab` load configurations from them.

use std::collections::BTreeMap;
use std::io;

use crate::glob;
use crate::include::Files;

/// A set of named files.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryFiles {
    /// No files.
    pub fn new() -> MemoryFiles {
        MemoryFiles::default()
    }

    /// The same files with one more, under its full path.
    #[must_use]
    pub fn with(mut self, path: &str, bytes: impl AsRef<[u8]>) -> MemoryFiles {
        self.files.insert(path.to_owned(), bytes.as_ref().to_vec());
        self
    }

    /// The names in a directory; its path ends in `/`.
    fn list(&self, dir: &str) -> Vec<String> {
        let below = self.files.keys().filter_map(|path| path.strip_prefix(dir));
        let mut names: Vec<String> = below.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.dedup();
        names
    }
}

impl Files for MemoryFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let exists = |path: &str| self.files.contains_key(path);
        Ok(glob::expand(pattern, &|dir| Ok(self.list(dir)), &exists))
    }
}
