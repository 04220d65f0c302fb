//! The limit on open files.

use std::path::Path;

use super::files::Files;

/// `RLIMIT_NOFILE`: the limit of file descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimit {
    /// The limit in force.
    pub soft: u64,
    /// The limit up to which `soft` may be raised without privilege.
    pub hard: u64,
}

/// The file limit of this process; `None` if `/proc` does not have it.
pub fn file_limit() -> Option<FileLimit> {
    file_limit_under(&Files::under(Path::new("/")))
}

/// As [`file_limit`], in `files`.
///
/// `unlimited` reads as `u64::MAX`.
pub fn file_limit_under(files: &Files) -> Option<FileLimit> {
    read(files, "self")
}

/// As [`file_limit_under`], for another process.
pub fn file_limit_of(root: &Path, pid: u32) -> Option<FileLimit> {
    read(&Files::under(root), &pid.to_string())
}

fn read(files: &Files, process: &str) -> Option<FileLimit> {
    let text = files.text(&format!("proc/{process}/limits"))?;
    let rest = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut numbers = rest.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        word => word.parse().ok(),
    });
    Some(FileLimit { soft: numbers.next()??, hard: numbers.next()?? })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    fn limit(line: &str) -> Option<FileLimit> {
        let root = tree::made_up(&[("proc/self/limits", line)]);
        file_limit_under(&Files::under(root.path()))
    }

    #[test]
    fn the_line_is_found_and_read() {
        let text = "Limit   Soft Limit  Hard Limit  Units\n\
                    Max processes      1    2    processes\n\
                    Max open files     1024      unlimited     files\n";
        let expect = FileLimit { soft: 1024, hard: u64::MAX };
        assert_eq!(limit(text), Some(expect));
    }

    #[test]
    fn a_strange_file_is_unknown() {
        assert_eq!(limit(""), None);
        assert_eq!(limit("Max open files"), None);
        assert_eq!(limit("Max open files  many  more"), None);
    }

    #[test]
    fn this_process_has_a_limit() {
        let limit = file_limit().unwrap();
        assert!(limit.soft > 0 && limit.soft <= limit.hard);
    }
}
