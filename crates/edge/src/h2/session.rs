//! What the streams of a connection share: its state, the frames that wait to be sent, and who waits to write more.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use weir_net::worker::Task;
use weir_net::{Lease, Transport, buffer};
use weir_wire::h2::connection::{Connection, Limits, Role};

use super::stream::Stream;
use crate::conn::Shared;

/// What a session's frames come and go by.
pub enum Carrier {
    /// A client's connection.
    Client(Rc<Shared>),
    /// One to an origin.
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

/// Bytes of frames that wait for the socket, above which no stream writes and no frame is read.
pub const OUT_MAX: usize = 64 << 10;

/// A connection that carries streams.
pub struct Session {
    carrier: Carrier,
    /// Its frames, windows and tables.
    pub wire: RefCell<Connection>,
    /// What the peer may send of a body before somebody reads it.
    pub preread: u32,
    /// Bytes of a body in one frame (`http2_chunk_size`).
    pub chunk: usize,
    pub(super) out: RefCell<Out>,
    streams: RefCell<Vec<Rc<Stream>>>,
    /// Whose turn it is first when there is room again.
    turn: Cell<usize>,
    /// Somebody waits for room.
    is_awaited: Cell<bool>,
    driver: Cell<Task>,
    is_dead: Cell<bool>,
    /// How often something was read.
    heard: Cell<u64>,
    /// A sign of life was asked for and has not come.
    is_doubted: Cell<bool>,
    /// The rule that the peer broke, which ended all.
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

    /// Where frames are appended, behind those that the connection itself has to say.
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

/// A first guess at what is sent at once: some answers of a kilobyte.
const OUT_BYTES: usize = 16 << 10;

impl Session {
    /// A session over a connection; SETTINGS wait to be sent.
    pub fn new(carrier: Carrier, limits: Limits, chunk: usize) -> Rc<Session> {
        let role = match carrier {
            Carrier::Client(_) => Role::Server,
            Carrier::Origin(_) => Role::Client,
        };
        Rc::new(Session {
            carrier,
            preread: limits.window,
            wire: RefCell::new(Connection::new(role, limits)),
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

    /// Something was read.
    pub(super) fn hear(&self) {
        self.heard.set(self.heard.get() + 1);
    }

    /// How often something was read so far.
    pub(super) fn heard(&self) -> u64 {
        self.heard.get()
    }

    /// Asks the peer for a sign of life; until it comes, [`Session::is_doubted`].
    pub fn doubt(&self) {
        if !self.is_dead() && !self.is_doubted.replace(true) {
            self.wire.borrow_mut().ping();
            self.tell_driver();
        }
    }

    /// The sign of life came.
    pub fn trust(&self) {
        self.is_doubted.set(false);
    }

    /// Whether a sign of life is owed.
    pub fn is_doubted(&self) -> bool {
        self.is_doubted.get()
    }

    /// Notes why it ends.
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

    /// The task being polled is the one that sends.
    pub fn driven_here(&self) {
        self.driver.set(Task::current());
    }

    /// Something waits to be sent, or has ended.
    pub fn tell_driver(&self) {
        self.driver.get().wake();
    }

    /// Whether nothing can be sent or received any more.
    pub fn is_dead(&self) -> bool {
        self.is_dead.get()
    }

    /// Streams that somebody serves or waits for: those of a peer that resets them may outnumber the open ones for a moment.
    pub fn tasks(&self) -> usize {
        self.streams.borrow().len()
    }

    pub(super) fn add(&self, stream: Rc<Stream>) {
        self.streams.borrow_mut().push(stream);
    }

    pub(super) fn remove(&self, id: u32) {
        self.streams.borrow_mut().retain(|stream| stream.id() != id);
    }

    /// Every stream, those that nobody serves any more left out.
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

    /// Sends what waits, as far as it goes: how many bytes went. The rest waits for the socket.
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

    /// Sends what waits before a reset that follows it: a client that finds both in one TLS record can take the stream
    /// for broken and lose its answer (curl 7.88 does), and nginx writes them apart. What goes wrong, the driver meets.
    pub(super) fn send_apart(&self) {
        self.flush().ok();
    }

    /// A piece of a body came: kept for whoever reads it, or given back to the peer's windows.
    pub fn data_came(&self, id: u32, data: &[u8], counted: usize, ends: bool) {
        let known = self.stream(id);
        // What is not kept is given back at once: padding, and what nobody reads any more.
        let kept = if known.is_some() { data.len() } else { 0 };
        self.wire.borrow_mut().consumed(id, counted - kept);
        if let Some(known) = known {
            known.take_in(data, ends);
        }
    }

    /// More may be sent: on this stream, or on any.
    pub fn writable(&self, id: Option<u32>) {
        let Some(id) = id else { return self.wake_writers() };
        // With the connection's window shut it would find nothing, and lose its turn.
        if self.wire.borrow().sendable(id) > 0
            && let Some(known) = self.stream(id)
        {
            known.wake_writer();
        }
    }

    /// Every stream that waits to write looks again whether it may: those of the client's choice first, and among
    /// equals another one each time.
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

    /// Nothing more comes or goes: every stream learns of it.
    pub fn kill(&self) {
        self.is_dead.set(true);
        self.driver.set(Task::NONE);
        for stream in self.streams.take() {
            stream.wake();
        }
    }
}
