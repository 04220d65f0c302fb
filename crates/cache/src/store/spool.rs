//! Writes a body that is too long for the memory tier to its file while it arrives; written parts leave memory. The
//! fill waits if too much is not written yet.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, mem};

use weir_net::Instant;

use super::directory::{Directory, Run, Temp};
use super::file::{self, FileRecord};
use super::flight::Flight;
use super::growth::{Cut, Growth};
use super::leader::Leader;
use super::object::{Body, Object};
use super::piece::FileBody;

/// The most bytes of one body that may be ahead of its file; beyond it `Fill::ready` waits.
pub const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// Bytes to write of one body before other work gets its turn.
const TURN_BYTES_MAX: u64 = 1 << 20;

/// The most long bodies written at a time in one zone; further ones are not stored.
pub const SPOOLS_MAX: usize = 1024;

/// The state that the fill and the thread share.
pub(super) struct Spool {
    /// The growing object.
    pub object: Arc<Object>,
    pub growth: Arc<Growth>,
    /// The flight of the fetch, and the turn of its leader.
    pub flight: (Arc<Flight>, u32),
    /// The fill sets it after the last byte.
    pub leader: Mutex<Option<(Leader, Instant)>>,
}

/// The thread's side.
pub(super) struct Writing {
    pub spool: Arc<Spool>,
    temp: Temp,
    body_at: u64,
    written: u64,
    sum: crc32fast::Hasher,
}

/// The result of a turn.
pub(super) enum SpoolProgress {
    /// The origin has sent no more bytes yet.
    Waits,
    /// There is more to write at once.
    More,
    /// The body is whole, at this place.
    Whole(FileBody),
}

impl Writing {
    /// Begins a file.
    pub fn begin(directory: &Directory, run: Run, spool: Arc<Spool>) -> io::Result<Writing> {
        let temp = directory.begin(&spool.object.label, run)?;
        let body_at = file::header_len(&spool.object.label, &spool.object.head) as u64;
        Ok(Writing { spool, temp, body_at, written: 0, sum: crc32fast::Hasher::new() })
    }

    /// Writes the available bytes. An error ends the file: the body was cut, or the disk failed.
    pub fn turn(&mut self) -> io::Result<SpoolProgress> {
        let growth = self.spool.growth.clone();
        // This must be checked first: if the fill pushes bytes between the two checks, the next turn writes them.
        let is_whole = growth.is_whole().map_err(|Cut| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let mut count = 0;
        while let Some((chunk, skip)) = growth.piece_at(self.written) {
            let bytes = chunk.get(skip..).unwrap_or_default();
            self.temp.file.write_all_at(bytes, self.body_at + self.written)?;
            self.sum.update(bytes);
            self.written += bytes.len() as u64;
            count += bytes.len() as u64;
            growth.spill(&self.temp.file, self.body_at, self.written);
            if count >= TURN_BYTES_MAX {
                return Ok(SpoolProgress::More);
            }
        }
        if !is_whole {
            return Ok(if count > 0 { SpoolProgress::More } else { SpoolProgress::Waits });
        }
        Ok(SpoolProgress::Whole(FileBody { file: self.temp.file.clone(), offset: self.body_at, len: self.written }))
    }

    /// Writes the header before the whole body, and moves the file to its place.
    pub fn keep(self, directory: &Directory, run: Run) -> io::Result<()> {
        let object = &self.spool.object;
        let record = record_of(object, self.body_at, self.written, self.sum.finalize());
        let header = file::encode(&record).ok_or(io::ErrorKind::InvalidData)?;
        self.temp.file.write_all_at(&header, 0)?;
        directory.keep(self.temp, &object.label, run)
    }
}

/// Writes an object with a whole body; returns the length of the file.
pub(super) fn write_whole(directory: &Directory, run: Run, object: &Object) -> io::Result<u64> {
    if let Body::File(body) = &object.body {
        return write_from_file(directory, run, object, body);
    }
    let body_at = file::header_len(&object.label, &object.head) as u64;
    let (mut sum, mut at) = (crc32fast::Hasher::new(), body_at);
    object.body.chunks().iter().for_each(|chunk| sum.update(chunk));
    let record = record_of(object, body_at, object.body.len(), sum.finalize());
    let mut out = file::encode(&record).ok_or(io::ErrorKind::InvalidData)?;
    let temp = directory.begin(&object.label, run)?;
    let mut chunks = object.body.chunks();
    if let [one] = chunks {
        // Writes header and body in one call.
        out.extend_from_slice(one);
        (at, chunks) = (out.len() as u64, &[]);
    }
    temp.file.write_all_at(&out, 0)?;
    for chunk in chunks {
        temp.file.write_all_at(chunk, at)?;
        at += chunk.len() as u64;
    }
    directory.keep(temp, &object.label, run)?;
    Ok(at)
}

/// Writes a new head for a body in a file: in place of the old head if it fits. A crash during the write leaves a
/// header with a wrong checksum, and the file is dropped.
fn write_from_file(directory: &Directory, run: Run, object: &Object, body: &FileBody) -> io::Result<u64> {
    let path = directory.path_of(&object.label);
    let old = directory.peek(&path).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    let mut record = record_of(object, old.body_at, old.body_len, old.body_crc);
    if let Some(header) = file::encode(&record) {
        std::fs::OpenOptions::new().write(true).open(&path)?.write_all_at(&header, 0)?;
        return Ok(record.body_at + record.body_len);
    }
    record.body_at = file::header_len(&object.label, &object.head) as u64;
    let header = file::encode(&record).ok_or(io::ErrorKind::InvalidData)?;
    let temp = directory.begin(&object.label, run)?;
    temp.file.write_all_at(&header, 0)?;
    super::directory::copy_range(&body.file, body.offset, &temp.file, record.body_at, body.len)?;
    directory.keep(temp, &object.label, run)?;
    Ok(record.body_at + record.body_len)
}

fn record_of(object: &Object, body_at: u64, body_len: u64, body_crc: u32) -> FileRecord {
    FileRecord {
        label: object.label.clone(),
        head: object.head.clone(),
        times: object.times,
        purges: object.born,
        soft_purged: object.is_soft_purged(),
        body_at,
        body_len,
        body_crc,
    }
}

impl Spool {
    /// Gives the file up: the body continues for its readers, and later requests fetch it again.
    pub fn give_up(&self) {
        let (flight, turn) = &self.flight;
        flight.passed(*turn);
        self.growth.go_adrift();
    }

    /// Takes the leader, once the fill has pushed its last byte.
    pub fn take_leader(&self) -> Option<(Leader, Instant)> {
        mem::take(&mut *self.leader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last byte was pushed: the thread finishes the file.
    pub fn give_leader(&self, leader: Leader, now: Instant) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = Some((leader, now));
    }
}
