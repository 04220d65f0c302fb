//! The data of one worker thread: no other thread shares it, so it needs no locks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use weir_net::log::{self, Level};
use weir_net::slots::{Key, Slots};
use weir_net::{Address, Listener, Listening, Stream, TlsStream, Transport, timer};

use crate::board::Board;
use crate::colleagues::{self, Colleagues};
use crate::conf::Conf;
use crate::conn::{self, Rest, Shared};
use crate::counters::{self, AllCounters, Counters};
use crate::dns::{Client, Servers};
use crate::exchange::{Origin, Parts};
use crate::family::health;
use crate::family::proxy_ssl::handshake::AllSessions;
use crate::family::ssl::flight::Flights;
use crate::family::ssl::stapling;
use crate::family::upstream::line::Lines;
use crate::family::upstream::live::{self, AllSeen};
use crate::family::upstream::pool::{Pools, Shelf};
use crate::family::upstream::source::GroupRef;
use crate::live::Live;
use crate::seat::Seat;

/// A peer's name, and the number of the cell that counts its tries.
type KnownPeer = (Rc<str>, u32);

/// A configuration with this worker's connections to its upstreams.
pub struct Generation {
    /// The configuration.
    pub conf: Arc<Conf>,
    /// Idle connections to upstreams.
    pub pools: Pools,
    /// Connections to upstreams that each carry many exchanges.
    pub lines: Lines,
    /// TLS sessions with upstreams.
    pub sessions: AllSessions,
    /// Groups with host names, in the state that this worker saw last.
    pub seen: AllSeen,
    /// This worker's resolver clients, by the number of the resolver.
    resolvers: RefCell<HashMap<usize, Rc<Client>>>,
    /// The names and cells of peers by group and index, for tries to share.
    known_peers: RefCell<Vec<Vec<KnownPeer>>>,
}

impl Drop for Generation {
    /// The last exchange of this generation on this worker is over. When it is over on all workers, nothing is left
    /// of the configuration. In nginx, a worker process exits at this point.
    fn drop(&mut self) {
        if self.conf.holders.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // nginx's words, because scripts wait for them after a reload; the parentheses add what ended in weir.
        log::global(
            Level::Notice,
            format_args!(
                "worker process {} exited with code 0 (an old configuration is out of use)",
                std::process::id()
            ),
        );
    }
}

impl Generation {
    /// A configuration as one worker holds it.
    pub fn new(conf: Arc<Conf>, shelf: Shelf) -> Generation {
        conf.holders.fetch_add(1, Ordering::AcqRel);
        Generation {
            conf,
            pools: Pools::new(shelf),
            lines: Lines::default(),
            sessions: AllSessions::default(),
            seen: AllSeen::default(),
            resolvers: RefCell::default(),
            known_peers: RefCell::default(),
        }
    }

    /// This worker's client for the servers of a `resolver`.
    pub fn resolver(&self, servers: &Arc<Servers>) -> Rc<Client> {
        self.resolvers.borrow_mut().entry(servers.number).or_insert_with(|| Client::new(servers.clone())).clone()
    }

    /// A peer's name, shared by all tries at this peer, and the number of the cell that counts them.
    pub fn known_peer(&self, live: &Live, group: usize, peer: usize) -> KnownPeer {
        if let Some(known) = self.known_peers.borrow().get(group).and_then(|known| known.get(peer)) {
            return known.clone();
        }
        let mut known = self.known_peers.borrow_mut();
        let groups = &self.conf.declared.upstream.groups;
        for upstream in groups.iter().skip(known.len()) {
            let named = |address: &str| (address.into(), live.peer(&upstream.name, address));
            known.push(upstream.group.peers().map(|peer| named(&peer.address)).collect());
        }
        known.get(group).and_then(|known| known.get(peer)).cloned().unwrap_or_default()
    }

    /// The listen for connections accepted on a socket; reads the local address only if it matters.
    pub fn listen_of(&self, socket: &Address, stream: &Stream) -> Option<usize> {
        let socket = self.conf.sockets.iter().find(|known| known.address == *socket)?;
        if socket.by_address.is_empty() {
            return Some(socket.fallback);
        }
        let local = stream.local_addr().ok().and_then(|address| address.tcp());
        Some(socket.listen_for(local.as_ref()))
    }
}

/// Memory for exchanges kept for reuse, per worker: as many as the events of one turn may begin.
const SPARE_MAX: usize = 256;

/// Seats kept for later connections, per worker: as many connections as the events of one turn may wake.
const SEATS_MAX: usize = 256;

/// Larger buffers are not kept.
pub const SPARE_BYTES_MAX: usize = 64 << 10;

/// How long accepting pauses when the process is out of files (nginx: 500 ms).
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

/// How long weir waits for ended connections to free their descriptors.
const ROOM_PAUSE: Duration = Duration::from_millis(10);

/// How often weir makes room for one connection before it logs that there is none.
pub const ROOMS_MAX: u32 = 8;

/// Connections that a dismissed worker still accepts, at most: the default length of a listen queue.
const REST_MAX: usize = weir_net::listener::BACKLOG_DEFAULT as usize;

/// How often weir checks idle upstream connections.
const SWEEP_EVERY: Duration = Duration::from_secs(1);

static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

/// Ends an accepting task from outside.
#[derive(Default)]
pub struct Stop {
    is_set: Cell<bool>,
    others_accept: Cell<bool>,
    waiting: Cell<Option<Waker>>,
}

impl Stop {
    /// Ends the task. If other workers go on accepting from the same socket, the task first takes the waiting
    /// connections: the kernel may have woken only this worker for them.
    pub fn set(&self, others_accept: bool) {
        self.is_set.set(true);
        self.others_accept.set(others_accept);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// The next connection; `None` once set.
    async fn or(&self, listener: &Listener) -> Option<io::Result<(Stream, Address)>> {
        poll_fn(|context| {
            if self.is_set.get() {
                return Poll::Ready(None);
            }
            self.waiting.set(Some(context.waker().clone()));
            loop {
                match listener.try_accept() {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        if listener.poll_acceptable().is_pending() {
                            return Poll::Pending;
                        }
                    }
                    accepted => return Poll::Ready(Some(accepted)),
                }
            }
        })
        .await
    }
}

/// The data of a worker.
pub struct Worker {
    /// Its place among the counters of all workers: it writes only these.
    seat: usize,
    /// The counters of all workers.
    pub all_counters: AllCounters,
    /// All workers.
    pub colleagues: Colleagues,
    /// The lookup of the cells, and their reader.
    pub live: Arc<Live>,
    /// The cells of this worker.
    pub board: Arc<Board>,
    generation: RefCell<Rc<Generation>>,
    draining: Cell<bool>,
    connections: RefCell<Slots<Rc<Shared>>>,
    spare_seats: RefCell<Vec<Seat>>,
    spare_parts: RefCell<Vec<Parts>>,
    spare_out: RefCell<Vec<Vec<u8>>>,
    #[allow(clippy::vec_box)] // an exchange holds the box: it changes hands as a pointer
    spare_origins: RefCell<Vec<Box<Origin>>>,
    random: Cell<u64>,
    places_taken: Rc<Cell<usize>>,
    /// Questions about the status of clients' certificates, on their way.
    pub statuses: Flights,
    /// The second of the last log line about connections that were closed to make room.
    noted_reuse: Cell<u64>,
}

/// A place in a worker's connection table, given back when dropped: every connection holds one, to a client
/// or to an upstream, idle or not (nginx: `worker_connections`).
pub struct Place(Rc<Cell<usize>>);

impl Place {
    fn take(taken: &Rc<Cell<usize>>) -> Place {
        taken.set(taken.get() + 1);
        Place(taken.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// A client connection's entry in the worker's list; struck off when dropped.
pub struct Entry {
    /// The worker.
    pub worker: Rc<Worker>,
    /// The state of the connection that others may read.
    pub shared: Rc<Shared>,
    key: Key,
}

impl Drop for Entry {
    fn drop(&mut self) {
        counters::shift(&self.worker.counters().active, -1);
        self.worker.connections.borrow_mut().remove(self.key);
    }
}

/// Idle connections closed at a time to make room, at most (nginx: 32).
const CLOSED_AT_ONCE: usize = 32;

impl Worker {
    /// A worker's data, before it accepts.
    pub fn new(
        seat: usize,
        conf: Arc<Conf>,
        all_counters: AllCounters,
        colleagues: Colleagues,
        live: Arc<Live>,
        seed: u64,
    ) -> Rc<Worker> {
        let board = live.board(seat);
        board.thread.set(weir_meter::host::own_thread().unwrap_or(0).into());
        let shelf = Shelf { counters: all_counters.clone(), seat, generation: conf.generation };
        let worker = Rc::new(Worker {
            seat,
            all_counters,
            colleagues,
            live,
            board,
            generation: RefCell::new(Rc::new(Generation::new(conf, shelf))),
            draining: Cell::new(false),
            connections: RefCell::new(Slots::new()),
            spare_seats: RefCell::new(Vec::new()),
            spare_parts: RefCell::new(Vec::new()),
            spare_out: RefCell::new(Vec::new()),
            spare_origins: RefCell::new(Vec::new()),
            random: Cell::new(seed | 1),
            places_taken: Rc::new(Cell::new(0)),
            statuses: Flights::default(),
            noted_reuse: Cell::new(0),
        });
        colleagues::is_here(&worker);
        worker
    }

    /// The configuration in force.
    pub fn generation(&self) -> Rc<Generation> {
        self.generation.borrow().clone()
    }

    /// This worker's counters.
    pub fn counters(&self) -> &Counters {
        self.all_counters.seat(self.seat)
    }

    /// The seat of the other worker that has the most idle connections to a peer to lend; `None` if none has any.
    pub fn richest_colleague(&self, generation: u32, group: usize, peer: usize) -> Option<usize> {
        let kept = |counters: &Counters| counters.lendable.to(generation, group, peer).load(Ordering::Relaxed);
        let others = self.all_counters.iter().enumerate().filter(|(seat, _)| *seat != self.seat);
        let (kept, seat) = others.map(|(seat, counters)| (kept(counters), seat)).max()?;
        (kept > 0).then_some(seat)
    }

    /// Puts another configuration in force; exchanges under way end with their own.
    pub fn adopt(self: &Rc<Self>, conf: Arc<Conf>) {
        let shelf = Shelf { counters: self.all_counters.clone(), seat: self.seat, generation: conf.generation };
        let old = self.generation.replace(Rc::new(Generation::new(conf, shelf)));
        self.watch();
        for shared in self.connections.borrow().iter() {
            shared.tell();
        }
        if let Some(timeout) = self.generation().conf.main.process.shutdown_timeout {
            let number = old.conf.generation;
            let worker = self.clone();
            weir_net::worker::spawn(async move {
                timer::sleep(timeout).await;
                worker.end_generation(number);
            });
        }
    }

    /// Starts the regular tasks of the configuration in force, if no other worker runs them.
    pub fn watch(self: &Rc<Self>) {
        live::watch(self);
        health::watch(self);
        stapling::watch(self);
    }

    /// Ends every connection whose exchange began with this generation or an earlier one.
    fn end_generation(&self, number: u32) {
        for shared in self.connections.borrow().iter() {
            if shared.generation.get() <= number {
                shared.end();
            }
        }
    }

    /// Whether the worker is finishing its work.
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Stops keeping connections: idle ones close now, the others after their exchange. If other workers go on, a
    /// connection whose first request may be on its way still gets an answer; if all workers end, it closes as in
    /// nginx.
    pub fn drain(self: &Rc<Self>, others_go_on: bool) {
        if self.draining.replace(true) && others_go_on {
            return;
        }
        for shared in self.connections.borrow().iter() {
            if shared.tell() {
                continue;
            }
            match shared.rest.get() {
                Rest::Busy => {}
                Rest::New if others_go_on => {}
                Rest::New | Rest::Idle | Rest::Ended => shared.stream.shutdown(),
            }
        }
        if let Some(timeout) = self.generation().conf.main.process.shutdown_timeout {
            let worker = self.clone();
            weir_net::worker::spawn(async move {
                timer::sleep(timeout).await;
                worker.end_generation(u32::MAX);
            });
        }
    }

    /// Client connections open now.
    pub fn open_connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// The number of the next connection: unique in the process (nginx: `$connection`).
    pub fn next_connection_number(&self) -> u64 {
        NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a client connection; it counts as idle until its first request.
    fn enlist(self: &Rc<Self>, stream: Transport, place: Place, generation: &Generation) -> Entry {
        counters::add(&self.counters().handled, 1);
        counters::shift(&self.counters().active, 1);
        let shared = Rc::new(Shared::new(stream, Some(place), generation.conf.generation));
        let key = self.connections.borrow_mut().insert(shared.clone());
        Entry { worker: self.clone(), shared, key }
    }

    /// A place for a connection; `None`, and a line in the log, when the table is full.
    ///
    /// If the table is full, weir closes waiting connections: first kept connections to upstreams (nginx keeps none
    /// by default), then connections of clients between requests, the longest waiting first, as in nginx (which
    /// begins when 1/16 is free).
    pub fn take_place(&self) -> Option<Place> {
        let (places, _) = self.generation().conf.places();
        if self.places_taken.get() >= places {
            self.make_room(&[Rest::New, Rest::Idle]);
            if self.places_taken.get() >= places {
                self.board.places_refused.one();
                log::global(Level::Alert, format_args!("{} are not enough", self.table()));
                return None;
            }
        }
        Some(Place::take(&self.places_taken))
    }

    /// Closes waiting connections because the table is full or there is no descriptor. Of clients, only connections
    /// in these states.
    fn make_room(&self, states: &[Rest]) {
        let generation = self.generation();
        if !generation.pools.close_oldest() && !generation.lines.close_oldest() {
            self.close_idle(states);
        }
    }

    /// The process may open no more files: weir closes connections between two requests, and waits until they and other
    /// ended connections have freed their descriptors, which takes a turn. New connections stay, because their requests
    /// may have arrived unread. Try at most [`ROOMS_MAX`] times.
    pub async fn make_descriptors(&self) {
        self.make_room(&[Rest::Idle]);
        timer::sleep(ROOM_PAUSE).await;
    }

    /// The limit of the table of connections, as log lines name it.
    fn table(&self) -> String {
        let conf = &self.generation().conf;
        match (conf.places(), conf.main.process.connections) {
            ((_, true), Some(written)) => format!("{written} worker_connections"),
            ((places, _), _) => {
                format!("{places} connections, which is what the limit on open files leaves to a worker,")
            }
        }
    }

    /// Closes some clients' idle connections: an eighth, at least one, at most `CLOSED_AT_ONCE`.
    fn close_idle(&self, states: &[Rest]) {
        let connections = self.connections.borrow();
        let mut idle: Vec<_> = connections.iter().filter(|shared| states.contains(&shared.rest.get())).collect();
        if idle.is_empty() {
            return;
        }
        if self.noted_reuse.replace(weir_net::clock::unix_seconds()) != weir_net::clock::unix_seconds() {
            log::global(Level::Warn, format_args!("{} are not enough, reusing connections", self.table()));
        }
        idle.sort_by_key(|shared| shared.idle_since.get());
        let count = (idle.len() / 8).clamp(1, CLOSED_AT_ONCE);
        for shared in idle.into_iter().take(count) {
            shared.end();
        }
    }

    /// A seat for a busy connection.
    pub fn lease_seat(&self) -> Seat {
        self.spare_seats.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back an empty seat.
    pub fn return_seat(&self, seat: Seat) {
        let mut spare = self.spare_seats.borrow_mut();
        if spare.len() < SEATS_MAX {
            spare.push(seat);
        }
    }

    /// Memory for an exchange.
    pub fn lease_parts(&self) -> Parts {
        self.spare_parts.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes it back.
    pub fn return_parts(&self, mut parts: Parts) {
        parts.clear();
        let mut spare = self.spare_parts.borrow_mut();
        if spare.len() < SPARE_MAX && parts.capacity() <= SPARE_BYTES_MAX {
            spare.push(parts);
        }
    }

    /// An empty buffer to compose a head in.
    pub fn lease_out(&self) -> Vec<u8> {
        self.spare_out.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes it back.
    pub fn return_out(&self, mut out: Vec<u8>) {
        out.clear();
        let mut spare = self.spare_out.borrow_mut();
        if spare.len() < SPARE_MAX && out.capacity() > 0 && out.capacity() <= SPARE_BYTES_MAX {
            spare.push(out);
        }
    }

    /// Room for an upstream's answer.
    pub fn lease_origin(&self) -> Box<Origin> {
        self.spare_origins.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes it back.
    pub fn return_origin(&self, mut origin: Box<Origin>) {
        origin.clear();
        let mut spare = self.spare_origins.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(origin);
        }
    }

    /// A number below `below` (xorshift: spreads load, protects nothing).
    pub fn random(&self, below: u32) -> u32 {
        let mut x = self.random.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.random.set(x);
        if below == 0 { 0 } else { ((x >> 32) % u64::from(below)) as u32 }
    }

    /// Checks idle upstream connections, as long as the worker lives.
    pub async fn sweep(self: Rc<Self>) {
        loop {
            timer::sleep(SWEEP_EVERY).await;
            self.generation().pools.sweep();
            // The API may have added names.
            live::watch(&self);
            self.publish();
        }
    }

    /// Publishes levels that only this thread can read.
    fn publish(&self) {
        self.board.places.set(self.places_taken.get() as u64);
        let generation = self.generation();
        generation.pools.count_idle(|group, idle| {
            let group = GroupRef::declared(generation.clone(), group);
            let Some(upstream) = group.get() else { return };
            for peer in 0..upstream.addresses.len() {
                let (_, cell) = group.known_peer(&self.live, peer);
                self.board.peer(cell).idle.set(idle.get(upstream.pool_id(peer)).copied().unwrap_or(0));
            }
        });
    }

    /// Accepts on one socket until it is stopped.
    pub async fn accept(self: Rc<Self>, listening: Listening, socket: Rc<Address>, stop: Rc<Stop>) {
        let listener = match Listener::new(&listening) {
            Ok(listener) => listener,
            Err(error) => {
                log::global(Level::Emerg, format_args!("listening socket could not be registered {}", log::Os(&error)));
                return;
            }
        };
        // Other workers of this socket wait through this copy; it closes when the last of them drops it.
        drop(listening);
        let mut rooms_made = 0;
        loop {
            match stop.or(&listener).await {
                None if stop.others_accept.get() => return self.accept_rest(&listener, &socket),
                None => return,
                Some(Ok((stream, remote))) => {
                    rooms_made = 0;
                    self.accepted(stream, remote, &socket);
                }
                Some(Err(error)) if weir_net::is_out_of_files(&error) && rooms_made < ROOMS_MAX => {
                    rooms_made += 1;
                    self.make_descriptors().await;
                }
                Some(Err(error)) => {
                    self.board.accept_failed.one();
                    log::global(Level::Crit, format_args!("accept4() failed {}", log::Os(&error)));
                    timer::sleep(ACCEPT_PAUSE).await;
                    rooms_made = 0;
                }
            }
        }
    }

    /// Takes the waiting connections of a queue that other workers serve from here on.
    fn accept_rest(self: &Rc<Self>, listener: &Listener, socket: &Rc<Address>) {
        listener.leave();
        for _ in 0..REST_MAX {
            let Ok((stream, remote)) = listener.try_accept() else { return };
            self.accepted(stream, remote, socket);
        }
    }

    fn accepted(self: &Rc<Self>, stream: Stream, remote: Address, socket: &Rc<Address>) {
        counters::add(&self.counters().accepted, 1);
        let Some(place) = self.take_place() else { return };
        let generation = self.generation();
        let Some(listen) = generation.listen_of(socket, &stream) else { return };
        let is_secure = generation.conf.listens.get(listen).is_some_and(|listen| listen.ssl);
        let stream = if is_secure { TlsStream::accepted(stream).into() } else { Transport::from(stream) };
        let entry = self.enlist(stream, place, &generation);
        conn::serve(entry, remote, socket.clone(), listen);
    }
}
