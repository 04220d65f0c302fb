//! The control thread: loads configurations, starts workers, answers signals. Never on the data path.

pub mod crew;
mod descriptors;
mod watchdog;

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use weir_conf::{Files, Level as Gravity, Problem, Tree};
use weir_http::build::Paths;
use weir_http::compile::compile;
use weir_http::conf::{Conf, Location};
use weir_http::counters::AllCounters;
use weir_http::route::Socket;
use weir_http::{body, trace};
use weir_net::datagrams::{self, DatagramOptions};
use weir_net::log::{self, Level};
use weir_net::process::{self, Manager, Signal};
use weir_net::worker::Remote;
use weir_net::{Address, Listening, listener};
use weir_proxy::family::cache::Use;
use weir_proxy::relay;

use crate::control::crew::{Crew, Datagrams, identity, worker_count};
use crate::dash::place::{self, Wanted};
use crate::family::ALL;
use crate::family::log::buffer;
use crate::family::{acme, dashboard, purge};
use crate::log_files;

/// Where a configuration comes from: the values of `-c`, `-p`, `-g` and `-e`.
#[derive(Clone, Debug, Default)]
pub struct Origin {
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
    /// The address of the dashboard's own server, if the file does not say.
    pub dashboard: Option<SocketAddr>,
}

/// A configuration read and checked.
pub struct Loaded {
    /// The files as they were read.
    pub tree: Tree,
    /// All its problems, in the order of the file.
    pub problems: Vec<Problem>,
    /// The configuration, if no problem is grave.
    pub conf: Option<Conf>,
    /// The address of the dashboard's own server.
    pub dashboard: Option<SocketAddr>,
}

/// Reads and checks a configuration. Nothing of the running process changes.
pub fn load(origin: &Origin, files: &dyn Files, generation: u32) -> Loaded {
    let opaque = |name: &str| name.ends_with("_by_lua_block");
    let (mut tree, mut problems) =
        weir_conf::load_with_globals(files, &origin.file, &origin.paths.conf_prefix, &opaque, &origin.globals);
    let dashboard = match place::wanted(&tree) {
        Wanted::Unsaid => origin.dashboard,
        Wanted::Off => None,
        // "on" takes the free port that was found.
        Wanted::At(address) => origin.dashboard.filter(|_| place::is_default(address)).or(Some(address)),
    };
    if let Some(address) = dashboard {
        place::add(&mut tree, address);
    }
    let (mut conf, found) = compile(&tree, origin.paths.clone(), &resolve, generation, &ALL);
    if let (Some(conf), Some(address)) = (&mut conf, dashboard) {
        conf.stands_beside(address);
    }
    if let Some(conf) = &mut conf {
        conf.places_fixed += all_sockets(conf) - conf.sockets.len();
    }
    problems.extend(found);
    if conf.as_ref().is_some_and(|conf| !conf.main.process.events) && !problems.iter().any(is_grave) {
        let last = tree.root.last().map(|statement| statement.end);
        let problem = Problem::nowhere(Gravity::Emerg, "no \"events\" section in configuration").at(last);
        problems.push(problem.todo("add: events { }"));
    }
    problems.extend(conf.as_ref().and_then(|conf| oversized_table(conf, &tree)));
    weir_conf::sort_as_read(&mut problems, &tree);
    let fails = problems.iter().any(is_grave);
    Loaded { tree, problems, conf: conf.filter(|_| !fails), dashboard }
}

fn is_grave(problem: &Problem) -> bool {
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
    (host, 0).to_socket_addrs().map(Iterator::collect).map_err(|error| error.to_string())
}

/// The pid file that controls a process with this configuration.
pub fn pid_file(origin: &Origin, conf: &Conf) -> PathBuf {
    PathBuf::from(conf.main.process.pid.clone().unwrap_or_else(|| origin.pid.clone()))
}

/// How long weir retries binding an address that is in use (nginx: five times half a second).
const BIND_TRIES: u32 = 5;
const BIND_PAUSE: Duration = Duration::from_millis(500);

/// Workers and sockets of a running edge.
pub struct Running {
    origin: Origin,
    conf: Arc<Conf>,
    sockets: HashMap<Address, Vec<Listening>>,
    datagrams: Datagrams,
    crew: Crew,
    /// The new binary that replaces this process.
    successor: Option<std::process::Child>,
    /// systemd, if it waits for messages.
    manager: Option<Manager>,
}

/// Makes the directories for temporary files and gives them to the workers' user: a worker without root could not
/// make them.
fn make_directories(conf: &Conf, identity: Option<&process::Identity>) -> Result<(), String> {
    let mut names: Vec<String> = Vec::new();
    for location in &conf.locations {
        let (core, proxy) = (&location.values.core, &weir_proxy::values(location).proxy);
        names.push(conf.paths.temporary(core.body_temp_path.as_deref(), body::DIRECTORY));
        names.push(conf.paths.temporary(proxy.temp_path.as_deref(), relay::DIRECTORY));
    }
    names.extend(weir_proxy::declared(conf).cache.paths.iter().map(|path| path.directory.clone()));
    names.sort_unstable();
    names.dedup();
    for name in &names {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(name);
        match (made, identity) {
            (Ok(()), Some(identity)) => std::os::unix::fs::chown(name, Some(identity.uid), None)
                .map_err(|error| format!("chown(\"{name}\", {}) failed {}", identity.uid, log::Os(&error)))?,
            (Ok(()), None) => {}
            // Without root, the directory may belong to another user. A worker that needs a file there logs the error
            // then.
            (Err(_), None) => {}
            (Err(error), Some(_)) => return Err(format!("mkdir() \"{name}\" failed {}", log::Os(&error))),
        }
    }
    Ok(())
}

/// Where a cache's files are written first: in the directory for temporary files of answers (`proxy_temp_path`) of
/// the first location that uses the cache. nginx reads it from each location; in weir, a cache's thread has one such
/// directory.
fn cache_temporary(conf: &Conf, number: usize) -> String {
    let uses = |location: &&Location| matches!(weir_proxy::values(location).cache.zone, Use::Zone(_, Some(used)) if used == number);
    let path =
        conf.locations.iter().find(uses).and_then(|location| weir_proxy::values(location).proxy.temp_path.as_deref());
    conf.paths.temporary(path, relay::DIRECTORY)
}

/// Raises the limit on open files to `worker_rlimit_nofile`, or as far as allowed.
fn limits(conf: &Conf) {
    let result = match conf.main.process.nofile {
        Some(files) => process::set_nofile(files),
        None => process::raise_nofile().map(drop),
    };
    if let Err(error) = result {
        log::global(Level::Alert, format_args!("setrlimit(RLIMIT_NOFILE) failed {}", log::Os(&error)));
    }
}

/// How many addresses the configuration listens on.
fn all_sockets(conf: &Conf) -> usize {
    stream_sockets(conf).count() + weir_stream::conf::of(conf).datagrams.sockets.len()
}

/// Fits the workers' tables of connections to the limit on open files in force.
fn fit_tables(conf: &mut Conf, workers: usize) {
    conf.places_by_files = descriptors::places(process::nofile(), workers, all_sockets(conf));
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

impl Running {
    /// Binds the sockets and starts the workers. Errors have nginx's wording.
    ///
    /// `claimed` is bound already, and served if the configuration names its address.
    pub fn start(origin: Origin, conf: Conf, tree: &Tree, claimed: Option<Listening>) -> Result<Running, String> {
        limits(&conf);
        let manager = Manager::find();
        let passed = manager.map(Manager::passed).unwrap_or_default();
        let mut sockets: HashMap<Address, Vec<Listening>> = HashMap::new();
        for listening in claimed.into_iter().chain(process::inherited()).chain(passed.iter().cloned()) {
            sockets.entry(listening.local_addr().clone()).or_default().push(listening);
        }
        let count = worker_count(&conf);
        let sockets = open_sockets(&conf, sockets, count)?;
        let datagrams = open_datagrams(&conf, &Datagrams::new(), count)?;
        let identity = identity(&conf)?;
        make_directories(&conf, identity.as_ref())?;
        log_files::open_all(&conf)?;
        dashboard::open(&conf)?;
        log::install(conf.main.error_log.main.clone());
        weir_proxy::declared(&conf).cache.open(|number| cache_temporary(&conf, number), identity.as_ref());
        purge::open(&conf);
        acme::open(&conf, None, identity.as_ref());
        trace::open(&conf, count, identity.as_ref());
        let (mut conf, mut crew) = (conf, Crew::new());
        fit_tables(&mut conf, count);
        crew.live().enlist(&mut conf);
        let conf = Arc::new(conf);
        let hired = crew.hire(&conf, None)?;
        crew.take_over(&conf, hired, &sockets, &datagrams);
        show(&crew, &conf, &sockets);
        dashboard::show(&conf, tree);
        dashboard::open_shelf(&conf, identity.as_ref())?;
        crew.live().observe(identity).map_err(|error| format!("thread could not be started {}", log::Os(&error)))?;
        log::global(Level::Notice, format_args!("nginx/{} (weir), start {count} workers", weir_http::respond::VERSION));
        let running = Running { origin, conf, sockets, datagrams, crew, successor: None, manager };
        running.store_sockets(passed.iter().map(Listening::local_addr));
        Ok(running)
    }

    /// Reads the configuration again and puts it in force; a bad one changes nothing.
    pub fn reload(&mut self, files: &dyn Files) {
        log::global(Level::Notice, format_args!("reconfiguring"));
        let loaded = load(&self.origin, files, self.conf.generation + 1);
        let mut why = Vec::new();
        for problem in &loaded.problems {
            let sentence = problem.sentence(&loaded.tree);
            log::global(level_of(problem), format_args!("{sentence}"));
            if is_grave(problem) {
                why.push(sentence);
            }
        }
        let Some(conf) = loaded.conf else { return self.refuse(why) };
        if let Err(message) = self.replace(conf, &loaded.tree) {
            log::global(Level::Emerg, format_args!("{message}"));
            self.refuse(vec![message]);
        }
    }

    /// Shows that the last reload was refused.
    fn refuse(&self, why: Vec<String>) {
        self.crew.live().refuse();
        dashboard::refuse(&self.conf, why);
    }

    /// Puts a configuration in force in place of the present one. After an error nothing has changed.
    fn replace(&mut self, mut conf: Conf, tree: &Tree) -> Result<(), String> {
        ALL.adopt(&mut conf, &self.conf)?;
        let count = worker_count(&conf);
        let sockets = open_sockets(&conf, self.sockets.clone(), count)?;
        let datagrams = open_datagrams(&conf, &self.datagrams, count)?;
        let identity = identity(&conf)?;
        make_directories(&conf, identity.as_ref())?;
        log_files::open_all(&conf)?;
        dashboard::open(&conf)?;
        if conf.main.process.nofile != self.conf.main.process.nofile {
            limits(&conf);
        }
        weir_proxy::declared(&conf).cache.open(|number| cache_temporary(&conf, number), identity.as_ref());
        fit_tables(&mut conf, count);
        self.crew.live().enlist(&mut conf);
        let conf = Arc::new(conf);
        let hired = self.crew.hire(&conf, Some(&self.conf))?;
        log::install(conf.main.error_log.main.clone());
        self.move_pid_file(&conf);
        if !hired.is_empty() || count != self.crew.len() {
            log::global(Level::Notice, format_args!("start {} workers, {count} in all", hired.len()));
        }
        purge::open(&conf);
        acme::open(&conf, Some(&self.conf), identity.as_ref());
        trace::open(&conf, count, identity.as_ref());
        if let Err(message) = dashboard::open_shelf(&conf, identity.as_ref()) {
            // weir serves requests without the thread that reads files; the dashboard shows that this thread does not
            // run.
            log::global(Level::Alert, format_args!("{message}"));
        }
        self.crew.take_over(&conf, hired, &sockets, &datagrams);
        show(&self.crew, &conf, &sockets);
        dashboard::show(&conf, tree);
        purge::close(&self.conf, Some(&conf));
        self.conf = conf;
        let before = std::mem::replace(&mut self.sockets, sockets);
        self.datagrams = datagrams;
        self.store_sockets(before.keys());
        Ok(())
    }

    /// Makes the manager's store hold the sockets in use, and none of the `former` addresses that are not in use.
    fn store_sockets<'a>(&self, former: impl Iterator<Item = &'a Address>) {
        let Some(manager) = self.manager else { return };
        former.filter(|address| !self.sockets.contains_key(address)).for_each(|address| manager.forget(address));
        self.sockets.values().flatten().for_each(|socket| manager.keep(socket));
    }

    /// Tells the manager that weir serves, and with which configuration; `news` ends the line.
    fn tell_ready(&self, news: &str) {
        if let Some(manager) = self.manager {
            let (workers, generation) = (self.crew.len(), self.conf.generation);
            manager.ready(&format!("{workers} workers serve configuration {generation}{news}"));
        }
    }

    fn move_pid_file(&self, conf: &Conf) {
        let (old, new) = (pid_file(&self.origin, &self.conf), pid_file(&self.origin, conf));
        if old != new {
            if let Err(error) = process::write_pid_file(&new) {
                log::global(Level::Emerg, format_args!("open() \"{}\" failed {}", new.display(), log::Os(&error)));
                return;
            }
            let _ = process::remove_pid_file(&old);
        }
    }

    /// Lets every worker finish its exchanges and end.
    fn quit(&mut self) {
        self.close_sockets();
        acme::close(&self.conf);
        self.crew.dismiss_all(self.successor.is_some());
    }

    /// weir refuses new connections from here on; a successor has copies of the sockets.
    fn close_sockets(&mut self) {
        self.datagrams.clear();
        for (address, _) in self.sockets.drain() {
            if let (Address::Unix(path), None) = (&address, &self.successor) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    /// Writes the pid file.
    pub fn write_pid(&self) -> Result<(), String> {
        let path = pid_file(&self.origin, &self.conf);
        process::write_pid_file(&path)
            .map_err(|error| format!("open() \"{}\" failed {}", path.display(), log::Os(&error)))
    }

    /// Handles signals until one of them ends the process.
    pub fn serve(mut self, signals: process::Signals, files: &dyn Files) {
        log::leave_terminal();
        self.tell_ready("");
        if let Some(manager) = self.manager
            && let Err(error) = watchdog::start(manager, self.crew.colleagues())
        {
            log::global(Level::Alert, format_args!("thread could not be started {}", log::Os(&error)));
        }
        let handle = signals.handle();
        let left = self.crew.left();
        let mut quitting = false;
        for signal in signals.telling(refused) {
            match signal {
                Signal::Hup if !quitting => {
                    self.manager.iter().for_each(|manager| manager.reloading());
                    let generation = self.conf.generation;
                    self.reload(files);
                    let is_refused = generation == self.conf.generation;
                    self.tell_ready(if is_refused { "; the last reload was refused, see the error log" } else { "" });
                }
                Signal::Usr1 => {
                    // Buffered lines go to the old file.
                    buffer::flush();
                    log_files::reopen();
                }
                Signal::Quit | Signal::Winch if !quitting => {
                    quitting = true;
                    log::global(Level::Notice, format_args!("gracefully shutting down"));
                    self.tell_end();
                    self.quit();
                    let (handle, left) = (handle.clone(), left.clone());
                    let waits = std::thread::Builder::new().name("quit".to_owned()).spawn(move || {
                        left.wait();
                        handle.close();
                    });
                    if waits.is_err() {
                        break;
                    }
                }
                Signal::Term | Signal::Int => {
                    self.tell_end();
                    break;
                }
                Signal::Usr2 if self.successor.is_none() => {
                    self.upgrade();
                }
                Signal::Child => self.reap(),
                Signal::Hup | Signal::Quit | Signal::Winch | Signal::Usr2 => {}
            }
        }
        self.crew.stop_all();
        acme::close(&self.conf);
        trace::close(&self.conf);
        // A successor uses the same name on the bus.
        if self.successor.is_none() {
            purge::close(&self.conf, None);
        }
        buffer::flush();
        log::global(Level::Notice, format_args!("exit"));
        let pid = pid_file(&self.origin, &self.conf);
        let old = with_suffix(&pid);
        let _ = process::remove_pid_file(if self.successor.is_some() { &old } else { &pid });
        self.close_sockets();
    }

    /// Tells the manager that weir ends, or which process serves in its place.
    fn tell_end(&self) {
        match (self.manager, &self.successor) {
            (Some(manager), Some(successor)) => manager.main_process(successor.id()),
            (Some(manager), None) => manager.stopping(),
            (None, _) => {}
        }
    }

    /// Starts the binary again with our sockets (nginx: on-the-fly upgrade).
    fn upgrade(&mut self) -> bool {
        let pid = pid_file(&self.origin, &self.conf);
        if let Err(error) = process::rename_pid_file(&pid, &with_suffix(&pid)) {
            log::global(Level::Alert, format_args!("rename() \"{}\" failed {}", pid.display(), log::Os(&error)));
            return false;
        }
        let sockets: Vec<Listening> = self.sockets.values().flatten().cloned().collect();
        let mut args = std::env::args_os();
        let program = args.next().unwrap_or_default();
        let args: Vec<_> = args.collect();
        // The file does not name the dashboard's address, so the successor would inherit a socket that its file does
        // not ask for.
        let dashboard = self.origin.dashboard.map(|address| (place::ENV_ADDRESS, address.to_string()));
        match process::exec_new_binary(&program, &args, &sockets, dashboard.as_slice()) {
            Ok(child) => {
                log::global(Level::Notice, format_args!("start new binary process {}", child.id()));
                self.successor = Some(child);
                if let Some(bus) = crate::declared(&self.conf).purge.bus() {
                    bus.expect_namesake();
                }
                true
            }
            Err(error) => {
                log::global(Level::Alert, format_args!("execve() failed {}", log::Os(&error)));
                let _ = process::rename_pid_file(&with_suffix(&pid), &pid);
                false
            }
        }
    }

    /// When a successor has ended, this process takes its place again.
    fn reap(&mut self) {
        if let Some(child) = &mut self.successor
            && let Ok(Some(status)) = child.try_wait()
        {
            log::global(Level::Notice, format_args!("process {} exited with {status}", child.id()));
            self.successor = None;
            self.tell_ready("");
            let pid = pid_file(&self.origin, &self.conf);
            let _ = process::rename_pid_file(&with_suffix(&pid), &pid);
        }
    }

    /// The workers, for callers that need data that only the workers have.
    pub fn workers(&self) -> impl Iterator<Item = &Remote> {
        self.crew.serving()
    }

    /// All workers' counters.
    pub fn counters(&self) -> AllCounters {
        self.crew.counters().clone()
    }
}

/// Logs that a signal is ignored.
fn refused(signal: Signal, sender: process::Sender) {
    let process::Sender { code, pid, uid } = sender;
    let name = signal.name();
    log::global(
        Level::Notice,
        format_args!(
            "weir ignores {name} from process {pid} of user {uid} (si_code {code}), and further such signals: it obeys \
             only signals that root or the user who started weir sends with kill(); give weir a \"user\" that runs \
             nothing else"
        ),
    );
}

/// Gives the observer the configuration in force.
fn show(crew: &Crew, conf: &Arc<Conf>, sockets: &HashMap<Address, Vec<Listening>>) {
    crew.live().show(conf, sockets.values().flatten().cloned().collect(), crew.seats());
}

fn with_suffix(pid: &std::path::Path) -> PathBuf {
    let mut name = pid.as_os_str().to_owned();
    name.push(".oldbin");
    PathBuf::from(name)
}

/// The sockets of connections: those of `http`, then those of `stream`.
fn stream_sockets(conf: &Conf) -> impl Iterator<Item = &Socket> {
    conf.sockets.iter().chain(&weir_stream::conf::of(conf).streams.sockets)
}

/// Binds the sockets that are not bound yet. Sockets that the file no longer names are left out, which closes them.
fn open_sockets(
    conf: &Conf,
    mut known: HashMap<Address, Vec<Listening>>,
    workers: usize,
) -> Result<HashMap<Address, Vec<Listening>>, String> {
    let mut open = HashMap::new();
    for socket in stream_sockets(conf) {
        let wanted = if socket.options.reuseport { workers.max(1) } else { 1 };
        let mut set = known.remove(&socket.address).unwrap_or_default();
        for listening in &set {
            if let Err(error) = listening.reconfigure(&socket.options) {
                log::global(Level::Alert, format_args!("listen() options failed {}", log::Os(&error)));
            }
        }
        set.truncate(wanted);
        while set.len() < wanted {
            set.push(bind(&socket.address, &socket.options)?);
        }
        open.insert(socket.address.clone(), set);
    }
    Ok(open)
}

/// Binds the UDP sockets that are not bound yet.
fn open_datagrams(conf: &Conf, known: &Datagrams, workers: usize) -> Result<Datagrams, String> {
    let mut open = Datagrams::new();
    for socket in &weir_stream::conf::of(conf).datagrams.sockets {
        let Some(address) = socket.address.tcp() else { continue };
        let options = DatagramOptions {
            receive_buffer_bytes: socket.options.receive_buffer_bytes,
            send_buffer_bytes: socket.options.send_buffer_bytes,
            ipv6only: socket.options.ipv6only,
        };
        let mut set = known.get(&address).cloned().unwrap_or_default();
        set.truncate(workers);
        while set.len() < workers {
            let bound = datagrams::bind(address, &options);
            set.push(bound.map_err(|error| format!("bind() to {address} failed {}", log::Os(&error)))?);
        }
        open.insert(address, set);
    }
    Ok(open)
}

fn bind(address: &Address, options: &weir_net::ListenOptions) -> Result<Listening, String> {
    let mut tries = 0;
    loop {
        match listener::bind(address, options) {
            Ok(listening) => return Ok(listening),
            Err(error) => {
                let message = format!("bind() to {address} failed {}", log::Os(&error));
                tries += 1;
                if error.kind() != io::ErrorKind::AddrInUse || tries >= BIND_TRIES {
                    return Err(message);
                }
                log::global(Level::Emerg, format_args!("{message}"));
                std::thread::sleep(BIND_PAUSE);
            }
        }
    }
}
