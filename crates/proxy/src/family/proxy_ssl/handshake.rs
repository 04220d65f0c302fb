//! The TLS handshake with an upstream.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use weir_http::exchange::Exchange;
use weir_http::family::certificates::source;
use weir_http::hold::board::count_fault;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::worker::Generation;
use weir_meter::Step;
use weir_meter::live::cells::Distrust;
use weir_net::log::Os;
use weir_net::tls::{Client, Sessions, failure};
use weir_net::{Address, Deadline, Stream, TlsStream};

use super::Party;
use super::fault::Fault;
use super::sessions::AllSessions;
use crate::family::proxy;
use crate::family::upstream::failure::Failure;

/// The sessions of a configuration on this worker.
fn sessions(generation: &Generation) -> &AllSessions {
    generation.own.of(AllSessions::default)
}

/// The TLS sessions in `all` of a party with the peer that has this cell and this address.
pub fn sessions_of(party: &Party, all: &AllSessions, cell: u32, address: &Address) -> Sessions {
    all.of(Arc::as_ptr(&party.tls) as usize, cell, address)
}

/// The message for a failed read or write: an error of TLS, or of the socket.
pub struct BrokenTransfer<'e>(pub &'static str, pub &'static str, pub &'e io::Error);

impl fmt::Display for BrokenTransfer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BrokenTransfer(plain, tls, error) = self;
        match failure(error) {
            Some(failed) => write!(f, "{tls} failed (SSL: {failed})"),
            None => write!(f, "{plain} failed {}", Os(error)),
        }
    }
}

/// Makes the handshake over a new connection within `deadline`; checks the upstream's certificate as the party
/// requires. The sessions are those of the group, if it shares them, or else of the worker.
pub async fn shake_hands(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    stream: Stream,
    address: &Address,
    party: &Party,
    deadline: &Deadline,
    shared: Option<&AllSessions>,
) -> Result<TlsStream, Failure> {
    exchange.facts.step = Step::TlsOrigin;
    // A handshake is a few small writes. No write may wait for the acknowledgement of the previous one. Unix sockets
    // have no such delay and refuse the option.
    let _ = stream.set_nodelay(true);
    let client =
        client(&exchange.conf.paths.conf_prefix, party).map_err(|line| Failure::Tls(Fault::Certificate(line)))?;
    let cell = exchange.tries.last().map_or(0, |attempt| attempt.cell);
    let all = shared.unwrap_or_else(|| sessions(exchange.generation));
    let sessions = sessions_of(party, all, cell, address);
    let tls = TlsStream::to_origin(stream, &client, &party.name, Some(&sessions));
    let tls = tls.map_err(|failed| Failure::Tls(Fault::Handshake(failed.into())))?;
    let watch = proxy::is_for_its_client_alone(exchange);
    let shaken = {
        let mut shaking = pin!(tls.handshake(deadline));
        poll_fn(|context| {
            if let Poll::Ready(shaken) = shaking.as_mut().poll(context) {
                return Poll::Ready(Ok(shaken));
            }
            match watch.then(|| conn.poll_gone()) {
                Some(Poll::Ready(error)) => Poll::Ready(Err(Failure::Client(Gone::Closed(error)))),
                Some(Poll::Pending) | None => Poll::Pending,
            }
        })
        .await?
    };
    let cell = &exchange.worker.board.peer(cell).ssl;
    match shaken {
        Ok(()) if party.tls.verifies && !tls.is_for(&party.name) => {
            cell.failed.one();
            cell.distrusted(Distrust::Hostname);
            Err(Failure::Tls(Fault::OtherName(party.name.clone())))
        }
        Ok(()) => {
            cell.handshakes.one();
            if tls.is_resumed() {
                cell.reused.one();
            }
            Ok(tls)
        }
        Err(error) => {
            cell.failed.one();
            count_fault(cell, &error);
            match error.kind() {
                io::ErrorKind::TimedOut => Err(Failure::TimedOut),
                _ => Err(Failure::Tls(Fault::Handshake(error))),
            }
        }
    }
}

/// Makes the handshake with the peer of a session of `stream` over a new connection; offers these protocols. A TLS
/// session of `sessions` makes it cheaper.
pub async fn secure(
    conf_prefix: &str,
    stream: Stream,
    party: &Party,
    sessions: &Sessions,
    protocols: Vec<Vec<u8>>,
    deadline: &Deadline,
) -> Result<TlsStream, Fault> {
    let _ = stream.set_nodelay(true);
    let client = client(conf_prefix, party).map_err(Fault::Certificate)?;
    let client = if protocols.is_empty() { client } else { client.offering(protocols) };
    let tls = TlsStream::to_origin(stream, &client, &party.name, Some(sessions));
    let tls = tls.map_err(|failed| Fault::Handshake(failed.into()))?;
    tls.handshake(deadline).await.map_err(Fault::Handshake)?;
    if party.tls.verifies && !tls.is_for(&party.name) {
        return Err(Fault::OtherName(party.name.clone()));
    }
    Ok(tls)
}

/// The client of the settings, or one with the party's own certificate.
fn client(prefix: &str, party: &Party) -> Result<Client, String> {
    let tls = &party.tls;
    let Some((certificate, key)) = &party.certificate else { return Ok(tls.client.clone()) };
    let pair = match &tls.cache {
        Some(cache) => cache.load(prefix, (certificate, key), &tls.passwords)?,
        None => source::load(prefix, (certificate, key), &tls.passwords)?,
    };
    Ok(tls.client.showing(&pair))
}
