//! Whether this machine lets a configuration start: the part of `-t` that no file shows.
//!
//! weir closes the sockets that it binds, and makes no pid file and no directory: the user who tests may be another one
//! than the user of the server. Only log files are made, as `nginx -t` makes them.

use std::io;
use std::path::Path;

use weir_conf::{At, Level, Problem, Tree};
use weir_http::exchange::conf::Conf;
use weir_net::datagrams::{self, DatagramOptions};
use weir_net::log::Os;
use weir_net::{listener, path, process};

use crate::family::dashboard;
use crate::load::{ConfOrigin, datagram_sockets, pid_file, stream_sockets};
use crate::log_files;
use crate::resources::datagram_options;

/// All obstacles to a start or a reload with this configuration, in nginx's words and in nginx's order: the pid
/// file, directories, log files, sockets. An address that is in use is none: usually the server that is to be reloaded
/// has it.
pub fn obstacles(origin: &ConfOrigin, conf: &Conf, tree: &Tree) -> Vec<Problem> {
    let mut all: Vec<Problem> = pid(origin, conf, tree).into_iter().collect();
    all.extend(directories(conf, tree));
    all.extend(log_files::first_unopened(conf, tree));
    all.extend(sockets(conf));
    let dashboard = dashboard::read(conf).and_then(|()| dashboard::keep(conf));
    all.extend(dashboard.err().map(|what| Problem::nowhere(Level::Emerg, what)));
    all
}

fn pid(origin: &ConfOrigin, conf: &Conf, tree: &Tree) -> Option<Problem> {
    let file = pid_file(origin, conf);
    let error = process::try_pid_file(&file).err()?;
    let at = conf.main.process.pid.as_ref().and_then(|_| tree.named("pid").last()).map(|statement| statement.at);
    let what = format!("open() \"{}\" failed {}", file.display(), Os(&error));
    let directory = file.parent().filter(|_| error.kind() == io::ErrorKind::NotFound);
    let Some(directory) = directory else { return Some(obstacle(what, &error, at)) };
    let shown = directory.display();
    if RUNTIME.iter().any(|place| directory.starts_with(place)) {
        // root may test the file of a service that does not run. nginx fails here.
        let problem = Problem::nowhere(Level::Warn, what).at(at);
        return Some(problem.todo(&format!(
            "RuntimeDirectory= of systemd's unit makes the directory when the service starts; without it: mkdir -p {shown}"
        )));
    }
    Some(obstacle(what, &error, at).todo(&format!("create the directory with mkdir -p {shown}")))
}

/// Directories that are empty after the machine starts: services make their own below them.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];

/// The directories that the keeper makes. Without root they may belong to another user, and a start does not need them.
fn directories(conf: &Conf, tree: &Tree) -> Vec<Problem> {
    if !process::is_root() {
        return Vec::new();
    }
    let unmade = conf.reach.makes().filter_map(|directory| {
        let error = path::try_directory(directory).err()?;
        let at = tree.first(&|statement| statement.name.text.ends_with("_path") && names(statement.text(0), directory));
        let what = format!("mkdir() \"{}\" failed {}", directory.display(), Os(&error));
        Some(obstacle(what, &error, at.map(|statement| statement.at)))
    });
    unmade.collect()
}

/// Whether a word of a file names this directory, absolute or below a prefix.
fn names(word: &str, directory: &Path) -> bool {
    !word.trim_matches('/').is_empty() && directory.ends_with(word.trim_end_matches('/'))
}

fn sockets(conf: &Conf) -> Vec<Problem> {
    let streams = stream_sockets(conf).map(|socket| (socket, listener::try_bind(&socket.address, &socket.options)));
    let datagrams = datagram_sockets(conf).filter_map(|(socket, is_quic)| {
        let address = socket.address.tcp()?;
        let options = DatagramOptions { is_quic, ..datagram_options(&socket.options) };
        Some((socket, datagrams::try_bind(address, &options)))
    });
    let unbound = streams.chain(datagrams).filter_map(|(socket, tried)| {
        let error = tried.err()?;
        let what = format!("bind() to {} failed {}", socket.address, Os(&error));
        if conf.dashboard.is_some() && socket.address.tcp() == conf.dashboard {
            let problem = Problem::nowhere(Level::Warn, format!("weir will serve without a dashboard: {what}"));
            return Some(problem.todo("\"dashboard on\" takes a free port"));
        }
        if error.kind() == io::ErrorKind::PermissionDenied {
            // A server that gets its sockets from systemd needs no right to bind them. nginx fails here.
            let problem = Problem::nowhere(Level::Warn, what).at(Some(socket.at));
            return Some(
                problem.todo("weir starts only as root, with CAP_NET_BIND_SERVICE, or with the socket from systemd"),
            );
        }
        let problem = obstacle(what, &error, Some(socket.at));
        Some(match error.kind() {
            io::ErrorKind::AddrNotAvailable => {
                problem.todo("no interface of this machine has this address: ip address shows those that it has")
            }
            io::ErrorKind::NotFound => problem.todo("create the directory of the socket"),
            _ => problem,
        })
    });
    unbound.collect()
}

fn obstacle(what: String, error: &io::Error, at: Option<At>) -> Problem {
    let problem = Problem::nowhere(Level::Emerg, what).at(at);
    match error.kind() {
        io::ErrorKind::PermissionDenied => problem.todo("test as the user who starts weir, such as root"),
        _ => problem,
    }
}
