//! Drives sessions: from an accepted connection or a first datagram through the phases to the peer and the log.
//!
//! ```text
//!  accepted ─► begin: PROXY header, phases, TLS, preread ─┬► proxy: connect ─► relay ─► end: the log
//!                                                         ├► say (return)
//!                                                         └► pass: another socket
//!  datagrams: a socket ─► the session of a client, or a new one ─► the same phases ─► volley: datagrams both ways
//! ```

mod begin;
pub mod check;
mod choose;
mod connect;
pub mod datagrams;
mod hold;
mod look;
pub mod pass;
mod relay;
mod say;
pub mod status;
mod talk;
mod volley;

use std::future::poll_fn;
use std::rc::Rc;

use weir_http::exchange::route::Socket;
use weir_http::hold::counters;
use weir_http::hold::own::Own;
use weir_http::hold::table_place::TablePlace;
use weir_http::hold::worker::{Entry, Generation, Worker};
use weir_net::{Address, SocketAddress, Stream, TlsStream, Transport};

use self::connect::{Joined, Link};
use self::pass::{Arrival, Elsewhere, Further, Goal};
use self::status::INTERNAL;
use crate::conf::{self, Content, ProxyTarget};
use crate::part::Next;
use crate::session::{Around, Known, Session};

/// Takes a connection that was accepted on a socket of `stream`; drops it if no server of the configuration has that
/// socket.
pub fn accepted(
    worker: &Rc<Worker>,
    stream: Stream,
    remote: SocketAddress,
    socket: &Address,
    place: TablePlace,
    generation: Rc<Generation>,
    elsewhere: Elsewhere,
) {
    let streams = &conf::of(&generation.conf).streams;
    let Some(socket) = streams.sockets.iter().find(|known| known.address == *socket) else { return };
    let listen = listen_of(socket, &stream);
    let is_secure = streams.listens.get(listen).is_some_and(|listen| listen.ssl);
    let stream = if is_secure { TlsStream::accepted(stream).into() } else { Transport::from(stream) };
    let entry = worker.enlist(stream, place, &generation);
    let number = worker.next_connection_number();
    let known = Known { number, remote, facts: None, proxied: None, own: Own::default(), passes: 0 };
    begin_session(entry, generation, Arrival { listen, local: None, known }, elsewhere);
}

/// Begins a session; `elsewhere` takes its connection if it leaves `stream`.
fn begin_session(entry: Entry, generation: Rc<Generation>, arrival: Arrival, elsewhere: Elsewhere) {
    entry.shared.wake();
    // Boxed, because the task would keep room for it until its end.
    weir_net::worker::spawn(live(entry, generation, Box::new(arrival), elsewhere));
}

/// The listen for a connection accepted on a socket; reads the local address only if it matters.
fn listen_of(socket: &Socket, stream: &Stream) -> usize {
    if socket.by_address.is_empty() {
        return socket.fallback;
    }
    let local = stream.local_addr().ok().and_then(|address| address.tcp());
    socket.listen_for(local.as_ref())
}

async fn live(entry: Entry, generation: Rc<Generation>, arrival: Box<Arrival>, elsewhere: Elsewhere) {
    let passed = {
        let stream = conf::of(&generation.conf);
        let Some(listen) = stream.streams.listens.get(arrival.listen) else { return };
        let Some(server) = stream.server(listen.hosts.default_server()) else { return };
        let around = Around { worker: &entry.worker, generation: &generation, stream, listen, server };
        let mut session = Session::new(around, arrival.known.remote.clone(), Some(entry.shared.clone()));
        session.follow(arrival.known, arrival.local);
        // These futures are much larger than the one of the relay, in which a session stays.
        let ended = match Box::pin(begin::begin(&mut session)).await {
            Next::End(status) => Err(status),
            Next::Continue => content(&mut session).await,
        };
        match ended {
            Ok(goal) => Some((goal, session.leave())),
            Err(status) => {
                session.finish(status);
                None
            }
        }
    };
    match passed {
        Some((goal, known)) => {
            if let Some(Further { entry, generation, arrival }) = pass::hand(goal, entry, known, elsewhere) {
                begin_session(entry, generation, arrival, elsewhere);
            }
        }
        // The client may have gone already.
        None if entry.shared.is_secure() => drop(entry.shared.stream.shutdown_write()),
        None => {}
    }
}

/// Serves the session; returns the socket that gets its connection, or the status of its end.
async fn content(session: &mut Session<'_>) -> Result<Goal, u16> {
    session.step = None;
    Err(match &session.server.content {
        Content::Nothing => INTERNAL,
        Content::Return(text) => Box::pin(say::say(session, text)).await,
        Content::Proxy(target) => proxy(session, target).await,
        Content::Pass(onward) => return pass::find(session, onward),
    })
}

/// Relays the session to a peer.
async fn proxy(session: &mut Session<'_>, target: &ProxyTarget) -> u16 {
    let _writing = counters::raise(&session.worker.counters().writing);
    let mut relay = match Box::pin(connect::join(session, target)).await {
        Ok(Joined { hold, link: Link::Stream(link), place, header }) => {
            connect::relay(session, hold, link, place, header)
        }
        Ok(Joined { link: Link::Datagrams(_), .. }) => return INTERNAL,
        Err(status) => return status,
    };
    let ended = poll_fn(|_| relay.poll(session)).await;
    relay.close(session, ended)
}
