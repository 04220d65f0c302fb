//! Refreshes an object in the background: the client already has its answer, and later clients get the new one.
//!
//! The refresh is an exchange of its own. It has a copy of the client's request and a connection without a client. It
//! takes a place in the worker's table like any other exchange, and writes nothing to the access log (nginx: a
//! background subrequest). If requests are traced, it is a span below the request that caused it. Unlike nginx's
//! subrequest, it does not hold the client's connection.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use weir_cache::reason::Reason;
use weir_cache::store::{Refreshed, Status};
use weir_http::conn::Conn;
use weir_http::counting;
use weir_http::exchange::{Exchange, Parts};
use weir_http::family::otel;
use weir_http::message::Request;
use weir_http::phase::Outcome;
use weir_http::route::{LocationId, ServerId};
use weir_http::slots::SlotStore;
use weir_http::trace::context::Trace;
use weir_http::visit::Visit;
use weir_http::worker::{Generation, Worker};
use weir_net::clock;
use weir_net::log::{self, Level};

use crate::family::cache::keep;
use crate::family::upstream::forward;
use crate::relay;

/// The most refreshes in progress on one worker; beyond this number, the next request for the key tries again.
pub const REFRESHES_MAX: usize = 1024;

thread_local! {
    static UNDER_WAY: Cell<usize> = const { Cell::new(0) };
}

/// A place among the refreshes of this worker; dropping it frees the place.
struct Turn;

impl Turn {
    fn take() -> Option<Turn> {
        let taken = UNDER_WAY.get();
        (taken < REFRESHES_MAX).then(|| {
            UNDER_WAY.set(taken + 1);
            Turn
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        UNDER_WAY.set(UNDER_WAY.get().saturating_sub(1));
    }
}

/// All data that the second exchange takes from the first.
struct Twin {
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    server: ServerId,
    location: LocationId,
    request: Request,
    slots: SlotStore,
    uri: Vec<u8>,
    args: Vec<u8>,
    flags: Flags,
    told_address: Option<weir_net::SocketAddress>,
    trace: Option<Box<Trace>>,
    visit: Visit,
}

#[derive(Clone, Copy)]
struct Flags {
    target_is_valid: bool,
    uri_was_quoted: bool,
    uri_changed: bool,
    internal: bool,
}

/// Starts a refresh with `visit`, which leads the flight. If the refresh cannot start, returns `false` and lets another
/// request lead the flight.
pub fn start(exchange: &mut Exchange<'_>, conn: &Conn, visit: Visit) -> bool {
    let Some(turn) = Turn::take() else { return false };
    let (conn, other) = match Conn::of_nobody(exchange.worker, &conn.client, exchange.conf.generation) {
        Ok(Some(made)) => made,
        Ok(None) => return false,
        Err(error) => {
            let error = log::Os(&error);
            exchange.log(Level::Error, format_args!("socketpair() failed {error} while refreshing the cache"));
            return false;
        }
    };
    let twin = Twin {
        worker: exchange.worker.clone(),
        generation: exchange.generation.clone(),
        server: exchange.server.id,
        location: exchange.location.id,
        request: exchange.request.head_alone(),
        slots: (*exchange.slots).clone(),
        uri: exchange.uri.clone(),
        args: exchange.args.clone(),
        flags: Flags {
            target_is_valid: exchange.target_is_valid,
            uri_was_quoted: exchange.uri_was_quoted,
            uri_changed: exchange.uri_changed,
            internal: exchange.internal,
        },
        told_address: exchange.told_address.clone(),
        trace: otel::behind(exchange),
        visit,
    };
    weir_net::worker::spawn(run(twin, conn, other, turn));
    true
}

async fn run(twin: Twin, mut conn: Conn, other: OwnedFd, turn: Turn) {
    let Twin { worker, generation, server, location, request, slots, uri, args, flags, told_address, trace, visit } =
        twin;
    let conf = &*generation.conf;
    let client = conn.client.clone();
    let (now, wall_ms) = (clock::now(), clock::unix_ms());
    let parts = Parts::of(request, slots, uri, args);
    let mut exchange = Exchange::new(conf, &worker, &generation, &client, conf.server(server), parts, now, wall_ms);
    exchange.location = conf.location(location);
    exchange.target_is_valid = flags.target_is_valid;
    exchange.uri_was_quoted = flags.uri_was_quoted;
    exchange.uri_changed = flags.uri_changed;
    exchange.internal = flags.internal;
    exchange.told_address = told_address;
    exchange.body = weir_http::request_body::RequestBody::Gone;
    exchange.trace = trace;
    exchange.cache = visit;
    match forward::forward(&mut exchange, &mut conn, Some(keep::judge)).await {
        forward::Answer::Response(source) if exchange.cache.is_filling() => relay::drain(&mut exchange, source).await,
        forward::Answer::Response(source) => source.finish_unread(&mut exchange),
        // Nobody gets this status, but the span reports it.
        forward::Answer::Outcome(Outcome::Status(status)) => exchange.response.status = status,
        forward::Answer::Outcome(_) | forward::Answer::Tunnel(_) | forward::Answer::Gone(_) => {}
    }
    let how = outcome(&mut exchange);
    note(&mut exchange, how);
    otel::refreshed(&mut exchange, how);
    counting::count_tries(&exchange);
    drop(exchange.into_parts());
    drop((other, turn));
}

/// The result of the refresh.
fn outcome(exchange: &mut Exchange<'_>) -> Refreshed {
    match (exchange.cache.written.take(), exchange.cache.status) {
        (Some(bytes), _) => Refreshed::Stored(bytes),
        (None, Some(Status::Revalidated)) => Refreshed::Confirmed,
        (None, _) => Refreshed::Failed,
    }
}

/// Counts the refresh apart from the clients' requests, and logs it at level `info`.
fn note(exchange: &mut Exchange<'_>, how: Refreshed) {
    let Some(zone) = exchange.cache.zone.and_then(|number| crate::declared(exchange.conf).cache.zone(number)) else {
        return;
    };
    zone.counters().refreshed(how);
    if exchange.logs(Level::Info) {
        let key = String::from_utf8_lossy(&exchange.cache.key.0).into_owned();
        let reason = exchange.cache.reason.map_or("no-answer", Reason::as_str);
        exchange.log(Level::Info, format_args!("cache refreshed \"{key}\" in the background: {reason}"));
    }
}
