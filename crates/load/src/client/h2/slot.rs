//! One exchange on its way: what has come of its answer.

use std::cell::{Cell, RefCell};

use weir_meter::Step;
use weir_net::worker::Task;
use weir_net::{Deadline, Instant, Lease, buffer};
use weir_wire::h2::frame::HEAD_BYTES;
use weir_wire::h2::hpack::Block;
use weir_wire::h2::{Code, message};

use super::super::answer::{Answer, Body, Head, Timings};
use super::super::error::Error;
use super::super::incoming::{BODY_BYTES_MAX, INTERIM_MAX};
use super::Lost;

/// See the module.
pub(super) struct Slot {
    /// When it must be over.
    pub deadline: Deadline,
    /// Its stream; 0 while it has none.
    pub id: Cell<u32>,
    /// Who waits for it.
    pub task: Cell<Task>,
    /// It waits to send more of its body.
    pub is_blocked: Cell<bool>,
    pub state: RefCell<State>,
}

/// What has come.
pub(super) struct State {
    pub sent: Option<Instant>,
    /// What the session had heard when it was sent.
    pub heard: u64,
    pub lost: Option<Lost>,
    pub is_complete: bool,
    head: Option<(Head, Instant)>,
    end: Option<Instant>,
    buffer: Lease,
    /// Where in the buffer the body begins.
    body_at: usize,
    body_bytes: u64,
    received: u64,
    interims: usize,
    wants_body: bool,
    is_to_head: bool,
}

impl Default for State {
    fn default() -> State {
        State {
            sent: None,
            heard: 0,
            lost: None,
            is_complete: false,
            head: None,
            end: None,
            buffer: Lease::none(),
            body_at: 0,
            body_bytes: 0,
            received: 0,
            interims: 0,
            wants_body: false,
            is_to_head: false,
        }
    }
}

/// A head was taken in.
pub(super) enum Taken {
    /// An interim one (1xx): the answer's is still to come.
    Interim,
    /// The answer's, and how long its body is, where that is known.
    Answer(Option<u64>),
}

impl Slot {
    pub fn new() -> Slot {
        Slot {
            deadline: Deadline::new(),
            id: Cell::new(0),
            task: Cell::new(Task::NONE),
            is_blocked: Cell::new(false),
            state: RefCell::default(),
        }
    }

    /// Ready for another exchange.
    pub fn begin(&self, wants_body: bool, is_to_head: bool) {
        self.id.set(0);
        self.is_blocked.set(false);
        self.state.replace(State { wants_body, is_to_head, ..State::default() });
    }

    /// Whether there is nothing more to wait for.
    pub fn is_over(&self) -> bool {
        let state = self.state.borrow();
        state.is_complete || state.lost.is_some()
    }

    pub fn wake(&self) {
        self.task.replace(Task::NONE).wake();
    }

    /// It is over without an answer, unless that came already.
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

impl State {
    /// Takes the head in `block`; `ends` when nothing follows it.
    pub fn take_head(&mut self, block: &mut Block, ends: bool, at: Instant) -> Result<Taken, Lost> {
        self.received += (HEAD_BYTES + block.sent) as u64;
        if block.is_too_large {
            return Err(Lost::for_good(Error::named(Step::AwaitHead, "HPE_HEADER_OVERFLOW")));
        }
        let mut head = Head::lease();
        message::response(block, &mut head).map_err(|_| broken())?;
        let declared = message::declared(&head, &block.bytes, self.is_to_head, ends).map_err(|_| broken())?;
        if head.is_interim() {
            self.interims += 1;
            return if self.interims > INTERIM_MAX { Err(broken()) } else { Ok(Taken::Interim) };
        }
        let body = declared.filter(|_| self.wants_body).unwrap_or(0).min(READ_BYTES) as usize;
        self.buffer = buffer::lease(block.bytes.len() + body);
        self.buffer.extend_from_slice(&block.bytes);
        self.body_at = self.buffer.len();
        self.head = Some((head, at));
        if ends {
            self.end = Some(at);
        }
        Ok(Taken::Answer(declared))
    }

    /// Takes a piece of the body, which took `counted` bytes of a frame.
    pub fn take_data(&mut self, data: &[u8], counted: usize, at: Instant) -> Result<(), Lost> {
        self.received += (HEAD_BYTES + counted) as u64;
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

    /// Where the exchange stands.
    pub fn step(&self) -> Step {
        match (&self.head, self.sent) {
            (Some(_), _) => Step::ReadResponse,
            (None, Some(_)) => Step::AwaitHead,
            (None, None) => Step::SendRequest,
        }
    }

    /// An error's place, and what of the answer came before it.
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
        let body = if self.wants_body { Body::Here(self.body_at..buffer.len()) } else { Body::Gone };
        let (body_bytes, received_bytes) = (self.body_bytes, self.received);
        Some(Answer { head, buffer, body, body_bytes, received_bytes, timings, upgraded: None })
    }
}

/// Room made at once for a body whose length was said: a length may lie.
const READ_BYTES: u64 = 64 << 10;

/// What came is no answer.
fn broken() -> Lost {
    Lost::fault(weir_wire::h2::Fault::connection(Code::Protocol, ""))
}
