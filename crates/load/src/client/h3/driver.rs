//! The task that drives a connection: passes the answers of each stream to their slots.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::{mem, vec};

use weir_net::worker::Task;
use weir_net::{Deadline, Instant, Lease, buffer, clock, worker};
use weir_quic::connection::{Follows, QuicEnd, QuicEvent, StreamId};
use weir_wire::h3::connection::H3News;
use weir_wire::h3::stream::{H3Event, RequestStream};
use weir_wire::h3::{H3Code, H3Fault};
use weir_wire::section::message;

use super::super::error::Error;
use super::super::streams::{HeadKind, Lost, StreamSession, StreamSlot};
use super::begun::BegunConnection;
use super::carrier::{AnswerStream, H3Carrier};
use super::{figures, lost};
use weir_meter::Step;

/// Most bytes of one read of a stream.
const READ_BYTES: usize = 64 << 10;
/// Most events in one turn; then other tasks get their turn.
const EVENTS_MAX: usize = 256;

/// Starts the driver of a new session, which begins with these events.
pub(super) fn start(session: Rc<StreamSession<H3Carrier>>, mut link: BegunConnection) {
    let seen = mem::take(&mut link.seen).into_iter();
    let moves = Deadline::new();
    if let Some(own) = &link.own {
        moves.set(own.1);
    }
    let mut driver = Driver { session, link, seen, moves, input: Lease::none() };
    worker::spawn(async move { poll_fn(|_| driver.poll()).await });
}

struct Driver {
    session: Rc<StreamSession<H3Carrier>>,
    link: BegunConnection,
    /// The time of the next move to another port.
    moves: Deadline,
    seen: vec::IntoIter<QuicEvent>,
    /// The memory of a read; it holds nothing between two turns.
    input: Lease,
}

impl Driver {
    fn carrier(&self) -> &H3Carrier {
        &self.session.carrier
    }

    fn poll(&mut self) -> Poll<()> {
        self.carrier().driven_here();
        let lost = match self.turn() {
            Ok(()) if !self.session.is_done() => return Poll::Pending,
            Ok(()) => {
                self.carrier().quic.close(H3Code::NoError as u64, b"");
                Lost::for_good(Error::closed(Step::AwaitHead))
            }
            Err(lost) => lost,
        };
        figures::ended(self.carrier().quic.path_mtu());
        self.carrier().leave();
        self.session.end(lost);
        Poll::Ready(())
    }

    /// Takes what has happened, and sends our own streams.
    fn turn(&mut self) -> Result<(), Lost> {
        // Before the server's streams are read, which belong to what begins anew.
        let quic = &self.session.carrier.quic;
        if !quic.is_handshaking() && !quic.has_ended() && !self.link.connected() {
            self.carrier().begin_anew();
            self.session.begin_anew(&lost::early());
        }
        self.migrate();
        let mut now = None;
        for count in 0.. {
            if count == EVENTS_MAX {
                Task::current().wake();
                break;
            }
            let Some(event) = self.seen.next().or_else(|| self.carrier().quic.next()) else { break };
            let now = *now.get_or_insert_with(clock::precise);
            if event == QuicEvent::Ended {
                let end = self.carrier().quic.end().unwrap_or(QuicEnd::Ours);
                return Err(Lost::cut(self.link.ended(end)));
            }
            if let Err(fault) = self.act(event, now) {
                self.carrier().quic.close(fault.code as u64, fault.what.as_bytes());
                return Err(lost::fault(fault));
            }
        }
        self.input = Lease::none();
        self.carrier().flush();
        self.session.call_next();
        Ok(())
    }

    /// Moves to another port, if it is time. A move that the kernel does not allow is left out.
    fn migrate(&self) {
        let Some(own) = self.link.own.as_ref().filter(|_| !self.carrier().quic.is_handshaking()) else { return };
        while self.moves.poll_expired().is_ready() {
            self.moves.set(own.1);
            if own.0.migrate().is_ok() {
                figures::migrated();
            }
        }
    }

    /// Does the work of one event; a fault ends the connection.
    fn act(&mut self, event: QuicEvent, now: Instant) -> Result<(), H3Fault> {
        match event {
            QuicEvent::Opened(id) if id.is_bidirectional() => {
                RequestStream::begin(&mut self.carrier().wire.borrow_mut(), id.number()).map(drop)
            }
            QuicEvent::Opened(id) => self.read_uni(id, now),
            QuicEvent::Readable(id) if id.is_bidirectional() => self.read(id, now),
            QuicEvent::Readable(id) => self.read_uni(id, now),
            QuicEvent::Writable(id) => {
                self.carrier().send_ahead(id);
                self.session.wake_blocked(Some(id.number()));
                Ok(())
            }
            QuicEvent::Stopped(id, _) if !id.is_bidirectional() => {
                let what = "a refusal of a stream that the connection needs";
                Err(H3Fault::connection(H3Code::ClosedCriticalStream, what))
            }
            // The server wants no more of a request; it answers, or resets the stream (RFC 9114 §4.1).
            QuicEvent::Stopped(..) => Ok(()),
            QuicEvent::Allowed | QuicEvent::Finished(_) | QuicEvent::Connected | QuicEvent::Ended => Ok(()),
        }
    }

    /// Reads what has come of an answer.
    fn read(&mut self, id: StreamId, now: Instant) -> Result<(), H3Fault> {
        loop {
            // Without a channel nobody waits for the answer: its stream was stopped.
            let Some(channel) = self.carrier().take(id) else { return Ok(()) };
            if self.input.capacity() == 0 {
                self.input = buffer::lease(READ_BYTES);
            }
            self.input.clear();
            // The bytes after a blocked section stay in QUIC, within its windows.
            if !channel.rest.0.is_empty() {
                self.carrier().channels.borrow_mut().push(channel);
                return Ok(());
            }
            let session = self.session.clone();
            let follows = session.carrier.quic.read(id, &mut self.input, READ_BYTES);
            if let Some(slot) = session.slot(id.number()) {
                slot.state.borrow_mut().received += self.input.len() as u64;
            }
            let is_last = follows == Follows::End;
            answer_came(&session, channel, (&self.input, is_last), now)?;
            match follows {
                Follows::More => {}
                Follows::End | Follows::Nothing | Follows::Gone => return Ok(()),
                Follows::Reset(code) => {
                    session.carrier.take(id);
                    session.carrier.wire.borrow_mut().reset_came(id.number())?;
                    session.carrier.quic.reset(id, H3Code::RequestCancelled as u64);
                    if let Some(slot) = session.slot(id.number()) {
                        slot.lose(lost::reset(code));
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Reads all that has come on a unidirectional stream of the server.
    fn read_uni(&mut self, id: StreamId, now: Instant) -> Result<(), H3Fault> {
        if self.input.capacity() == 0 {
            self.input = buffer::lease(READ_BYTES);
        }
        self.news_came(id)?;
        self.go_on(now)
    }

    fn news_came(&mut self, id: StreamId) -> Result<(), H3Fault> {
        let session = self.session.clone();
        let H3Carrier { quic, wire, .. } = &session.carrier;
        loop {
            self.input.clear();
            let follows = quic.read(id, &mut self.input, READ_BYTES);
            let mut start = 0;
            loop {
                let rest = self.input.get(start..).unwrap_or_default();
                let (used, news) = wire.borrow_mut().uni(id.number(), rest, false)?;
                start += used;
                match news {
                    Some(H3News::Unwanted) => {
                        quic.stop(id, H3Code::StreamCreation as u64);
                        return Ok(());
                    }
                    Some(H3News::GoAway(first)) => session.go(Some((first, lost::unbegun()))),
                    Some(H3News::Ready | H3News::Settings | H3News::Priority(..)) => {}
                    None => break,
                }
            }
            match follows {
                Follows::More => {}
                Follows::Nothing | Follows::Gone => return Ok(()),
                Follows::End => return wire.borrow_mut().uni(id.number(), &[], true).map(drop),
                Follows::Reset(_) => return wire.borrow_mut().uni_reset(id.number()),
            }
        }
    }

    /// Goes on with the answers whose sections were blocked.
    fn go_on(&mut self, now: Instant) -> Result<(), H3Fault> {
        loop {
            let ready = self.carrier().wire.borrow_mut().take_ready();
            let Some(number) = ready else { return Ok(()) };
            let channel = self.carrier().stream(number).and_then(|id| self.carrier().take(id));
            let Some(mut channel) = channel else { continue };
            let id = channel.id;
            let (rest, is_last) = mem::take(&mut channel.rest);
            answer_came(&self.session, channel, (&rest, is_last), now)?;
            // More may wait in QUIC, and no event tells of it again.
            self.read(id, now)?;
        }
    }
}

/// Passes bytes of an answer to its slot, and puts the channel back unless the exchange is over.
fn answer_came(
    session: &StreamSession<H3Carrier>,
    mut channel: AnswerStream,
    (bytes, is_last): (&[u8], bool),
    now: Instant,
) -> Result<(), H3Fault> {
    let id = channel.id;
    let slot = session.slot(id.number());
    match pass_on(session, &mut channel, slot.as_deref(), (bytes, is_last), now) {
        Ok(true) => session.carrier.channels.borrow_mut().push(channel),
        Ok(false) => {}
        Err(Broken::Connection(fault)) => return Err(fault),
        Err(Broken::Stream(code, lost)) => {
            let H3Carrier { quic, wire, .. } = &session.carrier;
            wire.borrow_mut().cancel(id.number());
            quic.stop(id, code as u64);
            quic.reset(id, code as u64);
            if let Some(slot) = slot {
                slot.lose(lost);
            }
        }
    }
    Ok(())
}

/// The end that a broken answer brings: of its connection, or of its stream.
enum Broken {
    Connection(H3Fault),
    Stream(H3Code, Lost),
}

impl From<H3Fault> for Broken {
    fn from(fault: H3Fault) -> Broken {
        if fault.stream.is_some() { Broken::Stream(fault.code, lost::fault(fault)) } else { Broken::Connection(fault) }
    }
}

/// Reads bytes of an answer; false if nothing more of the stream matters.
fn pass_on(
    session: &StreamSession<H3Carrier>,
    channel: &mut AnswerStream,
    slot: Option<&StreamSlot>,
    (bytes, is_last): (&[u8], bool),
    now: Instant,
) -> Result<bool, Broken> {
    let Some(slot) = slot else { return Ok(false) };
    let wire = &mut *session.carrier.wire.borrow_mut();
    let mut start = 0;
    loop {
        let rest = bytes.get(start..).unwrap_or_default();
        let step = channel.reader.next(wire, rest, is_last)?;
        start += step.used;
        let ends = match step.event {
            None => return Ok(true),
            Some(H3Event::Blocked) => {
                channel.rest = (bytes.get(start..).unwrap_or_default().to_vec(), is_last);
                return Ok(true);
            }
            Some(H3Event::Head { ends, .. }) => {
                let taken = slot.state.borrow_mut().take_head(wire.block(), ends, now);
                match taken.map_err(|lost| Broken::Stream(H3Code::Message, lost))? {
                    HeadKind::Interim => false,
                    HeadKind::Answer(declared) => {
                        channel.reader.answered(declared);
                        ends
                    }
                }
            }
            Some(H3Event::Data { range, ends }) => {
                let piece = rest.get(range).unwrap_or_default();
                let taken = slot.state.borrow_mut().take_data(piece, now);
                taken.map_err(|lost| Broken::Stream(H3Code::RequestCancelled, lost))?;
                ends
            }
            Some(H3Event::Trailers { ends }) => {
                let fault = |what| H3Fault::stream(channel.id.number(), H3Code::Message, what);
                message::check_trailers(wire.block()).map_err(fault)?;
                ends
            }
            Some(H3Event::End) => true,
            Some(H3Event::Malformed(what)) => {
                return Err(H3Fault::stream(channel.id.number(), H3Code::Message, what).into());
            }
        };
        if ends {
            wire.answered();
            slot.complete(now);
            return Ok(true);
        }
    }
}
