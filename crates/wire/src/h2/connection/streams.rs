//! The open streams of a connection, and recently reset ones.

use std::collections::VecDeque;

use crate::role::Role;
use crate::section::BodyCount;

use super::super::frame::{STREAM_MAX, WINDOW_MAX};
use super::super::{ErrorCode, H2Fault};

/// weir remembers this many streams that it reset: the peer's frames that are on their way to them are not a fault.
const RESET_KEPT: usize = 64;

/// The part that the peer has still to send on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// An answer's head.
    Head,
    /// A body, or its end.
    Body,
    /// A broken message: the rest is ignored.
    Broken,
    /// Nothing.
    Done,
}

/// The part that we have still to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outgoing {
    /// A head, or the rest of a body.
    Open,
    /// Nothing.
    Done,
}

/// One stream.
#[derive(Clone, Copy, Debug)]
pub struct H2Stream {
    pub incoming: Incoming,
    pub outgoing: Outgoing,
    pub send_window: i64,
    pub receive_window: i64,
    /// Bytes that were consumed but not yet returned to the peer's window.
    pub unreturned: u32,
    pub body: BodyCount,
}

impl H2Stream {
    pub fn new(send_window: u32, receive_window: u32) -> H2Stream {
        H2Stream {
            incoming: Incoming::Head,
            outgoing: Outgoing::Open,
            send_window: i64::from(send_window),
            receive_window: i64::from(receive_window),
            unreturned: 0,
            body: BodyCount::default(),
        }
    }

    /// Counts a piece of its body.
    pub fn take_data(&mut self, id: u32, length: usize, counted: usize, ends: bool) -> Result<(), H2Fault> {
        match self.incoming {
            Incoming::Body => {}
            Incoming::Head => return Err(H2Fault::stream(id, ErrorCode::Protocol, "DATA before HEADERS")),
            Incoming::Broken | Incoming::Done => {
                return Err(H2Fault::stream(id, ErrorCode::StreamClosed, "DATA after END_STREAM"));
            }
        }
        self.receive_window -= counted as i64;
        if self.receive_window < 0 {
            return Err(H2Fault::stream(id, ErrorCode::FlowControl, "more than the stream's window"));
        }
        self.body.take(length).map_err(|what| H2Fault::stream(id, ErrorCode::Protocol, what))?;
        if ends { self.end_incoming(id) } else { Ok(()) }
    }

    /// The peer has sent everything: checks that a body has its declared length (RFC 9113 §8.1.1).
    pub fn end_incoming(&mut self, id: u32) -> Result<(), H2Fault> {
        self.incoming = Incoming::Done;
        self.body.end().map_err(|what| H2Fault::stream(id, ErrorCode::Protocol, what))
    }

    fn is_over(&self) -> bool {
        matches!(self.incoming, Incoming::Broken | Incoming::Done) && self.outgoing == Outgoing::Done
    }
}

/// All streams; there are few, so a search is enough.
#[derive(Debug)]
pub struct Streams {
    role: Role,
    ids: Vec<u32>,
    open: Vec<H2Stream>,
    last_of_peer: u32,
    last_of_ours: u32,
    reset: VecDeque<u32>,
}

impl Streams {
    pub fn new(role: Role) -> Streams {
        Streams { role, ids: Vec::new(), open: Vec::new(), last_of_peer: 0, last_of_ours: 0, reset: VecDeque::new() }
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn last_of_peer(&self) -> u32 {
        self.last_of_peer
    }

    /// Whether nothing has been sent on it.
    pub fn is_idle(&self, id: u32) -> bool {
        let is_clients = !id.is_multiple_of(2);
        let last = if is_clients == (self.role == Role::Server) { self.last_of_peer } else { self.last_of_ours };
        id > last
    }

    /// Whether there are numbers left for streams of ours.
    pub fn has_numbers(&self) -> bool {
        self.last_of_ours < STREAM_MAX - 1
    }

    /// The number of the next stream of ours; `None` when there are no more numbers.
    pub fn next_of_ours(&mut self) -> Option<u32> {
        let next = if self.last_of_ours == 0 { 1 } else { self.last_of_ours + 2 };
        if next > STREAM_MAX {
            return None;
        }
        self.last_of_ours = next;
        Some(next)
    }

    /// The peer has begun this stream; all earlier streams are not idle any more either.
    pub fn note(&mut self, id: u32) {
        self.last_of_peer = id;
    }

    pub fn add(&mut self, id: u32, stream: H2Stream) {
        self.ids.push(id);
        self.open.push(stream);
    }

    pub fn get(&mut self, id: u32) -> Option<&mut H2Stream> {
        let at = self.place(id)?;
        self.open.get_mut(at)
    }

    pub fn peek(&self, id: u32) -> Option<&H2Stream> {
        self.open.get(self.place(id)?)
    }

    /// Removes a stream; returns whether it was there.
    pub fn remove(&mut self, id: u32) -> bool {
        let Some(at) = self.place(id) else { return false };
        self.ids.swap_remove(at);
        self.open.swap_remove(at);
        true
    }

    pub fn forget_if_over(&mut self, id: u32) {
        if self.peek(id).is_some_and(H2Stream::is_over) {
            self.remove(id);
        }
    }

    /// Removes a stream because we reset it.
    pub fn remove_reset(&mut self, id: u32) {
        self.remove(id);
        if self.reset.len() == RESET_KEPT {
            self.reset.pop_front();
        }
        self.reset.push_back(id);
    }

    pub fn was_reset(&self, id: u32) -> bool {
        self.reset.contains(&id)
    }

    /// Changes the send windows of all streams; false if a window becomes too large (RFC 9113 §6.9.2).
    pub fn widen(&mut self, delta: i64) -> bool {
        for stream in &mut self.open {
            stream.send_window += delta;
        }
        self.open.iter().all(|stream| stream.send_window <= i64::from(WINDOW_MAX))
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|&known| known == id)
    }
}
