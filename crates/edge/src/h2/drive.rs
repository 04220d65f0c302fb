//! Drives a connection: reads frames, begins streams, sends what they wrote, and knows when it is over.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_net::worker::Task;
use weir_net::{Lease, buffer, clock};
use weir_wire::Violation;
use weir_wire::h2::connection::{Event, Step};
use weir_wire::h2::{Code, Fault};

use super::limits;
use super::request::{self, Begun};
use super::session::{OUT_MAX, Session};
use super::stream::Stream;
use crate::conn::{self, After, Conn};
use crate::head::{self, default_core, default_values};
use crate::log::{self, Level};
use crate::seat::Guest;
use crate::worker::Entry;

/// Bytes read at a time: some requests, or one full frame with its head.
const READ_BYTES: usize = 18 << 10;
/// Reads in one turn, after which others have theirs.
const READS_MAX: usize = 8;

/// Serves a connection whose client speaks HTTP/2; `early` came before, preface included.
pub fn serve(conn: Box<Conn>, entry: Entry, early: &[u8]) {
    let generation = entry.worker.generation();
    let listen = conn.client.listen.get();
    let values = default_values(&generation.conf, listen);
    let session = Session::new(conn.shared.clone(), limits(&generation.conf, listen), values.http2.chunk);
    let mut input = buffer::lease(READ_BYTES.max(early.len()));
    input.extend_from_slice(early);
    let drive = Drive { conn, entry, session, input, start: 0, needs: 0, is_begun: false, waits: Waits::Nothing };
    weir_net::worker::spawn(Box::pin(live(drive)));
}

async fn live(mut drive: Drive) {
    let end = poll_fn(|_| drive.poll()).await;
    drive.session.kill();
    drive.conn.shared.keep(Task::NONE);
    let Drive { conn, entry, .. } = drive;
    let generation = entry.worker.generation();
    match end {
        End::Done => {
            let core = default_core(&generation.conf, conn.client.listen.get());
            // What the client sends now crosses our end: closing at once would destroy what is on its way to it.
            conn::linger(&conn, &entry.worker, core.lingering_time, core.lingering_timeout).await;
        }
        End::Closed => conn.shared.stream.shutdown(),
        End::Stuck => {
            conn.stream().reset();
            conn.shared.stream.shutdown();
        }
        End::Broken(error) => {
            log::client_line(
                &generation.conf,
                &conn.client,
                Level::Info,
                format_args!("client closed connection {}", log::Os(&error)),
            );
            conn.shared.stream.shutdown();
        }
    }
}

/// How a connection comes to its end.
enum End {
    /// All is said, or the client broke a rule and was told.
    Done,
    /// It was told to end, or the client did so in order.
    Closed,
    /// It takes nothing.
    Stuck,
    /// It failed.
    Broken(io::Error),
}

/// What the connection's deadline is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Streams have their own.
    Nothing,
    /// The preface, or the rest of a frame or of a section: `client_header_timeout`.
    Frame,
    /// A request: `keepalive_timeout`.
    Idle,
    /// The socket: `send_timeout`.
    Socket,
}

struct Drive {
    conn: Box<Conn>,
    entry: Entry,
    session: Rc<Session>,
    /// Bytes read; those before `start` are done with.
    input: Lease,
    start: usize,
    /// So many bytes from `start` on must be there before there is anything to do.
    needs: usize,
    is_begun: bool,
    waits: Waits,
}

impl Drive {
    fn poll(&mut self) -> Poll<End> {
        self.session.driven_here();
        self.conn.shared.keep(Task::current());
        loop {
            if self.conn.shared.has_ended() {
                return Poll::Ready(End::Closed);
            }
            self.go_if_told();
            let sent = match self.session.flush(&self.conn.shared.stream) {
                Ok(sent) => sent,
                Err(error) => return Poll::Ready(End::Broken(error)),
            };
            let waiting = self.session.waiting();
            if self.is_going() && self.session.tasks() == 0 && waiting == 0 {
                return Poll::Ready(End::Done);
            }
            let read = if waiting < OUT_MAX { self.read() } else { Ok(false) };
            match read {
                Ok(true) => continue,
                Ok(false) => {}
                Err(end) => return Poll::Ready(end),
            }
            if self.session.waiting() > waiting {
                continue;
            }
            match self.poll_deadline(sent > 0) {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// A stop, or a reload: streams that are open go on, new ones do not. nginx's workers of an older configuration do
    /// the same.
    fn go_if_told(&self) {
        let worker = &self.entry.worker;
        let is_old = self.conn.shared.generation.get() != worker.generation().conf.generation;
        if worker.is_draining() || is_old {
            self.go();
        }
    }

    fn go(&self) {
        if !self.is_going() {
            self.session.wire.borrow_mut().goaway(Code::NoError);
        }
    }

    fn is_going(&self) -> bool {
        self.session.wire.borrow().is_going()
    }

    /// Reads and acts on what is there; whether there may be more. A fault is told to the client before it ends all.
    fn read(&mut self) -> Result<bool, End> {
        for _ in 0..READS_MAX {
            match self.take_frames() {
                Ok(()) => {}
                Err(fault) => return Err(self.refuse(fault)),
            }
            if self.session.waiting() >= OUT_MAX {
                return Ok(true);
            }
            let stream = &self.conn.shared.stream;
            if stream.poll_readable().is_pending() {
                self.shrink();
                return Ok(false);
            }
            self.input.drain(..self.start);
            self.start = 0;
            let room = READ_BYTES.max(self.needs.saturating_sub(self.input.len()));
            if self.input.capacity() < self.input.len() + room {
                self.input.reserve(room);
            }
            match stream.try_read_vec(&mut self.input, room) {
                // Frames that were cut off say nothing; streams that are open have lost their client.
                Ok(0) => return Err(End::Closed),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(End::Broken(error)),
            }
        }
        // Others have their turn.
        Task::current().wake();
        Ok(false)
    }

    /// A connection that waits holds no buffer.
    fn shrink(&mut self) {
        if self.start == self.input.len() {
            (self.input, self.start) = (Lease::none(), 0);
        }
    }

    fn take_frames(&mut self) -> Result<(), Fault> {
        if !self.is_begun && !self.begin()? {
            return Ok(());
        }
        loop {
            let rest = self.input.get(self.start..).unwrap_or_default();
            if rest.len() < self.needs || rest.is_empty() {
                return Ok(());
            }
            let step = self.session.wire.borrow_mut().next(rest)?;
            match step {
                Step::Need(count) => self.needs = count,
                Step::Took { used, event } => {
                    let taken = act(&mut self.conn, &self.entry, &self.session, event);
                    self.start += used;
                    self.needs = 0;
                    // Each frame has its own time, or a long upload would end with it; a section's frames share theirs.
                    if self.waits == Waits::Frame && !self.session.wire.borrow().is_in_section() {
                        self.waits = Waits::Nothing;
                    }
                    if taken {
                        self.count_request();
                    }
                    if self.session.waiting() >= OUT_MAX {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// The preface; `false` when it is not all there.
    fn begin(&mut self) -> Result<bool, Fault> {
        match super::preface(&self.input) {
            super::Preface::Whole => {
                self.start = weir_wire::h2::connection::PREFACE.len();
                self.is_begun = true;
                Ok(true)
            }
            super::Preface::Part => Ok(false),
            super::Preface::Other => Err(Fault::connection(Code::Protocol, "client sent invalid HTTP/2 preface")),
        }
    }

    /// nginx: `keepalive_requests` and `keepalive_time` end a connection with the request that reaches them.
    fn count_request(&mut self) {
        let generation = self.entry.worker.generation();
        let core = default_core(&generation.conf, self.conn.client.listen.get());
        let age = clock::now().saturating_duration_since(self.conn.client.accepted);
        if self.conn.served() >= core.keepalive_requests || age > core.keepalive_time {
            self.go();
        }
    }

    fn refuse(&mut self, fault: Fault) -> End {
        let generation = self.entry.worker.generation();
        log::client_line(
            &generation.conf,
            &self.conn.client,
            Level::Info,
            format_args!("{fault} while processing HTTP/2 connection"),
        );
        self.session.wire.borrow_mut().fail(fault);
        match self.session.flush(&self.conn.shared.stream) {
            Ok(_) => End::Done,
            Err(error) => End::Broken(error),
        }
    }

    /// Sets the deadline for what is waited for now; `Ready(None)` when something is to be sent since.
    fn poll_deadline(&mut self, has_sent: bool) -> Poll<Option<End>> {
        let has_streams = self.session.tasks() > 0;
        let waits = match () {
            () if self.session.waiting() > 0 => Waits::Socket,
            () if !self.is_begun || self.start < self.input.len() || self.session.wire.borrow().is_in_section() => {
                Waits::Frame
            }
            () if has_streams => Waits::Nothing,
            () => Waits::Idle,
        };
        if waits != self.waits || waits == Waits::Socket && has_sent {
            self.waits = waits;
            self.set_deadline(waits);
        }
        if has_streams {
            self.conn.shared.wake();
        } else {
            self.conn.shared.lie_idle();
        }
        if self.conn.deadline.poll_expired().is_pending() {
            return Poll::Pending;
        }
        match waits {
            Waits::Socket => Poll::Ready(Some(End::Stuck)),
            Waits::Idle if !self.is_going() => {
                self.go();
                Poll::Ready(None)
            }
            Waits::Nothing => Poll::Pending,
            Waits::Idle | Waits::Frame => Poll::Ready(Some(End::Closed)),
        }
    }

    fn set_deadline(&self, waits: Waits) {
        let generation = self.entry.worker.generation();
        let core = default_core(&generation.conf, self.conn.client.listen.get());
        let time = match waits {
            Waits::Nothing => return self.conn.deadline.clear(),
            Waits::Frame => core.header_timeout,
            Waits::Idle if self.conn.served() == 0 => core.header_timeout,
            Waits::Idle => core.keepalive_timeout.0.max(Duration::from_millis(1)),
            Waits::Socket => core.send_timeout,
        };
        self.conn.deadline.set(time);
    }
}

/// Does what a frame asks for; whether it began a request.
fn act(conn: &mut Conn, entry: &Entry, session: &Rc<Session>, event: Event<'_>) -> bool {
    match event {
        Event::Nothing | Event::GoAway { .. } => {}
        Event::Head { stream, ends, malformed } => {
            return begin(conn, entry, session, (stream, ends, malformed));
        }
        Event::Malformed { stream, what } => {
            note(conn, entry, what);
            match session.stream(stream) {
                Some(known) => known.malform(),
                // It was answered already.
                None => session.wire.borrow_mut().reset(stream, Code::Protocol),
            }
        }
        Event::Data { stream, data, counted, ends } => {
            let known = session.stream(stream);
            // What is not kept is given back at once: padding, and what nobody reads any more.
            let kept = if known.is_some() { data.len() } else { 0 };
            session.wire.borrow_mut().consumed(stream, counted - kept);
            if let Some(known) = known {
                known.take_in(data, ends);
            }
        }
        Event::Trailers { stream } => {
            if let Some(known) = session.stream(stream) {
                known.take_in(&[], true);
            }
        }
        Event::Reset { stream, fault, .. } => {
            if let Some(fault) = fault {
                note(conn, entry, fault.what);
            }
            if let Some(known) = session.stream(stream) {
                known.end();
            }
        }
        Event::Writable { stream: None } => session.wake_writers(),
        Event::Writable { stream: Some(stream) } => {
            // With the connection's window shut it would find nothing, and lose its turn.
            if session.wire.borrow().sendable(stream) > 0
                && let Some(known) = session.stream(stream)
            {
                known.wake_writer();
            }
        }
    }
    false
}

/// A request: a task of its own.
fn begin(
    conn: &mut Conn,
    entry: &Entry,
    session: &Rc<Session>,
    (id, ends, length): (u32, bool, Option<&'static str>),
) -> bool {
    let worker = &entry.worker;
    let generation = worker.generation();
    let policy = head::policy(default_core(&generation.conf, conn.client.listen.get()));
    // Sec-WebSocket-Key proves nothing to anybody (RFC 6455 §10.3): any number will do.
    let mut key = [0; 16];
    key.fill_with(|| worker.random(256) as u8);
    let (mut begun, fields) = request::read(&mut session.wire.borrow_mut(), worker.lease_parts(), ends, &policy, key);
    begun.parts.request().started = Some(clock::now());
    let stream = Stream::new(id, session.clone(), ends);
    if let Some(malformed) = fields.or(length) {
        note(conn, entry, malformed);
        begun.refusal.get_or_insert(Violation::MalformedRequest);
        stream.blame();
    }
    session.add(stream.clone());
    let conn = Box::new(conn.of_stream(&stream));
    weir_net::worker::spawn(serve_stream(Served(stream), conn, worker.clone(), begun));
    true
}

fn note(conn: &Conn, entry: &Entry, what: &str) {
    let generation = entry.worker.generation();
    log::client_line(
        &generation.conf,
        &conn.client,
        Level::Info,
        format_args!("client sent {what} while processing HTTP/2 connection"),
    );
}

/// Ends its stream when it is dropped, be it that the task panics.
struct Served(Rc<Stream>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn serve_stream(served: Served, conn: Box<Conn>, worker: Rc<crate::worker::Worker>, begun: Begun) {
    let _served = served;
    let mut seat = worker.lease_seat();
    seat.take(Guest { conn, worker: worker.clone(), early: None, begun: Some(begun) });
    let (conn, after) = poll_fn(|context| seat.poll(context)).await;
    worker.return_seat(seat);
    if let After::Tunnel(mut tunnel) = after {
        let end = poll_fn(|_| tunnel.poll(&conn)).await;
        tunnel.close(end, &conn, &worker);
    }
}
