//! weir beside nginx: the same configuration with other addresses, pid file, logs and directories.
//!
//! The files keep their names and their lines, so that relative paths and places in messages stay. A child process
//! reads the changed bytes from a temporary directory in the files' place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use weir_conf::edit::{self, Edit};
use weir_conf::{Files, Span, Statement, Tree};
use weir_edge::keeper::here::Here;
use weir_edge::keeper::{Keeper, load_recorded};
use weir_edge::load::{ConfOrigin, Dashboard};
use weir_edge::log_files;
use weir_http::hold::paths::Paths;
use weir_net::{clock, log, process, worker};
use weir_words::{Said, Words, said, words};

use crate::doors::{self, Door};

/// Longest wait until weir listens.
const START_MAX: Duration = Duration::from_secs(15);
/// Time between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Longest time in which weir ends by itself.
const END_MAX: Duration = Duration::from_secs(3);
/// Most bytes of an error log that are shown.
const SAID_MAX: usize = 2000;
/// Most names of directories that are tried.
const ROOMS_MAX: usize = 100;
/// The list of files, in the temporary directory.
const ORDERS: &str = "orders.json";
/// The log of weir beside nginx.
const LOG: &str = "error.log";

/// Directives that would write into the user's files, send something more than the requests, or that the process has
/// no use for.
const DROPPED: &[&str] = &[
    "access_log",
    "daemon",
    "dashboard",
    "health_check",
    "lock_file",
    "master_process",
    "mirror",
    "mirror_request_body",
    "otel_trace",
    "pid",
    "post_action",
    "proxy_store",
    "fastcgi_store",
    "uwsgi_store",
    "scgi_store",
    "worker_cpu_affinity",
    "worker_priority",
    "worker_processes",
    "worker_rlimit_core",
    "working_directory",
];
/// Directives whose first argument is a directory in which weir writes.
const WRITTEN: &[&str] = &[
    "client_body_temp_path",
    "fastcgi_cache_path",
    "fastcgi_temp_path",
    "proxy_cache_path",
    "proxy_temp_path",
    "scgi_cache_path",
    "scgi_temp_path",
    "uwsgi_cache_path",
    "uwsgi_temp_path",
];
/// Blocks that are not HTTP, which nobody asks here.
const OTHER_PROTOCOLS: &[&str] = &["mail", "stream"];
/// Directives with which weir would act on its own towards others.
const ACTING: &[(&str, Words)] = &[
    ("acme_issuer", words("weir would order certificates from a CA", "weir가 CA에 인증서를 주문하게 됩니다")),
    (
        "keyval_zone",
        words("weir would share or write the pairs of the zone", "weir가 zone의 값을 공유하거나 파일에 쓰게 됩니다"),
    ),
    (
        "state",
        words("weir would write the state of an upstream group", "weir가 업스트림 그룹의 상태를 파일에 쓰게 됩니다"),
    ),
];
/// Parameters of `listen` that change answers; the others are about the socket.
const KEPT: &[&str] = &["default", "default_server", "http2", "proxy_protocol", "ssl"];
/// Further directives of the process, with `-g`.
const GLOBALS: &str = "worker_processes 1;";

/// A running weir, and its directory. Both end when it is dropped.
pub struct Beside {
    child: Child,
    room: PathBuf,
}

impl Beside {
    /// Starts weir on the doors' addresses, and waits until it listens.
    ///
    /// # Errors
    /// A sentence for the user, with weir's own messages.
    pub fn start(program: &[OsString], tree: &Tree, origin: &ConfOrigin, doors: &[Door]) -> Result<Beside, Said> {
        let room = room().map_err(Said::from)?;
        let started = furnish(&room, tree, origin, doors).and_then(|()| spawn(program, &room));
        let child = started.map_err(|why| {
            let _ = fs::remove_dir_all(&room);
            Said::from(why)
        })?;
        let mut beside = Beside { child, room };
        beside.wait(doors)?;
        Ok(beside)
    }

    /// The directory with its log.
    pub fn log(&self) -> String {
        tail(&self.room.join(LOG))
    }

    fn wait(&mut self, doors: &[Door]) -> Result<(), Said> {
        let began = clock::precise();
        let is_open = |door: &&Door| TcpStream::connect(door.weir).is_err();
        while doors.iter().any(|door| is_open(&door)) {
            let ended = self.child.try_wait().map_err(|error| Said::from(format!("weir: {error}")))?;
            if ended.is_some() || clock::precise() - began > START_MAX {
                let stderr = self.child.stderr.take().map(read_some).unwrap_or_default();
                let log = stderr + &self.log();
                return Err(said!(
                    "weir did not start beside nginx: {}",
                    "weir가 nginx 옆에서 시작하지 않았습니다: {}",
                    log.trim()
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // The child ends when its standard input closes.
        drop(self.child.stdin.take());
        let began = clock::precise();
        while matches!(self.child.try_wait(), Ok(None)) {
            if clock::precise() - began > END_MAX {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            std::thread::sleep(LOOK);
        }
        let _ = fs::remove_dir_all(&self.room);
    }
}

/// Why weir cannot stand beside nginx with this configuration. `None`: it can.
pub fn obstacle(tree: &Tree) -> Option<Said> {
    let mut found = None;
    visit(&tree.root, &mut Vec::new(), &mut |statement, around| {
        let acts = ACTING.iter().find(|(name, _)| statement.name == **name);
        // `state` is a word of other blocks too.
        let counts = |name: &str| name != "state" || around.last() == Some(&"upstream");
        if let Some((name, why)) = acts.filter(|(name, _)| counts(name)) {
            found.get_or_insert_with(|| {
                let place = weir_conf::places(&[statement.at], tree);
                let Words { en, ko } = why;
                said!("{name} in {place}: {en}", "{place}의 {name}: {ko}")
            });
        }
    });
    found
}

/// Calls `see` for each statement, with the names of the blocks around it.
fn visit<'t>(statements: &'t [Statement], around: &mut Vec<&'t str>, see: &mut dyn FnMut(&'t Statement, &[&'t str])) {
    for statement in statements {
        see(statement, around);
        around.push(&statement.name.text);
        visit(statement.children(), around, see);
        around.pop();
    }
}

/// The changes for a life beside nginx.
fn edits(tree: &Tree, doors: &[Door], room: &Path) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    let mut directories: BTreeMap<String, usize> = BTreeMap::new();
    visit(&tree.root, &mut Vec::new(), &mut |statement, around| {
        if around.first().is_some_and(|outer| OTHER_PROTOCOLS.contains(outer)) {
            return;
        }
        let name = statement.name.text.as_str();
        let edit = match name {
            _ if around.is_empty() && OTHER_PROTOCOLS.contains(&name) => blank(tree, statement),
            _ if DROPPED.contains(&name) && around.last() != Some(&"types") => blank(tree, statement),
            "error_log" => {
                let level: String = statement.args.iter().skip(1).map(|word| format!(" {}", word.text)).collect();
                let level = if level.contains("debug") { String::new() } else { level };
                Some(edit::replace(statement, &format!("error_log {}{level}", room.join(LOG).display())))
            }
            "listen" if around.ends_with(&["http", "server"]) => {
                Some(edit::replace(statement, &listen(statement, doors, room)))
            }
            _ if WRITTEN.contains(&name) => statement.arg(0).map(|word| {
                // The same directory stays the same directory.
                let number = directories.len();
                let number = directories.entry(word.text.clone()).or_insert(number);
                let with = weir_conf::quote(room.join(format!("directory-{number}")).display().to_string().as_bytes());
                Edit { file: word.at.file, span: word.at.span, with }
            }),
            "http" if around.is_empty() => edit::insert_into(tree, statement, "access_log off").map(on_one_line),
            "server" if around == ["http"] && statement.named("listen").next().is_none() => {
                let implied = doors.iter().find(|door| {
                    door.address.tcp().is_some_and(|tcp| tcp.ip().is_unspecified() && [80, 8000].contains(&tcp.port()))
                });
                implied
                    .and_then(|door| edit::insert_into(tree, statement, &format!("listen {}", door.weir)))
                    .map(on_one_line)
            }
            _ => None,
        };
        edits.extend(edit);
    });
    edits.sort_by_key(|edit| (edit.file, edit.span.start, edit.span.end));
    // A file that is included twice has each statement twice.
    edits.dedup();
    edits
}

/// An inserted statement stays on the line of its block: lines keep their numbers.
fn on_one_line(edit: Edit) -> Edit {
    let with = String::from_utf8_lossy(&edit.with).trim().to_owned();
    Edit { with: format!(" {with}").into_bytes(), ..edit }
}

/// Removes a statement and keeps the line breaks in it.
fn blank(tree: &Tree, statement: &Statement) -> Option<Edit> {
    let span = Span { start: statement.at.span.start, end: statement.end.span.end };
    let source = tree.source(&statement.at).filter(|_| statement.at.file == statement.end.file)?;
    let breaks = span.of(&source.bytes).iter().filter(|byte| **byte == b'\n').count();
    Some(Edit { file: statement.at.file, span, with: vec![b'\n'; breaks] })
}

/// The `listen` statements in place of one.
fn listen(statement: &Statement, doors: &[Door], room: &Path) -> String {
    // The requests go by TCP. A server whose only listeners are those of QUIC must not take port 80.
    if statement.args.iter().skip(1).any(|word| word.text == "quic") {
        return format!("listen unix:{}", room.join(format!("quic-{}.sock", statement.at.span.start)).display());
    }
    let kept: String = statement
        .args
        .iter()
        .skip(1)
        .filter(|word| KEPT.contains(&word.text.as_str()))
        .map(|word| format!(" {}", word.text))
        .collect();
    let addresses = doors::addresses(statement.text(0));
    let of =
        |address| doors.iter().find(|door| door.address == address).map(|door| format!("listen {}{kept}", door.weir));
    let all: Vec<String> = addresses.into_iter().filter_map(of).collect();
    match all.is_empty() {
        // Nobody reaches it there; without any `listen` the server would take port 80.
        true => format!("listen unix:{}", room.join("unasked.sock").display()),
        false => all.join("; "),
    }
}

/// A new directory. One of that name may be left of a run that was killed.
fn room() -> Result<PathBuf, String> {
    let base = std::env::temp_dir();
    for number in 0..ROOMS_MAX {
        let room = base.join(format!("weir-adopt-{}-{number}", std::process::id()));
        // Workers of another user pass through, but only root reads the files.
        match fs::DirBuilder::new().mode(0o711).create(&room) {
            Ok(()) => return Ok(room),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(format!("{}: {error}", room.display())),
        }
    }
    Err(format!("{}: too many directories of killed runs", base.display()))
}

/// Writes the changed files and their list.
fn furnish(room: &Path, tree: &Tree, origin: &ConfOrigin, doors: &[Door]) -> Result<(), String> {
    let edits = edits(tree, doors, room);
    let (mut files, mut globals) = (serde_json::Map::new(), origin.globals.clone());
    for (number, source) in tree.files.iter().enumerate() {
        let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == number).collect();
        let bytes = edit::apply(&source.bytes, &own).map_err(|error| format!("{}: {error}", source.name))?;
        if source.is_command_line {
            globals = String::from_utf8_lossy(&bytes).into_owned();
            continue;
        }
        let place = room.join(number.to_string());
        secret(&place, &bytes)?;
        files.insert(source.name.clone(), number.to_string().into());
    }
    let path = |name: &str| room.join(name).display().to_string();
    let orders = json!({
        "file": origin.file,
        "globals": format!("{globals} {GLOBALS}"),
        "prefix": origin.paths.prefix,
        "conf_prefix": origin.paths.conf_prefix,
        "temporary": path("") ,
        "pid": path("pid"),
        "error_log": path(LOG),
        "files": files,
    });
    let place = room.join(ORDERS);
    secret(&place, orders.to_string().as_bytes())
}

/// Writes a file that only its owner may read: a configuration has passwords.
fn secret(place: &Path, bytes: &[u8]) -> Result<(), String> {
    new_secret(place)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(|error| format!("{}: {error}", place.display()))
}

/// A new file that only its owner may read, from its first moment on.
fn new_secret(place: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)
}

fn spawn(program: &[OsString], room: &Path) -> Result<Child, String> {
    let (first, others) = program.split_first().ok_or("weir has no program")?;
    let mut command = Command::new(first);
    command.args(others).args(["adopt", "--beside"]).arg(room);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    process::detach(&mut command);
    command.spawn().map_err(|error| format!("{}: {error}", first.display()))
}

/// The child: serves the configuration in a directory that [`Beside::start`] filled, until standard input closes.
///
/// # Errors
/// A sentence for the parent's report.
pub fn serve(room: &Path) -> Result<(), String> {
    let place = room.join(ORDERS);
    let text = fs::read_to_string(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let orders: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", place.display()))?;
    let text = |name: &str| orders[name].as_str().unwrap_or_default().to_owned();
    let origin = ConfOrigin {
        file: text("file"),
        globals: text("globals"),
        paths: Paths {
            prefix: text("prefix"),
            conf_prefix: text("conf_prefix"),
            access_log: None,
            temporary: Some(text("temporary")),
        },
        pid: text("pid"),
        error_log: text("error_log"),
        dashboard: Dashboard::default(),
    };
    let held = orders["files"].as_object().into_iter().flatten();
    let held = held.filter_map(|(name, number)| Some((name.clone(), room.join(number.as_str()?)))).collect();
    log::open_default(Path::new(&origin.error_log));
    let files = Held(held);
    let (loaded, answers) = load_recorded(&origin, &files, 1);
    let said = |problem: &weir_conf::Problem| problem.sentence(&loaded.tree);
    let Some(conf) = loaded.conf else {
        let all: Vec<String> = loaded.problems.iter().map(said).collect();
        return Err(all.join("; "));
    };
    if let Some(problem) = log_files::first_unopened(&conf, &loaded.tree) {
        return Err(said(&problem));
    }
    let signals = process::signals().map_err(|error| format!("signal handlers failed {}", log::Os(&error)))?;
    let keeper = Keeper::start(origin, (conf, loaded.tree, answers), None, Here::new)?;
    keeper.write_pid()?;
    let until_closed = || {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    };
    worker::block_aside("parent", until_closed).map_err(|error| error.to_string())?;
    keeper.serve(signals, &files);
    Ok(())
}

/// The changed files, in the place of those on the disk.
struct Held(BTreeMap<String, PathBuf>);

impl Files for Held {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.get(path).map_or(Path::new(path), PathBuf::as_path))
    }

    fn glob(&self, pattern: &str) -> io::Result<Vec<String>> {
        let list = |directory: &str| -> io::Result<Vec<String>> {
            Ok(fs::read_dir(directory)?.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        };
        Ok(weir_conf::glob::expand(pattern, &list, &|path| Path::new(path).exists()))
    }
}

fn read_some(from: impl Read) -> String {
    let mut bytes = Vec::new();
    // The parent shows the bytes that arrived, even if reading the rest fails.
    let _ = from.take(SAID_MAX as u64).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(text.get(text.len().saturating_sub(SAID_MAX)..).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;
    use weir_net::Address;

    #[test]
    fn the_copies_are_secret_from_their_first_moment() {
        use std::os::unix::fs::PermissionsExt;
        let room = room().unwrap();
        let empty = new_secret(&room.join("a")).unwrap();
        assert_eq!(empty.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // Somebody else's file of the name is not written to.
        assert!(secret(&room.join("a"), b"password").is_err());
        let tree = tree("user root; include b;");
        let origin = ConfOrigin { file: "/f".to_owned(), ..ConfOrigin::default() };
        furnish(&room, &tree, &origin, &[]).unwrap();
        let files: Vec<_> = fs::read_dir(&room).unwrap().map(|entry| entry.unwrap().metadata().unwrap()).collect();
        assert!(files.len() == 3 && files.iter().all(|file| file.permissions().mode() & 0o777 == 0o600));
        fs::remove_dir_all(room).unwrap();
    }

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/f", text), "/f", "/", &|_| false).0
    }

    fn changed(text: &str) -> String {
        let tree = tree(text);
        let address = Address::Tcp("0.0.0.0:80".parse().unwrap());
        let door = Door {
            address,
            nginx: None,
            weir: "127.0.0.1:4000".parse().unwrap(),
            tls: false,
            proxy_protocol: false,
            listen: 0,
        };
        let edits = edits(&tree, &[door], Path::new("/room"));
        let bytes = edit::apply(&tree.files[0].bytes, &edits.iter().collect::<Vec<_>>()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_would_touch_the_user_s_files_is_changed_and_lines_stay() {
        let text = changed(
            "pid /run/x.pid;\nerror_log /var/e.log warn;\nevents { }\nhttp {\naccess_log\n/var/a.log;\nproxy_cache_path /var/cache levels=1:2 keys_zone=a:1m;\nserver {\nlisten 80 default_server reuseport;\nlisten 81;\naccess_log /b;\nlocation / { proxy_store on; mirror /m; proxy_pass http://a; }\n}\nserver { }\n}\nstream {\nserver { listen 9; }\n}\n",
        );
        assert_eq!(
            text,
            "\nerror_log /room/error.log warn;\nevents { }\nhttp { access_log off;\n\n\nproxy_cache_path /room/directory-0 levels=1:2 keys_zone=a:1m;\nserver {\nlisten 127.0.0.1:4000 default_server;\nlisten unix:/room/unasked.sock;\n\nlocation / {   proxy_pass http://a; }\n}\nserver { listen 127.0.0.1:4000; }\n}\n\n\n\n"
        );
    }

    #[test]
    fn a_listener_of_quic_is_none_of_tcp() {
        let text = changed("http { server { listen 80; listen 80 quic; listen 81 quic; } }");
        let own = "listen 127.0.0.1:4000; listen unix:/room/quic-27.sock; listen unix:/room/quic-43.sock;";
        assert_eq!(text, format!("http {{ access_log off; server {{ {own} }} }}"));
    }

    #[test]
    fn a_directive_that_acts_on_its_own_is_an_obstacle() {
        assert_eq!(obstacle(&tree("http { server { listen 80; } }")), None);
        let said = obstacle(&tree("http {\nupstream u { state /x; } }")).unwrap();
        assert!(said.en().starts_with("state in /f:2: weir would write"), "{said:?}");
        assert!(said.ko().starts_with("/f:2의 state: weir가 업스트림"), "{said:?}");
        assert_eq!(obstacle(&tree("http { map $a $b { state 1; } }")), None);
    }
}
