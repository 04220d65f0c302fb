//! The parts of this crate's families that sessions of `stream` use: addresses, limits, access, logs.
//!
//! `stream` does not name the families above it; this list hands them in.

use std::io;

use weir_http::read::families::Family;
use weir_net::log::Level;
use weir_net::{Address, Deadline, Stream};
use weir_proxy::family::proxy_ssl;
use weir_proxy::family::proxy_ssl::fault::Fault;
use weir_proxy::family::proxy_ssl::handshake::{secure, sessions_of};
use weir_proxy::family::proxy_ssl::sessions::AllSessions;
use weir_stream::compile;
use weir_stream::part::{Part, Unreached, Wrapped};
use weir_stream::session::Session;

use super::{access, limit_conn, log, realip, ssl};
use crate::canary::worker as canary;

weir_http::settings! {}

/// The TLS sessions with peers. All workers share them.
#[derive(Debug, Default)]
pub struct Declared {
    tls: AllSessions,
}

/// The family.
pub static FAMILY: Family = Family::new("sessions", &[]).servers(|b, servers| {
    let drafts = compile::take(b, servers, &PARTS);
    ssl::assemble::require_of_sessions(b, &drafts);
});

/// The parts, in the order in which their handlers of one phase run.
static PARTS: [Part; 7] =
    [realip::PART, limit_conn::PART, access::PART, ssl::session::PART, TOWARDS_PEERS, canary::PART, log::PART];

/// TLS to peers, with the settings and the sessions of `proxy_ssl`.
const TOWARDS_PEERS: Part =
    Part { wrap: Some((|place| weir_proxy::values(place).proxy_ssl.tls.is_some(), wrap)), ..Part::NOTHING };

fn wrap<'s>(session: &'s mut Session<'_>, stream: Stream, address: &'s Address, host: &'s str) -> Wrapped<'s> {
    Box::pin(async move {
        let asked = proxy_ssl::asked(session, host.as_bytes());
        let Some(party) = asked.party() else { return Err(Unreached::Peer) };
        let protocols = proxy_ssl::offered(session);
        // FNV-1a: groups share no TLS sessions.
        let group = host.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        let all = &crate::declared(session.conf).sessions.tls;
        let sessions = sessions_of(party, all, group, address);
        let deadline = Deadline::new();
        deadline.set(weir_stream::values(&session.server.place).proxy.connect_timeout);
        let conf_prefix = &session.conf.paths.conf_prefix;
        match secure(conf_prefix, stream, party, &sessions, protocols, &deadline).await {
            Ok(tls) => Ok(tls.into()),
            Err(Fault::Handshake(error)) if error.kind() == io::ErrorKind::TimedOut => {
                session.log(Level::Error, format_args!("upstream timed out (110: Connection timed out)"));
                Err(Unreached::Peer)
            }
            Err(fault) => {
                session.log(Level::Error, format_args!("{fault}"));
                Err(Unreached::Peer)
            }
        }
    })
}

/// The names of the variables of the parts.
pub fn variable_names() -> Vec<&'static str> {
    PARTS.iter().flat_map(|part| part.variables).map(|variable| variable.name).collect()
}
