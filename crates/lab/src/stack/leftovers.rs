//! Files, processes and control groups that a lab leaves behind if it is killed. Their names and the notes tell the
//! next lab which lab they belonged to.
//!
//! A lab works in a directory for temporary files, and notes that directory and its processes in a notes file. The
//! next lab kills and removes according to these notes, possibly as root. So it trusts notes only where no other
//! user can write: in `/run/weir-lab` for root, else below `XDG_RUNTIME_DIR`, else in a directory of the user's own
//! that no other user may enter.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use weir_host as host;
use weir_net::process;

use super::group;
use super::name::{NAME, owner};
use crate::said::{Said, say};

/// Most noted processes of one lab.
const NOTED_MAX: usize = 10_000;
/// Most bytes read of one lab's notes.
const NOTES_BYTES_MAX: u64 = 1 << 20;

/// A lab's directory. Dropping it removes the directory.
#[derive(Debug)]
pub struct LabDirectory(PathBuf);

impl LabDirectory {
    /// Makes the directory; it must not exist yet.
    pub fn new() -> Result<LabDirectory, String> {
        let path = std::env::temp_dir().join(format!("{NAME}{}", std::process::id()));
        // The directory has our process id, so it belonged to a process that has ended.
        let _ = fs::remove_dir_all(&path);
        // This fails if anything is there, even a link: no other user chooses where a lab writes.
        let made = fs::DirBuilder::new().mode(0o755).create(&path);
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        // Notes are needed only if the lab is killed. `sweep` reports why there are none.
        if let Ok(notes) = notes() {
            // Old notes with our process id belong to a process that has ended and that the sweep missed. They would
            // be taken for ours.
            let _ = fs::remove_file(notes.join(name_of(&path)));
            add(&notes.join(name_of(&path)), &format!("{DIRECTORY}{}", path.display()));
        }
        Ok(LabDirectory(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for LabDirectory {
    fn drop(&mut self) {
        // If this fails, the next lab removes it.
        if fs::remove_dir_all(&self.0).is_ok()
            && let Ok(notes) = notes()
        {
            let _ = fs::remove_file(notes.join(name_of(&self.0)));
        }
    }
}

/// The beginning of the line that names a lab's directory in its notes.
const DIRECTORY: &str = "directory ";

/// The directory of the notes. Makes it if it does not exist.
///
/// # Errors
/// It cannot be made, or another user may write there, so it is not trusted.
fn notes() -> Result<PathBuf, String> {
    let user = process::effective_user();
    let path = match (user, std::env::var_os("XDG_RUNTIME_DIR")) {
        (0, _) => PathBuf::from("/run/weir-lab"),
        (_, Some(own)) if is_ours(Path::new(&own), user).is_ok() => PathBuf::from(own).join("weir-lab"),
        (user, _) => std::env::temp_dir().join(format!("weir-lab-of-{user}")),
    };
    let said = |error: std::io::Error| format!("{}: {error}", path.display());
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(said(error)),
    }
    // A user who may rename the directory could replace it.
    let above = path.parent().map(fs::symlink_metadata).transpose().map_err(said)?;
    let is_open = above.is_some_and(|above| above.mode() & 0o022 != 0 && above.mode() & 0o1000 == 0);
    if is_open {
        return Err(format!(
            "{}: other users may replace this file, because they may write to its directory",
            path.display()
        ));
    }
    is_ours(&path, user).map(|()| path.clone())
}

/// Whether a file or directory belongs to a user, and no other user may write to it.
fn is_ours(path: &Path, user: u32) -> Result<(), String> {
    let found = fs::symlink_metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let why = match () {
        () if found.is_symlink() => "it is a link".to_owned(),
        () if found.uid() != user => format!("it belongs to user {}", found.uid()),
        () if found.mode() & 0o022 != 0 => format!("others may write to it (mode {:o})", found.mode() & 0o7777),
        () => return Ok(()),
    };
    Err(format!("{}: {why}: remove this file", path.display()))
}

/// The name of a lab's notes: the name of its directory.
fn name_of(dir: &Path) -> String {
    group::lab_name(dir)
}

/// Notes a process of the lab that works in this directory. The next lab can then find it if its keeper was killed.
pub(super) fn note(dir: &Path, pid: u32) {
    let started = host::started_ticks(pid).unwrap_or(0);
    if let Ok(notes) = notes() {
        add(&notes.join(name_of(dir)), &format!("{pid} {started}"));
    }
}

/// Adds a line to a lab's notes. A failure matters only if the lab is killed.
fn add(notes: &Path, line: &str) {
    use std::io::Write;
    let file = fs::OpenOptions::new().create(true).append(true).mode(0o600).open(notes);
    let _ = file.and_then(|mut file| writeln!(file, "{line}"));
}

/// Ends and removes what killed labs left: processes (by id and start time), directories, control groups. Returns a
/// line for each.
pub fn sweep() -> Vec<Said> {
    let is_alive = |pid: u32| host::started_ticks(pid).is_some();
    let mut said = match notes() {
        Ok(notes) => sweep_notes(&notes, &is_alive),
        Err(error) => vec![say!(SWEEP_UNKNOWN, error)],
    };
    said.extend(group::sweep(&is_alive).into_iter().map(|group| say!(SWEPT, group)));
    said
}

fn sweep_notes(notes: &Path, is_alive: &dyn Fn(u32) -> bool) -> Vec<Said> {
    let user = process::effective_user();
    let mut said = Vec::new();
    for file in fs::read_dir(notes).into_iter().flatten().flatten() {
        let (name, path) = (file.file_name().to_string_lossy().into_owned(), file.path());
        if owner(&name).is_none_or(is_alive) || is_ours(&path, user).is_err() {
            continue;
        }
        let text = read(&path);
        said.extend(end_noted(&text));
        let noted = text.lines().find_map(|line| line.strip_prefix(DIRECTORY)).map(Path::new);
        // If another user has made a directory of that name since, it is not the lab's.
        let left = noted.filter(|dir| is_ours(dir, user).is_ok());
        if let Some(dir) = left.filter(|dir| fs::remove_dir_all(dir).is_ok()) {
            said.push(say!(SWEPT, dir.display().to_string()));
        }
        let _ = fs::remove_file(&path);
    }
    said
}

fn read(path: &Path) -> String {
    use std::io::Read;
    let mut text = String::new();
    // Notes that are not text count as empty.
    let _ = fs::File::open(path).and_then(|file| file.take(NOTES_BYTES_MAX).read_to_string(&mut text));
    text
}

/// Kills the noted processes that are still the same ones.
fn end_noted(text: &str) -> Vec<Said> {
    let noted = text.lines().take(NOTED_MAX).filter_map(|line| {
        let (pid, started) = line.split_once(' ')?;
        Some((pid.parse::<u32>().ok()?, started.parse::<u64>().ok()?))
    });
    // Ids in a namespace belong to other processes out here. Only the same start time identifies the process.
    let same = noted.filter(|(pid, started)| *started > 0 && host::started_ticks(*pid) == Some(*started));
    same.filter(|(pid, _)| process::kill_group(*pid).is_ok()).map(|(pid, _)| say!(SWEPT_GROUP, pid)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    /// The id of a process that has ended.
    fn gone() -> u32 {
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        gone.id()
    }

    #[test]
    fn what_a_killed_lab_left_is_ended_by_name() {
        let place = std::env::temp_dir().join(format!("{NAME}{}-test", gone()));
        fs::create_dir_all(&place).unwrap();
        let noted = notes().unwrap().join(name_of(&place));
        add(&noted, &format!("{DIRECTORY}{}", place.display()));
        let mut orphan = process::spawn_on(&[], Command::new("sleep").arg("60")).unwrap();
        note(&place, orphan.id());
        // The same id with another start time is another process.
        add(&noted, &format!("{} 1\nrubbish\n1 0", std::process::id()));
        let said = sweep();
        assert!(said.iter().any(|line| line.contains(&format!("process group {}", orphan.id()))), "{said:?}");
        assert!(!place.exists() && !noted.exists() && !orphan.wait().unwrap().success());
    }

    #[test]
    fn what_others_may_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let (base, user) =
            (std::env::temp_dir().join(format!("weir-test-notes-{}", gone())), process::effective_user());
        fs::create_dir_all(&base).unwrap();
        let (file, link) = (base.join("file"), base.join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(is_ours(&file, user), Ok(()));
        assert!(is_ours(&file, user + 1).unwrap_err().contains("belongs to user"));
        assert!(is_ours(&link, user).unwrap_err().contains("is a link"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(is_ours(&file, user).unwrap_err().contains("mode 620"));
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn names_say_whose_they_are() {
        assert_eq!(
            (owner("weir-lab-12"), owner("weir-lab-12-edge"), owner("weir-lab-x"), owner("other-12")),
            (Some(12), Some(12), None, None)
        );
    }
}
