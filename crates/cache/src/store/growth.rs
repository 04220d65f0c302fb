//! A body that grows while it is read: one fill writes, any number of readers on any worker follow.
//!
//! Pieces that are in a file may leave memory, so a long body needs little of it. Invariant: pushed bytes can be read
//! from memory or from the file until the last reader is gone.
//!
//! If neither memory nor a file has room for a body, the body goes adrift: weir does not keep it. Its current readers
//! read it to the end, and weir frees the parts that all of them have read. A later request fetches the body again.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::piece::{Chunk, FileBody, Piece};

/// Pieces smaller than this are merged with the one before.
const MERGE_BYTES: usize = 4 << 10;

/// The largest size of a merged piece.
const MERGED_BYTES_MAX: usize = 16 << 10;

/// The most tasks that wait for one body's next bytes; for later ones the body counts as cut.
pub const READERS_MAX: usize = 16_384;

/// The origin or the memory failed before the end of the body: the bytes read so far are all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut;

/// A body between its first byte and its last.
pub struct Growth(Mutex<Grown>);

struct Grown {
    /// Pieces in memory with their offsets in the body; consecutive up to `len`.
    pieces: VecDeque<(u64, Chunk)>,
    len: u64,
    end: End,
    /// The file of the parts that left memory.
    file: Option<FileBody>,
    /// The body is not kept: see above.
    is_adrift: bool,
    /// The position of each reader; `None` for a reader that has left.
    places: Vec<Option<u64>>,
    readers: Vec<Waker>,
    /// How often the readers were woken: a reader noted in this round need not be noted again.
    round: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Whole,
    Cut,
}

impl Growth {
    pub(super) fn new() -> Growth {
        Growth(Mutex::new(Grown {
            pieces: VecDeque::new(),
            len: 0,
            end: End::Open,
            file: None,
            is_adrift: false,
            places: Vec::new(),
            readers: Vec::new(),
            round: 1,
        }))
    }

    /// The length so far.
    pub fn len(&self) -> u64 {
        self.lock().len
    }

    /// Whether it is empty so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes at its end and wakes the waiting readers.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut grown = self.lock();
        if grown.end != End::Open || bytes.is_empty() {
            return;
        }
        let at = grown.len;
        match grown.pieces.back_mut() {
            Some((_, last)) if bytes.len() < MERGE_BYTES && last.len() + bytes.len() <= MERGED_BYTES_MAX => {
                *last = [&last[..], bytes].concat().into();
            }
            _ => grown.pieces.push_back((at, bytes.into())),
        }
        grown.len += bytes.len() as u64;
        grown.let_go();
        wake(grown);
    }

    /// Neither memory nor a file can take it: it continues only for its readers.
    pub(super) fn go_adrift(&self) {
        let mut grown = self.lock();
        grown.is_adrift = true;
        grown.let_go();
        wake(grown);
    }

    /// Whether the body is adrift.
    pub(super) fn is_adrift(&self) -> bool {
        self.lock().is_adrift
    }

    /// Whether it has a reader.
    pub(super) fn is_read(&self) -> bool {
        self.lock().places.iter().any(Option::is_some)
    }

    /// Notes a reader; `None` if there are too many: nothing waits for such a reader.
    pub(super) fn enter(&self, at: u64) -> Option<usize> {
        let mut grown = self.lock();
        let free = grown.places.iter().position(Option::is_none);
        match free {
            Some(number) => *grown.places.get_mut(number)? = Some(at),
            None if grown.places.len() < READERS_MAX => grown.places.push(Some(at)),
            None => return None,
        }
        free.or(grown.places.len().checked_sub(1))
    }

    /// Removes a reader.
    pub(super) fn leave(&self, number: usize) {
        let mut grown = self.lock();
        if let Some(place) = grown.places.get_mut(number) {
            *place = None;
        }
        if grown.let_go() {
            wake(grown);
        }
    }

    /// Ends the body, whole or not. The first end stays.
    pub(super) fn end(&self, whole: bool) {
        let mut grown = self.lock();
        if grown.end == End::Open {
            grown.end = if whole { End::Whole } else { End::Cut };
        }
        wake(grown);
    }

    /// Calls `make` with the pieces and the length of the whole body; `None` if the body was cut, has not ended, or is
    /// no longer completely in memory.
    pub(super) fn whole<T>(&self, make: impl FnOnce(&VecDeque<(u64, Chunk)>, u64) -> T) -> Option<T> {
        let grown = self.lock();
        let starts_in_memory = grown.pieces.front().is_none_or(|(at, _)| *at == 0);
        if grown.end != End::Whole || !starts_in_memory || (grown.pieces.is_empty() && grown.len > 0) {
            return None;
        }
        Some(make(&grown.pieces, grown.len))
    }

    /// The piece in memory with offset `from`, for the writer of the file; `None` past the end so far.
    pub(super) fn piece_at(&self, from: u64) -> Option<(Chunk, usize)> {
        let grown = self.lock();
        grown.in_memory(from)
    }

    /// Whether the last byte was pushed; an error if it never will be.
    pub(super) fn is_whole(&self) -> Result<bool, Cut> {
        match self.lock().end {
            End::Open => Ok(false),
            End::Whole => Ok(true),
            End::Cut => Err(Cut),
        }
    }

    /// Frees memory: `written` bytes of the body are in the file.
    pub(super) fn spill(&self, file: &Arc<File>, offset: u64, written: u64) {
        let mut grown = self.lock();
        grown.file = Some(FileBody { file: file.clone(), offset, len: written });
        while grown.pieces.front().is_some_and(|(at, chunk)| at + chunk.len() as u64 <= written) {
            grown.pieces.pop_front();
        }
        wake(grown);
    }

    /// Pending while more than `bytes` of it are in memory, unless it has ended.
    pub(super) fn poll_below(&self, bytes: u64, context: &Context<'_>, noted: &Cell<u64>) -> Poll<()> {
        let mut grown = self.lock();
        let ahead = grown.pieces.front().map_or(0, |(at, _)| grown.len - at);
        if ahead <= bytes || grown.end != End::Open || !grown.wait(context, noted) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// The piece at `from`; pending while the origin has not sent it: then `context`'s task is woken.
    pub(super) fn poll_at(
        &self,
        from: u64,
        reader: Option<usize>,
        context: &Context<'_>,
        noted: &Cell<u64>,
    ) -> Poll<Option<Result<Piece, Cut>>> {
        let mut grown = self.lock();
        if let Some(place) = reader.and_then(|number| grown.places.get_mut(number)) {
            *place = Some(from);
        }
        if grown.let_go() {
            wake(grown);
            grown = self.lock();
        }
        if let Some((chunk, skip)) = grown.in_memory(from) {
            return Poll::Ready(Some(Ok(Piece::Memory(chunk, skip))));
        }
        if let Some(file) = &grown.file
            && from < file.len
        {
            return Poll::Ready(Some(Ok(Piece::File(file.part(from, file.len - from)))));
        }
        // The wanted bytes have left memory, or the reader waits for a whole body that will not be kept.
        if from < grown.len || (grown.is_adrift && from == u64::MAX) {
            return Poll::Ready(Some(Err(Cut)));
        }
        match grown.end {
            End::Whole => return Poll::Ready(None),
            End::Cut => return Poll::Ready(Some(Err(Cut))),
            End::Open => {}
        }
        if !grown.wait(context, noted) {
            return Poll::Ready(Some(Err(Cut)));
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Grown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grown {
    /// Notes a waiting task, once per round; false if there are too many.
    fn wait(&mut self, context: &Context<'_>, noted: &Cell<u64>) -> bool {
        if noted.replace(self.round) == self.round {
            return true;
        }
        let fits = self.readers.len() < READERS_MAX;
        if fits {
            self.readers.push(context.waker().clone());
        }
        fits
    }

    /// Frees the pieces of an adrift body that all readers have read; returns whether there were any.
    fn let_go(&mut self) -> bool {
        if !self.is_adrift {
            return false;
        }
        let least = self.places.iter().flatten().min().copied().unwrap_or(u64::MAX);
        let before = self.pieces.len();
        while self.pieces.front().is_some_and(|(at, chunk)| at + chunk.len() as u64 <= least) {
            self.pieces.pop_front();
        }
        self.pieces.len() != before
    }

    fn in_memory(&self, from: u64) -> Option<(Chunk, usize)> {
        let after = self.pieces.partition_point(|(at, _)| *at <= from);
        let (at, chunk) = self.pieces.get(after.checked_sub(1)?)?;
        let skip = usize::try_from(from - at).ok()?;
        (skip < chunk.len()).then(|| (chunk.clone(), skip))
    }
}

/// Wakes the readers after releasing the lock.
fn wake(mut grown: MutexGuard<'_, Grown>) {
    let readers = std::mem::take(&mut grown.readers);
    grown.round += 1;
    drop(grown);
    readers.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::super::object::Body;
    use super::*;

    fn poll(growth: &Growth, at: u64) -> Poll<Option<Result<Vec<u8>, Cut>>> {
        growth
            .poll_at(at, None, &Context::from_waker(Waker::noop()), &Cell::new(0))
            .map(|piece| piece.map(|piece| piece.map(|piece| piece.bytes().unwrap_or(b"in a file").to_vec())))
    }

    #[test]
    fn readers_follow_from_any_place_until_the_end() {
        let growth = Growth::new();
        assert!(poll(&growth, 0).is_pending());
        growth.push(b"one");
        growth.push(&[b'x'; MERGE_BYTES]);
        assert_eq!(poll(&growth, 1), Poll::Ready(Some(Ok(b"ne".to_vec()))));
        assert_eq!(poll(&growth, 3), Poll::Ready(Some(Ok(vec![b'x'; MERGE_BYTES]))));
        assert!(poll(&growth, 3 + MERGE_BYTES as u64).is_pending());
        assert!(Body::of(&growth).is_none(), "not ended");
        growth.end(true);
        assert_eq!(poll(&growth, 3 + MERGE_BYTES as u64), Poll::Ready(None));
        growth.push(b"too late");
        let body = Body::of(&growth).unwrap();
        assert_eq!((body.len(), body.chunks().len()), (3 + MERGE_BYTES as u64, 1));
    }

    #[test]
    fn small_pieces_are_put_together() {
        let growth = Growth::new();
        for _ in 0..100 {
            growth.push(b"0123456789");
        }
        assert_eq!(growth.lock().pieces.len(), 1);
        assert_eq!(growth.lock().pieces.front().unwrap().1.len(), 1000);
    }

    #[test]
    fn a_cut_body_gives_what_it_has_and_then_says_so() {
        let growth = Growth::new();
        growth.push(b"half");
        growth.end(false);
        growth.end(true);
        assert_eq!(poll(&growth, 0), Poll::Ready(Some(Ok(b"half".to_vec()))));
        assert_eq!(poll(&growth, 4), Poll::Ready(Some(Err(Cut))));
        assert!(Body::of(&growth).is_none());
    }

    #[test]
    fn adrift_it_is_held_for_the_slowest_reader_and_no_longer() {
        let growth = Growth::new();
        let noted = Cell::new(0);
        let context = Context::from_waker(Waker::noop());
        let poll_as = |reader, at| growth.poll_at(at, reader, &context, &noted).is_ready();
        let (slow, fast) = (growth.enter(0), growth.enter(0));
        let whole = growth.enter(u64::MAX);
        growth.push(&[1; 8192]);
        growth.push(&[2; 8192]);
        assert!(!poll_as(fast, 16384) && growth.lock().pieces.len() == 2);
        growth.go_adrift();
        assert_eq!(growth.lock().pieces.len(), 2, "one has read nothing yet");
        assert!(poll_as(slow, 8192));
        assert_eq!(growth.lock().pieces.len(), 1);
        assert_eq!(poll(&growth, 0), Poll::Ready(Some(Err(Cut))), "who comes late");
        assert_eq!(poll(&growth, u64::MAX), Poll::Ready(Some(Err(Cut))), "who waits for what is kept");
        // A reader in the middle of a piece keeps the piece.
        assert!(poll_as(slow, 10000));
        assert_eq!(growth.lock().pieces.len(), 1);
        growth.leave(slow.unwrap());
        assert_eq!(growth.lock().pieces.len(), 0);
        growth.push(&[3; 8192]);
        assert!(growth.is_read() && poll_as(fast, 16384));
        growth.end(true);
        assert_eq!(poll(&growth, 24576), Poll::Ready(None));
        [fast, whole].into_iter().flatten().for_each(|number| growth.leave(number));
        assert!(!growth.is_read() && Body::of(&growth).is_none());
    }

    #[test]
    fn what_is_in_the_file_leaves_memory_and_stays_readable() {
        let growth = Growth::new();
        growth.push(&[1; 8192]);
        growth.push(&[2; 8192]);
        let file = Arc::new(File::open("/dev/null").unwrap());
        growth.spill(&file, 100, 8192);
        assert_eq!(growth.lock().pieces.len(), 1);
        assert!(growth.poll_below(8191, &Context::from_waker(Waker::noop()), &Cell::new(0)).is_pending());
        assert!(growth.poll_below(8192, &Context::from_waker(Waker::noop()), &Cell::new(0)).is_ready());
        let Poll::Ready(Some(Ok(Piece::File(part)))) =
            growth.poll_at(192, None, &Context::from_waker(Waker::noop()), &Cell::new(0))
        else {
            panic!("not from the file");
        };
        assert_eq!((part.offset, part.len), (292, 8000));
        assert_eq!(poll(&growth, 8192), Poll::Ready(Some(Ok(vec![2; 8192]))));
        growth.end(true);
        assert!(Body::of(&growth).is_none(), "not all of it is in memory");
    }
}
