//! The work on files and trees that may take long: it knows no exchange, and a thread of its own does it.
//!
//! Links inside a tree are never followed: DELETE removes the link, COPY leaves it out.

use std::fs::{self, DirBuilder, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use weir_http::exchange::file_path::errno;
use weir_http::text::value::directory_access;
use weir_net::log::{Level, Os};
use weir_net::path::{self, as_path};

/// The result of some work: the status of the answer, and lines for the error log.
pub struct DavDone {
    /// The status.
    pub status: u16,
    /// The lines.
    pub lines: Vec<(Level, String)>,
}

/// The most lines that one request writes: a tree may have any number of files that cannot be removed.
const LINES_MAX: usize = 100;

impl DavDone {
    /// No error so far.
    pub fn new(status: u16) -> DavDone {
        DavDone { status, lines: Vec::new() }
    }

    /// Notes a failed call and sets the status; `not_found` if the file or its directory does not exist.
    pub fn fail(&mut self, error: &io::Error, not_found: u16, call: &str, path: &Path) {
        let (level, status) = match error.raw_os_error() {
            Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG) => (Level::Error, not_found),
            Some(errno::EACCES | EPERM) => (Level::Error, 403),
            Some(EEXIST) => (Level::Error, 405),
            Some(ENOSPC) => (Level::Crit, 507),
            Some(_) | None => (Level::Crit, 500),
        };
        self.status = status;
        self.note(level, format!("{call} \"{}\" failed {}", path.display(), Os(error)));
    }

    /// Notes a failure that does not change the status: the work goes on with the next file.
    fn pass_over(&mut self, error: &io::Error, call: &str, path: &Path) {
        let status = self.status;
        self.fail(error, status, call, path);
        self.status = status;
    }

    fn note(&mut self, level: Level, line: String) {
        if self.lines.len() < LINES_MAX {
            self.lines.push((level, line));
        }
    }
}

const EPERM: i32 = 1;
const EEXIST: i32 = 17;
const ENOSPC: i32 = 28;

/// A COPY or a MOVE.
pub struct Transfer {
    /// It is a MOVE.
    pub moves: bool,
    /// The file or directory; a directory ends with a slash.
    pub source: Vec<u8>,
    /// Its new name, likewise.
    pub target: Vec<u8>,
    /// The target may exist.
    pub overwrites: bool,
    /// `dav_access`.
    pub access: u32,
    /// The URI, for log lines.
    pub uri: String,
    /// `Destination`, for log lines.
    pub destination: String,
}

impl Transfer {
    /// The log line if one path lies in the other.
    pub fn conflict(&self) -> Option<String> {
        let (source, target) = (without_slash(&self.source), without_slash(&self.target));
        if source == target {
            return Some(format!(
                "both URI \"{}\" and \"Destination\" URI \"{}\" point to the same location",
                self.uri, self.destination
            ));
        }
        let is_inside =
            |inner: &[u8], outer: &[u8]| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with(b"/"));
        let is_collection = self.target.ends_with(b"/");
        (is_collection && (is_inside(target, source) || is_inside(source, target))).then(|| self.impossible())
    }

    fn impossible(&self) -> String {
        let method = if self.moves { "MOVE" } else { "COPY" };
        format!("\"{}\" could not be {method}ed to collection \"{}\"", self.uri, self.destination)
    }
}

fn without_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

/// Renames; with `access`, makes the missing directories on the way.
pub fn rename(from: &Path, to: &Path, access: Option<u32>) -> io::Result<()> {
    match (fs::rename(from, to), access) {
        (Err(error), Some(access)) if error.kind() == io::ErrorKind::NotFound => {
            path::make_way(to, directory_access(access))?;
            fs::rename(from, to)
        }
        (result, _) => result,
    }
}

/// The permissions and the time that a copy gets.
pub struct Copied {
    /// The permissions.
    pub mode: u32,
    /// The time; `None` for now.
    pub modified: Option<SystemTime>,
}

impl Copied {
    fn of(facts: &Metadata) -> Copied {
        Copied { mode: facts.mode() & 0o777, modified: facts.modified().ok() }
    }
}

/// Makes the directories for the file of a body, and gives it its name there.
pub fn put_below_new(from: &Path, to: &Path, status: u16, copied: &Copied) -> DavDone {
    let mut done = DavDone::new(status);
    let placed = path::make_way(to, directory_access(copied.mode)).and_then(|()| fs::rename(from, to));
    match placed {
        Ok(()) => done,
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => put(from, to, status, copied),
        Err(error) => {
            let (from, to) = (from.display(), to.display());
            done.note(Level::Crit, format!("rename() \"{from}\" to \"{to}\" failed {}", Os(&error)));
            done.status = 500;
            done
        }
    }
}

/// Copies the file of a body to another file system; the exchange removes the body's file.
pub fn put(from: &Path, to: &Path, status: u16, copied: &Copied) -> DavDone {
    let mut done = DavDone::new(status);
    if !copy(from, to, copied, &mut done) {
        done.status = 500;
    }
    done
}

/// Removes a file, or a directory with all that is in it.
pub fn delete(path: &Path, is_directory: bool, done: &mut DavDone) -> bool {
    let result = if is_directory {
        if let Err(error) = empty(path, done) {
            done.note(Level::Crit, format!("opendir() \"{}\" failed {}", path.display(), Os(&error)));
            done.status = 500;
            return false;
        }
        fs::remove_dir(path).map_err(|error| ("rmdir()", error))
    } else {
        fs::remove_file(path).map_err(|error| ("unlink()", error))
    };
    match result {
        Ok(()) => true,
        Err((call, error)) => {
            done.fail(&error, 404, call, path);
            false
        }
    }
}

/// Removes everything in a directory. The depth is bounded: the kernel takes no path over 4096 bytes.
fn empty(directory: &Path, done: &mut DavDone) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let result = if entry.file_type()?.is_dir() {
            if let Err(error) = empty(&path, done) {
                done.pass_over(&error, "opendir()", &path);
            }
            fs::remove_dir(&path).map_err(|error| ("rmdir()", error))
        } else {
            fs::remove_file(&path).map_err(|error| ("unlink()", error))
        };
        if let Err((call, error)) = result {
            done.pass_over(&error, call, &path);
        }
    }
    Ok(())
}

/// Does a COPY or a MOVE.
pub fn transfer(order: &Transfer) -> DavDone {
    let mut done = DavDone::new(204);
    let to_collection = order.target.ends_with(b"/");
    let target = PathBuf::from(std::ffi::OsString::from_vec(without_slash(&order.target).to_vec()));
    let existing = match fs::symlink_metadata(&target) {
        Ok(facts) => Some(facts),
        Err(error) if error.raw_os_error() == Some(errno::ENOENT) => None,
        Err(error) => {
            done.fail(&error, 404, "lstat()", &target);
            return done;
        }
    };
    if let Some(facts) = &existing {
        if facts.is_dir() && !to_collection {
            done.note(Level::Error, order.impossible());
            done.status = 409;
            return done;
        }
        if !order.overwrites {
            let error = io::Error::from_raw_os_error(EEXIST);
            done.note(Level::Error, format!("\"{}\" could not be created {}", target.display(), Os(&error)));
            done.status = 412;
            return done;
        }
    }
    let source = as_path(&order.source);
    let facts = match fs::symlink_metadata(source) {
        Ok(facts) => facts,
        Err(error) => {
            done.fail(&error, 404, "lstat()", source);
            return done;
        }
    };
    if !facts.is_dir() {
        transfer_file(order, source, &target, &facts, &mut done);
        return done;
    }
    if !order.source.ends_with(b"/") {
        done.note(Level::Error, format!("\"{}\" is collection", order.uri));
        done.status = 400;
        return done;
    }
    if let Some(existing) = existing
        && !delete(&target, existing.is_dir(), &mut done)
    {
        return done;
    }
    transfer_tree(order, as_path(without_slash(&order.source)), &target, &facts, &mut done);
    done
}

fn transfer_file(order: &Transfer, source: &Path, target: &Path, facts: &Metadata, done: &mut DavDone) {
    if !order.moves {
        if !copy(source, target, &Copied::of(facts), done) {
            done.status = 500;
        }
        return;
    }
    match rename(source, target, Some(order.access)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            if !copy(source, target, &Copied::of(facts), done) {
                done.status = 500;
            } else if let Err(error) = fs::remove_file(source) {
                done.fail(&error, 500, "unlink()", source);
                done.status = 500;
            }
        }
        Err(error) => {
            let (from, to) = (source.display(), target.display());
            done.note(Level::Crit, format!("rename() \"{from}\" to \"{to}\" failed {}", Os(&error)));
            done.status = 500;
        }
    }
}

fn transfer_tree(order: &Transfer, source: &Path, target: &Path, facts: &Metadata, done: &mut DavDone) {
    done.status = 201;
    if order.moves && fs::rename(source, target).is_ok() {
        return;
    }
    let made = DirBuilder::new().mode(facts.mode() & 0o777).create(target).and_then(|()| fs::symlink_metadata(target));
    let made = match made {
        Ok(made) => (made.dev(), made.ino()),
        Err(error) => return done.fail(&error, 404, "mkdir()", target),
    };
    if let Err(error) = copy_tree(source, target, made, done) {
        done.note(Level::Crit, format!("opendir() \"{}\" failed {}", source.display(), Os(&error)));
        done.status = 500;
        return;
    }
    if order.moves {
        delete(source, true, done);
    }
}

/// Copies everything in a directory into another one that exists. `made` is the new root: it may lie in the source
/// behind a link, and is not copied into itself. The depth is bounded: the kernel takes no path over 4096 bytes.
fn copy_tree(from: &Path, to: &Path, made: (u64, u64), done: &mut DavDone) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let facts = match fs::symlink_metadata(&source) {
            Ok(facts) => facts,
            Err(error) => {
                done.pass_over(&error, "lstat()", &source);
                continue;
            }
        };
        if facts.is_file() {
            copy(&source, &target, &Copied::of(&facts), done);
        } else if facts.is_dir() && (facts.dev(), facts.ino()) != made {
            let mode = directory_access(facts.mode() & 0o777);
            if let Err(error) = DirBuilder::new().mode(mode).create(&target) {
                done.pass_over(&error, "mkdir()", &target);
            }
            if let Err(error) = copy_tree(&source, &target, made, done) {
                done.pass_over(&error, "opendir()", &source);
            }
            let times = facts.modified().map(|modified| FileTimes::new().set_modified(modified));
            if let Err(error) = times.and_then(|times| File::open(&target)?.set_times(times)) {
                done.pass_over(&error, "utimes()", &target);
            }
        }
    }
    Ok(())
}

static NEXT_COPY: AtomicU64 = AtomicU64::new(1);

/// Copies a regular file: writes it beside the target, then renames it. `false` after noting the failure.
fn copy(from: &Path, to: &Path, copied: &Copied, done: &mut DavDone) -> bool {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{:010}", NEXT_COPY.fetch_add(1, Ordering::Relaxed)));
    let beside = PathBuf::from(name);
    let written = write_copy(from, &beside, copied);
    let renamed = written.and_then(|()| fs::rename(&beside, to).map_err(|error| ("rename()", to, error)));
    match renamed {
        Ok(()) => true,
        Err((call, path, error)) => {
            done.note(Level::Crit, format!("{call} \"{}\" failed {}", path.display(), Os(&error)));
            // It may not have been made.
            let _ = fs::remove_file(&beside);
            false
        }
    }
}

fn write_copy<'p>(from: &'p Path, to: &'p Path, copied: &Copied) -> Result<(), (&'static str, &'p Path, io::Error)> {
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(from);
    let mut source = opened.map_err(|error| ("open()", from, error))?;
    if !source.metadata().is_ok_and(|facts| facts.is_file()) {
        return Err(("open()", from, io::ErrorKind::InvalidInput.into()));
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(copied.mode).open(to);
    let mut target = made.map_err(|error| ("open()", to, error))?;
    io::copy(&mut source, &mut target).map_err(|error| ("write()", to, error))?;
    target.set_permissions(Permissions::from_mode(copied.mode)).map_err(|error| ("chmod()", to, error))?;
    if let Some(modified) = copied.modified {
        let times = FileTimes::new().set_modified(modified);
        target.set_times(times).map_err(|error| ("futimes()", to, error))?;
    }
    Ok(())
}

/// `open(2)`'s `O_NONBLOCK` on Linux: opening a FIFO without a writer must not block the thread.
const O_NONBLOCK: i32 = 0o4000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn order(source: &str, target: &str) -> Transfer {
        Transfer {
            moves: false,
            source: source.into(),
            target: target.into(),
            overwrites: true,
            access: 0o600,
            uri: "/u".to_owned(),
            destination: "/d".to_owned(),
        }
    }

    #[test]
    fn a_collection_does_not_go_into_itself() {
        for (source, target, conflicts) in [
            ("/a/b/", "/a/b/", true),
            ("/a/b", "/a/b", true),
            ("/a/b/", "/a/b/c/", true),
            ("/a/b/c/", "/a/b/", true),
            ("/a/b/", "/a/bc/", false),
            ("/a/b", "/a/b/c", false),
        ] {
            assert_eq!(order(source, target).conflict().is_some(), conflicts, "{source} {target}");
        }
    }

    #[test]
    fn a_tree_is_copied_without_links_and_never_into_itself() {
        let room = std::env::temp_dir().join(format!("weir-dav-{}", std::process::id()));
        fs::create_dir_all(room.join("a/sub")).unwrap();
        fs::write(room.join("a/sub/file"), "text").unwrap();
        fs::write(room.join("outside"), "text").unwrap();
        symlink("../outside", room.join("a/link")).unwrap();
        symlink("a", room.join("way")).unwrap();
        let path = |name: &str| format!("{}/{name}", room.display());
        // The target lies in the source, behind a link.
        let done = transfer(&order(&path("a/"), &path("way/copy/")));
        assert_eq!((done.status, done.lines.len()), (201, 0));
        assert_eq!(fs::read_to_string(room.join("a/copy/sub/file")).unwrap(), "text");
        assert!(!room.join("a/copy/link").exists() && !room.join("a/copy/copy").exists());
        let mut done = DavDone::new(204);
        assert!(delete(&room.join("a"), true, &mut done));
        assert!(room.join("outside").exists() && !room.join("a").exists());
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn the_lines_of_one_request_are_bounded() {
        let mut done = DavDone::new(204);
        for _ in 0..1000 {
            done.pass_over(&io::Error::from_raw_os_error(errno::EACCES), "unlink()", Path::new("/f"));
        }
        assert_eq!((done.status, done.lines.len()), (204, LINES_MAX));
    }
}
