//! The next step of a connection after a request.

use std::time::Duration;

use weir_http::body;
use weir_http::exchange::Exchange;
use weir_http::family::core::Lingering;

use super::tunnel::Tunnel;

/// The next step of a connection after a request.
pub enum After {
    /// It waits for the next one this long.
    Idle(Duration),
    /// It is closed.
    Close,
    /// The rest of the client's data is read first: the time in all, and the time for each read.
    Linger(Duration, Duration),
    /// It carries another protocol from now on.
    Tunnel(Box<Tunnel>),
    /// It carries streams from now on (HTTP/2); the bytes are the part that has arrived.
    Streams(Box<[u8]>),
}

/// The next step of a connection that serves no other request.
pub fn parting(exchange: &Exchange<'_>) -> After {
    let core = &exchange.location.values.core;
    let may_still_send = !body::is_consumed(exchange) || exchange.request.used < exchange.request.bytes.len();
    match core.lingering_close {
        Lingering::Off => After::Close,
        Lingering::On if !may_still_send && exchange.response.status < 400 => After::Close,
        Lingering::On | Lingering::Always => After::Linger(core.lingering_time, core.lingering_timeout),
    }
}
