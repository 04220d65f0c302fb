//! The disk tier of a zone: its directory, its state, and its record of purges.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::ban::Ban;
use super::directory::{Directory, Run};
use super::node::{BLOCK_BYTES, Disk};
use super::piece::FileBody;
use super::purges::Purges;

/// The disk tier.
pub(super) struct Tier {
    pub directory: Directory,
    pub run: OnceLock<Run>,
    /// The second until which nothing is written, in the zone's time; 0 while the disk works.
    pub resting_until_s: AtomicU32,
    pub errors: AtomicU64,
    pub skipped: AtomicU64,
    /// Whether the directory is still being read.
    pub is_cold: AtomicBool,
    record: Mutex<Option<Purges>>,
}

impl Tier {
    pub fn new(directory: Directory) -> Tier {
        Tier {
            directory,
            run: OnceLock::new(),
            resting_until_s: AtomicU32::new(0),
            errors: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            is_cold: AtomicBool::new(false),
            record: Mutex::new(None),
        }
    }

    /// Whether files are written at present: the tier was started, and the disk is not resting.
    pub fn writes(&self, second: u32) -> bool {
        self.run.get().is_some() && second >= self.resting_until_s.load(Ordering::Acquire)
    }

    /// Records a purge.
    pub fn note_purge(&self, ban: &Ban, all: impl FnOnce() -> Vec<Ban>) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = record.as_mut()
            && record.add(ban, all).is_err()
        {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Rewrites the record with these purges only.
    pub fn rewrite_purges(&self, bans: impl FnOnce() -> (Vec<Ban>, u32)) -> io::Result<()> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let (bans, newest) = bans();
        *record = Some(Purges::write(&self.directory.path, &bans, newest)?);
        Ok(())
    }

    /// Continues with the existing record.
    pub(super) fn append_purges(&self) -> io::Result<()> {
        let found = Purges::append(&self.directory.path)?;
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        Ok(())
    }

    /// The place of a spooled body, in the form of the index.
    pub fn disk_of(body: &FileBody) -> Disk {
        Disk::Blocks(blocks(body.offset + body.len))
    }
}

/// The number of blocks of a file.
pub(super) fn blocks(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(BLOCK_BYTES)).unwrap_or(u32::MAX)
}
