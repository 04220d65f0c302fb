//! Opens a connection of HTTP/3: a handshake of QUIC with one of the origin's addresses.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::worker::Task;
use weir_net::{Deadline, clock};
use weir_quic::connection::{QuicConnection, QuicEnd, QuicEvent};
use weir_quic::tls::Handshake;
use weir_wire::h3::H3Code;

use super::super::error::Error;
use super::super::open::addresses;
use super::super::origin::Origin;
use super::super::peers;
use super::super::resolve::Resolver;
use super::super::session::ReadyRequest;
use super::super::streams::{Carrier, Session};
use super::carrier::H3Carrier;
use super::{driver, figures, lost, ports};
use crate::tls::Offer;
use crate::url::Scheme;

/// HTTP/3 was asked for, and the URL is not one of `https`.
pub const NEEDS_HTTPS: &str = "ERR_HTTP3_NEEDS_HTTPS";
/// HTTP/3 was asked for, and the way leads through a proxy.
pub const NO_PROXY: &str = "ERR_HTTP3_THROUGH_PROXY";

/// Opens a connection, and starts its driver.
pub(in super::super) async fn open(
    origin: &Origin,
    call: &ReadyRequest<'_>,
    resolver: &Resolver,
    streams_max: usize,
    deadline: &Deadline,
) -> Result<Rc<Session<dyn Carrier>>, Error> {
    match (origin.scheme, &origin.proxy) {
        (Scheme::Http, _) => return Err(Error::named(Step::Connect, NEEDS_HTTPS)),
        (Scheme::Https, Some(_)) => return Err(Error::named(Step::Connect, NO_PROXY)),
        (Scheme::Https, None) => {}
    }
    let began = clock::precise();
    let addresses = addresses(origin, resolver, deadline).await?;
    let resolved = clock::precise();
    let first = origin.preferred.get();
    let mut failed = Error::named(Step::Connect, "ENOTFOUND");
    for turn in 0..addresses.len() {
        let index = (first + turn) % addresses.len();
        let Some(address) = addresses.get(index) else { break };
        match shake(*address, origin, call, deadline).await {
            Ok((quic, seen)) => {
                origin.preferred.set(index);
                let shaken = clock::precise().saturating_duration_since(resolved);
                let times = (resolved.saturating_duration_since(began), Duration::ZERO, Some(shaken));
                let session = Session::new(H3Carrier::new(quic), streams_max, times);
                driver::start(session.clone(), seen);
                return Ok(session);
            }
            Err(error) => failed = error,
        }
        if deadline.poll_expired().is_ready() {
            break;
        }
    }
    Err(failed)
}

/// Does a handshake with the server at an address. What happened before its end is for the driver: the server's streams may
/// open with its first bytes, and there are few of them.
async fn shake(
    address: SocketAddr,
    origin: &Origin,
    call: &ReadyRequest<'_>,
    deadline: &Deadline,
) -> Result<(Rc<QuicConnection>, Vec<QuicEvent>), Error> {
    peers::remember(address);
    let client = origin.tls.client(Offer::Http3).map_err(|failure| Error::named(Step::TlsOrigin, failure.code))?;
    let port = ports::shared(address.is_ipv4()).map_err(|error| Error::io(Step::Connect, &error))?;
    let began = clock::precise();
    let (begun, handshake) = port.connect(address, origin.tls.name(&origin.host), client, call.sessions);
    let quic = Beginning(begun.map_err(|end| failure(end, &handshake))?);
    let mut seen = Vec::new();
    let is_late = poll_fn(|_| {
        quic.0.keep(Task::current());
        while let Some(event) = quic.0.next() {
            seen.push(event);
            if matches!(event, QuicEvent::Connected | QuicEvent::Ended) {
                return Poll::Ready(false);
            }
        }
        deadline.poll_expired().map(|()| true)
    })
    .await;
    match quic.0.end() {
        Some(end) => Err(failure(end, &handshake)),
        None if is_late => Err(Error::timed_out(Step::Connect)),
        None => {
            let agreed = handshake.take().and_then(Result::ok);
            let time = clock::precise().saturating_duration_since(began);
            figures::shaken(time, agreed.is_some_and(|agreed| agreed.is_resumed));
            Ok((quic.connected(), seen))
        }
    }
}

fn failure(end: QuicEnd, handshake: &Handshake) -> Error {
    let error = lost::ended(end, handshake.take().and_then(Result::err).as_ref());
    let step = if error.step == Step::TlsOrigin { Step::TlsOrigin } else { Step::Connect };
    Error { step, ..error }
}

/// A connection in its handshake; dropping it gives the connection up.
struct Beginning(Rc<QuicConnection>);

impl Beginning {
    fn connected(self) -> Rc<QuicConnection> {
        self.0.clone()
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        self.0.keep(Task::NONE);
        if self.0.is_handshaking() {
            self.0.close(H3Code::NoError as u64, b"");
        }
    }
}
