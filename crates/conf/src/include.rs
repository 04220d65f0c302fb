//! Loads a configuration from its files: parses each file, and replaces each `include` by the named files.
//!
//! Not here: the disk; bytes and file lists come through [`Files`]. Invariant: loading ends. A file that includes
//! itself is refused, and the numbers of files and statements and the depth are limited, so no set of files can make
//! the tree grow without end.

use std::collections::HashMap;
use std::io;

use crate::glob;
use crate::parse::{BLOCK_DEPTH_MAX, Parsed, parse, parse_command_line};
use crate::problem::{Problem, sort_as_read};
use crate::tree::{Include, Source, Statement, Tree, Word};

/// The source of configuration files.
pub trait Files {
    /// The bytes of a file, by its full path.
    ///
    /// # Errors
    /// The system's error; nginx's ` failed (N: text)` is made from it.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The paths that match a `glob(3)` pattern, sorted; no match is not an error.
    ///
    /// # Errors
    /// The system's error.
    fn glob(&self, pattern: &str) -> io::Result<Vec<String>>;
}

/// Most different files of one configuration.
pub const FILES_MAX: usize = 10_000;

/// Deepest nesting of files through `include`.
pub const INCLUDE_DEPTH_MAX: usize = 64;

/// Most statements of one configuration; those of a file count each time it is included.
pub const STATEMENTS_MAX: usize = 4_000_000;

/// Most bytes that are parsed for one configuration; those of a file count each time it is included.
pub const PARSED_BYTES_MAX: u64 = 64 << 30;

/// How much one configuration may have. The default is what a server may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadBounds {
    /// Most statements; those of a file count each time it is included.
    pub statements: usize,
    /// Most bytes; those of a file count each time it is included.
    pub bytes: u64,
}

impl Default for LoadBounds {
    fn default() -> LoadBounds {
        LoadBounds { statements: STATEMENTS_MAX, bytes: PARSED_BYTES_MAX }
    }
}

/// Most problems reported for one configuration.
const LOAD_PROBLEMS_MAX: usize = 1_000;

/// Largest file in bytes: spans are 32 bits wide.
const FILE_BYTES_MAX: usize = 1 << 30;

/// Loads a configuration: `main` (a full path) with every include in place, and every lexical
/// and include problem in reading order. See nginx.org/en/docs/ngx_core_module.html#include.
///
/// Relative includes are below `conf_prefix`. For `opaque` see [`parse`].
pub fn load(files: &dyn Files, main: &str, conf_prefix: &str, opaque: &dyn Fn(&str) -> bool) -> (Tree, Vec<Problem>) {
    load_with_globals(files, main, conf_prefix, opaque, "")
}

/// Like [`load`], but reads no more than `bounds`: what exceeds them is a problem, and the rest is left out.
pub fn load_within(
    files: &dyn Files,
    main: &str,
    conf_prefix: &str,
    opaque: &dyn Fn(&str) -> bool,
    bounds: LoadBounds,
) -> (Tree, Vec<Problem>) {
    Loader::new(files, conf_prefix, opaque, bounds).whole(main, "")
}

/// Like [`load`], but reads the directives of `-g` first; empty `globals` mean no `-g`.
pub fn load_with_globals(
    files: &dyn Files,
    main: &str,
    conf_prefix: &str,
    opaque: &dyn Fn(&str) -> bool,
    globals: &str,
) -> (Tree, Vec<Problem>) {
    Loader::new(files, conf_prefix, opaque, LoadBounds::default()).whole(main, globals)
}

struct Loader<'a> {
    files: &'a dyn Files,
    conf_prefix: &'a str,
    opaque: &'a dyn Fn(&str) -> bool,
    tree: Tree,
    /// The files of the tree by their names.
    names: HashMap<String, u32>,
    problems: Vec<Problem>,
    /// The files that are being read, the main one first.
    open: Vec<u32>,
    /// Number of statements so far.
    statements: usize,
    /// Number of parsed bytes so far.
    bytes: u64,
    bounds: LoadBounds,
}

impl<'a> Loader<'a> {
    fn new(
        files: &'a dyn Files,
        conf_prefix: &'a str,
        opaque: &'a dyn Fn(&str) -> bool,
        bounds: LoadBounds,
    ) -> Loader<'a> {
        Loader {
            files,
            conf_prefix,
            opaque,
            tree: Tree::default(),
            names: HashMap::new(),
            problems: Vec::new(),
            open: Vec::new(),
            statements: 0,
            bytes: 0,
            bounds,
        }
    }

    fn whole(mut self, main: &str, globals: &str) -> (Tree, Vec<Problem>) {
        let mut root = Vec::new();
        if !globals.is_empty() {
            root.extend(self.command_line(globals));
        }
        match self.source(main) {
            Ok(file) => root.extend(self.statements_of(file, 0)),
            Err(what) => self.problems.push(Problem::nowhere(crate::Level::Emerg, what)),
        }
        let Loader { mut tree, mut problems, .. } = self;
        tree.root = root;
        tree.is_partial = problems.iter().any(|problem| problem.level == crate::Level::Emerg);
        sort_as_read(&mut problems, &tree);
        (tree, problems)
    }

    fn command_line(&mut self, globals: &str) -> Vec<Statement> {
        let file = self.next_file();
        let parsed = parse_command_line(globals.as_bytes(), file);
        self.tree.files.push(Source {
            name: "command line".to_owned(),
            bytes: globals.as_bytes().to_vec(),
            is_command_line: true,
        });
        self.problems.extend(parsed.problems);
        self.open.push(file);
        let statements = self.expand(parsed.statements, 0);
        self.open.pop();
        statements
    }

    /// Records a problem, unless there are [`LOAD_PROBLEMS_MAX`] already.
    fn report(&mut self, problem: Problem) {
        if self.problems.len() < LOAD_PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }

    fn next_file(&self) -> u32 {
        u32::try_from(self.tree.files.len()).unwrap_or(u32::MAX)
    }

    /// The index of a file, which is read if it is new; the error says why it cannot be read.
    fn source(&mut self, path: &str) -> Result<u32, String> {
        if let Some(known) = self.names.get(path) {
            return Ok(*known);
        }
        if self.tree.files.len() >= FILES_MAX {
            return Err(format!("\"{path}\" exceeds the limit of {FILES_MAX} files"));
        }
        let bytes = self.files.read(path).map_err(|error| failure("open()", path, &error))?;
        if bytes.len() > FILE_BYTES_MAX {
            return Err(format!("\"{path}\" has more than {FILE_BYTES_MAX} bytes"));
        }
        let file = self.next_file();
        let source = Source { name: path.to_owned(), bytes, is_command_line: false };
        self.tree.files.push(source);
        self.names.insert(path.to_owned(), file);
        Ok(file)
    }

    /// The statements of a file, with includes replaced.
    fn statements_of(&mut self, file: u32, block_depth: usize) -> Vec<Statement> {
        let Some(source) = self.tree.files.get(file as usize) else {
            return Vec::new();
        };
        let had_room = self.bytes <= self.bounds.bytes;
        self.bytes = self.bytes.saturating_add(source.bytes.len() as u64);
        if self.bytes > self.bounds.bytes {
            if had_room {
                let what = format!("the configuration has more than {} bytes", self.bounds.bytes);
                let at = self.tree.includes.last().map(|include| include.at);
                self.report(Problem::nowhere(crate::Level::Emerg, what).at(at));
            }
            return Vec::new();
        }
        let Parsed { statements, problems, .. } = parse(&source.bytes, file, self.opaque);
        // A file that is included twice has the same problems twice.
        if problems.first().is_some_and(|first| !self.problems.contains(first)) {
            problems.into_iter().for_each(|problem| self.report(problem));
        }
        self.open.push(file);
        let statements = self.expand(statements, block_depth);
        self.open.pop();
        statements
    }

    fn expand(&mut self, statements: Vec<Statement>, block_depth: usize) -> Vec<Statement> {
        let mut expanded = Vec::with_capacity(statements.len());
        for mut statement in statements {
            self.statements += 1;
            if self.statements > self.bounds.statements {
                if self.statements == self.bounds.statements + 1 {
                    let what = format!("the configuration has more than {} statements", self.bounds.statements);
                    self.report(Problem::emerg(what, statement.at));
                }
                break;
            }
            if statement.name == "include" {
                expanded.extend(self.include(&statement, block_depth));
                continue;
            }
            if let Some(block) = statement.block.take() {
                statement.block = Some(self.expand_block(&statement, block, block_depth + 1));
            }
            expanded.push(statement);
        }
        expanded
    }

    fn expand_block(&mut self, head: &Statement, block: Vec<Statement>, block_depth: usize) -> Vec<Statement> {
        if block_depth > BLOCK_DEPTH_MAX {
            let what = format!("blocks are nested deeper than {BLOCK_DEPTH_MAX}");
            self.report(Problem::emerg(what, head.at));
            return Vec::new();
        }
        self.expand(block, block_depth)
    }

    /// The statements that replace an `include`.
    fn include(&mut self, statement: &Statement, block_depth: usize) -> Vec<Statement> {
        let what = match (statement.args.as_slice(), statement.is_block()) {
            (_, true) => "directive \"include\" is not terminated by \";\"",
            ([path], false) => return self.include_path(statement, path, block_depth),
            (_, false) => "invalid number of arguments in \"include\" directive",
        };
        self.problems.push(Problem::emerg(what.to_owned(), statement.at));
        Vec::new()
    }

    fn include_path(&mut self, statement: &Statement, path: &Word, block_depth: usize) -> Vec<Statement> {
        let full = full_name(self.conf_prefix, &path.text);
        let paths = if glob::is_pattern(&full) {
            match self.files.glob(&full) {
                Ok(paths) => paths,
                Err(error) => {
                    let what = failure("glob()", &full, &error);
                    self.report(Problem::emerg(what, path.at));
                    return Vec::new();
                }
            }
        } else {
            vec![full]
        };

        let place = self.tree.includes.len();
        self.tree.includes.push(Include { at: statement.at, files: Vec::new() });
        let mut statements = Vec::new();
        for name in paths {
            match self.included(&name) {
                Ok(file) => {
                    if let Some(include) = self.tree.includes.get_mut(place) {
                        include.files.push(file);
                    }
                    statements.extend(self.statements_of(file, block_depth));
                }
                Err(what) => self.report(Problem::emerg(what, path.at)),
            }
        }
        statements
    }

    /// The index of an included file; an error if it is open already or too deep.
    fn included(&mut self, name: &str) -> Result<u32, String> {
        let file = self.source(name)?;
        if let Some(first) = self.open.iter().position(|open| *open == file) {
            let chain = self.open.iter().skip(first).chain([&file]);
            let names: Vec<&str> = chain
                .filter_map(|file| self.tree.files.get(*file as usize))
                .map(|source| source.name.as_str())
                .collect();
            return Err(format!("the files include each other in a circle: {}", names.join(" -> ")));
        }
        if self.open.len() >= INCLUDE_DEPTH_MAX {
            return Err(format!("include is nested more than {INCLUDE_DEPTH_MAX} deep"));
        }
        Ok(file)
    }
}

/// A name below a prefix, unless it is absolute.
fn full_name(prefix: &str, name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    let slash = if prefix.is_empty() || prefix.ends_with('/') { "" } else { "/" };
    format!("{prefix}{slash}{name}")
}

/// nginx's words for a failed system call: `open() "PATH" failed (2: No such file or directory)`.
fn failure(call: &str, path: &str, error: &io::Error) -> String {
    // In nginx, a directory opens and then cannot be read.
    let call = if error.kind() == io::ErrorKind::IsADirectory { "pread()" } else { call };
    let reason = match (error.raw_os_error(), error.kind()) {
        (Some(code), _) => {
            let text = error.to_string();
            let text = text.strip_suffix(&format!(" (os error {code})")).unwrap_or(&text);
            format!("{code}: {text}")
        }
        (None, io::ErrorKind::NotFound) => "2: No such file or directory".to_owned(),
        (None, _) => error.to_string(),
    };
    format!("{call} \"{path}\" failed ({reason})")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;
    use crate::MemoryFiles;

    fn whats(problems: &[Problem]) -> Vec<&str> {
        problems.iter().map(|problem| problem.what.as_str()).collect()
    }

    #[test]
    fn includes_end_at_their_depth() {
        let mut files = MemoryFiles::new();
        for depth in 0..=INCLUDE_DEPTH_MAX {
            files = files.with(&format!("/{depth}"), format!("include {};\n", depth + 1));
        }
        let (_, problems) = load(&files, "/0", "/", &|_| false);
        assert_eq!(whats(&problems), ["include is nested more than 64 deep"]);
    }

    #[test]
    fn included_blocks_count_for_the_depth_of_blocks() {
        let nested = |depth: usize, inner| format!("{}{inner}{}", "a {".repeat(depth), "}".repeat(depth));
        let load = |depth| {
            let files = MemoryFiles::new()
                .with("/0", nested(depth, "include 1;"))
                .with("/1", nested(BLOCK_DEPTH_MAX / 2, "b;"));
            load(&files, "/0", "/", &|_| false).1
        };
        assert_eq!(load(BLOCK_DEPTH_MAX / 2), []);
        let problems = load(BLOCK_DEPTH_MAX / 2 + 1);
        assert_eq!(whats(&problems), ["blocks are nested deeper than 256"]);
    }

    #[test]
    fn files_that_include_each_other_many_times_end_too() {
        let mut files = MemoryFiles::new();
        for depth in 0..20 {
            let twice = format!("include {0};\ninclude {0};\n", depth + 1);
            files = files.with(&format!("/{depth}"), twice);
        }
        files = files.with("/20", "a;");
        let within = |bounds| load_within(&files, "/0", "/", &|_| false, bounds);
        let (tree, problems) = within(LoadBounds { statements: 500, ..LoadBounds::default() });
        assert_eq!(whats(&problems), ["the configuration has more than 500 statements"]);
        assert_eq!(tree.files.len(), 21);
        let (tree, problems) = within(LoadBounds { bytes: 1_000, ..LoadBounds::default() });
        assert_eq!(whats(&problems), ["the configuration has more than 1000 bytes"]);
        assert!(tree.is_partial && tree.root.len() < 1_000);
    }

    #[test]
    fn failed_calls_are_told_as_nginx_does() {
        let told = |error: io::Error| failure("open()", "/x", &error);
        let denied = "open() \"/x\" failed (13: Permission denied)";
        assert_eq!(told(io::Error::from_raw_os_error(13)), denied);
        let directory = "pread() \"/x\" failed (21: Is a directory)";
        assert_eq!(told(io::Error::from_raw_os_error(21)), directory);
        let missing = "open() \"/x\" failed (2: No such file or directory)";
        assert_eq!(told(io::ErrorKind::NotFound.into()), missing);
    }

    #[test]
    fn relative_names_are_below_the_prefix() {
        assert_eq!(full_name("/etc/nginx/", "a"), "/etc/nginx/a");
        assert_eq!(full_name("/etc/nginx", "a"), "/etc/nginx/a");
        assert_eq!(full_name("/etc/nginx", "/a"), "/a");
        assert_eq!(full_name("", "a"), "a");
    }
}
