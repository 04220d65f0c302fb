//! The next step of a connection after a request.

use std::time::Duration;

use weir_http::exchange::Exchange;
use weir_http::family::core::Lingering;
use weir_http::receive::body;

use super::tunnel::Tunnel;

/// The next step of a connection after a request.
pub enum After {
    /// The connection waits this long for the next request; its deadline is set.
    Idle(Duration),
    /// weir closes the connection.
    Close,
    /// weir closes the connection after it has read the rest of the client's data: the time in all, and the time for
    /// each read.
    Linger(Duration, Duration),
    /// The connection now carries another protocol.
    Tunnel(Box<Tunnel>),
    /// The connection now carries streams (HTTP/2); the bytes have already arrived.
    Streams(Box<[u8]>),
}

/// The next step of a connection that serves no other request.
pub fn parting(exchange: &Exchange<'_>) -> After {
    let core = &exchange.location.values.core;
    let may_still_send = !body::is_consumed(exchange) || exchange.request.used < exchange.request.bytes.len();
    match core.lingering_close {
        Lingering::Off => After::Close,
        Lingering::On if !may_still_send && exchange.response.status.get() < 400 => After::Close,
        Lingering::On | Lingering::Always => After::Linger(core.lingering_time, core.lingering_timeout),
    }
}
