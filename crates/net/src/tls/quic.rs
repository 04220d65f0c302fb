//! A handshake in QUIC (RFC 9001): messages of TLS 1.3 without records. The caller has the packets.

use super::accept::Alert;
use super::agreement::Agreement;
use super::client::{Client, server_name};
use super::error::Failure;
use super::server::{Noted, Server, note_into};
use super::sessions::{Sessions, among};
use rustls::quic::{ClientConnection, Connection, DirectionalKeys, KeyChange, ServerConnection, Version};
use std::fmt;

/// The handshake of one connection.
pub struct QuicHandshake {
    connection: Connection,
    noted: Noted,
    /// Sessions that a client may resume, and keeps.
    sessions: Option<Sessions>,
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// The number of the alert (RFC 8446 §6); `None` if the error has no alert.
    pub alert: Option<u8>,
    /// The reason.
    pub failure: Failure,
}

impl Server {
    /// Begins a handshake with these settings ([`ServerOptions::for_quic`](super::ServerOptions::for_quic)), and with
    /// the server's transport parameters.
    ///
    /// # Errors
    /// The alert for the client of a server that does not speak TLS 1.3, or that has settings for TCP.
    pub fn quic(&self, version: Version, parameters: Vec<u8>) -> Result<QuicHandshake, Alert> {
        if !self.speaks_tls13 {
            return Err(Alert::ProtocolVersion);
        }
        let connection = ServerConnection::new(self.config.clone(), version, parameters);
        let connection = Connection::Server(connection.map_err(|_| Alert::InternalError)?);
        Ok(QuicHandshake { connection, noted: Noted::default(), sessions: None })
    }
}

impl Client {
    /// Begins a handshake as a client, with its transport parameters. `server` is the name to send and check, or an IP
    /// address. `sessions` may be resumed; new sessions are added.
    ///
    /// # Errors
    /// The name is none, or the options do not allow TLS 1.3.
    pub fn quic(
        &self,
        version: Version,
        server: &str,
        parameters: Vec<u8>,
        sessions: Option<&Sessions>,
    ) -> Result<QuicHandshake, Failure> {
        let name = server_name(server)?;
        let config = self.config.clone();
        let connection = among(sessions, || ClientConnection::new(config, version, name, parameters));
        let connection = Connection::Client(connection.map_err(|error| Failure::of(&error, true))?);
        Ok(QuicHandshake { connection, noted: Noted::default(), sessions: sessions.cloned() })
    }
}

impl QuicHandshake {
    /// Reads bytes of CRYPTO frames, in their order and from one encryption level.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Fatal> {
        let QuicHandshake { connection, noted, sessions } = self;
        let read = among(sessions.as_ref(), || note_into(noted, || connection.read_hs(bytes)));
        // The words are those for a peer that is known to speak TLS, because QUIC has nothing else.
        read.map_err(|error| Fatal { alert: connection.alert().map(u8::from), failure: Failure::of(&error, true) })
    }

    /// Appends bytes for CRYPTO frames of the current encryption level, up to a change of keys.
    pub fn write(&mut self, bytes: &mut Vec<u8>) -> Option<KeyChange> {
        self.connection.write_hs(bytes)
    }

    /// Whether the peer's last message is missing.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// The keys for early data: on a server, if it accepted it; on a client, if a session allows it.
    pub fn early_keys(&self) -> Option<DirectionalKeys> {
        self.connection.zero_rtt_keys()
    }

    /// On a client, after the handshake: whether the server accepted early data.
    pub fn is_early_data_accepted(&self) -> bool {
        matches!(&self.connection, Connection::Client(client) if client.is_early_data_accepted())
    }

    /// The peer's transport parameters, once its hello was read. On a client that sends early data: those of the
    /// session, until then.
    pub fn parameters(&self) -> Option<&[u8]> {
        self.connection.quic_transport_parameters()
    }

    /// What was agreed on so far; a client's certificates come with its last messages.
    pub fn agreement(&self) -> Agreement {
        Agreement::of(&self.connection, self.noted)
    }
}

impl fmt::Debug for QuicHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuicHandshake")
    }
}
