//! TLS of QUIC connections, by weir's own session of quinn-proto: the client's hello chooses the settings.
//!
//! ```text
//!  Incoming ─ Crypto::hearing(chooser) ─► ServerConfig of this connection ─ Endpoint::accept ─► Connection
//!                └► Handshake ─ take, after Event::HandshakeDataReady ─► Agreement, for variables
//! ```
//!
//! quinn-proto's session for rustls needs all settings before the first byte of a client. An nginx.conf has settings
//! for each server name, so weir's session first collects the ClientHello, which may take several packets, and then
//! asks a [`Chooser`]. The chooser answers at once, within `accept` or `handle_event`: quinn-proto asks a session for
//! its answer only while it reads a packet of the client, so an answer that comes later would wait for a packet.
//! The chooser must therefore not borrow the endpoint or the connection.
//!
//! - `session`: the session of one connection; `handshake`: its result; `client`: the session of a connection that weir opens
//! - `waiting`: what the chooser is bound to, its thread; `initial`: the keys that everybody can derive

mod client;
mod handshake;
mod initial;
mod session;
#[cfg(test)]
mod tests;
mod waiting;

pub use client::ClientCrypto;
pub use handshake::Handshake;
pub use initial::VERSION;
pub use waiting::Chooser;

use quinn_proto::crypto::{self, Keys, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, ServerConfig, Side};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::Suite;
use session::TlsSession;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use waiting::Waiting;

use crate::proved::AddressProof;

/// The transport parameter `disable_active_migration` (RFC 9000 §18.2) with its length. quinn-proto sends it only if it
/// also drops all packets from a new address, and so clients behind a NAT that changes.
pub const NO_ACTIVE_MIGRATION: &[u8] = &[0x0c, 0];

/// TLS for the connections of an endpoint. As the setting of an endpoint itself it refuses each client, so each
/// connection needs a setting of its own ([`Crypto::hearing`]).
pub struct Crypto {
    /// For Initial packets (RFC 9001 §5.2), whatever the settings of a server.
    suite: Suite,
    /// Transport parameters besides those of quinn-proto, as they are sent.
    extra: &'static [u8],
    chooser: Mutex<Option<Waiting>>,
    handshake: Handshake,
    proof: Arc<AddressProof>,
}

impl Crypto {
    /// TLS that sends `extra` after quinn-proto's transport parameters, for instance [`NO_ACTIVE_MIGRATION`].
    /// `None` if the TLS library lacks the suite of Initial packets.
    pub fn new(extra: &'static [u8]) -> Option<Crypto> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
        Some(Crypto { suite, extra, chooser: Mutex::default(), handshake: Handshake::default(), proof: Arc::default() })
    }

    /// The settings for one connection, for `Endpoint::accept`: as `base`, but `chooser` chooses those of TLS. The
    /// connection must stay in this thread: in another one, the client is refused with "internal_error".
    pub(crate) fn hearing(
        &self,
        base: &ServerConfig,
        chooser: Chooser,
    ) -> (Arc<ServerConfig>, Handshake, Arc<AddressProof>) {
        let handshake = Handshake::default();
        let chooser = Mutex::new(Some(Waiting::keep(chooser)));
        let proof = Arc::<AddressProof>::default();
        let (suite, extra) = (self.suite, self.extra);
        let crypto = Crypto { suite, extra, chooser, handshake: handshake.clone(), proof: proof.clone() };
        let mut config = base.clone();
        config.crypto = Arc::new(crypto);
        (Arc::new(config), handshake, proof)
    }
}

impl fmt::Debug for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crypto")
    }
}

impl crypto::ServerConfig for Crypto {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        if version != VERSION {
            return Err(UnsupportedVersion);
        }
        Ok(initial::keys(self.suite, id, Side::Server))
    }

    fn retry_tag(&self, _: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        initial::retry_tag(id, packet)
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let chooser = self.chooser.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut sent = Vec::new();
        parameters.write(&mut sent);
        sent.extend_from_slice(self.extra);
        Box::new(TlsSession::new(self.suite, chooser, sent, self.handshake.clone(), self.proof.clone()))
    }
}
