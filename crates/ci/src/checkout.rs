//! Revisions as directories. They are made by `git archive`, which changes neither the repository nor the working tree, and
//! are removed when the run ends, however it ends.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use weir_net::process;
use weir_words::{Said, say};

use crate::build::{CommandEnd, finish, tail};
use crate::revision::{self, CodeRevision, Repository};
use crate::texts;

/// The beginning of a directory's name; the number of its process follows.
const NAME: &str = "weir-ci-";
/// Most entries of a place that are searched for directories of ended processes.
const ENTRIES_MAX: usize = 10_000;

/// A directory of this process. It goes with the value.
#[derive(Debug)]
pub struct RevisionRoom {
    path: PathBuf,
}

impl RevisionRoom {
    /// Makes a directory below `place`, and removes those that ended processes of this user left there; `told` gets their names.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn new(place: &Path, told: &mut dyn FnMut(Said)) -> Result<RevisionRoom, Said> {
        sweep(place, told);
        let failed = |error: std::io::Error| say!(texts::ERR_PLACE, place.display().to_string(), error.to_string());
        fs::create_dir_all(place).map_err(failed)?;
        let place = fs::canonicalize(place).map_err(failed)?;
        let path = place.join(format!("{NAME}{}", std::process::id()));
        // As root, the edge's workers are another user, and read files of the revision. They may pass through the directory,
        // and nobody may list it.
        let mode = if process::is_root() { 0o711 } else { 0o700 };
        // An existing directory of this name is refused: another user could have made it.
        fs::DirBuilder::new().mode(mode).create(&path).map_err(failed)?;
        Ok(RevisionRoom { path })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory `name` with the files of a revision.
    ///
    /// # Errors
    /// git or tar fails, or the run ends.
    pub fn unpack(
        &self,
        repository: &Repository,
        revision: &CodeRevision,
        name: &str,
        stop: &AtomicBool,
    ) -> Result<PathBuf, Said> {
        let to = self.path.join(name);
        let failed = |why: String| say!(texts::ERR_UNPACK, revision.short(), why);
        let told = |error: std::io::Error| failed(error.to_string());
        fs::create_dir(&to).map_err(told)?;
        let log = self.path.join(format!("{name}.unpack.log"));
        let words = fs::File::create(&log).map_err(told)?;
        let mut archive = revision::command(&repository.top);
        archive.args(["archive", "--format=tar", &revision.commit]);
        archive.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(words.try_clone().map_err(told)?);
        let mut archive = process::spawn_on(&[], &mut archive).map_err(told)?;
        let Some(stream) = archive.stdout.take() else { return Err(failed("git".to_owned())) };
        let mut tar = Command::new("tar");
        tar.args(["-x", "--no-same-owner", "-f", "-", "-C"]).arg(&to).stdin(stream).stdout(Stdio::null()).stderr(words);
        let ended = match process::spawn_on(&[], &mut tar) {
            Ok(mut tar) => finish(&mut tar, stop),
            Err(error) => CommandEnd::Failed(error.to_string()),
        };
        // If tar is gone, git ends too, because its pipe is closed.
        match (ended, finish(&mut archive, stop)) {
            (CommandEnd::Well, CommandEnd::Well) => Ok(to),
            (CommandEnd::Stopped, _) | (_, CommandEnd::Stopped) => Err(say!(texts::STOPPED)),
            (CommandEnd::Failed(why), _) | (_, CommandEnd::Failed(why)) => Err(failed(format!("{why}{}", tail(&log)))),
        }
    }
}

impl Drop for RevisionRoom {
    fn drop(&mut self) {
        // A build may have made files that this user cannot remove; there is nobody left to tell.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes directories of this user whose process has ended.
fn sweep(place: &Path, told: &mut dyn FnMut(Said)) {
    let own = process::effective_user();
    for entry in fs::read_dir(place).into_iter().flatten().flatten().take(ENTRIES_MAX) {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(NAME)?.parse::<u32>().ok()) else { continue };
        // A link of that name is not ours.
        let is_own = entry.path().symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        let is_alive = Path::new(&format!("/proc/{pid}")).exists();
        if is_own && !is_alive && fs::remove_dir_all(entry.path()).is_ok() {
            told(say!(texts::LEFT_BEHIND, entry.path().display().to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_room_goes_with_its_value_and_takes_the_rooms_of_the_dead() {
        let place = std::env::temp_dir().join(format!("weir-test-room-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        // No process has this number: it is above the largest one.
        let dead = place.join(format!("{NAME}4294967295"));
        fs::create_dir(&dead).unwrap();
        let kept = place.join("weir-ci-notes");
        fs::create_dir(&kept).unwrap();
        let link = place.join(format!("{NAME}4294967294"));
        std::os::unix::fs::symlink(&kept, &link).unwrap();
        let mut told = Vec::new();
        let room = RevisionRoom::new(&place, &mut |said| told.push(said)).unwrap();
        assert_eq!((dead.exists(), kept.exists(), link.exists(), told.len()), (false, true, true, 1));
        assert!(RevisionRoom::new(&place, &mut |_| {}).is_err(), "the name is taken");
        fs::write(room.path().join("x"), "x").unwrap();
        let path = room.path().to_owned();
        drop(room);
        assert!(!path.exists());
        fs::remove_dir_all(&place).unwrap();
    }
}
