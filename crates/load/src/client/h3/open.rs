//! Opens a connection of HTTP/3: a handshake of QUIC with one of the origin's addresses.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::clock;
use weir_net::worker::Task;
use weir_quic::connection::{QuicConnection, QuicEnd, QuicEvent};
use weir_quic::tls::Handshake;
use weir_wire::h3::H3Code;

use super::super::error::Error;
use super::super::open::addresses;
use super::super::peers;
use super::super::streams::{Carrier, StreamSession, Wanted};
use super::begun::{BegunConnection, OwnPort, Shaking};
use super::carrier::H3Carrier;
use super::{driver, lost, ports};
use crate::tls::Offer;
use crate::url::Scheme;

/// HTTP/3 was asked for, and the URL is not one of `https`.
pub const NEEDS_HTTPS: &str = "ERR_HTTP3_NEEDS_HTTPS";
/// HTTP/3 was asked for, and the way leads through a proxy.
pub const NO_PROXY: &str = "ERR_HTTP3_THROUGH_PROXY";

/// Opens a connection, and starts its driver.
pub(in super::super) async fn open(wanted: &Wanted<'_>) -> Result<Rc<StreamSession<dyn Carrier>>, Error> {
    let Wanted { origin, resolver, deadline, .. } = *wanted;
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
        match shake(*address, wanted).await {
            Ok(link) => {
                origin.preferred.set(index);
                let shaken = clock::precise().saturating_duration_since(resolved);
                let times = (resolved.saturating_duration_since(began), Duration::ZERO, Some(shaken));
                let carrier = H3Carrier::new(link.quic.clone());
                let session = StreamSession::new(carrier, wanted.streams_max, wanted.tuning.exchanges_max, times);
                driver::start(session.clone(), link);
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

/// Does a handshake with the server at an address, or begins it if early data may be sent.
async fn shake(address: SocketAddr, wanted: &Wanted<'_>) -> Result<BegunConnection, Error> {
    let Wanted { origin, tuning, deadline, .. } = *wanted;
    peers::remember(address);
    let offer = if tuning.early_data && wanted.is_safe { Offer::Http3Early } else { Offer::Http3 };
    let client = origin.tls.client(offer).map_err(|failure| Error::named(Step::TlsOrigin, failure.code))?;
    let of = |error: io::Error| Error::io(Step::Connect, &error);
    let own = tuning.migrate.map(|every| Ok(OwnPort(ports::own(address.is_ipv4())?, every)));
    let own = own.transpose().map_err(of)?;
    let port = match &own {
        Some(own) => own.0.clone(),
        None => ports::shared(address.is_ipv4()).map_err(of)?,
    };
    let began = clock::precise();
    let (begun, handshake) = port.connect(address, origin.tls.name(&origin.host), client, wanted.sessions);
    let quic = Beginning(Some(begun.map_err(|end| failure(end, &handshake))?));
    let Some(connection) = &quic.0 else { return Err(Error::timed_out(Step::Connect)) };
    let is_early = connection.has_early_data();
    let mut seen = Vec::new();
    let is_late = poll_fn(|_| {
        connection.keep(Task::current());
        while let Some(event) = connection.next() {
            seen.push(event);
            if matches!(event, QuicEvent::Connected | QuicEvent::Ended) {
                return Poll::Ready(false);
            }
        }
        if is_early { Poll::Ready(false) } else { deadline.poll_expired().map(|()| true) }
    })
    .await;
    match connection.end() {
        Some(end) => return Err(failure(end, &handshake)),
        None if is_late => return Err(Error::timed_out(Step::Connect)),
        None => {}
    }
    let quic = quic.begun().ok_or_else(|| Error::timed_out(Step::Connect))?;
    let mut link = BegunConnection { quic, own, seen, shaking: Some(Shaking { handshake, began, is_early }) };
    if !is_early {
        link.connected();
    }
    Ok(link)
}

fn failure(end: QuicEnd, handshake: &Handshake) -> Error {
    let error = lost::ended(end, handshake.take().and_then(Result::err).as_ref());
    let step = if error.step == Step::TlsOrigin { Step::TlsOrigin } else { Step::Connect };
    Error { step, ..error }
}

/// A connection in its handshake; dropping it gives the connection up.
struct Beginning(Option<Rc<QuicConnection>>);

impl Beginning {
    fn begun(mut self) -> Option<Rc<QuicConnection>> {
        self.0.take()
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        if let Some(quic) = &self.0 {
            quic.keep(Task::NONE);
            quic.close(H3Code::NoError as u64, b"");
        }
    }
}
