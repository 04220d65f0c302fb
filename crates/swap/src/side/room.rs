//! The directory of a server that swap starts: its changed files, its logs, its temporary files.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use weir_conf::edit::{self, Edit};
use weir_conf::{Include, Tree};
use weir_lab::beside;

use super::conf::SideConf;
use super::edits::{self, AccessLogPlace, LOG, Moved, Surroundings};

/// Most names of directories that are tried.
const ROOMS_MAX: usize = 100;
/// Most entries of the directory of a configuration that another program finds beside its copy.
const ENTRIES_MAX: usize = 10_000;
/// Most bytes of an error log that are shown.
const SAID_MAX: usize = 2000;
/// The list of files, in the directory.
pub(super) const ORDERS: &str = "orders.json";
/// The messages of a program until it has opened its error log.
pub(super) const STDERR: &str = "stderr.txt";
/// The pid file.
const PID: &str = "pid";
/// Further directives of the process, with `-g`.
const GLOBALS: &str = "worker_processes 1;";

/// Further changes to a configuration before a server starts with it: edits of the tree's files. The path is that of the
/// server's own directory, in which it may write.
pub type ServerChanges<'c> = &'c dyn Fn(&Tree, &Path) -> Vec<Edit>;

/// The wishes for a server.
#[derive(Clone, Copy, Default)]
pub struct ServerWish<'c> {
    /// Further changes. They take the place of swap's own changes to the same bytes.
    pub changes: Option<ServerChanges<'c>>,
    /// The server writes its access logs, into its own directory, and taps stand between it and its origins. Otherwise
    /// it writes none, and there are no taps.
    pub is_watched: bool,
}

/// A new directory; it is removed with everything in it when this is dropped.
pub(super) struct Room(PathBuf);

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Room {
    /// A new directory. One of that name may be left of a run that was killed.
    pub(super) fn new() -> Result<Room, String> {
        let base = std::env::temp_dir();
        for number in 0..ROOMS_MAX {
            let place = base.join(format!("weir-swap-{}-{number}", std::process::id()));
            match passable(&place) {
                Ok(()) => return Ok(Room(place)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(format!("{}: {error}", place.display())),
            }
        }
        Err(format!("{}: too many directories of killed runs", base.display()))
    }

    /// Its path.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The end of a file in it.
    pub(super) fn tail(&self, name: &str) -> String {
        let text = fs::read(self.0.join(name)).unwrap_or_default();
        String::from_utf8_lossy(text.get(text.len().saturating_sub(SAID_MAX)..).unwrap_or_default()).into_owned()
    }

    /// Writes the changed files and their list. Returns the access logs.
    pub(super) fn furnish(
        &self,
        conf: &SideConf,
        moved: &[Moved],
        wish: &ServerWish<'_>,
    ) -> Result<Vec<AccessLogPlace>, String> {
        let (room, tree) = (self.0.as_path(), &conf.tree);
        let arguments = conf.program.other.as_ref().map(|other| other.build.arguments.as_slice());
        let around = Surroundings { room, moved, has_logs: wish.is_watched, arguments };
        let (mut own, logs) = edits::edits(tree, &around);
        if arguments.is_some() {
            let mut others = upward(tree, &conf.origin.paths.conf_prefix);
            others.extend(tree.includes.iter().map(|include| included(include, room)));
            // A statement in a block that goes has no edit of its own.
            own = edits::together(others, own);
        }
        let others = wish.changes.map(|changes| changes(tree, room)).unwrap_or_default();
        let mut all = edits::together(own, others);
        all.sort_by_key(|edit| (edit.file, edit.span.start, edit.span.end));
        all.dedup();
        let (files, globals) = self.files(tree, &all, &conf.origin.globals)?;
        let orders = match &conf.program.other {
            None => self.of_weir(conf, files, &globals),
            Some(other) => {
                let main = self.copy_of_directory(conf)?;
                let own_log = tree.named("error_log").next().is_none().then(|| self.path_of(LOG));
                let own_log = own_log.map(|path| format!("error_log {path};")).unwrap_or_default();
                let flags =
                    format!("daemon off; master_process on; pid {}; {own_log} {globals} {GLOBALS}", self.path_of(PID));
                json!({ "other": other.path, "conf": main, "prefix": conf.origin.paths.prefix, "globals": flags })
            }
        };
        secret(&room.join(ORDERS), orders.to_string().as_bytes())?;
        Ok(logs)
    }

    fn path_of(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The files with the changes, by their names; and the directives of `-g`.
    fn files(&self, tree: &Tree, edits: &[Edit], globals: &str) -> Result<(Map<String, Value>, String), String> {
        let (mut files, mut globals) = (Map::new(), globals.to_owned());
        for (number, source) in tree.files.iter().enumerate() {
            let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == number).collect();
            let bytes = edit::apply(&source.bytes, &own).map_err(|error| format!("{}: {error}", source.name))?;
            if source.is_command_line {
                globals = String::from_utf8_lossy(&bytes).into_owned();
                continue;
            }
            secret(&self.0.join(number.to_string()), &bytes)?;
            files.insert(source.name.clone(), number.to_string().into());
        }
        Ok((files, globals))
    }

    fn of_weir(&self, conf: &SideConf, files: Map<String, Value>, globals: &str) -> Value {
        let origin = &conf.origin;
        json!({
            "file": origin.file,
            "globals": format!("{globals} {GLOBALS}"),
            "prefix": origin.paths.prefix,
            "conf_prefix": origin.paths.conf_prefix,
            "temporary": self.path_of(""),
            "pid": self.path_of(PID),
            "error_log": self.path_of(LOG),
            "files": files,
        })
    }

    /// A directory whose entries are those of the configuration's directory, so that relative names of certificates and
    /// password files lead there. Returns the main file in it.
    fn copy_of_directory(&self, conf: &SideConf) -> Result<String, String> {
        let place = self.0.join("conf");
        let failed = |error: io::Error| format!("{}: {error}", place.display());
        passable(&place).map_err(failed)?;
        let main = conf.tree.files.iter().position(|source| !source.is_command_line).unwrap_or(0);
        let name = conf.origin.file.rsplit('/').next().unwrap_or_default();
        fs::rename(self.0.join(main.to_string()), place.join(name)).map_err(failed)?;
        let entries = fs::read_dir(&conf.origin.paths.conf_prefix).into_iter().flatten().flatten().take(ENTRIES_MAX);
        for entry in entries.filter(|entry| entry.file_name() != name) {
            symlink(entry.path(), place.join(entry.file_name())).map_err(failed)?;
        }
        Ok(place.join(name).display().to_string())
    }
}

/// Absolute names in the place of those that begin above the directory of the configuration: the copy has another one.
fn upward(tree: &Tree, conf_prefix: &str) -> Vec<Edit> {
    let mut all = Vec::new();
    edits::visit(&tree.root, &mut Vec::new(), &mut |statement, _| {
        if let Some(word) = beside::relative(statement).filter(|word| word.text.starts_with("../")) {
            let with = weir_conf::quote(format!("{conf_prefix}{}", word.text).as_bytes());
            all.push(Edit { file: word.at.file, span: word.at.span, with });
        }
    });
    all
}

/// The statements in the place of an `include`.
fn included(include: &Include, room: &Path) -> Edit {
    let copies = include.files.iter().map(|file| format!("include {}", room.join(file.to_string()).display()));
    let copies: Vec<String> = copies.collect();
    let with = match copies.is_empty() {
        // nginx takes a pattern that matches nothing.
        true => format!("include {}", room.join("none*").display()),
        false => copies.join("; "),
    };
    Edit { file: include.at.file, span: include.at.span, with: with.into_bytes() }
}

/// Workers of another user pass through, but only the owner reads the files.
fn passable(place: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o711).create(place)
}

/// Writes a file that only its owner may read: a configuration has passwords.
fn secret(place: &Path, bytes: &[u8]) -> Result<(), String> {
    new_secret(place)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|error| format!("{}: {error}", place.display()))
}

/// A new file that only its owner may read, from its first moment on.
pub(super) fn new_secret(place: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use crate::side::program::{OtherProgram, SideProgram};
    use weir_conf::MemoryFiles;
    use weir_doctor::Build;
    use weir_edge::load::ConfOrigin;
    use weir_http::hold::paths::Paths;

    const MAIN: &str = "events { } http { include b/*; include c; } stream { include c; }";

    fn side(directory: &Path, other: Option<OtherProgram>) -> SideConf {
        let conf_prefix = format!("{}/", directory.display());
        let files = MemoryFiles::new()
            .with(&format!("{conf_prefix}f"), MAIN)
            .with(&format!("{conf_prefix}c"), "server { listen 80; }");
        let paths =
            Paths { prefix: "/p/".to_owned(), conf_prefix: conf_prefix.clone(), access_log: None, temporary: None };
        let origin = ConfOrigin { file: format!("{conf_prefix}f"), paths, ..ConfOrigin::default() };
        SideConf::of(origin, SideProgram { own: Vec::new(), other }, &files).unwrap()
    }

    fn furnished(directory: &Path, other: Option<OtherProgram>) -> Room {
        let room = Room::new().unwrap();
        let moved = [("0.0.0.0:80".parse().map(weir_net::Address::Tcp).unwrap(), "127.0.0.1:4000".parse().unwrap())];
        room.furnish(&side(directory, other), &moved, &ServerWish::default()).unwrap();
        room
    }

    #[test]
    fn the_copies_are_secret_from_their_first_moment() {
        let room = Room::new().unwrap();
        let empty = new_secret(&room.path().join("a")).unwrap();
        assert_eq!(empty.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // Somebody else's file of the name is not written to.
        assert!(secret(&room.path().join("a"), b"password").is_err());
        let room = furnished(Path::new("/e"), None);
        let files: Vec<_> =
            fs::read_dir(room.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap()).collect();
        assert!(files.len() == 3 && files.iter().all(|file| file.permissions().mode() & 0o777 == 0o600));
    }

    #[test]
    fn names_that_begin_above_the_configuration_become_absolute() {
        let text = "http { auth_basic_user_file ../users; server { proxy_ssl_certificate ../a/c.pem; root ../html; \
                    ssl_certificate c.pem; } } stream { include more/*; ssl_crl ../r.pem; }";
        let (tree, _) = weir_conf::load(&MemoryFiles::new().with("/e/f", text), "/e/f", "/e/", &|_| false);
        let all = upward(&tree, "/e/");
        let with: Vec<&str> = all.iter().map(|edit| std::str::from_utf8(&edit.with).unwrap()).collect();
        assert_eq!(with, ["/e/../users", "/e/../a/c.pem", "/e/../r.pem"]);
        // A block that goes takes the edits in it along.
        let around = Surroundings { room: Path::new("/room"), moved: &[], has_logs: true, arguments: None };
        let own = edits::edits(&tree, &around).0;
        let others = all.into_iter().chain(tree.includes.iter().map(|one| included(one, Path::new("/room")))).collect();
        let mut both = edits::together(others, own);
        both.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let bytes = edit::apply(&tree.files[0].bytes, &both.iter().collect::<Vec<_>>()).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("/e/../users") && !text.contains("r.pem"), "{text}");
    }

    #[test]
    fn another_program_finds_copies_of_all_files_and_what_is_beside_them() {
        let directory = Room::new().unwrap();
        fs::write(directory.path().join("cert.pem"), "secret").unwrap();
        let build = Build::read("nginx version: nginx/1.22.1\nconfigure arguments: --prefix=/p\n").unwrap();
        let room = furnished(directory.path(), Some(OtherProgram { path: PathBuf::from("/usr/sbin/nginx"), build }));
        let main = fs::read_to_string(room.path().join("conf/f")).unwrap();
        let shown = room.path().display();
        assert!(main.contains(&format!("include {shown}/none*; include {shown}/1;")), "{main}");
        // The block `stream` is left out, with the `include` in it.
        assert!(!main.contains("stream") && main.matches("include").count() == 2, "{main}");
        assert_eq!(fs::read_to_string(room.path().join("conf/cert.pem")).unwrap(), "secret");
        assert_eq!(fs::read_to_string(room.path().join("1")).unwrap(), "server { listen 127.0.0.1:4000; }");
        let orders: Value = serde_json::from_slice(&fs::read(room.path().join(ORDERS)).unwrap()).unwrap();
        assert_eq!(orders["prefix"], "/p/");
        assert!(orders["globals"].as_str().unwrap().contains("error_log /"), "{orders}");
        let path = room.path().to_owned();
        drop(room);
        assert!(!path.exists());
    }
}
