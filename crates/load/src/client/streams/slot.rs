//! One current exchange, with the received parts of its answer.

use std::cell::{Cell, RefCell};

use weir_meter::Step;
use weir_net::worker::Task;
use weir_net::{Deadline, Instant, Lease, buffer};
use weir_wire::Version;
use weir_wire::section::{Block, message};

use super::super::answer::{Answer, BodyPlace, Head};
use super::super::error::Error;
use super::super::incoming::{BODY_BYTES_MAX, INTERIM_MAX};
use super::super::timings::Timings;
use super::lost::{Lost, coded};

/// See the module.
pub struct StreamSlot {
    /// The time limit of the exchange.
    pub deadline: Deadline,
    /// Stream id of the exchange; `None` while it has none.
    pub id: Cell<Option<u64>>,
    /// The task that waits for the answer.
    pub task: Cell<Task>,
    /// The exchange waits to send more of its body.
    pub is_blocked: Cell<bool>,
    pub state: RefCell<ReceivedParts>,
}

/// The received parts of the answer.
pub struct ReceivedParts {
    /// Time of the first attempt to write the request; `None` if there was none.
    pub sent: Option<Instant>,
    pub lost: Option<Lost>,
    pub is_complete: bool,
    head: Option<(Head, Instant)>,
    end: Option<Instant>,
    buffer: Lease,
    /// Where in the buffer the body begins.
    body_at: usize,
    body_bytes: u64,
    /// All bytes received; the driver counts them.
    pub received: u64,
    interims: usize,
    version: Version,
    wants_body: bool,
    is_to_head: bool,
}

impl Default for ReceivedParts {
    fn default() -> ReceivedParts {
        ReceivedParts {
            sent: None,
            lost: None,
            is_complete: false,
            head: None,
            end: None,
            buffer: Lease::none(),
            body_at: 0,
            body_bytes: 0,
            received: 0,
            interims: 0,
            version: Version::Http2,
            wants_body: false,
            is_to_head: false,
        }
    }
}

/// The kind of head that was received.
pub enum HeadKind {
    /// An interim head (1xx): the final one comes later.
    Interim,
    /// The final head, with the length of its body if that is known.
    Answer(Option<u64>),
}

impl StreamSlot {
    pub fn new() -> StreamSlot {
        StreamSlot {
            deadline: Deadline::new(),
            id: Cell::new(None),
            task: Cell::new(Task::NONE),
            is_blocked: Cell::new(false),
            state: RefCell::default(),
        }
    }

    /// Resets the slot for another exchange.
    pub fn begin(&self, version: Version, wants_body: bool, is_to_head: bool) {
        self.id.set(None);
        self.is_blocked.set(false);
        self.state.replace(ReceivedParts { version, wants_body, is_to_head, ..ReceivedParts::default() });
    }

    /// True if there is nothing more to wait for.
    pub fn is_over(&self) -> bool {
        let state = self.state.borrow();
        state.is_complete || state.lost.is_some()
    }

    pub fn wake(&self) {
        self.task.replace(Task::NONE).wake();
    }

    /// Ends the exchange without an answer, unless the answer is complete already.
    pub fn lose(&self, lost: Lost) {
        let mut state = self.state.borrow_mut();
        if !state.is_complete && state.lost.is_none() {
            state.lost = Some(lost);
        }
        drop(state);
        self.wake();
    }

    /// The answer is complete.
    pub fn complete(&self, at: Instant) {
        let mut state = self.state.borrow_mut();
        state.is_complete = true;
        state.end.get_or_insert(at);
        drop(state);
        self.wake();
    }
}

impl ReceivedParts {
    /// Takes the head in `block`; `ends` is true when nothing follows the head.
    pub fn take_head(&mut self, block: &mut Block, ends: bool, at: Instant) -> Result<HeadKind, Lost> {
        if block.is_too_large {
            return Err(Lost::for_good(Error::named(Step::AwaitHead, "HPE_HEADER_OVERFLOW")));
        }
        let mut head = Head::lease();
        message::response(block, self.version, &mut head).map_err(|_| self.broken())?;
        let declared = message::declared(&head, &block.bytes, self.is_to_head, ends).map_err(|_| self.broken())?;
        if head.is_interim() {
            self.interims += 1;
            return if self.interims > INTERIM_MAX { Err(self.broken()) } else { Ok(HeadKind::Interim) };
        }
        let body = declared.filter(|_| self.wants_body).unwrap_or(0).min(READ_BYTES) as usize;
        self.buffer = buffer::lease(block.bytes.len() + body);
        self.buffer.extend_from_slice(&block.bytes);
        self.body_at = self.buffer.len();
        self.head = Some((head, at));
        if ends {
            self.end = Some(at);
        }
        Ok(HeadKind::Answer(declared))
    }

    /// The loss for bytes that are not an answer.
    fn broken(&self) -> Lost {
        Lost::for_good(match self.version {
            Version::Http3 => coded("ERR_HTTP3_", "MESSAGE_ERROR"),
            _ => coded("ERR_HTTP2_", "PROTOCOL_ERROR"),
        })
    }

    /// Takes a piece of the body.
    pub fn take_data(&mut self, data: &[u8], at: Instant) -> Result<(), Lost> {
        self.body_bytes += data.len() as u64;
        if !data.is_empty() {
            self.end = Some(at);
        }
        if self.wants_body {
            if self.buffer.len() - self.body_at + data.len() > BODY_BYTES_MAX {
                return Err(Lost::for_good(Error::named(Step::ReadResponse, "ERR_BODY_TOO_LARGE")));
            }
            self.buffer.extend_from_slice(data);
        }
        Ok(())
    }

    /// The current step of the exchange.
    pub fn step(&self) -> Step {
        match (&self.head, self.sent) {
            (Some(_), _) => Step::ReadResponse,
            (None, Some(_)) => Step::AwaitHead,
            (None, None) => Step::SendRequest,
        }
    }

    /// Adds to an error its step, and the part of the answer received before it.
    pub fn place(&self, error: Error, timings: Timings) -> Error {
        let answered = self.head.as_ref().map(|(head, at)| {
            Box::new((head.status, Timings { sent: self.sent.unwrap_or(timings.sent), head: *at, end: *at, ..timings }))
        });
        Error { step: self.step(), answered, ..error }
    }

    /// The complete answer; `None` if its head never came.
    pub fn take(&mut self, mut timings: Timings) -> Option<Answer> {
        let (head, at) = self.head.take()?;
        timings.sent = self.sent.unwrap_or(timings.started);
        timings.head = at;
        timings.end = self.end.unwrap_or(at);
        let buffer = std::mem::replace(&mut self.buffer, Lease::none());
        let body = if self.wants_body { BodyPlace::Here(self.body_at..buffer.len()) } else { BodyPlace::Gone };
        let (body_bytes, received_bytes) = (self.body_bytes, self.received);
        Some(Answer { head, buffer, body, body_bytes, received_bytes, timings })
    }
}

/// Most room reserved at once for a body of announced length: the length may be wrong.
const READ_BYTES: u64 = 64 << 10;
