//! Drives an HTTP/2 connection: reads frames, begins streams, sends their output, and decides when the connection ends.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::line;
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Entry, Generation, Worker};
use weir_http::receive::h2::input::{Input, Over};
use weir_http::receive::h2::session::{Carrier, OUT_MAX, Session};
use weir_http::receive::h2::stream::Stream;
use weir_http::receive::head::{default_core, default_values};
use weir_net::log::{self, Level};
use weir_net::worker::Task;
use weir_net::{Instant, clock};
use weir_wire::Version;
use weir_wire::h2::connection::{H2Event, Limits};
use weir_wire::h2::{ErrorCode, H2Fault};
use weir_wire::section::message;

use super::carried;
use super::linger::linger;
use super::open;
use super::secure;

/// The limits that the default server of a listen sets.
fn limits(conf: &Conf, listen: usize) -> Limits {
    let values = default_values(conf, listen);
    let (count, size) = values.core.large_headers;
    Limits {
        streams: values.http2.streams_max,
        section: usize::try_from(u64::from(count) * size).unwrap_or(usize::MAX),
        window: values.http2.preread,
        is_connect_extended: true,
        ..Limits::default()
    }
}

/// Serves a connection whose client speaks HTTP/2; `early` has already arrived, including the preface.
pub fn serve(conn: Box<Conn>, entry: Entry, generation: Rc<Generation>, early: &[u8]) {
    let listen = conn.client.listen.get();
    let values = default_values(&generation.conf, listen);
    let session =
        Session::new(Carrier::Client(conn.shared.clone()), limits(&generation.conf, listen), values.http2.chunk);
    let input = Input::of_client(early);
    let drive = Drive { conn, entry, generation, session, input, waits: Waits::Nothing, notice_until: None };
    weir_net::worker::spawn(Box::pin(live(drive)));
}

async fn live(mut drive: Drive) {
    let end = poll_fn(|_| drive.poll()).await;
    drive.session.kill();
    drive.conn.shared.keep(Task::NONE);
    let Drive { conn, entry, generation, .. } = drive;
    match end {
        End::Done => {
            let core = default_core(&generation.conf, conn.client.listen.get());
            let (time, timeout) = (core.lingering_time, core.lingering_timeout);
            // A client that still sends does not need it.
            drop(generation);
            // The client may be sending at this moment: closing at once would destroy the bytes on their way to it.
            linger(&conn, &entry.worker, time, timeout).await;
        }
        End::Closed => conn.shared.stream.shutdown(),
        End::Stuck => {
            conn.stream().reset();
            conn.shared.stream.shutdown();
        }
        End::Broken(error) => {
            line::client_line(
                &generation.conf,
                &conn.client,
                Level::Info,
                format_args!("client closed connection {}", log::Os(&error)),
            );
            drop(generation);
            secure::say_why(&conn).await;
            conn.shared.stream.shutdown();
        }
    }
}

/// How a connection ended.
enum End {
    /// Everything is sent, or the client broke a rule and weir sent the error.
    Done,
    /// weir ended it, or the client ended it in order.
    Closed,
    /// The client accepts no data.
    Stuck,
    /// The connection failed.
    Broken(io::Error),
}

/// The wait that the connection's deadline bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Nothing: the streams have their own deadlines.
    Nothing,
    /// The preface, or the rest of a frame or of a section: `client_header_timeout`.
    Frame,
    /// A request: `keepalive_timeout`.
    Idle,
    /// The client's sign that it knows the announced end: [`NOTICE_MAX`].
    Notice,
    /// The socket: `send_timeout`.
    Socket,
}

struct Drive {
    conn: Box<Conn>,
    entry: Entry,
    /// The configuration of the connection and of its next streams.
    generation: Rc<Generation>,
    session: Rc<Session>,
    input: Input,
    waits: Waits,
    /// weir has announced the end of the connection, and waits until then for the client's answer.
    notice_until: Option<Instant>,
}

/// How long weir waits for a client that knows of the announced end, at most: more than a round trip.
const NOTICE_MAX: Duration = Duration::from_secs(1);

impl Drive {
    fn poll(&mut self) -> Poll<End> {
        self.session.driven_here();
        self.conn.shared.keep(Task::current());
        loop {
            if self.conn.shared.has_ended() {
                return Poll::Ready(End::Closed);
            }
            self.go_if_told();
            let sent = match self.session.flush() {
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

    /// A stop or a reload: open streams go on. After a reload, the next streams have the next configuration, as the next
    /// requests of a connection of HTTP/1.1 do, unless that configuration says other things about HTTP/2 itself.
    ///
    /// A request that is on its way gets its answer, also where the connection must end. So a connection without a request
    /// waits for its first one while other workers serve. Any other learns of the end first: a GOAWAY that refuses nothing,
    /// and a PING whose answer shows that nothing is on its way any more (RFC 9113 §6.8).
    fn go_if_told(&mut self) {
        let Drive { conn, entry, generation, session, notice_until, .. } = self;
        let (worker, lane) = (&entry.worker, entry.worker.lane(|| conn.client.ip()));
        let is_other = conn.shared.generation.get() != lane.conf.generation;
        if !is_other && !worker.is_draining() || session.wire.borrow().is_going() {
            return;
        }
        // Its lane's configuration may have other servers for it, or none.
        let listen = lane.listen_of(&conn.socket, conn.stream().socket());
        if let Some(listen) = listen {
            conn.client.listen.set(listen);
            *generation = lane;
        }
        if !worker.is_draining() && listen.is_some_and(|listen| may_go_on(conn, session, &generation.conf, listen)) {
            // Until then, worker_shutdown_timeout ends it with the streams of the older configuration.
            if session.tasks() == 0 {
                conn.shared.generation.set(generation.conf.generation);
            }
            return;
        }
        match *notice_until {
            _ if listen.is_none() || worker.is_last() => go(session),
            Some(until) if clock::now() < until => {}
            Some(_) => go(session),
            None if conn.served() == 0 => {}
            None => {
                session.wire.borrow_mut().announce_end();
                *notice_until = Some(clock::now() + NOTICE_MAX);
            }
        }
    }

    fn is_going(&self) -> bool {
        self.session.wire.borrow().is_going()
    }

    /// Reads and handles the bytes that are there; returns whether there may be more. After a fault, the client gets
    /// the error before the connection ends.
    fn read(&mut self) -> Result<bool, End> {
        let Drive { conn, entry, generation, session, input, waits, notice_until } = self;
        let read = input.read(session, &mut |event| {
            if event == H2Event::Pong && notice_until.is_some() {
                go(session);
            }
            // Each frame has its own time, because a long upload takes longer than one timeout. The frames of one
            // header section share one time.
            if *waits == Waits::Frame && !session.wire.borrow().is_in_section() {
                *waits = Waits::Nothing;
            }
            if act(conn, (&entry.worker, generation), session, event) && is_spent(conn, &generation.conf) {
                go(session);
            }
        });
        read.map_err(|over| match over {
            Over::Closed => End::Closed,
            Over::Broken(error) => End::Broken(error),
            Over::Fault(fault) => self.refuse(fault),
        })
    }

    fn refuse(&mut self, fault: H2Fault) -> End {
        line::client_line(
            &self.generation.conf,
            &self.conn.client,
            Level::Info,
            format_args!("{fault} while processing HTTP/2 connection"),
        );
        self.session.wire.borrow_mut().fail(fault);
        match self.session.flush() {
            Ok(_) => End::Done,
            Err(error) => End::Broken(error),
        }
    }

    /// Sets the deadline for the current wait. `Ready(None)` if weir must send something first.
    fn poll_deadline(&mut self, has_sent: bool) -> Poll<Option<End>> {
        let has_streams = self.session.tasks() > 0;
        let waits = match () {
            () if self.session.waiting() > 0 => Waits::Socket,
            () if self.input.is_within() || self.session.wire.borrow().is_in_section() => Waits::Frame,
            () if has_streams => Waits::Nothing,
            () if self.notice_until.is_some() && !self.is_going() => Waits::Notice,
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
        let expired = match waits {
            Waits::Socket => self.conn.poll_took_nothing(),
            Waits::Frame | Waits::Idle | Waits::Notice | Waits::Nothing => self.conn.deadline.poll_expired(),
        };
        if expired.is_pending() {
            return Poll::Pending;
        }
        match waits {
            Waits::Socket => Poll::Ready(Some(End::Stuck)),
            Waits::Idle | Waits::Notice if !self.is_going() => {
                go(&self.session);
                Poll::Ready(None)
            }
            Waits::Nothing => Poll::Pending,
            Waits::Idle | Waits::Notice | Waits::Frame => Poll::Ready(Some(End::Closed)),
        }
    }

    fn set_deadline(&self, waits: Waits) {
        let core = default_core(&self.generation.conf, self.conn.client.listen.get());
        let time = match waits {
            Waits::Nothing => return self.conn.deadline.clear(),
            Waits::Frame => core.header_timeout,
            Waits::Idle if self.conn.served() == 0 => core.header_timeout,
            Waits::Idle => core.keepalive_timeout.max(Duration::from_millis(1)),
            Waits::Notice => NOTICE_MAX,
            Waits::Socket => return self.conn.await_taking(core.send_timeout),
        };
        self.conn.deadline.set(time);
    }
}

/// Whether a connection may go on with another configuration: it still speaks HTTP/2 here, with the same limits. Over TLS
/// this is a matter of the server that the client named in its handshake.
fn may_go_on(conn: &Conn, session: &Session, conf: &Conf, listen: usize) -> bool {
    let named = conn.client.facts().and_then(|facts| facts.server_name.as_deref());
    let speaks = conf.listens.get(listen).is_some_and(|listen| {
        let server = open::server_of_handshake(conf, listen, named);
        listen.http2 || conf.location(server.root).values.http2.is_on
    });
    speaks
        && session.wire.borrow().limits() == limits(conf, listen)
        && session.chunk == default_values(conf, listen).http2.chunk
}

/// Begins no more streams from here on: the client gets a GOAWAY, once.
fn go(session: &Session) {
    let mut wire = session.wire.borrow_mut();
    if !wire.is_going() {
        wire.goaway(ErrorCode::NoError);
    }
}

/// nginx: `keepalive_requests` and `keepalive_time` end a connection after the request that reaches them.
fn is_spent(conn: &Conn, conf: &Conf) -> bool {
    let core = default_core(conf, conn.client.listen.get());
    let age = clock::now().saturating_duration_since(conn.client.accepted);
    conn.served() >= core.keepalive_requests || age > core.keepalive_time
}

/// Handles a frame; returns whether the frame began a request.
fn act(conn: &mut Conn, place: (&Rc<Worker>, &Rc<Generation>), session: &Rc<Session>, event: H2Event<'_>) -> bool {
    let conf = &place.1.conf;
    match event {
        H2Event::Nothing | H2Event::Pong | H2Event::GoAway { .. } => {}
        H2Event::Head { stream, ends, malformed } => {
            return begin(conn, place, session, (stream, ends, malformed));
        }
        H2Event::Malformed { stream, what } => {
            note(conn, conf, what);
            match session.stream(stream) {
                Some(known) => known.malform(),
                // The stream was answered already.
                None => session.wire.borrow_mut().reset(stream, ErrorCode::Protocol),
            }
        }
        H2Event::Data { stream, data, counted, ends } => session.data_came(stream, data, counted, ends),
        H2Event::Trailers { stream } => {
            // No trailer is passed on; a malformed section makes the whole request malformed (RFC 9113 §8.1.1).
            let checked = message::check_trailers(session.wire.borrow_mut().block());
            let known = session.stream(stream);
            match (checked, known) {
                (Ok(()), Some(known)) => known.take_in(&[], true),
                (Ok(()), None) => {}
                (Err(what), known) => {
                    note(conn, conf, what);
                    if let Some(known) = known {
                        known.malform();
                    }
                }
            }
        }
        H2Event::Reset { stream, fault, .. } => {
            if let Some(fault) = fault {
                note(conn, conf, fault.what);
            }
            if let Some(known) = session.stream(stream) {
                known.end();
            }
        }
        H2Event::Writable { stream } => session.writable(stream),
    }
    false
}

/// Starts a task for a request.
fn begin(
    conn: &mut Conn,
    (worker, generation): (&Rc<Worker>, &Rc<Generation>),
    session: &Rc<Session>,
    (id, ends, length): (u32, bool, Option<&'static str>),
) -> bool {
    let place = (&**worker, generation);
    let read = carried::read(conn, place, (session.wire.borrow_mut().block(), Version::Http2), ends, length);
    let Some(request) = read else {
        // The frame was read to its end, for the table of fields that both sides keep.
        session.wire.borrow_mut().reset(id, ErrorCode::RefusedStream);
        return false;
    };
    let stream = Stream::new(id, session.clone(), ends);
    session.add(stream.clone());
    carried::serve(conn, worker, stream, request);
    true
}

fn note(conn: &Conn, conf: &Conf, what: &str) {
    carried::note(conn, conf, Version::Http2, what);
}
