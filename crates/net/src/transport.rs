//! A connection as code for HTTP or WebSocket sees it: plain, TLS, or one of many streams of a connection.

use crate::stream::Stream;
use crate::timer::{Deadline, TimedOut};
use crate::tls::TlsStream;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

/// A connection, independent of its kind; every method does the same as the method of that name in [`Stream`].
#[derive(Debug)]
pub enum Transport {
    /// The socket's bytes are the protocol's.
    Plain(Stream),
    /// They are encrypted. Boxed: it is ten times as large, and most connections are plain.
    Tls(Box<TlsStream>),
    /// Its bytes share a connection with other streams (HTTP/2).
    Carried(Rc<dyn Carried>),
}

/// A stream of bytes that shares a connection with others. Methods without a description are as in [`Stream`].
pub trait Carried: fmt::Debug {
    /// The TCP connection or the Unix socket that it shares; `None` if its bytes travel in datagrams.
    fn socket(&self) -> Option<&Stream>;
    /// Whether the connection is encrypted.
    fn is_secure(&self) -> bool;
    /// Whether its bytes may be a replay: they came before the handshake was complete (RFC 8446 §8).
    fn is_early(&self) -> bool {
        false
    }
    /// [`Stream::poll_readable`].
    fn poll_readable(&self) -> Poll<()>;
    /// [`Stream::poll_writable`].
    fn poll_writable(&self) -> Poll<()>;
    /// [`Stream::poll_closed`]: nothing can be sent on it any more.
    fn poll_closed(&self) -> Poll<()>;
    /// [`Stream::try_read_vec`].
    fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize>;
    /// [`Stream::try_write_vectored`].
    fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
    /// [`Stream::shutdown_write`]: the end, in order.
    fn shutdown_write(&self) -> io::Result<()>;
    /// Ends this stream, and only it, at once.
    fn shutdown(&self);
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
    /// The socket, for its addresses and figures; `None` if its bytes travel in datagrams.
    pub fn socket(&self) -> Option<&Stream> {
        match self {
            Transport::Plain(stream) => Some(stream),
            Transport::Tls(tls) => Some(tls.stream()),
            Transport::Carried(carried) => carried.socket(),
        }
    }

    /// Whether the bytes are encrypted.
    pub fn is_secure(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(_) => true,
            Transport::Carried(carried) => carried.is_secure(),
        }
    }

    /// Whether TLS failed, so that nothing more can be read or written; always false without TLS of its own.
    pub fn has_failed(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.has_failed())
    }

    /// [`Stream::poll_readable`].
    #[inline]
    pub fn poll_readable(&self) -> Poll<()> {
        match self {
            Transport::Plain(stream) => stream.poll_readable(),
            Transport::Tls(tls) => tls.poll_readable(),
            Transport::Carried(carried) => carried.poll_readable(),
        }
    }

    /// [`Stream::poll_writable`].
    #[inline]
    pub fn poll_writable(&self) -> Poll<()> {
        match self {
            Transport::Plain(stream) => stream.poll_writable(),
            Transport::Tls(tls) => tls.poll_writable(),
            Transport::Carried(carried) => carried.poll_writable(),
        }
    }

    /// [`Stream::poll_closed`].
    #[inline]
    pub fn poll_closed(&self) -> Poll<()> {
        match self {
            Transport::Plain(stream) => stream.poll_closed(),
            Transport::Tls(tls) => tls.stream().poll_closed(),
            Transport::Carried(carried) => carried.poll_closed(),
        }
    }

    /// [`Stream::readable`].
    pub async fn readable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        poll_fn(|_| match self.poll_readable() {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => deadline.poll_expired().map(|()| Err(TimedOut)),
        })
        .await
    }

    /// [`Stream::writable`].
    pub async fn writable(&self, deadline: &Deadline) -> Result<(), TimedOut> {
        poll_fn(|_| match self.poll_writable() {
            Poll::Ready(()) => Poll::Ready(Ok(())),
            Poll::Pending => deadline.poll_expired().map(|()| Err(TimedOut)),
        })
        .await
    }

    /// [`Stream::try_read_vec`].
    #[inline]
    pub fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.try_read_vec(buf, max),
            Transport::Tls(tls) => tls.try_read_vec(buf, max),
            Transport::Carried(carried) => carried.try_read_vec(buf, max),
        }
    }

    /// [`Stream::try_write`]; after `WouldBlock` the same bytes must come again ([`TlsStream::try_write`]).
    #[inline]
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.try_write(bytes),
            Transport::Tls(tls) => tls.try_write(bytes),
            Transport::Carried(carried) => carried.try_write_vectored(&[IoSlice::new(bytes)]),
        }
    }

    /// Writes as many bytes from `start` on as the other side takes now, and moves `start`; `true` if none is left. Otherwise
    /// the current task is woken when there is room.
    pub fn try_write_rest(&self, bytes: &[u8], start: &mut usize) -> io::Result<bool> {
        while let Some(rest) = bytes.get(*start..).filter(|rest| !rest.is_empty()) {
            match self.try_write(rest) {
                Ok(count) => *start += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.poll_writable().is_pending() {
                        return Ok(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Writes all bytes; waits for room.
    ///
    /// # Errors
    /// Those of the connection; `ETIMEDOUT` if the deadline passes first.
    pub async fn write_all(&self, bytes: &[u8], deadline: &Deadline) -> io::Result<()> {
        let mut start = 0;
        while !self.try_write_rest(bytes, &mut start)? {
            self.writable(deadline).await?;
        }
        Ok(())
    }

    /// Waits for bytes, and appends at most `max` of them; 0 is the end of the stream.
    ///
    /// # Errors
    /// As [`Transport::write_all`].
    pub async fn read_more(&self, buf: &mut Vec<u8>, max: usize, deadline: &Deadline) -> io::Result<usize> {
        loop {
            match self.try_read_vec(buf, max) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable(deadline).await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// [`Stream::try_write_vectored`], with the same condition.
    #[inline]
    pub fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Transport::Plain(stream) => stream.try_write_vectored(pieces),
            Transport::Tls(tls) => tls.try_write_vectored(pieces),
            Transport::Carried(carried) => carried.try_write_vectored(pieces),
        }
    }

    /// [`Stream::peek_closed`].
    #[inline]
    pub fn peek_closed(&self) -> bool {
        match self {
            Transport::Plain(stream) => stream.peek_closed(),
            Transport::Tls(tls) => tls.peek_closed(),
            Transport::Carried(carried) => carried.poll_closed().is_ready(),
        }
    }

    /// The socket, if the kernel may send a file over it: nothing wraps the bytes.
    pub fn bare(&self) -> Option<&Stream> {
        match self {
            Transport::Plain(stream) => Some(stream),
            Transport::Tls(_) | Transport::Carried(_) => None,
        }
    }

    /// Makes a close destroy unsent bytes: [`Stream::set_linger_zero`]; ends a stream that shares its connection.
    pub fn reset(&self) {
        match self {
            Transport::Carried(carried) => carried.shutdown(),
            // If the reset fails, a normal close remains.
            Transport::Plain(stream) => drop(stream.set_linger_zero()),
            Transport::Tls(tls) => drop(tls.stream().set_linger_zero()),
        }
    }

    /// [`Stream::shutdown_write`], announced first if possible.
    pub fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Transport::Plain(stream) => stream.shutdown_write(),
            Transport::Tls(tls) => tls.shutdown_write(),
            Transport::Carried(carried) => carried.shutdown_write(),
        }
    }

    /// [`Stream::shutdown`].
    pub fn shutdown(&self) {
        match self {
            Transport::Carried(carried) => carried.shutdown(),
            Transport::Plain(stream) => stream.shutdown(),
            Transport::Tls(tls) => tls.stream().shutdown(),
        }
    }
}
