//! Carries the body of a subrequest's answer from its exchange to the exchange that inserts it.
//!
//! For the subrequest the pipe is its client's connection: it writes, and it waits while the pipe is full. Both ends are
//! tasks of one worker. Invariant: a pipe holds at most [`PIPE_BYTES_MAX`] bytes, or the limit set for it.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;
use std::{fmt, mem};

use weir_net::worker::Task;
use weir_net::{Carried, Stream};

use crate::hold::conn::shared::Shared;
use crate::text::slots::VariableId;

/// Bytes that wait in one pipe, at most.
pub const PIPE_BYTES_MAX: usize = 64 << 10;

/// How far the answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More may come.
    Open,
    /// It is complete.
    Whole,
    /// It broke off.
    Broken,
}

/// A pipe.
pub struct Pipe {
    /// The connection that the answer is for: the facts about the socket are its facts.
    parent: Rc<Shared>,
    bytes: RefCell<Vec<u8>>,
    progress: Cell<Progress>,
    /// The limit for an answer that is kept in memory as a whole.
    whole_max: Cell<Option<usize>>,
    /// The answer exceeded that limit.
    is_too_big: Cell<bool>,
    /// Nobody reads any more.
    is_left: Cell<bool>,
    status: Cell<u16>,
    changes: RefCell<Vec<(VariableId, Vec<u8>)>>,
    reader: Cell<Task>,
    writer: Cell<Task>,
}

impl Pipe {
    /// An empty pipe, for an answer that becomes part of an answer on this connection.
    pub fn new(parent: Rc<Shared>) -> Rc<Pipe> {
        Rc::new(Pipe {
            parent,
            bytes: RefCell::default(),
            progress: Cell::new(Progress::Open),
            whole_max: Cell::new(None),
            is_too_big: Cell::new(false),
            is_left: Cell::new(false),
            status: Cell::new(0),
            changes: RefCell::default(),
            reader: Cell::new(Task::NONE),
            writer: Cell::new(Task::NONE),
        })
    }

    /// Takes the bytes that have arrived.
    pub fn take(&self) -> Vec<u8> {
        let bytes = mem::take(&mut *self.bytes.borrow_mut());
        if !bytes.is_empty() {
            self.writer.get().wake();
        }
        bytes
    }

    /// How far the answer has come; the current task is woken when that changes and when bytes arrive.
    pub fn watch(&self) -> Progress {
        self.reader.set(Task::current());
        self.progress.get()
    }

    /// The status of the answer, once it has ended.
    pub fn status(&self) -> u16 {
        self.status.get()
    }

    /// The variables that the subrequest changed, once it has ended; the second call returns none.
    pub fn take_changes(&self) -> Vec<(VariableId, Vec<u8>)> {
        mem::take(&mut *self.changes.borrow_mut())
    }

    /// The reader goes: the subrequest sees a client that left.
    pub fn leave(&self) {
        self.is_left.set(true);
        self.bytes.take();
        self.writer.get().wake();
    }

    /// Lets the answer be kept as a whole, if it has at most that many bytes.
    pub fn keep_whole(&self, max: usize) {
        self.whole_max.set(Some(max));
    }

    /// Whether the answer exceeded the limit for answers that are kept as a whole.
    pub fn is_too_big(&self) -> bool {
        self.is_too_big.get()
    }

    /// Ends the answer.
    pub fn end(&self, is_whole: bool, status: u16, changes: Vec<(VariableId, Vec<u8>)>) {
        self.status.set(status);
        self.changes.replace(changes);
        self.finish(if is_whole { Progress::Whole } else { Progress::Broken });
    }

    /// Ends an answer whose task ended without a word.
    pub fn abandon(&self) {
        if self.progress.get() == Progress::Open {
            self.finish(Progress::Broken);
        }
    }

    fn finish(&self, progress: Progress) {
        self.progress.set(progress);
        self.reader.get().wake();
    }

    fn room(&self) -> usize {
        self.whole_max.get().unwrap_or(PIPE_BYTES_MAX).saturating_sub(self.bytes.borrow().len())
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipe({:?}, {} bytes)", self.progress.get(), self.bytes.borrow().len())
    }
}

impl Carried for Pipe {
    fn socket(&self) -> Option<&Stream> {
        self.parent.stream.socket()
    }

    fn is_secure(&self) -> bool {
        self.parent.stream.is_secure()
    }

    fn poll_readable(&self) -> Poll<()> {
        Poll::Pending
    }

    fn poll_writable(&self) -> Poll<()> {
        if self.is_left.get() || self.room() > 0 || self.whole_max.get().is_some() {
            return Poll::Ready(());
        }
        self.writer.set(Task::current());
        Poll::Pending
    }

    fn poll_closed(&self) -> Poll<()> {
        if self.is_left.get() {
            return Poll::Ready(());
        }
        self.writer.set(Task::current());
        Poll::Pending
    }

    fn try_read_vec(&self, _: &mut Vec<u8>, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.is_left.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let wanted: usize = pieces.iter().map(|piece| piece.len()).sum();
        let room = self.room();
        if self.whole_max.get().is_some() && wanted > room {
            self.is_too_big.set(true);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut left = wanted.min(room);
        if left == 0 && wanted > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut bytes = self.bytes.borrow_mut();
        for piece in pieces {
            let part = piece.get(..left.min(piece.len())).unwrap_or_default();
            bytes.extend_from_slice(part);
            left -= part.len();
        }
        self.reader.get().wake();
        Ok(wanted.min(room))
    }

    fn shutdown_write(&self) -> io::Result<()> {
        Ok(())
    }

    fn shutdown(&self) {
        self.is_left.set(true);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Does something with a pipe, on a worker.
    fn with_pipe(work: impl FnOnce(&Pipe) + 'static) {
        let run = weir_net::worker::block_on(async {
            let (stream, _other) = Stream::with_nobody().unwrap();
            work(&Pipe::new(Rc::new(Shared::new(stream.into(), None, 0))));
        });
        run.unwrap();
    }

    fn write(pipe: &Pipe, bytes: &[u8]) -> Result<usize, io::ErrorKind> {
        pipe.try_write_vectored(&[IoSlice::new(b""), IoSlice::new(bytes)]).map_err(|error| error.kind())
    }

    #[test]
    fn a_full_pipe_takes_nothing_until_it_is_read() {
        with_pipe(|pipe| {
            assert_eq!(write(pipe, &[7; PIPE_BYTES_MAX + 1]), Ok(PIPE_BYTES_MAX));
            assert_eq!(write(pipe, b"a"), Err(io::ErrorKind::WouldBlock));
            assert!(pipe.poll_writable().is_pending());
            assert_eq!(pipe.take(), [7; PIPE_BYTES_MAX]);
            assert!(pipe.poll_writable().is_ready());
            assert_eq!(write(pipe, b"a"), Ok(1));
        });
    }

    #[test]
    fn an_answer_that_is_kept_as_a_whole_is_bounded() {
        with_pipe(|pipe| {
            pipe.keep_whole(3);
            assert_eq!(write(pipe, b"abc"), Ok(3));
            assert!(!pipe.is_too_big());
            assert_eq!(write(pipe, b"d"), Err(io::ErrorKind::FileTooLarge));
            assert!(pipe.is_too_big());
        });
    }

    #[test]
    fn each_end_sees_the_other_one_go() {
        with_pipe(|pipe| {
            pipe.end(true, 200, vec![(VariableId(1), b"a".to_vec())]);
            pipe.abandon();
            assert_eq!((pipe.watch(), pipe.status()), (Progress::Whole, 200));
            assert_eq!((pipe.take_changes().len(), pipe.take_changes().len()), (1, 0));
        });
        with_pipe(|pipe| {
            pipe.abandon();
            assert_eq!(pipe.watch(), Progress::Broken);
            assert!(pipe.poll_closed().is_pending());
            pipe.leave();
            assert!(pipe.poll_closed().is_ready());
            assert_eq!(write(pipe, b"a"), Err(io::ErrorKind::BrokenPipe));
        });
    }
}
