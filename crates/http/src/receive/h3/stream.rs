//! One request stream. For its tasks it is like a separate connection: they read and write bytes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::Poll;

use weir_net::worker::Task;
use weir_net::{Carried, Lease, buffer};
use weir_quic::connection::{Follows, StreamId};
use weir_wire::h3::stream::{H3Event, RequestStream};
use weir_wire::h3::{H3Code, H3Fault, write};
use weir_wire::section::message;

use super::hq;
use super::session::H3Session;
use crate::hold::frames::{Block, Frames};
use crate::receive::halves::{Compressed, Inbox, Incoming, Output};

/// Bytes read from QUIC at a time, and so the most that a stream keeps.
const READ_BYTES: usize = 16 << 10;
/// The head of a DATA frame, at most.
const FRAME_HEAD_BYTES: usize = 9;

/// A stream of a client.
pub struct H3Stream {
    id: StreamId,
    session: Rc<H3Session>,
    reader: RefCell<RequestStream>,
    /// Bytes of QUIC that are not read as frames yet, and how many of them were.
    raw: RefCell<(Lease, usize)>,
    /// Bytes of the body that were read as frames.
    inbox: RefCell<Inbox>,
    /// The client has sent the end of the stream.
    is_last: Cell<bool>,
    /// QUIC may have something to read.
    may_read: Cell<bool>,
    incoming: Cell<Incoming>,
    is_over: Cell<bool>,
    /// Head or body break the rules of a message: the stream is reset once the answer is sent.
    is_at_fault: Cell<bool>,
    output: Cell<Output>,
    /// Bytes of the present DATA frame that are still to be sent.
    frame_left: Cell<u64>,
    /// A head that waits for the client's window, and how many of its bytes were sent.
    head: RefCell<(Vec<u8>, usize)>,
    /// The end is to follow the bytes that wait.
    ends_after_head: Cell<bool>,
    is_shut: Cell<bool>,
    /// Nobody serves it any more.
    is_left: Cell<bool>,
    /// The client has acknowledged the end of the answer.
    is_delivered: Cell<bool>,
    /// Bytes of a body that were sent.
    sent: Cell<u64>,
    reader_task: Cell<Task>,
    writer_task: Cell<Task>,
}

/// The beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Its head is in the session's block.
    Head {
        /// There is no body.
        ends: bool,
        /// How its length breaks the rules of a message.
        malformed: Option<&'static str>,
    },
    /// The head is not complete.
    Nothing,
    /// The client gave it up, or broke a rule.
    Over,
}

impl H3Stream {
    /// A stream that the client opened.
    ///
    /// # Errors
    /// The connection begins no more requests: the stream is refused.
    pub fn accept(session: &Rc<H3Session>, id: StreamId) -> Result<Rc<H3Stream>, H3Fault> {
        let reader = RequestStream::begin(&mut session.wire.borrow_mut(), id.number())?;
        Ok(Rc::new(H3Stream {
            id,
            session: session.clone(),
            reader: RefCell::new(reader),
            raw: RefCell::new((Lease::none(), 0)),
            inbox: RefCell::new(Inbox::new()),
            is_last: Cell::new(false),
            may_read: Cell::new(true),
            incoming: Cell::new(Incoming::Open),
            is_over: Cell::new(false),
            is_at_fault: Cell::new(false),
            output: Cell::new(Output::Open),
            frame_left: Cell::new(if session.hq.is_some() { u64::MAX } else { 0 }),
            head: RefCell::default(),
            ends_after_head: Cell::new(false),
            is_shut: Cell::new(false),
            is_left: Cell::new(false),
            is_delivered: Cell::new(false),
            sent: Cell::new(0),
            reader_task: Cell::new(Task::NONE),
            writer_task: Cell::new(Task::NONE),
        }))
    }

    /// Its number.
    pub fn id(&self) -> StreamId {
        self.id
    }

    // For the driver.

    /// Reads the head.
    pub fn hear(&self) -> Heard {
        loop {
            match self.step() {
                Some(H3Event::Head { ends, malformed }) => {
                    if ends {
                        self.end_incoming();
                    }
                    return Heard::Head { ends, malformed };
                }
                Some(_) => {}
                None if self.is_lost() => return Heard::Over,
                None if self.may_read.get() => self.receive(),
                None => return Heard::Nothing,
            }
        }
    }

    /// Notes that QUIC has something to read, or that a section is not blocked any more.
    pub fn readable(&self) {
        self.may_read.set(true);
        self.reader_task.replace(Task::NONE).wake();
    }

    /// Notes that the client's windows have room.
    pub fn writable(&self) {
        self.is_shut.set(false);
        if self.flush_head().is_ok() {
            self.writer_task.replace(Task::NONE).wake();
        }
    }

    /// Notes that the client wants nothing more of the answer.
    pub fn stopped(&self) {
        self.is_over.set(true);
        self.wake();
    }

    /// Refuses the request: nothing was processed, so the client may send it again.
    pub fn reject(&self, code: H3Code) {
        self.session.quic.reset(self.id, code as u64);
        self.session.quic.stop(self.id, code as u64);
        self.session.wire.borrow_mut().cancel(self.id.number());
        self.is_over.set(true);
    }

    /// The order of its bytes among those of other streams, from the client's priority (RFC 9218).
    pub fn apply_urgency(&self) {
        let urgency = self.reader.borrow().urgency();
        self.session.quic.set_priority(self.id, -i32::from(urgency.level));
    }

    /// Notes another priority.
    pub fn set_urgency(&self, urgency: weir_wire::section::Urgency) {
        self.reader.borrow_mut().set_urgency(urgency);
        self.apply_urgency();
    }

    /// Wakes the waiting reader and writer.
    pub fn wake(&self) {
        self.reader_task.replace(Task::NONE).wake();
        self.writer_task.replace(Task::NONE).wake();
    }

    // Reading.

    /// Reads bytes from QUIC.
    fn receive(&self) {
        let (bytes, start) = &mut *self.raw.borrow_mut();
        if *start == bytes.len() {
            bytes.clear();
            *start = 0;
        }
        if bytes.capacity() == 0 {
            *bytes = buffer::lease(READ_BYTES);
        }
        let follows = self.session.quic.read(self.id, bytes, READ_BYTES);
        self.may_read.set(follows == Follows::More);
        match follows {
            Follows::More | Follows::Nothing | Follows::Gone => {}
            Follows::End => self.is_last.set(true),
            Follows::Reset(_) => {
                self.is_over.set(true);
                // A complete answer goes on. Any other one must end too, or the stream would count as open for ever.
                if self.output.get() != Output::Done || !self.head.borrow().0.is_empty() {
                    self.session.quic.reset(self.id, H3Code::RequestCancelled as u64);
                }
                if let Err(fault) = self.session.wire.borrow_mut().reset_came(self.id.number()) {
                    self.session.blame(fault);
                }
            }
        }
        if let Some(host) = &self.session.hq {
            self.read_line(bytes, host);
        }
        if bytes.is_empty() {
            *bytes = Lease::none();
        }
    }

    /// Puts a frame in the place of the line of HTTP/0.9, once the line is complete. The request has no more bytes.
    fn read_line(&self, bytes: &mut Lease, host: &str) {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let Some(length) = end.map(|at| at + 1).or(self.is_last.get().then_some(bytes.len())) else {
            if bytes.len() >= READ_BYTES {
                self.reject(H3Code::ExcessiveLoad);
            }
            return;
        };
        let frame = hq::frame_of(bytes.get(..length).unwrap_or_default(), host);
        bytes.clear();
        match frame {
            Some(frame) => bytes.extend_from_slice(&frame),
            None => self.reject(H3Code::Message),
        }
        if !self.is_last.replace(true) {
            self.session.quic.stop(self.id, H3Code::NoError as u64);
        }
        self.may_read.set(false);
    }

    /// Reads the next event out of the bytes that are here; keeps pieces of the body.
    fn step(&self) -> Option<H3Event> {
        // HTTP/0.9's line becomes a frame once it is complete.
        let is_in_line = self.session.hq.is_some() && !self.is_last.get();
        if self.is_lost() || self.incoming.get() == Incoming::Whole || is_in_line {
            return None;
        }
        let (raw, start) = &mut *self.raw.borrow_mut();
        let bytes = raw.get(*start..).unwrap_or_default();
        let step = self.reader.borrow_mut().next(&mut self.session.wire.borrow_mut(), bytes, self.is_last.get());
        let step = match step {
            Ok(step) => step,
            Err(fault) => {
                self.fail(fault);
                return None;
            }
        };
        match &step.event {
            Some(H3Event::Data { range, ends }) => {
                self.inbox.borrow_mut().push(bytes.get(range.clone()).unwrap_or_default());
                if *ends {
                    self.end_incoming();
                }
            }
            Some(H3Event::Trailers { ends }) => {
                // No trailer is passed on; a malformed section makes the whole request malformed (RFC 9114 §4.1.2).
                let checked = message::check_trailers(self.session.wire.borrow_mut().block());
                match checked {
                    Ok(()) if *ends => self.end_incoming(),
                    Ok(()) => {}
                    Err(what) => self.malform(what),
                }
            }
            Some(H3Event::Malformed(what)) => self.malform(what),
            Some(H3Event::End) => self.end_incoming(),
            Some(H3Event::Head { .. } | H3Event::Blocked) | None => {}
        }
        *start += step.used;
        if *start >= raw.len() {
            (*raw, *start) = (Lease::none(), 0);
        }
        step.event.filter(|event| *event != H3Event::Blocked)
    }

    /// Reads until bytes of the body are here, or nothing more can come now.
    fn pull(&self) {
        while self.inbox.borrow().is_empty() && !self.is_lost() && self.incoming.get() == Incoming::Open {
            if self.step().is_some() {
                continue;
            }
            if !self.may_read.get() {
                return;
            }
            self.receive();
        }
    }

    fn end_incoming(&self) {
        if self.incoming.get() == Incoming::Open {
            self.incoming.set(Incoming::Whole);
        }
    }

    fn malform(&self, what: &'static str) {
        self.session.note(what);
        self.is_at_fault.set(true);
        self.incoming.set(Incoming::Malformed);
    }

    /// The client broke a rule: the stream ends, or the connection.
    fn fail(&self, fault: H3Fault) {
        self.is_over.set(true);
        if fault.stream.is_none() {
            return self.session.blame(fault);
        }
        self.session.note(fault.what);
        self.session.quic.reset(self.id, fault.code as u64);
        self.session.quic.stop(self.id, fault.code as u64);
    }

    /// Whether it was reset, or its connection is gone.
    fn is_lost(&self) -> bool {
        self.is_over.get() || self.session.is_dead()
    }

    // Writing.

    fn check(&self) -> Result<(), io::Error> {
        if self.is_lost() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if self.output.get() == Output::Done {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// Sends what waits before the body; `WouldBlock` if the client's windows have no room.
    fn flush_head(&self) -> io::Result<()> {
        let (bytes, start) = &mut *self.head.borrow_mut();
        while *start < bytes.len() {
            let rest = bytes.get(*start..).unwrap_or_default();
            match self.session.quic.write(self.id, &[IoSlice::new(rest)], u64::MAX) {
                Ok(count) => *start += count,
                Err(error) => {
                    self.is_shut.set(error.kind() == io::ErrorKind::WouldBlock);
                    return Err(error);
                }
            }
        }
        bytes.clear();
        *start = 0;
        if self.ends_after_head.replace(false) {
            self.session.quic.finish(self.id);
        }
        Ok(())
    }

    /// Ends the answer, once all bytes before are sent.
    fn finish(&self) {
        self.output.set(Output::Done);
        self.session.wire.borrow_mut().answered();
        self.ends_after_head.set(true);
        // If there is no room, the driver goes on when there is.
        let _ = self.flush_head();
    }

    /// Whether a task serves it.
    pub fn is_served(&self) -> bool {
        !self.is_left.get()
    }

    /// Whether nobody serves it, and nothing waits for the client's windows.
    pub fn is_done(&self) -> bool {
        self.is_left.get() && (self.is_lost() || self.head.borrow().0.is_empty())
    }

    /// Notes that the client has the whole answer.
    pub fn delivered(&self) {
        self.is_delivered.set(true);
    }

    /// Whether the answer is complete, and the client may not have all of it.
    pub fn is_on_its_way(&self) -> bool {
        self.output.get() == Output::Done && !self.is_lost() && !self.is_delivered.get()
    }
}

impl Frames for H3Stream {
    fn send_head(&self, ends: bool, length: Option<u64>, fields: &mut dyn FnMut(&mut dyn Block)) -> io::Result<usize> {
        self.check()?;
        // HTTP/0.9 has no heads.
        let sent = if self.session.hq.is_some() {
            0
        } else {
            let (bytes, _) = &mut *self.head.borrow_mut();
            let before = bytes.len();
            write::section(bytes, |encoder, out| fields(&mut Compressed(encoder, out)));
            let sent = bytes.len() - before;
            if let Some(length) = length.filter(|length| !ends && *length > 0) {
                write::data_head(length, bytes);
                self.frame_left.set(length);
            }
            sent
        };
        match length {
            _ if ends => {
                self.finish();
                return Ok(sent);
            }
            Some(length) => self.output.set(Output::Left(length)),
            None => self.output.set(Output::Open),
        }
        match self.flush_head() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(sent),
        }
    }

    fn send_end(&self) -> io::Result<()> {
        if self.output.get() == Output::Done {
            return Ok(());
        }
        self.check()?;
        self.finish();
        Ok(())
    }

    /// QUIC gives the client room as its bytes are read.
    fn open_window(&self) {}

    fn has_ended(&self) -> bool {
        self.incoming.get() == Incoming::Whole
    }

    fn is_read(&self) -> bool {
        self.has_ended() && self.inbox.borrow().is_empty()
    }

    fn is_malformed(&self) -> bool {
        self.incoming.get() == Incoming::Malformed
    }

    fn is_shut(&self) -> bool {
        self.is_shut.get()
    }

    fn blame(&self) {
        self.is_at_fault.set(true);
    }

    fn close(&self) {
        if !self.is_lost() {
            let code = match (self.output.get(), self.is_at_fault.get()) {
                (_, true) => H3Code::Message,
                (Output::Done, false) => H3Code::NoError,
                (Output::Open | Output::Left(_), false) => H3Code::Internal,
            };
            // A reset would destroy the end of a complete answer on its way.
            if self.output.get() != Output::Done {
                self.session.quic.reset(self.id, code as u64);
                // Bytes that wait for the client's windows are not sent any more.
                self.head.borrow_mut().0.clear();
            }
            if self.incoming.get() != Incoming::Whole {
                self.session.quic.stop(self.id, code as u64);
                self.session.wire.borrow_mut().cancel(self.id.number());
            }
        }
        self.is_left.set(true);
        self.session.tell_driver();
    }

    fn sent(&self) -> u64 {
        self.sent.get()
    }
}

impl Carried for H3Stream {
    /// There is none: the bytes travel in datagrams.
    fn socket(&self) -> Option<&weir_net::Stream> {
        None
    }

    fn is_secure(&self) -> bool {
        true
    }

    fn is_early(&self) -> bool {
        self.session.quic.is_handshaking()
    }

    fn poll_readable(&self) -> Poll<()> {
        self.pull();
        let is_ready = self.has_ended() || self.poll_closed().is_ready() || !self.inbox.borrow().is_empty();
        if is_ready { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_writable(&self) -> Poll<()> {
        if self.check().is_err() || !self.is_shut.get() {
            return Poll::Ready(());
        }
        self.writer_task.set(Task::current());
        Poll::Pending
    }

    fn poll_closed(&self) -> Poll<()> {
        if self.is_malformed() || self.is_lost() {
            return Poll::Ready(());
        }
        self.reader_task.set(Task::current());
        Poll::Pending
    }

    fn try_read_vec(&self, buf: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        self.pull();
        let count = self.inbox.borrow_mut().take(buf, max);
        match () {
            () if count > 0 || max == 0 => Ok(count),
            () if self.is_malformed() => Err(io::ErrorKind::InvalidData.into()),
            () if self.has_ended() => Ok(0),
            () if self.poll_closed().is_ready() => Err(io::ErrorKind::ConnectionReset.into()),
            () => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn try_write_vectored(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.check()?;
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if total == 0 {
            return Ok(0);
        }
        if self.frame_left.get() == 0 {
            let (bytes, _) = &mut *self.head.borrow_mut();
            bytes.reserve(FRAME_HEAD_BYTES);
            write::data_head(total as u64, bytes);
            self.frame_left.set(total as u64);
        }
        self.flush_head()?;
        let left = self.frame_left.get();
        let written = match self.session.quic.write(self.id, pieces, left) {
            Ok(written) => written as u64,
            Err(error) => {
                self.is_shut.set(error.kind() == io::ErrorKind::WouldBlock);
                return Err(error);
            }
        };
        self.frame_left.set(left - written);
        self.sent.set(self.sent.get() + written);
        if let Output::Left(left) = self.output.get() {
            match left.saturating_sub(written) {
                0 => self.finish(),
                left => self.output.set(Output::Left(left)),
            }
        }
        Ok(written as usize)
    }

    fn shutdown_write(&self) -> io::Result<()> {
        self.send_end()
    }

    fn shutdown(&self) {
        if !self.is_lost() {
            self.reject(H3Code::RequestCancelled);
        }
        self.is_over.set(true);
    }
}

impl fmt::Debug for H3Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "H3Stream({})", self.id.number())
    }
}
