//! The worker threads: which of them serve, which finish, and the state each keeps for messages from the control
//! thread.
//!
//! If a reload wants as many workers, on the same CPUs, for the same user, all workers stay. Else the control thread
//! hires some and dismisses some. A dismissed worker finishes its work, as nginx's old workers do, and then its
//! thread ends.

use std::cell::Cell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use weir_http::exchange::conf::Conf;
use weir_http::family::process::Affinity;
use weir_http::hold::colleagues::Colleagues;
use weir_http::hold::counters::{AllCounters, SEATS_MAX};
use weir_http::hold::worker::Worker;
use weir_net::datagrams::Receiving;
use weir_net::identity::assume;
use weir_net::log::{self, Level};
use weir_net::worker::Remote;
use weir_net::{Address, Listening};
use weir_stream::drive::datagrams;

use crate::canary;
use crate::canary::run::CanaryRun;
use crate::drive;
use crate::drive::accept::{Stop, accept};
use crate::drive::quic::{self, PortSockets};
use crate::family::ALL;
use crate::live::{self, Live};
use crate::load::{identity, worker_count};
use crate::resources::Resources;

/// The workers of a process.
pub struct Crew {
    /// Workers that accept; the place in the list decides sockets and CPU.
    serving: Vec<Member>,
    /// Workers that a reload dismissed and whose threads may still run.
    finishing: Vec<Member>,
    counters: AllCounters,
    colleagues: Colleagues,
    live: Arc<Live>,
    left: Arc<Left>,
}

/// A worker as the control thread knows it.
struct Member {
    remote: Remote,
    seat: usize,
}

/// The additional workers that a configuration needs; they serve from `take_over` on.
pub struct Hired {
    kept: usize,
    fresh: Vec<Member>,
}

impl Hired {
    /// How many were started.
    pub fn len(&self) -> usize {
        self.fresh.len()
    }

    /// Whether none was started.
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty()
    }
}

impl Crew {
    /// A crew without workers.
    pub fn new() -> Crew {
        let left = Arc::new(Left { count: Mutex::new(0), changed: Condvar::new() });
        let counters = AllCounters::new();
        let live = Live::new(counters.clone());
        let colleagues = Colleagues::default();
        Crew { serving: Vec::new(), finishing: Vec::new(), counters, colleagues, live, left }
    }

    /// Starts the workers that `conf` needs and `old` did not; on an error, ends the workers it has just started.
    pub fn hire(&mut self, conf: &Arc<Conf>, old: Option<&Conf>) -> Result<Hired, String> {
        let same = |old: &Conf| {
            let (new, old) = (&conf.main.process, &old.main.process);
            new.user == old.user && new.affinity == old.affinity && new.keeps_raw == old.keeps_raw
        };
        let count = worker_count(conf);
        let kept = if old.is_some_and(same) { count.min(self.serving.len()) } else { 0 };
        self.finishing.retain(|member| !member.remote.is_finished());
        let mut hired = Hired { kept, fresh: Vec::new() };
        for index in kept..count {
            match self.start(conf, index, &hired.fresh) {
                Ok(member) => hired.fresh.push(member),
                Err(message) => {
                    hired.fresh.iter().for_each(Member::stop);
                    return Err(message);
                }
            }
        }
        Ok(hired)
    }

    /// Puts a configuration in force: the kept workers take it over, the new workers accept, the others finish.
    pub fn take_over(&mut self, conf: &Arc<Conf>, hired: Hired, resources: &Resources) {
        let dismissed = self.serving.split_off(hired.kept.min(self.serving.len()));
        for member in &self.serving {
            let conf = conf.clone();
            member.remote.run(move || with_here(|here| here.adopt(conf)));
        }
        self.serving.extend(hired.fresh);
        for (index, member) in self.serving.iter().enumerate() {
            let mine: Vec<Listening> =
                resources.sockets.values().filter_map(|set| set.get(index % set.len().max(1)).cloned()).collect();
            let own = own_datagrams(conf, resources, index, self.serving.len());
            member.remote.run(move || {
                with_here(|here| {
                    here.accept_from(mine);
                    here.receive_from(own);
                });
            });
        }
        for (address, set) in resources.datagrams.iter().filter(|(address, _)| is_quic(conf, **address)) {
            quic::steer(conf, *address, set, self.serving.len());
        }
        // A socket has one reader: the others take from it what is theirs by mailbox.
        let read_on: Vec<SocketAddr> = resources.datagrams.keys().copied().collect();
        dismissed.iter().for_each(|member| member.dismiss(true, read_on.clone()));
        self.finishing.extend(dismissed);
    }

    /// Lets every worker finish its exchanges and end; `is_succeeded` is true if another process accepts new
    /// connections.
    pub fn dismiss_all(&self, is_succeeded: bool) {
        self.serving.iter().chain(&self.finishing).for_each(|member| member.dismiss(is_succeeded, Vec::new()));
    }

    /// Lets every worker look which sockets of QUIC it reads: another process reads them, or has ended.
    pub fn receive_again(&self) {
        for seat in self.colleagues.seats() {
            self.colleagues.run(seat, quic::receive_again);
        }
    }

    /// Ends every worker now, and waits for the threads.
    pub fn stop_all(&self) {
        let all = || self.serving.iter().chain(&self.finishing);
        all().for_each(Member::stop);
        all().for_each(|member| member.remote.join());
    }

    /// The counter of workers that have not finished.
    pub fn left(&self) -> Arc<Left> {
        self.left.clone()
    }

    /// How many workers serve.
    pub fn len(&self) -> usize {
        self.serving.len()
    }

    /// Whether no worker serves.
    pub fn is_empty(&self) -> bool {
        self.serving.is_empty()
    }

    /// The workers that serve.
    pub fn serving(&self) -> impl Iterator<Item = &Remote> {
        self.serving.iter().map(|member| &member.remote)
    }

    /// The workers, for threads that send them work.
    pub fn colleagues(&self) -> Colleagues {
        self.colleagues.clone()
    }

    /// The counters that workers keep by name.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// The seats of the workers that serve.
    pub fn seats(&self) -> Vec<usize> {
        self.serving.iter().map(|member| member.seat).collect()
    }

    /// All workers' counters.
    pub fn counters(&self) -> &AllCounters {
        &self.counters
    }

    fn start(&self, conf: &Arc<Conf>, index: usize, fresh: &[Member]) -> Result<Member, String> {
        let taken =
            |seat: &usize| self.serving.iter().chain(&self.finishing).chain(fresh).any(|member| member.seat == *seat);
        let seat = (0..SEATS_MAX).find(|seat| !taken(seat));
        let seat =
            seat.ok_or_else(|| format!("{SEATS_MAX} workers are running already (new and old ones), try again later"))?;
        let cpu = match &conf.main.process.affinity {
            Affinity::None => None,
            Affinity::Auto => Some(index % weir_host::effective_cpus().max(1)),
            Affinity::Cpus(cpus) => cpus.get(index).or(cpus.last()).copied(),
        };
        let identity = identity(conf)?;
        self.counters.occupy(seat);
        let (conf, counters, live) = (conf.clone(), self.counters.clone(), self.live.clone());
        let (colleagues, unfinished) = (self.colleagues.clone(), Unfinished::new(&self.left));
        let seed = seed(index);
        let remote = weir_net::worker::start(&format!("worker {index}"), cpu, move || {
            if !assume(identity.as_ref()) {
                return;
            }
            let worker = Worker::new(seat, conf, counters, colleagues, live.boards().clone(), seed);
            live::join(&worker, &live);
            THIS.with(|this| {
                this.replace(Some(Here {
                    worker: worker.clone(),
                    accepting: HashMap::new(),
                    receiving: HashMap::new(),
                    _unfinished: unfinished,
                }))
            });
            weir_net::worker::on_panic(Rc::new(|what| {
                log::global(Level::Alert, format_args!("a task panicked: {what}"))
            }));
            ALL.start(&worker);
            drive::subrequest::serve(&worker);
        })
        .map_err(|error| format!("worker thread could not be started {}", log::Os(&error)))?;
        self.colleagues.add(seat, remote.clone());
        Ok(Member { remote, seat })
    }
}

/// Gives a share of the clients a configuration beside the one in force.
pub fn split(colleagues: &Colleagues, conf: &Arc<Conf>, run: &Arc<CanaryRun>) {
    for seat in colleagues.seats() {
        let (conf, run) = (conf.clone(), run.clone());
        colleagues.run(seat, move || with_here(|here| here.split(conf, run)));
    }
}

/// Throws the coin of a canary before it begins.
pub fn rehearse(colleagues: &Colleagues, run: &Arc<CanaryRun>) {
    for seat in colleagues.seats() {
        let run = run.clone();
        colleagues.run(seat, move || with_here(|here| here.rehearse(run)));
    }
}

/// Takes the configuration of this number, which is beside the one in force, from all clients.
pub fn leave(colleagues: &Colleagues, number: u32) {
    for seat in colleagues.seats() {
        colleagues.run(seat, move || with_here(|here| here.join(number)));
    }
}

/// Whether an address is one of QUIC.
fn is_quic(conf: &Conf, address: SocketAddr) -> bool {
    conf.quic.iter().any(|socket| socket.address == Address::Tcp(address))
}

/// The UDP sockets that worker `index` of `count` reads. Sockets of QUIC stay when there are fewer workers, and each has a
/// reader: what their queues hold is not lost.
fn own_datagrams(conf: &Conf, resources: &Resources, index: usize, count: usize) -> Vec<Own> {
    let own = |(address, set): (&SocketAddr, &Vec<Receiving>)| {
        if is_quic(conf, *address) {
            let all: Vec<Receiving> = set.iter().skip(index).step_by(count.max(1)).cloned().collect();
            return (!all.is_empty()).then(|| Own::Quic(*address, PortSockets { all, number: index }));
        }
        set.get(index).cloned().map(Own::Sessions)
    };
    resources.datagrams.iter().filter_map(own).collect()
}

/// UDP sockets of one address for one worker.
enum Own {
    /// For sessions of `stream`.
    Sessions(Receiving),
    /// For connections of QUIC.
    Quic(SocketAddr, PortSockets),
}

impl Default for Crew {
    fn default() -> Crew {
        Crew::new()
    }
}

impl Member {
    /// Others read the sockets of the addresses in `read_on`.
    fn dismiss(&self, others_accept: bool, read_on: Vec<SocketAddr>) {
        let own = self.remote.clone();
        self.remote.run(move || with_here(|here| here.finish(own, others_accept, &read_on)));
    }

    fn stop(&self) {
        // The worker must be dropped before the thread ends: a later drop could not write to the log.
        self.remote.run(|| drop(THIS.take()));
        self.remote.stop();
    }
}

/// Counts the workers that have not finished; a graceful end of the process waits until there are none.
pub struct Left {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Left {
    /// Waits until all have finished.
    pub fn wait(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.changed.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until all have finished, for this time at most.
    pub fn wait_for(&self, patience: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(count, patience, |count| *count > 0));
    }
}

/// One worker that has not finished, until this is dropped.
struct Unfinished(Arc<Left>);

impl Unfinished {
    fn new(left: &Arc<Left>) -> Unfinished {
        *left.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Unfinished(left.clone())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut count = self.0.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = count.saturating_sub(1);
        self.0.changed.notify_all();
    }
}

/// A seed that differs from worker to worker and from start to start.
fn seed(index: usize) -> u64 {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) as u64;
    let time = std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_nanos() as u64);
    (time ^ (u64::from(std::process::id()) << 32))
        .wrapping_add((index as u64 + 1 + count) << 17)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The state that a worker thread keeps for messages from the control thread.
struct Here {
    worker: Rc<Worker>,
    accepting: HashMap<Address, Rc<Stop>>,
    receiving: HashMap<SocketAddr, Stopping>,
    _unfinished: Unfinished,
}

/// Ends the task that receives from a UDP socket.
enum Stopping {
    /// Sessions of `stream`.
    Sessions(Rc<datagrams::Stop>),
    /// Connections of QUIC.
    Quic(Rc<quic::PortStop>),
}

impl Stopping {
    /// Receives no more sessions and connections; others may read the socket.
    fn set(&self, others_read: bool) {
        match self {
            Stopping::Sessions(stop) => stop.set(),
            Stopping::Quic(stop) => stop.set(others_read),
        }
    }
}

thread_local! {
    static THIS: Cell<Option<Here>> = const { Cell::new(None) };
}

fn with_here(f: impl FnOnce(&mut Here)) {
    if let Some(mut here) = THIS.with(Cell::take) {
        f(&mut here);
        THIS.with(|this| this.set(Some(here)));
    }
}

impl Here {
    /// Puts a configuration in force.
    fn adopt(&self, conf: Arc<Conf>) {
        let generation = self.worker.adopt(conf);
        ALL.watch(&self.worker, &generation);
    }

    /// Gives a share of the clients a configuration beside the one in force.
    fn split(&self, conf: Arc<Conf>, run: Arc<CanaryRun>) {
        // A reload may have come between the end of the look and this.
        if !run.is_on() || self.worker.main().conf.generation > conf.generation {
            return;
        }
        let generation = self.worker.split(conf, run.coin.clone());
        ALL.watch(&self.worker, &generation);
        canary::worker::begin(&self.worker, run);
    }

    /// Throws the coin for clients, and gives all of them the configuration in force.
    fn rehearse(&self, run: Arc<CanaryRun>) {
        self.worker.rehearse(run.coin_before.clone());
        canary::worker::begin(&self.worker, run);
    }

    /// Gives all clients the configuration in force.
    fn join(&self, number: u32) {
        self.worker.join(number);
        canary::worker::end(&self.worker, number);
    }

    /// Accepts from these sockets and from no others.
    fn accept_from(&mut self, sockets: Vec<Listening>) {
        let mut before = std::mem::take(&mut self.accepting);
        for listening in sockets {
            let address = listening.local_addr().clone();
            let stop = match before.remove(&address) {
                Some(stop) => stop,
                None => {
                    let stop = Rc::new(Stop::default());
                    let socket = Rc::new(address.clone());
                    weir_net::worker::spawn(accept(self.worker.clone(), listening, socket, stop.clone()));
                    stop
                }
            };
            self.accepting.insert(address, stop);
        }
        for (_, stop) in before {
            stop.set(false);
        }
    }

    /// Receives datagrams from these sockets and from no others.
    fn receive_from(&mut self, sockets: Vec<Own>) {
        let mut before = std::mem::take(&mut self.receiving);
        for own in sockets {
            let (address, stop) = match own {
                Own::Sessions(socket) => {
                    let address = socket.local_addr();
                    (address, self.receive_sessions(socket, before.remove(&address)))
                }
                Own::Quic(address, sockets) => (address, self.receive_quic(sockets, before.remove(&address))),
            };
            self.receiving.insert(address, stop);
        }
        before.values().for_each(|stop| stop.set(false));
    }

    fn receive_sessions(&self, socket: Receiving, before: Option<Stopping>) -> Stopping {
        match before {
            Some(stop @ Stopping::Sessions(_)) => return stop,
            other => other.iter().for_each(|stop| stop.set(false)),
        }
        let stop = Rc::new(datagrams::Stop::default());
        weir_net::worker::spawn(datagrams::serve(self.worker.clone(), socket, stop.clone()));
        Stopping::Sessions(stop)
    }

    fn receive_quic(&self, mut sockets: PortSockets, before: Option<Stopping>) -> Stopping {
        match before {
            Some(Stopping::Quic(stop)) => {
                stop.read_also(sockets.all.split_off(1));
                return Stopping::Quic(stop);
            }
            other => other.iter().for_each(|stop| stop.set(false)),
        }
        let stop = Rc::new(quic::PortStop::default());
        weir_net::worker::spawn(quic::serve(self.worker.clone(), sockets, stop.clone()));
        Stopping::Quic(stop)
    }

    /// Stops accepting, finishes the work under way, then ends the thread.
    fn finish(&mut self, own: Remote, others_accept: bool, read_on: &[SocketAddr]) {
        for (_, stop) in self.accepting.drain() {
            stop.set(others_accept);
        }
        self.receiving.drain().for_each(|(address, stop)| stop.set(read_on.contains(&address)));
        self.worker.drain(others_accept);
        let worker = self.worker.clone();
        weir_net::worker::spawn(async move {
            // The accepting tasks run first: the connections they still take then count as open.
            weir_net::worker::yield_now().await;
            // Clients of QUIC that have not learnt of the end would be reset.
            while worker.open_connections() > 0 || quic::has_ports() {
                weir_net::timer::sleep(FINISH_POLL).await;
            }
            drop(THIS.take());
            own.stop();
        });
    }
}

/// How often a finishing worker looks whether it is done.
const FINISH_POLL: Duration = Duration::from_millis(5);
