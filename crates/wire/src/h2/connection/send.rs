//! The sending side.

use crate::h2::ErrorCode;
use crate::h2::frame::{self, FrameType, HEAD_BYTES, STREAM_MAX, WINDOW_MAX, flag};
use crate::h2::hpack::Encoder;
use crate::section::BodyCount;

use super::streams::{H2Stream, Incoming, Outgoing};
use super::{Connection, Role, STREAMS_UNTOLD, Turn};

impl Connection {
    /// Begins a stream of a client; `None` while the peer allows no more streams, and always after
    /// [`Connection::goaway`].
    pub fn open(&mut self) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let id = self.streams.next_of_ours()?;
        self.streams.add(id, H2Stream::new(self.peer.window, self.limits.window));
        Some(id)
    }

    /// How many streams of a client may begin at this moment.
    pub fn room(&self) -> usize {
        if self.role == Role::Server || self.is_going || !self.streams.has_numbers() {
            return 0;
        }
        let most = if self.is_greeted { self.peer.streams as usize } else { STREAMS_UNTOLD };
        most.saturating_sub(self.streams.len())
    }

    /// Whether there are numbers left for streams of a client; there are 2^30 (RFC 9113 §5.1.1).
    pub fn has_numbers(&self) -> bool {
        self.streams.has_numbers()
    }

    /// How many streams the peer allows at once; `None` until its SETTINGS have arrived.
    pub fn allowed(&self) -> Option<usize> {
        self.is_greeted.then_some(self.peer.streams as usize)
    }

    /// Whether nothing is under way: no stream, no part of a message, no question, nothing to send. The connection may go on elsewhere.
    pub fn is_at_rest(&self) -> bool {
        let is_said = self.section.is_none() && self.output.is_empty() && self.pings == 0;
        is_said && self.is_greeted && self.is_settled && !self.is_going && self.streams.len() == 0
    }

    /// Asks for a sign of life: [`super::H2Event::Pong`]. Sends no second PING before the answer to the first.
    pub fn ping(&mut self) {
        if self.pings == 0 {
            self.pings = 1;
            frame::push_ping(&mut self.output, *b"weirping");
        }
    }

    /// Writes a field section: a request, an answer, an interim answer, or trailers. `write` adds the fields,
    /// pseudo-header fields first. Does nothing on a stream that is over.
    pub fn head(&mut self, stream: u32, ends: bool, write: impl FnOnce(&mut Encoder, &mut Vec<u8>)) {
        if !self.streams.peek(stream).is_some_and(|known| known.outgoing == Outgoing::Open) {
            return;
        }
        self.scratch.clear();
        self.encoder.begin(&mut self.scratch);
        write(&mut self.encoder, &mut self.scratch);
        let end_stream = if ends { flag::END_STREAM } else { 0 };
        let mut rest = self.scratch.as_slice();
        let mut kind = FrameType::Headers;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(self.peer.payload));
            let mut flags = if kind == FrameType::Headers { end_stream } else { 0 };
            if after.is_empty() {
                flags |= flag::END_HEADERS;
            }
            frame::push_head(&mut self.output, piece.len(), kind, flags, stream);
            self.output.extend_from_slice(piece);
            if after.is_empty() {
                break;
            }
            (rest, kind) = (after, FrameType::Continuation);
        }
        if ends {
            self.end_outgoing(stream);
        }
    }

    /// How many bytes of a body may be sent on a stream at this moment, in one frame.
    pub fn sendable(&self, stream: u32) -> usize {
        let Some(known) = self.streams.peek(stream).filter(|known| known.outgoing == Outgoing::Open) else { return 0 };
        let window = known.send_window.min(self.send_window);
        usize::try_from(window).unwrap_or(0).min(self.peer.payload)
    }

    /// The head of a DATA frame of `length` bytes, which is at most [`Connection::sendable`]; the caller must send
    /// them directly after it.
    pub fn data(&mut self, stream: u32, length: usize, ends: bool) -> [u8; HEAD_BYTES] {
        if let Some(known) = self.streams.get(stream) {
            known.send_window -= length as i64;
            self.send_window -= length as i64;
        }
        self.calm.sent();
        if ends {
            self.end_outgoing(stream);
        }
        let [_, a, b, c] = (length as u32).to_be_bytes();
        let [s1, s2, s3, s4] = stream.to_be_bytes();
        [a, b, c, FrameType::Data as u8, if ends { flag::END_STREAM } else { 0 }, s1, s2, s3, s4]
    }

    /// Lets the peer send `more` bytes of a body ahead, in addition to its current window.
    pub fn widen(&mut self, stream: u32, more: u32) {
        let Some(known) = self.streams.get(stream).filter(|known| known.incoming == Incoming::Body) else { return };
        if more > 0 && known.receive_window + i64::from(more) <= i64::from(WINDOW_MAX) {
            known.receive_window += i64::from(more);
            frame::push_window(&mut self.output, stream, more);
        }
    }

    /// How many bytes of a body are still to come, if the length was declared.
    pub fn expected(&self, stream: u32) -> Option<u64> {
        self.streams.peek(stream)?.body.left()
    }

    /// The turn of this stream, if several can send.
    pub fn turn(&self, stream: u32) -> Turn {
        self.order.turn(stream)
    }

    /// Ends a stream at once, unless it is over.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.streams.is_idle(stream) {
            return;
        }
        frame::push_reset(&mut self.output, stream, code);
        self.streams.remove_reset(stream);
    }

    /// Announces that no new streams may begin soon, and asks for a sign of life ([`super::H2Event::Pong`]). The streams
    /// that the peer began before it knew have begun by then, and [`Connection::goaway`] may follow (RFC 9113 §6.8).
    pub fn announce_end(&mut self) {
        frame::push_goaway(&mut self.output, STREAM_MAX, ErrorCode::NoError);
        self.ping();
    }

    /// Lets no new streams begin; those that are open go on.
    pub fn goaway(&mut self, code: ErrorCode) {
        self.is_going = true;
        frame::push_goaway(&mut self.output, self.streams.last_of_peer(), code);
    }

    /// Notes that bytes of [`super::H2Event::Data`] were handled: the peer may send as many again. Sends a
    /// WINDOW_UPDATE only when there are enough bytes for a frame.
    pub fn consumed(&mut self, stream: u32, counted: usize) {
        self.return_window(counted);
        let half = self.limits.window / 2;
        let Some(known) = self.streams.get(stream) else { return };
        known.unreturned = known.unreturned.saturating_add(u32::try_from(counted).unwrap_or(u32::MAX));
        if known.incoming == Incoming::Body && known.unreturned >= half.max(1) {
            known.receive_window += i64::from(known.unreturned);
            let more = std::mem::take(&mut known.unreturned);
            frame::push_window(&mut self.output, stream, more);
        }
    }

    /// On a client: notes that the received head is the final answer and not an interim one. `declared` is the length
    /// of its body, if known.
    pub fn answered(&mut self, stream: u32, declared: Option<u64>) {
        let Some(known) = self.streams.get(stream) else { return };
        if known.incoming == Incoming::Head {
            known.incoming = Incoming::Body;
        }
        known.body = BodyCount::new(declared);
    }

    pub(super) fn return_window(&mut self, counted: usize) {
        self.unreturned = self.unreturned.saturating_add(u32::try_from(counted).unwrap_or(u32::MAX));
        if self.unreturned >= self.limits.connection_window / 2 {
            let more = std::mem::take(&mut self.unreturned);
            self.receive_window += i64::from(more);
            frame::push_window(&mut self.output, 0, more);
        }
    }

    fn end_outgoing(&mut self, stream: u32) {
        if let Some(known) = self.streams.get(stream) {
            known.outgoing = Outgoing::Done;
            self.calm.answered();
        }
        self.streams.forget_if_over(stream);
    }
}
