//! A connection to an origin: the only place that decides on the layers between HTTP and the socket.

use std::io::{self};
use std::rc::Rc;
use std::time::Duration;

use weir_net::Instant;

use weir_meter::Step;
use weir_net::tls::{HandshakeFault, Sessions};
use weir_net::{Address, ConnectOptions, Deadline, Stream, Transport, clock};

use super::error::{Error, NOT_AGREED};
use super::incoming::IncomingAnswer;
use super::origin::{Origin, Proxy};
use super::peers;
use super::resolve::Resolver;
use super::timings::Timings;
use crate::tls::Offer;
use crate::url::Scheme;

/// A new connection.
pub(super) struct Opened {
    pub(super) link: Transport,
    /// Time at which the address was known.
    pub(super) resolved: Instant,
    /// Time at which the connection was established.
    pub(super) connected: Instant,
    /// Time at which TLS was established; `None` without TLS.
    pub(super) secured: Option<Instant>,
}

/// Resolves and connects. Tries each of several addresses, beginning with the one that worked last.
///
/// Over TLS, it can resume one of `sessions`, and offers a protocol.
pub(super) async fn open(
    origin: &Origin,
    resolver: &Resolver,
    offer: Offer,
    sessions: Option<&Sessions>,
    deadline: &Deadline,
) -> Result<Opened, Error> {
    let proxy = origin.proxy.as_deref();
    let (stream, resolved) = reach(proxy.map_or(origin, |proxy| &proxy.origin), resolver, deadline).await?;
    let stream = match proxy {
        Some(proxy) => tunnel(stream, proxy, origin, deadline).await?,
        None => stream,
    };
    let stream = match origin.preface.is_empty() {
        true => stream,
        false => begun(stream, &origin.preface, deadline).await?,
    };
    let connected = clock::precise();
    if origin.scheme != Scheme::Https {
        return Ok(Opened { link: stream.into(), resolved, connected, secured: None });
    }
    // This future is large, and only TLS needs it. It is boxed so that other waiting virtual users do not need its
    // memory.
    let stream = Box::pin(origin.tls.open(stream, &origin.host, offer, sessions, deadline)).await;
    let stream = stream.map_err(|error| match weir_net::tls::failure(&error) {
        Some(failure) if offer != Offer::Nothing && failure.fault == HandshakeFault::NoCommonProtocol => {
            Error::named(Step::TlsOrigin, NOT_AGREED)
        }
        _ => Error::io(Step::TlsOrigin, &error),
    })?;
    Ok(Opened { link: stream, resolved, connected, secured: Some(clock::precise()) })
}

/// Connects to one of the addresses, and returns the time at which they were known.
async fn reach(origin: &Origin, resolver: &Resolver, deadline: &Deadline) -> Result<(Stream, Instant), Error> {
    let addresses = addresses(origin, resolver, deadline).await?;
    let resolved = clock::precise();
    let first = origin.preferred.get();
    let mut failed = Error::named(Step::Connect, "ENOTFOUND");
    for turn in 0..addresses.len() {
        let index = (first + turn) % addresses.len();
        let Some(address) = addresses.get(index) else {
            break;
        };
        match connect(&Address::Tcp(*address), deadline).await {
            Ok(stream) => {
                origin.preferred.set(index);
                return Ok((stream, resolved));
            }
            Err(error) => failed = Error::io(Step::Connect, &error),
        }
        if deadline.poll_expired().is_ready() {
            break;
        }
    }
    Err(failed)
}

/// Asks a proxy for a tunnel; the connection then leads to the origin.
async fn tunnel(stream: Stream, proxy: &Proxy, to: &Origin, deadline: &Deadline) -> Result<Stream, Error> {
    let link = Transport::from(stream);
    link.write_all(&proxy.request(to), deadline).await.map_err(|error| Error::io(Step::Connect, &error))?;
    let now = clock::precise();
    let none = Duration::ZERO;
    let timings =
        Timings { started: now, dns: none, tcp: none, tls: None, is_fresh: true, sent: now, head: now, end: now };
    let read = IncomingAnswer::new(&link, deadline).answer(b"CONNECT", false, timings).await;
    match read.map_err(|error| Error { step: Step::Connect, ..error })?.answer.status() {
        // All later bytes come from the origin, which sends nothing before a request.
        200 => {}
        // The wording of hpagent.
        status => {
            let name = format!("Bad response: {status}").into();
            return Err(Error { name, ..Error::named(Step::Connect, "") });
        }
    }
    plain(link)
}

/// Sends the first bytes of a connection.
async fn begun(stream: Stream, preface: &[u8], deadline: &Deadline) -> Result<Stream, Error> {
    let link = Transport::from(stream);
    link.write_all(preface, deadline).await.map_err(|error| Error::io(Step::Connect, &error))?;
    plain(link)
}

fn plain(link: Transport) -> Result<Stream, Error> {
    match link {
        Transport::Plain(stream) => Ok(stream),
        Transport::Tls(_) | Transport::Carried(_) => Err(Error::named(Step::Connect, "EPROTO")),
    }
}

pub(super) async fn addresses(
    origin: &Origin,
    resolver: &Resolver,
    deadline: &Deadline,
) -> Result<Rc<[std::net::SocketAddr]>, Error> {
    let known = origin.addresses.borrow().clone();
    if !known.is_empty() {
        return Ok(known);
    }
    let found: Rc<[_]> = resolver.resolve(&origin.host, origin.port, deadline).await?.iter().copied().collect();
    origin.addresses.replace(found.clone());
    Ok(found)
}

async fn connect(address: &Address, deadline: &Deadline) -> io::Result<Stream> {
    address.tcp().into_iter().for_each(peers::remember);
    Stream::connect_by(address, &ConnectOptions::default(), deadline).await
}
