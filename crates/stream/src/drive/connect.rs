//! Connects a session to a peer: one peer after the other, as `proxy_next_upstream` allows.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;

use weir_http::hold::table_place::TablePlace;
use weir_http::hold::worker::ROOMS_MAX;
use weir_http::read::authority::split_host_port;
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
use crate::conf::ProxyTarget;
use crate::family::proxy::{Bind, Header, local};
use crate::family::upstream::StreamUpstream;
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
pub async fn join(session: &mut Session<'_>, target: &ProxyTarget) -> Result<Joined, u16> {
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
pub fn host_of(upstream: &StreamUpstream) -> String {
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
        text.and_then(|text| weir_http::text::value::size_of(std::str::from_utf8(&text).ok()?)).unwrap_or(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Edge, on_worker};
    use weir_peers::balance::Policy;
    use weir_peers::group::Group;

    fn edge(settings: &str) -> Edge {
        Edge::new(&format!("server {{ listen 127.0.0.1:1; proxy_pass 127.0.0.1:9; {settings} }}"))
    }

    #[test]
    fn the_local_address_is_the_directives_or_the_kernels() {
        for (bind, expected) in [
            ("", None),
            ("proxy_bind off;", None),
            ("proxy_bind 127.0.0.3;", Some(("127.0.0.3:0", false))),
            ("proxy_bind 127.0.0.3:5 transparent;", Some(("127.0.0.3:5", true))),
            ("proxy_bind $remote_addr;", Some(("192.0.2.7:0", false))),
            ("proxy_bind $remote_addr:$remote_port transparent;", Some(("192.0.2.7:5555", true))),
            ("set $a \"\"; proxy_bind $a;", None),
            ("set $a name; proxy_bind $a;", None),
        ] {
            on_worker(async move {
                let edge = edge(bind);
                let mut session = edge.session();
                crate::family::set::run(&mut session);
                let settings = &crate::values(&session.server.place).proxy;
                let found = local_address(&mut session, &settings.bind);
                let shown = found.map(|local| (local.address.to_string(), local.transparent));
                assert_eq!(shown, expected.map(|(address, transparent)| (address.to_owned(), transparent)), "{bind}");
                for (peer, fits) in [("127.0.0.1:1", true), ("[::1]:1", false)] {
                    let address = Address::Tcp(peer.parse().unwrap());
                    let bound = options(&session, &address, found).bind;
                    assert_eq!(bound.is_some(), fits && expected.is_some(), "{bind} to {peer}");
                }
            });
        }
    }

    #[test]
    fn rates_are_sizes_and_anything_else_is_no_limit() {
        for (settings, expected) in [
            ("", [0, 0]),
            ("proxy_upload_rate 10; proxy_download_rate 2k;", [10, 2048]),
            ("set $rate 1m; proxy_upload_rate $rate;", [1 << 20, 0]),
            ("set $rate x; proxy_download_rate $rate;", [0, 0]),
        ] {
            on_worker(async move {
                let edge = edge(settings);
                let mut session = edge.session();
                crate::family::set::run(&mut session);
                assert_eq!(rates(&mut session), expected, "{settings}");
            });
        }
    }

    #[test]
    fn the_header_before_the_bytes_names_the_client_that_a_proxy_reported() {
        on_worker(async {
            let edge = edge("");
            let mut session = edge.session();
            session.came_to(Address::Tcp("203.0.113.9:80".parse().unwrap()));
            assert_eq!(header(&session, Header::Off), b"");
            assert_eq!(header(&session, Header::V1), b"PROXY TCP4 192.0.2.7 203.0.113.9 5555 80\r\n");
            session.tell_remote(Address::Tcp("198.51.100.1:7".parse().unwrap()));
            assert_eq!(header(&session, Header::V1), b"PROXY TCP4 198.51.100.1 203.0.113.9 7 80\r\n");
            assert!(header(&session, Header::V2).ends_with(&[198, 51, 100, 1, 203, 0, 113, 9, 0, 7, 0, 80]));
            session.tell_remote(Address::unix("/a").unwrap());
            assert_eq!(header(&session, Header::V1), b"PROXY UNKNOWN\r\n");
        });
    }

    #[test]
    fn a_certificate_names_the_group_or_the_host_of_an_address() {
        let implicit =
            |text: &str| StreamUpstream::implicit(text, &[Address::Tcp("127.0.0.1:1".parse().unwrap())]).unwrap();
        for (text, expected) in [("a.test:443", "a.test"), ("127.0.0.1:443", "127.0.0.1"), ("[::1]:443", "[::1]")] {
            assert_eq!(host_of(&implicit(text)), expected);
        }
        let group = Group::nobody("a.test:443", Policy::RoundRobin);
        assert_eq!(host_of(&StreamUpstream { group, is_implicit: false, ..implicit("a.test:443") }), "a.test:443");
    }

    #[test]
    fn without_a_peer_that_may_serve_the_session_is_refused_and_the_try_names_the_group() {
        on_worker(async {
            let edge =
                Edge::new("upstream u { server 127.0.0.1:1 down; } server { listen 127.0.0.1:3; proxy_pass u; }");
            let mut session = edge.session();
            let told = join(&mut session, &ProxyTarget::Group(0)).await.err();
            assert_eq!(told, Some(BAD_GATEWAY));
            let tries: Vec<_> = session.tries.iter().map(|a| (&*a.peer, a.connect, a.session.is_some())).collect();
            assert_eq!(tries, [("u", None, true)]);
        });
    }

    #[test]
    fn a_peer_that_cannot_be_reached_is_followed_by_the_next_one() {
        // Unix sockets that nobody made: the kernel refuses them at once.
        let peers = "upstream u { server unix:/nowhere/a; server unix:/nowhere/b; server unix:/nowhere/c; }";
        for (settings, tries) in [
            ("", "unix:/nowhere/a unix:/nowhere/b unix:/nowhere/c"),
            ("proxy_next_upstream_tries 2;", "unix:/nowhere/a unix:/nowhere/b"),
            ("proxy_next_upstream off;", "unix:/nowhere/a"),
        ] {
            on_worker(async move {
                let edge = Edge::new(&format!("{peers} server {{ listen 127.0.0.1:3; proxy_pass u; {settings} }}"));
                let (mut session, _client) = edge.connected();
                assert_eq!(join(&mut session, &ProxyTarget::Group(0)).await.err(), Some(BAD_GATEWAY));
                let found: Vec<&str> = session.tries.iter().map(|attempt| &*attempt.peer).collect();
                assert_eq!(found.join(" "), tries, "{settings}");
                assert!(session.tries.iter().all(|attempt| attempt.connect.is_none() && attempt.session.is_some()));
                let group = edge.group("u");
                let failed = group.group.view(clock::unix_ms()).iter().map(|view| view.fails).sum::<u32>();
                assert_eq!((failed as usize, edge.worker.places_taken()), (found.len(), 0), "{settings}");
            });
        }
    }
}
