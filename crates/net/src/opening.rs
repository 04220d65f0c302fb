//! Opens files and directories for reading. A server may open only what its first configuration names ([`landlock`]); for
//! the rest it asks its keeper.
//!
//! [`landlock`]: crate::process::restrict_files

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, openat};
use rustix::io::Errno;

use crate::path::{self, Links, as_path};
use crate::sys;

/// The links on the way to a file that are refused, and the first bytes of the path in which none is; `None` to follow all
/// links.
pub type Guard = Option<(Links, usize)>;

/// Opens a file in another process.
pub type FileOpener = fn(&[u8], Guard) -> io::Result<File>;

static ELSEWHERE: OnceLock<FileOpener> = OnceLock::new();

/// From now on, `open` is asked for files that this process may not open. The first call counts.
pub fn set_elsewhere(open: FileOpener) {
    let _ = ELSEWHERE.set(open);
}

/// Opens a file or a directory for reading. A FIFO without a writer does not block.
///
/// # Errors
/// Those of `open(2)`, and those of [`path::open`] with a guard.
pub fn open(path: &[u8], guard: Guard) -> io::Result<File> {
    match (open_here(path, guard), ELSEWHERE.get()) {
        (Err(error), Some(open)) if error.kind() == io::ErrorKind::PermissionDenied => open(path, guard),
        (opened, _) => opened,
    }
}

/// The bytes of a file, but not more than `max`. A FIFO is read until its last writer has closed it.
///
/// # Errors
/// As [`open`]; later those of `read(2)`.
pub fn read(path: &[u8], max: u64) -> io::Result<Vec<u8>> {
    let file = match (File::open(as_path(path)), ELSEWHERE.get()) {
        (Err(error), Some(open)) if error.kind() == io::ErrorKind::PermissionDenied => open(path, None),
        (opened, _) => opened,
    };
    let mut bytes = Vec::new();
    file?.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts `count` bytes from a place of a file into the place of the bytes of `out`.
///
/// # Errors
/// Those of `pread(2)`; `UnexpectedEof` if the file ends before.
pub fn read_at(file: &File, at: u64, count: usize, out: &mut Vec<u8>) -> io::Result<()> {
    out.clear();
    out.reserve(count);
    while out.len() < count {
        match sys::pread_spare(file.as_fd(), out, count - out.len(), at + out.len() as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// As [`open`], without asking another process.
///
/// # Errors
/// As [`open`].
pub fn open_here(path: &[u8], guard: Guard) -> io::Result<File> {
    match guard {
        Some((links, trusted)) => path::open(path, trusted, links),
        None => {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            Ok(openat(CWD, path, flags, Mode::empty())?.into())
        }
    }
}

/// As [`open_here`], but only a file or a directory of a disk: one of `/proc` shows the process that opens it.
///
/// # Errors
/// As [`open`]; `EACCES` for anything else.
pub fn open_disk(path: &[u8], guard: Guard) -> io::Result<File> {
    let file = open_here(path, guard)?;
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    let is_plain = matches!(kind, FileType::RegularFile | FileType::Directory);
    if is_plain && fstatfs(&file)?.f_type != PROC_SUPER_MAGIC { Ok(file) } else { Err(Errno::ACCESS.into()) }
}

/// The names in a directory, without `.` and `..`.
///
/// # Errors
/// As [`open`]; later those of `getdents64(2)`.
pub fn names(directory: &[u8]) -> io::Result<impl Iterator<Item = io::Result<Vec<u8>>>> {
    let opened = open(directory, None)?;
    if !opened.metadata()?.is_dir() {
        return Err(Errno::NOTDIR.into());
    }
    let entries = Dir::new(opened)?;
    Ok(entries.filter_map(|entry| match entry {
        Ok(entry) => match entry.file_name().to_bytes() {
            b"." | b".." => None,
            name => Some(Ok(name.to_vec())),
        },
        Err(error) => Some(Err(error.into())),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn files_are_opened_and_directories_are_listed() {
        let room = std::env::temp_dir().join(format!("weir-opening-{}", std::process::id()));
        std::fs::create_dir_all(room.join("a")).unwrap();
        std::fs::write(room.join("b"), "text").unwrap();
        let path = |name: &str| room.join(name).as_os_str().as_bytes().to_vec();
        assert!(open(&path("b"), None).unwrap().metadata().unwrap().is_file());
        assert!(open(&path("a"), Some((Links::Refused, 0))).unwrap().metadata().unwrap().is_dir());
        let mut found: Vec<_> = names(&path(".")).unwrap().map(Result::unwrap).collect();
        found.sort_unstable();
        assert_eq!(found, [b"a".to_vec(), b"b".to_vec()]);
        assert_eq!(names(&path("b")).err().map(|error| error.kind()), Some(io::ErrorKind::NotADirectory));
        let mut bytes = b"before".to_vec();
        let text = open(&path("b"), None).unwrap();
        assert_eq!(read_at(&text, 1, 3, &mut bytes).map_err(|error| error.kind()), Ok(()));
        assert_eq!(bytes, b"ext");
        assert_eq!(read_at(&text, 2, 3, &mut bytes).map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
        assert!(open_disk(&path("b"), None).is_ok());
        for strange in ["/proc/self/mem", "/proc/self/fd", "/dev/null"] {
            assert_eq!(open_disk(strange.as_bytes(), None).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        rustix::fs::mknodat(CWD, room.join("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let fifo = room.join("fifo");
        let writer = std::thread::spawn(move || {
            let mut fifo = File::options().write(true).open(fifo).unwrap();
            for word in ["slow ", "writer"] {
                std::thread::sleep(std::time::Duration::from_millis(30));
                std::io::Write::write_all(&mut fifo, word.as_bytes()).unwrap();
            }
        });
        assert_eq!(read(&path("fifo"), 100).unwrap(), b"slow writer");
        writer.join().unwrap();
        assert_eq!(read(&path("b"), 2).unwrap(), b"te");
        assert_eq!(open(&path("c"), None).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(room).unwrap();
    }
}
