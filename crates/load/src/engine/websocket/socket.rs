//! The owner's end of an open WebSocket, and the task that reads it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use weir_net::buffer::{self, Lease};
use weir_net::{Deadline, Transport};
use weir_wire::websocket::{FRAME_HEAD_BYTES_MAX, FrameSender, Messages, Opcode, Violation, WebSocketEvent};
use weir_wire::websocket::{close_payload, push_masked_frame};

use super::deflate::{Deflating, Inflating};
use crate::engine::bell::Bell;
use crate::engine::dial::{READ_BYTES, is_passing};

/// Most bytes that wait to be sent. A peer that reads so slowly counts as failed.
const UNSENT_BYTES_MAX: usize = 16 << 20;
/// Longest time for the peer to end the connection after the goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// An open WebSocket; see the module above.
pub(crate) struct Socket {
    stream: Transport,
    /// Bytes that did not fit into the kernel's buffer.
    unsent: RefCell<Vec<u8>>,
    state: Cell<ReadyState>,
    /// Rings when the reading task has work.
    reader: Bell,
    /// Rings when bytes were sent or the connection ended.
    room: Bell,
    deflating: Option<Deflating>,
    message_bytes_max: usize,
    /// The longest allowed silence; `None`: no limit.
    silence_max: Cell<Option<Duration>>,
    /// Bytes that arrived with the handshake's answer.
    first: RefCell<Option<Lease>>,
}

/// `readyState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyState {
    /// 1: both sides may send messages.
    Open,
    /// 2: one side sent a close frame.
    Closing,
    /// 3: the connection has ended.
    Closed,
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IncomingMessage<'m> {
    /// True for text, which is then valid UTF-8.
    pub(crate) is_text: bool,
    pub(crate) payload: &'m [u8],
}

/// Why reading ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadingEnd {
    /// The connection ended; with the peer's close code, if there was one.
    Closed(Option<u16>),
    /// The peer was silent for too long.
    Silent,
    /// The connection broke.
    Broken(io::ErrorKind),
    /// The peer broke the protocol.
    Violation(Violation),
}

impl Socket {
    pub(super) fn new(
        stream: Transport,
        deflating: Option<Deflating>,
        message_bytes_max: usize,
        first: Option<Lease>,
    ) -> Socket {
        Socket {
            stream,
            unsent: RefCell::default(),
            state: Cell::new(ReadyState::Open),
            reader: Bell::default(),
            room: Bell::default(),
            deflating,
            message_bytes_max,
            silence_max: Cell::new(None),
            first: RefCell::new(first),
        }
    }

    pub(crate) fn state(&self) -> ReadyState {
        self.state.get()
    }

    /// Sends a text. Bytes that do not fit are sent later: [`Socket::sent`] waits for that.
    pub(crate) fn send_text(&self, text: &[u8]) {
        match self.deflating.as_ref().and_then(|deflating| deflating.deflate(text)) {
            Some(packed) => self.send(Opcode::Text, true, &packed),
            None => self.send(Opcode::Text, false, text),
        }
    }

    /// Waits until the kernel has taken all bytes, or the connection has ended.
    pub(crate) async fn sent(&self) {
        poll_fn(|context| {
            if self.unsent.borrow().is_empty() || self.state.get() == ReadyState::Closed {
                return Poll::Ready(());
            }
            self.room.listen(context);
            Poll::Pending
        })
        .await;
    }

    /// From now on, a peer that is silent for this long counts as gone.
    pub(crate) fn limit_silence(&self, max: Duration) {
        self.silence_max.set(Some(max));
        self.reader.ring();
    }

    /// Sends a close frame. The reading task ends when the peer has ended the connection, or after the time limit.
    pub(crate) fn close(&self) {
        if self.state.get() == ReadyState::Open {
            self.send(Opcode::Close, false, b"");
            self.state.set(ReadyState::Closing);
        }
        self.reader.ring();
    }

    /// Ends the connection without a close frame.
    pub(crate) fn terminate(&self) {
        self.state.set(ReadyState::Closed);
        self.stream.shutdown();
    }

    fn send(&self, opcode: Opcode, is_compressed: bool, payload: &[u8]) {
        if self.state.get() != ReadyState::Open {
            return;
        }
        let mut frame = buffer::lease(payload.len() + FRAME_HEAD_BYTES_MAX);
        push_masked_frame(&mut frame, opcode, is_compressed, fastrand::u32(..).to_ne_bytes(), payload);
        let mut rest: &[u8] = &frame;
        let mut unsent = self.unsent.borrow_mut();
        while unsent.is_empty() && !rest.is_empty() {
            match self.stream.try_write(rest) {
                Ok(len) => rest = rest.get(len..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The reading task notices the error itself, after it has read the remaining bytes.
                Err(_) => return,
            }
        }
        if rest.is_empty() {
            return;
        }
        if unsent.len() + rest.len() > UNSENT_BYTES_MAX {
            drop(unsent);
            return self.terminate();
        }
        unsent.extend_from_slice(rest);
        self.reader.ring();
    }

    /// Reads until the connection ends; calls `on` for each message.
    pub(crate) async fn read(&self, on: &mut dyn FnMut(IncomingMessage<'_>)) -> ReadingEnd {
        let compresses = self.deflating.is_some();
        let mut reading = Reading {
            messages: Messages::new(FrameSender::Server, compresses, self.message_bytes_max),
            inflating: self.deflating.as_ref().map(Deflating::inflating),
            code: None,
        };
        let deadline = Deadline::new();
        let first = self.first.take();
        let mut end = first.and_then(|first| self.take_in(&mut reading, &first, on));
        while end.is_none() {
            end = match self.turn(&deadline).await {
                Turn::Write => self.write_unsent(),
                Turn::Read => {
                    let mut input = buffer::lease(READ_BYTES);
                    match self.stream.try_read_vec(&mut input, READ_BYTES) {
                        Ok(0) => Some(ReadingEnd::Closed(reading.code)),
                        Ok(_) => self.take_in(&mut reading, &input, on),
                        Err(error) if is_passing(&error) => None,
                        Err(_) if self.state.get() != ReadyState::Open => Some(ReadingEnd::Closed(reading.code)),
                        Err(error) => Some(ReadingEnd::Broken(error.kind())),
                    }
                }
                Turn::Late if self.state.get() == ReadyState::Open => Some(ReadingEnd::Silent),
                Turn::Late => Some(ReadingEnd::Closed(reading.code)),
            };
        }
        self.state.set(ReadyState::Closed);
        self.room.ring();
        end.unwrap_or(ReadingEnd::Closed(None))
    }

    /// Waits for the next work.
    async fn turn(&self, deadline: &Deadline) -> Turn {
        let mut limited = None;
        poll_fn(|context| {
            if self.stream.poll_readable().is_ready() {
                return Poll::Ready(Turn::Read);
            }
            if !self.unsent.borrow().is_empty() && self.stream.poll_writable().is_ready() {
                return Poll::Ready(Turn::Write);
            }
            let limit = match self.state.get() {
                ReadyState::Open => self.silence_max.get(),
                ReadyState::Closing | ReadyState::Closed => Some(GOODBYE_MAX),
            };
            if limited != limit {
                limited = limit;
                deadline.set(limit.unwrap_or_default());
            }
            if limit.is_some() && deadline.poll_expired().is_ready() {
                return Poll::Ready(Turn::Late);
            }
            self.reader.listen(context);
            Poll::Pending
        })
        .await
    }

    fn write_unsent(&self) -> Option<ReadingEnd> {
        let mut unsent = self.unsent.borrow_mut();
        match self.stream.try_write(&unsent) {
            Ok(len) => {
                unsent.drain(..len);
                if unsent.is_empty() {
                    *unsent = Vec::new();
                    self.room.ring();
                }
                None
            }
            Err(error) if is_passing(&error) => None,
            Err(error) => Some(ReadingEnd::Broken(error.kind())),
        }
    }

    fn take_in(
        &self,
        reading: &mut Reading,
        input: &[u8],
        on: &mut dyn FnMut(IncomingMessage<'_>),
    ) -> Option<ReadingEnd> {
        let mut at = 0;
        loop {
            let said = match reading.messages.next(input.get(at..).unwrap_or_default(), &mut at) {
                Ok(WebSocketEvent::NeedMore) => return None,
                Ok(WebSocketEvent::Message { is_text, is_compressed: false, payload }) => {
                    on(IncomingMessage { is_text, payload });
                    Ok(())
                }
                Ok(WebSocketEvent::Message { is_text, payload, .. }) => {
                    let inflated = match &mut reading.inflating {
                        Some(inflating) => inflating.inflate(payload, is_text, self.message_bytes_max),
                        None => Err(Violation::ReservedBit),
                    };
                    inflated.map(|payload| on(IncomingMessage { is_text, payload: &payload }))
                }
                Ok(WebSocketEvent::Ping(payload)) => {
                    self.send(Opcode::Pong, false, payload);
                    Ok(())
                }
                Ok(WebSocketEvent::Pong(_)) => Ok(()),
                Ok(WebSocketEvent::Close(said)) => {
                    reading.code = said.map(|(code, _)| code);
                    self.send(Opcode::Close, false, &said.map_or(Vec::new(), |(code, _)| close_payload(code, "")));
                    self.state.set(ReadyState::Closing);
                    // The server closes the connection first (RFC 6455 §7.1.1), so the port in TIME_WAIT is the
                    // server's.
                    Ok(())
                }
                Err(violation) => Err(violation),
            };
            if let Err(violation) = said {
                self.send(Opcode::Close, false, &close_payload(violation.close_code(), ""));
                self.stream.shutdown();
                return Some(ReadingEnd::Violation(violation));
            }
        }
    }
}

/// State of the reading task.
struct Reading {
    messages: Messages,
    inflating: Option<Inflating>,
    /// The code in the peer's close frame.
    code: Option<u16>,
}

/// Work of the reading task.
enum Turn {
    Read,
    Write,
    Late,
}
