//! The configuration that a document belongs to: its files, and what of them was not read.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use weir_conf::{At, LineEnd, LineTable, LoadBounds, Problem, Tree};
use weir_doctor::Target;
use weir_doctor::guard::{FileGuard, Folder};
use weir_doctor::view::View;
use weir_words::Said;

use crate::document::Document;
use crate::files::{BesideFile, LoadedFiles, OpenDocuments, SeenFiles, UnreadFile, WORKSPACE_BOUNDS, WorkspaceFiles};
use crate::look::{KeptMentions, Look};
use crate::part;
use crate::settings::{LspWish, TargetWish};
use crate::template::{self, Placeholders};

/// Most statements of one configuration; those of a file count each time it is included.
pub const STATEMENTS_MAX: usize = 400_000;

/// Most bytes that are parsed for one configuration; those of a file count each time it is included.
pub const PARSED_BYTES_MAX: u64 = 64 << 20;

/// The name of a configuration that a document belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// That of this main file.
    Main(String),
    /// The document is a part alone; its URI.
    Part(String),
}

/// The configuration that a document belongs to.
pub struct Config {
    /// Its main file, or the part.
    pub home: Home,
    /// Its tree. A part is inside of the blocks that belong around it.
    pub tree: Tree,
    /// The tree of a part without these blocks, as `weir doctor` reads it; `None` for a main file. A file has the number that
    /// it has in `tree`, minus [`Config::shift`].
    pub alone: Option<Tree>,
    /// The directory of relative includes, with a `/` at its end.
    pub prefix: String,
    /// How many files `tree` has before those of `alone`.
    pub shift: u32,
    /// Whether weir could not read a part of the files.
    pub is_unreadable: bool,
    /// The problems of reading, without those of `refused`.
    pub problems: Vec<Problem>,
    /// The includes that weir refuses.
    pub refused: Vec<(Option<At>, Said)>,
    /// The includes that count as empty.
    pub notes: Vec<IncludeNote>,
    /// Whether a file may define names that weir does not know.
    pub is_incomplete: bool,
    /// The placeholders of each file of `tree`.
    pub placeholders: Vec<Placeholders>,
    /// The paths of the files without links, by their names.
    reals: HashMap<String, PathBuf>,
    /// The names of `tree`.
    mentions: KeptMentions,
    /// Whether the tree has a directive that only weir has, once it was asked for.
    is_weirs_alone: OnceCell<bool>,
    /// The lines of files, once they were asked for.
    lines: RefCell<HashMap<u32, Rc<LineTable>>>,
}

/// An include that counts as empty.
pub struct IncludeNote {
    /// Its statement.
    pub at: At,
    /// The reason.
    pub why: Said,
    /// Whether the file defines no name that another file needs.
    pub is_harmless: bool,
}

/// The input of a load.
pub struct LoadFrom<'w> {
    /// The open documents.
    pub documents: &'w dyn OpenDocuments,
    /// The folders that may be read.
    pub folders: &'w [Folder],
    /// The tree of `--root`.
    pub root: Option<&'w Folder>,
}

/// Whether the block of such a directive is not in nginx's syntax.
pub fn is_opaque(name: &str) -> bool {
    name.ends_with("_by_lua_block")
}

const BOUNDS: LoadBounds = LoadBounds { statements: STATEMENTS_MAX, bytes: PARSED_BYTES_MAX };

impl Config {
    /// Loads the configuration of a main file.
    pub fn of_main(from: &LoadFrom<'_>, main: &str) -> Config {
        let directory = main.rsplit_once('/').map_or("", |(directory, _)| directory);
        let prefix = format!("{directory}/");
        let (seen, tree, problems) = load(from, main, &prefix, &[], false);
        Config::made(Home::Main(main.to_owned()), tree, None, problems, &prefix, seen)
    }

    /// Loads a part alone.
    pub fn of_part(from: &LoadFrom<'_>, document: &Document, prefix: &str) -> Config {
        let home = Home::Part(document.uri.clone());
        let (_, alone, lexical) = load(from, &document.path, prefix, &[], true);
        let Some(level) = part::level_of(&alone.root) else {
            // Nobody knows which words its statements are: only their syntax counts.
            let (seen, tree, _) = load(from, &document.path, prefix, &[], true);
            return Config::made(home, tree, None, lexical, prefix, seen);
        };
        let around = level.around();
        let own = [(part::AROUND_NAME, around.as_bytes()), (part::OWN_NAME, document.bytes.as_slice())];
        let (seen, mut tree, problems) = load(from, part::AROUND_NAME, prefix, &own, true);
        for file in tree.files.iter_mut().filter(|file| file.name == part::OWN_NAME) {
            file.name.clone_from(&document.path);
        }
        Config::made(home, tree, Some(alone), problems, prefix, seen)
    }

    fn made(
        home: Home,
        mut tree: Tree,
        alone: Option<Tree>,
        problems: Vec<Problem>,
        prefix: &str,
        seen: SeenFiles,
    ) -> Config {
        let LoadedFiles { mut reals, refused, unread } = seen.into();
        if let Home::Part(_) = &home {
            let own = tree.files.iter().find(|file| !file.name.starts_with("/weir-lsp:")).map(|file| file.name.clone());
            reals.extend(own.map(|name| (name.clone(), PathBuf::from(name))));
        }
        let is_part = alone.is_some() || matches!(home, Home::Part(_));
        let kinds: Vec<Placeholders> =
            tree.files.iter().map(|file| template::placeholders(&file.name, &file.bytes)).collect();
        let is_generated = kinds.contains(&Placeholders::Generator);
        let is_incomplete = is_part || is_generated || unread.iter().any(|file| !file.is_harmless);
        let shift = u32::from(alone.is_some());
        let is_unreadable = tree.is_partial;
        // A name that the refused file would have defined is not known.
        tree.is_partial |= is_incomplete;
        let notes = notes(&tree, prefix, &unread);
        let (problems, refused) = apart(problems, &refused);
        let lines = RefCell::default();
        Config {
            home,
            tree,
            alone,
            prefix: prefix.to_owned(),
            shift,
            is_unreadable,
            problems,
            refused,
            notes,
            is_incomplete,
            placeholders: kinds,
            reals,
            mentions: KeptMentions::default(),
            is_weirs_alone: OnceCell::new(),
            lines,
        }
    }

    /// The tree that the doctor reads: a part without blocks around it.
    pub fn own(&self) -> &Tree {
        self.alone.as_ref().unwrap_or(&self.tree)
    }

    /// The program that reads it.
    pub fn target(&self, wish: TargetWish) -> Target {
        let found = || Target::is_weirs_alone(&View::new(self.own()));
        wish.of(|| *self.is_weirs_alone.get_or_init(found))
    }

    /// A look at its tree for a reader with these wishes.
    pub fn look(&self, wish: &LspWish) -> Look<'_> {
        Look::kept(&self.tree, self.mentions.clone(), self.target(wish.target), wish.language)
    }

    /// The lines of a file.
    pub fn lines(&self, file: u32) -> Rc<LineTable> {
        let made = || Rc::new(LineTable::of(self.bytes(file), LineEnd::Any));
        self.lines.borrow_mut().entry(file).or_insert_with(made).clone()
    }

    /// The bytes of a file; empty if there is none.
    pub fn bytes(&self, file: u32) -> &[u8] {
        self.tree.files.get(file as usize).map_or(&[], |source| &source.bytes)
    }

    /// Whether a file is one of the workspace, not the one around a part.
    pub fn is_real(&self, file: u32) -> bool {
        file >= self.shift && (file as usize) < self.tree.files.len()
    }

    /// The paths of its files, as named and without links.
    pub fn members(&self) -> HashSet<PathBuf> {
        let named = self.tree.files.iter().map(|file| PathBuf::from(&file.name));
        named.chain(self.reals.values().cloned()).collect()
    }

    /// The path of a file without links.
    pub fn real(&self, name: &str) -> Option<&Path> {
        self.reals.get(name).map(PathBuf::as_path)
    }

    /// The number of an open document among the files of the tree; `real` is its path without links.
    pub fn file_of(&self, document: &Document, real: Option<&Path>) -> Option<u32> {
        let is_it = |name: &str| {
            let own = self.real(name);
            name == document.path || own.is_some_and(|own| own == Path::new(&document.path) || Some(own) == real)
        };
        let found = self.tree.files.iter().position(|file| is_it(&file.name));
        found.and_then(|found| u32::try_from(found).ok())
    }

    /// The placeholders of a file.
    pub fn placeholders_of(&self, file: u32) -> Placeholders {
        self.placeholders.get(file as usize).copied().unwrap_or_default()
    }
}

fn load(
    from: &LoadFrom<'_>,
    main: &str,
    prefix: &str,
    own: &[(&str, &[u8])],
    is_part: bool,
) -> (SeenFiles, Tree, Vec<Problem>) {
    let files = from.files(prefix, own, is_part);
    let (tree, problems) = weir_conf::load_within(&files, main, prefix, &is_opaque, BOUNDS);
    (files.seen, tree, problems)
}

impl<'w> LoadFrom<'w> {
    /// The files of a configuration, of which nothing was read yet.
    fn files(&self, prefix: &'w str, own: &'w [(&'w str, &'w [u8])], is_part: bool) -> WorkspaceFiles<'w> {
        let LoadFrom { documents, folders, root } = *self;
        let guard = FileGuard::new(folders.iter().chain(root).cloned().collect(), WORKSPACE_BOUNDS);
        let seen = SeenFiles::default();
        WorkspaceFiles { documents, folders, root, conf_prefix: prefix, own, is_part, guard, seen }
    }

    /// The entries of a directory beside the configuration's main file, as an `include` names it.
    pub fn beside(&self, config: &'w Config, directory: &str) -> Vec<BesideFile> {
        self.files(&config.prefix, &[], config.alone.is_some()).beside(directory)
    }
}

/// The includes whose files count as empty.
fn notes(tree: &Tree, prefix: &str, unread: &[UnreadFile]) -> Vec<IncludeNote> {
    let of = |include: &weir_conf::Include| {
        let argument = argument_of(tree.bytes(&include.at))?;
        let full = if argument.starts_with('/') { argument } else { format!("{prefix}{argument}") };
        let own = |name: &str| name == full;
        let read = include.files.iter().filter_map(|file| tree.files.get(*file as usize));
        let names: Vec<&str> = read.map(|file| file.name.as_str()).collect();
        let found = unread.iter().find(|file| own(&file.name) || names.contains(&file.name.as_str()));
        found.map(|file| IncludeNote { at: include.at, why: file.why.clone(), is_harmless: file.is_harmless })
    };
    if unread.is_empty() { Vec::new() } else { tree.includes.iter().filter_map(of).collect() }
}

/// The argument of an `include` as written, without quotes.
fn argument_of(statement: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(statement);
    let argument = text.split_whitespace().nth(1)?;
    Some(argument.trim_matches(['"', '\'']).to_owned())
}

/// The problems of files that weir refuses, with the words of weir, apart from the others.
fn apart(problems: Vec<Problem>, refused: &[(String, Said)]) -> (Vec<Problem>, Vec<(Option<At>, Said)>) {
    let mut own = Vec::new();
    let mut rest = Vec::new();
    for problem in problems {
        let of_it = |(name, _): &&(String, Said)| problem.what.contains(&format!("\"{name}\" failed ("));
        match refused.iter().find(of_it) {
            Some((_, why)) => own.push((problem.at, why.clone())),
            None => rest.push(problem),
        }
    }
    (rest, own)
}
