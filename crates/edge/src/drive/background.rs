//! Exchanges in the background: weir makes them for a client's request, and no client gets their answers.
//!
//! nginx calls them background subrequests. Such an exchange has a copy of the client's request head and of the body
//! that was read, and a connection without a client. It goes through the phases like any other, except for the checks
//! of access. Unlike nginx's subrequest, it holds neither the client's connection nor the client's log line.
//! <https://nginx.org/en/docs/dev/development_guide.html#http_subrequests>

use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use weir_http::conn::Conn;
use weir_http::exchange::{Exchange, Parts};
use weir_http::message::Request;
use weir_http::phase::{From, Outcome};
use weir_http::request_body::{Reader, RequestBody};
use weir_http::route::ServerId;
use weir_http::slots::SlotStore;
use weir_http::trace::context::Trace;
use weir_http::worker::{Generation, OwnEntry, Worker};
use weir_http::{counting, special, walk};
use weir_net::log::{self, Level};
use weir_net::{SocketAddress, clock};
use weir_proxy::family::slice;
use weir_proxy::family::upstream::forward::Answer;
use weir_proxy::relay;
use weir_wire::BodyLength;

use super::open;
use crate::family::log as access_log;
use crate::purge;

/// The most exchanges in the background at a time on one worker; weir leaves out further ones, and logs each.
pub const BACKGROUND_MAX: usize = 1024;

/// The places of the worker's connection table for each exchange in the background. Such an exchange takes one place
/// for itself and usually one for its peer. So the clients' exchanges keep half of the table, even if no copy gets an
/// answer.
pub const PLACES_PER_EXCHANGE: usize = 4;

/// The most exchanges in the background with a table of this size.
fn most(places: usize) -> usize {
    (places / PLACES_PER_EXCHANGE).clamp(1, BACKGROUND_MAX)
}

thread_local! {
    static UNDER_WAY: Cell<usize> = const { Cell::new(0) };
}

/// A place among the exchanges in the background of this worker; dropping it frees the place.
struct Turn;

impl Turn {
    fn take(most: usize) -> Option<Turn> {
        let taken = UNDER_WAY.get();
        (taken < most).then(|| {
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
struct Copied {
    worker: Rc<Worker>,
    generation: Rc<Generation>,
    server: ServerId,
    request: Request,
    body: RequestBody,
    slots: SlotStore,
    args: Vec<u8>,
    told_address: Option<SocketAddress>,
    trace: Option<Box<Trace>>,
    limit_req_status: &'static str,
    limit_conn_status: &'static str,
}

/// The connection of an exchange in the background, and its places in the worker's lists.
struct Alone {
    conn: Conn,
    /// The other end of the connection: it stays open as long as the connection.
    _other: OwnedFd,
    _turn: Turn,
    _entry: OwnEntry,
}

/// Starts a request to each path, on the server of `exchange`. A request that cannot start is logged and left out.
pub fn start(exchange: &mut Exchange<'_>, paths: Vec<Vec<u8>>) {
    for path in paths {
        let shown = String::from_utf8_lossy(&path).into_owned();
        match begin(exchange) {
            Ok((copied, alone)) => weir_net::worker::spawn(run(copied, alone, path)),
            Err(Refused::TooMany(most)) => exchange.log(
                Level::Error,
                format_args!("{most} background requests are already running, so weir does not send \"{shown}\""),
            ),
            // `take_place` has logged it.
            Err(Refused::NoPlace) => {}
            Err(Refused::Os(error)) => {
                let error = log::Os(&error);
                exchange.log(Level::Error, format_args!("background request \"{shown}\" failed to start {error}"));
            }
        }
    }
}

/// Why a request could not start.
enum Refused {
    TooMany(usize),
    NoPlace,
    Os(io::Error),
}

fn begin(exchange: &Exchange<'_>) -> Result<(Copied, Alone), Refused> {
    let most = most(exchange.conf.places().0);
    let turn = Turn::take(most).ok_or(Refused::TooMany(most))?;
    let body = copy_of(&exchange.body).map_err(Refused::Os)?;
    let worker = exchange.worker;
    let (conn, other) = Conn::of_nobody(worker, exchange.client, exchange.conf.generation)
        .map_err(Refused::Os)?
        .ok_or(Refused::NoPlace)?;
    let entry = worker.enlist_own(&conn.shared);
    let mut request = exchange.request.head_alone();
    if !matches!(body, RequestBody::Gone) {
        request.length = Some(BodyLength::Exact(body.length()));
    }
    let copied = Copied {
        worker: worker.clone(),
        generation: exchange.generation.clone(),
        server: exchange.server.id,
        request,
        body,
        slots: (*exchange.slots).clone(),
        args: exchange.args.clone(),
        told_address: exchange.told_address.clone(),
        trace: exchange.trace.clone(),
        limit_req_status: exchange.limit_req_status,
        limit_conn_status: exchange.limit_conn_status,
    };
    Ok((copied, Alone { conn, _other: other, _turn: turn, _entry: entry }))
}

/// The same body for another exchange, none if it was not read. The first exchange removes the file of a body; the
/// second one reads it through a descriptor of its own.
fn copy_of(body: &RequestBody) -> io::Result<RequestBody> {
    Ok(match body {
        RequestBody::Unread | RequestBody::Gone => RequestBody::Gone,
        RequestBody::Memory(bytes) => RequestBody::Memory(bytes.clone()),
        RequestBody::File { file, path, length, remove: _ } => {
            RequestBody::File { file: file.try_clone()?, path: path.clone(), length: *length, remove: false }
        }
    })
}

async fn run(copied: Copied, mut alone: Alone, path: Vec<u8>) {
    let Copied { worker, generation, server, request, body, slots, args, told_address, trace, .. } = copied;
    let (conf, client) = (&*generation.conf, alone.conn.client.clone());
    let (now, wall_ms) = (clock::now(), clock::unix_ms());
    let parts = Parts::of(request, slots, path, args);
    let mut exchange = Exchange::new(conf, &worker, &generation, &client, conf.server(server), parts, now, wall_ms);
    exchange.is_background = true;
    exchange.internal = true;
    exchange.told_address = told_address;
    exchange.trace = trace;
    exchange.limit_req_status = copied.limit_req_status;
    exchange.limit_conn_status = copied.limit_conn_status;
    exchange.body = body;
    // Until there is a reader, the walk compares the length of the body with `client_max_body_size`.
    let outcome = walk::walk(&mut exchange, From::Server);
    exchange.reader = Some(Reader::at_end(exchange.body.length()));
    finish(&mut exchange, &mut alone.conn, outcome).await;
    counting::count_tries(&exchange);
    if exchange.location.values.core.log_subrequest {
        access_log::log(&mut exchange);
    }
    drop(exchange.into_parts());
}

/// Goes on from an outcome of the phases to a response, and drops the response.
async fn finish(exchange: &mut Exchange<'_>, conn: &mut Conn, mut outcome: Outcome) {
    loop {
        if matches!(outcome, Outcome::Forward)
            && let Some(why) = open::withheld(exchange)
        {
            outcome = Outcome::Status(open::withhold(exchange, why));
        }
        outcome = match outcome {
            // No client would see a page with counters.
            Outcome::Respond | Outcome::Observe | Outcome::Dashboard => return,
            Outcome::Status(status @ (408 | 444 | 499)) => {
                exchange.response.status = status;
                return;
            }
            Outcome::Status(status) => match special::redirect(exchange, status) {
                Some(outcome) => outcome,
                None => return special::page(exchange, status),
            },
            Outcome::Wait(pause, resume) => match conn.pause(pause).await {
                Some(_) => return,
                None => walk::resume(exchange, resume),
            },
            // weir has read the body already, or does not need it.
            Outcome::ReadBody(resume) => walk::resume(exchange, resume),
            Outcome::Background(paths, resume) => {
                start(exchange, paths);
                walk::resume(exchange, resume)
            }
            Outcome::Purge => match purge::api::answer(exchange, conn).await {
                Ok(outcome) => outcome,
                Err(_) => return,
            },
            Outcome::Forward => match slice::forward(exchange, conn).await {
                Answer::Response(source) if exchange.cache.is_filling() => return relay::drain(exchange, source).await,
                Answer::Response(source) => return source.finish_unread(exchange),
                Answer::Outcome(outcome) => outcome,
                Answer::Tunnel(_) | Answer::Gone(_) => return,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_has_a_bounded_number_of_turns() {
        for (places, expected) in [(0, 1), (16, 4), (1_000_000, BACKGROUND_MAX)] {
            let turns: Vec<_> = std::iter::from_fn(|| Turn::take(most(places))).collect();
            assert_eq!(turns.len(), expected, "{places}");
            drop(turns);
            assert!(Turn::take(most(places)).is_some(), "a dropped turn is free again");
        }
    }

    #[test]
    fn a_body_that_was_not_read_is_not_copied() {
        assert!(matches!(copy_of(&RequestBody::Unread), Ok(RequestBody::Gone)));
        assert!(
            matches!(copy_of(&RequestBody::Memory(b"abc".to_vec())), Ok(RequestBody::Memory(bytes)) if bytes == b"abc")
        );
    }
}
