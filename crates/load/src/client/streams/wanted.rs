//! The request for a connection.

use std::time::Duration;

use weir_net::Deadline;
use weir_net::tls::Sessions;

use super::super::origin::Origin;
use super::super::resolve::Resolver;

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/2, by ALPN over TLS, with prior knowledge over `http://`.
    Http2,
    /// HTTP/3 over QUIC, for `https://` alone.
    Http3,
}

impl Protocol {
    /// Its name with its version.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Http2 => "HTTP/2",
            Protocol::Http3 => "HTTP/3",
        }
    }
}

/// How connections are used, beyond their protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Exchanges after which a connection is replaced; `None`: no limit.
    pub exchanges_max: Option<u64>,
    /// HTTP/3: a connection resumes the session of one before, and sends requests with safe methods as early data.
    pub early_data: bool,
    /// HTTP/3: a connection has a UDP port of its own, and moves to another one each time after this.
    pub migrate: Option<Duration>,
}

/// The request for a connection: its origin, and its settings.
pub struct Wanted<'w> {
    pub origin: &'w Origin,
    pub resolver: &'w Resolver,
    pub sessions: Option<&'w Sessions>,
    pub streams_max: usize,
    pub tuning: Tuning,
    /// The method of the first exchange is safe.
    pub is_safe: bool,
    pub deadline: &'w Deadline,
}
