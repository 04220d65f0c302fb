//! A connection to an upstream made a secret one, and the sessions that make the next one cheaper.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use weir_meter::Step;
use weir_meter::live::cells::Distrust;
use weir_net::tls::{Client, Failure as TlsFailure, Sessions, failure};
use weir_net::{Address, Deadline, Stream, TlsStream};

use super::{Party, Tls};
use crate::conn::{Conn, Gone};
use crate::exchange::Exchange;
use crate::family::ssl::certificate;
use crate::family::upstream::attempt::Failure;
use weir_net::log::Os;
use crate::secure;

/// TLS 1.3 tickets kept for one upstream and name: as many connections resume before the next full handshake.
const TICKETS_MAX: usize = 8;

/// Upstreams whose sessions a worker keeps; beyond that those of one are forgotten for another's.
const UPSTREAMS_MAX: usize = 1024;

/// What a worker may resume, by party's settings and address.
#[derive(Default)]
pub struct AllSessions {
    known: RefCell<HashMap<(usize, Address), Sessions>>,
}

impl AllSessions {
    fn of(&self, tls: &Arc<Tls>, address: &Address) -> Sessions {
        let mut known = self.known.borrow_mut();
        // The settings live as long as the configuration, and so does this table: the number stays theirs.
        let key = (Arc::as_ptr(tls) as usize, address.clone());
        if let Some(sessions) = known.get(&key) {
            return sessions.clone();
        }
        if known.len() >= UPSTREAMS_MAX
            && let Some(some) = known.keys().next().cloned()
        {
            known.remove(&some);
        }
        let sessions = Sessions::new(TICKETS_MAX);
        known.insert(key, sessions.clone());
        sessions
    }
}

/// Why there is no secret connection.
#[derive(Debug)]
pub enum Fault {
    /// The handshake came to nothing.
    Handshake(io::Error),
    /// The certificate is for somebody else.
    OtherName(Box<str>),
    /// Our own certificate cannot be had; nginx's line.
    Certificate(String),
}

impl fmt::Display for Fault {
    /// nginx's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Certificate(line) => f.write_str(line),
            Fault::OtherName(name) => write!(f, "upstream SSL certificate does not match \"{name}\""),
            Fault::Handshake(error) => match failure(error) {
                None => write!(f, "SSL_do_handshake() failed {}", Os(error)),
                Some(TlsFailure { code: "ECONNRESET", .. }) => f.write_str("peer closed connection in SSL handshake"),
                Some(TlsFailure { distrust: Some(distrust), .. }) => {
                    write!(f, "upstream SSL certificate verify error: ({}:{})", distrust.code, distrust.text)
                }
                Some(failed) => write!(f, "SSL_do_handshake() failed (SSL: {failed})"),
            },
        }
    }
}

/// What is told of a read or a write that failed: TLS' own fault, or the socket's.
pub struct Broken<'e>(pub &'static str, pub &'static str, pub &'e io::Error);

impl fmt::Display for Broken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Broken(plain, tls, error) = self;
        match failure(error) {
            Some(failed) => write!(f, "{tls} failed (SSL: {failed})"),
            None => write!(f, "{plain} failed {}", Os(error)),
        }
    }
}

/// Shakes hands over a connection just made, within `deadline`; who the upstream is, is then as the party wants it.
pub async fn shake_hands(
    exchange: &mut Exchange<'_>,
    conn: &Conn,
    stream: Stream,
    address: &Address,
    party: &Party,
    deadline: &Deadline,
) -> Result<TlsStream, Failure> {
    exchange.step = Step::TlsOrigin;
    // A handshake is a few small writes: none may wait for the one before to be acknowledged. Unix sockets have no
    // such delay, and refuse.
    let _ = stream.set_nodelay(true);
    let client = client(exchange, party).map_err(|line| Failure::Tls(Fault::Certificate(line)))?;
    let sessions = exchange.generation.sessions.of(&party.tls, address);
    let tls = TlsStream::to_origin(stream, &client, &party.name, Some(&sessions));
    let tls = tls.map_err(|failed| Failure::Tls(Fault::Handshake(failed.into())))?;
    let watch = exchange.is_for_its_client_alone();
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
    let cell = &exchange.worker.board.peer(exchange.tries.last().map_or(0, |attempt| attempt.cell)).ssl;
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
            secure::count_fault(cell, &error);
            match error.kind() {
                io::ErrorKind::TimedOut => Err(Failure::TimedOut),
                _ => Err(Failure::Tls(Fault::Handshake(error))),
            }
        }
    }
}

/// The settings' client, or one that shows the party's own certificate.
fn client(exchange: &Exchange<'_>, party: &Party) -> Result<Client, String> {
    let tls = &party.tls;
    let Some((certificate, key)) = &party.certificate else { return Ok(tls.client.clone()) };
    let prefix = &exchange.conf.paths.conf_prefix;
    let pair = match &tls.cache {
        Some(cache) => cache.load(prefix, (certificate, key), &tls.passwords)?,
        None => certificate::load(prefix, (certificate, key), &tls.passwords)?,
    };
    Ok(tls.client.showing(&pair))
}
