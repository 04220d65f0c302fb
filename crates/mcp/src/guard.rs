//! The files that a tool may read: regular files below the named directories, within bounds.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use weir_conf::{Files, glob};
use weir_words::{Said, say};

use crate::texts;

/// The largest file of a configuration, in bytes.
pub const CONF_BYTES_MAX: u64 = 8 << 20;
/// Most bytes of all files of one configuration.
pub const CONF_TOTAL_MAX: u64 = 64 << 20;
/// Most files of one configuration.
pub const CONF_FILES_MAX: u64 = 2_000;
/// Most names in one directory that a pattern is compared with.
const NAMES_MAX: usize = 20_000;
/// Most names that a pattern may give.
const FOUND_MAX: usize = 2_000;

/// The named directories.
#[derive(Clone, Debug)]
pub struct FileGuard {
    /// Their canonical paths.
    dirs: Vec<PathBuf>,
    /// Files of the configuration so far, and their bytes.
    read: Cell<(u64, u64)>,
}

impl FileGuard {
    /// A guard over directories, whose paths are canonical. A relative path of an argument begins at the first of them.
    pub fn new(dirs: Vec<PathBuf>) -> FileGuard {
        FileGuard { dirs, read: Cell::default() }
    }

    /// The full path of a regular file that an argument names.
    ///
    /// # Errors
    /// There is no such file, it is not a regular file, or it lies outside of the directories. The sentence names the remedy.
    pub fn file(&self, named: &str) -> Result<PathBuf, Said> {
        let path = self.absolute(named);
        // A path outside is refused by its name alone, so that an answer does not tell which files exist there.
        if !self.is_inside(&flat(&path)) {
            return Err(self.outside());
        }
        let real = path.canonicalize().map_err(|error| say!(texts::NOT_READ, error.kind().to_string()))?;
        if !self.is_inside(&real) {
            return Err(self.outside());
        }
        match fs::metadata(&real).map_err(|error| say!(texts::NOT_READ, error.kind().to_string()))? {
            facts if facts.is_file() => Ok(path),
            _ => Err(say!(texts::NOT_REGULAR)),
        }
    }

    /// A file for reading, with its path.
    ///
    /// # Errors
    /// As [`FileGuard::file`].
    pub fn open(&self, named: &str) -> Result<(PathBuf, File), Said> {
        let path = self.file(named)?;
        let file = File::open(&path).map_err(|error| say!(texts::NOT_READ, error.kind().to_string()))?;
        Ok((path, file))
    }

    /// Whether a path lies in one of the directories. The path must be canonical.
    pub fn is_inside(&self, path: &Path) -> bool {
        self.dirs.iter().any(|dir| path.starts_with(dir))
    }

    /// Whether a file lies in one of the directories, by its real place.
    pub fn has(&self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| self.is_inside(&real))
    }

    /// Whether a path that a configuration names lies outside.
    pub fn is_outside(&self, named: &str) -> bool {
        let path = flat(Path::new(named));
        path.is_absolute() && !(self.is_inside(&path) && path.canonicalize().map_or(true, |real| self.is_inside(&real)))
    }

    fn absolute(&self, named: &str) -> PathBuf {
        self.dirs.first().map_or_else(|| PathBuf::from(named), |first| first.join(named))
    }

    fn outside(&self) -> Said {
        let dirs: Vec<String> = self.dirs.iter().map(|dir| dir.display().to_string()).collect();
        say!(texts::OUTSIDE, dirs.join(", "))
    }
}

/// A path without `.` and `..`, by its words alone.
fn flat(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                flat.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => flat.push(part),
        }
    }
    flat
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.to_owned())
}

impl Files for FileGuard {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let real = Path::new(path).canonicalize()?;
        if !self.is_inside(&real) {
            return Err(refused(texts::FILE_OUTSIDE.en));
        }
        // The metadata first: the opening of a pipe would wait for a writer.
        if !fs::metadata(&real)?.is_file() {
            return Err(refused(texts::FILE_NOT_REGULAR.en));
        }
        let (files, total) = self.read.get();
        if files >= CONF_FILES_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {CONF_FILES_MAX} files")));
        }
        let left = CONF_TOTAL_MAX.saturating_sub(total).min(CONF_BYTES_MAX);
        let mut bytes = Vec::new();
        File::open(&real)?.take(left.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > left {
            let why = format!("a file larger than {CONF_BYTES_MAX} bytes, or all files larger than {CONF_TOTAL_MAX}");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        self.read.set((files + 1, total + bytes.len() as u64));
        Ok(bytes)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let fixed: PathBuf = Path::new(pattern).components().take_while(|part| !is_pattern(part)).collect();
        if self.is_outside(&fixed.display().to_string()) {
            return Err(refused(texts::FILE_OUTSIDE.en));
        }
        let list = |directory: &str| -> io::Result<Vec<String>> {
            if !self.has(Path::new(directory)) {
                return Err(refused(texts::FILE_OUTSIDE.en));
            }
            let entries = fs::read_dir(directory)?.flatten().take(NAMES_MAX);
            Ok(entries.filter_map(|entry| entry.file_name().into_string().ok()).collect())
        };
        let exists = |path: &str| self.has(Path::new(path));
        let mut found = glob::expand(pattern, &list, &exists);
        if found.len() > FOUND_MAX {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {FOUND_MAX} files match")));
        }
        found.sort();
        Ok(found)
    }
}

fn is_pattern(part: &std::path::Component<'_>) -> bool {
    part.as_os_str().to_str().is_none_or(glob::is_pattern)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    fn room(name: &str) -> PathBuf {
        let room = std::env::temp_dir().join(format!("weir-mcp-guard-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&room);
        fs::create_dir_all(room.join("in/conf.d")).unwrap();
        fs::create_dir_all(room.join("out")).unwrap();
        fs::write(room.join("in/nginx.conf"), "events { }").unwrap();
        fs::write(room.join("in/conf.d/a.conf"), "").unwrap();
        fs::write(room.join("out/secret.conf"), "x").unwrap();
        room.canonicalize().unwrap()
    }

    #[test]
    fn only_regular_files_of_the_directories_are_read() {
        let room = room("files");
        symlink(room.join("out/secret.conf"), room.join("in/link.conf")).unwrap();
        symlink("/dev/zero", room.join("in/zero.conf")).unwrap();
        symlink(room.join("in/nginx.conf"), room.join("in/good.conf")).unwrap();
        let guard = FileGuard::new(vec![room.join("in")]);
        let of = |name: &str| guard.file(name).map_err(|why| why.en().to_owned());
        assert_eq!(of("nginx.conf").unwrap(), room.join("in/nginx.conf"));
        assert_eq!(of("good.conf").unwrap(), room.join("in/good.conf"));
        let outside = room.join("out/secret.conf").display().to_string();
        for name in ["../out/secret.conf", &outside, "/etc/passwd", "link.conf", "zero.conf", "../none"] {
            assert!(of(name).unwrap_err().contains("--dir"), "{name}");
        }
        assert!(of("conf.d").unwrap_err().contains("regular file"));
        assert!(of("none.conf").unwrap_err().contains("not found"));
        let read = |name: &str| guard.read(&room.join(name).display().to_string()).map_err(|why| why.kind());
        assert_eq!(read("in/nginx.conf").unwrap(), b"events { }");
        assert_eq!(read("out/secret.conf").unwrap_err(), io::ErrorKind::PermissionDenied);
        assert_eq!(read("in/zero.conf").unwrap_err(), io::ErrorKind::PermissionDenied);
        fs::remove_dir_all(room).unwrap();
    }

    #[test]
    fn a_large_file_and_a_pattern_outside_are_refused() {
        let room = room("large");
        let large = File::create(room.join("in/large.conf")).unwrap();
        large.set_len(CONF_BYTES_MAX + 1).unwrap();
        let guard = FileGuard::new(vec![room.join("in")]);
        let path = |name: &str| room.join(name).display().to_string();
        assert_eq!(guard.read(&path("in/large.conf")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(guard.glob(&path("in/conf.d/*.conf")).unwrap(), [path("in/conf.d/a.conf")]);
        assert_eq!(guard.glob("/etc/*.conf").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(guard.is_outside("/etc/nginx/mime.types") && !guard.is_outside(&path("in/none.conf")));
        assert!(guard.is_outside(&path("in/../out/secret.conf")));
        fs::remove_dir_all(room).unwrap();
    }
}
