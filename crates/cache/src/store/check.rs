//! A long body read once from end to end before anybody gets it from its file: what a disk or a crash made of it is
//! noticed. A piece at a time, so that others have their turn.

use std::os::unix::fs::FileExt;

use super::directory::Unread;
use super::file::{Corrupt, Record};
use super::object::FileBody;
use super::queue::Load;

/// Long bodies checked at a time in one zone; further ones count as not there.
pub const CHECKS_MAX: usize = 256;

/// Bytes read for one body before others have their turn.
const TURN_BYTES_MAX: u64 = 1 << 20;

/// One body being checked, and who waits for it.
pub(super) struct Checking {
    pub load: Load,
    /// The object's number in the index.
    pub serial: u64,
    pub record: Record,
    pub body: FileBody,
    done: u64,
    sum: crc32fast::Hasher,
}

impl Checking {
    pub fn new(load: Load, serial: u64, record: Record, body: FileBody) -> Checking {
        Checking { load, serial, record, body, done: 0, sum: crc32fast::Hasher::new() }
    }

    /// Reads on; true once it is whole, and what was written.
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
