//! Makes paths of bytes, and opens a file without following links that other users may have made (nginx:
//! `disable_symlinks`).
//!
//! Each component is opened from the one before it, so weir also notices a link that another process puts in place
//! meanwhile. Two calls a component, or four where owners are compared.

use crate::counts::{Kind, count};
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, Uid, fchown, fstat, mkdirat, openat, stat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes as a path.
pub fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The links on the way to a file that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// None.
    Refused,
    /// Links that have the same owner as their target.
    OfOwner,
}

/// Opens a file for reading. Links in the first `trusted` bytes of the path, which end before a slash, are always
/// followed.
///
/// The flags are nginx's, and so are the errors: `ELOOP` for a link that is refused, `ENOTDIR` for one among the
/// directories. A FIFO without a writer does not block.
pub fn open(path: &[u8], trusted: usize, links: Links) -> io::Result<File> {
    Ok(File::from(walk(path, trusted, links, OFlags::RDONLY, Mode::empty())?))
}

/// Opens a file for appending, and creates it readable for all. As in nginx, owners are not compared for a file that
/// may be created: a link as the last component is refused.
pub fn append(path: &[u8], trusted: usize, links: Links) -> io::Result<File> {
    // A worker waits for no reader of a pipe.
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK;
    Ok(File::from(walk(path, trusted, links, flags, Mode::from_raw_mode(0o644))?))
}

/// Opens a file for reading and writing, and creates it with `mode`. A link as the last component is refused, and a link before it
/// whose target has another owner.
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE;
    Ok(File::from(walk(path.as_os_str().as_bytes(), 0, Links::OfOwner, flags, Mode::from_raw_mode(mode))?))
}

/// Makes a user the owner of a file or a directory. The path may be below directories of this user, who could have put a link to
/// somebody else's file there: such a link is `ELOOP`, and a second name of a file is `EMLINK`.
pub fn give(path: &Path, uid: u32) -> io::Result<()> {
    if stat(path)?.st_uid == uid {
        return Ok(());
    }
    let file = walk(path.as_os_str().as_bytes(), 0, Links::OfOwner, OFlags::RDONLY, Mode::empty())?;
    let facts = fstat(&file)?;
    if FileType::from_raw_mode(facts.st_mode) != FileType::Directory && facts.st_nlink > 1 {
        return Err(Errno::MLINK.into());
    }
    Ok(fchown(&file, Some(Uid::from_raw(uid)), None)?)
}

/// Makes the missing directories above a file. Each is made in the one before it, so a long path costs no more than its parts.
/// Links are followed.
pub fn make_way(path: &Path, mode: u32) -> io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    let above = bytes.iter().rposition(|byte| *byte == b'/').and_then(|slash| bytes.get(..slash)).unwrap_or_default();
    let begin = if bytes.starts_with(b"/") { "/" } else { "." };
    let mut directory = openat(CWD, begin, SEARCH, Mode::empty())?;
    for name in above.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        count(Kind::Mkdir);
        match mkdirat(&directory, name, Mode::from_raw_mode(mode)) {
            // The rights of a directory above do not matter if it is there.
            Ok(()) | Err(Errno::EXIST | Errno::ACCESS | Errno::ROFS) => {}
            Err(error) => return Err(error.into()),
        }
        directory = openat(&directory, name, SEARCH, Mode::empty())?;
    }
    Ok(())
}

/// Bytes that a user may still write to the file system a path is on (nginx: `min_free`).
pub fn free_bytes(path: &std::path::Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Whether this user can make a directory and those above it, or whether it is there. Makes nothing.
///
/// # Errors
/// The error of `mkdir(2)`: a part of the path is no directory, or this user may not write in the last one that exists.
pub fn try_directory(path: &Path) -> io::Result<()> {
    let (found, above) = path
        .ancestors()
        .find_map(|above| std::fs::metadata(above).ok().map(|found| (found, above)))
        .ok_or(io::ErrorKind::NotFound)?;
    if !found.is_dir() {
        return Err(if above == path { Errno::EXIST.into() } else { Errno::NOTDIR.into() });
    }
    if above == path {
        return Ok(());
    }
    Ok(rustix::fs::accessat(CWD, above, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// Whether this user can make a file of this name, which is not there. Makes nothing.
///
/// # Errors
/// The error of `open(2)` with `O_CREAT`: the directory is missing or no directory, or this user may not write in it.
pub fn try_new_file(path: &Path) -> io::Result<()> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !std::fs::metadata(above)?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    Ok(rustix::fs::accessat(CWD, above, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)?)
}

/// `O_PATH`: weir only passes through the directory, and needs no permission to read it.
const SEARCH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn walk(path: &[u8], trusted: usize, links: Links, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    if path.is_empty() {
        return Err(Errno::NOENT.into());
    }
    let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let (begin, rest) = path.split_at_checked(trusted).unwrap_or((path, b""));
    let mut directory = match (begin, rest.first()) {
        (b"", Some(b'/')) => Some(openat(CWD, "/", SEARCH, Mode::empty())?),
        (b"", _) => None,
        (begin, _) => Some(openat(CWD, begin, SEARCH, Mode::empty())?),
    };
    let mut names = rest.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let at = directory.as_ref().map_or(CWD, AsFd::as_fd);
        match (name, names.peek().is_none()) {
            // A slash at the end: the directory itself.
            (b"", true) => return Ok(openat(at, ".", flags, mode)?),
            (b"", false) => {}
            (name, true) if flags.contains(OFlags::CREATE) => {
                return Ok(openat(at, name, flags | OFlags::NOFOLLOW, mode)?);
            }
            (name, true) => return step(at, name, links, flags),
            (name, false) => directory = Some(step(at, name, links, SEARCH)?),
        }
    }
    Err(Errno::NOENT.into())
}

fn step(at: BorrowedFd<'_>, name: &[u8], links: Links, flags: OFlags) -> io::Result<OwnedFd> {
    if links == Links::Refused {
        return Ok(openat(at, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
    }
    let fd = openat(at, name, flags, Mode::empty())?;
    // Between the two calls the name may have been replaced, so owners are compared even if it is not a link any more.
    let (named, opened) = (statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(&fd)?);
    if named.st_uid != opened.st_uid {
        return Err(Errno::LOOP.into());
    }
    Ok(fd)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::{MetadataExt, lchown, symlink};

    /// A directory with `dir/file`, links to both, and one without a target.
    fn room(name: &str) -> String {
        let room = std::env::temp_dir().join(format!("weir-path-{}-{name}", std::process::id()));
        std::fs::create_dir_all(room.join("dir")).unwrap();
        std::fs::write(room.join("dir/file"), "text").unwrap();
        symlink("file", room.join("dir/link")).unwrap();
        symlink("dir", room.join("way")).unwrap();
        symlink("nothing", room.join("lost")).unwrap();
        // If the temporary directory itself is behind a link, the test begins behind that link.
        std::fs::canonicalize(room).unwrap().to_str().unwrap().to_owned()
    }

    fn outcome(path: &str, trusted: usize, links: Links) -> Result<String, i32> {
        let mut file = open(path.as_bytes(), trusted, links).map_err(|error| error.raw_os_error().unwrap_or(0))?;
        let mut text = String::new();
        match file.metadata().unwrap().is_dir() {
            true => text.push('/'),
            false => drop(file.read_to_string(&mut text).unwrap()),
        }
        Ok(text)
    }

    /// From the root, the last directories would have longer names than the kernel reads.
    #[test]
    fn each_directory_of_a_long_way_is_made_in_the_one_before_it() {
        let room = room("way");
        let way = format!("{room}/{}file", "part/".repeat(1000));
        make_way(Path::new(&way), 0o755).unwrap();
        let mut directory = openat(CWD, room.as_str(), SEARCH, Mode::empty()).unwrap();
        for _ in 0..1000 {
            directory = openat(&directory, "part", SEARCH, Mode::empty()).unwrap();
        }
        assert_eq!(
            make_way(&Path::new(&room).join("dir/file/part/file"), 0o755).map_err(|error| error.kind()),
            Err(io::ErrorKind::NotADirectory)
        );
        std::fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn links_are_refused_wherever_they_stand_but_in_what_is_trusted() {
        let room = room("refused");
        let file = Ok("text".to_owned());
        for (path, trusted, expected) in [
            ("dir/file", 0, file.clone()),
            (".//dir/../dir///file", 0, file.clone()),
            ("dir/", 0, Ok("/".to_owned())),
            ("dir/link", 0, Err(Errno::LOOP.raw_os_error())),
            ("way/file", 0, Err(Errno::NOTDIR.raw_os_error())),
            ("way/file", "way".len(), file.clone()),
            ("way/link", "way".len(), Err(Errno::LOOP.raw_os_error())),
            ("lost", 0, Err(Errno::LOOP.raw_os_error())),
            ("dir/none", 0, Err(Errno::NOENT.raw_os_error())),
            ("none/file", "none".len(), Err(Errno::NOENT.raw_os_error())),
            ("dir/file/", 0, Err(Errno::NOTDIR.raw_os_error())),
        ] {
            let (path, trusted) = (format!("{room}/{path}"), if trusted > 0 { room.len() + 1 + trusted } else { 0 });
            assert_eq!(outcome(&path, trusted, Links::Refused), expected, "{path}");
        }
        assert_eq!(outcome("", 0, Links::Refused), Err(Errno::NOENT.raw_os_error()));
        std::fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn links_of_the_owner_are_followed() {
        let room = room("owner");
        let way = format!("{room}/way/link");
        assert_eq!(outcome(&way, 0, Links::OfOwner), Ok("text".to_owned()));
        assert_eq!(outcome(&format!("{room}/lost"), 0, Links::OfOwner), Err(Errno::NOENT.raw_os_error()));
        // Only root can change the owner of a link.
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            lchown(format!("{room}/way"), Some(65534), None).unwrap();
            assert_eq!(outcome(&way, 0, Links::OfOwner), Err(Errno::LOOP.raw_os_error()));
            assert_eq!(outcome(&way, room.len() + 4, Links::OfOwner), Ok("text".to_owned()));
        }
        std::fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn free_room_is_told_where_there_is_a_path() {
        assert!(free_bytes(&std::env::temp_dir()).is_ok());
        assert!(free_bytes(std::path::Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn what_is_appended_to_is_made_but_never_through_a_link() {
        let room = room("append");
        for links in [Links::Refused, Links::OfOwner] {
            append(format!("{room}/dir/log").as_bytes(), 0, links).unwrap().write_all(b"line\n").unwrap();
            let error = append(format!("{room}/dir/link").as_bytes(), 0, links).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        }
        assert_eq!(std::fs::read(format!("{room}/dir/log")).unwrap(), b"line\nline\n");
        std::fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn a_directory_that_can_be_made_is_not_made() {
        let room = room("tried");
        let tried = |path: &str| try_directory(&Path::new(&room).join(path)).map_err(|error| error.raw_os_error());
        assert_eq!(tried("dir"), Ok(()));
        assert_eq!(tried("dir/a/b"), Ok(()));
        assert!(!Path::new(&room).join("dir/a").exists());
        assert_eq!(tried("dir/file"), Err(Some(Errno::EXIST.raw_os_error())));
        assert_eq!(tried("dir/file/a/b"), Err(Some(Errno::NOTDIR.raw_os_error())));
        std::fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn a_path_is_given_only_where_no_other_user_leads_it_elsewhere() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        const USER: u32 = 65_534;
        let room = std::env::temp_dir().join(format!("weir-give-{}", std::process::id()));
        let (own, foreign) = (room.join("own"), room.join("foreign"));
        std::fs::create_dir_all(own.join("deep")).unwrap();
        std::fs::create_dir_all(foreign.join("deep")).unwrap();
        std::fs::write(foreign.join("file"), "x").unwrap();
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        give(&own, USER).unwrap();
        give(&own.join("deep"), USER).unwrap();
        assert_eq!((owner(&own), owner(&own.join("deep"))), (USER, USER));
        // The user replaces a directory by a link, as the last component and before it.
        symlink(&foreign, own.join("link")).unwrap();
        lchown(own.join("link"), Some(USER), None).unwrap();
        for path in [own.join("link"), own.join("link/deep"), own.join("link/file")] {
            assert_eq!(give(&path, USER).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()), "{path:?}");
            assert_eq!(owner(&path), 0, "{path:?}");
        }
        assert!(create(&own.join("link/new"), 0o600).is_err() && !foreign.join("new").exists());
        std::fs::hard_link(foreign.join("file"), own.join("second")).unwrap();
        assert_eq!(give(&own.join("second"), USER).unwrap_err().raw_os_error(), Some(Errno::MLINK.raw_os_error()));
        // A link of root's to a directory of root's.
        symlink(&foreign, room.join("way")).unwrap();
        give(&room.join("way/deep"), USER).unwrap();
        assert_eq!(owner(&foreign.join("deep")), USER);
        std::fs::remove_dir_all(room).unwrap();
    }
}
