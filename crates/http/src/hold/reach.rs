//! The places in the file system that a configuration names: each directive adds its own. A server may open nothing else
//! (`landlock(7)`).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The part of a name before its first variable, and whether that is the whole name (`Template::beginning`).
pub type Beginning<'t> = (&'t [u8], bool);

/// Files and directories; a directory stands for all below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    reads: BTreeSet<PathBuf>,
    writes: BTreeSet<PathBuf>,
    makes: BTreeSet<PathBuf>,
}

impl Reach {
    /// Adds a file or a directory from which the server reads.
    pub fn read(&mut self, path: impl Into<PathBuf>) {
        self.reads.insert(path.into());
    }

    /// Adds the directory of a file: the server reads files beside it too.
    pub fn read_beside(&mut self, path: impl AsRef<Path>) {
        self.reads.insert(parent(path.as_ref()));
    }

    /// Adds the place from which the server reads files with such names; `true` if that is the whole file system
    /// (`Build::opens_all`). A name that is not absolute begins at `base`.
    #[must_use]
    pub fn read_named(&mut self, name: Beginning<'_>, base: &str) -> bool {
        add(&mut self.reads, place(name, base))
    }

    /// Adds a directory in which the server makes, changes and removes files.
    pub fn write(&mut self, directory: impl Into<PathBuf>) {
        self.writes.insert(directory.into());
    }

    /// Adds the place in which the server writes files with such names; `true` if that is the whole file system. A name that
    /// is not absolute begins at `base`.
    #[must_use]
    pub fn write_named(&mut self, name: Beginning<'_>, base: &str) -> bool {
        let place = place(name, base);
        add(&mut self.writes, if name.1 { parent(&place) } else { place })
    }

    /// Adds a directory with such a name, in which the server writes; `true` if that is the whole file system. A name that is
    /// not absolute begins at `base`.
    #[must_use]
    pub fn write_under(&mut self, name: Beginning<'_>, base: &str) -> bool {
        add(&mut self.writes, place(name, base))
    }

    /// Adds a file that the server writes and replaces: it makes the new one beside it.
    pub fn write_file(&mut self, path: impl AsRef<Path>) {
        self.writes.insert(parent(path.as_ref()));
    }

    /// Adds a directory of the server's own, which the keeper makes.
    pub fn make(&mut self, directory: impl Into<PathBuf>) {
        let directory = directory.into();
        self.writes.insert(directory.clone());
        self.makes.insert(directory);
    }

    /// From where the server reads.
    pub fn reads(&self) -> impl Iterator<Item = &Path> {
        self.reads.iter().map(PathBuf::as_path)
    }

    /// The directories in which the server writes.
    pub fn writes(&self) -> impl Iterator<Item = &Path> {
        self.writes.iter().map(PathBuf::as_path)
    }

    /// The directories that the keeper makes.
    pub fn makes(&self) -> impl Iterator<Item = &Path> {
        self.makes.iter().map(PathBuf::as_path)
    }

    /// Whether the server reads at this path; no for a path with `..` or one that is not absolute.
    pub fn has_read(&self, path: &Path) -> bool {
        path.is_absolute()
            && path.components().all(|part| part != Component::ParentDir)
            && path.ancestors().any(|above| self.reads.contains(above))
    }

    /// A directory in which the server writes and `before` does not.
    pub fn new_write<'r>(&'r self, before: &Reach) -> Option<&'r Path> {
        self.writes().find(|path| !path.ancestors().any(|above| before.writes.contains(above)))
    }
}

/// Adds a place; `true` if it is the whole file system.
fn add(places: &mut BTreeSet<PathBuf>, place: PathBuf) -> bool {
    let is_all = place == Path::new("/");
    places.insert(place);
    is_all
}

/// The directory that all files of such a name are below, or the file itself if the name has no variables.
fn place((beginning, is_whole): Beginning<'_>, base: &str) -> PathBuf {
    // The name that a variable ends is not whole.
    let end = if is_whole {
        beginning.len()
    } else {
        beginning.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1)
    };
    let text = beginning.get(..end).unwrap_or_default();
    // A variable at the beginning may have any value.
    if text.is_empty() { PathBuf::from("/") } else { Path::new(base).join(OsStr::from_bytes(text)) }
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(name: &str) -> Beginning<'_> {
        match name.find('$') {
            Some(at) => (&name.as_bytes()[..at], false),
            None => (name.as_bytes(), true),
        }
    }

    #[test]
    fn a_name_with_variables_is_somewhere_below_its_fixed_part() {
        for (name, expected) in [
            ("/srv/www", "/srv/www"),
            ("/srv/$host/html", "/srv"),
            ("/srv/site-$host", "/srv"),
            ("/srv/$host", "/srv"),
            ("html", "/base/html"),
            ("html/$1", "/base/html"),
            ("$root", "/"),
            ("site-$host", "/"),
            ("", "/"),
        ] {
            assert_eq!(place(beginning(name), "/base/"), Path::new(expected), "{name}");
        }
    }

    #[test]
    fn a_path_is_below_its_place_and_has_no_way_out() {
        let mut reach = Reach::default();
        reach.read("/srv/www");
        for (path, is_in) in [
            ("/srv/www", true),
            ("/srv/www/a/b", true),
            ("/srv/www/", true),
            ("/srv/www2", false),
            ("/srv", false),
            ("/srv/www/../other", false),
            ("srv/www/a", false),
        ] {
            assert_eq!(reach.has_read(Path::new(path)), is_in, "{path}");
        }
    }

    #[test]
    fn a_name_that_begins_with_a_variable_opens_everything() {
        let mut reach = Reach::default();
        for (name, is_all) in [("$root", true), ("/$host", true), ("/srv/$host", false), ("logs/$host", false)] {
            assert_eq!(reach.read_named(beginning(name), "/base/"), is_all, "{name}");
            assert_eq!(reach.write_named(beginning(name), "/base/"), is_all, "{name}");
        }
    }

    #[test]
    fn a_directory_below_a_known_one_is_not_new() {
        let (mut before, mut next) = (Reach::default(), Reach::default());
        before.write("/var/cache");
        next.write("/var/cache/a");
        next.write_file("/var/cache/state.json");
        assert_eq!(next.new_write(&before), None);
        assert!(!next.write_named(beginning("/var/log/$host.log"), ""));
        assert_eq!(next.new_write(&before), Some(Path::new("/var/log")));
    }
}
