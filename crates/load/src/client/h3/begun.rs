//! A connection of QUIC that has begun, for its driver.

use std::rc::Rc;
use std::time::Duration;

use weir_net::{Instant, clock};
use weir_quic::client::ClientPort;
use weir_quic::connection::{QuicConnection, QuicEnd, QuicEvent};
use weir_quic::tls::Handshake;

use super::super::error::Error;
use super::{figures, lost};

/// A connection whose handshake is complete, or goes on beside early data.
pub(super) struct BegunConnection {
    pub quic: Rc<QuicConnection>,
    /// The events so far. They are few: the server may open its streams with its first bytes.
    pub seen: Vec<QuicEvent>,
    /// Its own port, if it moves.
    pub own: Option<OwnPort>,
    pub shaking: Option<Shaking>,
}

/// A port of one connection, and the time after which it moves; dropping it stops the port.
pub(super) struct OwnPort(pub Rc<ClientPort>, pub Duration);

/// A handshake whose end is not known yet.
pub(super) struct Shaking {
    pub handshake: Handshake,
    pub began: Instant,
    pub is_early: bool,
}

impl BegunConnection {
    /// The handshake is complete; false if the server did not take the early data.
    pub fn connected(&mut self) -> bool {
        let Some(Shaking { handshake, began, is_early }) = self.shaking.take() else { return true };
        let agreed = handshake.take().and_then(Result::ok);
        let is_accepted = is_early && self.quic.is_early_data_accepted();
        figures::shaken(&figures::Shaken {
            time: clock::precise().saturating_duration_since(began),
            is_resumed: agreed.is_some_and(|agreed| agreed.is_resumed),
            early: is_early.then_some(is_accepted),
        });
        is_accepted || !is_early
    }

    /// Why it ended; with the failure of a handshake that went on beside early data.
    pub fn ended(&mut self, end: QuicEnd) -> Error {
        let shaking = self.shaking.take().and_then(|shaking| shaking.handshake.take());
        lost::ended(end, shaking.and_then(Result::err).as_ref())
    }
}

impl Drop for OwnPort {
    fn drop(&mut self) {
        self.0.stop();
    }
}
