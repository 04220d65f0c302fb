//! The beginning of a session: the PROXY protocol header, the phases, TLS, and the bytes that weir looks at.

use std::io;

use weir_http::client::Proxied;
use weir_meter::Step;
use weir_net::log::{Level, Os};
use weir_net::{Deadline, Transport};
use weir_wire::proxy_protocol::{self, Fault, Parsed, V2_BYTES_MAX};

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
    if is_secure {
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
    {
        // Sockets have the option from their listener. If this fails, bytes are only sent earlier.
        let _ = shared.stream.socket().set_nodelay(false);
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

fn shared(session: &Session<'_>) -> Option<std::rc::Rc<weir_http::conn::Shared>> {
    session.shared.clone()
}

/// Reads the header before the client's bytes.
async fn proxied(session: &mut Session<'_>) -> Next {
    let Some(shared) = shared(session) else { return Next::Continue };
    session.step = Some(Step::ProxyHeader);
    let deadline = Deadline::new();
    deadline.set(crate::values(&session.server.place).core.proxy_protocol_timeout);
    let mut bytes = Vec::new();
    loop {
        match read(&shared.stream, &mut bytes, V2_BYTES_MAX, &deadline).await {
            Ok(0) => return Next::End(broken(session, &bytes, Fault::Broken)),
            Ok(_) => {}
            Err(error) => return Next::End(unread(session, &error)),
        }
        match proxy_protocol::parse(&bytes) {
            Ok(Parsed::Partial) => {}
            Ok(Parsed::Done { length, ends }) => {
                session.proxied = ends.map(|ends| {
                    let tlvs = ends.tlvs.of(&bytes).into();
                    Box::new(Proxied { source: ends.source, destination: ends.destination, tlvs })
                });
                bytes.drain(..length);
                session.received += bytes.len() as u64;
                session.early = bytes;
                session.step = Some(Step::StartSession);
                return Next::Continue;
            }
            Err(fault) => return Next::End(broken(session, &bytes, fault)),
        }
    }
}

fn broken(session: &Session<'_>, bytes: &[u8], fault: Fault) -> u16 {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    match fault {
        Fault::Broken | Fault::Address | Fault::LineTooLong => {
            session.log(Level::Error, format_args!("{fault}: \"{}\"", line.escape_ascii()));
        }
        Fault::Version(_) | Fault::TooLarge | Fault::AddressesCut => session.log(Level::Error, format_args!("{fault}")),
    }
    BAD_REQUEST
}

/// Reads some bytes, at most `max`; waits until the deadline.
async fn read(stream: &Transport, bytes: &mut Vec<u8>, max: usize, deadline: &Deadline) -> io::Result<usize> {
    loop {
        match stream.try_read_vec(bytes, max) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.readable(deadline).await?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
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
    let Some(shared) = shared(session) else { return Next::Continue };
    session.step = Some(Step::Preread);
    let core = &crate::values(&session.server.place).core;
    let (size, timeout) = (core.preread_buffer, core.preread_timeout);
    let deadline = Deadline::new();
    deadline.set(timeout);
    let mut bytes = std::mem::take(&mut session.early);
    while bytes.is_empty() || !preread::look(session, &bytes) {
        let room = size.saturating_sub(bytes.len());
        if room == 0 {
            session.log(Level::Error, format_args!("preread buffer full"));
            return Next::End(BAD_REQUEST);
        }
        bytes.reserve(room);
        match read(&shared.stream, &mut bytes, room, &deadline).await {
            Ok(0) => return Next::End(OK),
            Ok(count) => session.received += count as u64,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Next::End(OK),
            Err(error) => return Next::End(unread(session, &error)),
        }
    }
    session.early = bytes;
    session.step = None;
    Next::Continue
}
