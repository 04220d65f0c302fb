//! One stream as those who serve it see it: bytes in, bytes out, like a connection of its own.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

use weir_net::worker::Task;
use weir_net::{Carried, Lease, buffer};
use weir_wire::h2::Code;
use weir_wire::h2::hpack::Encoder;

use super::reply::{Lost, Replies};
use super::session::{OUT_MAX, Session};
use crate::exchange::Origin;

/// What a client may send ahead of a body that is being read.
const WINDOW_READ: u32 = 256 << 10;

/// A stream of a client, or one of ours to an origin.
pub struct Stream {
    id: u32,
    session: Rc<Session>,
    /// What came of the body, and how much of it was read.
    inbox: RefCell<(Lease, usize)>,
    has_ended: Cell<bool>,
    is_over: Cell<bool>,
    /// Head or body break the rules of a message: once that is answered, the stream is reset.
    is_at_fault: Cell<bool>,
    /// The body does: it is not the one the head promised.
    is_malformed: Cell<bool>,
    /// Somebody reads the body.
    is_read: Cell<bool>,
    output: Cell<Output>,
    /// Bytes of a body that went out.
    sent: Cell<u64>,
    /// Of one to an origin: what comes besides the body.
    replies: Option<Box<Replies>>,
    reader: Cell<Task>,
    writer: Cell<Task>,
}

/// What is still to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// The head, or a body whose length nobody said.
    Open,
    /// This much of a body.
    Left(u64),
    /// Nothing: the client has the end.
    Done,
}

impl Stream {
    /// A stream that a client began; `has_ended` when its request has no body.
    pub(super) fn new(id: u32, session: Rc<Session>, has_ended: bool) -> Rc<Stream> {
        Stream::with(id, session, has_ended, None)
    }

    /// A stream of ours, that a request is to go out on; `None` while the origin allows no more.
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
            inbox: RefCell::new((Lease::none(), 0)),
            has_ended: Cell::new(has_ended),
            is_over: Cell::new(false),
            is_at_fault: Cell::new(false),
            is_malformed: Cell::new(false),
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

    /// Whether all of the request has come.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// Whether the body is not what the head promised.
    pub fn is_malformed(&self) -> bool {
        self.is_malformed.get()
    }

    /// Bytes of a body that went out on it.
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Whether the peer's window for it is shut.
    pub fn is_shut(&self) -> bool {
        self.session.wire.borrow().sendable(self.id) == 0
    }

    // For the driver.

    /// A piece of the body came; windows bound how much may lie here.
    pub(super) fn take_in(&self, data: &[u8], ends: bool) {
        if self.is_over.get() {
            return;
        }
        if !data.is_empty() {
            let (bytes, read) = &mut *self.inbox.borrow_mut();
            if bytes.capacity() == 0 {
                *bytes = buffer::lease(data.len());
            }
            // Who reads more slowly than the peer sends may never find it empty: what was read makes room.
            if *read >= bytes.len() / 2 {
                bytes.drain(..*read);
                *read = 0;
            }
            bytes.extend_from_slice(data);
        }
        if ends {
            self.has_ended.set(true);
        }
        self.reader.replace(Task::NONE).wake();
    }

    /// The head is none; it may be answered.
    pub(super) fn blame(&self) {
        self.is_at_fault.set(true);
    }

    /// The body is not what the head promised; that may be answered.
    pub(super) fn malform(&self) {
        self.is_at_fault.set(true);
        self.is_malformed.set(true);
        self.reader.replace(Task::NONE).wake();
    }

    /// It was reset.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        self.wake();
    }

    /// Whoever waits looks again.
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

    // For whoever serves it.

    /// Sends a head, or trailers, whose fields `write` gives; gives its length as it goes out. `length` is the body's
    /// where that is known, and none follows if `ends`.
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

    /// So much of the body is still to be sent, and no more.
    pub fn promise(&self, length: u64) {
        if self.output.get() == Output::Open && length > 0 {
            self.output.set(Output::Left(length));
        }
    }

    /// Ends the answer, unless its length has ended it already.
    pub(super) fn send_end(&self) -> Result<(), io::Error> {
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

    // Of a stream to an origin.

    /// What came besides the body.
    pub(super) fn replies(&self) -> Option<&Replies> {
        self.replies.as_deref()
    }

    /// The session it is of.
    pub(super) fn session(&self) -> &Rc<Session> {
        &self.session
    }

    /// A head came, the last one if it is not an interim one; `ends` when nothing follows it.
    pub(super) fn note_head(&self, ends: bool) {
        if ends {
            self.has_ended.set(true);
        }
        self.reader.replace(Task::NONE).wake();
    }

    /// It is over, for this reason.
    pub fn lose(&self, lost: Lost) {
        if let Some(replies) = &self.replies {
            replies.lose(lost);
        }
        self.end();
    }

    /// Takes what of the body is here already behind the head.
    pub(super) fn read_behind(&self, origin: &mut Origin) {
        let unread = {
            let (bytes, read) = &*self.inbox.borrow();
            bytes.len() - read
        };
        if unread > 0 {
            // It is there: reading it cannot fail.
            let _ = self.try_read_vec(&mut origin.bytes, unread);
        }
    }

    /// Whether all of the body has been read, or none is to come.
    pub fn is_read(&self) -> bool {
        self.has_ended.get() && self.inbox.borrow().0.is_empty()
    }

    /// The task being polled is woken by what the peer says next.
    pub(super) fn await_reply(&self) {
        self.reader.set(Task::current());
    }

    /// Whether it was reset, or its connection is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.is_over.get() || self.session.is_dead()
    }

    /// Nobody waits for its answer any more: what is not complete is cancelled.
    pub fn leave(&self) {
        if !self.is_lost() {
            let is_sent = self.output.get() == Output::Done;
            // All of the body came, but not the end that has to follow it: that needs no telling.
            let is_all_here = self.has_ended.get() || self.session.wire.borrow().expected(self.id) == Some(0);
            if !is_sent || !is_all_here {
                self.session.wire.borrow_mut().reset(self.id, Code::Cancel);
            }
            if self.replies().is_some_and(|replies| replies.heard_nothing(self.session.heard())) {
                self.session.doubt();
            }
        }
        self.depart();
    }

    /// Nobody serves it any more. nginx: an answer that is not complete is an error of ours; one that is says that the
    /// rest of the request is not wanted (RFC 9113 §8.1).
    pub(super) fn close(&self) {
        if !self.session.is_dead() && !self.is_over.get() {
            let code = match (self.output.get(), self.has_ended.get()) {
                _ if self.is_at_fault.get() => Some(Code::Protocol),
                (Output::Done, true) => None,
                (Output::Done, false) => Some(Code::NoError),
                (Output::Open | Output::Left(_), _) => Some(Code::Internal),
            };
            if let Some(code) = code {
                if code == Code::NoError {
                    self.session.send_apart();
                }
                self.session.wire.borrow_mut().reset(self.id, code);
            }
        }
        self.depart();
    }

    fn depart(&self) {
        let (inbox, read) = self.inbox.replace((Lease::none(), 0));
        if inbox.len() > read && !self.session.is_dead() {
            self.session.wire.borrow_mut().consumed(self.id, inbox.len() - read);
        }
        self.session.remove(self.id);
        self.session.tell_driver();
    }

    /// With the first look at a body its client may send more ahead: what comes is taken away at once.
    fn open_window(&self) {
        if self.is_read.replace(true) || self.has_ended.get() || self.session.is_dead() {
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

impl Carried for Stream {
    fn socket(&self) -> &weir_net::Stream {
        self.session.transport().socket()
    }

    fn is_secure(&self) -> bool {
        self.session.transport().is_secure()
    }

    fn poll_readable(&self) -> Poll<()> {
        let is_ready = self.has_ended.get() || self.poll_closed().is_ready() || !self.inbox.borrow().0.is_empty();
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
        if self.is_malformed.get() || self.is_over.get() || self.session.is_dead() {
            return Poll::Ready(());
        }
        self.reader.set(Task::current());
        Poll::Pending
    }

    fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        self.open_window();
        let count = {
            let (bytes, read) = &mut *self.inbox.borrow_mut();
            let unread = bytes.get(*read..).unwrap_or_default();
            let some = unread.get(..max).unwrap_or(unread);
            buf.extend_from_slice(some);
            let count = some.len();
            *read += count;
            if *read == bytes.len() {
                (*bytes, *read) = (Lease::none(), 0);
            }
            count
        };
        if count == 0 && max > 0 {
            return match () {
                () if self.is_malformed.get() => Err(io::ErrorKind::InvalidData.into()),
                () if self.has_ended.get() => Ok(0),
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
            self.session.wire.borrow_mut().reset(self.id, Code::Internal);
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
