//! A TLS connection over a stream: a client's from its beginning, a server's after the client's hello (`accept`).

use super::agreement::Agreement;
use super::client::{Client, server_name};
use super::error::Failure;
use super::records::{PlaintextSink, Session, TlsState, TurnEnd, Want};
use super::server::Noted;
use super::sessions::{Sessions, among};
use crate::buffer::lease;
use crate::stream::Stream;
use crate::timer::{Deadline, TimedOut};
use rustls::HandshakeKind;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{DnsName, ServerName};
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::task::Poll;

/// Bytes encrypted in one call: three full records, which with their wrapping fit a buffer of 64 KiB.
pub const WRITE_BYTES_MAX: usize = 48 << 10;

/// After a failure, the rest of the peer's bytes is read in pieces of this size.
const UNREAD_BYTES: usize = 4 << 10;
/// At most this many bytes are read: a peer that goes on sending does not read the alert.
const UNREAD_BYTES_MAX: usize = 256 << 10;

/// A TLS connection, or an accepted connection that may become one; closed when dropped.
pub struct TlsStream {
    pub(super) stream: Stream,
    pub(super) state: RefCell<TlsState>,
}

impl TlsStream {
    /// Begins TLS on a connected stream; [`TlsStream::handshake`] does the rest.
    ///
    /// `server` is the name to send and check, or an IP address. `sessions` may be resumed; new sessions are added.
    pub fn client(
        stream: Stream,
        client: &Client,
        server: &str,
        sessions: Option<&Sessions>,
    ) -> Result<TlsStream, Failure> {
        TlsStream::towards(stream, client, server_name(server)?, sessions)
    }

    /// As [`TlsStream::client`], for any name: a name that no certificate can have is not sent. After the handshake,
    /// also after a resumed one, [`TlsStream::is_for`] tells whether the certificate is for the name.
    pub fn to_origin(
        stream: Stream,
        client: &Client,
        name: &str,
        sessions: Option<&Sessions>,
    ) -> Result<TlsStream, Failure> {
        let name = match DnsName::try_from(name) {
            Ok(name) => ServerName::DnsName(name.to_owned()),
            // RFC 6066 §3: addresses are not sent, so rustls sends no name here.
            Err(_) => ServerName::from(name.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]))),
        };
        TlsStream::towards(stream, client, name, sessions)
    }

    fn towards(
        stream: Stream,
        client: &Client,
        name: ServerName<'static>,
        sessions: Option<&Sessions>,
    ) -> Result<TlsStream, Failure> {
        let session = among(sessions, || UnbufferedClientConnection::new(client.config.clone(), name));
        let session = session.map_err(|error| Failure::of(&error, false))?;
        let state = TlsState::new(Session::Client(session), sessions.cloned());
        Ok(TlsStream { stream, state: RefCell::new(state) })
    }

    /// Shakes hands: afterwards the server's identity is checked, and bytes may flow.
    ///
    /// Fails with a [`Failure`](super::failure) inside, with the socket's error, or with `TimedOut`.
    pub async fn handshake(&self, deadline: &Deadline) -> io::Result<()> {
        loop {
            let (turned, sent) = {
                let mut state = self.state.borrow_mut();
                let turned = state.turn(Want::Progress, &mut PlaintextSink::none(&mut Vec::new()));
                (turned, state.flush(&self.stream))
            };
            let at = turned?;
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.writable(deadline).await?;
                    continue;
                }
                sent => sent?,
            }
            if at == TurnEnd::Traffic && self.state.borrow_mut().may_begin() {
                return Ok(());
            }
            self.stream.readable(deadline).await?;
            match self.state.borrow_mut().receive(&self.stream) {
                Ok(0) => return Err(Failure::cut().into()),
                Err(error) if !is_passing(&error) => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }

    // Waiting.

    /// As [`Stream::poll_readable`].
    #[inline]
    pub fn poll_readable(&self) -> Poll<()> {
        if let Ok(mut state) = self.state.try_borrow_mut() {
            if state.has_more() {
                return Poll::Ready(());
            }
            if state.has_unsent() && self.stream.poll_writable().is_ready() {
                // A failure here occurs again in a call that can report it.
                let _ = state.flush(&self.stream);
                let _ = self.stream.poll_writable();
            }
        }
        self.stream.poll_readable()
    }

    /// As [`Stream::poll_writable`].
    #[inline]
    pub fn poll_writable(&self) -> Poll<()> {
        self.stream.poll_writable()
    }

    /// Waits for something to read; there may still be no bytes for the reader.
    pub async fn readable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        poll_fn(|_| match self.poll_readable() {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => deadline.poll_expired().map(|()| Err(TimedOut)),
        })
        .await
    }

    /// Waits for room to write.
    pub async fn writable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        self.stream.writable(deadline).await
    }

    // Reading and writing.

    /// As [`Stream::try_read_vec`].
    ///
    /// 0 is the end, announced or not. As with Node and nginx, the protocol above must find out whether bytes are
    /// missing; [`TlsStream::has_ended_in_order`] distinguishes the two cases.
    pub fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        if buf.len() == buf.capacity() {
            buf.reserve(max);
        }
        let room = max.min(buf.capacity() - buf.len());
        let before = buf.len();
        let mut state = self.state.borrow_mut();
        state.give_surplus(buf, room);
        if state.is_raw() {
            return if buf.len() == before { self.stream.try_read_vec(buf, max) } else { Ok(buf.len() - before) };
        }
        while buf.len() == before && room > 0 {
            if let Some(failed) = &state.failed {
                return Err(failed.clone().into());
            }
            if state.has_ended || state.receive(&self.stream)? == 0 {
                state.has_ended = true;
                return Ok(0);
            }
            let turned = state.turn(Want::Progress, &mut PlaintextSink { buf, room });
            // Alerts, answers to tickets, new keys; if there is no room, they are sent with the next write.
            let _ = state.flush(&self.stream);
            if buf.len() == before {
                turned?;
            }
        }
        Ok(buf.len() - before)
    }

    /// Writes as many bytes as fit, at most [`WRITE_BYTES_MAX`]. `WouldBlock` means: wait, and write the same bytes
    /// again. They count as written when the kernel has all of their records.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.borrow_mut();
        if let Some(failed) = &state.failed {
            return Err(failed.clone().into());
        }
        state.flush(&self.stream)?;
        if state.is_raw() {
            return self.stream.try_write(bytes);
        }
        if state.untold == 0 {
            let some = bytes.get(..WRITE_BYTES_MAX).unwrap_or(bytes);
            if state.turn(Want::Encrypt(some), &mut PlaintextSink::none(&mut Vec::new()))? == TurnEnd::Handshake {
                return Err(io::ErrorKind::NotConnected.into());
            }
            state.untold = some.len();
            state.flush(&self.stream)?;
        }
        let told = state.untold.min(bytes.len());
        state.untold -= told;
        Ok(told)
    }

    /// As [`TlsStream::try_write`], for several pieces.
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.state.borrow().is_raw() {
            return self.stream.try_write_vectored(pieces);
        }
        // One record for head and body, and one call to the kernel: this suits small requests.
        let mut joined = lease(pieces.iter().map(|piece| piece.len()).sum::<usize>().min(WRITE_BYTES_MAX));
        for piece in pieces {
            let room = WRITE_BYTES_MAX - joined.len();
            joined.extend_from_slice(piece.get(..room).unwrap_or(piece));
        }
        self.try_write(&joined)
    }

    /// Announces the end (close_notify), if there is room for it, and sends FIN.
    pub fn shutdown_write(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        state.say_goodbye();
        let _ = state.flush(&self.stream);
        self.stream.shutdown_write()
    }

    /// Whether TLS failed, so that nothing more can be read or written; the socket itself may still work.
    pub fn has_failed(&self) -> bool {
        self.state.borrow().failed.is_some()
    }

    /// After a failure: sends the alert with the reason, and FIN, and reads the rest of the peer's bytes until the end,
    /// or until the deadline. Closing at once would answer those bytes with RST, which destroys an alert on its way.
    pub async fn say_why(&self, deadline: &Deadline) {
        loop {
            let sent = self.state.borrow_mut().flush(&self.stream);
            match sent {
                Ok(()) => break,
                Err(error) if is_passing(&error) && self.stream.writable(deadline).await.is_ok() => {}
                Err(_) => return,
            }
        }
        if self.stream.shutdown_write().is_err() {
            return;
        }
        let mut unread = lease(UNREAD_BYTES);
        let mut read = 0;
        while read < UNREAD_BYTES_MAX {
            unread.clear();
            match self.stream.try_read_vec(&mut unread, UNREAD_BYTES) {
                Ok(0) => return,
                Ok(some) => read += some,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.stream.readable(deadline).await.is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Ends both directions at once; [`Stream::shutdown`].
    pub fn shutdown(&self) {
        self.stream.shutdown();
    }

    // State.

    /// As [`Stream::peek_closed`]; messages of TLS itself, such as tickets, are handled and do not count.
    pub fn peek_closed(&self) -> bool {
        let mut state = self.state.borrow_mut();
        if state.is_raw() {
            return state.has_more() || self.stream.peek_closed();
        }
        loop {
            if state.has_more() {
                return true;
            }
            if self.stream.poll_readable().is_pending() {
                return false;
            }
            match state.receive(&self.stream) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return !is_passing(&error),
            }
            if state.turn(Want::Progress, &mut PlaintextSink::none(&mut Vec::new())).is_err() {
                return true;
            }
        }
    }

    /// Whether the peer announced its end (close_notify), and did not only close.
    pub fn has_ended_in_order(&self) -> bool {
        self.state.borrow().is_end_announced
    }

    /// The protocol agreed on (RFC 7301).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.state.borrow().session.common()?.alpn_protocol().map(<[u8]>::to_vec)
    }

    /// Whether the peer's certificate is for a host, by nginx's rules: by its DNS names, or by its common name if it
    /// has none.
    pub fn is_for(&self, host: &str) -> bool {
        let state = self.state.borrow();
        let certificates = state.session.common().and_then(|common| common.peer_certificates());
        certificates.and_then(|all| all.first()).is_some_and(|leaf| super::origin::is_for(leaf, host))
    }

    /// Whether the peer's certificate is for an address, by the addresses in it.
    pub fn is_for_address(&self, address: IpAddr) -> bool {
        let state = self.state.borrow();
        let certificates = state.session.common().and_then(|common| common.peer_certificates());
        certificates.and_then(|all| all.first()).is_some_and(|leaf| super::origin::is_for_address(leaf, address))
    }

    /// Whether the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        let state = self.state.borrow();
        state.session.common().and_then(|common| common.handshake_kind()) == Some(HandshakeKind::Resumed)
    }

    /// What the handshake agreed on, with the facts noted meanwhile; `None` before TLS.
    pub fn agreement(&self, noted: Noted) -> Option<Agreement> {
        Some(Agreement::of(self.state.borrow().session.common()?, noted))
    }

    /// Whether the handshake is still under way: received bytes are early data, which an attacker may have replayed.
    pub fn is_handshaking(&self) -> bool {
        self.state.borrow().session.common().is_some_and(|common| common.is_handshaking())
    }

    /// The socket under it: for its addresses and figures, not for bytes.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls{:?}", self.stream)
    }
}

impl Drop for TlsStream {
    /// A server announces the end, so that its client knows that no bytes are missing; without room, it closes
    /// without the announcement.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if matches!(state.session, Session::Server(_)) && !state.has_unsent() {
            state.say_goodbye();
            let _ = state.flush(&self.stream);
        }
    }
}

pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
