//! The guard of reading: files that strangers wrote, or that a stranger names.
//!
//! It reads regular files whose path without links lies in the folders that were named, within bounds. Links that lead out,
//! pipes, devices and files of the kernel are refused by name, before they are opened. As an implementation of `conf`'s
//! `Files`, it bounds the reading of a whole configuration.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use weir_conf::{Files, glob};

/// Directories of the kernel: a file there may have no end.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The number of the error `Is a directory`.
const IS_A_DIRECTORY: i32 = 21;

/// The bounds of one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardBounds {
    /// Most bytes of a file.
    pub file_bytes: u64,
    /// Most bytes of all files.
    pub all_bytes: u64,
    /// Most files, and most files that a pattern may find.
    pub files: usize,
    /// Most names in a directory.
    pub names: usize,
    /// Most directories that patterns may list.
    pub directories: usize,
}

/// A folder that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// As a person or a program names it.
    pub path: PathBuf,
    /// Without links.
    pub real: PathBuf,
}

impl Folder {
    /// A folder of the disk; `None` if there is none.
    pub fn of(path: &Path) -> Option<Folder> {
        let real = fs::canonicalize(path).ok()?;
        real.is_dir().then(|| Folder { path: path.to_path_buf(), real })
    }

    /// Whether a path, with or without links, is inside. It has no dots.
    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.path) || path.starts_with(&self.real)
    }
}

/// The reason why the guard does not read something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRefusal {
    /// It lies outside of the folders, or a link leads out of them.
    Outside,
    /// A file of the kernel.
    OfKernel,
    /// A pipe, a device or a socket.
    NotRegular,
    /// More bytes than a file may have.
    TooLarge,
    /// The configuration has as many files as it may have.
    TooManyFiles,
    /// The files of the configuration have as many bytes as they may have.
    TooManyBytes,
    /// Too many names in a directory, or too many directories.
    TooManyNames,
}

/// Why something was not read.
#[derive(Debug)]
pub enum GuardError {
    /// The guard refuses it.
    Refused(FileRefusal),
    /// The system's error.
    System(io::Error),
}

impl From<FileRefusal> for GuardError {
    fn from(refusal: FileRefusal) -> GuardError {
        GuardError::Refused(refusal)
    }
}

impl From<io::Error> for GuardError {
    fn from(error: io::Error) -> GuardError {
        GuardError::System(error)
    }
}

/// Folders that may be read, and how much of them was read.
#[derive(Clone, Debug)]
pub struct FileGuard {
    folders: Vec<Folder>,
    bounds: GuardBounds,
    files: Cell<usize>,
    bytes: Cell<u64>,
    directories: Cell<usize>,
}

impl FileGuard {
    /// A guard over these folders that has read nothing yet.
    pub fn new(folders: Vec<Folder>, bounds: GuardBounds) -> FileGuard {
        FileGuard { folders, bounds, files: Cell::new(0), bytes: Cell::new(0), directories: Cell::new(0) }
    }

    /// The folders.
    pub fn folders(&self) -> &[Folder] {
        &self.folders
    }

    /// The bounds.
    pub fn bounds(&self) -> GuardBounds {
        self.bounds
    }

    /// Whether a path lies in the folders, by its text alone.
    pub fn names_inside(&self, path: &Path) -> bool {
        let path = without_dots(path);
        self.folders.iter().any(|folder| folder.holds(&path))
    }

    /// The path of a file or a directory without links.
    ///
    /// # Errors
    /// There is nothing, or it is not in the folders, or it belongs to the kernel.
    pub fn real(&self, path: &Path) -> Result<PathBuf, GuardError> {
        let real = fs::canonicalize(path)?;
        if !self.folders.iter().any(|folder| real.starts_with(&folder.real)) {
            return Err(FileRefusal::Outside.into());
        }
        if OF_KERNEL.iter().any(|directory| real.starts_with(directory)) {
            return Err(FileRefusal::OfKernel.into());
        }
        Ok(real)
    }

    /// Whether a path leads to something in the folders.
    pub fn has(&self, path: &Path) -> bool {
        self.real(path).is_ok()
    }

    /// Counts a file of the configuration with this number of bytes.
    ///
    /// # Errors
    /// The configuration would have too many files or bytes.
    pub fn count(&self, bytes: u64) -> Result<(), FileRefusal> {
        if self.files.get() >= self.bounds.files {
            return Err(FileRefusal::TooManyFiles);
        }
        let all = self.bytes.get().saturating_add(bytes);
        if all > self.bounds.all_bytes {
            return Err(FileRefusal::TooManyBytes);
        }
        self.files.set(self.files.get() + 1);
        self.bytes.set(all);
        Ok(())
    }

    /// The bytes of a file of the configuration, by its path from [`FileGuard::real`].
    ///
    /// # Errors
    /// It is no regular file, it is too large, or it cannot be read.
    pub fn read_real(&self, real: &Path) -> Result<Vec<u8>, GuardError> {
        // The facts first: the opening of a pipe would wait for a writer.
        let facts = fs::metadata(real)?;
        if facts.is_dir() {
            return Err(io::Error::from_raw_os_error(IS_A_DIRECTORY).into());
        }
        if !facts.is_file() {
            return Err(FileRefusal::NotRegular.into());
        }
        if facts.len() > self.bounds.file_bytes {
            return Err(FileRefusal::TooLarge.into());
        }
        self.count(facts.len())?;
        let mut bytes = Vec::new();
        // The file may have grown since.
        File::open(real)?.take(self.bounds.file_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.bounds.file_bytes {
            return Err(FileRefusal::TooLarge.into());
        }
        Ok(bytes)
    }

    /// The names in a directory, in no order. Names that are no UTF-8 are left out.
    ///
    /// # Errors
    /// It is no directory in the folders, or there are too many names or directories.
    pub fn list(&self, directory: &Path) -> Result<Vec<String>, GuardError> {
        if self.directories.get() >= self.bounds.directories {
            return Err(FileRefusal::TooManyNames.into());
        }
        self.directories.set(self.directories.get() + 1);
        let mut names = Vec::new();
        for (number, entry) in fs::read_dir(self.real(directory)?)?.flatten().enumerate() {
            if number >= self.bounds.names {
                return Err(FileRefusal::TooManyNames.into());
            }
            names.extend(entry.file_name().into_string());
        }
        Ok(names)
    }

    /// The paths that match a pattern, sorted. `list` gives the names in a directory, which ends in `/`.
    ///
    /// # Errors
    /// Too many names, directories or paths.
    pub fn expand(
        &self,
        pattern: &str,
        list: &dyn Fn(&str) -> Result<Vec<String>, GuardError>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, FileRefusal> {
        let is_over = Cell::new(false);
        let list = |directory: &str| -> io::Result<Vec<String>> {
            // A directory that cannot be listed has no names.
            let found = list(directory);
            is_over.set(is_over.get() || matches!(found, Err(GuardError::Refused(FileRefusal::TooManyNames))));
            Ok(found.unwrap_or_default())
        };
        let found = glob::expand(pattern, &list, exists);
        if is_over.get() || found.len() > self.bounds.files {
            return Err(FileRefusal::TooManyNames);
        }
        Ok(found)
    }

    /// A refusal as an error of the system, for a message of nginx: `open() "PATH" failed (REASON)`.
    fn as_error(&self, error: GuardError) -> io::Error {
        let GuardBounds { file_bytes, all_bytes, files, names, directories } = self.bounds;
        let (kind, why) = match error {
            GuardError::System(error) => return error,
            GuardError::Refused(refusal) => match refusal {
                FileRefusal::Outside => {
                    (io::ErrorKind::PermissionDenied, "outside of the named directories".to_owned())
                }
                FileRefusal::OfKernel => (io::ErrorKind::PermissionDenied, "a file of the kernel".to_owned()),
                FileRefusal::NotRegular => (io::ErrorKind::PermissionDenied, "not a regular file".to_owned()),
                FileRefusal::TooLarge => (io::ErrorKind::FileTooLarge, format!("more than {file_bytes} bytes")),
                FileRefusal::TooManyFiles => (io::ErrorKind::FileTooLarge, format!("more than {files} files")),
                FileRefusal::TooManyBytes => {
                    (io::ErrorKind::FileTooLarge, format!("more than {all_bytes} bytes in all files"))
                }
                FileRefusal::TooManyNames => (
                    io::ErrorKind::FileTooLarge,
                    format!("more than {files} files, {names} names in a directory or {directories} directories"),
                ),
            },
        };
        io::Error::new(kind, why)
    }
}

impl Files for FileGuard {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let real = self.real(Path::new(path)).map_err(|error| self.as_error(error))?;
        self.read_real(&real).map_err(|error| self.as_error(error))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let above = above_wildcards(pattern);
        let above = Path::new(&above);
        let is_outside = !self.names_inside(above)
            || matches!(self.real(above), Err(GuardError::Refused(FileRefusal::Outside | FileRefusal::OfKernel)));
        if is_outside {
            return Err(self.as_error(FileRefusal::Outside.into()));
        }
        let list = |directory: &str| self.list(Path::new(directory));
        let found = self.expand(pattern, &list, &|path| self.has(Path::new(path)));
        found.map_err(|refusal| self.as_error(refusal.into()))
    }
}

/// The directory above the first component of a pattern that has a wildcard.
pub fn above_wildcards(pattern: &str) -> String {
    pattern.split('/').take_while(|component| !glob::is_pattern(component)).collect::<Vec<_>>().join("/")
}

/// A path without `.` and `..`, by its text alone.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(component),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    const BOUNDS: GuardBounds = GuardBounds { file_bytes: 100, all_bytes: 150, files: 4, names: 5, directories: 3 };

    /// A directory with `in` and `out`; it goes with the test.
    struct Room(PathBuf);

    impl Drop for Room {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    impl Room {
        fn new(name: &str) -> Room {
            let room = std::env::temp_dir().join(format!("weir-guard-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&room);
            fs::create_dir_all(room.join("in/conf.d")).unwrap();
            fs::create_dir_all(room.join("out")).unwrap();
            let room = Room(room.canonicalize().unwrap());
            room.write("in/nginx.conf", "events { }");
            room.write("out/secret.conf", "x");
            room
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.0.join(name), text).unwrap();
        }

        fn path(&self, name: &str) -> String {
            self.0.join(name).display().to_string()
        }

        fn guard(&self) -> FileGuard {
            FileGuard::new(vec![Folder::of(&self.0.join("in")).unwrap()], BOUNDS)
        }
    }

    fn refused(result: io::Result<impl std::fmt::Debug>) -> (io::ErrorKind, String) {
        let error = result.unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn only_regular_files_in_the_folders_are_read() {
        let room = Room::new("files");
        let link = |to: &str, name: &str| symlink(to, room.0.join(name)).unwrap();
        link(&room.path("out/secret.conf"), "in/link.conf");
        link("/dev/zero", "in/zero.conf");
        link("nginx.conf", "in/good.conf");
        link("loop.conf", "in/loop.conf");
        let pipe = std::process::Command::new("mkfifo").arg(room.path("in/pipe")).status().unwrap();
        assert!(pipe.success());
        let guard = room.guard();
        assert_eq!(guard.read(&room.path("in/nginx.conf")).unwrap(), b"events { }");
        assert_eq!(guard.read(&room.path("in/good.conf")).unwrap(), b"events { }");
        let denied = |why: &str| (io::ErrorKind::PermissionDenied, why.to_owned());
        for name in ["out/secret.conf", "in/link.conf", "in/zero.conf", "in/../out/secret.conf"] {
            assert_eq!(refused(guard.read(&room.path(name))), denied("outside of the named directories"), "{name}");
        }
        assert_eq!(refused(guard.read(&room.path("in/pipe"))), denied("not a regular file"));
        assert_eq!(guard.read(&room.path("in/conf.d")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(guard.read(&room.path("in/none.conf")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(guard.read(&room.path("in/loop.conf")).is_err());
        let whole = FileGuard::new(vec![Folder::of(Path::new("/")).unwrap()], BOUNDS);
        assert_eq!(refused(whole.read("/proc/self/status")), denied("a file of the kernel"));
    }

    #[test]
    fn a_configuration_has_bounds() {
        let room = Room::new("bounds");
        room.write("in/large.conf", &"#".repeat(101));
        room.write("in/half.conf", &"#".repeat(80));
        let guard = room.guard();
        let too_large = |why: &str| (io::ErrorKind::FileTooLarge, why.to_owned());
        assert_eq!(refused(guard.read(&room.path("in/large.conf"))), too_large("more than 100 bytes"));
        guard.read(&room.path("in/half.conf")).unwrap();
        assert_eq!(refused(guard.read(&room.path("in/half.conf"))), too_large("more than 150 bytes in all files"),);
        for _ in 0..3 {
            guard.read(&room.path("in/nginx.conf")).unwrap();
        }
        assert_eq!(refused(guard.read(&room.path("in/nginx.conf"))), too_large("more than 4 files"));
    }

    #[test]
    fn patterns_find_what_may_be_read() {
        let room = Room::new("patterns");
        for name in ["b", "a"] {
            room.write(&format!("in/conf.d/{name}.conf"), "");
        }
        symlink(room.path("out"), room.0.join("in/away")).unwrap();
        let guard = room.guard();
        let expected = [room.path("in/conf.d/a.conf"), room.path("in/conf.d/b.conf")];
        assert_eq!(guard.glob(&room.path("in/conf.d/*.conf")).unwrap(), expected);
        assert_eq!(guard.glob(&room.path("in/none/*")).unwrap(), [""; 0]);
        for pattern in ["out/*.conf", "in/away/*.conf", "in/../out/*"] {
            let (kind, _) = refused(guard.glob(&room.path(pattern)));
            assert_eq!(kind, io::ErrorKind::PermissionDenied, "{pattern}");
        }
        for name in 0..4 {
            room.write(&format!("in/conf.d/{name}.conf"), "");
        }
        let (kind, why) = refused(room.guard().glob(&room.path("in/conf.d/*")));
        assert!(kind == io::ErrorKind::FileTooLarge && why.contains("5 names in a directory"), "{why}");
        let guard = room.guard();
        let none = room.path("in/none*/*");
        assert!((0..3).all(|_| guard.glob(&none).is_ok()));
        assert!(guard.glob(&none).is_err(), "the bound of directories");
    }

    #[test]
    fn names_lose_their_dots() {
        for (path, plain) in [("/a/../b/./c", "/b/c"), ("/../a", "/a"), ("a/..", "")] {
            assert_eq!(without_dots(Path::new(path)), Path::new(plain));
        }
        assert_eq!((above_wildcards("/a/b*/c"), above_wildcards("/a/b")), ("/a".to_owned(), "/a/b".to_owned()));
    }
}
