//! The TLS session of one connection, in four stages.
//!
//! ```text
//!  hearing ─ the ClientHello is complete, the chooser answers ─► shaking ─ the client's Finished ─► done
//!     └──────────── an alert ─────────────► failed ◄──────────── an alert ──┘
//! ```
//!
//! After the handshake only the secrets for the next keys remain: QUIC has no message of TLS that a client may send
//! then, and rustls' connection takes some kilobytes.

use super::handshake::Handshake;
use super::initial;
use super::waiting::Waiting;
use quinn_proto::crypto::{ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::quic::{KeyChange, Secrets, Suite, Version};
use std::any::Any;
use std::io::Cursor;
use std::mem;
use std::sync::Arc;
use weir_net::tls::{Alert, ClientHello, Failure, Fatal, HandshakeFault, HelloOpening, QuicHandshake, open_message};

use crate::proved::AddressProof;

/// Alerts that quinn-proto has no constants for (RFC 8446 §6).
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;

pub(super) struct TlsSession {
    suite: Suite,
    stage: Stage,
    /// For the keys after the next update; there since the server has keys for 1-RTT packets.
    next: Option<Secrets>,
    handshake: Handshake,
    /// For the keys of 1-RTT packets.
    proof: Arc<AddressProof>,
}

enum Stage {
    Hearing(Hearing),
    Shaking(Box<Shaking>),
    Done,
    Failed,
}

struct Hearing {
    heard: Vec<u8>,
    chooser: Option<Waiting>,
    /// The server's transport parameters.
    parameters: Vec<u8>,
}

struct Shaking {
    tls: QuicHandshake,
    /// The agreement has been handed over.
    is_told: bool,
}

impl TlsSession {
    /// A session that will ask `chooser`; without one it refuses the client.
    pub(super) fn new(
        suite: Suite,
        chooser: Option<Waiting>,
        parameters: Vec<u8>,
        handshake: Handshake,
        proof: Arc<AddressProof>,
    ) -> TlsSession {
        let stage = Stage::Hearing(Hearing { heard: Vec::new(), chooser, parameters });
        TlsSession { suite, stage, next: None, handshake, proof }
    }

    /// Takes more of the hello; once it is complete, the settings are chosen and rustls reads it.
    fn hear(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let Stage::Hearing(hearing) = &mut self.stage else { return Ok(false) };
        hearing.heard.extend_from_slice(bytes);
        let hello = match open_message(&hearing.heard) {
            HelloOpening::Partial => return Ok(false),
            HelloOpening::Hello(hello) => hello,
            HelloOpening::NotTls => return Err(self.fail(fatal(UNEXPECTED_MESSAGE, "the client sent no ClientHello"))),
            HelloOpening::Broken => return Err(self.fail(fatal(DECODE_ERROR, "the ClientHello cannot be read"))),
        };
        match hearing.choose(&hello) {
            Ok(tls) => {
                let heard = mem::take(&mut hearing.heard);
                self.stage = Stage::Shaking(Box::new(Shaking { tls, is_told: false }));
                self.shake(&heard)
            }
            Err(alert) => {
                self.stage = Stage::Failed;
                Err(TransportErrorCode::crypto(alert as u8).into())
            }
        }
    }

    fn shake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        let Stage::Shaking(shaking) = &mut self.stage else { return Ok(false) };
        if let Err(fatal) = shaking.tls.read(bytes) {
            return Err(self.fail(fatal));
        }
        // If early data is accepted, the session is resumed, and the client sends no certificate later.
        let is_final = !shaking.tls.is_handshaking() || shaking.tls.early_keys().is_some();
        if !is_final || mem::replace(&mut shaking.is_told, true) {
            return Ok(false);
        }
        self.handshake.put(Ok(shaking.tls.agreement()));
        Ok(true)
    }

    fn fail(&mut self, fatal: Fatal) -> TransportError {
        self.stage = Stage::Failed;
        failed(&self.handshake, fatal)
    }
}

/// Hands the failure over; the error for quinn-proto.
pub(super) fn failed(handshake: &Handshake, fatal: Fatal) -> TransportError {
    let reason = fatal.failure.detail.clone();
    handshake.put(Err(fatal.failure));
    let code = fatal.alert.map_or(TransportErrorCode::PROTOCOL_VIOLATION, TransportErrorCode::crypto);
    TransportError { code, frame: None, reason }
}

impl Hearing {
    fn choose(&mut self, hello: &ClientHello) -> Result<QuicHandshake, Alert> {
        let chooser = self.chooser.take().and_then(|waiting| waiting.take()).ok_or(Alert::InternalError)?;
        chooser(hello)?.quic(Version::V1, mem::take(&mut self.parameters))
    }
}

fn fatal(alert: u8, detail: &str) -> Fatal {
    let fault = HandshakeFault::Other;
    let failure = Failure { code: "EPROTO", detail: detail.to_owned(), fault, distrust: None };
    Fatal { alert: Some(alert), failure }
}

impl Session for TlsSession {
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
        let Stage::Shaking(shaking) = &self.stage else { return None };
        let keys = shaking.tls.early_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    /// Nothing: clients alone ask.
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        match &self.stage {
            Stage::Shaking(shaking) => shaking.tls.is_handshaking(),
            Stage::Hearing(_) | Stage::Failed => true,
            Stage::Done => false,
        }
    }

    /// `true` once: the agreement can be taken.
    fn read_handshake(&mut self, bytes: &[u8]) -> Result<bool, TransportError> {
        match &self.stage {
            Stage::Hearing(_) => self.hear(bytes),
            Stage::Shaking(_) => self.shake(bytes),
            // RFC 9001 §4.4 and §6 forbid the messages that TLS 1.3 allows a client after the handshake.
            Stage::Done | Stage::Failed => Err(TransportErrorCode::crypto(UNEXPECTED_MESSAGE).into()),
        }
    }

    /// The parameters of the client's hello; asked for once, when the hello was read.
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Stage::Shaking(shaking) = &self.stage else { return Ok(None) };
        match shaking.tls.parameters() {
            Some(bytes) => Ok(Some(TransportParameters::read(Side::Server, &mut Cursor::new(bytes))?)),
            None => Ok(None),
        }
    }

    fn write_handshake(&mut self, bytes: &mut Vec<u8>) -> Option<Keys> {
        let Stage::Shaking(shaking) = &mut self.stage else { return None };
        let keys = match shaking.tls.write(bytes) {
            Some(KeyChange::Handshake { keys }) => Some(initial::converted(keys)),
            Some(KeyChange::OneRtt { keys, next }) => {
                self.next = Some(next);
                Some(initial::watched(keys, &self.proof))
            }
            None => None,
        };
        // The tickets are written with the first call after the client's Finished.
        if !shaking.tls.is_handshaking() && self.next.is_some() {
            self.stage = Stage::Done;
        }
        keys
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(initial::watched_pair(keys.local, keys.remote, &self.proof))
    }

    /// Never: a server gets no Retry packet.
    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    /// Never: nothing of weir exports secrets, and rustls' connection does not stay for it.
    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
