//! Pieces of a body: bytes in memory, or a part of a file.

use std::fs::File;
use std::sync::Arc;

/// Bytes of a body that workers share; writing them to a socket copies nothing.
pub type Chunk = Arc<[u8]>;

/// A body within a file; it stays readable after the file is removed or replaced.
#[derive(Clone)]
pub struct FileBody {
    /// The file.
    pub file: Arc<File>,
    /// The offset of the body.
    pub offset: u64,
    /// Its length.
    pub len: u64,
}

impl FileBody {
    /// A part of the body.
    #[inline]
    pub(super) fn part(&self, from: u64, len: u64) -> FileBody {
        FileBody { file: self.file.clone(), offset: self.offset + from, len }
    }
}

/// A piece of a body.
pub enum Piece {
    /// Bytes in memory: the bytes of the chunk from this position on.
    Memory(Chunk, usize),
    /// Bytes in a file.
    File(FileBody),
}

impl Piece {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Piece::Memory(chunk, skip) => chunk.len().saturating_sub(*skip) as u64,
            Piece::File(file) => file.len,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in memory.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Piece::Memory(chunk, skip) => Some(chunk.get(*skip..).unwrap_or_default()),
            Piece::File(_) => None,
        }
    }
}
