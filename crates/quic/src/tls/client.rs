//! TLS of a connection that weir opens: the settings are known from the beginning.

use super::handshake::Handshake;
use super::initial::{self, VERSION};
use super::session;
use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{KeyChange, Secrets, Suite, Version};
use std::any::Any;
use std::io::Cursor;
use std::mem;
use std::sync::Arc;
use weir_net::tls::{Client, QuicHandshake, Sessions};

/// The bytes of a Retry packet's tag (RFC 9001 §5.8).
const TAG_BYTES: usize = 16;

/// TLS for one connection.
pub struct ClientCrypto {
    suite: Suite,
    client: Client,
    sessions: Option<Sessions>,
    handshake: Handshake,
}

impl ClientCrypto {
    /// `None` if the TLS library lacks the suite of Initial packets. The result of the handshake goes to `handshake`.
    pub fn new(client: &Client, sessions: Option<&Sessions>, handshake: &Handshake) -> Option<ClientCrypto> {
        let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
        let (client, sessions, handshake) = (client.clone(), sessions.cloned(), handshake.clone());
        Some(ClientCrypto { suite, client, sessions, handshake })
    }
}

impl crypto::ClientConfig for ClientCrypto {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        if version != VERSION {
            return Err(ConnectError::UnsupportedVersion);
        }
        let mut sent = Vec::new();
        parameters.write(&mut sent);
        match self.client.quic(Version::V1, server, sent, self.sessions.as_ref()) {
            Ok(tls) => {
                let (suite, handshake) = (self.suite, self.handshake.clone());
                Ok(Box::new(ClientSession { suite, tls, next: None, handshake, is_told: false }))
            }
            Err(failure) => {
                self.handshake.put(Err(failure));
                Err(ConnectError::InvalidServerName(server.to_owned()))
            }
        }
    }
}

struct ClientSession {
    suite: Suite,
    tls: QuicHandshake,
    /// For the keys after the next update.
    next: Option<Secrets>,
    handshake: Handshake,
    /// The agreement has been handed over.
    is_told: bool,
}

impl Session for ClientSession {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        initial::keys(self.suite, id, side)
    }

    /// Nothing: [`Handshake::take`] has it.
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    /// Nothing: [`Handshake::take`] has it.
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.tls.early_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(self.tls.is_early_data_accepted())
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// `true` once: the agreement can be taken.
    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        self.tls.read(bytes).map_err(|fatal| session::failed(&self.handshake, fatal))?;
        if self.tls.is_handshaking() || mem::replace(&mut self.is_told, true) {
            return Ok(false);
        }
        self.handshake.put(Ok(self.tls.agreement()));
        Ok(true)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        match self.tls.parameters() {
            Some(bytes) => Ok(Some(TransportParameters::read(Side::Client, &mut Cursor::new(bytes))?)),
            None => Ok(None),
        }
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        match self.tls.write(bytes)? {
            KeyChange::Handshake { keys } => Some(initial::converted(keys)),
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                Some(initial::converted(keys))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: Box::new(keys.remote) })
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((token, tag)) = payload.split_at_checked(payload.len().wrapping_sub(TAG_BYTES)) else { return false };
        initial::retry_tag(id, &[header, token].concat()) == tag
    }

    /// Never: nothing of weir exports secrets.
    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
