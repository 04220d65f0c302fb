//! The open documents over the files of the disk, and the configuration that each document belongs to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_conf::ColumnUnit;
use weir_doctor::guard::Folder;
use weir_net::Instant;
use weir_words::say;

use crate::config::{Config, Home};
use crate::document::{Document, TextChange};
use crate::files::OpenDocuments;
use crate::scan::{self, ScanPlace};
use crate::settings::LspWish;
use crate::texts;

/// Most open documents.
pub const DOCUMENTS_MAX: usize = 500;

/// Most bytes of all open documents.
pub const OPEN_BYTES_MAX: usize = 64 << 20;

/// Most folders of a workspace.
const FOLDERS_MAX: usize = 32;

/// How long a search for main files counts, for a client that tells no changes of files.
const SCAN_AGE: Duration = Duration::from_secs(30);

/// Most bytes of configurations that one search for main files reads; the files of further ones are not known.
const SEARCHED_BYTES_MAX: usize = 64 << 20;

/// How many directories above a single file may have its nginx.conf.
const ABOVE_MAX: usize = 3;

/// Directories whose files the nginx.conf in the directory above includes.
const BELOW_CONF: [&str; 11] = [
    "conf.d",
    "default.d",
    "http.d",
    "includes",
    "modules-enabled",
    "sites-available",
    "sites-enabled",
    "snippets",
    "stream.d",
    "templates",
    "vhosts",
];

/// The workspace of a client.
#[derive(Default)]
pub struct Workspace {
    documents: BTreeMap<String, Document>,
    /// The URIs of open documents by paths, as the client names them and without links.
    paths: HashMap<PathBuf, String>,
    folders: Vec<Folder>,
    root: Option<Folder>,
    /// Whether the client tells changes of files.
    pub is_told: bool,
    mains: Option<Mains>,
    /// Grows with each change of a document, a file or a setting.
    version: u64,
}

/// The main files, and the files that each of them reads.
struct Mains {
    paths: Vec<String>,
    members: HashMap<String, HashSet<PathBuf>>,
    since: Instant,
}

impl Workspace {
    /// Sets the folders of the workspace, and the tree of `--root`.
    pub fn set_folders(&mut self, folders: &[String], wish: &LspWish) {
        let found = folders.iter().take(FOLDERS_MAX).filter_map(|path| Folder::of(Path::new(path)));
        self.folders = found.collect();
        self.root = wish.root.as_deref().and_then(Folder::of);
        self.touch();
    }

    /// Notes that files, folders or settings have changed.
    pub fn touch(&mut self) {
        self.version += 1;
        self.mains = None;
    }

    /// The number of changes so far.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Opens a document; the client may open it again.
    pub fn open(&mut self, uri: &str, path: &str, version: i64, text: String) {
        self.close(uri);
        let open: usize = self.documents.values().map(|document| document.bytes.len()).sum();
        let is_over = self.documents.len() >= DOCUMENTS_MAX || open.saturating_add(text.len()) > OPEN_BYTES_MAX;
        if self.documents.len() >= 2 * DOCUMENTS_MAX {
            // Its diagnostic would need room, too.
            return;
        }
        let text = if is_over { String::new() } else { text };
        let mut document = Document::new(uri.to_owned(), path.to_owned(), version, text);
        if is_over {
            document.refuse(say!(texts::TOO_MANY_DOCUMENTS, DOCUMENTS_MAX, OPEN_BYTES_MAX));
        }
        if let Ok(real) = fs::canonicalize(path) {
            self.paths.insert(real, uri.to_owned());
        }
        self.paths.insert(PathBuf::from(path), uri.to_owned());
        let is_known = self.mains.as_ref().is_some_and(|mains| mains.paths.iter().any(|main| main == path));
        if document.is_main != is_known {
            self.mains = None;
        }
        self.documents.insert(uri.to_owned(), document);
        self.version += 1;
    }

    /// Changes a document; false if it is not open.
    pub fn change(&mut self, uri: &str, version: i64, changes: Vec<TextChange>, unit: ColumnUnit) -> bool {
        let others: usize =
            self.documents.iter().filter(|(other, _)| *other != uri).map(|(_, other)| other.bytes.len()).sum();
        let Some(document) = self.documents.get_mut(uri) else { return false };
        let was_main = document.is_main;
        document.change(version, changes, unit);
        if others.saturating_add(document.bytes.len()) > OPEN_BYTES_MAX {
            document.refuse(say!(texts::TOO_MANY_DOCUMENTS, DOCUMENTS_MAX, OPEN_BYTES_MAX));
        }
        if document.is_main != was_main {
            self.mains = None;
        }
        self.version += 1;
        true
    }

    /// Closes a document: the file of the disk counts again.
    pub fn close(&mut self, uri: &str) {
        if self.documents.remove(uri).is_some() {
            self.paths.retain(|_, open| open != uri);
            self.version += 1;
        }
    }

    /// An open document.
    pub fn document(&self, uri: &str) -> Option<&Document> {
        self.documents.get(uri)
    }

    /// All open documents.
    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.documents.values()
    }

    /// The open document of a file, by its name in a configuration or by its path without links.
    pub fn open_at(&self, name: &str, real: Option<&Path>) -> Option<&Document> {
        self.named(name).or_else(|| self.of_real(real?))
    }

    /// Whether the client knows a file by this name: the name is in a folder of the workspace.
    pub fn names_inside(&self, name: &str) -> bool {
        self.folders.iter().any(|folder| Path::new(name).starts_with(&folder.path))
    }

    /// The tree of `--root`.
    pub fn root(&self) -> Option<&Folder> {
        self.root.as_ref()
    }

    /// The folders that may be read for a document: those of the workspace, and without any, the directory of its nginx.conf.
    pub fn folders_for(&self, document: &Document) -> Vec<Folder> {
        if !self.folders.is_empty() {
            return self.folders.clone();
        }
        let own = Path::new(&document.path).parent();
        let mut above = own.into_iter().flat_map(Path::ancestors).take(ABOVE_MAX);
        let of_conf = above.find(|directory| directory.join("nginx.conf").is_file());
        of_conf.or(own).and_then(Folder::of).into_iter().collect()
    }

    /// The directory of relative includes of a part, with a `/` at its end: that of the setting; that of the nearest nginx.conf
    /// above; the directory above one such as `conf.d`; its own.
    pub fn prefix_of(&self, document: &Document, wish: &LspWish) -> String {
        if let Some(prefix) = &wish.prefix {
            return with_slash(prefix);
        }
        let folders = self.folders_for(document);
        let own = Path::new(&document.path).parent().unwrap_or(Path::new("/"));
        let is_inside = |path: &&Path| folders.iter().any(|folder| path.starts_with(&folder.path));
        let of_conf = own.ancestors().take_while(is_inside).find(|path| path.join("nginx.conf").is_file());
        let is_below = own.file_name().is_some_and(|name| BELOW_CONF.iter().any(|known| name == *known));
        let above = own.parent().filter(|_| is_below);
        with_slash(&of_conf.or(above).unwrap_or(own).display().to_string())
    }

    /// The configuration that a document belongs to. `load` reads the configuration of a main file.
    pub fn home(&mut self, uri: &str, now: Instant, load: &dyn Fn(&Workspace, &str) -> Config) -> Option<Home> {
        let document = self.documents.get(uri)?;
        let (path, real) = (PathBuf::from(&document.path), self.real_of(&document.path));
        let is_own_main = document.is_main;
        self.search(uri, now, load);
        let mains = self.mains.as_ref()?;
        let holds = |main: &&String| {
            let is_other = Path::new(main) != path && Some(Path::new(main)) != real.as_deref();
            let members = mains.members.get(*main);
            let is_member = |path: &Path| members.is_some_and(|members| members.contains(path));
            is_other && (is_member(&path) || real.as_deref().is_some_and(is_member))
        };
        let whole = mains.paths.iter().find(holds).cloned();
        Some(match (whole, is_own_main) {
            (Some(main), false) => Home::Main(main),
            (_, true) => Home::Main(path.display().to_string()),
            (None, false) => Home::Part(uri.to_owned()),
        })
    }

    /// Keeps the files that a main file reads.
    pub fn remember(&mut self, config: &Config) {
        if let (Some(mains), Home::Main(main)) = (&mut self.mains, &config.home)
            && mains.paths.contains(main)
        {
            mains.members.insert(main.clone(), config.members());
        }
    }

    /// Whether a main file reads this document.
    pub fn is_read_by(&self, main: &str, document: &Document) -> bool {
        let members = self.mains.as_ref().and_then(|mains| mains.members.get(main));
        let real = self.real_of(&document.path);
        members.is_some_and(|members| {
            members.contains(Path::new(&document.path)) || real.is_some_and(|real| members.contains(&real))
        })
    }

    /// Searches for main files, unless it was done lately.
    fn search(&mut self, uri: &str, now: Instant, load: &dyn Fn(&Workspace, &str) -> Config) {
        let is_fresh = |mains: &Mains| self.is_told || now.saturating_duration_since(mains.since) < SCAN_AGE;
        if self.mains.as_ref().is_some_and(is_fresh) {
            return;
        }
        let Some(document) = self.documents.get(uri) else { return };
        let folders = self.folders_for(document);
        let is_deep = !self.folders.is_empty();
        let places: Vec<ScanPlace<'_>> = folders.iter().map(|folder| ScanPlace { folder, is_deep }).collect();
        let mut paths = scan::mains(&places);
        // A main file may be open and not yet on the disk, or not a main file on the disk.
        let open = self.documents.values().filter(|open| open.is_main);
        let new: Vec<String> = open.map(|open| open.path.clone()).filter(|path| !paths.contains(path)).collect();
        paths.extend(new.into_iter().take(scan::MAINS_MAX));
        self.mains = Some(Mains { paths: paths.clone(), members: HashMap::new(), since: now });
        let mut read = 0_usize;
        for main in paths {
            if read > SEARCHED_BYTES_MAX {
                break;
            }
            let config = load(self, &main);
            read += config.tree.files.iter().map(|file| file.bytes.len()).sum::<usize>();
            if let Some(mains) = &mut self.mains {
                mains.members.insert(main, config.members());
            }
        }
    }

    /// The path of an open document without links.
    fn real_of(&self, path: &str) -> Option<PathBuf> {
        let uri = self.paths.get(Path::new(path))?;
        let real = self.paths.iter().find(|(other, open)| *open == uri && other.as_path() != Path::new(path));
        real.map(|(real, _)| real.clone())
    }
}

impl OpenDocuments for Workspace {
    fn named(&self, path: &str) -> Option<&Document> {
        self.of_real(Path::new(path))
    }

    fn of_real(&self, real: &Path) -> Option<&Document> {
        self.documents.get(self.paths.get(real)?)
    }

    fn names_in(&self, directory: &str) -> Vec<String> {
        let names = self.documents.values().filter_map(|document| document.path.strip_prefix(directory));
        names.filter(|name| !name.contains('/') && !name.is_empty()).map(str::to_owned).collect()
    }
}

fn with_slash(path: &str) -> String {
    if path.ends_with('/') { path.to_owned() } else { format!("{path}/") }
}
