//! The files that a tool may read: regular files below the named directories, within bounds.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use weir_conf::Files;
use weir_doctor::guard::{FileGuard, Folder, GuardBounds, GuardError, without_dots};
use weir_words::{Said, say};

use crate::texts;

/// The bounds of one configuration.
pub const CONF_BOUNDS: GuardBounds =
    GuardBounds { file_bytes: 8 << 20, all_bytes: 64 << 20, files: 2_000, names: 20_000, directories: 2_000 };

/// The named directories, and what of them was read.
#[derive(Clone, Debug)]
pub struct NamedFiles(FileGuard);

impl NamedFiles {
    /// The files of directories, whose paths are canonical. A relative path of an argument begins at the first of them.
    pub fn new(dirs: Vec<PathBuf>) -> NamedFiles {
        let folders = dirs.into_iter().map(|dir| Folder { path: dir.clone(), real: dir });
        NamedFiles(FileGuard::new(folders.collect(), CONF_BOUNDS))
    }

    /// The full path of a regular file that an argument names.
    ///
    /// # Errors
    /// There is no such file, it is not a regular file, or it lies outside of the directories. The sentence names the remedy.
    pub fn file(&self, named: &str) -> Result<PathBuf, Said> {
        let path = self.absolute(named);
        // A path outside is refused by its name alone, so that an answer does not tell which files exist there.
        if !self.0.names_inside(&path) {
            return Err(self.outside());
        }
        let not_read = |error: io::Error| say!(texts::NOT_READ, error.kind().to_string());
        let real = match self.0.real(&path) {
            Ok(real) => real,
            Err(GuardError::System(error)) => return Err(not_read(error)),
            Err(GuardError::Refused(_)) => return Err(self.outside()),
        };
        match fs::metadata(&real).map_err(not_read)? {
            facts if facts.is_file() => Ok(path),
            _ => Err(say!(texts::NOT_REGULAR)),
        }
    }

    /// A file for reading, with its path.
    ///
    /// # Errors
    /// As [`NamedFiles::file`].
    pub fn open(&self, named: &str) -> Result<(PathBuf, File), Said> {
        let path = self.file(named)?;
        let file = File::open(&path).map_err(|error| say!(texts::NOT_READ, error.kind().to_string()))?;
        Ok((path, file))
    }

    /// Whether a file lies in one of the directories, by its real place.
    pub fn has(&self, path: &Path) -> bool {
        self.0.has(path)
    }

    /// Whether a path that a configuration names lies outside.
    pub fn is_outside(&self, named: &str) -> bool {
        let path = without_dots(Path::new(named));
        let leads_out = || matches!(self.0.real(&path), Err(GuardError::Refused(_)));
        path.is_absolute() && (!self.0.names_inside(&path) || leads_out())
    }

    fn absolute(&self, named: &str) -> PathBuf {
        self.0.folders().first().map_or_else(|| PathBuf::from(named), |first| first.path.join(named))
    }

    fn outside(&self) -> Said {
        let dirs: Vec<String> = self.0.folders().iter().map(|folder| folder.path.display().to_string()).collect();
        say!(texts::OUTSIDE, dirs.join(", "))
    }
}

impl Files for NamedFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.read(path)
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        self.0.glob(pattern)
    }
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
        let guard = NamedFiles::new(vec![room.join("in")]);
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
        large.set_len(CONF_BOUNDS.file_bytes + 1).unwrap();
        let guard = NamedFiles::new(vec![room.join("in")]);
        let path = |name: &str| room.join(name).display().to_string();
        assert_eq!(guard.read(&path("in/large.conf")).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(guard.glob(&path("in/conf.d/*.conf")).unwrap(), [path("in/conf.d/a.conf")]);
        assert_eq!(guard.glob("/etc/*.conf").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(guard.is_outside("/etc/nginx/mime.types") && !guard.is_outside(&path("in/none.conf")));
        assert!(guard.is_outside(&path("in/../out/secret.conf")));
        fs::remove_dir_all(room).unwrap();
    }
}
