//! The data of one worker thread: no other thread shares it, so it needs no locks.

mod lanes;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_net::log::{self, Level};
use weir_net::slots::{SlotKey, Slots};
use weir_net::{Address, Lease, Stream, Transport, clock, timer};

use crate::exchange::conf::Conf;
use crate::exchange::message::{ANSWER_BYTES, Origin};
use crate::hold::board::Board;
use crate::hold::board::boards::Boards;
use crate::hold::bounds::MEMORY;
use crate::hold::colleagues::Colleagues;
use crate::hold::conn::shared::{Rest, Shared};
use crate::hold::counters::{self, AllCounters, Counters};
use crate::hold::extensions::Extensions;
use crate::hold::open_files::FileCaches;
use crate::hold::split::Coin;
use crate::hold::table_place::TablePlace;

/// A configuration, and the values that one worker keeps as long as it.
pub struct Generation {
    /// The configuration.
    pub conf: Arc<Conf>,
    /// The seat of the worker.
    pub seat: usize,
    /// The counters of all workers.
    pub all_counters: AllCounters,
    /// Values that families keep as long as the configuration: pools of connections, sessions.
    pub own: Extensions,
}

impl Drop for Generation {
    /// The last exchange of this generation on this worker has ended. Once this has happened on all workers, no part of
    /// the configuration is in use. In nginx, a worker process exits at this point.
    fn drop(&mut self) {
        if self.conf.holders.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        // nginx's words, because scripts wait for them after a reload; the text in parentheses explains them for weir.
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
    pub fn new(conf: Arc<Conf>, seat: usize, all_counters: AllCounters) -> Generation {
        conf.holders.fetch_add(1, Ordering::AcqRel);
        Generation { conf, seat, all_counters, own: Extensions::default() }
    }

    /// The listen for connections accepted on a socket; reads the local address only if it matters.
    pub fn listen_of(&self, socket: &Address, stream: Option<&Stream>) -> Option<usize> {
        let socket = self.conf.sockets.iter().find(|known| known.address == *socket)?;
        if socket.by_address.is_empty() {
            return Some(socket.fallback);
        }
        let local = stream.and_then(|stream| stream.local_addr().ok()).and_then(|address| address.tcp());
        Some(socket.listen_for(local.as_ref()))
    }

    /// The listen for clients of a UDP socket that send to this address.
    pub fn listen_of_quic(&self, socket: SocketAddr, to: Option<IpAddr>) -> Option<usize> {
        let socket = self.conf.quic.iter().find(|known| known.address == Address::Tcp(socket))?;
        let local = to.map(|ip| SocketAddr::new(ip.to_canonical(), 0));
        Some(if socket.by_address.is_empty() { socket.fallback } else { socket.listen_for(local.as_ref()) })
    }
}

/// Memory for exchanges kept for reuse, per worker: as many as the events of one turn may begin.
pub const SPARE_MAX: usize = 256;

/// Larger buffers are not kept.
pub const SPARE_BYTES_MAX: usize = 64 << 10;

/// Memory for upstreams' answers that keeps its buffer, per worker: as many bytes as a pool of buffers keeps.
const SPARE_BUFFERS_MAX: usize = weir_net::buffer::POOL_BYTES_MAX / ANSWER_BYTES;

/// How long weir waits for ended connections to free their descriptors.
const ROOM_PAUSE: Duration = Duration::from_millis(10);

/// How often weir makes room for one connection before it logs that there is none.
pub const ROOMS_MAX: u32 = 8;

static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

/// Closes a waiting connection to an upstream; `false` if there is none.
pub type Close = fn(&Generation) -> bool;

/// Whether a worker finishes its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Draining {
    /// It serves.
    No,
    /// It finishes, and other workers accept its clients' next connections.
    OthersGoOn,
    /// It finishes, and so do all others.
    Last,
}

/// A configuration beside the one in force.
struct Beside {
    generation: Rc<Generation>,
    coin: Arc<Coin>,
}

/// The data of a worker.
pub struct Worker {
    /// Its place among the counters of all workers: it writes only these.
    seat: usize,
    /// The counters of all workers.
    pub all_counters: AllCounters,
    /// All workers.
    colleagues: Colleagues,
    /// The cells of all workers.
    pub boards: Arc<Boards>,
    /// The cells of this worker.
    pub board: Arc<Board>,
    /// The configuration in force.
    main: RefCell<Rc<Generation>>,
    /// The configuration beside it, which a share of the clients gets.
    beside: RefCell<Option<Beside>>,
    /// The largest number of a configuration that it had.
    newest: Cell<u32>,
    draining: Cell<Draining>,
    connections: RefCell<Slots<Rc<Shared>>>,
    spare_out: RefCell<Vec<Vec<u8>>>,
    #[allow(clippy::vec_box)] // an exchange holds the box: it changes hands as a pointer
    spare_origins: RefCell<Vec<Box<Origin>>>,
    random: Cell<u64>,
    places_taken: Rc<Cell<usize>>,
    /// Values that other parts keep as long as the worker.
    pub own: Extensions,
    /// Called in turn when the table is full, until one has closed a connection.
    closers: RefCell<Vec<Close>>,
    /// The second of the last log line about connections that were closed to make room.
    noted_reuse: Cell<u64>,
}

/// The entry of a client connection in the worker's list; dropping it removes it from the list.
pub struct Entry {
    /// The worker.
    pub worker: Rc<Worker>,
    /// The state of the connection that others may read.
    pub shared: Rc<Shared>,
    key: SlotKey,
}

impl Entry {
    /// Takes the connection out of the list, so that another server of this worker can have it; `None` if weir ended
    /// the connection, or if something else still holds it.
    pub fn dissolve(self) -> Option<(Transport, TablePlace)> {
        let shared = self.shared.clone();
        drop(self);
        Rc::try_unwrap(shared).ok()?.into_parts()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        counters::shift(&self.worker.counters().active, -1);
        self.worker.connections.borrow_mut().remove(self.key);
    }
}

/// The entry of a connection without a client; dropping it removes it from the list.
pub struct OwnEntry {
    worker: Rc<Worker>,
    key: SlotKey,
}

impl Drop for OwnEntry {
    fn drop(&mut self) {
        self.worker.connections.borrow_mut().remove(self.key);
    }
}

/// Idle connections closed at a time to make room, at most (nginx: 32).
const CLOSED_AT_ONCE: usize = 32;

thread_local! {
    /// The worker of this thread, for its colleagues.
    static HERE: RefCell<Weak<Worker>> = const { RefCell::new(Weak::new()) };
}

impl Worker {
    /// A worker's data, before it accepts.
    pub fn new(
        seat: usize,
        conf: Arc<Conf>,
        all_counters: AllCounters,
        colleagues: Colleagues,
        boards: Arc<Boards>,
        seed: u64,
    ) -> Rc<Worker> {
        let board = boards.of_seat(seat);
        board.thread.set(weir_host::own_thread().unwrap_or(0).into());
        weir_net::worker::coalesce(conf.main.process.coalesce);
        let newest = conf.generation;
        let generation = Generation::new(conf, seat, all_counters.clone());
        let worker = Rc::new(Worker {
            seat,
            all_counters,
            colleagues,
            boards,
            board,
            main: RefCell::new(Rc::new(generation)),
            beside: RefCell::default(),
            newest: Cell::new(newest),
            draining: Cell::new(Draining::No),
            connections: RefCell::new(Slots::new()),
            spare_out: RefCell::new(Vec::new()),
            spare_origins: RefCell::new(Vec::new()),
            random: Cell::new(seed | 1),
            places_taken: Rc::new(Cell::new(0)),
            own: Extensions::default(),
            closers: RefCell::default(),
            noted_reuse: Cell::new(0),
        });
        HERE.set(Rc::downgrade(&worker));
        worker
    }

    /// Runs `f` on the worker in another seat; `false` when it cannot be reached.
    pub fn on_colleague(&self, seat: usize, f: impl FnOnce(&Worker) + Send + 'static) -> bool {
        self.colleagues.run(seat, move || {
            if let Some(worker) = HERE.with_borrow(Weak::upgrade) {
                f(&worker);
            }
        })
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

    /// Puts another configuration in force for all clients, and returns it. Exchanges under way end with their own.
    pub fn adopt(self: &Rc<Self>, conf: Arc<Conf>) -> Rc<Generation> {
        weir_net::worker::coalesce(conf.main.process.coalesce);
        let generation = self.hold(conf);
        self.main.replace(generation.clone());
        self.beside.take();
        self.changed();
        generation
    }

    /// Gives clients a second configuration beside the main one, as the coin decides, and returns it. It ends a split before
    /// it.
    pub fn split(self: &Rc<Self>, conf: Arc<Conf>, coin: Arc<Coin>) -> Rc<Generation> {
        let generation = self.hold(conf);
        self.beside.replace(Some(Beside { generation: generation.clone(), coin }));
        self.changed();
        generation
    }

    fn hold(&self, conf: Arc<Conf>) -> Rc<Generation> {
        self.newest.set(self.newest.get().max(conf.generation));
        Rc::new(Generation::new(conf, self.seat, self.all_counters.clone()))
    }

    /// Whether the worker is finishing its work.
    pub fn is_draining(&self) -> bool {
        self.draining.get() != Draining::No
    }

    /// Whether it is finishing its work and no other worker will serve in its place.
    pub fn is_last(&self) -> bool {
        self.draining.get() == Draining::Last
    }

    /// Stops keeping connections: idle ones close now, the others after their exchange. If other workers go on, a
    /// connection whose first request may be on its way still gets an answer; if all workers end, it closes as in
    /// nginx.
    pub fn drain(self: &Rc<Self>, others_go_on: bool) {
        if others_go_on && self.is_draining() {
            return;
        }
        self.draining.set(if others_go_on { Draining::OthersGoOn } else { Draining::Last });
        for shared in self.connections.borrow().iter() {
            if shared.tell() {
                continue;
            }
            match shared.rest.get() {
                Rest::Busy => {}
                Rest::New if others_go_on => {}
                // A request has come. It gets its answer, and then the connection closes.
                Rest::New | Rest::Idle if shared.stream.socket().is_some_and(Stream::has_unread) => {}
                // A request that comes from now on is not read: its client asks elsewhere.
                Rest::New | Rest::Idle | Rest::Ended => shared.end(),
            }
        }
        self.end_in_time(&[]);
    }

    /// Connections in the list now: those of clients, and those of exchanges that have no client.
    pub fn open_connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// The number of the next connection: unique in the process (nginx: `$connection`).
    pub fn next_connection_number(&self) -> u64 {
        NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes a client connection; it counts as idle until its first request.
    pub fn enlist(self: &Rc<Self>, stream: Transport, place: TablePlace, generation: &Generation) -> Entry {
        counters::add(&self.counters().handled, 1);
        self.enlist_again(stream, place, generation)
    }

    /// Notes a client connection that another server of this worker had.
    pub fn enlist_again(self: &Rc<Self>, stream: Transport, place: TablePlace, generation: &Generation) -> Entry {
        counters::shift(&self.counters().active, 1);
        let shared = Rc::new(Shared::new(stream, Some(place), generation.conf.generation));
        let key = self.connections.borrow_mut().insert(shared.clone());
        Entry { worker: self.clone(), shared, key }
    }

    /// Notes a connection without a client: a worker that drains waits for its exchange, up to
    /// `worker_shutdown_timeout`.
    pub fn enlist_own(self: &Rc<Self>, shared: &Rc<Shared>) -> OwnEntry {
        shared.wake();
        let key = self.connections.borrow_mut().insert(shared.clone());
        OwnEntry { worker: self.clone(), key }
    }

    /// A place for a connection; `None`, and a line in the log, when the table is full.
    ///
    /// If the table is full, weir closes waiting connections: first kept connections to upstreams (nginx keeps none
    /// by default), then connections of clients between requests, the longest waiting first, as in nginx (which
    /// begins when 1/16 is free).
    pub fn take_place(&self) -> Option<TablePlace> {
        self.take_below(self.main().conf.places().0)
    }

    /// As [`Worker::take_place`], and says nothing if the table is full.
    pub fn try_place(&self) -> Option<TablePlace> {
        self.try_below(self.main().conf.places().0)
    }

    /// As [`Worker::take_place`], for a client that has connected.
    pub fn take_place_of_client(&self) -> Option<TablePlace> {
        self.take_below(self.main().conf.places_of_clients())
    }

    /// As [`Worker::take_place`], for a connection that an exchange needs. If the limit on open files bounds the table, the
    /// exchange waits up to `patience` until another one gives its place back: its client has sent the request already.
    pub async fn wait_for_place(&self, patience: Duration) -> Option<TablePlace> {
        let until = clock::now() + patience;
        loop {
            let (places, is_written) = self.main().conf.places();
            if is_written || MEMORY.is_full() || clock::now() >= until {
                return self.take_place();
            }
            if let Some(place) = self.try_below(places) {
                return Some(place);
            }
            timer::sleep(ROOM_PAUSE).await;
        }
    }

    fn take_below(&self, places: usize) -> Option<TablePlace> {
        if MEMORY.is_full() {
            self.make_room(&[Rest::New, Rest::Idle]);
            MEMORY.refuse();
            self.board.places_refused.one();
            return None;
        }
        let place = self.try_below(places);
        if place.is_none() {
            self.board.places_refused.one();
            log::global(Level::Alert, format_args!("{} are not enough", self.table()));
        }
        place
    }

    fn try_below(&self, places: usize) -> Option<TablePlace> {
        if MEMORY.is_full() {
            return None;
        }
        // Connections to upstreams may hold more places than a client may see taken, so one closed connection is not always
        // enough.
        while self.places_taken.get() >= places {
            let before = self.places_taken.get();
            self.make_room(&[Rest::New, Rest::Idle]);
            if self.places_taken.get() >= before {
                return None;
            }
        }
        Some(TablePlace::take(&self.places_taken))
    }

    /// Registers a function that can close a waiting connection to an upstream; `false` if there is none.
    pub fn on_full(&self, close: Close) {
        self.closers.borrow_mut().push(close);
    }

    /// Places of the table that are taken.
    pub fn places_taken(&self) -> usize {
        self.places_taken.get()
    }

    /// Closes waiting connections because the table is full or there is no descriptor. Of clients, only connections
    /// in these states.
    fn make_room(&self, states: &[Rest]) {
        let closers = self.closers.borrow();
        if !self.in_force().any(|generation| closers.iter().any(|close| close(&generation))) {
            self.close_idle(states);
        }
    }

    /// The process may open no more files: weir closes files that no exchange uses and connections between two requests, and waits until they and other
    /// ended connections have freed their descriptors, which takes a turn. New connections stay, because their requests
    /// may have arrived unread. Try at most [`ROOMS_MAX`] times.
    pub async fn make_descriptors(&self) {
        self.in_force().for_each(|generation| {
            generation.own.of(FileCaches::default).clear();
        });
        self.make_room(&[Rest::Idle]);
        timer::sleep(ROOM_PAUSE).await;
    }

    /// The limit of the table of connections, as log lines name it.
    fn table(&self) -> String {
        let conf = &self.main().conf;
        match (conf.places(), conf.main.process.connections) {
            ((_, true), Some(written)) => format!("{written} worker_connections"),
            ((places, _), _) => {
                format!("{places} connections per worker (from the limit on open files)")
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
        if self.noted_reuse.replace(clock::unix_seconds()) != clock::unix_seconds() {
            log::global(Level::Warn, format_args!("{} are not enough, reusing connections", self.table()));
        }
        idle.sort_by_key(|shared| shared.idle_since.get());
        let count = (idle.len() / 8).clamp(1, CLOSED_AT_ONCE);
        for shared in idle.into_iter().take(count) {
            shared.end();
        }
    }

    /// An empty buffer to compose a head in.
    #[inline]
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
        let mut spare = self.spare_origins.borrow_mut();
        origin.clear();
        let is_usual = (ANSWER_BYTES..2 * ANSWER_BYTES).contains(&origin.bytes.capacity());
        if !is_usual || spare.len() >= SPARE_BUFFERS_MAX {
            origin.bytes = Lease::none();
        }
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
}

#[cfg(test)]
mod tests;
