//! One attempt of a session to reach a peer.

use std::rc::Rc;
use std::time::Duration;

use weir_net::{Instant, clock};

/// One attempt to reach a peer.
pub struct Try {
    /// The peer's address, or the group's name if no peer could be chosen.
    pub peer: Rc<str>,
    /// When it began.
    pub started: Instant,
    /// The time until the connection was made.
    pub connect: Option<Duration>,
    /// The time until the peer's first byte.
    pub first_byte: Option<Duration>,
    /// The time until its end.
    pub session: Option<Duration>,
    /// Bytes to the peer.
    pub sent: u64,
    /// Bytes from the peer.
    pub received: u64,
}

impl Try {
    /// An attempt that begins now.
    pub fn new(peer: Rc<str>) -> Try {
        Try { peer, started: clock::now(), connect: None, first_byte: None, session: None, sent: 0, received: 0 }
    }

    /// The time since it began.
    pub fn age(&self) -> Duration {
        clock::now().saturating_duration_since(self.started)
    }
}
