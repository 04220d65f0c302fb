//! Connects a session to a peer: one peer after the other, as `proxy_next_upstream` allows.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use weir_http::authority::split_host_port;
use weir_http::table_place::TablePlace;
use weir_http::worker::ROOMS_MAX;
use weir_meter::Step;
use weir_net::log::{Level, Os};
use weir_net::{Address, ConnectOptions, Datagram, Deadline, Local, Stream, Transport, clock};
use weir_peers::group::Outcome;
use weir_wire::proxy_protocol;

use super::choose;
use super::hold::Hold;
use super::relay::Relay;
use super::status::{BAD_GATEWAY, INTERNAL, OK};
use crate::attempt::Try;
use crate::conf::Target;
use crate::family::group::Upstream;
use crate::family::proxy::{Bind, Header, local};
use crate::part::Unreached as Trouble;
use crate::session::Session;

/// A connection to a peer.
pub enum Link {
    /// Of TCP, or of a unix socket.
    Stream(Transport),
    /// Of UDP.
    Datagrams(Datagram),
}

/// A peer that a session reached.
pub struct Joined {
    /// The group and the peer.
    pub hold: Hold,
    /// The connection.
    pub link: Link,
    /// Its place in the worker's table.
    pub place: TablePlace,
    /// The PROXY protocol header that goes before the client's bytes; empty if it is sent already.
    pub header: Vec<u8>,
}

/// Finds a peer and connects to it.
pub async fn join(session: &mut Session<'_>, target: &Target) -> Result<Joined, u16> {
    let group = choose::group(session, target).await?;
    session.step = Some(Step::Connect);
    session.upstream = Some(group.name.as_str().into());
    let settings = &crate::values(&session.server.place).proxy;
    let local = local_address(session, &settings.bind);
    let key = group.hash_key.clone().map(|key| key.text(session)).unwrap_or_default();
    let begun = clock::now();
    let mut hold = Hold::new(group, settings.next_tries);
    loop {
        session.step = Some(Step::Connect);
        let worker = session.worker;
        let Ok(peer) = hold.pick(&key, &mut |below| worker.random(below)) else {
            let name: Rc<str> = hold.upstream.name.as_str().into();
            session.upstream = Some(name.clone());
            session.tries.push(Try::new(name));
            session.log(Level::Error, format_args!("no live upstreams"));
            finish_try(session);
            return Err(BAD_GATEWAY);
        };
        let Some(address) = hold.upstream.addresses.get(peer).cloned() else { return Err(INTERNAL) };
        let name: Rc<str> = address.to_string().into();
        session.upstream = Some(name.clone());
        session.tries.push(Try::new(name));
        let host = host_of(&hold.upstream);
        match attempt(session, &address, &host, local).await {
            Ok((link, place, header)) => {
                note(session, &link);
                hold.connected(matches!(link, Link::Stream(_)));
                return Ok(Joined { hold, link, place, header });
            }
            Err(Trouble::End(status)) => {
                finish_try(session);
                return Err(status);
            }
            Err(Trouble::Peer) => {
                finish_try(session);
                if hold.release(Outcome::Failed) {
                    session.log(Level::Warn, format_args!("upstream server temporarily disabled"));
                }
                let elapsed = clock::now().saturating_duration_since(begun);
                let is_late = !settings.next_timeout.is_zero() && elapsed >= settings.next_timeout;
                if hold.tries() == 0 || !settings.next || is_late {
                    return Err(BAD_GATEWAY);
                }
            }
        }
    }
}

fn finish_try(session: &mut Session<'_>) {
    if let Some(attempt) = session.last_try() {
        attempt.session = Some(attempt.age());
    }
}

/// The local address for connections to peers. A wrong value of a variable is logged, and the kernel chooses.
pub fn local_address(session: &mut Session<'_>, bind: &Bind) -> Option<Local> {
    match bind {
        Bind::Off => None,
        Bind::To(local) => Some(*local),
        Bind::Named(text, transparent) => {
            let text = String::from_utf8_lossy(&text.text(session)).into_owned();
            if text.is_empty() {
                return None;
            }
            let found = local(&text);
            if found.is_none() {
                session.log(Level::Error, format_args!("invalid local address \"{text}\""));
            }
            found.map(|address| Local { address, transparent: *transparent })
        }
    }
}

/// The options of a connection to a peer.
pub fn options(session: &Session<'_>, address: &Address, bind: Option<Local>) -> ConnectOptions {
    let settings = &crate::values(&session.server.place).proxy;
    ConnectOptions {
        bind: bind.filter(|local| address.tcp().is_some_and(|peer| peer.is_ipv4() == local.address.is_ipv4())),
        receive_buffer_bytes: settings.receive_buffer,
        send_buffer_bytes: settings.send_buffer,
        keepalive: settings.keepalive,
    }
}

/// Makes one connection.
async fn attempt(
    session: &mut Session<'_>,
    address: &Address,
    host: &str,
    bind: Option<Local>,
) -> Result<(Link, TablePlace, Vec<u8>), Trouble> {
    let settings = &crate::values(&session.server.place).proxy;
    let Some(place) = session.worker.take_place() else { return Err(Trouble::End(INTERNAL)) };
    let options = options(session, address, bind);
    if session.is_datagram {
        let header = header(session, settings.protocol);
        return datagrams(session, address, &options).map(|link| (Link::Datagrams(link), place, header));
    }
    let stream = open(session, address, &options).await?;
    let deadline = Deadline::new();
    deadline.set(settings.connect_timeout);
    match connected(session, &stream, &deadline).await {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::TimedOut && deadline.poll_expired().is_ready() => {
            session.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
            return Err(Trouble::Peer);
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(Trouble::End(OK)),
        Err(error) => {
            session.log(Level::Error, format_args!("connect() failed {}", Os(&error)));
            return Err(Trouble::Peer);
        }
    }
    if !crate::values(&session.server.place).core.nodelay && !address.is_unix() {
        let _ = stream.set_nodelay(false);
    }
    let header = header(session, settings.protocol);
    let server = session.server;
    let wraps = session.stream.parts.iter().filter_map(|part| part.wrap.as_ref());
    let Some((_, wrap)) = wraps.into_iter().find(|(wants, _)| wants(&server.place)) else {
        return Ok((Link::Stream(Transport::from(stream)), place, header));
    };
    if !header.is_empty() {
        greet(session, &stream, &header)?;
    }
    session.step = Some(Step::TlsOrigin);
    let link = wrap(session, stream, address, host).await?;
    Ok((Link::Stream(link), place, Vec::new()))
}

/// Sends the PROXY protocol header before TLS. The header must be sent at once (the specification, section 2).
fn greet(session: &Session<'_>, stream: &Stream, header: &[u8]) -> Result<(), Trouble> {
    match stream.try_write(header) {
        Ok(count) if count == header.len() => Ok(()),
        Ok(_) => {
            session.log(Level::Error, format_args!("could not send PROXY protocol header at once"));
            Err(Trouble::End(INTERNAL))
        }
        Err(error) => {
            session.log(Level::Error, format_args!("send() failed {}", Os(&error)));
            Err(Trouble::End(OK))
        }
    }
}

/// The name that a peer's certificate must have by default: the group's, or the host of `proxy_pass`.
pub fn host_of(upstream: &Upstream) -> String {
    if upstream.is_implicit { split_host_port(&upstream.name).0.to_owned() } else { upstream.name.clone() }
}

fn datagrams(session: &Session<'_>, address: &Address, options: &ConnectOptions) -> Result<Datagram, Trouble> {
    let made = match address {
        Address::Tcp(peer) => Datagram::connect_with(*peer, options),
        Address::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
    };
    made.map_err(|error| {
        session.log(Level::Crit, format_args!("connect() to {address} failed {}", Os(&error)));
        Trouble::Peer
    })
}

/// Starts connecting; makes room if the process has no free descriptor.
async fn open(session: &Session<'_>, address: &Address, options: &ConnectOptions) -> Result<Stream, Trouble> {
    let mut rooms_made = 0;
    loop {
        match Stream::connect(address, options) {
            Ok(stream) => return Ok(stream),
            Err(error) if weir_net::is_out_of_files(&error) && rooms_made < ROOMS_MAX => {
                rooms_made += 1;
                session.worker.make_descriptors().await;
            }
            Err(error) if weir_net::is_out_of_files(&error) => {
                session.log(Level::Alert, format_args!("socket() failed {}", Os(&error)));
                return Err(Trouble::End(INTERNAL));
            }
            Err(error) => {
                session.log(Level::Crit, format_args!("connect() to {address} failed {}", Os(&error)));
                return Err(Trouble::Peer);
            }
        }
    }
}

/// Waits for the connection; `Interrupted` if weir ended the session meanwhile.
async fn connected(session: &Session<'_>, stream: &Stream, deadline: &Deadline) -> io::Result<()> {
    let mut waiting = std::pin::pin!(stream.connected(deadline));
    poll_fn(|context| {
        if session.shared.as_ref().is_some_and(|shared| shared.has_ended()) {
            return Poll::Ready(Err(io::ErrorKind::Interrupted.into()));
        }
        waiting.as_mut().poll(context)
    })
    .await
}

/// Notes that a connection is made.
fn note(session: &mut Session<'_>, link: &Link) {
    if session.logs(Level::Info) {
        let shown = match link {
            Link::Stream(link) => link.socket().and_then(|socket| Some(socket.local_addr().ok()?.to_string())),
            Link::Datagrams(link) => link.local_addr().ok().map(|local| local.to_string()),
        };
        let (kind, shown) = (if session.is_datagram { "udp " } else { "" }, shown.unwrap_or_default());
        let peer = session.upstream.clone().unwrap_or_default();
        session.tell(Level::Info, format_args!("{kind}proxy {shown} connected to {peer}"));
    }
    if let Some(attempt) = session.last_try() {
        attempt.connect = Some(attempt.age());
    }
}

/// `proxy_upload_rate` and `proxy_download_rate`.
pub fn rates(session: &mut Session<'_>) -> [u64; 2] {
    let settings = &crate::values(&session.server.place).proxy;
    [&settings.upload_rate, &settings.download_rate].map(|rate| {
        let text = rate.as_ref().map(|rate| rate.text(session));
        text.and_then(|text| weir_http::value::size_of(std::str::from_utf8(&text).ok()?)).unwrap_or(0)
    })
}

/// Joins the two ends of a session.
pub fn relay(session: &mut Session<'_>, hold: Hold, link: Transport, place: TablePlace, header: Vec<u8>) -> Relay {
    let settings = &crate::values(&session.server.place).proxy;
    let mut first = header;
    first.append(&mut session.early);
    let rates = rates(session);
    session.step = Some(Step::Session);
    Relay::new(hold, link, place, &first, rates, settings)
}

/// The PROXY protocol header about the session.
pub fn header(session: &Session<'_>, header: Header) -> Vec<u8> {
    let ends = session.remote().tcp().zip(session.local().tcp());
    let mut out = Vec::new();
    match header {
        Header::Off => {}
        Header::V1 => proxy_protocol::write_text(ends, &mut out),
        Header::V2 => proxy_protocol::write_binary(ends, &mut out),
    }
    out
}
