//! The disk, as an implementation of `conf`'s `Files`: the only place where reading a configuration touches the OS.

use std::fs;
use std::io;
use std::path::Path;

use weir_conf::Files;
use weir_net::answers;

/// Files on the disk, unchanged.
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        answers::ask(answers::QuestionKind::File, path, || fs::read(path))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let asked = answers::ask(answers::QuestionKind::Pattern, pattern, || {
            expand(pattern).map(|found| found.join("\n").into_bytes())
        });
        Ok(String::from_utf8_lossy(&asked?).lines().map(str::to_owned).collect())
    }
}

fn expand(pattern: &str) -> io::Result<Vec<String>> {
    let list = |directory: &str| -> io::Result<Vec<String>> {
        Ok(fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
    };
    let exists = |path: &str| Path::new(path).exists();
    Ok(weir_conf::glob::expand(pattern, &list, &exists))
}
