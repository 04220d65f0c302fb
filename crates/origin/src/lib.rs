//! The dummy origin: the request sets the size, the delay, the status and the failure of the answer.
//!
//! ```text
//!  start ─► worker threads ─ accept ─► connection ─ Ask::of(target) ─► answer | failure | echo | WebSocket
//! ```
//!
//! HTTP/1.1 and 1.0 with keep-alive and pipelining; it answers every path, so that a load script for a real
//! application runs against it unchanged. It stores nothing and reads no file. Invariants: the constants of [`ask`]
//! bound every wish of a request; a connection holds no buffer while it waits.
//!
//! - `ask`: reads the wishes of a request; `answer`, `failure`, `websocket`, `offer` fulfil them; `connection` serves
//!   one connection
#![forbid(unsafe_code)]

mod answer;
pub mod ask;
mod connection;
mod failure;
mod offer;
mod websocket;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_net::worker::{self, Remote};
use weir_net::{Address, ListenOptions, Listener, Listening, listener, timer};

/// Connections that one worker serves at a time. Further ones are closed at once.
pub const CONNECTIONS_MAX: usize = 65_536;

/// Most threads that [`start`] makes.
pub const WORKERS_MAX: usize = 256;

/// The pause in accepting when the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running origin. Dropping it stops it.
pub struct Origin {
    addresses: Vec<Address>,
    workers: Vec<Remote>,
    tallies: Vec<Arc<Tally>>,
}

/// Counts of an origin since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Requests with a valid head.
    pub requests: u64,
    /// Requests that the origin refused with a 4xx or 5xx of its own: an invalid head, or an invalid wish.
    pub refused: u64,
    /// Failures that requests asked for.
    pub failures: u64,
    /// Connections that became WebSockets.
    pub websockets: u64,
    /// Frames that were echoed on WebSockets.
    pub frames: u64,
    /// Bytes sent, over HTTP and WebSocket.
    pub sent_bytes: u64,
}

/// The counts of one worker. Only that worker writes them; every thread may read them.
#[derive(Default)]
struct Tally {
    connections: AtomicU64,
    requests: AtomicU64,
    refused: AtomicU64,
    failures: AtomicU64,
    websockets: AtomicU64,
    frames: AtomicU64,
    sent_bytes: AtomicU64,
}

impl Tally {
    fn totals(&self) -> Totals {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Totals {
            connections: read(&self.connections),
            requests: read(&self.requests),
            refused: read(&self.refused),
            failures: read(&self.failures),
            websockets: read(&self.websockets),
            frames: read(&self.frames),
            sent_bytes: read(&self.sent_bytes),
        }
    }
}

impl Totals {
    fn plus(self, other: Totals) -> Totals {
        Totals {
            connections: self.connections + other.connections,
            requests: self.requests + other.requests,
            refused: self.refused + other.refused,
            failures: self.failures + other.failures,
            websockets: self.websockets + other.websockets,
            frames: self.frames + other.frames,
            sent_bytes: self.sent_bytes + other.sent_bytes,
        }
    }
}

/// Starts an origin on these addresses with `workers` threads named `origin N`.
///
/// `workers` is kept between 1 and [`WORKERS_MAX`]; with more than one, each has its own socket (`SO_REUSEPORT`) on
/// every TCP address. Port 0 picks a free port; [`Origin::addresses`] returns it. Fails if an address cannot be bound
/// or a thread cannot be started.
pub fn start(addresses: &[Address], workers: usize) -> io::Result<Origin> {
    let workers = workers.clamp(1, WORKERS_MAX);
    let mut origin = Origin { addresses: Vec::new(), workers: Vec::new(), tallies: Vec::new() };
    let mut sockets = vec![Vec::new(); workers];
    for address in addresses {
        let bound = bind(address, workers)?;
        origin.addresses.extend(bound.first().map(|socket| socket.local_addr().clone()));
        // With fewer sockets than workers (a unix socket), workers share them.
        for (mine, socket) in sockets.iter_mut().zip(bound.iter().cycle()) {
            mine.push(socket.clone());
        }
    }
    for (index, mine) in sockets.into_iter().enumerate() {
        let tally = Arc::new(Tally::default());
        origin.tallies.push(tally.clone());
        let remote = worker::start(&format!("origin {index}"), None, move || {
            for socket in mine {
                worker::spawn(accept(socket, tally.clone()));
            }
        })?;
        origin.workers.push(remote);
    }
    Ok(origin)
}

fn bind(address: &Address, workers: usize) -> io::Result<Vec<Listening>> {
    let options = ListenOptions { reuseport: workers > 1 && !address.is_unix(), ..ListenOptions::default() };
    if options.reuseport {
        // This finds a taken address. With SO_REUSEPORT alone, the origin could unknowingly share it with another
        // origin of the same user.
        drop(listener::bind(address, &ListenOptions::default())?);
    }
    let first = listener::bind(address, &options)?;
    let mut sockets = vec![first.clone()];
    while options.reuseport && sockets.len() < workers {
        sockets.push(listener::bind(first.local_addr(), &options)?);
    }
    Ok(sockets)
}

async fn accept(socket: Listening, tally: Arc<Tally>) {
    let Ok(listener) = Listener::new(&socket) else {
        return;
    };
    let open = Rc::new(());
    loop {
        match listener.accept().await {
            Ok(_) if Rc::strong_count(&open) > CONNECTIONS_MAX => {}
            Ok((stream, _)) => {
                add(&tally.connections, 1);
                let (tally, open) = (tally.clone(), open.clone());
                worker::spawn(async move {
                    connection::serve(stream, &tally).await;
                    drop(open);
                });
            }
            Err(_) => timer::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Adds to a count. A worker is the only writer of its tally, so there is no contention.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl Origin {
    /// The addresses that it listens on, in the given order, with the real ports.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The first TCP address, for building URLs.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.addresses.iter().find_map(Address::tcp)
    }

    /// The sums over all workers so far.
    pub fn totals(&self) -> Totals {
        self.tallies.iter().map(|tally| tally.totals()).fold(Totals::default(), Totals::plus)
    }

    /// Stops the workers and closes every connection. [`Origin::join`] waits for that.
    pub fn stop(&self) {
        for remote in &self.workers {
            remote.stop();
        }
    }

    /// Waits until every worker has ended.
    pub fn join(&self) {
        for remote in &self.workers {
            remote.join();
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}
