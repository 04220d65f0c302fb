//! The disk, behind `conf`'s `Files`: the only place where configurations touch the OS.

use std::fs;
use std::io;
use std::path::Path;

use weir_conf::Files;

/// Files as they are.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let list = |directory: &str| -> io::Result<Vec<String>> {
            Ok(fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        };
        let exists = |path: &str| Path::new(path).exists();
        Ok(weir_conf::glob::expand(pattern, &list, &exists))
    }
}
