//! The dummy origin: the request says the size, the delay, the status, the failure.
//!
//! ```text
//!  start ─► worker threads ─ accept ─► connection ─ Ask::of(target) ─► answer | failure | echo | WebSocket
//! ```
//!
//! HTTP/1.1 and 1.0 with keep-alive and pipelining; any path answers, so that a load
//! script written for a real application runs against it unchanged. It keeps nothing
//! and reads no file. Invariants: what a request can ask for is bounded by the
//! constants of [`ask`]; a connection holds no buffer while it waits.

mod answer;
pub mod ask;
mod connection;
mod failure;
mod websocket;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use weir_net::worker::{self, Remote};
use weir_net::{Address, ListenOptions, Listener, Listening, listener, timer};

/// Connections one worker serves at a time; further ones are closed at once.
pub const CONNECTIONS_MAX: usize = 65_536;

/// Threads [`start`] makes at most.
pub const WORKERS_MAX: usize = 256;

/// How long accepting rests when the process has no descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A running origin; stopped when dropped.
pub struct Origin {
    addresses: Vec<Address>,
    workers: Vec<Remote>,
    tallies: Vec<Arc<Tally>>,
}

/// What an origin has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Requests whose head was understood.
    pub requests: u64,
    /// Heads and wishes that were refused with a 4xx or 5xx of the origin's own.
    pub refused: u64,
    /// Failures done because a request asked for them.
    pub failures: u64,
    /// Connections that became WebSockets.
    pub websockets: u64,
    /// Frames echoed on them.
    pub frames: u64,
    /// Bytes sent, of HTTP and WebSocket alike.
    pub sent_bytes: u64,
}

/// One worker's share of the totals: written by it alone, read by anybody.
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
/// `workers` is kept between 1 and [`WORKERS_MAX`]; with more than one, each has its
/// own socket (`SO_REUSEPORT`) on every TCP address. Port 0 picks a free port, told by
/// [`Origin::addresses`]. Fails if an address cannot be bound or a thread not started.
pub fn start(addresses: &[Address], workers: usize) -> io::Result<Origin> {
    let workers = workers.clamp(1, WORKERS_MAX);
    let mut origin = Origin { addresses: Vec::new(), workers: Vec::new(), tallies: Vec::new() };
    let mut sockets = vec![Vec::new(); workers];
    for address in addresses {
        let bound = bind(address, workers)?;
        origin.addresses.extend(bound.first().map(|socket| socket.local_addr().clone()));
        // Fewer sockets than workers (a unix socket): they are shared.
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
        // Found taken now, or else shared unawares with another origin of the same user.
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

/// Counts; a worker is the only writer of its tally, so nothing is contended.
#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

impl Origin {
    /// Where it listens, in the order asked for, with the real ports.
    pub fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// The first TCP address, for building URLs.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.addresses.iter().find_map(Address::tcp)
    }

    /// What all workers have done so far.
    pub fn totals(&self) -> Totals {
        self.tallies.iter().map(|tally| tally.totals()).fold(Totals::default(), Totals::plus)
    }

    /// Ends the workers and closes every connection; [`Origin::join`] waits for it.
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
