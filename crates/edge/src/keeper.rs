//! The keeper: opens what only root may open, answers signals, and keeps a server running.
//!
//! The server serves; it is a process of its own ([`apart`]) or, with `master_process off`, this one ([`here`]). The
//! keeper reads no byte from the network (`docs/why/011-keeper.md`).

pub mod apart;
pub mod beacon;
pub mod canary;
pub mod desk;
pub mod here;
pub mod opener;
pub mod order;
pub mod passed;
pub mod processes;
mod trial;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use weir_conf::{Files, Level as Gravity, Problem, Tree};
use weir_http::exchange::conf::Conf;
use weir_meter::live::{Canary, CanaryPhase, CanaryReason};
use weir_net::answers::{self, Answers};
use weir_net::forward::ForwardEnd;
use weir_net::log::{self, Level};
use weir_net::process::{self, Identity, Manager, Signal, Signals};
use weir_net::{Address, ListenOptions, Listening, listener, worker};

use beacon::Beacon;
use canary::KeptCanary;

use crate::canary::terms::{CanaryOrder, CanaryServe};
use crate::dash::place::{self, Wanted};
use crate::load::{
    ConfOrigin, Dashboard, Loaded, identity, is_grave, is_public, level_of, load, pid_file, worker_count,
};
use crate::resources::{self, Resources};

/// Events that wait for the keeper, at most. The threads that send them wait for room.
const EVENTS_MAX: usize = 64;
/// systemd hears this often that weir is alive, in the time after which it would restart weir: one late answer is no
/// reason to restart.
const ROUNDS: u32 = 4;
/// The workers are asked this often whether they answer, unless systemd wants to know more often.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// Something that the keeper acts on.
#[derive(Debug)]
pub enum Event {
    /// A signal of someone who may send it.
    Signal(Signal),
    /// The server has news: [`KeptServer::news`].
    Server,
}

/// A configuration that the server is to put in force.
pub struct Load {
    /// The configuration and its files.
    pub conf: Conf,
    /// The statements.
    pub tree: Tree,
    /// The answers of the machine with which it was read.
    pub answers: Arc<Answers>,
    /// The sockets and log files that it has opened.
    pub resources: Resources,
    /// The user of the workers; `None` when there are no rights to give up.
    pub identity: Option<Identity>,
    /// How often the server says whether its workers answer.
    pub ask_every: Duration,
    /// The configuration is that of a canary: it is put beside the one in force, or in its place.
    pub canary: Option<CanaryServe>,
}

/// The news of a canary.
#[derive(Debug)]
pub enum CanaryNews {
    /// None.
    None,
    /// Its state.
    State(Box<Canary>),
    /// The server that had it has ended.
    Died,
}

/// The news of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// None.
    None,
    /// All workers have answered.
    Alive,
    /// The server has ended, as it was told.
    Ended,
}

/// A server, as the keeper sees it.
pub trait KeptServer {
    /// Puts a configuration in force. After an error the one before is in force.
    ///
    /// # Errors
    /// In nginx's words.
    fn serve(&mut self, load: Load) -> Result<(), String>;

    /// Shows that a reload was refused.
    fn refuse(&mut self, why: Vec<String>);

    /// The secret of QUIC for a new binary, as text, and the ways to the processes that the text names.
    fn left(&mut self) -> (String, Vec<ForwardEnd>);

    /// Opens every log file again by its name.
    fn reopen(&mut self);

    /// A new binary serves too, or has ended.
    fn succeed(&mut self, is_succeeded: bool);

    /// Gives an order about the canary that runs.
    fn steer(&mut self, order: CanaryOrder);

    /// The news of the canary since the last call.
    fn canary(&mut self) -> CanaryNews;

    /// Lets every exchange end. [`News::Ended`] follows.
    fn quit(&mut self);

    /// Ends at once.
    fn stop(&mut self);

    /// The news since the last call.
    fn news(&mut self) -> News;

    /// When [`KeptServer::news`] wants to be called again at the latest.
    fn wait(&self) -> Option<Duration>;
}

/// The way on which a server says that it has news.
#[derive(Clone, Debug)]
pub struct Bell(SyncSender<Event>);

impl Bell {
    /// Lets the keeper ask for the news. If many events wait, the keeper asks anyway.
    pub fn ring(&self) {
        let _ = self.0.try_send(Event::Server);
    }
}

/// The part of the configuration in force that the keeper needs.
struct InForce {
    generation: u32,
    /// The main file, and the answers of the machine with which it was read: the text in force, whatever the files say now.
    file: String,
    answers: Arc<Answers>,
    workers: usize,
    nofile: Option<u64>,
    pid: PathBuf,
    /// The address of the dashboard's own server.
    dashboard: Option<SocketAddr>,
    /// The addresses of QUIC.
    quic: Vec<SocketAddr>,
    resources: Resources,
}

/// The keeper of a server.
pub struct Keeper<S> {
    origin: ConfOrigin,
    in_force: InForce,
    server: S,
    events: Receiver<Event>,
    bell: Bell,
    /// Shows this edge to `weir top`.
    beacon: Beacon,
    /// The new binary that replaces this process.
    successor: Option<Child>,
    /// systemd, if it waits for messages.
    manager: Option<Manager>,
    /// The number of the newest configuration that the server got. A refused one has taken none.
    newest: u32,
    canary: KeptCanary,
}

/// Reads a configuration, and records the answers of the machine for the server.
pub fn load_recorded(origin: &ConfOrigin, files: &dyn Files, generation: u32) -> (Loaded, Answers) {
    answers::recorded(|| {
        let loaded = load(origin, files, generation);
        for source in loaded.tree.files.iter().filter(|source| !source.is_command_line) {
            is_public(&source.name);
        }
        loaded
    })
}

/// Reads a configuration, and binds the dashboard's own address unless it `is_bound`. If the first of our own ports is
/// taken, another one is found. An address that cannot be bound costs the dashboard and not the server: weir warns, and reads
/// the configuration again without it.
pub fn load_with_dashboard(
    origin: &mut ConfOrigin,
    files: &dyn Files,
    generation: u32,
    is_bound: &dyn Fn(SocketAddr) -> bool,
) -> (Loaded, Answers, Option<Listening>) {
    let (loaded, answers) = load_recorded(origin, files, generation);
    let dashboard = loaded.conf.as_ref().and_then(|conf| conf.dashboard);
    let Some(address) = dashboard.filter(|address| !is_bound(*address)) else {
        return (loaded, answers, None);
    };
    let bound = listener::bind(&Address::Tcp(address), &ListenOptions::default());
    let is_named = matches!(place::wanted(&loaded.tree), Wanted::At(_));
    // Another address than the one in this configuration makes it another configuration.
    let (instead, failed) = match bound {
        Ok(bound) => return (loaded, answers, Some(bound)),
        Err(error) if is_named => (None, Some(format!("bind() to {address} failed {}", log::Os(&error)))),
        Err(_) => match place::claim() {
            Some(free) => (Some(free), None),
            None => (None, Some("all ports for it are in use".to_owned())),
        },
    };
    let decided = instead.as_ref().and_then(|free| free.local_addr().tcp());
    if let (Dashboard::AsWritten { on, .. }, Some(_)) = (&mut origin.dashboard, decided) {
        *on = decided;
    }
    let other = ConfOrigin { dashboard: Dashboard::Decided(decided), ..origin.clone() };
    let (mut loaded, answers) = load_recorded(&other, files, generation);
    loaded.problems.extend(failed.map(|why| {
        let problem = Problem::nowhere(Gravity::Warn, format!("weir serves without a dashboard: {why}"));
        if is_named { problem.todo("\"dashboard on\" takes a free port") } else { problem }
    }));
    (loaded, answers, instead)
}

/// Opens the resources of a configuration, and adds the answers that the machine gives meanwhile.
fn open(
    conf: &Conf,
    known: &Resources,
    identity: Option<&Identity>,
    answers: &mut Answers,
) -> Result<Resources, String> {
    let (opened, more) = answers::recorded(|| Resources::open(conf, known, identity));
    answers.extend(more);
    opened
}

impl<S: KeptServer> Keeper<S> {
    /// Opens what the configuration needs, and lets the server put it in force.
    ///
    /// `claimed` is bound already, and served if the configuration names its address.
    ///
    /// # Errors
    /// In nginx's words.
    pub fn start(
        origin: ConfOrigin,
        loaded: (Conf, Tree, Answers),
        claimed: Option<Listening>,
        server: impl FnOnce(Bell, Option<Manager>) -> S,
    ) -> Result<Keeper<S>, String> {
        let (conf, tree, mut answers) = loaded;
        resources::limits(&conf);
        let manager = Manager::find();
        let passed = manager.map(Manager::passed).unwrap_or_default();
        let mut known = Resources::default();
        known.add(claimed.into_iter().chain(process::inherited()).chain(passed.iter().cloned()));
        for socket in process::inherited_datagrams() {
            known.datagrams.entry(socket.local_addr()).or_default().push(socket);
        }
        let identity = identity(&conf)?;
        let resources = open(&conf, &known, identity.as_ref(), &mut answers)?;
        log::install(conf.main.error_log.main.clone());
        let answers = Arc::new(answers);
        let in_force = InForce::of(&origin, origin.file.clone(), answers.clone(), &conf, &resources);
        let (send, events) = sync_channel(EVENTS_MAX);
        let bell = Bell(send);
        let mut server = server(bell.clone(), manager);
        let ask_every = ask_every(manager);
        server.serve(Load { conf, tree, answers, resources, identity, ask_every, canary: None })?;
        let beacon = Beacon::default();
        let (newest, canary) = (in_force.generation, KeptCanary::default());
        let mut keeper =
            Keeper { origin, in_force, server, events, bell, beacon, successor: None, manager, newest, canary };
        keeper.show();
        keeper.store_sockets(passed.iter().map(Listening::local_addr));
        Ok(keeper)
    }

    /// Shows and logs where the dashboard is.
    fn show(&mut self) {
        let dashboard = self.in_force.dashboard;
        self.beacon.show(dashboard);
        if let Some(address) = dashboard {
            log::global(Level::Notice, format_args!("dashboard on http://{address}/"));
        }
    }

    /// Writes the pid file.
    ///
    /// # Errors
    /// In nginx's words.
    pub fn write_pid(&self) -> Result<(), String> {
        let path = &self.in_force.pid;
        self.canary.remove(path);
        process::write_pid_file(path)
            .map_err(|error| format!("open() \"{}\" failed {}", path.display(), log::Os(&error)))
    }

    /// Handles signals until one of them, or the server's end, ends the process. So does the end of `signals`.
    pub fn serve(mut self, signals: Signals, files: &dyn Files) {
        log::leave_terminal();
        self.tell_ready("");
        let bell = self.bell.clone();
        let closed = signals.handle();
        let hears = worker::block_aside("signals", move || {
            for signal in signals.telling(refused) {
                if bell.0.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
            bell.ring();
        });
        if let Err(error) = hears {
            // A keeper that hears no signal could not be ended.
            log::global(Level::Emerg, format_args!("thread could not be started {}", log::Os(&error)));
            return self.end();
        }
        let mut is_quitting = false;
        while !closed.is_closed() {
            match self.next() {
                Some(Event::Signal(signal)) => match signal {
                    Signal::Hup if !is_quitting => self.hang_up(files),
                    Signal::Usr1 => self.server.reopen(),
                    Signal::Quit | Signal::Winch if !is_quitting => {
                        is_quitting = true;
                        log::global(Level::Notice, format_args!("gracefully shutting down"));
                        self.tell_end();
                        self.in_force.resources.close(self.successor.is_some());
                        self.server.quit();
                    }
                    Signal::Term | Signal::Int => {
                        self.tell_end();
                        break;
                    }
                    Signal::Usr2 if self.successor.is_none() => self.upgrade(),
                    Signal::Child => self.reap(),
                    Signal::Hup | Signal::Quit | Signal::Winch | Signal::Usr2 => {}
                },
                Some(Event::Server) | None => {}
            }
            match self.server.news() {
                News::None => {}
                News::Alive => self.manager.iter().for_each(|manager| manager.alive()),
                News::Ended => break,
            }
            self.hear_canary(files);
        }
        self.end();
    }

    fn next(&self) -> Option<Event> {
        match self.server.wait() {
            // The bell of this keeper keeps the queue open.
            None => self.events.recv().ok(),
            Some(wait) => self.events.recv_timeout(wait).ok(),
        }
    }

    fn end(mut self) {
        self.server.stop();
        log::global(Level::Notice, format_args!("exit"));
        let (pid, old) = (&self.in_force.pid, with_suffix(&self.in_force.pid));
        if self.successor.is_none() {
            self.canary.remove(pid);
        }
        let _ = process::remove_pid_file(if self.successor.is_some() { &old } else { pid });
        self.in_force.resources.close(self.successor.is_some());
    }

    /// Reads the configuration again and puts it in force; a bad one changes nothing.
    fn reload(&mut self, files: &dyn Files) {
        self.manager.iter().for_each(|manager| manager.reloading());
        log::global(Level::Notice, format_args!("reconfiguring"));
        let news = match self.try_reload(files) {
            Ok(()) => "",
            Err(why) => {
                self.server.refuse(why);
                "; the last reload was refused, see the error log"
            }
        };
        self.tell_ready(news);
    }

    /// After an error, which is in the error log, nothing has changed.
    fn try_reload(&mut self, files: &dyn Files) -> Result<(), Vec<String>> {
        let bound = &self.in_force.resources.sockets;
        let is_bound = |address| bound.contains_key(&Address::Tcp(address));
        let (loaded, answers, claimed) = load_with_dashboard(&mut self.origin, files, self.newest + 1, &is_bound);
        let mut why = Vec::new();
        for problem in &loaded.problems {
            let sentence = problem.sentence(&loaded.tree);
            log::global(level_of(problem), format_args!("{sentence}"));
            if is_grave(problem) {
                why.push(sentence);
            }
        }
        let Some(conf) = loaded.conf else { return Err(why) };
        self.replace((conf, loaded.tree, answers), claimed, None).map_err(|message| {
            log::global(Level::Emerg, format_args!("{message}"));
            vec![message]
        })
    }

    fn replace(
        &mut self,
        (conf, tree, mut answers): (Conf, Tree, Answers),
        claimed: Option<Listening>,
        canary: Option<CanaryServe>,
    ) -> Result<(), String> {
        let promotes = canary.is_some();
        let identity = identity(&conf)?;
        let mut known = self.in_force.resources.clone();
        known.add(claimed);
        let resources = open(&conf, &known, identity.as_ref(), &mut answers)?;
        if conf.main.process.nofile != self.in_force.nofile {
            resources::limits(&conf);
        }
        let (answers, errors) = (Arc::new(answers), conf.main.error_log.main.clone());
        let file = canary.as_ref().map_or(&self.origin.file, CanaryServe::file).clone();
        let in_force = InForce::of(&self.origin, file, answers.clone(), &conf, &resources);
        let ask_every = ask_every(self.manager);
        self.server.serve(Load { conf, tree, answers, resources, identity, ask_every, canary })?;
        match promotes {
            true => self.canary.end(CanaryPhase::Promoted, CanaryReason::Asked, &self.in_force.pid),
            false => self.canary.end(CanaryPhase::RolledBack, CanaryReason::Reload, &self.in_force.pid),
        }
        log::install(errors);
        self.newest = in_force.generation;
        let before = std::mem::replace(&mut self.in_force, in_force);
        if before.dashboard != self.in_force.dashboard {
            self.show();
        }
        if self.successor.is_none() {
            before.resources.remove_left_out(&self.in_force.resources);
        }
        self.move_pid_file(&before.pid);
        self.store_sockets(before.resources.sockets.keys());
        Ok(())
    }

    /// Makes the manager's store hold the sockets in use, and none of the `former` addresses that are not in use.
    fn store_sockets<'a>(&self, former: impl Iterator<Item = &'a weir_net::Address>) {
        let Some(manager) = self.manager else { return };
        let sockets = &self.in_force.resources.sockets;
        former.filter(|address| !sockets.contains_key(address)).for_each(|address| manager.forget(address));
        sockets.values().flatten().for_each(|socket| manager.keep(socket));
    }

    /// Tells the manager that weir serves, and with which configuration; `news` ends the line.
    fn tell_ready(&self, news: &str) {
        if let Some(manager) = self.manager {
            let (workers, generation) = (self.in_force.workers, self.in_force.generation);
            manager.ready(&format!("{workers} workers serve configuration {generation}{news}"));
        }
    }

    /// Tells the manager that weir ends, or which process serves in its place.
    fn tell_end(&self) {
        match (self.manager, &self.successor) {
            (Some(manager), Some(successor)) => manager.main_process(successor.id()),
            (Some(manager), None) => manager.stopping(),
            (None, _) => {}
        }
    }

    fn move_pid_file(&self, old: &PathBuf) {
        let new = &self.in_force.pid;
        if old != new {
            if let Err(error) = process::write_pid_file(new) {
                log::global(Level::Emerg, format_args!("open() \"{}\" failed {}", new.display(), log::Os(&error)));
                return;
            }
            let _ = process::remove_pid_file(old);
        }
    }

    /// Starts the binary again with our sockets (nginx: on-the-fly upgrade).
    fn upgrade(&mut self) {
        let pid = &self.in_force.pid;
        if let Err(error) = process::rename_pid_file(pid, &with_suffix(pid)) {
            log::global(Level::Alert, format_args!("rename() \"{}\" failed {}", pid.display(), log::Os(&error)));
            return;
        }
        let sockets = self.in_force.resources.sockets.values().flatten().map(AsFd::as_fd).collect();
        let mut args = std::env::args_os();
        let program = args.next().unwrap_or_default();
        let args: Vec<_> = args.collect();
        // The file does not name the dashboard's address, so the successor would inherit a socket that its file does
        // not ask for.
        let dashboard = self.in_force.dashboard.map(|address| (place::ENV_ADDRESS, address.to_string()));
        let (secret, forwards) = self.server.left();
        let more: Vec<_> = dashboard.into_iter().chain([(process::ENV_SECRET, secret)]).collect();
        let quic = self.in_force.quic.iter().filter_map(|address| self.in_force.resources.datagrams.get(address));
        let lists = [
            (process::ENV_SOCKETS, sockets),
            (process::ENV_DATAGRAMS, quic.flatten().map(AsFd::as_fd).collect()),
            (process::ENV_FORWARDS, forwards.iter().map(AsFd::as_fd).collect()),
        ];
        match process::exec_new_binary(&program, &args, &lists, &more) {
            Ok(child) => {
                log::global(Level::Notice, format_args!("start new binary process {}", child.id()));
                self.successor = Some(child);
                self.server.succeed(true);
            }
            Err(error) => {
                log::global(Level::Alert, format_args!("execve() failed {}", log::Os(&error)));
                let _ = process::rename_pid_file(&with_suffix(pid), pid);
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
            self.server.succeed(false);
            self.tell_ready("");
            let pid = &self.in_force.pid;
            let _ = process::rename_pid_file(&with_suffix(pid), pid);
        }
    }
}

impl InForce {
    fn of(origin: &ConfOrigin, file: String, answers: Arc<Answers>, conf: &Conf, resources: &Resources) -> InForce {
        InForce {
            generation: conf.generation,
            file,
            answers,
            workers: worker_count(conf),
            nofile: conf.main.process.nofile,
            pid: pid_file(origin, conf),
            dashboard: conf.dashboard,
            quic: conf.quic.iter().filter_map(|socket| socket.address.tcp()).collect(),
            resources: resources.clone(),
        }
    }
}

fn ask_every(manager: Option<Manager>) -> Duration {
    manager.and_then(Manager::patience).map_or(ASK_EVERY, |patience| (patience / ROUNDS).min(ASK_EVERY))
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

fn with_suffix(pid: &std::path::Path) -> PathBuf {
    let mut name = pid.as_os_str().to_owned();
    name.push(".oldbin");
    PathBuf::from(name)
}
