//! A request on a stream of HTTP/2 or HTTP/3: a section becomes a request, and a task serves it.

use std::future::poll_fn;
use std::rc::Rc;

use weir_http::exchange::Parts;
use weir_http::exchange::conf::Conf;
use weir_http::exchange::{lane, line};
use weir_http::hold::bounds::{MEMORY, STREAMS, Share};
use weir_http::hold::conn::Conn;
use weir_http::hold::frames::Frames;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::receive::head::{self, default_core};
use weir_http::receive::request::{self, Begun};
use weir_net::clock;
use weir_net::log::Level;
use weir_wire::section::Block;
use weir_wire::section::message::Malformed;
use weir_wire::{Version, Violation};

use super::after::After;
use super::seat::{self, Guest};

/// A request that may be served.
pub struct CarriedRequest {
    begun: Begun,
    malformed: Option<Malformed>,
    version: Version,
    /// It counts the stream until both end.
    share: Share,
    /// Its configuration.
    generation: Rc<Generation>,
    /// The number of its listen there, if it is not the connection's configuration.
    listen: Option<usize>,
}

/// Makes a request of a section, which is in `block`. `ends` if no body follows; `length` is how the length of the body
/// breaks the rules of a message. `None` if there is no memory for it, or no stream: the caller refuses it.
pub fn read(
    conn: &Conn,
    (worker, generation): (&Worker, &Rc<Generation>),
    (block, version): (&mut Block, Version),
    ends: bool,
    length: Option<Malformed>,
) -> Option<CarriedRequest> {
    let policy = head::policy(default_core(&generation.conf, conn.client.listen.get()));
    // Sec-WebSocket-Key proves nothing (RFC 6455 §10.3): any number will do.
    let mut key = [0; 16];
    key.fill_with(|| worker.random(256) as u8);
    let (mut begun, fields) = request::read(block, version, Parts::lease(worker), ends, &policy, key);
    begun.parts.request().started = Some(clock::now());
    let mut share = STREAMS.share();
    let has_memory = !MEMORY.is_full();
    if !has_memory {
        MEMORY.refuse();
    }
    let own = lane::of_request(worker, &conn.client, begun.parts.request(), generation);
    let (generation, listen) = own
        .and_then(|own| listen_in(conn, &own, version).map(|listen| (own, Some(listen))))
        .unwrap_or_else(|| (generation.clone(), None));
    let malformed = fields.or(length);
    (has_memory && share.grow(1)).then_some(CarriedRequest { begun, malformed, version, share, generation, listen })
}

/// The number of the connection's listen in a configuration.
fn listen_in(conn: &Conn, generation: &Generation, version: Version) -> Option<usize> {
    if version != Version::Http3 {
        return generation.listen_of(&conn.socket, conn.stream().socket());
    }
    generation.listen_of_quic(conn.socket.tcp()?, conn.client.local().tcp().map(|local| local.ip()))
}

/// Starts a task for a request.
pub fn serve(conn: &mut Conn, worker: &Rc<Worker>, stream: Rc<dyn Frames>, request: CarriedRequest) {
    let CarriedRequest { mut begun, malformed, version, share, generation, listen } = request;
    if let Some(malformed) = malformed {
        note(conn, &generation.conf, version, malformed);
        begun.refusal.get_or_insert(Violation::MalformedRequest);
        stream.blame();
    }
    let own = Box::new(conn.of_stream(stream.clone()));
    if let Some(listen) = listen {
        own.client.listen.set(listen);
        own.shared.generation.set(generation.conf.generation);
    }
    weir_net::worker::spawn(live(Served(stream, share), own, worker.clone(), Box::new((begun, generation))));
}

/// Logs a rule that the client broke.
pub fn note(conn: &Conn, conf: &Conf, version: Version, what: &str) {
    let number = if version == Version::Http3 { 3 } else { 2 };
    line::client_line(
        conf,
        &conn.client,
        Level::Info,
        format_args!("client sent {what} while processing HTTP/{number} connection"),
    );
}

/// Ends its stream when it is dropped, also if the task panics.
struct Served(Rc<dyn Frames>, #[expect(dead_code, reason = "it counts the stream until both end")] Share);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn live(served: Served, conn: Box<Conn>, worker: Rc<Worker>, request: Box<(Begun, Rc<Generation>)>) {
    let _served = served;
    let mut seat = seat::lease();
    seat.take(Guest { conn, worker: worker.clone(), early: None, carried: Some(request) });
    let (conn, after) = poll_fn(|context| seat.poll(context)).await;
    seat::give_back(seat);
    if let After::Tunnel(mut tunnel) = after {
        let end = poll_fn(|_| tunnel.poll(&conn)).await;
        tunnel.close(end, &conn, &worker);
    }
}
