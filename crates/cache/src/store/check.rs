//! Reads a long body once from end to end before any client gets it from its file, to notice damage by a disk or a
//! crash. It reads a piece at a time, so that other work gets its turn.

use std::os::unix::fs::FileExt;

use super::directory::Unread;
use super::file::{Corrupt, FileRecord};
use super::piece::FileBody;
use super::queue::QueuedRead;

/// The most long bodies checked at a time in one zone; further ones count as not stored.
pub const CHECKS_MAX: usize = 256;

/// Bytes to read of one body before other work gets its turn.
const TURN_BYTES_MAX: u64 = 1 << 20;

/// One body being checked, and the read that waits for it.
pub(super) struct Checking {
    pub load: QueuedRead,
    /// The object's number in the index.
    pub serial: u64,
    pub record: FileRecord,
    pub body: FileBody,
    done: u64,
    sum: crc32fast::Hasher,
}

impl Checking {
    pub fn new(load: QueuedRead, serial: u64, record: FileRecord, body: FileBody) -> Checking {
        Checking { load, serial, record, body, done: 0, sum: crc32fast::Hasher::new() }
    }

    /// Reads on; true once the whole body is read and is correct.
    pub fn turn(&mut self) -> Result<bool, Unread> {
        let count = (self.body.len - self.done).min(TURN_BYTES_MAX);
        let mut piece = vec![0; count as usize];
        self.body.file.read_exact_at(&mut piece, self.body.offset + self.done)?;
        self.sum.update(&piece);
        self.done += count;
        if self.done < self.body.len {
            return Ok(false);
        }
        if self.sum.clone().finalize() != self.record.body_crc {
            return Err(Corrupt::Checksum.into());
        }
        Ok(true)
    }
}
