//! A connection of HTTP/2 or HTTP/3 for exchanges: opened by the first exchange, and opened again after it is gone.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use weir_meter::Step;
use weir_net::clock;
use weir_net::tls::Sessions;
use weir_net::worker::Task;

use super::answer::Answer;
use super::error::Error;
use super::h2;
use super::h3;
use super::origin::Origin;
use super::resolve::Resolver;
use super::session::ReadyRequest;
use super::streams::{Again, Carrier, Protocol, StreamSession, StreamSlot, Tuning, Wanted};

/// Most streams of one connection, whatever its server allows: they are searched linearly.
pub const STREAMS_MAX: usize = 1000;
/// Most attempts at an exchange that the server refuses, or whose connection is over, before it does anything.
const TRIES_MAX: usize = 4;
/// TLS sessions kept for the connections after; a server sends two or more for each.
const TICKETS_MAX: usize = 4;
/// Methods that may be sent as early data, because a repetition does no harm (RFC 9110 §9.2.1, RFC 8470 §3).
const SAFE: [&[u8]; 4] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE"];
/// Slots kept for later exchanges.
const SPARE_MAX: usize = 64;

/// See the module.
pub struct Line {
    origin: Rc<Origin>,
    protocol: Protocol,
    tuning: Tuning,
    /// Sessions of the connections before.
    sessions: Option<Sessions>,
    streams_max: usize,
    session: RefCell<Option<Rc<StreamSession<dyn Carrier>>>>,
    is_opening: Cell<bool>,
    /// The error of the last opening, if it failed; and the number of openings that have ended.
    failed: RefCell<Option<Error>>,
    openings: Cell<u64>,
    /// Tasks that wait for the current opening; at most one for each caller.
    waiting: RefCell<Vec<Task>>,
    spare: RefCell<Vec<Rc<StreamSlot>>>,
    /// Current exchanges, including those that wait for the opening.
    load: Cell<usize>,
}

impl Line {
    /// A line to an origin, not opened yet. `streams_max` is limited to 1 to [`STREAMS_MAX`].
    pub fn new(origin: Rc<Origin>, protocol: Protocol, streams_max: usize) -> Rc<Line> {
        Line::tuned(origin, protocol, streams_max, Tuning::default())
    }

    /// As [`Line::new`], with other settings than usual.
    pub fn tuned(origin: Rc<Origin>, protocol: Protocol, streams_max: usize, tuning: Tuning) -> Rc<Line> {
        Rc::new(Line {
            origin,
            protocol,
            tuning,
            sessions: tuning.early_data.then(|| Sessions::new(TICKETS_MAX)),
            streams_max: streams_max.clamp(1, STREAMS_MAX),
            session: RefCell::new(None),
            is_opening: Cell::new(false),
            failed: RefCell::new(None),
            openings: Cell::new(0),
            waiting: RefCell::default(),
            spare: RefCell::default(),
            load: Cell::new(0),
        })
    }

    /// Its protocol.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Current exchanges, including those that wait for a stream.
    pub fn load(&self) -> usize {
        self.load.get()
    }

    /// Carries out one exchange. Sends the request again only if the server reports that it did nothing (RFC 9113 §8.7, RFC 9114
    /// §4.1.1);
    /// `resent` counts the repetitions. Whatever else ends a connection ends its exchanges.
    pub async fn exchange(
        &self,
        call: &ReadyRequest<'_>,
        resolver: &Resolver,
        resent: &mut u64,
    ) -> Result<Answer, Error> {
        let started = call.started.unwrap_or_else(clock::precise);
        let used = Used::of(self);
        used.slot.deadline.set(call.timeout);
        let (mut tries, mut is_refused) = (1, false);
        loop {
            let session = self.session(call, &used.slot, resolver).await?;
            *resent += u64::from(is_refused);
            match session.exchange(call, &used.slot, started).await {
                Ok(answer) => return Ok(answer),
                Err(lost) if tries == TRIES_MAX || lost.again == Again::Never => return Err(lost.error),
                Err(lost) => is_refused = lost.again == Again::Always,
            }
            tries += 1;
        }
    }

    /// The connection, opened if there is none.
    async fn session(
        &self,
        call: &ReadyRequest<'_>,
        slot: &StreamSlot,
        resolver: &Resolver,
    ) -> Result<Rc<StreamSession<dyn Carrier>>, Error> {
        loop {
            if let Some(session) = self.session.borrow().as_ref().filter(|session| session.is_open()) {
                return Ok(session.clone());
            }
            if !self.is_opening.get() {
                return self.open(call, slot, resolver).await;
            }
            let seen = self.openings.get();
            poll_fn(|_| {
                if self.openings.get() != seen {
                    return Poll::Ready(Ok(()));
                }
                self.waiting.borrow_mut().push(Task::current());
                slot.deadline.poll_expired().map(|()| Err(Error::timed_out(Step::Connect)))
            })
            .await?;
            if let Some(error) = self.failed.borrow().clone() {
                return Err(error);
            }
        }
    }

    async fn open(
        &self,
        call: &ReadyRequest<'_>,
        slot: &StreamSlot,
        resolver: &Resolver,
    ) -> Result<Rc<StreamSession<dyn Carrier>>, Error> {
        let opening = OpeningTurn::of(self);
        let wanted = Wanted {
            origin: &self.origin,
            resolver,
            sessions: call.sessions.or(self.sessions.as_ref()),
            streams_max: self.streams_max,
            tuning: self.tuning,
            is_safe: SAFE.contains(&call.method),
            deadline: &slot.deadline,
        };
        let opened = match self.protocol {
            Protocol::Http2 => h2::open(&wanted).await,
            Protocol::Http3 => h3::open(&wanted).await,
        };
        opening.end(&opened);
        opened
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            session.go(None);
        }
    }
}

/// A current opening. Wakes the waiting tasks at its end, even if it is cancelled.
struct OpeningTurn<'l>(&'l Line);

impl<'l> OpeningTurn<'l> {
    fn of(line: &'l Line) -> OpeningTurn<'l> {
        line.is_opening.set(true);
        line.failed.replace(None);
        OpeningTurn(line)
    }

    fn end(self, opened: &Result<Rc<StreamSession<dyn Carrier>>, Error>) {
        match opened {
            Ok(session) => {
                if let Some(before) = self.0.session.replace(Some(session.clone())).filter(|before| !before.is_full()) {
                    before.go(None);
                }
            }
            Err(error) => {
                self.0.failed.replace(Some(error.clone()));
            }
        }
    }
}

impl Drop for OpeningTurn<'_> {
    fn drop(&mut self) {
        self.0.is_opening.set(false);
        self.0.openings.set(self.0.openings.get() + 1);
        self.0.waiting.take().into_iter().for_each(Task::wake);
    }
}

/// A slot in use; dropping it gives the slot back to the line.
struct Used<'l> {
    line: &'l Line,
    slot: Rc<StreamSlot>,
}

impl<'l> Used<'l> {
    fn of(line: &'l Line) -> Used<'l> {
        line.load.set(line.load.get() + 1);
        let slot = line.spare.borrow_mut().pop().unwrap_or_else(|| Rc::new(StreamSlot::new()));
        Used { line, slot }
    }
}

impl Drop for Used<'_> {
    fn drop(&mut self) {
        self.line.load.set(self.line.load.get() - 1);
        self.slot.deadline.clear();
        let mut spare = self.line.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(self.slot.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    // The server must not depend on the tested code.
    #![allow(clippy::disallowed_methods)]
    use super::*;
    use crate::url::Url;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    /// Reads frames to the first request, writes these frames, and reads to the end.
    fn serve(mut stream: TcpStream, frames: &[u8]) {
        stream.read_exact(&mut [0; 24]).unwrap();
        let mut head = [0; 9];
        while head[3] != 1 {
            stream.read_exact(&mut head).unwrap();
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            stream.read_exact(&mut vec![0; length]).unwrap();
        }
        stream.write_all(frames).unwrap();
        std::io::copy(&mut stream, &mut std::io::sink()).ok();
    }

    #[test]
    fn a_request_counts_as_resent_when_it_is_sent_again() {
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let goaway = [settings.as_slice(), &[0, 0, 8, 7, 0, 0, 0, 0, 0], &[0; 8]].concat();
        let ok = [settings.as_slice(), &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88]].concat();
        for is_served in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
            let (goaway, ok) = (goaway.clone(), ok.clone());
            std::thread::spawn(move || {
                let (first, _) = listener.accept().unwrap();
                let listener = is_served.then_some(listener);
                std::thread::spawn(move || serve(first, &goaway));
                if let Some(listener) = listener {
                    serve(listener.accept().unwrap().0, &ok);
                }
            });
            let (outcome, resent) = weir_net::worker::block_on(async move {
                let origin = Rc::new(Origin::of(&url, &Rc::default()));
                let call = ReadyRequest {
                    origin: &origin,
                    method: b"GET",
                    head: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                    body: b"",
                    wants_body: false,
                    sessions: None,
                    timeout: Duration::from_secs(9),
                    started: None,
                };
                let mut resent = 0;
                let line = Line::new(origin.clone(), Protocol::Http2, 1);
                let outcome = line.exchange(&call, &Resolver::default(), &mut resent).await;
                (outcome.map(|answer| answer.status()).map_err(|error| error.name), resent)
            })
            .unwrap();
            let expected = if is_served { (Ok(200), 1) } else { (Err("ECONNREFUSED".into()), 0) };
            assert_eq!((outcome, resent), expected);
        }
    }
}
