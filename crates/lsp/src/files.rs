//! The files of a workspace: an implementation of `conf`'s `Files` over the open documents and the guard of `doctor`.
//!
//! Open documents come first. From the disk come only files that the guard reads, in a folder of the workspace or of `--root`.
//! Everything else is refused by name. An absolute include outside of the workspace is no error of the file: it counts as
//! empty, and weir tells that it was not read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weir_conf::Files;
use weir_doctor::guard::{FileGuard, FileRefusal, Folder, GuardBounds, GuardError, above_wildcards, without_dots};
use weir_words::{Said, say};

use crate::document::Document;
use crate::texts;

/// The bounds of one configuration.
pub const WORKSPACE_BOUNDS: GuardBounds =
    GuardBounds { file_bytes: 4 << 20, all_bytes: 32 << 20, files: 2_000, names: 10_000, directories: 2_000 };

/// Most entries of a directory that are offered for an include; a directory with more names than the guard lists has none.
pub const BESIDE_MAX: usize = 500;

/// Names of files that nginx's packages bring. They define no name that another file uses.
const SHIPPED: [&str; 9] = [
    "mime.types",
    "fastcgi_params",
    "fastcgi.conf",
    "uwsgi_params",
    "scgi_params",
    "proxy_params",
    "koi-utf",
    "koi-win",
    "win-utf",
];

/// The directory of nginx.conf on a machine. A workspace often has its content in another place.
const USUAL: &str = "/etc/nginx/";

/// The open documents by their paths.
pub trait OpenDocuments {
    /// The document with this path, as the client names it.
    fn named(&self, path: &str) -> Option<&Document>;

    /// The document whose file has this path without links.
    fn of_real(&self, real: &Path) -> Option<&Document>;

    /// The names of the documents in a directory; its path ends in `/`.
    fn names_in(&self, directory: &str) -> Vec<String>;
}

/// The files that one load of a configuration may read.
pub struct WorkspaceFiles<'w> {
    /// The open documents.
    pub documents: &'w dyn OpenDocuments,
    /// The folders of the workspace.
    pub folders: &'w [Folder],
    /// The tree for absolute includes outside of the workspace.
    pub root: Option<&'w Folder>,
    /// The directory of relative includes, with a `/` at its end.
    pub conf_prefix: &'w str,
    /// Files that are not on the disk.
    pub own: &'w [(&'w str, &'w [u8])],
    /// Whether the configuration is a part, whose directory of relative includes weir has guessed.
    pub is_part: bool,
    /// The folders and the root, and what of them was read.
    pub guard: FileGuard,
    /// The files that this load has seen.
    pub seen: SeenFiles,
}

/// The files that one load has seen.
#[derive(Default)]
pub struct SeenFiles {
    /// The files of the disk and the documents, by their names in the configuration, without links.
    reals: RefCell<HashMap<String, PathBuf>>,
    /// Names that were refused, with the reason.
    refused: RefCell<Vec<(String, Said)>>,
    /// Names and patterns that count as empty.
    unread: RefCell<Vec<UnreadFile>>,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideFile {
    /// Its name.
    pub name: String,
    /// Whether it is a directory.
    pub is_folder: bool,
}

/// A name or a pattern of an include that counts as empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadFile {
    /// The name, absolute.
    pub name: String,
    /// The reason.
    pub why: Said,
    /// Whether the file defines no name that another file needs.
    pub is_harmless: bool,
}

/// The files of a load that has ended.
pub struct LoadedFiles {
    /// The files of the disk and the documents, by their names in the configuration, without links.
    pub reals: HashMap<String, PathBuf>,
    /// Names that were refused, with the reason.
    pub refused: Vec<(String, Said)>,
    /// Names and patterns that count as empty.
    pub unread: Vec<UnreadFile>,
}

impl From<SeenFiles> for LoadedFiles {
    fn from(seen: SeenFiles) -> LoadedFiles {
        LoadedFiles {
            reals: seen.reals.into_inner(),
            refused: seen.refused.into_inner(),
            unread: seen.unread.into_inner(),
        }
    }
}

/// Where a name leads.
enum Place {
    Disk(PathBuf),
    Outside,
}

impl WorkspaceFiles<'_> {
    /// The place of an absolute name.
    fn place(&self, name: &str) -> Place {
        let path = without_dots(Path::new(name));
        if self.folders.iter().any(|folder| folder.holds(&path)) {
            return Place::Disk(path);
        }
        if let Some(root) = self.root {
            return Place::Disk(root.path.join(path.strip_prefix("/").unwrap_or(&path)));
        }
        let beside = path.strip_prefix(USUAL).ok().map(|rest| Path::new(self.conf_prefix).join(rest));
        match beside {
            // The directory of a pattern ends here, too.
            Some(beside) if self.guard.names_inside(&beside) && fs::symlink_metadata(&beside).is_ok() => {
                Place::Disk(beside)
            }
            _ => Place::Outside,
        }
    }

    /// Keeps the reason why something is refused, and makes an error of it.
    fn refuse(&self, name: &str, refusal: FileRefusal) -> io::Error {
        let GuardBounds { file_bytes, all_bytes, files, names, directories } = self.guard.bounds();
        let why = match refusal {
            FileRefusal::Outside => say!(texts::LINK_OUT, name),
            FileRefusal::OfKernel => say!(texts::OF_KERNEL, name),
            FileRefusal::NotRegular => say!(texts::NOT_REGULAR, name),
            FileRefusal::TooLarge => say!(texts::FILE_TOO_LARGE, name, file_bytes),
            FileRefusal::TooManyFiles => say!(texts::TOO_MANY_FILES, name, files),
            FileRefusal::TooManyBytes => say!(texts::TOO_MANY_BYTES, name, all_bytes),
            FileRefusal::TooManyNames => say!(texts::TOO_MANY_NAMES, name, names, directories),
        };
        let error = io::Error::other(why.en().to_owned());
        self.seen.refused.borrow_mut().push((name.to_owned(), why));
        error
    }

    /// Counts a name as empty.
    fn leave(&self, name: &str, why: Said) {
        let is_harmless = SHIPPED.contains(&name.rsplit('/').next().unwrap_or_default());
        self.seen.unread.borrow_mut().push(UnreadFile { name: name.to_owned(), why, is_harmless });
    }

    fn keep(&self, name: &str, real: PathBuf) {
        self.seen.reals.borrow_mut().insert(name.to_owned(), real);
    }

    fn count(&self, name: &str, bytes: usize) -> io::Result<()> {
        self.guard.count(bytes as u64).map_err(|refusal| self.refuse(name, refusal))
    }

    fn open(&self, name: &str, document: &Document, real: PathBuf) -> io::Result<Vec<u8>> {
        self.count(name, document.bytes.len())?;
        if let Some(why) = &document.refusal {
            self.leave(name, why.clone());
        }
        self.keep(name, real);
        Ok(document.bytes.clone())
    }

    /// A file of the disk: `name` is its name in the configuration.
    fn of_disk(&self, name: &str, path: &Path) -> io::Result<Vec<u8>> {
        let refused = |error: GuardError| match error {
            GuardError::System(error) => error,
            GuardError::Refused(refusal) => self.refuse(name, refusal),
        };
        let real = match self.guard.real(path) {
            Ok(real) => real,
            Err(GuardError::System(error)) => return self.missing(name, error),
            Err(error) => return Err(refused(error)),
        };
        if let Some(document) = self.documents.of_real(&real) {
            return self.open(name, document, real);
        }
        let bytes = self.guard.read_real(&real).map_err(refused)?;
        self.keep(name, real);
        Ok(bytes)
    }

    /// A file that is not there: an error, unless weir cannot know that the server lacks it.
    fn missing(&self, name: &str, error: io::Error) -> io::Result<Vec<u8>> {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        let is_shipped = SHIPPED.contains(&name.rsplit('/').next().unwrap_or_default());
        match (is_shipped, self.is_part) {
            (true, _) => self.leave(name, say!(texts::SHIPPED, name)),
            (false, true) => self.leave(name, say!(texts::PART_MISSES, name, self.conf_prefix)),
            (false, false) => return Err(error),
        }
        Ok(Vec::new())
    }

    /// The names in a directory, those of open documents included.
    fn list(&self, directory: &str) -> Result<Vec<String>, GuardError> {
        let mut names = self.documents.names_in(directory);
        if let Place::Disk(path) = self.place(directory) {
            match self.guard.list(&path) {
                Err(GuardError::Refused(FileRefusal::TooManyNames)) => return Err(FileRefusal::TooManyNames.into()),
                // A directory that may not be read has no names.
                found => names.extend(found.unwrap_or_default()),
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// The entries of a directory that a relative or an absolute name means, at most [`BESIDE_MAX`]. A name that leads out of the
    /// workspace is left out.
    pub fn beside(&self, directory: &str) -> Vec<BesideFile> {
        let prefix = if directory.starts_with('/') { "" } else { self.conf_prefix };
        let full = format!("{prefix}{directory}");
        let Place::Disk(path) = self.place(&full) else { return Vec::new() };
        let names = self.list(&full).unwrap_or_default();
        let entry = |name: String| {
            let is_open = self.documents.named(&format!("{full}{name}")).is_some();
            let real = self.guard.real(&path.join(&name)).ok();
            let is_folder = real.as_ref().is_some_and(|real| real.is_dir());
            let is_file = is_open || real.as_ref().is_some_and(|real| real.is_file());
            (is_folder || is_file).then_some(BesideFile { name, is_folder })
        };
        names.into_iter().take(BESIDE_MAX).filter_map(entry).collect()
    }

    fn exists(&self, name: &str) -> bool {
        self.documents.named(name).is_some() || matches!(self.place(name), Place::Disk(path) if path.exists())
    }
}

impl Files for WorkspaceFiles<'_> {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        if let Some((_, bytes)) = self.own.iter().find(|(own, _)| *own == name) {
            self.count(name, bytes.len())?;
            return Ok(bytes.to_vec());
        }
        if let Some(document) = self.documents.named(name) {
            return self.open(name, document, PathBuf::from(name));
        }
        match self.place(name) {
            Place::Disk(path) => self.of_disk(name, &path),
            Place::Outside => {
                self.leave(name, say!(texts::OUTSIDE, name));
                Ok(Vec::new())
            }
        }
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        if let Place::Outside = self.place(&above_wildcards(pattern)) {
            self.leave(pattern, say!(texts::OUTSIDE, pattern));
            return Ok(Vec::new());
        }
        let found = self.guard.expand(pattern, &|directory| self.list(directory), &|path| self.exists(path));
        found.map_err(|refusal| self.refuse(pattern, refusal))
    }
}
