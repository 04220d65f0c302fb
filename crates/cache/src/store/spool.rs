//! A body too long for the memory tier on its way to its file: written as it comes, and leaving memory as it is
//! written. What has not been written yet is bounded by making the fill wait.

use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, mem};

use weir_net::Instant;

use super::directory::{Directory, Run, Temp};
use super::file::{self, Record};
use super::fill::Leader;
use super::flight::Flight;
use super::growth::{Cut, Growth};
use super::object::{Body, FileBody, Object};

/// Bytes of one body that may be ahead of its file; then `Fill::ready` waits.
pub const AHEAD_BYTES_MAX: u64 = 4 << 20;

/// Bytes written for one body before others have their turn.
const TURN_BYTES_MAX: u64 = 1 << 20;

/// Long bodies written at a time in one zone; further ones are not stored.
pub const SPOOLS_MAX: usize = 1024;

/// What the fill and the thread share.
pub(super) struct Spool {
    /// The object while it grows.
    pub object: Arc<Object>,
    pub growth: Arc<Growth>,
    /// Where others find who fetches it, and whose turn that is.
    pub flight: (Arc<Flight>, u32),
    /// Given by the fill with the last byte.
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

/// How far one got in its turn.
pub(super) enum Progress {
    /// It waits for its origin.
    Waits,
    /// There is more to write at once.
    More,
    /// It is whole, and where its body is.
    Whole(FileBody),
}

impl Writing {
    /// Begins a file.
    pub fn begin(directory: &Directory, run: Run, spool: Arc<Spool>) -> io::Result<Writing> {
        let temp = directory.begin(&spool.object.label, run)?;
        let body_at = file::header_len(&spool.object.label, &spool.object.head) as u64;
        Ok(Writing { spool, temp, body_at, written: 0, sum: crc32fast::Hasher::new() })
    }

    /// Writes what has come. An error ends it: the body was cut, or the disk fails.
    pub fn turn(&mut self) -> io::Result<Progress> {
        let growth = self.spool.growth.clone();
        // Asked first: what is pushed between the two questions is seen by the next turn.
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
                return Ok(Progress::More);
            }
        }
        if !is_whole {
            return Ok(if count > 0 { Progress::More } else { Progress::Waits });
        }
        Ok(Progress::Whole(FileBody { file: self.temp.file.clone(), offset: self.body_at, len: self.written }))
    }

    /// Writes the header in front of the whole body, and puts the file in its place.
    pub fn keep(self, directory: &Directory, run: Run) -> io::Result<()> {
        let object = &self.spool.object;
        let record = record_of(object, self.body_at, self.written, self.sum.finalize());
        let header = file::encode(&record).ok_or(io::ErrorKind::InvalidData)?;
        self.temp.file.write_all_at(&header, 0)?;
        directory.keep(self.temp, &object.label, run)
    }
}

/// Writes an object whose body is whole; the length of the file.
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
        // Header and body in one call.
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

/// Another head for a body that is in a file: written in the old one's place where it fits. A crash between leaves a
/// header whose checksum is wrong, and the file is dropped.
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

fn record_of(object: &Object, body_at: u64, body_len: u64, body_crc: u32) -> Record {
    Record {
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
    /// The file is not to be: the body goes on for those who read it, and who comes now fetches it.
    pub fn give_up(&self) {
        let (flight, turn) = &self.flight;
        flight.passed(*turn);
        self.growth.go_adrift();
    }

    /// The leader, once the fill has given its last byte.
    pub fn take_leader(&self) -> Option<(Leader, Instant)> {
        mem::take(&mut *self.leader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The last byte has been pushed: the thread does the rest.
    pub fn give_leader(&self, leader: Leader, now: Instant) {
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = Some((leader, now));
    }
}
