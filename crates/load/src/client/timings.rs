//! The times of one exchange.

use std::time::Duration;

use weir_net::Instant;

/// The times of the steps of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timings {
    /// The exchange began.
    pub started: Instant,
    /// Time to resolve the address, when the connection was made.
    pub dns: Duration,
    /// Time to connect, when the connection was made.
    pub tcp: Duration,
    /// Time of the TLS handshake, when the connection was made; `None` without TLS.
    pub tls: Option<Duration>,
    /// True if the connection was made for this exchange.
    pub is_fresh: bool,
    /// The kernel had taken the whole request.
    pub sent: Instant,
    /// The head of the answer was complete.
    pub head: Instant,
    /// The answer was complete.
    pub end: Instant,
}

impl Timings {
    /// From the request sent to the head of the answer: Artillery's response time.
    pub fn first_byte(&self) -> Duration {
        self.head.saturating_duration_since(self.sent)
    }

    /// From the request sent to the end of the answer: weir's service time.
    pub fn service(&self) -> Duration {
        self.end.saturating_duration_since(self.sent)
    }

    /// The whole exchange.
    pub fn total(&self) -> Duration {
        self.end.saturating_duration_since(self.started)
    }
}
