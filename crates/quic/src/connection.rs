//! One connection, and its streams by their numbers. For HTTP it is the place to read and write bytes.
//!
//! Whoever serves the connection keeps a task with it ([`QuicConnection::keep`]). The task is woken when something has
//! happened, and asks [`QuicConnection::next`]. What a task does on a stream goes out when the port is driven next.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, Dir, Event, ReadError, ReadableError, StreamEvent, VarInt,
    WriteError,
};
use weir_meter::live::quic::alert_name;
use weir_net::clock;
use weir_net::worker::Task;

use crate::listed::Listed;
use crate::proved::{AddressProof, ProvedAddress};

/// The number of a stream (RFC 9000 §2.1): its lowest two bits say who opened it, and whether both sides send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) quinn_proto::StreamId);

impl StreamId {
    /// The number on the wire.
    pub fn number(self) -> u64 {
        VarInt::from(self.0).into_inner()
    }

    /// Whether both sides send on it.
    pub fn is_bidirectional(self) -> bool {
        self.0.dir() == Dir::Bi
    }
}

/// Something that happened on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicEvent {
    /// The handshake is complete.
    Connected,
    /// The peer has opened this stream.
    Opened(StreamId),
    /// There is something to read: bytes, the end, or a reset.
    Readable(StreamId),
    /// There is room to write, or the peer wants no more.
    Writable(StreamId),
    /// The peer wants nothing more of this stream; its code.
    Stopped(StreamId, u64),
    /// The peer has acknowledged all bytes of this stream, and its end.
    Finished(StreamId),
    /// The peer allows more streams on which both sides send.
    Allowed,
    /// The connection has ended; [`QuicConnection::end`] has the reason.
    Ended,
}

/// What follows the bytes of a read. The end and a reset are told once: the stream is gone then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follows {
    /// More may be here.
    More,
    /// Nothing now: an event tells when there is more.
    Nothing,
    /// Nothing: the peer has sent all.
    End,
    /// Nothing: the peer has reset the stream, with this code.
    Reset(u64),
    /// There is no such stream.
    Gone,
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicEnd {
    /// The peer closed it: the code of the application, its reason.
    Closed(u64, String),
    /// The peer's QUIC closed it: the code of RFC 9000 §20.1, its reason.
    Refused(u64, String),
    /// weir's QUIC found that the peer broke a rule, or TLS failed: the code, a sentence.
    Fault(u64, String),
    /// Nothing came for the idle time.
    Idle,
    /// The peer has lost its state.
    Reset,
    /// weir closed it.
    Ours,
}

impl fmt::Display for QuicEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QuicEnd::Closed(code, reason) => write!(f, "client closed connection with error {code:#x} \"{reason}\""),
            QuicEnd::Refused(code, reason) => {
                write!(f, "client closed quic connection with error {} \"{reason}\"", Code(*code))
            }
            QuicEnd::Fault(code, reason) => write!(f, "quic error {}: {reason}", Code(*code)),
            QuicEnd::Idle => f.write_str("quic client timed out"),
            QuicEnd::Reset => f.write_str("quic stateless reset packet detected"),
            QuicEnd::Ours => f.write_str("quic connection closed"),
        }
    }
}

/// Codes of QUIC that are alerts of TLS (RFC 9001 §4.8).
const CRYPTO_ERRORS: RangeInclusive<u64> = 0x100..=0x1ff;

/// The alert of TLS that a code of QUIC stands for.
pub fn alert(code: u64) -> Option<u8> {
    CRYPTO_ERRORS.contains(&code).then_some((code & 0xff) as u8)
}

/// A code of QUIC, with the name of an alert.
struct Code(u64);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)?;
        alert(self.0).map_or(Ok(()), |alert| write!(f, " ({})", alert_name(alert)))
    }
}

impl From<ConnectionError> for QuicEnd {
    fn from(reason: ConnectionError) -> QuicEnd {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match reason {
            ConnectionError::ApplicationClosed(close) => {
                QuicEnd::Closed(close.error_code.into_inner(), text(&close.reason))
            }
            ConnectionError::ConnectionClosed(close) => QuicEnd::Refused(close.error_code.into(), text(&close.reason)),
            ConnectionError::TransportError(error) => QuicEnd::Fault(error.code.into(), error.reason),
            ConnectionError::TimedOut => QuicEnd::Idle,
            ConnectionError::Reset => QuicEnd::Reset,
            ConnectionError::LocallyClosed => QuicEnd::Ours,
            other @ (ConnectionError::VersionMismatch | ConnectionError::CidsExhausted) => {
                QuicEnd::Fault(0, other.to_string())
            }
        }
    }
}

/// What a connection has sent, received and lost. A packet counts as lost when it was not acknowledged in time, also if it was
/// only late; probes for a larger MTU do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicCounts {
    /// Datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of their payloads.
    pub sent_bytes: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Bytes of their payloads.
    pub received_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Those of them that were declared lost (RFC 9002 §6.1).
    pub lost_packets: u64,
    /// Times that the congestion window was reduced.
    pub congestion_events: u64,
}

impl QuicCounts {
    /// The sum of both.
    pub fn plus(self, other: QuicCounts) -> QuicCounts {
        self.with(other, u64::saturating_add)
    }

    /// The difference to earlier counts.
    pub fn since(self, before: QuicCounts) -> QuicCounts {
        self.with(before, u64::saturating_sub)
    }

    fn with(self, other: QuicCounts, of: impl Fn(u64, u64) -> u64) -> QuicCounts {
        QuicCounts {
            sent_datagrams: of(self.sent_datagrams, other.sent_datagrams),
            sent_bytes: of(self.sent_bytes, other.sent_bytes),
            received_datagrams: of(self.received_datagrams, other.received_datagrams),
            received_bytes: of(self.received_bytes, other.received_bytes),
            sent_packets: of(self.sent_packets, other.sent_packets),
            lost_packets: of(self.lost_packets, other.lost_packets),
            congestion_events: of(self.congestion_events, other.congestion_events),
        }
    }
}

/// One QUIC connection of this worker.
pub struct QuicConnection {
    pub(crate) handle: ConnectionHandle,
    pub(crate) inner: RefCell<Connection>,
    listed: Rc<Listed>,
    pub(crate) remote: ProvedAddress,
    task: Cell<Task>,
    /// Streams to reset once the bytes written before have been sent, with the codes; at most some for each open stream.
    resets: RefCell<Vec<(StreamId, VarInt)>>,
    /// It is in the port's list of those to be driven.
    is_listed: Cell<bool>,
    end: RefCell<Option<QuicEnd>>,
    is_end_told: Cell<bool>,
    /// Packets that were declared lost, and counted.
    pub(crate) lost: Cell<u64>,
}

impl QuicConnection {
    pub(crate) fn new(
        handle: ConnectionHandle,
        inner: Connection,
        listed: Rc<Listed>,
        proof: Arc<AddressProof>,
    ) -> Rc<QuicConnection> {
        Rc::new(QuicConnection {
            remote: ProvedAddress::new(inner.remote_address(), proof),
            handle,
            inner: RefCell::new(inner),
            listed,
            task: Cell::new(Task::NONE),
            resets: RefCell::default(),
            is_listed: Cell::new(false),
            end: RefCell::new(None),
            is_end_told: Cell::new(false),
            lost: Cell::new(0),
        })
    }

    /// Keeps the task that serves the connection.
    pub fn keep(&self, task: Task) {
        self.task.set(task);
    }

    /// Wakes the task that serves the connection.
    pub fn wake(&self) {
        self.task.get().wake();
    }

    /// The next thing that happened. After [`QuicEvent::Ended`] nothing more happens.
    pub fn next(&self) -> Option<QuicEvent> {
        let mut inner = self.inner.borrow_mut();
        loop {
            for dir in [Dir::Uni, Dir::Bi] {
                if let Some(id) = inner.streams().accept(dir) {
                    return Some(QuicEvent::Opened(StreamId(id)));
                }
            }
            let Some(event) = inner.poll() else { break };
            match event {
                Event::Connected => return Some(QuicEvent::Connected),
                Event::Stream(StreamEvent::Readable { id }) => return Some(QuicEvent::Readable(StreamId(id))),
                Event::Stream(StreamEvent::Writable { id }) => return Some(QuicEvent::Writable(StreamId(id))),
                Event::Stream(StreamEvent::Finished { id }) => return Some(QuicEvent::Finished(StreamId(id))),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    return Some(QuicEvent::Stopped(StreamId(id), error_code.into_inner()));
                }
                Event::ConnectionLost { reason } => drop(self.end.borrow_mut().get_or_insert(reason.into())),
                Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => return Some(QuicEvent::Allowed),
                // Opened streams are asked for above.
                Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Available { .. })
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
        (self.end.borrow().is_some() && !self.is_end_told.replace(true)).then_some(QuicEvent::Ended)
    }

    /// Why it ended; `None` while it lasts.
    pub fn end(&self) -> Option<QuicEnd> {
        self.end.borrow().clone()
    }

    /// Whether it has ended, or weir has closed it.
    pub fn has_ended(&self) -> bool {
        self.end.borrow().is_some() || self.inner.borrow().is_closed()
    }

    /// How it has ended, for an owner that needs no event any more; `None` while it lasts.
    pub fn fate(&self) -> Option<QuicEnd> {
        while self.next().is_some() {}
        self.end()
    }

    /// Whether the handshake goes on. A stream that is read meanwhile carries early data (RFC 9001 §4.6).
    pub fn is_handshaking(&self) -> bool {
        self.inner.borrow().is_handshaking()
    }

    /// The address of the peer: the one from which it began, or the last one that it has proved since (RFC 9000 §9.3).
    pub fn remote(&self) -> SocketAddr {
        self.remote.get()
    }

    /// Whether there is early data (RFC 9001 §4.6): a server takes that of its client, and a client may send it.
    pub fn has_early_data(&self) -> bool {
        self.inner.borrow().has_0rtt()
    }

    /// After the handshake: whether the server took what weir sent before.
    pub fn is_early_data_accepted(&self) -> bool {
        self.inner.borrow().accepted_0rtt()
    }

    /// What it has sent, received and lost so far.
    pub fn counts(&self) -> QuicCounts {
        let stats = self.inner.borrow().stats();
        QuicCounts {
            sent_datagrams: stats.udp_tx.datagrams,
            sent_bytes: stats.udp_tx.bytes,
            received_datagrams: stats.udp_rx.datagrams,
            received_bytes: stats.udp_rx.bytes,
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            congestion_events: stats.path.congestion_events,
        }
    }

    /// The longest datagram that the path carries, in bytes of its payload.
    pub fn path_mtu(&self) -> u16 {
        self.inner.borrow().current_mtu()
    }

    /// Tells it that weir's own address has changed.
    pub(crate) fn moved(&self) {
        self.inner.borrow_mut().local_address_changed();
        self.touch();
    }

    /// STREAM frames that were sent, also those that were sent again.
    pub fn stream_frames_sent(&self) -> u64 {
        self.inner.borrow().stats().frame_tx.stream
    }

    /// Shows the peer that weir lives: it answers with an acknowledgment, and its idle time begins anew.
    pub fn ping(&self) {
        self.inner.borrow_mut().ping();
        self.touch();
    }

    /// Opens a stream on which only weir sends; `None` while the peer allows no more.
    pub fn open_unidirectional(&self) -> Option<StreamId> {
        self.inner.borrow_mut().streams().open(Dir::Uni).map(StreamId)
    }

    /// Opens a stream on which both sides send; `None` while the peer allows no more.
    pub fn open_bidirectional(&self) -> Option<StreamId> {
        self.inner.borrow_mut().streams().open(Dir::Bi).map(StreamId)
    }

    /// Sends bytes on a unidirectional stream of weir's own, as far as the windows allow, and removes them. Opens the stream
    /// before its first bytes, once the peer allows it.
    pub fn send_own(&self, stream: &Cell<Option<StreamId>>, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        stream.set(stream.get().or_else(|| self.open_unidirectional()));
        if let Some(id) = stream.get()
            && let Ok(count) = self.write(id, &[IoSlice::new(bytes)], u64::MAX)
        {
            bytes.drain(..count.min(bytes.len()));
        }
    }

    /// How many streams the peer may have open at the same time on which both sides send.
    pub fn allow_streams(&self, count: u32) {
        self.inner.borrow_mut().set_max_concurrent_streams(Dir::Bi, count.into());
        self.touch();
    }

    /// Appends at most `max` bytes of a stream to `buf`, and tells what follows them.
    pub fn read(&self, id: StreamId, buf: &mut Vec<u8>, max: usize) -> Follows {
        let mut inner = self.inner.borrow_mut();
        let mut stream = inner.recv_stream(id.0);
        let mut chunks = match stream.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => return Follows::Gone,
        };
        let mut room = max;
        let follows = loop {
            if room == 0 {
                break Follows::More;
            }
            match chunks.next(room) {
                Ok(Some(chunk)) => {
                    buf.extend_from_slice(&chunk.bytes);
                    room -= chunk.bytes.len().min(room);
                }
                Ok(None) => break Follows::End,
                Err(ReadError::Blocked) => break Follows::Nothing,
                Err(ReadError::Reset(code)) => break Follows::Reset(code.into_inner()),
            }
        };
        let opens_window = chunks.finalize().should_transmit();
        drop(inner);
        if opens_window {
            self.touch();
        }
        follows
    }

    /// Writes as many bytes as the windows allow now, at most `most`. `WouldBlock`: [`QuicEvent::Writable`] tells when there is room.
    ///
    /// # Errors
    /// `BrokenPipe`: the peer wants no more, or the stream or the connection has ended.
    pub fn write(&self, id: StreamId, pieces: &[IoSlice<'_>], most: u64) -> io::Result<usize> {
        let mut inner = self.inner.borrow_mut();
        let mut stream = inner.send_stream(id.0);
        let mut count = 0;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        for piece in pieces {
            let piece = piece.get(..most - count).unwrap_or(piece);
            if piece.is_empty() {
                continue;
            }
            match stream.write(piece) {
                Ok(written) => {
                    count += written;
                    if written < piece.len() {
                        break;
                    }
                }
                Err(WriteError::Blocked) if count == 0 => return Err(io::ErrorKind::WouldBlock.into()),
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
        drop(inner);
        self.touch();
        Ok(count)
    }

    /// Ends a stream in order, after all bytes written.
    pub fn finish(&self, id: StreamId) {
        // A stream that the peer stopped, or that was reset, has ended already.
        let _ = self.inner.borrow_mut().send_stream(id.0).finish();
        self.touch();
    }

    /// Ends a stream with a code of the application. Of the bytes written before, those that the windows allow now go first;
    /// lost ones are not sent again.
    pub fn reset(&self, id: StreamId, code: u64) {
        self.resets.borrow_mut().push((id, code_of(code)));
        self.touch();
    }

    /// Resets the streams that wait for it; `false` if there are none.
    pub(crate) fn reset_waiting(&self, inner: &mut Connection) -> bool {
        let waiting = self.resets.take();
        for (id, code) in &waiting {
            // A stream that has ended meanwhile stays as it is.
            let _ = inner.send_stream(id.0).reset(*code);
        }
        !waiting.is_empty()
    }

    /// Asks the peer to send no more on a stream, with a code of the application; what it sent is dropped.
    pub fn stop(&self, id: StreamId, code: u64) {
        let _ = self.inner.borrow_mut().recv_stream(id.0).stop(code_of(code));
        self.touch();
    }

    /// The order among streams that have bytes to send: a higher number goes first.
    pub fn set_priority(&self, id: StreamId, priority: i32) {
        let _ = self.inner.borrow_mut().send_stream(id.0).set_priority(priority);
    }

    /// Ends the connection at once, with a code of the application and a reason for people.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.inner.borrow_mut().close(clock::now().std(), code_of(code), Bytes::copy_from_slice(reason));
        self.end.borrow_mut().get_or_insert(QuicEnd::Ours);
        self.touch();
    }

    /// Lets the port drive it: there may be something to send.
    pub(crate) fn touch(&self) {
        if !self.is_listed.replace(true) {
            self.listed.add(self.handle);
        }
    }

    /// Takes it off the list; whether it was on it.
    pub(crate) fn unlist(&self) -> bool {
        self.is_listed.replace(false)
    }
}

/// A code of the application; one that is too large for the wire is the largest.
fn code_of(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

impl fmt::Debug for QuicConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "QuicConnection({})", self.handle.0)
    }
}
