//! The life of one client connection, as a straight line: wait, read a head, answer, keep or close.
//!
//! Cost of a steady proxied exchange: one read and one write on each side, one pass over each head, no allocation. An
//! idle connection holds no buffer and no future of an exchange: these belong to the worker's seats. It holds only
//! the few words of `live`, a registration and a deadline.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::log::{self, Level};
use weir_net::{Address, Deadline, SocketAddress, Transport, clock};

use crate::board::Leg;
use crate::body;
use crate::client::Client;
use crate::conf::Conf;
use crate::counters;
use crate::dash;
use crate::exchange::{Exchange, Parts};
use crate::family::cache;
use crate::family::live;
use crate::family::log_phase;
use crate::family::upstream::forward;
use crate::h2::{self, Begun};
use crate::head::{self, Head, Refused, default_core};
use crate::live::api;
use crate::patience::{self, SendTimeout};
use crate::phase::{self, Outcome};
use crate::proxied;
use crate::purge;
use crate::respond;
use crate::seat::Guest;
use crate::secure;
use crate::special;
use crate::tunnel::{self, Joined, Tunnel};
use crate::worker::{Entry, Generation, Worker};

mod nobody;
pub mod shared;

pub use shared::{Rest, Shared};

/// A client connection. Boxed, because each request moves it twice.
pub struct Conn {
    /// The socket, and the state that other parts of the worker may read.
    pub shared: Rc<Shared>,
    /// Bounds each wait for the client.
    pub deadline: Deadline,
    /// The facts about the client that exchanges may read.
    pub client: Rc<Client>,
    /// The address of the socket it was accepted on: used to find its servers again after a reload.
    socket: Rc<Address>,
    /// The HTTP/2 stream, if this is one of many on its connection.
    pub carried: Option<Rc<h2::Stream>>,
    /// The part of the idle time that remains after the deadline.
    left: Cell<Duration>,
    served: u64,
}

/// Why nothing more can be sent to the client.
#[derive(Debug)]
pub enum Gone {
    /// The client accepted no data for `send_timeout`, or sent none within its timeout.
    TimedOut,
    /// The client closed, or the network failed.
    Closed(io::Error),
    /// The answer cannot be completed: its source failed after the head was sent.
    Cut,
}

/// Before a close, the remaining bytes of the client are read in pieces of this size.
const READ_BYTES: usize = 4 << 10;

/// The next step of a connection after a request.
pub enum After {
    /// It waits for the next one this long.
    Idle(Duration),
    /// It is closed.
    Close,
    /// The rest of the client's data is read first: the time in all, and the time for each read.
    Linger(Duration, Duration),
    /// It carries another protocol from now on.
    Tunnel(Box<Tunnel>),
    /// It carries streams from now on (HTTP/2); the bytes are the part that has arrived.
    Streams(Box<[u8]>),
}

/// Serves a connection to its end. Its initial state is computed here, outside the future: an idle connection keeps
/// that future, so the future must be small.
pub fn serve(entry: Entry, remote: SocketAddress, socket: Rc<Address>, listen: usize) {
    let shared = entry.shared.clone();
    let generation = entry.worker.generation();
    let core = default_core(&generation.conf, listen);
    if core.nodelay && !remote.is_unix() {
        // Failing to set it costs latency, not correctness.
        let _ = shared.stream.socket().set_nodelay(true);
    }
    let client = Rc::new(Client {
        number: entry.worker.next_connection_number(),
        accepted: clock::now(),
        remote,
        local: OnceCell::new(),
        listen: Cell::new(listen),
        proxied: OnceCell::new(),
        secured: OnceCell::new(),
        shared: shared.clone(),
    });
    let (deadline, left) = (Deadline::new(), Cell::new(Duration::ZERO));
    let conn = Box::new(Conn { shared, deadline, client, socket, carried: None, left, served: 0 });
    conn.deadline.set(core.header_timeout);
    let is_proxied = generation.conf.listens.get(listen).is_some_and(|listen| listen.proxy_protocol);
    if is_proxied {
        weir_net::worker::spawn(proxied(conn, entry));
    } else if matches!(conn.stream(), Transport::Tls(_)) {
        weir_net::worker::spawn(secured(conn, entry, Vec::new()));
    } else {
        weir_net::worker::spawn(live(conn, entry, None));
    }
}

/// A connection that begins with a PROXY protocol header. This future is larger than the later ones, so the rest of
/// the connection runs as a new task.
async fn proxied(conn: Box<Conn>, entry: Entry) {
    let conf = entry.worker.generation().conf.clone();
    let Some(early) = proxied::read(&conn, &conf).await else { return };
    if matches!(conn.stream(), Transport::Tls(_)) {
        return weir_net::worker::spawn(secured(conn, entry, early));
    }
    let early = (!early.is_empty()).then(|| early.into());
    weir_net::worker::spawn(live(conn, entry, early));
}

/// A connection that begins with TLS; `early` is the part that has arrived. A separate task for the same reason.
async fn secured(conn: Box<Conn>, entry: Entry, early: Vec<u8>) {
    if !secure::begin(&conn, &entry.worker, &early).await {
        return;
    }
    if conn.client.speaks_http2() {
        return h2::serve(conn, entry, &[]);
    }
    weir_net::worker::spawn(live(conn, entry, None));
}

/// Waits and serves, in turns; `early` arrived before this task read anything.
// An `async fn` stores its arguments twice (rust-lang/rust#62958), and every idle connection holds this future.
#[allow(clippy::manual_async_fn)]
fn live(mut conn: Box<Conn>, entry: Entry, mut early: Option<Box<[u8]>>) -> impl Future<Output = ()> {
    async move {
        loop {
            // nginx closes silently a connection that sends nothing.
            let wakes = early.is_some() || poll_fn(|_| conn.poll_wakes()).await;
            if !wakes || !conn.shared.wake() {
                return;
            }
            let mut seat = entry.worker.lease_seat();
            seat.take(Guest { conn, worker: entry.worker.clone(), early: early.take(), begun: None });
            let mut after;
            (conn, after) = poll_fn(|context| seat.poll(context)).await;
            entry.worker.return_seat(seat);
            if let After::Tunnel(mut tunnel) = after {
                let end = poll_fn(|_| tunnel.poll(&conn)).await;
                after = tunnel.close(end, &conn, &entry.worker);
            }
            match after {
                After::Idle(timeout) if lie_down(&conn, &entry.worker, timeout) => {}
                After::Linger(time, timeout) => return Box::pin(linger(&conn, &entry.worker, time, timeout)).await,
                After::Streams(early) => return h2::serve(conn, entry, &early),
                After::Close if conn.stream().has_failed() => return Box::pin(secure::say_why(&conn)).await,
                After::Idle(_) | After::Close | After::Tunnel(_) => return,
            }
        }
    }
}

fn lie_down(conn: &Conn, worker: &Worker, timeout: Duration) -> bool {
    if worker.is_draining() {
        return false;
    }
    let generation = worker.generation();
    let first = default_core(&generation.conf, conn.client.listen.get()).send_timeout.first;
    conn.deadline.set(timeout.min(first));
    conn.left.set(timeout.saturating_sub(first));
    conn.shared.lie_idle();
    true
}

impl Conn {
    /// One HTTP/2 stream of this connection, as a connection of its own. Counts its request.
    pub fn of_stream(&mut self, stream: &Rc<h2::Stream>) -> Conn {
        let transport = Transport::Carried(stream.clone());
        let shared = Rc::new(Shared::new(transport, None, self.shared.generation.get()));
        shared.rest.set(Rest::Busy);
        let client = self.client.over(shared.clone());
        let (before, socket) = (self.served, self.socket.clone());
        self.served += 1;
        let (deadline, left) = (Deadline::new(), Cell::new(Duration::ZERO));
        Conn { shared, deadline, client, socket, carried: Some(stream.clone()), left, served: before }
    }

    /// Requests served on it.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// The transport of its bytes.
    pub fn stream(&self) -> &Transport {
        &self.shared.stream
    }

    /// Waits for the client's next bytes until the deadline, then for the remaining idle time; `false` when none
    /// came. Resets a client that does not accept the answer it got: else the answer would stay in the kernel.
    fn poll_wakes(&self) -> Poll<bool> {
        if self.stream().poll_readable().is_ready() {
            return Poll::Ready(true);
        }
        while self.deadline.poll_expired().is_ready() {
            let left = self.left.take();
            if self.is_silent() || left.is_zero() && self.stream().socket().is_stuck() {
                self.stream().reset();
                return Poll::Ready(false);
            }
            if left.is_zero() {
                return Poll::Ready(false);
            }
            self.deadline.set(left);
        }
        Poll::Pending
    }

    /// Gives the client `timeout` to accept some data.
    pub fn await_taking(&self, timeout: SendTimeout) {
        self.deadline.set(timeout.first);
        self.left.set(timeout.rest);
    }

    /// Ready when the client has accepted no data within its timeout.
    pub fn poll_took_nothing(&self) -> Poll<()> {
        while self.deadline.poll_expired().is_ready() {
            let left = self.left.take();
            if left.is_zero() || self.is_silent() {
                return Poll::Ready(());
            }
            self.deadline.set(left);
        }
        Poll::Pending
    }

    /// Waits until the client accepts more data.
    pub async fn until_writable(&self, timeout: SendTimeout) -> Result<(), Gone> {
        self.await_taking(timeout);
        poll_fn(|_| match self.stream().poll_writable() {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => self.poll_took_nothing().map(|()| Err(Gone::TimedOut)),
        })
        .await
    }

    /// Whether the client accepts no data at the moment and has accepted hardly any before.
    fn is_silent(&self) -> bool {
        match &self.carried {
            Some(stream) => stream.is_shut() && stream.sent() < patience::TAKEN_ENOUGH,
            None => {
                let socket = self.stream().socket();
                socket.is_stuck() && socket.taken_bytes().is_some_and(|taken| taken < patience::TAKEN_ENOUGH)
            }
        }
    }

    /// Finds the connection's servers in the configuration now in force; `false` when that configuration does not
    /// listen there any more.
    pub fn follow(&mut self, generation: &Generation) -> bool {
        if self.shared.generation.get() == generation.conf.generation {
            return true;
        }
        let Some(listen) = generation.listen_of(&self.socket, self.stream().socket()) else { return false };
        self.client.listen.set(listen);
        self.shared.generation.set(generation.conf.generation);
        true
    }

    /// Waits while watching the client; `Some` when it went away meanwhile.
    pub async fn pause(&mut self, pause: Duration) -> Option<Gone> {
        self.deadline.set(pause);
        poll_fn(|_| {
            if self.deadline.poll_expired().is_ready() {
                return Poll::Ready(None);
            }
            match self.poll_gone() {
                Poll::Ready(error) => Poll::Ready(Some(Gone::Closed(error))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Ready when the client has closed its side or the connection broke.
    pub fn poll_gone(&self) -> Poll<io::Error> {
        let is_malformed = self.carried.as_ref().is_some_and(|stream| stream.is_malformed());
        match self.stream().poll_closed() {
            Poll::Ready(()) if is_malformed => Poll::Ready(io::ErrorKind::InvalidData.into()),
            Poll::Ready(()) => Poll::Ready(io::Error::from(io::ErrorKind::ConnectionAborted)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Writes all pieces, as many in one call as the kernel takes; waits at most `timeout` between two writes.
    pub async fn write_all(&mut self, mut pieces: &mut [IoSlice<'_>], timeout: SendTimeout) -> Result<(), Gone> {
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            let written = match &*pieces {
                [only] => self.stream().try_write(only),
                several => self.stream().try_write_vectored(several),
            };
            match written {
                Ok(0) => return Err(Gone::Closed(io::ErrorKind::WriteZero.into())),
                Ok(written) => IoSlice::advance_slices(&mut pieces, written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.until_writable(timeout).await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Gone::Closed(error)),
            }
        }
        Ok(())
    }
}

/// Serves the requests that have arrived, one by one, as long as another one is there. On entry, `parts` hold only
/// bytes that arrived before this task read anything; on return, only bytes that are not answered.
pub async fn active(conn: &mut Conn, worker: &Rc<Worker>, mut parts: Parts) -> (Parts, After) {
    loop {
        let generation = worker.generation();
        if !conn.follow(&generation) {
            return (parts, After::Close);
        }
        let may_carry =
            conn.served == 0 && !conn.shared.is_secure() && h2::is_on(&generation.conf, conn.client.listen.get());
        let reading = counters::raise(&worker.counters().reading);
        let head =
            head::read(conn, &mut parts, default_core(&generation.conf, conn.client.listen.get()), may_carry).await;
        drop(reading);
        let refusal = match head {
            Head::Complete => None,
            Head::Refused(refused) => Some(refused),
            Head::Nothing => {
                let core = default_core(&generation.conf, conn.client.listen.get());
                let timeout = if conn.served == 0 { core.header_timeout } else { core.keepalive_timeout.0 };
                return (parts, After::Idle(timeout));
            }
            Head::Closed => return (parts, After::Close),
            Head::Streams => {
                let early = std::mem::take(&mut parts.request().bytes);
                return (parts, After::Streams(early.into()));
            }
        };
        counters::add(&worker.counters().requests, 1);
        let writing = counters::raise(&worker.counters().writing);
        let after;
        (parts, after) = one(conn, worker, &generation, parts, refusal).await;
        drop(writing);
        parts.next_request();
        match after {
            After::Idle(_) if !parts.request().bytes.is_empty() => {}
            After::Idle(_) | After::Close | After::Linger(..) | After::Tunnel(_) | After::Streams(_) => {
                return (parts, after);
            }
        }
    }
}

/// Serves the request of a stream; returns the `Parts` and the next step of the stream.
pub async fn on_stream(conn: &mut Conn, worker: &Rc<Worker>, begun: Begun) -> (Parts, After) {
    let Begun { parts, refusal } = begun;
    let generation = worker.generation();
    if !conn.follow(&generation) {
        return (parts, After::Close);
    }
    counters::add(&worker.counters().requests, 1);
    let writing = counters::raise(&worker.counters().writing);
    let (parts, after) = one(conn, worker, &generation, parts, refusal.map(Refused::Violation)).await;
    drop(writing);
    (parts, after)
}

/// One request and its answer.
async fn one(
    conn: &mut Conn,
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    mut parts: Parts,
    refusal: Option<Refused>,
) -> (Parts, After) {
    let conf: &Conf = &generation.conf;
    let server = conf.server(
        conf.listens.get(conn.client.listen.get()).map_or(crate::conf::ServerId(0), |l| l.hosts.default_server()),
    );
    let started = parts.request().started.take().unwrap_or_else(clock::now);
    conn.served += 1;
    let client = conn.client.clone();
    let mut exchange = Exchange::new(conf, worker, generation, &client, server, parts, started, clock::unix_ms());
    exchange.number_on_connection = conn.served;
    let begun = head::open(&mut exchange, refusal);
    let opened = live::begin(&mut exchange);
    let end = match begun {
        Ok(outcome) => answer(&mut exchange, conn, outcome).await,
        Err(gone) => Err(gone),
    };
    opened.close();
    let end = match end {
        Ok(Some(joined)) => {
            let (tunnel, parts) = Tunnel::new(joined, exchange, conn);
            return (parts, After::Tunnel(tunnel));
        }
        Ok(None) => Ok(()),
        Err(gone) => Err(gone),
    };
    if let Err(gone) = &end {
        note(&mut exchange, gone);
    }
    log_phase(&mut exchange);
    let after = match conn.carried {
        // The stream ends with its task. The bytes it sent decide how it ends.
        Some(_) => After::Close,
        None => finish(&mut exchange, conn, end).await,
    };
    body::remove(&mut exchange);
    let parts = exchange.into_parts();
    (parts, after)
}

/// Turns an outcome into a response and sends it; returns the two joined connections if the response switched
/// protocols.
async fn answer(exchange: &mut Exchange<'_>, conn: &mut Conn, mut outcome: Outcome) -> Result<Option<Joined>, Gone> {
    loop {
        if matches!(outcome, Outcome::Forward)
            && let Some(why) = head::withheld(exchange)
        {
            outcome = Outcome::Status(head::withhold(exchange, why));
        }
        outcome = match outcome {
            Outcome::Respond => match body::skim(exchange) {
                Some(status) => Outcome::Status(status),
                None => match respond::send(exchange, conn, None).await? {
                    None => return Ok(None),
                    Some(status) => Outcome::Status(status),
                },
            },
            Outcome::Status(444) => {
                exchange.response.status = 444;
                exchange.keeps_alive = false;
                return Err(Gone::Cut);
            }
            Outcome::Status(408) => return Err(Gone::TimedOut),
            Outcome::Status(499) => {
                exchange.response.status = 499;
                exchange.keeps_alive = false;
                return Err(Gone::Cut);
            }
            Outcome::Status(status) => match special::redirect(exchange, status) {
                Some(outcome) => outcome,
                None => {
                    special::page(exchange, status);
                    Outcome::Respond
                }
            },
            Outcome::Wait(pause, resume) => {
                let begun = clock::now();
                if let Some(gone) = conn.pause(pause).await {
                    return Err(gone);
                }
                exchange.worker.board.took(Leg::Queue, clock::now().us_since(begun));
                phase::resume(exchange, resume)
            }
            Outcome::Purge => purge::api::answer(exchange, conn).await?,
            Outcome::Observe => api::answer(exchange, conn).await?,
            Outcome::Dashboard => Box::pin(dash::answer::answer(exchange, conn)).await?,
            Outcome::Forward => match cache::forward(exchange, conn).await {
                forward::Answer::Response(source) => match respond::send(exchange, conn, Some(source)).await? {
                    None => return Ok(None),
                    Some(status) => Outcome::Status(status),
                },
                forward::Answer::Tunnel(upstream) => {
                    return tunnel::open(exchange, conn, upstream).await.map(Some);
                }
                forward::Answer::Outcome(outcome) => outcome,
                forward::Answer::Gone(gone) => return Err(gone),
            },
        };
    }
}

fn note(exchange: &mut Exchange<'_>, gone: &Gone) {
    match gone {
        Gone::TimedOut => {
            if exchange.response.status == 0 {
                exchange.response.status = 408;
            }
            exchange.log(Level::Info, format_args!("client timed out (110: Connection timed out)"));
        }
        Gone::Closed(error) => {
            if exchange.response.status == 0 {
                exchange.response.status = 499;
            }
            let error = log::Os(error);
            exchange.log(Level::Info, format_args!("client closed connection {error}"));
        }
        Gone::Cut => {}
    }
}

/// The next step of the connection after an exchange.
async fn finish(exchange: &mut Exchange<'_>, conn: &mut Conn, end: Result<(), Gone>) -> After {
    match end {
        Err(Gone::TimedOut) => {
            // If a client accepts no data, the kernel keeps our unsent bytes, and the connection, for many more
            // minutes, unless weir resets it. nginx resets it only with `reset_timedout_connection`.
            let takes_nothing = matches!(exchange.step, Step::SendResponse | Step::ReadResponse);
            if takes_nothing || exchange.location.values.core.reset_timedout {
                conn.stream().reset();
            }
            return After::Close;
        }
        Err(Gone::Closed(_) | Gone::Cut) => return After::Close,
        Ok(()) => {}
    }
    if exchange.keeps_alive {
        if !body::is_consumed(exchange) && body::discard(exchange, conn).await.is_err() {
            return After::Close;
        }
        return After::Idle(exchange.location.values.core.keepalive_timeout.0);
    }
    parting(exchange)
}

/// The next step of a connection that serves no other request.
pub fn parting(exchange: &Exchange<'_>) -> After {
    let core = &exchange.location.values.core;
    let may_still_send = !body::is_consumed(exchange) || exchange.request.used < exchange.request.bytes.len();
    match core.lingering_close {
        crate::family::core::Lingering::Off => After::Close,
        crate::family::core::Lingering::On if !may_still_send && exchange.response.status < 400 => After::Close,
        crate::family::core::Lingering::On | crate::family::core::Lingering::Always => {
            After::Linger(core.lingering_time, core.lingering_timeout)
        }
    }
}

/// Closes the sending side and reads the rest of the client's data. Closing at once would destroy the answer on its
/// way (RFC 9112 §9.6).
pub async fn linger(conn: &Conn, worker: &Worker, time: Duration, timeout: Duration) {
    if conn.stream().shutdown_write().is_err() {
        return;
    }
    // A stop need not wait for data that nobody reads: a draining worker may end this connection.
    conn.shared.lie_idle();
    let until = clock::now() + time;
    let mut sink = weir_net::buffer::lease(READ_BYTES);
    loop {
        sink.clear();
        match conn.stream().try_read_vec(&mut sink, READ_BYTES) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let left = until.saturating_duration_since(clock::now());
                if left.is_zero() || worker.is_draining() {
                    return;
                }
                conn.deadline.set(timeout.min(left));
                if conn.stream().readable(&conn.deadline).await.is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}
