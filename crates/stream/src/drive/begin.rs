//! The beginning of a session: the PROXY protocol header, the phases, TLS, and the bytes that weir looks at.

use std::io;

use weir_http::client::Proxied;
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
