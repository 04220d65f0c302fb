//! The URLs that clients asked for, from the access logs that the configuration names.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use weir_conf::log_format::{Entry, Format};
use weir_conf::{Statement, Tree};
use weir_words::{Said, said};

use crate::doors;
use crate::traffic::tail;

/// Most different URLs that are kept of one log.
const URLS_MAX: usize = 20_000;
/// Most logs that are read.
pub const LOGS_MAX: usize = 50;
/// Most lines of a log that are looked at.
const LINES_MAX: usize = 500_000;
/// The name by which the requests of `weir swap` are known in a log.
pub const AGENT: &str = concat!("weir-swap/", env!("CARGO_PKG_VERSION"));
/// The name by which those of `weir adopt` are known.
pub const ADOPT_AGENT: &str = concat!("weir-adopt/", env!("CARGO_PKG_VERSION"));
/// Words in a path that announce an action. Such a URL is asked only on demand: a GET should change nothing, but some
/// applications do not keep to that.
pub const ACTIONS: &[&str] = &[
    "cancel",
    "checkout",
    "confirm",
    "cron",
    "delete",
    "disable",
    "logout",
    "log-out",
    "purge",
    "remove",
    "reset",
    "restart",
    "shutdown",
    "signout",
    "sign-out",
    "unsubscribe",
];

/// A log of the configuration.
#[derive(Clone, Debug)]
pub struct Log {
    /// The file.
    pub path: PathBuf,
    /// The format's name, for the page.
    pub format: String,
    /// `None`: its lines do not have the request.
    pub reads: Option<Format>,
    /// The servers that write it, by their numbers.
    pub servers: Vec<usize>,
    /// When it was last rotated: the newest older file beside it.
    pub rotated: Option<String>,
}

/// The URLs of a log, the newest first.
#[derive(Clone, Debug, Default)]
pub struct LogUrls {
    /// The requests.
    pub entries: Vec<Entry>,
    /// Lines that were looked at.
    pub lines: usize,
    /// Lines that are no request of a kind that can be sent again.
    pub unread: usize,
    /// Different URLs that were left out for a word in their path.
    pub actions: usize,
    /// Requests with another method than GET and HEAD.
    pub other_methods: usize,
}

/// The access logs of the servers of `http`. `default` is the log of a configuration without `access_log`; `prefix`
/// is the directory of relative names.
pub fn logs(tree: &Tree, prefix: &str, default: &str) -> Vec<Log> {
    let mut logs: Vec<Log> = Vec::new();
    for http in tree.named("http") {
        let outer: Vec<&Statement> = http.named("access_log").collect();
        for (number, server) in doors::servers(tree).enumerate() {
            let own: Vec<&Statement> = server.named("access_log").collect();
            let level = if own.is_empty() { &outer } else { &own };
            if level.is_empty() {
                add(&mut logs, http, number, default, "combined");
            }
            let mut inner = Vec::new();
            below(server, &mut inner);
            if !level.iter().any(|statement| statement.text(0) == "off") {
                inner.extend(level.iter().copied());
            }
            for statement in inner {
                let path = statement.text(0);
                let format = statement.arg(1).map(|word| word.text.as_str()).filter(|word| !word.contains('='));
                let is_file = path != "off" && !path.starts_with("syslog:") && !path.contains('$');
                let is_plain = !statement.args.iter().any(|word| word.text == "gzip" || word.text.starts_with("gzip="));
                if is_file && is_plain {
                    let path = Path::new(prefix).join(path).display().to_string();
                    add(&mut logs, http, number, &path, format.unwrap_or("combined"));
                }
            }
        }
    }
    logs
}

/// The `access_log`s of the blocks in a block.
fn below<'t>(block: &'t Statement, found: &mut Vec<&'t Statement>) {
    for inner in block.children().iter().filter(|statement| statement.is_block()) {
        found.extend(inner.named("access_log"));
        below(inner, found);
    }
}

fn add(logs: &mut Vec<Log>, http: &Statement, server: usize, path: &str, format: &str) {
    let is_it = |log: &&mut Log| log.path == Path::new(path) && log.format == format;
    if let Some(log) = logs.iter_mut().find(is_it) {
        if !log.servers.contains(&server) {
            log.servers.push(server);
        }
        return;
    }
    if logs.len() < LOGS_MAX {
        let log = Log {
            path: PathBuf::from(path),
            format: format.to_owned(),
            reads: Format::named(http, format),
            servers: vec![server],
            rotated: rotated(Path::new(path)),
        };
        logs.push(log);
    }
}

/// The name of the newest rotated file: `access.log.1`, `access.log-20261125.gz`.
fn rotated(path: &Path) -> Option<String> {
    let name = path.file_name()?;
    let entries = std::fs::read_dir(path.parent()?).ok()?.flatten().take(URLS_MAX);
    let older = entries.filter(|entry| {
        let other = entry.file_name();
        other
            .as_bytes()
            .strip_prefix(name.as_bytes())
            .is_some_and(|rest| rest.starts_with(b".") || rest.starts_with(b"-"))
    });
    let newest = older.max_by_key(|entry| entry.metadata().and_then(|found| found.modified()).ok());
    newest.map(|entry| entry.file_name().to_string_lossy().into_owned())
}

/// Reads a log's URLs.
///
/// # Errors
/// A sentence for the user: why the log cannot be read.
pub fn read(log: &Log, wants_actions: bool, skip: &[String]) -> Result<LogUrls, Said> {
    let shown = log.path.display();
    let Some(format) = &log.reads else {
        let name = &log.format;
        return Err(said!(
            "{shown}: the format {name} has neither $request nor $request_uri",
            "{shown}: {name} 형식에 $request도 $request_uri도 없습니다"
        ));
    };
    let mut found = LogUrls::default();
    let mut known: HashSet<(Vec<u8>, Option<String>)> = HashSet::new();
    tail::lines(&log.path, |line| {
        found.lines += 1;
        match format.entry(line) {
            None => found.unread += 1,
            Some(entry) if is_own(&entry.agent) => {}
            Some(entry) if entry.method != b"GET" && entry.method != b"HEAD" => found.other_methods += 1,
            Some(entry) => {
                if known.insert((entry.target.clone(), entry.host.clone())) && !is_skipped(&entry.target, skip) {
                    match wants_actions || !is_action(&entry.target) {
                        true => found.entries.push(entry),
                        false => found.actions += 1,
                    }
                }
            }
        }
        found.lines < LINES_MAX && known.len() < URLS_MAX
    })?;
    Ok(found)
}

/// True for a request that weir has sent to compare answers.
pub(crate) fn is_own(agent: &[u8]) -> bool {
    [AGENT, ADOPT_AGENT].iter().any(|own| agent.starts_with(own.as_bytes()))
}

/// A word of the path or a name or value of the query announces an action.
pub(crate) fn is_action(target: &[u8]) -> bool {
    let target = String::from_utf8_lossy(target).to_ascii_lowercase();
    let mut words = target.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    words.any(|word| ACTIONS.contains(&word))
}

fn is_skipped(target: &[u8], skip: &[String]) -> bool {
    skip.iter().any(|prefix| target.starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_server_has_the_logs_that_nginx_writes_for_it() {
        let text = "http { log_format own '$host $request_uri'; access_log /var/a.log;
            server { listen 80; }
            server { access_log logs/b.log own; location /x { access_log /var/c.log; } }
            server { access_log off; }
            server { access_log syslog:server=x; access_log /var/$host.log; access_log /d gzip; } }";
        let tree = weir_conf::load(&weir_conf::MemoryFiles::new().with("/f", text), "/f", "/", &|_| false).0;
        let found = logs(&tree, "/p/", "/default.log");
        let seen: Vec<_> =
            found.iter().map(|log| (log.path.to_str().unwrap(), log.format.as_str(), log.servers.clone())).collect();
        assert_eq!(
            seen,
            [
                ("/var/a.log", "combined", vec![0]),
                ("/var/c.log", "combined", vec![1]),
                ("/p/logs/b.log", "own", vec![1])
            ]
        );
        let bare =
            weir_conf::load(&weir_conf::MemoryFiles::new().with("/f", "http { server { } }"), "/f", "/", &|_| false).0;
        assert_eq!(logs(&bare, "/p/", "/default.log")[0].path, Path::new("/default.log"));
    }

    #[test]
    fn a_url_that_acts_is_known_by_a_word() {
        for (target, acts) in
            [("/logout", true), ("/a/delete/3", true), ("/a?do=Remove", true), ("/deleted", false), ("/", false)]
        {
            assert_eq!(is_action(target.as_bytes()), acts, "{target}");
        }
        assert!(is_skipped(b"/api/x", &["/api/".to_owned()]) && !is_skipped(b"/b", &["/api/".to_owned()]));
    }
}
