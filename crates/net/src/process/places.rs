//! Restricts the server to the places in the file system that its configuration names (`landlock(7)`). It may then write
//! below some directories, read below others, and run nothing.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{Mode, OFlags, open};

/// The kernel's oldest rules that let a file move between directories: Linux 5.19. With older ones, a cached answer could
/// not be moved from the temporary directory to its place.
const OLDEST: ABI = ABI::V2;
/// The newest rules that weir knows.
const NEWEST: ABI = ABI::V6;

/// Every server reads these: facts about the machine and its own threads, the time zone, the system's certificate authorities.
const READ_BY_ALL: [&str; 9] = [
    "/proc",
    "/sys",
    "/dev/null",
    "/dev/urandom",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/etc/ssl/certs",
    "/etc/pki",
    "/usr/share/ca-certificates",
];

/// Restricts this thread, and all threads that it starts, to reading and writing below these places; for good. A place that
/// does not exist has no rule; a directory to write in is then made in the nearest one above it that exists.
///
/// Call before any thread is started, and after `no_new_privs` is set.
///
/// # Errors
/// The kernel has no Landlock, or only that of Linux 5.13 to 5.18.
pub fn restrict_files<'p>(
    reads: impl IntoIterator<Item = &'p Path>,
    writes: impl IntoIterator<Item = &'p Path>,
) -> io::Result<()> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    // No links, devices, sockets or programs.
    let write = read
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let mut rules = ruleset().map_err(other)?;
    for path in READ_BY_ALL.iter().map(Path::new).chain(reads) {
        rules = add(rules, path, read).map_err(other)?;
    }
    for path in writes {
        if let Some(directory) = nearest(path) {
            rules = add(rules, directory, write).map_err(other)?;
        }
    }
    rules.no_new_privs(false).restrict_self().map_err(other)?;
    Ok(())
}

fn other(error: RulesetError) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, error.to_string())
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(OLDEST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::Signal)?
        .create()
}

fn add(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    // A file that does not exist is no place; neither is one that this user cannot reach.
    let Ok(place) = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else { return Ok(rules) };
    let access = if is_directory(&place) { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(place, access))
}

fn is_directory(place: &OwnedFd) -> bool {
    rustix::fs::fstat(place).is_ok_and(|facts| rustix::fs::FileType::from_raw_mode(facts.st_mode).is_dir())
}

/// The path, or the nearest directory above it that exists. `None` if that is the root: one missing directory must not open
/// the whole file system.
fn nearest(path: &Path) -> Option<&Path> {
    let found = path.ancestors().find(|above| above.exists())?;
    (found == path || found.parent().is_some()).then_some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    /// Marks the process that restricts itself: a restriction is for good, so it is not the process of the other tests.
    const ENV_RESTRICTED: &str = "WEIR_TEST_PLACES";

    #[test]
    fn a_missing_directory_is_made_below_one_that_exists_and_is_not_the_root() {
        for (path, expected) in [
            ("/proc/self", Some("/proc/self")),
            ("/proc/none/at/all", Some("/proc")),
            ("/no such directory/at all", None),
            ("/", Some("/")),
        ] {
            assert_eq!(nearest(Path::new(path)), expected.map(Path::new), "{path}");
        }
    }

    #[test]
    fn a_restricted_process_reads_and_writes_in_its_places_only() {
        let Some(room) = std::env::var_os(ENV_RESTRICTED).map(PathBuf::from) else {
            let room = std::env::temp_dir().join(format!("weir-places-{}", std::process::id()));
            for directory in ["read", "write", "temporary", "other"] {
                fs::create_dir_all(room.join(directory)).unwrap();
                fs::write(room.join(directory).join("file"), "text").unwrap();
            }
            fs::write(room.join("alone"), "text").unwrap();
            std::os::unix::fs::symlink("../other", room.join("read/way")).unwrap();
            let name = "process::places::tests::a_restricted_process_reads_and_writes_in_its_places_only";
            let mut own = Command::new(std::env::current_exe().unwrap());
            let ended =
                own.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(ENV_RESTRICTED, &room).output();
            let ended = ended.unwrap();
            fs::remove_dir_all(room).unwrap();
            assert!(ended.status.success(), "{}", String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()));
            return;
        };
        rustix::thread::set_no_new_privs(true).unwrap();
        let reads = [room.join("read"), room.join("alone"), room.join("none")];
        let writes = [room.join("write"), room.join("temporary")];
        restrict_files(reads.iter().map(PathBuf::as_path), writes.iter().map(PathBuf::as_path)).unwrap();
        let denied = |result: io::Result<()>, what: &str| {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied, "{what}");
        };
        assert_eq!(fs::read(room.join("read/file")).unwrap(), b"text");
        assert_eq!(fs::read(room.join("alone")).unwrap(), b"text");
        assert_eq!(fs::read_dir(room.join("read")).unwrap().count(), 2);
        fs::create_dir(room.join("write/a")).unwrap();
        fs::write(room.join("temporary/new"), "text").unwrap();
        fs::rename(room.join("temporary/new"), room.join("write/a/new")).unwrap();
        fs::remove_dir_all(room.join("write/a")).unwrap();
        assert!(fs::read_to_string("/proc/self/stat").is_ok());
        denied(fs::read(room.join("other/file")).map(drop), "another file");
        denied(fs::read(room.join("read/way/file")).map(drop), "a link out of the place");
        denied(fs::read("/etc/passwd").map(drop), "a file of the machine");
        denied(fs::read_dir(room.join("other")).map(drop), "another directory");
        denied(fs::write(room.join("read/file"), "x"), "a file to read");
        denied(fs::write(room.join("other/new"), "x"), "another directory");
        denied(fs::remove_file(room.join("read/file")), "a removal");
        denied(std::os::unix::fs::symlink("/", room.join("write/link")), "a link");
        denied(Command::new("/bin/true").status().map(drop), "a program");
    }
}
