//! The changes with which a configuration serves beside another server: other addresses, logs and directories.
//!
//! They are edits of the files: lines keep their numbers, so that places in messages stay.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use weir_conf::edit::{self, Edit};
use weir_conf::{Span, Statement, Tree, Word};
use weir_net::Address;
use weir_words::{Said, Words, said, words};

use crate::doors;

/// The error log, in the server's directory.
pub(super) const LOG: &str = "error.log";
/// Directives that would write into the user's files, send something more than the requests, or that the process has
/// no use for; and `access_log`, which [`Surroundings`] decides.
const DROPPED: &[&str] = &[
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
/// Directives whose first argument is a directory in which the server writes.
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
/// Those of [`WRITTEN`] for which a program has a default below its own prefix, with the `configure` argument of a program
/// without the directive.
const TEMPORARY: &[(&str, &str)] = &[
    ("client_body_temp_path", "--without-http"),
    ("proxy_temp_path", "--without-http_proxy_module"),
    ("fastcgi_temp_path", "--without-http_fastcgi_module"),
    ("uwsgi_temp_path", "--without-http_uwsgi_module"),
    ("scgi_temp_path", "--without-http_scgi_module"),
];
/// Parameters of `access_log` with which lines would come late or in another form.
const LATE: &[&str] = &["buffer=", "flush=", "gzip"];
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
/// An address of the file, and the one in its place.
pub(super) type Moved = (Address, SocketAddr);

/// The surroundings of a server.
pub(super) struct Surroundings<'s> {
    /// Its own directory.
    pub(super) room: &'s Path,
    /// Its addresses.
    pub(super) moved: &'s [Moved],
    /// The access logs are written, into its own directory.
    pub(super) has_logs: bool,
    /// The `configure` arguments of a program that has its temporary directories below a prefix. `None`: it is told
    /// where they are.
    pub(super) arguments: Option<&'s [String]>,
}

/// The file in the server's directory that has the lines of an access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogPlace {
    /// The path as the configuration says it; empty for the log of a configuration that names none.
    pub named: String,
    /// The name in the directory.
    pub file: String,
}

/// Why weir cannot stand in with this configuration. `None`: it can.
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
pub(super) fn visit<'t>(
    statements: &'t [Statement],
    around: &mut Vec<&'t str>,
    see: &mut dyn FnMut(&'t Statement, &[&'t str]),
) {
    for statement in statements {
        see(statement, around);
        around.push(&statement.name.text);
        visit(statement.children(), around, see);
        around.pop();
    }
}

/// The changes, and the access logs.
pub(super) fn edits(tree: &Tree, around: &Surroundings<'_>) -> (Vec<Edit>, Vec<AccessLogPlace>) {
    let mut made = Made { tree, around, edits: Vec::new(), directories: BTreeMap::new(), logs: Vec::new() };
    visit(&tree.root, &mut Vec::new(), &mut |statement, blocks| made.statement(statement, blocks));
    let Made { mut edits, logs, .. } = made;
    edits.sort_by_key(|edit| (edit.file, edit.span.start, edit.span.end));
    // A file that is included twice has each statement twice.
    edits.dedup();
    (edits, logs)
}

/// The edits of `own` that touch no edit of `others`, and `others`.
pub(super) fn together(own: Vec<Edit>, others: Vec<Edit>) -> Vec<Edit> {
    let touches = |one: &Edit, other: &Edit| {
        one.file == other.file && one.span.start < other.span.end && other.span.start < one.span.end
    };
    let mut all: Vec<Edit> = own.into_iter().filter(|one| !others.iter().any(|other| touches(one, other))).collect();
    all.extend(others);
    all
}

/// The edits so far.
struct Made<'t> {
    tree: &'t Tree,
    around: &'t Surroundings<'t>,
    edits: Vec<Edit>,
    /// The directories by their names in the file.
    directories: BTreeMap<String, usize>,
    logs: Vec<AccessLogPlace>,
}

impl Made<'_> {
    fn statement(&mut self, statement: &Statement, blocks: &[&str]) {
        if blocks.first().is_some_and(|outer| OTHER_PROTOCOLS.contains(outer)) {
            return;
        }
        let (tree, room) = (self.tree, self.around.room);
        let name = statement.name.text.as_str();
        let edit = match name {
            _ if blocks.is_empty() && OTHER_PROTOCOLS.contains(&name) => blank(tree, statement),
            _ if DROPPED.contains(&name) && blocks.last() != Some(&"types") => blank(tree, statement),
            "access_log" => self.access_log(statement),
            "error_log" => {
                let level: String = statement.args.iter().skip(1).map(|word| format!(" {}", word.text)).collect();
                let level = if level.contains("debug") { String::new() } else { level };
                Some(edit::replace(statement, &format!("error_log {}{level}", room.join(LOG).display())))
            }
            "listen" if blocks.ends_with(&["http", "server"]) => {
                Some(edit::replace(statement, &listen(statement, self.around)))
            }
            _ if WRITTEN.contains(&name) => statement.arg(0).map(|word| {
                // The same directory stays the same directory.
                let number = self.directories.len();
                let number = self.directories.entry(word.text.clone()).or_insert(number);
                let with = weir_conf::quote(room.join(format!("directory-{number}")).display().to_string().as_bytes());
                Edit { file: word.at.file, span: word.at.span, with }
            }),
            "http" if blocks.is_empty() => self.http(statement),
            "server" if blocks == ["http"] && statement.named("listen").next().is_none() => {
                let implied = self.around.moved.iter().find(|(address, _)| *address == doors::implied());
                implied
                    .and_then(|(_, port)| edit::insert_into(tree, statement, &format!("listen {port}")))
                    .map(on_one_line)
            }
            _ => None,
        };
        self.edits.extend(edit);
    }

    /// The statements that a block `http` has to begin with.
    fn http(&mut self, http: &Statement) -> Option<Edit> {
        let mut lines = Vec::new();
        if !self.around.has_logs {
            lines.push("access_log off".to_owned());
        } else if http.named("access_log").next().is_none() {
            let file = self.log("");
            lines.push(format!("access_log {}", self.around.room.join(file).display()));
        }
        for (name, without) in TEMPORARY {
            let has = |arguments: &&[String]| !arguments.iter().any(|argument| argument == without);
            if self.around.arguments.as_ref().is_some_and(has) && http.named(name).next().is_none() {
                lines.push(format!("{name} {}", self.around.room.join(name).display()));
            }
        }
        match lines.is_empty() {
            true => None,
            false => edit::insert_into(self.tree, http, &lines.join("; ")).map(on_one_line),
        }
    }

    fn access_log(&mut self, statement: &Statement) -> Option<Edit> {
        let path = statement.text(0);
        if !self.around.has_logs {
            return blank(self.tree, statement);
        }
        // A name with variables stays: it is below the prefix, or the server says why it cannot be opened.
        if path == "off" || path.contains('$') {
            return blank(self.tree, statement).filter(|_| path != "off");
        }
        let file = self.log(path);
        let is_late = |word: &str| LATE.iter().any(|late| word.starts_with(late));
        let others = statement.args.iter().skip(1).filter(|word| !is_late(&word.text));
        let others: String = others.map(|word| format!(" {}", self.written(word))).collect();
        let place = self.around.room.join(file);
        Some(edit::replace(statement, &format!("access_log {}{others}", place.display())))
    }

    fn written(&self, word: &Word) -> String {
        String::from_utf8_lossy(self.tree.bytes(&word.at)).into_owned()
    }

    /// The name of the file for a log. The same log stays the same file.
    fn log(&mut self, named: &str) -> String {
        if let Some(known) = self.logs.iter().find(|log| log.named == named) {
            return known.file.clone();
        }
        let file = format!("access-{}.log", self.logs.len());
        self.logs.push(AccessLogPlace { named: named.to_owned(), file: file.clone() });
        file
    }
}

/// An inserted statement stays on the line of its block: lines keep their numbers.
fn on_one_line(edit: Edit) -> Edit {
    let with = String::from_utf8_lossy(&edit.with).trim().to_owned();
    Edit { with: format!(" {with}").into_bytes(), ..edit }
}

/// Removes a statement and keeps the line breaks in it.
pub(super) fn blank(tree: &Tree, statement: &Statement) -> Option<Edit> {
    let span = Span { start: statement.at.span.start, end: statement.end.span.end };
    let source = tree.source(&statement.at).filter(|_| statement.at.file == statement.end.file)?;
    let breaks = span.of(&source.bytes).iter().filter(|byte| **byte == b'\n').count();
    Some(Edit { file: statement.at.file, span, with: vec![b'\n'; breaks] })
}

/// The `listen` statements in place of one.
fn listen(statement: &Statement, around: &Surroundings<'_>) -> String {
    let place = |kind: &str| {
        let name = format!("{kind}-{}-{}.sock", statement.at.file, statement.at.span.start);
        format!("listen unix:{}", around.room.join(name).display())
    };
    // The requests go by TCP. A server whose only listeners are those of QUIC must not take port 80.
    if statement.args.iter().skip(1).any(|word| word.text == "quic") {
        return place("quic");
    }
    let kept = statement.args.iter().skip(1).filter(|word| KEPT.contains(&word.text.as_str()));
    let kept: String = kept.map(|word| format!(" {}", word.text)).collect();
    let addresses = doors::addresses(statement.text(0));
    let of = |address| {
        let found = around.moved.iter().find(|(known, _)| *known == address);
        found.map(|(_, port)| format!("listen {port}{kept}"))
    };
    let all: Vec<String> = addresses.into_iter().filter_map(of).collect();
    match all.is_empty() {
        // Nobody reaches it there; without any `listen` the server would take port 80.
        true => place("unasked"),
        false => all.join("; "),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/f", text), "/f", "/", &|_| false).0
    }

    fn changed_with(text: &str, has_logs: bool, arguments: Option<&[String]>) -> (String, Vec<AccessLogPlace>) {
        let tree = tree(text);
        let to = "127.0.0.1:4000".parse().unwrap();
        let moved = [(Address::Tcp("0.0.0.0:80".parse().unwrap()), to), (doors::implied(), to)];
        let around = Surroundings { room: Path::new("/room"), moved: &moved, has_logs, arguments };
        let (edits, logs) = edits(&tree, &around);
        let bytes = edit::apply(&tree.files[0].bytes, &edits.iter().collect::<Vec<_>>()).unwrap();
        (String::from_utf8(bytes).unwrap(), logs)
    }

    fn changed(text: &str) -> String {
        changed_with(text, false, None).0
    }

    #[test]
    fn what_would_touch_the_user_s_files_is_changed_and_lines_stay() {
        let text = changed(
            "pid /run/x.pid;\nerror_log /var/e.log warn;\nevents { }\nhttp {\naccess_log\n/var/a.log;\nproxy_cache_path /var/cache levels=1:2 keys_zone=a:1m;\nserver {\nlisten 80 default_server reuseport;\nlisten 81;\naccess_log /b;\nlocation / { proxy_store on; mirror /m; proxy_pass http://a; }\n}\nserver { }\n}\nstream {\nserver { listen 9; }\n}\n",
        );
        assert_eq!(
            text,
            "\nerror_log /room/error.log warn;\nevents { }\nhttp { access_log off;\n\n\nproxy_cache_path /room/directory-0 levels=1:2 keys_zone=a:1m;\nserver {\nlisten 127.0.0.1:4000 default_server;\nlisten unix:/room/unasked-0-184.sock;\n\nlocation / {   proxy_pass http://a; }\n}\nserver { listen 127.0.0.1:4000; }\n}\n\n\n\n"
        );
    }

    #[test]
    fn logs_that_are_wanted_are_files_of_the_room() {
        let (text, logs) = changed_with(
            "http { server { listen 80; access_log /a.log 'own x' buffer=1k; } server { listen 80; access_log off; } }",
            true,
            None,
        );
        assert_eq!(
            text,
            "http { access_log /room/access-0.log; server { listen 127.0.0.1:4000; access_log /room/access-1.log 'own x'; } server { listen 127.0.0.1:4000; access_log off; } }"
        );
        assert_eq!(logs.iter().map(|log| log.named.as_str()).collect::<Vec<_>>(), ["", "/a.log"]);
    }

    #[test]
    fn a_program_with_directories_below_its_prefix_is_told_others() {
        let arguments = ["--without-http_uwsgi_module".to_owned(), "--without-http_scgi_module".to_owned()];
        let (text, _) = changed_with("http { proxy_temp_path /x; }", false, Some(&arguments));
        assert_eq!(
            text,
            "http { access_log off; client_body_temp_path /room/client_body_temp_path; fastcgi_temp_path /room/fastcgi_temp_path; proxy_temp_path /room/directory-0; }"
        );
    }

    #[test]
    fn a_listener_of_quic_is_none_of_tcp() {
        let text = changed("http { server { listen 80; listen 80 quic; listen 81 quic; } }");
        let own = "listen 127.0.0.1:4000; listen unix:/room/quic-0-27.sock; listen unix:/room/quic-0-43.sock;";
        assert_eq!(text, format!("http {{ access_log off; server {{ {own} }} }}"));
    }

    #[test]
    fn another_change_takes_the_place_of_an_own_one() {
        let edit = |start, end, with: &str| Edit { file: 0, span: Span { start, end }, with: with.into() };
        let own = vec![edit(0, 5, "a"), edit(5, 9, "b"), edit(9, 9, "c")];
        assert_eq!(together(own, vec![edit(4, 6, "d")]), [edit(9, 9, "c"), edit(4, 6, "d")]);
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
