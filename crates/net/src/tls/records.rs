//! A connection's records: incomplete received bytes, decrypted bytes that nobody has read, and bytes that wait to be
//! sent.
//!
//! Invariant: every complete received record has been decrypted; the bytes in `incoming` are an incomplete record. So
//! a wait for the socket is always a wait for new bytes.

use super::error::Failure;
use super::sessions::{Sessions, among};
use crate::buffer::{Lease, lease};
use crate::stream::Stream;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, ReadEarlyData, UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, Error, InvalidMessage, PeerIncompatible, ProtocolVersion, unbuffered};
use std::io;

/// Bytes read from the socket at once: a whole record (16 KiB and its wrapping) and the beginning of the next.
const INCOMING_BYTES: usize = 32 << 10;
/// Bytes that may wait for the rest of a message; rustls itself refuses handshake messages over 64 KiB.
const INCOMING_BYTES_MAX: usize = 128 << 10;
/// Messages that may be ready when a session fails: a server's flight and the alert.
const LAST_MESSAGES_MAX: usize = 16;
/// Numbers of RFC 8446: record types (§5.1), the first message of a client (§4), the level of an alert (§6), and two
/// alerts: for a record or a message at a wrong place, and for a missing extension.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const FATAL: u8 = 2;
const UNEXPECTED_MESSAGE: u8 = 10;
const MISSING_EXTENSION: u8 = 109;
/// A first guess at the size of a handshake message, or of the wrapping of some records.
const WRAPPING_BYTES: usize = 128;

/// The state of a connection without its socket.
pub(super) struct TlsState {
    pub(super) session: Session,
    sessions: Option<Sessions>,
    /// Encrypted bytes that are not a complete record yet.
    pub(super) incoming: Option<Lease>,
    /// Decrypted bytes for which the reader had no room, and how many of them it has taken since.
    pub(super) surplus: Option<(Lease, usize)>,
    /// Encrypted bytes, and how many of them the kernel has accepted.
    pub(super) outgoing: Option<(Lease, usize)>,
    /// Bytes that are encrypted, but not yet reported to the writer as written.
    pub(super) untold: usize,
    pub(super) has_shaken_hands: bool,
    has_said_goodbye: bool,
    /// The peer has ended: nothing more will arrive.
    pub(super) has_ended: bool,
    /// The peer announced the end (close_notify).
    pub(super) is_end_announced: bool,
    pub(super) failed: Option<Failure>,
}

/// The side of a session. The server's side begins after the client's hello. Until then, bytes pass unchanged; if the
/// client does not speak TLS, they always do.
pub(super) enum Session {
    Raw,
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

impl Session {
    /// The facts that both sides have.
    pub(super) fn common(&self) -> Option<&CommonState> {
        match self {
            Session::Raw => None,
            Session::Client(session) => Some(session),
            Session::Server(session) => Some(session),
        }
    }
}

/// The common interface of both sides, for records.
trait Side {
    type Data;
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    /// Whether messages are ready to be sent.
    fn has_ready(&self) -> bool;
    /// The bytes that arrived before the handshake was done.
    fn early(records: ReadEarlyData<'_, '_, Self::Data>, take: impl FnMut(&[u8])) -> Result<usize, Error>;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn has_ready(&self) -> bool {
        self.wants_write()
    }

    fn early(_: ReadEarlyData<'_, '_, Self::Data>, _: impl FnMut(&[u8])) -> Result<usize, Error> {
        Ok(0)
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn has_ready(&self) -> bool {
        self.wants_write()
    }

    fn early(mut records: ReadEarlyData<'_, '_, Self::Data>, mut take: impl FnMut(&[u8])) -> Result<usize, Error> {
        let mut discard = 0;
        while let Some(record) = records.next_record() {
            let record = record?;
            discard += record.discard;
            take(record.payload);
        }
        Ok(discard)
    }
}

/// The target of decrypted bytes: `buf` while there is `room`, then the surplus.
pub(super) struct PlaintextSink<'b> {
    pub(super) buf: &'b mut Vec<u8>,
    pub(super) room: usize,
}

/// The purpose of a turn.
pub(super) enum Want<'w> {
    /// Handles the received records.
    Progress,
    /// Also encrypts these bytes.
    Encrypt(&'w [u8]),
    /// Also announces the end.
    Close,
}

/// The state in which a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TurnEnd {
    /// The handshake waits for the peer.
    Handshake,
    /// Bytes may flow.
    Traffic,
}

impl TlsState {
    pub(super) fn new(session: Session, sessions: Option<Sessions>) -> TlsState {
        TlsState {
            session,
            sessions,
            incoming: None,
            surplus: None,
            outgoing: None,
            untold: 0,
            has_shaken_hands: false,
            has_said_goodbye: false,
            has_ended: false,
            is_end_announced: false,
            failed: None,
        }
    }

    /// Whether bytes pass unchanged.
    pub(super) fn is_raw(&self) -> bool {
        matches!(self.session, Session::Raw)
    }

    /// Whether the handshake is over for the waiting task, once traffic may flow: it is done, or early data of the
    /// client is ready to be read.
    pub(super) fn may_begin(&mut self) -> bool {
        let is_done = self.session.common().is_some_and(|common| !common.is_handshaking());
        self.has_shaken_hands = is_done || self.surplus.is_some();
        self.has_shaken_hands
    }

    /// Encodes close_notify, once, if the peer can read it.
    pub(super) fn say_goodbye(&mut self) {
        if self.has_shaken_hands && self.failed.is_none() && !self.has_said_goodbye {
            self.has_said_goodbye = true;
            // Nobody waits for the result.
            let _ = self.turn(Want::Close, &mut PlaintextSink::none(&mut Vec::new()));
        }
    }

    /// Whether a read has a result without reading the socket.
    pub(super) fn has_more(&self) -> bool {
        self.surplus.is_some() || self.has_ended || self.failed.is_some()
    }

    /// Whether something waits to be sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.outgoing.is_some()
    }

    /// Moves surplus to the reader.
    pub(super) fn give_surplus(&mut self, buf: &mut Vec<u8>, room: usize) {
        let Some((bytes, had)) = &mut self.surplus else {
            return;
        };
        let rest = bytes.get(*had..).unwrap_or_default();
        let some = rest.get(..room).unwrap_or(rest);
        buf.extend_from_slice(some);
        *had += some.len();
        if *had >= bytes.len() {
            self.surplus = None;
        }
    }

    /// Reads encrypted bytes from the socket; 0 is the end.
    pub(super) fn receive(&mut self, stream: &Stream) -> io::Result<usize> {
        let incoming = self.incoming.get_or_insert_with(|| lease(INCOMING_BYTES));
        if incoming.len() >= INCOMING_BYTES_MAX {
            return Err(Failure::new("EPROTO", "the peer sent a TLS message that is too long").into());
        }
        let read = stream.try_read_vec(incoming, INCOMING_BYTES);
        if incoming.is_empty() {
            self.incoming = None;
        }
        read
    }

    /// Sends the waiting bytes; `WouldBlock` if some must go on waiting.
    pub(super) fn flush(&mut self, stream: &Stream) -> io::Result<()> {
        while let Some((bytes, sent)) = &mut self.outgoing {
            *sent += stream.try_write(bytes.get(*sent..).unwrap_or_default())?;
            if *sent >= bytes.len() {
                self.outgoing = None;
            }
        }
        Ok(())
    }

    /// Handles all received records, and then does `want`.
    ///
    /// After a failure, every call returns the same failure; the alert for the peer is then among the bytes that wait
    /// to be sent.
    pub(super) fn turn(&mut self, want: Want<'_>, sink: &mut PlaintextSink<'_>) -> Result<TurnEnd, Failure> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let sessions = self.sessions.clone();
        let mut incoming = self.incoming.take();
        let turned = among(sessions.as_ref(), || self.work(incoming.as_mut(), want, sink));
        let error = match turned {
            Ok(at) => {
                self.incoming = incoming.filter(|bytes| !bytes.is_empty());
                return Ok(at);
            }
            Err(error) => error,
        };
        self.correct_alert(&error, incoming.as_ref().map_or(&[][..], |bytes| bytes.as_slice()));
        let failed = Failure::of(&error, self.has_shaken_hands);
        self.failed = Some(failed.clone());
        Err(failed)
    }

    /// Makes sure that a client gets the right alert, while alerts are plain text; later `guard` does this.
    /// `incoming` are the bytes of the failed records.
    fn correct_alert(&mut self, error: &Error, incoming: &[u8]) {
        let Session::Server(session) = &self.session else { return };
        let version = session.protocol_version();
        let right = match error {
            // RFC 8446 §5, RFC 5246 §7.1: rustls says `decode_error`.
            Error::InvalidMessage(InvalidMessage::InvalidContentType | InvalidMessage::InvalidCcs) => {
                Some(UNEXPECTED_MESSAGE)
            }
            // RFC 8446 §4: rustls says `decode_error` also if the first message is not a ClientHello.
            Error::InvalidMessage(_) if version.is_none() => match incoming {
                [HANDSHAKE, _, _, _, _, message, ..] if *message != CLIENT_HELLO => Some(UNEXPECTED_MESSAGE),
                _ => None,
            },
            // RFC 8446 §9.2: rustls says `handshake_failure`.
            Error::PeerIncompatible(PeerIncompatible::KeyShareExtensionRequired) => Some(MISSING_EXTENSION),
            _ => None,
        };
        match (right, error, &mut self.outgoing) {
            (Some(right), _, Some((bytes, _))) => {
                if let Some([ALERT, 3, _, 0, 2, FATAL, reason]) = bytes.last_chunk_mut() {
                    *reason = right;
                }
            }
            // Records inside a message, too many empty records, too many warnings: rustls sends no alert.
            (None, Error::PeerMisbehaved(_), None)
                if session.is_handshaking() && version != Some(ProtocolVersion::TLSv1_3) =>
            {
                let mut bytes = lease(WRAPPING_BYTES);
                bytes.extend_from_slice(&[ALERT, 3, 3, 0, 2, FATAL, UNEXPECTED_MESSAGE]);
                self.outgoing = Some((bytes, 0));
            }
            _ => {}
        }
    }

    fn work(
        &mut self,
        incoming: Option<&mut Lease>,
        want: Want<'_>,
        sink: &mut PlaintextSink<'_>,
    ) -> Result<TurnEnd, Error> {
        let TlsState { session, surplus, outgoing, has_ended, is_end_announced, .. } = self;
        let mut work = Work { surplus, outgoing, has_ended, is_end_announced };
        match session {
            Session::Raw => Ok(TurnEnd::Handshake),
            Session::Client(session) => work.turn(session, incoming, want, sink),
            Session::Server(session) => work.turn(session, incoming, want, sink),
        }
    }
}

/// The state that a turn changes besides the session.
struct Work<'s> {
    surplus: &'s mut Option<(Lease, usize)>,
    outgoing: &'s mut Option<(Lease, usize)>,
    has_ended: &'s mut bool,
    is_end_announced: &'s mut bool,
}

impl Work<'_> {
    fn turn<S: Side>(
        &mut self,
        session: &mut S,
        incoming: Option<&mut Lease>,
        want: Want<'_>,
        sink: &mut PlaintextSink<'_>,
    ) -> Result<TurnEnd, Error> {
        let mut nothing = Vec::new();
        let incoming: &mut Vec<u8> = match incoming {
            Some(lease) => lease,
            None => &mut nothing,
        };
        let mut done = 0;
        let at = loop {
            let UnbufferedStatus { mut discard, state, .. } =
                session.process(incoming.get_mut(done..).unwrap_or_default());
            let mut end = None;
            match state {
                Ok(ConnectionState::ReadTraffic(mut records)) => {
                    while let Some(record) = records.next_record() {
                        let record = record?;
                        discard += record.discard;
                        sink.push(record.payload, self.surplus);
                    }
                }
                Ok(ConnectionState::ReadEarlyData(records)) => {
                    discard += S::early(records, |bytes| sink.push(bytes, self.surplus))?;
                }
                Ok(ConnectionState::EncodeTlsData(message)) => encode(message, self.outgoing)?,
                // weir sends encoded bytes at the end of the turn: several messages in one call to the kernel.
                Ok(ConnectionState::TransmitTlsData(encoded)) => encoded.done(),
                Ok(ConnectionState::BlockedHandshake) => end = Some(TurnEnd::Handshake),
                Ok(ConnectionState::WriteTraffic(open)) => {
                    write(open, &want, self.outgoing)?;
                    end = Some(TurnEnd::Traffic);
                }
                Ok(ConnectionState::PeerClosed) => {
                    *self.is_end_announced = true;
                    *self.has_ended = true;
                }
                // Closed, and states that later versions of rustls may add.
                Ok(_) => end = Some(TurnEnd::Traffic),
                Err(error) => {
                    self.say_why(session);
                    return Err(error);
                }
            }
            done += discard;
            if let Some(at) = end {
                break at;
            }
        };
        incoming.drain(..done.min(incoming.len()));
        Ok(at)
    }

    /// After a failure: encodes the alert that rustls has ready for the peer, and the messages before it. If asked
    /// for more, rustls would continue reading and panic: it remembers how far it read, and that it failed.
    fn say_why<S: Side>(&mut self, session: &mut S) {
        for _ in 0..LAST_MESSAGES_MAX {
            if !session.has_ready() {
                return;
            }
            match session.process(&mut []).state {
                // The caller reports the failure in any case.
                Ok(ConnectionState::EncodeTlsData(message)) => drop(encode(message, self.outgoing)),
                // These bytes come before the alert, and nobody reads them any more.
                Ok(ConnectionState::ReadTraffic(mut records)) => while records.next_record().is_some() {},
                Ok(ConnectionState::ReadEarlyData(records)) => drop(S::early(records, |_| {})),
                _ => return,
            }
        }
    }
}

impl PlaintextSink<'_> {
    /// A sink for turns that read nothing: all decrypted bytes become surplus.
    pub(super) fn none(buf: &mut Vec<u8>) -> PlaintextSink<'_> {
        PlaintextSink { buf, room: 0 }
    }

    fn push(&mut self, bytes: &[u8], surplus: &mut Option<(Lease, usize)>) {
        let (fits, rest) = bytes.split_at_checked(self.room).unwrap_or((bytes, &[]));
        self.buf.extend_from_slice(fits);
        self.room -= fits.len();
        if !rest.is_empty() {
            let (kept, _) = surplus.get_or_insert_with(|| (lease(INCOMING_BYTES), 0));
            kept.extend_from_slice(rest);
        }
    }
}

fn encode<Data>(mut message: EncodeTlsData<'_, Data>, outgoing: &mut Option<(Lease, usize)>) -> Result<(), Error> {
    append(outgoing, WRAPPING_BYTES, |room| match message.encode(room) {
        Ok(len) => Ok(Ok(len)),
        Err(EncodeError::InsufficientSize(short)) => Ok(Err(short)),
        Err(EncodeError::AlreadyEncoded) => Ok(Ok(0)),
    })
}

fn write<Data>(
    mut open: WriteTraffic<'_, Data>,
    want: &Want<'_>,
    outgoing: &mut Option<(Lease, usize)>,
) -> Result<(), Error> {
    let first_guess = match want {
        Want::Progress | Want::Encrypt([]) => return Ok(()),
        Want::Encrypt(bytes) => bytes.len() + WRAPPING_BYTES,
        Want::Close => WRAPPING_BYTES,
    };
    append(outgoing, first_guess, |room| {
        let written = match want {
            Want::Encrypt(bytes) => open.encrypt(bytes, room),
            _ => open.queue_close_notify(room),
        };
        match written {
            Ok(len) => Ok(Ok(len)),
            Err(EncryptError::InsufficientSize(short)) => Ok(Err(short)),
            Err(EncryptError::EncryptExhausted) => Err(Error::EncryptError),
        }
    })
}

/// Appends the output of `fill`: gives it room for `first_guess` bytes, or then for as many as it asks for.
fn append(
    outgoing: &mut Option<(Lease, usize)>,
    first_guess: usize,
    mut fill: impl FnMut(&mut [u8]) -> Result<Result<usize, unbuffered::InsufficientSizeError>, Error>,
) -> Result<(), Error> {
    let (bytes, _) = outgoing.get_or_insert_with(|| (lease(first_guess), 0));
    let before = bytes.len();
    let mut wanted = first_guess;
    loop {
        bytes.resize(before + wanted, 0);
        match fill(bytes.get_mut(before..).unwrap_or_default()) {
            Ok(Ok(len)) => {
                bytes.truncate(before + len);
                return Ok(());
            }
            Ok(Err(short)) if short.required_size > wanted => wanted = short.required_size,
            failed => {
                bytes.truncate(before);
                return failed.and(Err(Error::EncryptError));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::client::{Client, ClientOptions};
    use super::super::server::{Server, ServerOptions};
    use super::*;
    use proptest::prelude::*;
    use rustls::pki_types::ServerName;

    /// The first message of a client.
    fn hello() -> Vec<u8> {
        let client = Client::new(&ClientOptions { accepts_anyone: true, ..ClientOptions::default() }).unwrap();
        let name = ServerName::try_from("a.example").unwrap();
        let session = UnbufferedClientConnection::new(client.config, name).unwrap();
        let mut state = TlsState::new(Session::Client(session), None);
        state.turn(Want::Progress, &mut PlaintextSink::none(&mut Vec::new())).unwrap();
        state.outgoing.take().unwrap().0.to_vec()
    }

    proptest! {
        #[test]
        fn no_beginning_makes_a_server_panic(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
            tail in proptest::collection::vec(any::<u8>(), 0..40),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut bytes = hello();
            for (at, to) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *to;
            }
            bytes.extend(&tail);
            let server = Server::new(&ServerOptions::default()).unwrap();
            let session = UnbufferedServerConnection::new(server.config.clone()).unwrap();
            let mut state = TlsState::new(Session::Server(session), None);
            let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([bytes.len()]).collect();
            ends.sort_unstable();
            let mut from = 0;
            for to in ends {
                state.incoming.get_or_insert_with(|| lease(INCOMING_BYTES)).extend_from_slice(&bytes[from..to]);
                from = to;
                if state.turn(Want::Progress, &mut PlaintextSink::none(&mut Vec::new())).is_err() {
                    break;
                }
            }
            // Without a certificate no handshake succeeds, and a client that sent a whole hello gets an alert.
            prop_assert!(state.failed.is_some() || from == bytes.len());
            prop_assert!(!changes.is_empty() || !tail.is_empty() || state.outgoing.is_some());
        }
    }
}
