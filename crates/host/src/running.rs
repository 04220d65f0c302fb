//! Running processes: their names, their limits, their open files.

use std::fs;
use std::path::Path;

use super::limits::{FileLimit, file_limit_of};
use super::process::PROCESSES_MAX;

/// A running process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The kernel's id.
    pub id: u32,
    /// The id of the parent.
    pub parent: u32,
    /// The command line, with a space between the words; for nginx, the title that nginx set.
    pub command: String,
    /// `RLIMIT_NOFILE` of this process.
    pub files: Option<FileLimit>,
    /// Number of open descriptors; `None` if they are not readable.
    pub open_files: Option<u64>,
}

/// The process with this id, then its children; empty if it does not exist.
pub fn processes_under(root: &Path, pid: u32) -> Vec<Process> {
    let Some(first) = process(root, pid) else { return Vec::new() };
    let mut found = vec![first];
    found.extend(all(root).filter(|process| process.parent == pid));
    found
}

/// Processes of Node.js and PM2, at most 64. An application may set a title of its own ("node-red"), so the program's
/// file decides, too, where it is readable.
pub fn node_processes_under(root: &Path) -> Vec<Process> {
    let is_node = |process: &Process| {
        let program = process.command.split(' ').next().unwrap_or_default();
        let is_named = |path: &str| matches!(path.rsplit('/').next(), Some("node" | "nodejs"));
        let file = fs::read_link(root.join(format!("proc/{}/exe", process.id))).unwrap_or_default();
        // The kernel adds " (deleted)" if the file was replaced.
        is_named(program)
            || process.command.starts_with("PM2 ")
            || file.to_str().is_some_and(|file| is_named(file.trim_end_matches(" (deleted)")))
    };
    all(root).filter(is_node).take(64).collect()
}

fn all(root: &Path) -> impl Iterator<Item = Process> {
    let entries = fs::read_dir(root.join("proc")).into_iter().flatten().flatten().take(PROCESSES_MAX);
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter_map(|id| process(root, id))
}

fn process(root: &Path, id: u32) -> Option<Process> {
    let directory = root.join("proc").join(id.to_string());
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let parent = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
    let command = fs::read(directory.join("cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command).replace('\0', " ").trim().to_owned();
    let open_files = fs::read_dir(directory.join("fd")).ok().map(|entries| entries.count() as u64);
    Some(Process { id, parent, command, files: file_limit_of(root, id), open_files })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree;

    #[test]
    fn a_master_comes_with_its_workers() {
        let limits = "Max open files            1024                 4096                 files\n";
        let root = tree::made_up(&[
            ("proc/7/stat", "7 (nginx) S 1 7 7 0"),
            ("proc/7/cmdline", "nginx: master process /usr/sbin/nginx\0"),
            ("proc/7/limits", limits),
            ("proc/8/stat", "8 (a) b) S 7 7 7 0"),
            ("proc/8/cmdline", "nginx: worker process\0"),
            ("proc/8/fd/0", ""),
            ("proc/8/fd/1", ""),
            ("proc/9/stat", "9 (node) S 1 9 9 0"),
            ("proc/9/cmdline", "/usr/bin/node\0app.js\0"),
            ("proc/10/stat", "10 (node-red) S 1 10 10 0"),
            ("proc/10/cmdline", "node-red\0"),
            ("proc/self/stat", "rubbish"),
        ]);
        std::os::unix::fs::symlink("/opt/node (deleted)", root.path().join("proc/10/exe")).unwrap();
        let found = processes_under(root.path(), 7);
        assert_eq!(found.iter().map(|process| process.id).collect::<Vec<_>>(), [7, 8]);
        assert_eq!(found[0].files, Some(FileLimit { soft: 1024, hard: 4096 }));
        assert_eq!((found[1].command.as_str(), found[1].open_files), ("nginx: worker process", Some(2)));
        let node = node_processes_under(root.path());
        let mut node: Vec<&str> = node.iter().map(|process| process.command.as_str()).collect();
        node.sort_unstable();
        assert_eq!(node, ["/usr/bin/node app.js", "node-red"]);
        assert_eq!(processes_under(root.path(), 99), []);
    }
}
