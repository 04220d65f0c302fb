//! The requests of a connection, one after another: from a complete head to the next step of the connection.

use std::rc::Rc;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::route::ServerId;
use weir_http::exchange::{Exchange, Parts};
use weir_http::exchange::{counting, lane};
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::counters;
use weir_http::hold::worker::{Generation, Worker};
use weir_http::read::families::log_phase;
use weir_http::receive::body;
use weir_http::receive::head::{self, Head, Refused, default_core};
use weir_http::receive::request::Begun;
use weir_meter::Step;
use weir_net::clock;
use weir_net::log::{self, Level};
use weir_wire::Version;

use super::after::{After, parting};
use super::tunnel::Tunnel;
use super::{answer, open, subrequest};
use crate::canary;

/// Serves the requests that have arrived, one after the other. On entry, `parts` hold only bytes that arrived before
/// this task read anything; on return, only bytes that are not answered.
pub async fn active(conn: &mut Conn, worker: &Rc<Worker>, parts: &mut Parts) -> After {
    loop {
        let Some(generation) = next(conn, worker) else { return After::Close };
        let may_carry = conn.served() == 0
            && !conn.shared.is_secure()
            && open::speaks_http2(&generation.conf, conn.client.listen.get());
        let core = default_core(&generation.conf, conn.client.listen.get());
        let reading = counters::raise(&worker.counters().reading);
        let head = head::read(conn, parts, core, may_carry).await;
        drop(reading);
        let refusal = match head {
            Head::Complete => None,
            Head::Refused(refused) => Some(refused),
            Head::Nothing => {
                let timeout = if conn.served() == 0 { core.header_timeout } else { core.keepalive_timeout };
                conn.await_request(timeout, core.send_timeout.first);
                return After::Idle(timeout);
            }
            Head::Closed => return After::Close,
            Head::Streams => {
                let early = std::mem::take(&mut parts.request().bytes);
                return After::Streams(early.into());
            }
        };
        counters::add(&worker.counters().of(Version::Http11).requests, 1);
        let writing = counters::raise(&worker.counters().writing);
        let own = lane::of_request(worker, &conn.client, parts.request(), &generation);
        let own = own.and_then(|own| moved(conn, own));
        let after = one(conn, worker, own.as_ref().unwrap_or(&generation), parts, refusal).await;
        drop(writing);
        parts.next_request();
        match after {
            After::Idle(_) if !parts.request().bytes.is_empty() => {}
            After::Idle(timeout) => {
                conn.await_request(timeout, core.send_timeout.first);
                return after;
            }
            After::Close | After::Linger(..) | After::Tunnel(_) | After::Streams(_) => return after,
        }
    }
}

/// Serves the request of a stream, with the configuration of its connection; returns the `Parts` and the next step of the
/// stream.
pub async fn on_stream(
    conn: &mut Conn,
    worker: &Rc<Worker>,
    (begun, generation): (Begun, Rc<Generation>),
) -> (Parts, After) {
    let Begun { mut parts, refusal } = begun;
    counters::add(&worker.counters().of(parts.request().version()).requests, 1);
    let writing = counters::raise(&worker.counters().writing);
    let after = one(conn, worker, &generation, &mut parts, refusal.map(Refused::Violation)).await;
    drop(writing);
    (parts, after)
}

/// The configuration for the next request of a connection, in which its servers are found again if it is another one;
/// `None` when that configuration does not listen there any more.
pub fn next(conn: &Conn, worker: &Worker) -> Option<Rc<Generation>> {
    moved(conn, worker.lane(|| conn.client.ip()))
}

/// The connection in this configuration; `None` if that does not listen there.
fn moved(conn: &Conn, generation: Rc<Generation>) -> Option<Rc<Generation>> {
    if conn.shared.generation.get() != generation.conf.generation {
        conn.client.listen.set(generation.listen_of(&conn.socket, conn.stream().socket())?);
        conn.shared.generation.set(generation.conf.generation);
    }
    Some(generation)
}

/// One request and its answer, in the memory of `parts`.
async fn one(
    conn: &mut Conn,
    worker: &Rc<Worker>,
    generation: &Rc<Generation>,
    parts: &mut Parts,
    refusal: Option<Refused>,
) -> After {
    let conf: &Conf = &generation.conf;
    let server =
        conf.server(conf.listens.get(conn.client.listen.get()).map_or(ServerId(0), |l| l.hosts.default_server()));
    let started = parts.request().started.take().unwrap_or_else(clock::now);
    let number = conn.count_request();
    let client = conn.client.clone();
    let mut exchange = Exchange::new(conf, worker, generation, &client, server, parts, started, clock::unix_ms());
    exchange.facts.number_on_connection = number;
    let begun = open::open(&mut exchange, refusal);
    let opened = counting::begin(&mut exchange);
    let _under_way = canary::worker::begun(&exchange);
    let end = match begun {
        Ok(outcome) => answer::answer(&mut exchange, conn, outcome).await,
        Err(gone) => Err(gone),
    };
    opened.close();
    let end = match end {
        Ok(Some(upgraded)) => {
            return After::Tunnel(Tunnel::new(*upgraded, &mut exchange, conn));
        }
        Ok(None) => Ok(()),
        Err(gone) => Err(gone),
    };
    if let Err(gone) = &end {
        note(&mut exchange, gone);
    }
    if exchange.location.values.core.post_action.is_some() {
        Box::pin(subrequest::post_action(&mut exchange)).await;
    }
    log_phase(&mut exchange);
    match conn.carried {
        // The stream ends with its task. The bytes it sent decide how it ends.
        Some(_) => After::Close,
        None => finish(&mut exchange, conn, end).await,
    }
}

fn note(exchange: &mut Exchange<'_>, gone: &Gone) {
    match gone {
        Gone::TimedOut => {
            if exchange.response.status.get() == 0 {
                exchange.response.status.answer(408);
            }
            exchange.log(Level::Info, format_args!("client timed out (110: Connection timed out)"));
        }
        Gone::Closed(error) => {
            if exchange.response.status.get() == 0 {
                exchange.response.status.answer(499);
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
            let takes_nothing = matches!(exchange.facts.step, Step::SendResponse | Step::ReadResponse);
            if takes_nothing || exchange.location.values.core.reset_timedout {
                conn.stream().reset();
            }
            return After::Close;
        }
        Err(Gone::Closed(_) | Gone::Cut) => return After::Close,
        Ok(()) => {}
    }
    if exchange.flags.keeps_alive {
        let rest = if body::is_consumed(exchange) { Ok(()) } else { body::discard(exchange, conn).await };
        match rest {
            Ok(()) => return After::Idle(exchange.location.values.core.keepalive_timeout),
            // The client may still send, and a close at once could destroy its answer.
            Err(Gone::Cut) => {}
            Err(Gone::TimedOut | Gone::Closed(_)) => return After::Close,
        }
    }
    parting(exchange)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_connection_finds_its_servers_again_when_its_lane_has_another_configuration() {
        let conf = |number, listens: &str| {
            let (conf, problems) = crate::of_text(&format!("events {{}} http {{ server {{ {listens} }} }}"));
            assert_eq!(problems, [""; 0]);
            Arc::new(Conf { generation: number, ..conf.unwrap() })
        };
        let ended = weir_net::worker::block_on(async move {
            let both = conf(1, "listen 127.0.0.1:1; listen 127.0.0.1:2;");
            let worker = Worker::new(0, both, Default::default(), Default::default(), Default::default(), 1);
            let (mut conn, _other) = Conn::of_the_edge(&worker, 1).unwrap().unwrap();
            conn.socket = Rc::new(weir_net::Address::Tcp(([127, 0, 0, 1], 2).into()));
            conn.client.listen.set(1);
            let found = || {
                let generation = next(&conn, &worker).map(|generation| generation.conf.generation);
                (generation, conn.client.listen.get(), conn.shared.generation.get())
            };
            assert_eq!(found(), (Some(1), 1, 1));
            worker.adopt(conf(2, "listen 127.0.0.1:2;"));
            assert_eq!(found(), (Some(2), 0, 2));
            worker.adopt(conf(3, "listen 127.0.0.1:1;"));
            assert_eq!(found(), (None, 0, 2), "it listens there no more");
        });
        ended.unwrap();
    }
}
