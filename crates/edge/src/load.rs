//! Reads a configuration and checks it. Nothing of the running process changes.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use weir_conf::{Files, Level as Gravity, Problem, Tree};
use weir_http::exchange::conf::Conf;
use weir_http::exchange::route::Socket;
use weir_http::hold::counters::WORKERS_MAX;
use weir_http::hold::paths::Paths;
use weir_http::read::compile::{compile, problems as problems_of};
use weir_net::answers;
use weir_net::log::Level;
use weir_net::process::{self, Identity};

use crate::dash::place::{self, Wanted};
use crate::family::ALL;

/// Where a configuration comes from: the values of `-c`, `-p`, `-g` and `-e`.
#[derive(Clone, Debug, Default)]
pub struct ConfOrigin {
    /// The main file, a full path.
    pub file: String,
    /// `-g`.
    pub globals: String,
    /// Where relative names point to.
    pub paths: Paths,
    /// The pid file, if the configuration names none.
    pub pid: String,
    /// `-e`, a full path.
    pub error_log: String,
    /// Where the dashboard's own server is.
    pub dashboard: Dashboard,
}

/// Where the dashboard's own server is.
#[derive(Clone, Copy, Debug)]
pub enum Dashboard {
    /// Where the file says.
    AsWritten {
        /// The address that `on` means, if it is not the first one.
        on: Option<SocketAddr>,
        /// Whether a file that does not say has a dashboard there.
        unasked: bool,
    },
    /// There, or nowhere, whatever the file says.
    Decided(Option<SocketAddr>),
}

impl Default for Dashboard {
    fn default() -> Dashboard {
        Dashboard::AsWritten { on: None, unasked: false }
    }
}

impl Dashboard {
    /// The address for a file that says this.
    fn address(self, wanted: Wanted) -> Option<SocketAddr> {
        match (self, wanted) {
            (Dashboard::Decided(address), _) => address,
            (Dashboard::AsWritten { unasked: false, .. }, Wanted::Unsaid) | (_, Wanted::Off) => None,
            (Dashboard::AsWritten { on, .. }, Wanted::On | Wanted::Unsaid) => on.or_else(|| Some(place::first())),
            (Dashboard::AsWritten { .. }, Wanted::At(address)) => Some(address),
        }
    }
}

/// A configuration read and checked.
pub struct Loaded {
    /// The files as they were read.
    pub tree: Tree,
    /// All its problems, in the order of the file.
    pub problems: Vec<Problem>,
    /// The configuration, if no problem is grave.
    pub conf: Option<Conf>,
}

/// Reads and checks a configuration.
pub fn load(origin: &ConfOrigin, files: &dyn Files, generation: u32) -> Loaded {
    let (mut tree, mut problems) = read_tree(origin, files);
    let dashboard = origin.dashboard.address(place::wanted(&tree));
    if let Some(address) = dashboard {
        place::add(&mut tree, address);
    }
    let (mut conf, found) = compile(&tree, origin.paths.clone(), &resolve, generation, &ALL);
    if let (Some(conf), Some(address)) = (&mut conf, dashboard) {
        conf.show(address);
    }
    if let Some(conf) = &mut conf {
        conf.places_fixed += all_sockets(conf) - conf.sockets.len() - conf.quic.len();
    }
    problems.extend(found);
    problems.extend(no_events(conf.as_ref(), &problems, &tree));
    problems.extend(conf.as_ref().and_then(|conf| oversized_table(conf, &tree)));
    problems.extend(conf.as_ref().and_then(|conf| unknown_user(conf, &tree)));
    weir_conf::sort_as_read(&mut problems, &tree);
    let fails = problems.iter().any(is_grave);
    Loaded { tree, problems, conf: conf.filter(|_| !fails) }
}

/// Reads the files of a configuration.
pub fn read_tree(origin: &ConfOrigin, files: &dyn Files) -> (Tree, Vec<Problem>) {
    let opaque = |name: &str| name.ends_with("_by_lua_block");
    weir_conf::load_with_globals(files, &origin.file, &origin.paths.conf_prefix, &opaque, &origin.globals)
}

/// The first of the addresses that nobody has (RFC 1112 §4).
const FIRST_RESERVED: Ipv4Addr = Ipv4Addr::new(240, 0, 0, 0);

/// The problems for which this tree is refused. A file with `http` and without `events` is refused whatever else is wrong.
pub fn refused(tree: &Tree) -> Vec<Problem> {
    let mut problems = all_problems(tree);
    problems.retain(is_grave);
    problems
}

/// The problems that `-t` tells about this tree, in the order of the file: "no events" only if nothing else is grave.
pub fn checked(tree: &Tree) -> Vec<Problem> {
    told_of(tree, all_problems(tree))
}

/// The answers of [`checked`] and of [`refused`], by one reading.
pub struct ReadProblems {
    /// Those of [`checked`].
    pub told: Vec<Problem>,
    /// Those of [`refused`].
    pub refused: Vec<Problem>,
}

/// Reads a tree for both answers.
pub fn read_problems(tree: &Tree) -> ReadProblems {
    let all = all_problems(tree);
    let refused = all.iter().filter(|problem| is_grave(problem)).cloned().collect();
    ReadProblems { told: told_of(tree, all), refused }
}

fn told_of(tree: &Tree, mut problems: Vec<Problem>) -> Vec<Problem> {
    let is_other = |problem: &Problem| is_grave(problem) && problem.what != NO_EVENTS;
    if tree.is_partial || problems.iter().any(is_other) {
        problems.retain(|problem| problem.what != NO_EVENTS);
    }
    problems
}

/// All problems of this tree. weir does not look up names of hosts here: each name has an address of its own. Only a file with
/// `http` needs `events`: another one may be a part of a configuration.
fn all_problems(tree: &Tree) -> Vec<Problem> {
    let main = tree.files.iter().find(|source| !source.is_command_line).map_or("", |source| source.name.as_str());
    let directory = main.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/"));
    let paths = Paths { prefix: directory.clone(), conf_prefix: directory, ..Paths::default() };
    let names = RefCell::new(HashMap::new());
    let of_name = |host: &str| {
        let mut names = names.borrow_mut();
        let number = names.len() as u32;
        let number = *names.entry(host.to_ascii_lowercase()).or_insert(number);
        Ok(vec![SocketAddr::from((Ipv4Addr::from(FIRST_RESERVED.to_bits() | number), 0))])
    };
    let mut problems = problems_of(tree, paths, &of_name, &ALL);
    let has = |name: &str| tree.named(name).next().is_some();
    if has("http") && !has("events") {
        problems.push(lacks_events(tree));
    }
    weir_conf::sort_as_read(&mut problems, tree);
    problems
}

fn no_events(conf: Option<&Conf>, problems: &[Problem], tree: &Tree) -> Option<Problem> {
    if conf?.main.process.events || problems.iter().any(is_grave) {
        return None;
    }
    Some(lacks_events(tree))
}

/// The message about a file with `http` and without `events`.
const NO_EVENTS: &str = "no \"events\" section in configuration";

fn lacks_events(tree: &Tree) -> Problem {
    let last = tree.root.last().map(|statement| statement.end);
    let problem = Problem::nowhere(Gravity::Emerg, NO_EVENTS).at(last);
    problem.todo("add: events { }")
}

/// Whether a problem prevents the configuration from coming into force.
pub fn is_grave(problem: &Problem) -> bool {
    matches!(problem.level, Gravity::Emerg)
}

/// The level of a problem in the error log.
pub fn level_of(problem: &Problem) -> Level {
    match problem.level {
        Gravity::Emerg => Level::Emerg,
        Gravity::Warn => Level::Warn,
    }
}

/// Host names by the system's resolver; port 0 is filled in by the caller.
fn resolve(host: &str) -> Result<Vec<SocketAddr>, String> {
    let found = answers::ask(answers::QuestionKind::Host, host, || {
        let found: Vec<String> = process::resolve(host)?.iter().map(ToString::to_string).collect();
        Ok(found.join("\n").into_bytes())
    });
    let found = found.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&found)
        .lines()
        .filter_map(|line| line.parse().ok())
        .map(|ip| SocketAddr::new(ip, 0))
        .collect())
}

/// The pid file that controls a process with this configuration.
pub fn pid_file(origin: &ConfOrigin, conf: &Conf) -> PathBuf {
    PathBuf::from(conf.main.process.pid.clone().unwrap_or_else(|| origin.pid.clone()))
}

/// nginx warns about a table that the limit on open files cannot serve. If the file raises that limit, the raised
/// limit counts.
fn oversized_table(conf: &Conf, tree: &Tree) -> Option<Problem> {
    let (written, files) =
        (conf.main.process.connections?, conf.main.process.nofile.unwrap_or_else(process::nofile_hard));
    let statement = tree.named("events").find_map(|events| events.named("worker_connections").last());
    (written as u64 > files).then(|| {
        let what = format!("{written} worker_connections exceed open file resource limit: {files}");
        let problem = Problem::nowhere(Gravity::Warn, what).at(statement.map(|statement| statement.at));
        problem.todo("raise the service's limit on open files, or lower worker_connections")
    })
}

/// nginx looks a user up while it reads the file.
fn unknown_user(conf: &Conf, tree: &Tree) -> Option<Problem> {
    let what = identity(conf).err()?;
    let written = tree.named("user").last();
    let problem = Problem::nowhere(Gravity::Emerg, what).at(written.map(|statement| statement.at));
    Some(problem.todo("name a user and a group of /etc/passwd and /etc/group"))
}

/// How many addresses the configuration listens on.
pub fn all_sockets(conf: &Conf) -> usize {
    stream_sockets(conf).count() + datagram_sockets(conf).count()
}

/// The UDP sockets: those of `stream`, and those for QUIC, which are marked.
pub fn datagram_sockets(conf: &Conf) -> impl Iterator<Item = (&Socket, bool)> {
    let of_stream = weir_stream::conf::of(conf).datagrams.sockets.iter().map(|socket| (socket, false));
    of_stream.chain(conf.quic.iter().map(|socket| (socket, true)))
}

/// The sockets of connections: those of `http`, then those of `stream`.
pub fn stream_sockets(conf: &Conf) -> impl Iterator<Item = &Socket> {
    conf.sockets.iter().chain(&weir_stream::conf::of(conf).streams.sockets)
}

/// How many workers a configuration needs.
pub fn worker_count(conf: &Conf) -> usize {
    conf.main.process.workers.unwrap_or_else(weir_host::effective_cpus).clamp(1, WORKERS_MAX)
}

/// The user of the worker threads: `user`, or nobody if weir runs as root and the file names none (nginx's
/// compiled-in default). `None` when there are no rights to give up.
pub fn identity(conf: &Conf) -> Result<Option<Identity>, String> {
    if !process::is_root() || process::is_confined() {
        return Ok(None);
    }
    let (user, group) = match &conf.main.process.user {
        Some((user, group)) => (user.as_str(), group.as_deref()),
        None => ("nobody", None),
    };
    let found = process::look_up(user, group).map_err(|error| error.to_string())?;
    Ok(Some(Identity { keeps_raw: conf.main.process.keeps_raw, ..found }))
}

/// Whether every user may read a file: the dashboard shows no other without a token.
pub fn is_public(name: &str) -> bool {
    let asked = answers::ask(answers::QuestionKind::Public, name, || {
        std::fs::metadata(name).map(|facts| vec![u8::from(facts.mode() & 0o004 != 0)])
    });
    asked.is_ok_and(|answer| answer == [1])
}
