//! A connection, whatever lies between HTTP and the socket.

use std::io::{self, IoSlice};

use weir_net::{Deadline, Transport};

/// A connection to an origin.
#[derive(Debug)]
pub struct OriginConnection {
    stream: Transport,
}

impl OriginConnection {
    /// A connection that is open.
    pub(super) fn over(stream: Transport) -> OriginConnection {
        OriginConnection { stream }
    }

    /// The connection, for another protocol.
    pub fn into_transport(self) -> Transport {
        self.stream
    }

    /// True if a kept connection has become useless.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.stream.peek_closed()
    }

    #[inline]
    pub(super) fn try_read_vec(&self, buffer: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        self.stream.try_read_vec(buffer, max)
    }

    #[inline]
    pub(super) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.try_write(bytes)
    }

    pub(super) fn try_write_both(&self, head: &[u8], body: &[u8]) -> io::Result<usize> {
        self.stream.try_write_vectored(&[IoSlice::new(head), IoSlice::new(body)])
    }

    pub(super) async fn readable(&self, deadline: &Deadline) -> Result<(), weir_net::TimedOut> {
        self.stream.readable(deadline).await
    }

    pub(super) async fn writable(&self, deadline: &Deadline) -> Result<(), weir_net::TimedOut> {
        self.stream.writable(deadline).await
    }
}
