//! One HTTP/2 stream. For its tasks it is like a separate connection: they read and write bytes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

use weir_net::Carried;
use weir_net::worker::Task;
use weir_wire::h2::ErrorCode;
use weir_wire::h2::hpack::Encoder;

use super::reply::{Lost, Replies};
use super::session::{OUT_MAX, Session};
use crate::exchange::message::Origin;
use crate::hold::frames::{Block, Frames};
use crate::receive::halves::{Compressed, Inbox, Incoming, Output};

/// Bytes that a client may send ahead of the reader of a body.
const WINDOW_READ: u32 = 256 << 10;

/// A stream of a client, or one of ours to an origin.
pub struct Stream {
    id: u32,
    session: Rc<Session>,
    /// The bytes of the body that arrived.
    inbox: RefCell<Inbox>,
    incoming: Cell<Incoming>,
    is_over: Cell<bool>,
    /// Head or body break the rules of a message: the stream is reset once the answer is sent.
    is_at_fault: Cell<bool>,
    /// A reader has started on the body.
    is_read: Cell<bool>,
    output: Cell<Output>,
    /// Bytes of a body that were sent.
    sent: Cell<u64>,
    /// For a stream to an origin: all of the answer except the body.
    replies: Option<Box<Replies>>,
    reader: Cell<Task>,
    writer: Cell<Task>,
}

impl Stream {
    /// A stream that a client began; `has_ended` when its request has no body.
    pub fn new(id: u32, session: Rc<Session>, has_ended: bool) -> Rc<Stream> {
        Stream::with(id, session, has_ended, None)
    }

    /// A stream to an origin, for a request; `None` while the origin allows no more streams.
    pub fn open(session: &Rc<Session>) -> Option<Rc<Stream>> {
        let id = session.wire.borrow_mut().open()?;
        let stream = Stream::with(id, session.clone(), false, Some(Box::new(Replies::new(session.heard()))));
        session.add(stream.clone());
        Some(stream)
    }

    fn with(id: u32, session: Rc<Session>, has_ended: bool, replies: Option<Box<Replies>>) -> Rc<Stream> {
        Rc::new(Stream {
            id,
            replies,
            session,
            inbox: RefCell::new(Inbox::new()),
            incoming: Cell::new(if has_ended { Incoming::Whole } else { Incoming::Open }),
            is_over: Cell::new(false),
            is_at_fault: Cell::new(false),
            is_read: Cell::new(false),
            output: Cell::new(Output::Open),
            sent: Cell::new(0),
            reader: Cell::new(Task::NONE),
            writer: Cell::new(Task::NONE),
        })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Whether all of the peer's message has arrived; never if it is malformed.
    pub fn has_ended(&self) -> bool {
        self.incoming.get() == Incoming::Whole
    }

    /// Whether the message breaks the rules behind its head: the body does not match the head, or the trailers are
    /// malformed.
    pub fn is_malformed(&self) -> bool {
        self.incoming.get() == Incoming::Malformed
    }

    // For the driver.

    /// Takes a piece of the body; windows bound how many bytes may wait here.
    pub fn take_in(&self, data: &[u8], ends: bool) {
        if self.is_over.get() {
            return;
        }
        self.inbox.borrow_mut().push(data);
        if ends {
            self.end_incoming();
        }
        self.reader.replace(Task::NONE).wake();
    }

    /// Notes the end of the message.
    fn end_incoming(&self) {
        if self.incoming.get() == Incoming::Open {
            self.incoming.set(Incoming::Whole);
        }
    }

    /// Notes that the part behind the head is malformed; the request may still be answered.
    pub fn malform(&self) {
        self.is_at_fault.set(true);
        self.incoming.set(Incoming::Malformed);
        self.reader.replace(Task::NONE).wake();
    }

    /// Notes a reset.
    pub fn end(&self) {
        self.is_over.set(true);
        self.wake();
    }

    /// Wakes the waiting reader and writer.
    pub(super) fn wake(&self) {
        self.reader.replace(Task::NONE).wake();
        self.wake_writer();
    }

    pub(super) fn waits_to_write(&self) -> bool {
        self.writer.get() != Task::NONE
    }

    pub(super) fn wake_writer(&self) {
        self.writer.replace(Task::NONE).wake();
    }

    // For the task that serves it.

    /// Sends a head or trailers with the fields that `write` pushes; returns the length on the wire. `length` is the
    /// length of the body, if known; no body follows if `ends`.
    pub(super) fn send_head(
        &self,
        ends: bool,
        length: Option<u64>,
        write: impl FnOnce(&mut Encoder, &mut Vec<u8>),
    ) -> Result<usize, io::Error> {
        self.check()?;
        let mut wire = self.session.wire.borrow_mut();
        let before = wire.output().len();
        wire.head(self.id, ends, write);
        let sent = wire.output().len() - before;
        drop(wire);
        self.output.set(match length {
            _ if ends => Output::Done,
            Some(length) => Output::Left(length),
            None => Output::Open,
        });
        self.session.tell_driver();
        Ok(sent)
    }

    /// Sets the number of body bytes that are still to be sent.
    pub fn promise(&self, length: u64) {
        if self.output.get() == Output::Open && length > 0 {
            self.output.set(Output::Left(length));
        }
    }

    // For a stream to an origin.

    /// All of the answer except the body.
    pub(super) fn replies(&self) -> Option<&Replies> {
        self.replies.as_deref()
    }

    /// Its session.
    pub(super) fn session(&self) -> &Rc<Session> {
        &self.session
    }

    /// Notes a head: the final one, unless it is interim. `ends` if nothing follows it.
    pub(super) fn note_head(&self, ends: bool) {
        if ends {
            self.end_incoming();
        }
        self.reader.replace(Task::NONE).wake();
    }

    /// Ends it for this reason.
    pub fn lose(&self, lost: Lost) {
        if let Some(replies) = &self.replies {
            replies.lose(lost);
        }
        self.end();
    }

    /// Copies the part of the body that has arrived behind the head.
    pub(super) fn read_behind(&self, origin: &mut Origin) {
        let unread = self.inbox.borrow().len();
        if unread > 0 {
            // The bytes are there: reading them cannot fail.
            let _ = self.try_read_vec(&mut origin.bytes, unread);
        }
    }

    /// Whether all of the body has been read, or none will come.
    pub fn is_read(&self) -> bool {
        self.has_ended() && self.inbox.borrow().is_empty()
    }

    /// Lets the peer's next message wake the current task.
    pub(super) fn await_reply(&self) {
        self.reader.set(Task::current());
    }

    /// Whether it was reset, or its connection is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.is_over.get() || self.session.is_dead()
    }

    /// Nobody waits for its answer any more: weir cancels it if it is not complete.
    pub fn leave(&self) {
        if !self.is_lost() {
            let is_sent = self.output.get() == Output::Done;
            // All of the body has arrived, and only the end mark is missing: a reset is not needed.
            let is_all_here = self.has_ended() || self.session.wire.borrow().expected(self.id) == Some(0);
            if !is_sent || !is_all_here {
                self.session.wire.borrow_mut().reset(self.id, ErrorCode::Cancel);
            }
            if self.replies().is_some_and(|replies| replies.heard_nothing(self.session.heard())) {
                self.session.doubt();
            }
        }
        self.depart();
    }

    fn depart(&self) {
        let inbox = self.inbox.replace(Inbox::new());
        if !inbox.is_empty() && !self.session.is_dead() {
            self.session.wire.borrow_mut().consumed(self.id, inbox.len());
        }
        self.session.remove(self.id);
        self.session.tell_driver();
    }

    /// When a reader starts on a body, its client may send more ahead: the reader takes the bytes at once.
    pub fn open_window(&self) {
        if self.is_read.replace(true) || self.has_ended() || self.session.is_dead() {
            return;
        }
        let mut wire = self.session.wire.borrow_mut();
        let more = WINDOW_READ.saturating_sub(self.session.preread);
        if wire.expected(self.id).is_none_or(|left| left > u64::from(self.session.preread)) {
            wire.widen(self.id, more);
            drop(wire);
            self.session.tell_driver();
        }
    }

    fn check(&self) -> Result<(), io::Error> {
        if self.is_over.get() || self.session.is_dead() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if self.output.get() == Output::Done {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

impl Frames for Stream {
    fn send_head(&self, ends: bool, length: Option<u64>, write: &mut dyn FnMut(&mut dyn Block)) -> io::Result<usize> {
        Stream::send_head(self, ends, length, |encoder, out| write(&mut Compressed(encoder, out)))
    }

    fn send_end(&self) -> io::Result<()> {
        if self.output.get() == Output::Done {
            return Ok(());
        }
        self.check()?;
        let (mut wire, mut out) = (self.session.wire.borrow_mut(), self.session.out.borrow_mut());
        let frame = wire.data(self.id, 0, true);
        out.behind(&mut wire).extend_from_slice(&frame);
        self.output.set(Output::Done);
        self.session.tell_driver();
        Ok(())
    }

    fn open_window(&self) {
        Stream::open_window(self);
    }

    fn has_ended(&self) -> bool {
        Stream::has_ended(self)
    }

    fn is_read(&self) -> bool {
        Stream::is_read(self)
    }

    fn is_malformed(&self) -> bool {
        Stream::is_malformed(self)
    }

    fn is_shut(&self) -> bool {
        self.session.wire.borrow().sendable(self.id) == 0
    }

    fn blame(&self) {
        self.is_at_fault.set(true);
    }

    fn close(&self) {
        if !self.session.is_dead() && !self.is_over.get() {
            let code = match (self.output.get(), self.has_ended()) {
                _ if self.is_at_fault.get() => Some(ErrorCode::Protocol),
                (Output::Done, true) => None,
                (Output::Done, false) => Some(ErrorCode::NoError),
                (Output::Open | Output::Left(_), _) => Some(ErrorCode::Internal),
            };
            if let Some(code) = code {
                if code == ErrorCode::NoError {
                    self.session.send_apart();
                }
                self.session.wire.borrow_mut().reset(self.id, code);
            }
        }
        self.depart();
    }

    fn sent(&self) -> u64 {
        self.sent.get()
    }
}

impl Carried for Stream {
    fn socket(&self) -> Option<&weir_net::Stream> {
        self.session.transport().socket()
    }

    fn is_secure(&self) -> bool {
        self.session.transport().is_secure()
    }

    fn poll_readable(&self) -> Poll<()> {
        let is_ready = self.has_ended() || self.poll_closed().is_ready() || !self.inbox.borrow().is_empty();
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_writable(&self) -> Poll<()> {
        let is_full = self.session.waiting() >= OUT_MAX;
        if self.check().is_err() || !is_full && self.session.wire.borrow().sendable(self.id) > 0 {
            return Poll::Ready(());
        }
        self.writer.set(Task::current());
        if is_full {
            self.session.await_room();
        }
        Poll::Pending
    }

    fn poll_closed(&self) -> Poll<()> {
        if self.is_malformed() || self.is_over.get() || self.session.is_dead() {
            return Poll::Ready(());
        }
        self.reader.set(Task::current());
        Poll::Pending
    }

    fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        self.open_window();
        let count = self.inbox.borrow_mut().take(buf, max);
        if count == 0 && max > 0 {
            return match () {
                () if self.is_malformed() => Err(io::ErrorKind::InvalidData.into()),
                () if self.has_ended() => Ok(0),
                () if self.poll_closed().is_ready() => Err(io::ErrorKind::ConnectionReset.into()),
                () => Err(io::ErrorKind::WouldBlock.into()),
            };
        }
        let mut wire = self.session.wire.borrow_mut();
        wire.consumed(self.id, count);
        if !wire.output().is_empty() {
            self.session.tell_driver();
        }
        Ok(count)
    }

    fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.check()?;
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let (mut wire, mut out) = (self.session.wire.borrow_mut(), self.session.out.borrow_mut());
        let mut pieces = Pieces { pieces, taken: 0 };
        let mut written = 0;
        while written < total && out.len() < OUT_MAX {
            let mut count = (total - written).min(self.session.chunk).min(wire.sendable(self.id));
            if let Output::Left(left) = self.output.get() {
                count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
            }
            if count == 0 {
                break;
            }
            let after = match self.output.get() {
                Output::Left(left) if left <= count as u64 => Output::Done,
                Output::Left(left) => Output::Left(left - count as u64),
                other => other,
            };
            let frame = wire.data(self.id, count, after == Output::Done);
            self.output.set(after);
            let bytes = out.behind(&mut wire);
            bytes.extend_from_slice(&frame);
            pieces.take(count, bytes);
            written += count;
        }
        if written == 0 && total > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.sent.set(self.sent.get() + written as u64);
        self.session.tell_driver();
        Ok(written)
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.send_end()
    }

    fn shutdown(&self) {
        if !self.session.is_dead() && !self.is_over.replace(true) {
            self.session.wire.borrow_mut().reset(self.id, ErrorCode::Internal);
            self.session.tell_driver();
        }
        self.wake();
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({} of {:?})", self.id, self.session.transport())
    }
}

/// Pieces being copied one frame at a time.
struct Pieces<'p, 'b> {
    pieces: &'p [IoSlice<'b>],
    /// Bytes of the first that were copied.
    taken: usize,
}

impl Pieces<'_, '_> {
    /// Appends the next `count` bytes.
    fn take(&mut self, mut count: usize, to: &mut Vec<u8>) {
        while let Some((first, others)) = self.pieces.split_first() {
            let rest = first.get(self.taken..).unwrap_or_default();
            if rest.len() > count {
                to.extend_from_slice(rest.get(..count).unwrap_or_default());
                self.taken += count;
                return;
            }
            to.extend_from_slice(rest);
            count -= rest.len();
            (self.pieces, self.taken) = (others, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_where_frames_end() {
        let texts: [&[u8]; 4] = [b"abc", b"", b"defgh", b"i"];
        let slices = texts.map(IoSlice::new);
        let mut pieces = Pieces { pieces: &slices, taken: 0 };
        let mut out = Vec::new();
        for count in [2, 1, 4, 2] {
            pieces.take(count, &mut out);
            out.push(b'|');
        }
        assert_eq!(out, b"ab|c|defg|hi|");
    }
}
