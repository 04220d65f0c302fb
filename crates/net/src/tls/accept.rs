//! The server's side of the beginning: whether the client speaks TLS, its hello, and then the session.

use super::error::Failure;
use super::hello::{self, ClientHello, HelloOpening};
use super::records::{Session, TlsState};
use super::server::{Noted, Server, noting};
use super::stream::{TlsStream, is_passing};
use crate::buffer::lease;
use crate::stream::Stream;
use crate::timer::Deadline;
use rustls::server::UnbufferedServerConnection;
use std::cell::RefCell;
use std::io;

/// How a connection begins.
#[derive(Debug)]
pub enum Beginning {
    /// Not with TLS: its bytes belong to the protocol, and the bytes already read are read again.
    Plain,
    /// With a ClientHello; `None` if it cannot be read; [`TlsStream::handshake`] will report why.
    Tls(Option<Box<ClientHello>>),
}

/// Why weir refuses a client before a handshake (RFC 8446 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// There is no certificate for the requested name.
    HandshakeFailure = 40,
    /// The server does not speak a version that the client may use here.
    ProtocolVersion = 70,
    /// An internal error.
    InternalError = 80,
    /// No server of that name speaks TLS.
    UnrecognizedName = 112,
}

impl TlsStream {
    /// A connection that was accepted; bytes pass unchanged until [`TlsStream::begin`].
    pub fn accepted(stream: Stream) -> TlsStream {
        TlsStream { stream, state: RefCell::new(TlsState::new(Session::Raw, None)) }
    }

    /// Waits for the client's first message, of which `early` has been read already.
    ///
    /// Fails with the socket's error, with `TimedOut`, or with `UnexpectedEof`.
    pub async fn hear(&self, early: &[u8], deadline: &Deadline) -> io::Result<Beginning> {
        if !early.is_empty() {
            self.state.borrow_mut().incoming.get_or_insert_with(|| lease(early.len())).extend_from_slice(early);
        }
        loop {
            let opening = match &self.state.borrow().incoming {
                Some(bytes) => hello::open(bytes),
                None => HelloOpening::Partial,
            };
            match opening {
                HelloOpening::Hello(hello) => return Ok(Beginning::Tls(Some(hello))),
                HelloOpening::Broken => return Ok(Beginning::Tls(None)),
                HelloOpening::NotTls => {
                    let mut state = self.state.borrow_mut();
                    state.surplus = state.incoming.take().map(|bytes| (bytes, 0));
                    return Ok(Beginning::Plain);
                }
                HelloOpening::Partial => {}
            }
            let read = self.state.borrow_mut().receive(&self.stream);
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if is_passing(&error) => self.stream.readable(deadline).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Speaks TLS from here on, with the settings of `server`; [`TlsStream::handshake`] answers the hello.
    pub fn begin(&self, server: &Server) -> Result<(), Failure> {
        let session = UnbufferedServerConnection::new(server.config.clone());
        self.state.borrow_mut().session = Session::Server(session.map_err(|error| Failure::of(&error, false))?);
        Ok(())
    }

    /// Shakes hands as [`TlsStream::handshake`], and returns the facts noted meanwhile.
    pub async fn shake(&self, deadline: &Deadline) -> (io::Result<()>, Noted) {
        noting(self.handshake(deadline)).await
    }

    /// Refuses the client with an alert, if there is room to send it.
    pub fn refuse(&self, alert: Alert) {
        // A record of two bytes: the level "fatal", and the reason.
        let _ = self.stream.try_write(&[21, 3, 3, 0, 2, 2, alert as u8]);
    }
}
