//! Reads an object's body, wherever it is and whether it is whole.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::growth::Cut;
use super::object::{Body, Object};
use super::piece::{Chunk, Piece};

/// Reads an object's body from any offset, whether it is whole or still grows. For one task.
pub struct Reader {
    object: Arc<Object>,
    at: u64,
    noted: Cell<u64>,
    /// Its number among the readers of a growing body.
    number: Option<usize>,
}

impl Reader {
    /// From offset `from` on.
    pub fn new(object: Arc<Object>, from: u64) -> Reader {
        let number = match &object.body {
            Body::Growing(growth) => growth.enter(from),
            _ => None,
        };
        Reader { object, at: from, noted: Cell::new(0), number }
    }

    /// The object.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The start of the next piece.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Moves on by `count` bytes of the piece that were written.
    pub fn advance(&mut self, count: u64) {
        self.at = self.at.saturating_add(count);
    }

    /// The bytes from `offset` on, as many as are contiguous; `None` at the end. It returns the same until `advance`.
    ///
    /// Pending while a growing body has no more; the context's task is woken when it has more, or has ended.
    pub fn poll_piece(&self, context: &Context<'_>) -> Poll<Option<Result<Piece, Cut>>> {
        match &self.object.body {
            Body::Growing(growth) => growth.poll_at(self.at, self.number, context, &self.noted),
            Body::File(file) if self.at < file.len => {
                Poll::Ready(Some(Ok(Piece::File(file.part(self.at, file.len - self.at)))))
            }
            body => Poll::Ready(chunk_at(body.chunks(), self.at).map(|(chunk, skip)| Ok(Piece::Memory(chunk, skip)))),
        }
    }

    /// Like `poll_piece`, but waits.
    pub async fn piece(&self) -> Option<Result<Piece, Cut>> {
        std::future::poll_fn(|context| self.poll_piece(context)).await
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let (Body::Growing(growth), Some(number)) = (&self.object.body, self.number) {
            growth.leave(number);
        }
    }
}

fn chunk_at(chunks: &[Chunk], from: u64) -> Option<(Chunk, usize)> {
    let mut left = usize::try_from(from).ok()?;
    for chunk in chunks {
        if left < chunk.len() {
            return Some((chunk.clone(), left));
        }
        left -= chunk.len();
    }
    None
}
