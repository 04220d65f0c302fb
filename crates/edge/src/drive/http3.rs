//! Drives an HTTP/3 connection: the handshake, the client's streams, and the end.
//!
//! QUIC delivers each stream by itself, so this task reads only the client's control streams and the heads of requests; a
//! request's task reads and writes its own stream.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::line;
use weir_http::exchange::route::ServerId;
use weir_http::hold::conn::Conn;
use weir_http::hold::worker::{Entry, Generation};
use weir_http::receive::h3::session::H3Session;
use weir_http::receive::h3::stream::{H3Stream, Heard};
use weir_http::receive::head::{default_core, default_values};
use weir_meter::live::quic::QuicOpen;
use weir_net::log::Level;
use weir_net::worker::Task;
use weir_net::{Instant, clock};
use weir_quic::connection::{QuicConnection, QuicEnd, QuicEvent, StreamId};
use weir_quic::settings::STREAMS_FIRST;
use weir_quic::tls::Handshake;
use weir_wire::Version;
use weir_wire::h3::connection::H3News;
use weir_wire::h3::settings::H3Limits;
use weir_wire::h3::{H3Code, H3Fault};

use super::{carried, open, secure};

/// The code of an end without an error (RFC 9114 §8.1).
pub const NO_ERROR: u64 = H3Code::NoError as u64;

/// How long weir waits after it has announced the end: requests that are on their way arrive in a round trip.
const NOTICE: Duration = Duration::from_secs(1);

/// Parts of the idle time after which weir shows that it lives, while a request is under way (RFC 9000 §10.1.2).
const SIGNS: u32 = 3;

/// The server that the client named, once it has.
pub type Chosen = Rc<Cell<Option<ServerId>>>;

/// Serves a connection that has just begun, and is counted as long as it has its entry.
pub fn serve(
    conn: Box<Conn>,
    entry: (Entry, QuicOpen),
    generation: Rc<Generation>,
    quic: Rc<QuicConnection>,
    handshake: (Handshake, Chosen),
) {
    weir_net::worker::spawn(Box::pin(live(conn, entry, generation, quic, handshake)));
}

async fn live(
    conn: Box<Conn>,
    (entry, _counted): (Entry, QuicOpen),
    generation: Rc<Generation>,
    quic: Rc<QuicConnection>,
    handshake: (Handshake, Chosen),
) {
    let begun = clock::now();
    if !secure::shaken(&conn, (&entry.worker, &generation), &quic, &handshake, begun).await {
        quic.keep(Task::NONE);
        return;
    }
    let limits = limits(&generation.conf, conn.client.listen.get());
    // A client without a name in its handshake gets the default server.
    let named = conn.client.facts().and_then(|facts| facts.server_name.clone());
    let hq = conn.client.speaks_hq().then(|| named.unwrap_or_else(|| "_".to_owned()));
    let session = H3Session::new(quic, limits, hq);
    let mut drive = Drive {
        conn,
        entry,
        generation,
        session,
        heads: Vec::new(),
        streams: Vec::new(),
        leaving: Vec::new(),
        frames: 0,
        waits: Waits::Unset,
        notice_until: None,
    };
    let end = poll_fn(|_| drive.poll()).await;
    drive.session.kill();
    drive.streams.iter().for_each(|stream| stream.wake());
    drive.conn.shared.keep(Task::NONE);
    drive.tell_notes();
    drive.tell(&end);
}

/// How a connection ended.
enum End {
    /// As QUIC tells.
    Quic(QuicEnd),
    /// The client broke a rule of HTTP/3.
    Rule(H3Fault),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Quic(end) => end.fmt(f),
            End::Rule(H3Fault { code, what, .. }) => {
                let code = *code as u64;
                write!(f, "http3 error {code:#x} ({}): {what}", H3Code::name(code))
            }
        }
    }
}

/// The limits that the default server of a listen sets.
fn limits(conf: &Conf, listen: usize) -> H3Limits {
    let (count, size) = default_values(conf, listen).core.large_headers;
    let section = usize::try_from(u64::from(count) * size).unwrap_or(usize::MAX);
    H3Limits { section, is_connect_extended: true, ..H3Limits::default() }
}

/// The wait that the connection's deadline bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// None is chosen yet.
    Unset,
    /// A request is under way: weir shows from time to time that it lives.
    Requests,
    /// The head of a request: `client_header_timeout`.
    Head,
    /// The client's acknowledgment of answers: `send_timeout` without a byte sent or an answer delivered.
    Delivery,
    /// A request: `keepalive_timeout`.
    Idle,
    /// The requests that were on their way when weir announced the end: [`NOTICE`].
    Notice,
}

struct Drive {
    conn: Box<Conn>,
    entry: Entry,
    /// The configuration of the connection and of its next requests.
    generation: Rc<Generation>,
    session: Rc<H3Session>,
    /// Streams whose heads are not complete, and when they began.
    heads: Vec<(Rc<H3Stream>, Instant)>,
    /// Streams whose requests have a task, or whose answers wait for the client's windows.
    streams: Vec<Rc<H3Stream>>,
    /// Streams whose answers QUIC is still to deliver: the end of the connection would cut them.
    leaving: Vec<StreamId>,
    /// Frames that were sent when the present wait for a delivery began.
    frames: u64,
    waits: Waits,
    /// weir has announced the end of the connection, and begins requests until then.
    notice_until: Option<Instant>,
}

impl Drive {
    fn poll(&mut self) -> Poll<End> {
        self.session.driven_here();
        self.conn.shared.keep(Task::current());
        if self.conn.shared.has_ended() {
            self.session.quic.close(NO_ERROR, b"");
        }
        while let Some(event) = self.session.quic.next() {
            if event == QuicEvent::Ended {
                return Poll::Ready(End::Quic(self.session.end().unwrap_or(QuicEnd::Ours)));
            }
            self.happened(event);
        }
        let leaving = &mut self.leaving;
        self.streams.retain(|stream| {
            let is_done = stream.is_done();
            if is_done && stream.is_on_its_way() {
                leaving.push(stream.id());
            }
            !is_done
        });
        self.go_if_told();
        self.session.flush();
        if let Some(fault) = self.session.fault() {
            self.session.quic.close(fault.code as u64, fault.what.as_bytes());
            return Poll::Ready(End::Rule(fault));
        }
        let is_free = self.streams.is_empty() && self.heads.is_empty() && self.leaving.is_empty();
        // While the end is only announced, a request may be on its way.
        if self.is_going() && self.notice_until.is_none() && is_free {
            self.session.quic.close(NO_ERROR, b"");
            return Poll::Ready(End::Quic(QuicEnd::Ours));
        }
        self.tell_notes();
        self.poll_deadline()
    }

    fn stream(&self, id: StreamId) -> Option<&Rc<H3Stream>> {
        self.streams.iter().find(|stream| stream.id() == id)
    }

    fn is_going(&self) -> bool {
        self.session.wire.borrow().is_going()
    }

    fn happened(&mut self, event: QuicEvent) {
        match event {
            QuicEvent::Opened(id) if id.is_bidirectional() => self.opened(id),
            QuicEvent::Opened(id) => self.read_uni(id),
            QuicEvent::Readable(id) if id.is_bidirectional() => self.readable(id),
            QuicEvent::Readable(id) => self.read_uni(id),
            QuicEvent::Writable(id) => {
                if let Some(stream) = self.stream(id) {
                    stream.writable();
                }
            }
            QuicEvent::Stopped(id, _) if id.is_bidirectional() => self.stopped(id),
            // Our control stream and our decoder stream last as long as the connection (RFC 9114 §6.2.1, RFC 9204 §4.2).
            QuicEvent::Stopped(..) => {
                let what = "a refusal of a stream that the connection needs";
                self.session.blame(H3Fault::connection(H3Code::ClosedCriticalStream, what));
            }
            QuicEvent::Finished(id) => self.delivered(id),
            // The server opens no such streams.
            QuicEvent::Connected | QuicEvent::Allowed | QuicEvent::Ended => {}
        }
    }

    fn delivered(&mut self, id: StreamId) {
        if let Some(stream) = self.stream(id) {
            stream.delivered();
        }
        self.leave(id);
    }

    /// Nothing of the stream is to be delivered any more. Each delivery begins the wait for the next one.
    fn leave(&mut self, id: StreamId) {
        let before = self.leaving.len();
        self.leaving.retain(|leaving| *leaving != id);
        if self.leaving.len() != before && self.waits == Waits::Delivery {
            self.waits = Waits::Unset;
        }
    }

    fn opened(&mut self, id: StreamId) {
        match H3Stream::accept(&self.session, id) {
            Ok(stream) => {
                self.heads.push((stream, clock::now()));
                self.readable(id);
            }
            Err(fault) => {
                self.session.quic.reset(id, fault.code as u64);
                self.session.quic.stop(id, fault.code as u64);
            }
        }
    }

    /// A stream has bytes: of its head, or for its task.
    fn readable(&mut self, id: StreamId) {
        let Some(at) = self.heads.iter().position(|(stream, _)| stream.id() == id) else {
            if let Some(stream) = self.stream(id) {
                stream.readable();
            }
            return;
        };
        let Some(stream) = self.heads.get(at).map(|(stream, _)| stream.clone()) else { return };
        stream.readable();
        match stream.hear() {
            Heard::Nothing => return,
            Heard::Over => {}
            Heard::Head { ends, malformed } => self.begin(stream, ends, malformed),
        }
        self.heads.swap_remove(at);
    }

    fn stopped(&mut self, id: StreamId) {
        self.session.quic.reset(id, H3Code::RequestCancelled as u64);
        // Nobody reads the rest of its request: unread bytes would fill the connection's window.
        self.session.quic.stop(id, H3Code::RequestCancelled as u64);
        if let Err(fault) = self.session.wire.borrow_mut().reset_came(id.number()) {
            self.session.blame(fault);
        }
        self.heads.retain(|(stream, _)| stream.id() != id);
        if let Some(stream) = self.stream(id) {
            stream.stopped();
        }
        self.leave(id);
    }

    fn read_uni(&mut self, id: StreamId) {
        let mut ready = false;
        let streams = &self.streams;
        let read = self.session.read_uni(id, &mut |news| match news {
            H3News::Priority(id, urgency) => {
                if let Some(stream) = streams.iter().find(|stream| stream.id().number() == id) {
                    stream.set_urgency(urgency);
                }
            }
            H3News::Ready => ready = true,
            H3News::Settings | H3News::GoAway(_) | H3News::Unwanted => {}
        });
        if let Err(fault) = read {
            return self.session.blame(fault);
        }
        while ready && let Some(number) = { self.session.wire.borrow_mut().take_ready() } {
            let all = self.heads.iter().map(|(stream, _)| stream).chain(&self.streams);
            let waiting = all.map(|stream| stream.id()).find(|id| id.number() == number);
            if let Some(id) = waiting {
                self.readable(id);
            }
        }
    }

    /// Starts a task for a request.
    fn begin(&mut self, stream: Rc<H3Stream>, ends: bool, length: Option<&'static str>) {
        let Drive { conn, entry, generation, session, streams, .. } = self;
        let place = (&*entry.worker, &*generation);
        let read = carried::read(conn, place, (session.wire.borrow_mut().block(), Version::Http3), ends, length);
        let Some(request) = read else { return stream.reject(H3Code::RequestRejected) };
        stream.apply_urgency();
        streams.push(stream.clone());
        conn.follow(session.quic.remote());
        carried::serve(conn, &entry.worker, stream, request);
        let values = default_values(&generation.conf, conn.client.listen.get());
        if conn.served() == u64::from(STREAMS_FIRST) / 2 && values.http3.streams_max > STREAMS_FIRST {
            session.quic.allow_streams(values.http3.streams_max);
        }
        let age = clock::now().saturating_duration_since(conn.client.accepted);
        let core = &values.core;
        if conn.served() >= core.keepalive_requests || age > core.keepalive_time || core.keepalive_timeout.is_zero() {
            session.wire.borrow_mut().goaway();
        }
    }

    /// A stop or a reload: requests go on. After a reload, the next requests have the next configuration, as those of a
    /// connection of HTTP/1.1 do, unless it says other things about this address.
    fn go_if_told(&mut self) {
        let Drive { conn, entry, generation, session, streams, notice_until, .. } = self;
        let (worker, lane) = (&entry.worker, entry.worker.lane(|| conn.client.ip()));
        let is_other = conn.shared.generation.get() != lane.conf.generation;
        if !is_other && !worker.is_draining() || session.wire.borrow().is_going() && notice_until.is_none() {
            return;
        }
        let socket = conn.socket.tcp();
        let to = conn.client.local().tcp().map(|local| local.ip());
        let listen = socket.and_then(|socket| lane.listen_of_quic(socket, to));
        if let Some(listen) = listen {
            conn.client.listen.set(listen);
            *generation = lane;
        }
        if !worker.is_draining() && listen.is_some_and(|listen| may_go_on(conn, session, &generation.conf, listen)) {
            if streams.is_empty() {
                conn.shared.generation.set(generation.conf.generation);
            }
            return;
        }
        match *notice_until {
            Some(until) if clock::now() < until => {}
            Some(_) => {
                session.wire.borrow_mut().goaway();
                *notice_until = None;
            }
            None if streams.is_empty() && conn.served() > 0 && worker.is_last() => session.wire.borrow_mut().goaway(),
            None => {
                session.wire.borrow_mut().announce_end();
                *notice_until = Some(clock::now() + NOTICE);
            }
        }
    }

    /// Sets the deadline for the current wait.
    fn poll_deadline(&mut self) -> Poll<End> {
        let has_requests = self.streams.iter().any(|stream| stream.is_served());
        let delivers = !self.streams.is_empty() || !self.leaving.is_empty();
        let waits = match () {
            () if self.notice_until.is_some() => Waits::Notice,
            () if has_requests => Waits::Requests,
            () if !self.heads.is_empty() || self.conn.served() == 0 => Waits::Head,
            () if delivers => Waits::Delivery,
            () => Waits::Idle,
        };
        if waits != self.waits {
            self.waits = waits;
            self.frames = self.session.quic.stream_frames_sent();
            self.set_deadline(waits);
        }
        if delivers {
            self.conn.shared.wake();
        } else {
            self.conn.shared.lie_idle();
        }
        if self.conn.deadline.poll_expired().is_pending() {
            return Poll::Pending;
        }
        match waits {
            Waits::Requests => {
                self.session.quic.ping();
                self.refuse_late_heads();
                self.set_deadline(waits);
                let _ = self.conn.deadline.poll_expired();
                return Poll::Pending;
            }
            Waits::Head if self.conn.served() > 0 => {
                self.refuse_late_heads();
                self.waits = Waits::Unset;
                Task::current().wake();
            }
            Waits::Delivery if self.session.quic.stream_frames_sent() != self.frames => {
                self.waits = Waits::Unset;
                Task::current().wake();
            }
            Waits::Notice => Task::current().wake(),
            Waits::Head | Waits::Delivery | Waits::Idle | Waits::Unset => {
                self.session.quic.close(NO_ERROR, b"");
                return Poll::Ready(End::Quic(QuicEnd::Ours));
            }
        }
        Poll::Pending
    }

    /// Refuses requests whose heads take too long. The connection goes on with its other requests.
    fn refuse_late_heads(&mut self) {
        let core = default_core(&self.generation.conf, self.conn.client.listen.get());
        let now = clock::now();
        self.heads.retain(|(stream, begun)| {
            let is_late = now.saturating_duration_since(*begun) >= core.header_timeout;
            if is_late {
                stream.reject(H3Code::RequestRejected);
            }
            !is_late
        });
    }

    fn set_deadline(&self, waits: Waits) {
        let core = default_core(&self.generation.conf, self.conn.client.listen.get());
        let keepalive = core.keepalive_timeout.max(Duration::from_millis(1));
        self.conn.deadline.set(match waits {
            Waits::Unset => return self.conn.deadline.clear(),
            Waits::Requests => keepalive / SIGNS,
            Waits::Head => {
                let oldest = self.heads.iter().map(|(_, begun)| *begun).min().unwrap_or_else(clock::now);
                core.header_timeout.saturating_sub(clock::now().saturating_duration_since(oldest))
            }
            Waits::Delivery => core.send_timeout.first.saturating_add(core.send_timeout.rest),
            Waits::Idle => keepalive,
            Waits::Notice => NOTICE,
        });
    }

    /// Logs the rules that the client broke on single streams.
    fn tell_notes(&self) {
        for what in self.session.take_notes() {
            carried::note(&self.conn, &self.generation.conf, Version::Http3, what);
        }
    }

    /// Logs why the connection has ended, if it did not end in order.
    fn tell(&self, end: &End) {
        if let End::Quic(QuicEnd::Ours | QuicEnd::Idle | QuicEnd::Closed(0 | NO_ERROR, _) | QuicEnd::Refused(0, _)) =
            end
        {
            return;
        }
        line::client_line(
            &self.generation.conf,
            &self.conn.client,
            Level::Info,
            format_args!("{end} while processing HTTP/3 connection"),
        );
    }
}

/// Whether a connection may go on with another configuration: this address still has HTTP/3, with the same limits.
fn may_go_on(conn: &Conn, session: &H3Session, conf: &Conf, listen: usize) -> bool {
    let named = conn.client.facts().and_then(|facts| facts.server_name.as_deref());
    let speaks = conf.listens.get(listen).is_some_and(|listen| {
        let values = &conf.location(open::server_of_handshake(conf, listen, named).root).values.http3;
        listen.quic && if session.hq.is_some() { values.is_hq } else { values.is_on }
    });
    speaks && session.wire.borrow().limits() == limits(conf, listen)
}
