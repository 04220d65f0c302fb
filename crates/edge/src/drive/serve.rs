//! Serves one client connection from start to end: wait, read a head, answer, keep or close.
//!
//! Cost of a steady proxied exchange: one read and one write on each side, one pass over each head, no allocation. An
//! idle connection holds no buffer and no future of an exchange: these belong to the worker's seats. It holds only
//! the few words of `live`, a registration and a deadline.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::rc::Rc;

use weir_http::hold::client::{Client, Secured};
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Entry, Generation};
use weir_http::receive::head::default_core;
use weir_net::{Address, SocketAddress, Transport, clock};
use weir_stream::drive::pass::Passed;
use weir_stream::session::Known;

use super::after::After;
use super::linger::linger;
use super::seat::{self, Guest};
use super::{proxied, requests, secure, streams};

/// Serves a connection to its end. Its initial state is computed here, outside the future: an idle connection keeps
/// that future, so the future must be small.
pub fn serve(entry: Entry, generation: Rc<Generation>, remote: SocketAddress, socket: Rc<Address>, listen: usize) {
    let number = entry.worker.next_connection_number();
    let conn = conn(&entry, &generation, remote, socket, listen, number);
    begin(conn, entry, generation, listen);
}

/// Serves a connection that `pass` of `stream` hands over, with everything that is known about its client.
pub fn passed(passed: Passed) {
    let Passed { entry, generation, socket, local, listen, known } = passed;
    let Known { number, remote, facts, proxied, own, .. } = known;
    let conn = conn(&entry, &generation, remote, socket, listen, number);
    // The client is new, so nothing was set before.
    let client = &conn.client;
    let _ = client.local.set(local);
    let _ = client.before.set(Box::new(own));
    if let Some(proxied) = proxied {
        let _ = client.proxied.set(proxied);
    }
    if let Some(facts) = facts {
        let _ = client.secured.set(Rc::new(Secured::Tls(*facts)));
    }
    begin(conn, entry, generation, listen);
}

/// A client that has just arrived.
pub fn conn(
    entry: &Entry,
    generation: &Generation,
    remote: SocketAddress,
    socket: Rc<Address>,
    listen: usize,
    number: u64,
) -> Box<Conn> {
    let shared = entry.shared.clone();
    let core = default_core(&generation.conf, listen);
    // The listening socket has switched it on.
    if !core.nodelay
        && !remote.is_unix()
        && let Some(socket) = shared.stream.socket()
    {
        // If this fails, answers may come in more packets, but they stay correct.
        let _ = socket.set_nodelay(false);
    }
    let client = Rc::new(Client {
        number,
        accepted: clock::now(),
        remote,
        local: OnceCell::new(),
        listen: Cell::new(listen),
        proxied: OnceCell::new(),
        secured: OnceCell::new(),
        before: OnceCell::new(),
        shared: shared.clone(),
    });
    let conn = Box::new(Conn::new(shared, client, socket));
    conn.deadline.set(core.header_timeout);
    conn
}

/// The first bytes belong to the configuration that took the connection; each request asks for its own.
fn begin(conn: Box<Conn>, entry: Entry, generation: Rc<Generation>, listen: usize) {
    let is_proxied = generation.conf.listens.get(listen).is_some_and(|listen| listen.proxy_protocol);
    if is_proxied {
        weir_net::worker::spawn(proxied(conn, entry, generation));
    } else if needs_handshake(&conn) {
        weir_net::worker::spawn(secured(conn, entry, generation, Vec::new()));
    } else {
        weir_net::worker::spawn(live(conn, entry, None));
    }
}

/// Whether TLS must begin: a session of `stream` may have made the handshake already.
fn needs_handshake(conn: &Conn) -> bool {
    matches!(conn.stream(), Transport::Tls(_)) && conn.client.secured.get().is_none()
}

/// A connection that begins with a PROXY protocol header. This future is larger than the later ones, so the rest of
/// the connection runs as a new task.
async fn proxied(conn: Box<Conn>, entry: Entry, generation: Rc<Generation>) {
    let Some(early) = proxied::read(&conn, &generation.conf).await else { return };
    if needs_handshake(&conn) {
        return weir_net::worker::spawn(secured(conn, entry, generation, early));
    }
    let early = (!early.is_empty()).then(|| early.into());
    weir_net::worker::spawn(live(conn, entry, early));
}

/// A connection that begins with TLS; `early` is the part that has arrived. A separate task for the same reason.
async fn secured(conn: Box<Conn>, entry: Entry, generation: Rc<Generation>, early: Vec<u8>) {
    if !secure::begin(&conn, &entry.worker, &generation, &early).await {
        return;
    }
    if conn.client.speaks_http2() {
        return streams::serve(conn, entry, generation, &[]);
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
            let mut seat = seat::lease();
            seat.take(Guest { conn, worker: entry.worker.clone(), early: early.take(), carried: None });
            let mut after;
            (conn, after) = poll_fn(|context| seat.poll(context)).await;
            seat::give_back(seat);
            if let After::Tunnel(mut tunnel) = after {
                let end = poll_fn(|_| tunnel.poll(&conn)).await;
                after = tunnel.close(end, &conn, &entry.worker);
            }
            match after {
                After::Idle(_) if !entry.worker.is_draining() => conn.shared.lie_idle(),
                After::Linger(time, timeout) => return Box::pin(linger(&conn, &entry.worker, time, timeout)).await,
                After::Streams(early) => {
                    let Some(generation) = requests::next(&conn, &entry.worker) else { return };
                    return streams::serve(conn, entry, generation, &early);
                }
                After::Close if conn.stream().has_failed() => return Box::pin(secure::say_why(&conn)).await,
                After::Idle(_) | After::Close | After::Tunnel(_) => return,
            }
        }
    }
}
