//! What a lab leaves on the machine while it runs, named so that the next one can tell whose it was.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use weir_meter::host;
use weir_net::process;

use super::group;

/// Every directory and control group of a lab begins so; then comes the lab's process id.
pub const NAME: &str = "weir-lab-";
/// Processes noted of one lab.
const NOTED_MAX: usize = 10_000;

/// A lab's directory; removed when dropped.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// One that was not there before.
    pub fn new() -> Result<Place, String> {
        let path = std::env::temp_dir().join(format!("{NAME}{}", std::process::id()));
        // Ours by its number, of a process that is no more.
        let _ = fs::remove_dir_all(&path);
        let made = fs::DirBuilder::new().mode(0o755).create(&path);
        made.map(|()| Place(path.clone())).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // At worst the next lab finds it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The process id in a name of ours.
pub(super) fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(NAME)?.split('-').next()?.parse().ok()
}

/// Notes a process in a lab's directory, so that it can be found should its keeper be killed.
pub(super) fn note(dir: &Path, pid: u32) {
    use std::io::Write;
    let started = host::started_ticks(pid).unwrap_or(0);
    let file = fs::OpenOptions::new().create(true).append(true).open(dir.join("processes"));
    // Without the note only a killed keeper leaves something behind.
    let _ = file.and_then(|mut file| writeln!(file, "{pid} {started}"));
}

/// Ends and removes what labs left that were killed: processes by id and start, directories, control groups. Says what.
pub fn sweep() -> Vec<String> {
    let is_alive = |pid: u32| host::started_ticks(pid).is_some();
    let mut said = Vec::new();
    let places = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for place in places {
        let name = place.file_name().to_string_lossy().into_owned();
        if owner(&name).is_none_or(is_alive) || !place.path().is_dir() {
            continue;
        }
        said.extend(end_noted(&place.path()));
        if fs::remove_dir_all(place.path()).is_ok() {
            said.push(format!("removed {}, of a lab that is no more", place.path().display()));
        }
    }
    said.extend(group::sweep(&is_alive).into_iter().map(|group| format!("removed {group}, of a lab that is no more")));
    said
}

/// Kills the processes that a directory names and that are still the same.
fn end_noted(dir: &Path) -> Vec<String> {
    let text = fs::read_to_string(dir.join("processes")).unwrap_or_default();
    let noted = text.lines().take(NOTED_MAX).filter_map(|line| {
        let (pid, started) = line.split_once(' ')?;
        Some((pid.parse::<u32>().ok()?, started.parse::<u64>().ok()?))
    });
    // Ids of a namespace name other processes out here: only the same start makes it the same process.
    let same = noted.filter(|(pid, started)| *started > 0 && host::started_ticks(*pid) == Some(*started));
    same.filter(|(pid, _)| process::kill_group(*pid).is_ok())
        .map(|(pid, _)| format!("ended process group {pid}, of a lab that is no more"))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    #[test]
    fn what_a_killed_lab_left_is_ended_by_name() {
        // The id of a process that is no more.
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let place = std::env::temp_dir().join(format!("{NAME}{}-test", gone.id()));
        fs::create_dir_all(&place).unwrap();
        let mut orphan = process::spawn_on(&[], Command::new("sleep").arg("60")).unwrap();
        note(&place, orphan.id());
        fs::OpenOptions::new()
            .append(true)
            .open(place.join("processes"))
            .map(|mut file| {
                use std::io::Write;
                // The same id at another time is somebody else.
                writeln!(file, "{} 1\nrubbish\n1 0", std::process::id()).unwrap();
            })
            .unwrap();
        let said = sweep();
        assert!(said.iter().any(|line| line.contains(&format!("process group {}", orphan.id()))), "{said:?}");
        assert!(!place.exists() && !orphan.wait().unwrap().success());
    }

    #[test]
    fn names_say_whose_they_are() {
        assert_eq!(
            (owner("weir-lab-12"), owner("weir-lab-12-edge"), owner("weir-lab-x"), owner("other-12")),
            (Some(12), Some(12), None, None)
        );
    }
}
