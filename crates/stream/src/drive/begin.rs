//! The beginning of a session: the PROXY protocol header, the phases, TLS, and the bytes that weir looks at.

use std::io;

use weir_http::hold::client::Proxied;
use weir_meter::Step;
use weir_net::Deadline;
use weir_net::log::{Level, Os};
use weir_wire::proxy_protocol::{self, Parsed, ProxyProtocolFault, V2_BYTES_MAX};

use super::look::Look;
use super::status::{BAD_REQUEST, INTERNAL, OK};
use crate::family::{preread, set};
use crate::part::{Next, Phase};
use crate::session::Session;

/// Goes through the phases.
pub async fn begin(session: &mut Session<'_>) -> Next {
    let shown = session.peer().clone();
    let kind = if session.is_datagram { "udp " } else { "" };
    session.tell(Level::Info, format_args!("{kind}client {shown} connected to {}", session.listen.address));
    if session.listen.proxy_protocol
        && let Next::End(status) = proxied(session).await
    {
        return Next::End(status);
    }
    if let Next::End(status) = phases(session) {
        return Next::End(status);
    }
    let is_secure = session.shared.as_ref().is_some_and(|shared| shared.is_secure());
    // `pass` may bring a connection whose handshake is over.
    if is_secure && (session.listen.ssl || session.facts.get().is_none()) {
        let Some(secure) = session.stream.parts.iter().find_map(|part| part.secure) else {
            return Next::End(INTERNAL);
        };
        session.step = Some(Step::TlsClient);
        if let Next::End(status) = secure(session).await {
            return Next::End(status);
        }
    }
    if crate::values(&session.server.place).preread.enabled
        && let Next::End(status) = preread(session).await
    {
        return Next::End(status);
    }
    if let Some(shared) = &session.shared
        && !crate::values(&session.server.place).core.nodelay
        && !session.peer().is_unix()
        && let Some(socket) = shared.stream.socket()
    {
        // Sockets have the option from their listener. If this fails, bytes are only sent earlier.
        let _ = socket.set_nodelay(false);
    }
    Next::Continue
}

/// The handlers that do not wait: of this crate and of the parts above.
pub fn phases(session: &mut Session<'_>) -> Next {
    let server = session.server;
    let mut is_set = false;
    for (phase, enter) in &server.walk {
        if !is_set && *phase > Phase::PostAccept {
            set::run(session);
            is_set = true;
        }
        if let Next::End(status) = enter(session) {
            return Next::End(status);
        }
    }
    if !is_set {
        set::run(session);
    }
    Next::Continue
}

/// Reads the header before the client's bytes.
async fn proxied(session: &mut Session<'_>) -> Next {
    let Some(shared) = session.shared.clone() else { return Next::Continue };
    session.step = Some(Step::ProxyHeader);
    let deadline = Deadline::new();
    deadline.set(crate::values(&session.server.place).core.proxy_protocol_timeout);
    let mut look = Look::new(session, &shared.stream);
    loop {
        match look.more(V2_BYTES_MAX, &deadline).await {
            Ok(0) => return Next::End(broken(session, &look.bytes, ProxyProtocolFault::Broken)),
            Ok(_) => {}
            Err(error) => return Next::End(unread(session, &error)),
        }
        match proxy_protocol::parse(&look.bytes) {
            Ok(Parsed::Partial) => {}
            Ok(Parsed::Done { length, ends }) => {
                session.proxied = ends.map(|ends| {
                    let tlvs = ends.tlvs.of(&look.bytes).into();
                    Box::new(Proxied { source: ends.source, destination: ends.destination, tlvs })
                });
                if let Err(error) = look.take(length) {
                    return Next::End(unread(session, &error));
                }
                session.early = look.into_taken();
                session.received += session.early.len() as u64;
                session.step = Some(Step::StartSession);
                return Next::Continue;
            }
            Err(fault) => return Next::End(broken(session, &look.bytes, fault)),
        }
    }
}

fn broken(session: &Session<'_>, bytes: &[u8], fault: ProxyProtocolFault) -> u16 {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    match fault {
        ProxyProtocolFault::Broken | ProxyProtocolFault::Address | ProxyProtocolFault::LineTooLong => {
            session.log(Level::Error, format_args!("{fault}: \"{}\"", line.escape_ascii()));
        }
        ProxyProtocolFault::Version(_) | ProxyProtocolFault::TooLarge | ProxyProtocolFault::AddressesCut => {
            session.log(Level::Error, format_args!("{fault}"))
        }
    }
    BAD_REQUEST
}

fn unread(session: &Session<'_>, error: &io::Error) -> u16 {
    if error.kind() == io::ErrorKind::TimedOut {
        session.log(Level::Info, format_args!("client timed out (110: Connection timed out)"));
    } else {
        session.log(Level::Info, format_args!("recv() failed {}", Os(error)));
    }
    OK
}

/// Reads until enough is known, at most `preread_buffer_size`.
async fn preread(session: &mut Session<'_>) -> Next {
    let Some(shared) = session.shared.clone() else { return Next::Continue };
    session.step = Some(Step::Preread);
    let core = &crate::values(&session.server.place).core;
    let (size, timeout) = (core.preread_buffer, core.preread_timeout);
    let deadline = Deadline::new();
    deadline.set(timeout);
    let mut look = Look::new(session, &shared.stream);
    while look.bytes.is_empty() || !preread::look(session, &look.bytes) {
        if look.bytes.len() >= size {
            session.log(Level::Error, format_args!("preread buffer full"));
            return Next::End(BAD_REQUEST);
        }
        match look.more(size, &deadline).await {
            Ok(0) => return Next::End(OK),
            Ok(count) => session.received += look.counted(count),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Next::End(OK),
            Err(error) => return Next::End(unread(session, &error)),
        }
    }
    session.early = look.into_taken();
    session.step = None;
    Next::Continue
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Edge, on_worker};
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::task::Poll;
    use weir_net::worker::yield_now;

    const PREFIX: &[u8] = b"PROXY TCP4 198.51.100.1 203.0.113.9 1111 2222\r\n";

    fn v2(rest: &[u8]) -> Vec<u8> {
        let ends = ["198.51.100.1:1111", "203.0.113.9:2222"].map(|end| end.parse().unwrap());
        let mut bytes = Vec::new();
        proxy_protocol::write_binary(Some((ends[0], ends[1])), &mut bytes);
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn a_proxy_header_is_taken_whole_or_the_session_ends() {
        let text = |rest: &str| [PREFIX, rest.as_bytes()].concat();
        // The client's bytes, in two parts; then the decision, and the bytes for the peer.
        for (bytes, cut, expected) in [
            (text(""), 0, Ok("")),
            (text("GET"), 0, Ok("GET")),
            (text("GET"), 10, Ok("GET")),
            (text("GET"), PREFIX.len() - 1, Ok("GET")),
            (v2(b"tail"), 0, Ok("tail")),
            (v2(b"tail"), 14, Ok("tail")),
            (b"PROXY UNKNOWN\r\nx".to_vec(), 0, Ok("x")),
            (b"GET / HTTP/1.1\r\n".to_vec(), 0, Err(BAD_REQUEST)),
            (b"PROXY TCP4 1.2.3 4.5.6.7 1 2\r\n".to_vec(), 0, Err(BAD_REQUEST)),
            (b"PROXY TC".to_vec(), 0, Err(BAD_REQUEST)),
        ] {
            let shown = String::from_utf8_lossy(&bytes).into_owned();
            on_worker(async move {
                let edge = Edge::new("server { listen 127.0.0.1:1 proxy_protocol; return a; }");
                let (mut session, mut client) = edge.connected();
                let mut begun = Box::pin(begin(&mut session));
                client.write_all(&bytes[..cut]).unwrap();
                for _ in 0..3 {
                    let polled = poll_fn(|context| Poll::Ready(begun.as_mut().poll(context))).await;
                    assert!(polled.is_pending(), "{shown}: {cut} bytes are no header");
                    yield_now().await;
                }
                client.write_all(&bytes[cut..]).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let next = begun.await;
                let found = match next {
                    Next::Continue => Ok(String::from_utf8(session.early.clone()).unwrap()),
                    Next::End(status) => Err(status),
                };
                assert_eq!(found, expected.map(str::to_owned), "{shown}");
                if expected.is_ok() && !shown.contains("UNKNOWN") {
                    let proxied = session.proxied.as_ref().unwrap();
                    let ends = [proxied.source, proxied.destination].map(|end| end.to_string());
                    assert_eq!(ends, ["198.51.100.1:1111", "203.0.113.9:2222"]);
                    assert_eq!(
                        session.received as usize,
                        session.early.len(),
                        "the header is none of the client's bytes"
                    );
                    assert_eq!(session.peer().to_string(), "192.0.2.7:5555");
                }
            });
        }
    }

    /// A client's first TLS message with this name.
    fn hello(name: &str) -> Vec<u8> {
        let with_length = |wide: usize, body: &[u8]| {
            let length = (body.len() as u32).to_be_bytes();
            [&length[4 - wide..], body].concat()
        };
        let host = [&[0], with_length(2, name.as_bytes()).as_slice()].concat();
        let extension = [&[0, 0], with_length(2, &with_length(2, &host)).as_slice()].concat();
        let body = [
            &[3, 3][..],
            &[7; 32],
            &[0],
            &with_length(2, &[0x13, 1]),
            &with_length(1, &[0]),
            &with_length(2, &extension),
        ]
        .concat();
        let message = [&[1], with_length(3, &body).as_slice()].concat();
        [&[22, 3, 1], with_length(2, &message).as_slice()].concat()
    }

    #[test]
    fn preread_finds_the_server_of_the_name_and_keeps_all_bytes() {
        let block = "server { listen 127.0.0.1:1; ssl_preread on; preread_buffer_size 256; return a; } \
                     server { listen 127.0.0.1:1; server_name b.test; return b; }";
        let long = hello(&"x".repeat(250));
        for (bytes, expected) in [
            (hello("b.test"), Ok("b.test")),
            (hello("c.test"), Ok("")),
            (b"no TLS at all".to_vec(), Ok("")),
            (hello("b.test")[..20].to_vec(), Err(OK)),
            (long, Err(BAD_REQUEST)),
            (Vec::new(), Err(OK)),
        ] {
            on_worker(async move {
                let edge = Edge::new(block);
                let (mut session, mut client) = edge.connected();
                client.write_all(&bytes).unwrap();
                client.shutdown(Shutdown::Write).unwrap();
                let found = match begin(&mut session).await {
                    Next::Continue => Ok(session.server.name.as_str()),
                    Next::End(status) => Err(status),
                };
                assert_eq!(found, expected, "{} bytes", bytes.len());
                if found.is_ok() {
                    assert_eq!((session.early.as_slice(), session.received), (&bytes[..], bytes.len() as u64));
                }
            });
        }
    }

    #[test]
    fn a_block_that_passes_connections_leaves_the_first_bytes_in_the_kernel() {
        on_worker(async {
            let edge = Edge::new("server { listen 127.0.0.1:1 proxy_protocol; ssl_preread on; pass 127.0.0.1:1; }");
            let (mut session, mut client) = edge.connected();
            let hello = hello("b.test");
            client.write_all(&[PREFIX, &hello].concat()).unwrap();
            assert_eq!(begin(&mut session).await, Next::Continue);
            assert_eq!((session.early.as_slice(), session.received), (&b""[..], 0));
            assert_eq!(session.preread.as_ref().unwrap().host, b"b.test");
            let mut left = Vec::new();
            session.shared.as_ref().unwrap().stream.try_read_vec(&mut left, 1 << 10).unwrap();
            assert_eq!(left, hello, "only the PROXY header is taken");
            drop(session);
            assert_eq!(client.read(&mut [0; 8]).unwrap(), 0);
        });
    }
}
