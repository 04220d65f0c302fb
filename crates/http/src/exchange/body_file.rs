//! A request's body in a file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use weir_net::log::{self, Level, Os};

use crate::hold::bounds::{self, Share};

/// The file of a body. Dropping it removes the file, unless it is kept.
#[derive(Debug)]
pub struct BodyFile {
    file: File,
    path: String,
    length: u64,
    /// Whether the file stays.
    pub is_kept: bool,
    /// Its bytes, among those of all temporary files.
    held: Share,
}

/// Why bytes could not be written.
#[derive(Debug)]
pub enum Unwritten {
    /// All temporary files together have as many bytes as they may (`limit_temp_files`).
    Full,
    /// The disk refuses them.
    Disk(io::Error),
}

impl BodyFile {
    /// A file without bytes, open for reading and writing.
    pub fn new(file: File, path: String) -> BodyFile {
        BodyFile { file, path, length: 0, is_kept: false, held: bounds::TEMPORARY.share() }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Unwritten> {
        if !self.held.grow(bytes.len() as u64) {
            return Err(Unwritten::Full);
        }
        self.file.write_all_at(bytes, self.length).map_err(Unwritten::Disk)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The same file through another descriptor, for another exchange; the first one removes it.
    ///
    /// # Errors
    /// The process has no free descriptor.
    pub fn copy(&self) -> io::Result<BodyFile> {
        Ok(BodyFile {
            file: self.file.try_clone()?,
            path: self.path.clone(),
            length: self.length,
            is_kept: true,
            held: bounds::TEMPORARY.share(),
        })
    }
}

impl Drop for BodyFile {
    fn drop(&mut self) {
        // A thread that put the file elsewhere has left nothing to remove.
        if !self.is_kept
            && let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            log::global(Level::Crit, format_args!("unlink() \"{}\" failed {}", self.path, Os(&error)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;

    #[test]
    fn the_first_owner_removes_the_file() {
        let path = std::env::temp_dir().join(format!("weir-body-{}", std::process::id()));
        let open = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        let path = path.to_str().unwrap();
        let mut first = BodyFile::new(open, path.to_owned());
        first.write(b"some ").unwrap();
        first.write(b"bytes").unwrap();
        let copy = first.copy().unwrap();
        drop(first);
        assert!(!Path::new(path).exists());
        let mut bytes = [0; 10];
        copy.file().read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!((&bytes, copy.length()), (b"some bytes", 10));
    }
}
