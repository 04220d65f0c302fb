//! Plain or TLS: what speaks HTTP or WebSocket need not know which.

use crate::stream::Stream;
use crate::timer::{Deadline, TimedOut};
use crate::tls::TlsStream;
use std::io::{self, IoSlice};
use std::task::Poll;

/// A connection as protocols see it; every method is [`Stream`]'s of that name.
#[derive(Debug)]
pub enum Transport {
    /// The socket's bytes are the protocol's.
    Plain(Stream),
    /// They are encrypted. Boxed: it is ten times as large, and most connections are plain.
    Tls(Box<TlsStream>),
}

impl From<Stream> for Transport {
    fn from(stream: Stream) -> Transport {
        Transport::Plain(stream)
    }
}

impl From<TlsStream> for Transport {
    fn from(stream: TlsStream) -> Transport {
        Transport::Tls(Box::new(stream))
    }
}

impl Transport {
    /// The socket, for its addresses and figures.
    pub fn stream(&self) -> &Stream {
        match self {
            Transport::Plain(stream) => stream,
            Transport::Tls(tls) => tls.stream(),
        }
    }

    /// [`Stream::poll_readable`].
    #[inline]
    pub fn poll_readable(&self) -> Poll<()> {
        match self {
            Transport::Plain(stream) => stream.poll_readable(),
            Transport::Tls(tls) => tls.poll_readable(),
        }
    }

    /// [`Stream::poll_writable`].
    #[inline]
    pub fn poll_writable(&self) -> Poll<()> {
        self.stream().poll_writable()
    }

    /// [`Stream::readable`].
    pub async fn readable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        match self {
            Transport::Plain(stream) => stream.readable(deadline).await,
            Transport::Tls(tls) => tls.readable(deadline).await,
        }
    }

    /// [`Stream::writable`].
    pub async fn writable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        self.stream().writable(deadline).await
    }

    /// [`Stream::try_read_vec`].
    #[inline]
    pub fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.try_read_vec(buf, max),
            Transport::Tls(tls) => tls.try_read_vec(buf, max),
        }
    }

    /// [`Stream::try_write`]; after `WouldBlock` the same bytes must come again ([`TlsStream::try_write`]).
    #[inline]
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.try_write(bytes),
            Transport::Tls(tls) => tls.try_write(bytes),
        }
    }

    /// [`Stream::try_write_vectored`], with the same condition.
    #[inline]
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.try_write_vectored(pieces),
            Transport::Tls(tls) => tls.try_write_vectored(pieces),
        }
    }

    /// [`Stream::peek_closed`].
    #[inline]
    pub fn peek_closed(&self) -> bool {
        match self {
            Transport::Plain(stream) => stream.peek_closed(),
            Transport::Tls(tls) => tls.peek_closed(),
        }
    }

    /// [`Stream::shutdown_write`], announced first where that is possible.
    pub fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => stream.shutdown_write(),
            Transport::Tls(tls) => tls.shutdown_write(),
        }
    }

    /// [`Stream::shutdown`].
    pub fn shutdown(&self) {
        self.stream().shutdown();
    }
}
