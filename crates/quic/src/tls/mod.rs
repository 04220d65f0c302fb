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
//! - `parameters`: the transport parameters that are sent
//! - `waiting`: what the chooser is bound to, its thread; `initial`: the keys that everybody can derive

mod client;
mod handshake;
mod initial;
mod parameters;
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

/// TLS for the connections of an endpoint. As the setting of an endpoint itself it refuses each client, so each
/// connection needs a setting of its own ([`Crypto::hearing`]).
pub struct Crypto {
    /// For Initial packets (RFC 9001 §5.2), whatever the settings of a server.
    suite: Suite,
    /// The ids of a client that it may give at the same time.
    ids: u8,
    chooser: Mutex<Option<Waiting>>,
    handshake: Handshake,
    proof: Arc<AddressProof>,
}

impl Crypto {
    /// TLS for clients that may give `ids` connection ids at the same time (RFC 9000 §5.1.1). `None` if the TLS library lacks
    /// the suite of Initial packets.
    pub fn new(ids: u8) -> Option<Crypto> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
        Some(Crypto { suite, ids, chooser: Mutex::default(), handshake: Handshake::default(), proof: Arc::default() })
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
        let (suite, ids) = (self.suite, self.ids);
        let crypto = Crypto { suite, ids, chooser, handshake: handshake.clone(), proof: proof.clone() };
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
        let mut written = Vec::new();
        parameters.write(&mut written);
        let sent = parameters::with_id_limit(&written, self.ids);
        Box::new(TlsSession::new(self.suite, chooser, sent, self.handshake.clone(), self.proof.clone()))
    }
}
