//! Both halves of a stream of HTTP/2 or HTTP/3: how far the peer's message has come, and what is still to be sent.

use weir_net::{Lease, buffer};
use weir_wire::Known;
use weir_wire::section::SectionEncoder;

use crate::hold::frames::Block;

/// How far the peer's message has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// More may follow.
    Open,
    /// All of it has arrived, and it keeps the rules of a message.
    Whole,
    /// It breaks the rules behind its head. The end of the stream does not make it whole (RFC 9113 §8.1.1, RFC 9114
    /// §4.1.2).
    Malformed,
}

/// The part that is still to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The head, or a body of unknown length.
    Open,
    /// This much of a body.
    Left(u64),
    /// Nothing: the peer has the end.
    Done,
}

/// Bytes of a body that have arrived and that nobody has read. An empty one holds no memory.
pub struct Inbox {
    bytes: Lease,
    read: usize,
}

impl Inbox {
    /// An empty one.
    pub const fn new() -> Inbox {
        Inbox { bytes: Lease::none(), read: 0 }
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.read
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Adds a piece; the caller bounds how many bytes may wait.
    pub fn push(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        if self.bytes.capacity() == 0 {
            self.bytes = buffer::lease(piece.len());
        }
        // A slow reader may never find the buffer empty, so the bytes it has read make room.
        if self.read >= self.bytes.len() / 2 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
        self.bytes.extend_from_slice(piece);
    }

    /// Appends at most `max` bytes to `buf`, and forgets them; returns how many.
    pub fn take(&mut self, buf: &mut Vec<u8>, max: usize) -> usize {
        let unread = self.bytes.get(self.read..).unwrap_or_default();
        let some = unread.get(..max).unwrap_or(unread);
        buf.extend_from_slice(some);
        let count = some.len();
        self.read += count;
        if self.read == self.bytes.len() {
            *self = Inbox::new();
        }
        count
    }
}

/// A block of fields with the compression of a connection.
pub struct Compressed<'b, E>(pub &'b mut E, pub &'b mut Vec<u8>);

impl<E: SectionEncoder> Block for Compressed<'_, E> {
    fn status(&mut self, status: u16) {
        self.0.status(status, self.1);
    }

    fn field(&mut self, name: &[u8], value: &[u8], known: Option<Known>) {
        self.0.field(name, value, known, self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_gives_all_bytes_once_in_order_and_keeps_no_memory() {
        let (mut inbox, mut all, mut taken) = (Inbox::new(), Vec::new(), Vec::new());
        for round in 0..1000_usize {
            let piece = vec![round as u8; round * 7 % 50];
            inbox.push(&piece);
            all.extend_from_slice(&piece);
            let before = taken.len();
            assert_eq!(inbox.take(&mut taken, round * 11 % 60), taken.len() - before);
            assert_eq!((inbox.len(), inbox.is_empty()), (all.len() - taken.len(), all.len() == taken.len()));
        }
        inbox.take(&mut taken, usize::MAX);
        assert!(taken == all && inbox.bytes.capacity() == 0);
    }
}
