//! The first bytes of a client, which weir looks at before it decides about the session.
//!
//! weir takes them from the kernel, and the session's peer gets them later. If a server of the block has `pass`, weir
//! leaves them in the kernel (`MSG_PEEK`), because the socket that gets the connection reads it from its beginning.

use std::io;

use weir_net::{Deadline, Stream, Transport, buffer};

use crate::session::Session;

/// See the module.
pub struct Look<'s> {
    stream: &'s Transport,
    /// The socket, if the bytes stay in it.
    left_in: Option<&'s Stream>,
    /// The bytes that have arrived.
    pub bytes: Vec<u8>,
}

impl<'s> Look<'s> {
    /// Takes the bytes that were read already. The bytes of TLS cannot stay in the kernel: they are decrypted.
    pub fn new(session: &mut Session<'_>, stream: &'s Transport) -> Look<'s> {
        let bytes = std::mem::take(&mut session.early);
        let left_in = stream.bare().filter(|_| session.stream.passes && bytes.is_empty());
        Look { stream, left_in, bytes }
    }

    /// Waits for more bytes until the deadline, at most `size` in all; returns their number, 0 at the end.
    pub async fn more(&mut self, size: usize, deadline: &Deadline) -> io::Result<usize> {
        match self.left_in {
            Some(stream) => self.peek(stream, size, deadline).await,
            None => self.read(size, deadline).await,
        }
    }

    async fn read(&mut self, size: usize, deadline: &Deadline) -> io::Result<usize> {
        let room = size.saturating_sub(self.bytes.len());
        loop {
            self.bytes.reserve(room);
            match self.stream.try_read_vec(&mut self.bytes, room) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.stream.readable(deadline).await?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    async fn peek(&mut self, stream: &Stream, size: usize, deadline: &Deadline) -> io::Result<usize> {
        loop {
            let mut seen = buffer::lease(size);
            match stream.try_peek_vec(&mut seen, size) {
                Ok(0) => return Ok(0),
                Ok(count) if count > self.bytes.len() => {
                    let new = count - self.bytes.len();
                    self.bytes.clear();
                    self.bytes.extend_from_slice(&seen);
                    return Ok(new);
                }
                // The client sends nothing more.
                Ok(_) if stream.is_hup() => return Ok(0),
                Ok(_) => stream.await_more(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            drop(seen);
            stream.readable(deadline).await?;
        }
    }

    /// The part of `count` new bytes that the session has received: the relay counts bytes in the kernel later.
    pub fn counted(&self, count: usize) -> u64 {
        if self.left_in.is_some() { 0 } else { count as u64 }
    }

    /// Removes bytes from the beginning, from the kernel too.
    pub fn take(&mut self, length: usize) -> io::Result<()> {
        if let Some(stream) = self.left_in {
            let mut taken = Vec::with_capacity(length);
            // The kernel has all of these bytes, so one call returns them.
            let count = stream.try_read_vec(&mut taken, length)?;
            if count < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.bytes.drain(..length);
        Ok(())
    }

    /// The bytes that are no longer in the kernel.
    pub fn into_taken(self) -> Vec<u8> {
        if self.left_in.is_some() { Vec::new() } else { self.bytes }
    }
}
