//! The state that the streams of a connection share: the connection itself, the frames that wait to be sent, and the
//! streams that wait to write.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use weir_net::worker::Task;
use weir_net::{Lease, Transport, buffer};
use weir_wire::h2::connection::{Connection, Limits, Role};

use super::stream::Stream;
use crate::hold::conn::Shared;

/// The connection that carries a session's frames.
pub enum Carrier {
    /// A client's connection.
    Client(Rc<Shared>),
    /// A connection to an origin.
    Origin(Transport),
}

impl Carrier {
    /// The connection.
    pub fn transport(&self) -> &Transport {
        match self {
            Carrier::Client(shared) => &shared.stream,
            Carrier::Origin(transport) => transport,
        }
    }
}

/// Bytes of frames that wait for the socket; above this limit no stream writes and no frame is read.
pub const OUT_MAX: usize = 64 << 10;

/// A connection that carries streams.
pub struct Session {
    carrier: Carrier,
    /// Its frames, windows and tables.
    pub wire: RefCell<Connection>,
    /// Bytes of a body that the peer may send before its reader begins.
    pub preread: u32,
    /// Bytes of a body in one frame (`http2_chunk_size`).
    pub chunk: usize,
    pub(super) out: RefCell<Out>,
    streams: RefCell<Vec<Rc<Stream>>>,
    /// The stream that is woken first when there is room again.
    turn: Cell<usize>,
    /// A stream waits for room.
    is_awaited: Cell<bool>,
    driver: Cell<Task>,
    is_dead: Cell<bool>,
    /// How often bytes were read.
    heard: Cell<u64>,
    /// weir sent a PING and has no answer yet.
    is_doubted: Cell<bool>,
    /// The rule that the peer broke and that ended the connection.
    fault: Cell<Option<&'static str>>,
}

/// Frames on their way out.
pub(super) struct Out {
    bytes: Lease,
    start: usize,
}

impl Out {
    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The buffer for new frames; first takes the frames that the connection itself wants to send.
    pub fn behind(&mut self, wire: &mut Connection) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = buffer::lease(OUT_BYTES);
        }
        let own = wire.output();
        if !own.is_empty() {
            self.bytes.extend_from_slice(own);
            own.clear();
        }
        &mut self.bytes
    }
}

/// A first guess at the bytes that are sent at once: some answers of a kilobyte.
const OUT_BYTES: usize = 16 << 10;

impl Session {
    /// A session over a connection; its SETTINGS wait to be sent.
    pub fn new(carrier: Carrier, limits: Limits, chunk: usize) -> Rc<Session> {
        let role = match carrier {
            Carrier::Client(_) => Role::Server,
            Carrier::Origin(_) => Role::Client,
        };
        Session::resume(carrier, Connection::new(role, limits), limits.window, chunk)
    }

    /// A session that goes on with a connection at rest. `window` is that of each stream.
    pub fn resume(carrier: Carrier, wire: Connection, window: u32, chunk: usize) -> Rc<Session> {
        Rc::new(Session {
            carrier,
            preread: window,
            wire: RefCell::new(wire),
            chunk,
            out: RefCell::new(Out { bytes: Lease::none(), start: 0 }),
            streams: RefCell::default(),
            turn: Cell::new(0),
            is_awaited: Cell::new(false),
            driver: Cell::new(Task::NONE),
            is_dead: Cell::new(false),
            heard: Cell::new(0),
            is_doubted: Cell::new(false),
            fault: Cell::new(None),
        })
    }

    /// Takes a session apart that nobody uses any more.
    pub fn into_parts(self) -> (Carrier, Connection) {
        (self.carrier, self.wire.into_inner())
    }

    /// Counts a read.
    pub(super) fn hear(&self) {
        self.heard.set(self.heard.get() + 1);
    }

    /// How often bytes were read so far.
    pub(super) fn heard(&self) -> u64 {
        self.heard.get()
    }

    /// Asks the peer for a sign of life (a PING); until it arrives, [`Session::is_doubted`] is true.
    pub fn doubt(&self) {
        if !self.is_dead() && !self.is_doubted.replace(true) {
            self.wire.borrow_mut().ping();
            self.tell_driver();
        }
    }

    /// Notes that the sign of life arrived.
    pub fn trust(&self) {
        self.is_doubted.set(false);
    }

    /// Whether weir still waits for a sign of life.
    pub fn is_doubted(&self) -> bool {
        self.is_doubted.get()
    }

    /// Notes the rule that the peer broke.
    pub fn blame(&self, what: &'static str) {
        self.fault.set(Some(what));
    }

    /// The rule that the peer broke.
    pub fn fault(&self) -> Option<&'static str> {
        self.fault.get()
    }

    /// The connection itself.
    pub fn transport(&self) -> &Transport {
        self.carrier.transport()
    }

    /// Notes that the current task is the one that sends.
    pub fn driven_here(&self) {
        self.driver.set(Task::current());
    }

    /// Wakes the sending task: something waits to be sent, or has ended.
    pub fn tell_driver(&self) {
        self.driver.get().wake();
    }

    /// Whether weir can neither send nor receive anything any more.
    pub fn is_dead(&self) -> bool {
        self.is_dead.get()
    }

    /// Streams that have a task: if a peer resets streams, they may outnumber the open streams for a moment.
    pub fn tasks(&self) -> usize {
        self.streams.borrow().len()
    }

    /// Notes a stream that gets a task.
    pub fn add(&self, stream: Rc<Stream>) {
        self.streams.borrow_mut().push(stream);
    }

    pub(super) fn remove(&self, id: u32) {
        self.streams.borrow_mut().retain(|stream| stream.id() != id);
    }

    /// Every stream that still has a task.
    pub fn streams(&self) -> Vec<Rc<Stream>> {
        self.streams.borrow().clone()
    }

    /// A stream by its number.
    pub fn stream(&self, id: u32) -> Option<Rc<Stream>> {
        self.streams.borrow().iter().find(|stream| stream.id() == id).cloned()
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> usize {
        self.out.borrow().len() + self.wire.borrow_mut().output().len()
    }

    pub(super) fn await_room(&self) {
        self.is_awaited.set(true);
    }

    /// Sends the waiting bytes, as far as possible; returns how many were sent. The rest waits for the socket.
    pub fn flush(&self) -> io::Result<usize> {
        let transport = self.transport();
        let (mut wire, mut out) = (self.wire.borrow_mut(), self.out.borrow_mut());
        if out.len() == 0 && wire.output().is_empty() {
            return Ok(0);
        }
        out.behind(&mut wire);
        let mut sent = 0;
        while out.len() > 0 {
            match transport.try_write(out.bytes.get(out.start..).unwrap_or_default()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    out.start += count;
                    sent += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if transport.poll_writable().is_pending() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if out.len() == 0 {
            *out = Out { bytes: Lease::none(), start: 0 };
        }
        let has_room = out.len() < OUT_MAX;
        drop((wire, out));
        if has_room && self.is_awaited.replace(false) {
            self.wake_writers();
        }
        Ok(sent)
    }

    /// Sends the waiting bytes before a reset. A client that finds both in one TLS record can take the stream for
    /// broken and lose its answer (curl 7.88 does); nginx writes them apart too. The driver handles a failure.
    pub(super) fn send_apart(&self) {
        self.flush().ok();
    }

    /// Handles a piece of a body: keeps it for the reader of the stream, or gives it back to the peer's windows.
    pub fn data_came(&self, id: u32, data: &[u8], counted: usize, ends: bool) {
        let known = self.stream(id);
        // Bytes that are not kept are given back at once: padding, and bytes for a stream that nobody reads any more.
        let kept = if known.is_some() { data.len() } else { 0 };
        self.wire.borrow_mut().consumed(id, counted - kept);
        if let Some(known) = known {
            known.take_in(data, ends);
        }
    }

    /// Handles that more may be sent: on this stream, or on any.
    pub fn writable(&self, id: Option<u32>) {
        let Some(id) = id else { return self.wake_writers() };
        // If the connection's window is shut, the stream could not write and would lose its turn.
        if self.wire.borrow().sendable(id) > 0
            && let Some(known) = self.stream(id)
        {
            known.wake_writer();
        }
    }

    /// Wakes every stream that waits to write: in the client's priority order; among equals, another one first each
    /// time.
    pub fn wake_writers(&self) {
        let (streams, wire) = (self.streams.borrow(), self.wire.borrow());
        let first = self.turn.get() % streams.len().max(1);
        self.turn.set(first + 1);
        let mut waiting: Vec<&Rc<Stream>> =
            streams.iter().cycle().skip(first).take(streams.len()).filter(|stream| stream.waits_to_write()).collect();
        waiting.sort_by_key(|stream| wire.turn(stream.id()));
        for stream in waiting {
            stream.wake_writer();
        }
    }

    /// Ends the session: wakes every stream, so that it notices.
    pub fn kill(&self) {
        self.is_dead.set(true);
        self.driver.set(Task::NONE);
        for stream in self.streams.take() {
            stream.wake();
        }
    }
}
