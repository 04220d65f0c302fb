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
//! - `session`: the session of one connection; `waiting`: what the chooser is bound to, its thread

mod session;
#[cfg(test)]
mod tests;
mod waiting;

pub use waiting::Chooser;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::crypto::{self, KeyPair, Keys, Session, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, ServerConfig, Side};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{self, Suite, Version};
use session::TlsSession;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use waiting::Waiting;
use weir_net::tls::{Agreement, Failure};

/// QUIC version 1 (RFC 9000), the only one that weir speaks.
pub const VERSION: u32 = 1;

/// The transport parameter `disable_active_migration` (RFC 9000 §18.2) with its length. quinn-proto sends it only if it
/// also drops all packets from a new address, and so clients behind a NAT that changes.
pub const NO_ACTIVE_MIGRATION: &[u8] = &[0x0c, 0];

/// The key and the nonce of Retry packets of version 1 (RFC 9001 §5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

/// TLS for the connections of an endpoint. As the setting of an endpoint itself it refuses each client, so each
/// connection needs a setting of its own ([`Crypto::hearing`]).
pub struct Crypto {
    /// For Initial packets (RFC 9001 §5.2), whatever the settings of a server.
    suite: Suite,
    /// Transport parameters besides those of quinn-proto, as they are sent.
    extra: &'static [u8],
    chooser: Mutex<Option<Waiting>>,
    handshake: Handshake,
}

impl Crypto {
    /// TLS that sends `extra` after quinn-proto's transport parameters, for instance [`NO_ACTIVE_MIGRATION`].
    /// `None` if the TLS library lacks the suite of Initial packets.
    pub fn new(extra: &'static [u8]) -> Option<Crypto> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
        Some(Crypto { suite, extra, chooser: Mutex::default(), handshake: Handshake::default() })
    }

    /// The settings for one connection, for `Endpoint::accept`: as `base`, but `chooser` chooses those of TLS. The
    /// connection must stay in this thread: in another one, the client is refused with "internal_error".
    pub fn hearing(&self, base: &ServerConfig, chooser: Chooser) -> (Arc<ServerConfig>, Handshake) {
        let handshake = Handshake::default();
        let chooser = Mutex::new(Some(Waiting::keep(chooser)));
        let crypto = Crypto { suite: self.suite, extra: self.extra, chooser, handshake: handshake.clone() };
        let mut config = base.clone();
        config.crypto = Arc::new(crypto);
        (Arc::new(config), handshake)
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
        Ok(initial_keys(self.suite, id, Side::Server))
    }

    fn retry_tag(&self, _: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let length = [u8::try_from(id.len()).unwrap_or(0)];
        let whole = [&length[..], id, packet].concat();
        let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
        let key = UnboundKey::new(&AES_128_GCM, &RETRY_KEY).map(LessSafeKey::new);
        let tag = key.and_then(|key| key.seal_in_place_separate_tag(nonce, Aad::from(whole), &mut []));
        // A key of the right length always seals; a client drops a Retry packet with a wrong tag.
        tag.ok().and_then(|tag| tag.as_ref().try_into().ok()).unwrap_or_default()
    }

    fn start_session(self: Arc<Self>, _: u32, parameters: &TransportParameters) -> Box<dyn Session> {
        let mut sent = Vec::new();
        parameters.write(&mut sent);
        sent.extend_from_slice(self.extra);
        Box::new(TlsSession::new(self.suite, lock(&self.chooser).take(), sent, self.handshake.clone()))
    }
}

/// The result of the handshake of one connection; clones share it.
#[derive(Clone, Default)]
pub struct Handshake(Arc<Mutex<Option<Result<Agreement, Failure>>>>);

impl Handshake {
    /// The result, once. It is there after `Event::HandshakeDataReady`: with early data before the client's last
    /// message, else with it. A failure is there after the error of the connection or of `accept`.
    ///
    /// `None` also if the chooser refused the client, or if TLS is not why the connection ended.
    pub fn take(&self) -> Option<Result<Agreement, Failure>> {
        lock(&self.0).take()
    }

    fn put(&self, result: Result<Agreement, Failure>) {
        *lock(&self.0) = Some(result);
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake")
    }
}

/// The keys of Initial packets, which everybody can derive (RFC 9001 §5.2).
fn initial_keys(suite: Suite, id: &ConnectionId, side: Side) -> Keys {
    quic_keys(suite.keys(id, side.into(), Version::V1))
}

fn quic_keys(keys: quic::Keys) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: KeyPair { local: Box::new(keys.local.packet), remote: Box::new(keys.remote.packet) },
    }
}

/// The values are replaced whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
