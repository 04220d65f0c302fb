//! The guard of all reading: an implementation of `conf`'s `Files` for files that strangers wrote.
//!
//! Open documents come first. From the disk it reads only regular files whose real path is inside a folder of the workspace or
//! of `--root`, within the bounds of this file. Everything else is refused by name. An absolute include outside of the
//! workspace is no error of the file: it counts as empty, and weir tells that it was not read.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use weir_conf::{Files, glob};
use weir_words::{Said, say};

use crate::document::Document;
use crate::texts;

/// Most bytes of one file.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// Most files of one configuration.
pub const CONFIG_FILES_MAX: usize = 2_000;

/// Most bytes of the files of one configuration.
pub const CONFIG_BYTES_MAX: u64 = 32 << 20;

/// Most names of one directory.
pub const NAMES_MAX: usize = 10_000;

/// Most directories that the patterns of one configuration may list.
pub const DIRECTORIES_MAX: usize = 2_000;

/// Directories of the kernel: a file there may have no end.
const OF_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

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

/// A folder that may be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// As the client names it.
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

    /// Whether a path, with or without links, is inside.
    fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.path) || path.starts_with(&self.real)
    }
}

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
pub struct FileGuard<'w> {
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
    /// The files that this load has seen.
    pub seen: SeenFiles,
}

/// The files that one load has seen.
#[derive(Default)]
pub struct SeenFiles {
    files: Cell<usize>,
    bytes: Cell<u64>,
    directories: Cell<usize>,
    /// The files of the disk and the documents, by their names in the configuration, without links.
    reals: RefCell<HashMap<String, PathBuf>>,
    /// Names that were refused, with the reason.
    refused: RefCell<Vec<(String, Said)>>,
    /// Names and patterns that count as empty.
    unread: RefCell<Vec<UnreadFile>>,
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

impl FileGuard<'_> {
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
            Some(beside) if self.is_inside(&beside) && fs::symlink_metadata(&beside).is_ok() => Place::Disk(beside),
            _ => Place::Outside,
        }
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.folders.iter().chain(self.root).any(|folder| folder.holds(path))
    }

    /// Keeps the reason, and makes an error of it.
    fn refuse<T>(&self, name: &str, why: Said) -> io::Result<T> {
        let error = io::Error::other(why.en().to_owned());
        self.seen.refused.borrow_mut().push((name.to_owned(), why));
        Err(error)
    }

    /// Counts a name as empty.
    fn leave(&self, name: &str, why: Said) {
        let is_harmless = SHIPPED.contains(&name.rsplit('/').next().unwrap_or_default());
        self.seen.unread.borrow_mut().push(UnreadFile { name: name.to_owned(), why, is_harmless });
    }

    fn count(&self, name: &str, bytes: u64) -> io::Result<()> {
        let seen = &self.seen;
        if seen.files.get() >= CONFIG_FILES_MAX {
            return self.refuse(name, say!(texts::TOO_MANY_FILES, name, CONFIG_FILES_MAX));
        }
        if seen.bytes.get().saturating_add(bytes) > CONFIG_BYTES_MAX {
            return self.refuse(name, say!(texts::TOO_MANY_BYTES, name, CONFIG_BYTES_MAX));
        }
        seen.files.set(seen.files.get() + 1);
        seen.bytes.set(seen.bytes.get() + bytes);
        Ok(())
    }

    fn open(&self, name: &str, document: &Document, real: PathBuf) -> io::Result<Vec<u8>> {
        self.count(name, document.bytes.len() as u64)?;
        if let Some(why) = &document.refusal {
            self.leave(name, why.clone());
        }
        self.seen.reals.borrow_mut().insert(name.to_owned(), real);
        Ok(document.bytes.clone())
    }

    /// A file of the disk: `name` is its name in the configuration.
    fn of_disk(&self, name: &str, path: &Path) -> io::Result<Vec<u8>> {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) => return self.missing(name, error),
        };
        if !self.folders.iter().chain(self.root).any(|folder| real.starts_with(&folder.real)) {
            return self.refuse(name, say!(texts::LINK_OUT, name));
        }
        if let Some(document) = self.documents.of_real(&real) {
            return self.open(name, document, real);
        }
        if OF_KERNEL.iter().any(|directory| real.starts_with(directory)) {
            return self.refuse(name, say!(texts::OF_KERNEL, name));
        }
        let facts = fs::metadata(&real)?;
        if facts.is_dir() {
            return Err(io::Error::from_raw_os_error(IS_A_DIRECTORY));
        }
        if !facts.is_file() {
            return self.refuse(name, say!(texts::NOT_REGULAR, name));
        }
        if facts.len() > FILE_BYTES_MAX {
            return self.refuse(name, say!(texts::FILE_TOO_LARGE, name, FILE_BYTES_MAX));
        }
        self.count(name, facts.len())?;
        let mut bytes = Vec::new();
        // The file may have grown since.
        File::open(&real)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return self.refuse(name, say!(texts::FILE_TOO_LARGE, name, FILE_BYTES_MAX));
        }
        self.seen.reals.borrow_mut().insert(name.to_owned(), real);
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

    /// The names in a directory. An error says that there are too many.
    fn list(&self, directory: &str) -> Result<Vec<String>, ()> {
        let seen = &self.seen.directories;
        if seen.get() >= DIRECTORIES_MAX {
            return Err(());
        }
        seen.set(seen.get() + 1);
        let mut names = self.documents.names_in(directory);
        let Place::Disk(path) = self.place(directory) else { return Ok(names) };
        let real = fs::canonicalize(&path).unwrap_or_default();
        let is_allowed = self.folders.iter().chain(self.root).any(|folder| real.starts_with(&folder.real));
        if !is_allowed || OF_KERNEL.iter().any(|kernel| real.starts_with(kernel)) {
            return Ok(names);
        }
        let Ok(entries) = fs::read_dir(&real) else { return Ok(names) };
        for (number, entry) in entries.flatten().enumerate() {
            if number >= NAMES_MAX {
                return Err(());
            }
            names.extend(entry.file_name().into_string());
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn exists(&self, name: &str) -> bool {
        self.documents.named(name).is_some() || matches!(self.place(name), Place::Disk(path) if path.exists())
    }
}

/// The number of the error `Is a directory`.
const IS_A_DIRECTORY: i32 = 21;

impl Files for FileGuard<'_> {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        if let Some((_, bytes)) = self.own.iter().find(|(own, _)| *own == name) {
            self.count(name, bytes.len() as u64)?;
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
        // The directory above the first component with a wildcard.
        let fixed: Vec<&str> = pattern.split('/').take_while(|component| !glob::is_pattern(component)).collect();
        if let Place::Outside = self.place(&fixed.join("/")) {
            self.leave(pattern, say!(texts::OUTSIDE, pattern));
            return Ok(Vec::new());
        }
        let is_over = Cell::new(false);
        let list = |directory: &str| -> io::Result<Vec<String>> {
            let found = self.list(directory);
            is_over.set(is_over.get() || found.is_err());
            Ok(found.unwrap_or_default())
        };
        let found = glob::expand(pattern, &list, &|path| self.exists(path));
        match is_over.get() || found.len() > CONFIG_FILES_MAX {
            true => self.refuse(pattern, say!(texts::TOO_MANY_NAMES, pattern, NAMES_MAX, DIRECTORIES_MAX)),
            false => Ok(found),
        }
    }
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
            other => plain.push(other),
        }
    }
    plain
}
