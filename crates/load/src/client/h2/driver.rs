//! The task that drives a connection: passes incoming frames to their slots, and sends the frames of all exchanges at
//! once.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use weir_meter::Step;
use weir_net::worker::Task;
use weir_net::{Instant, Lease, buffer, clock, worker};
use weir_wire::h2::connection::{self, H2Event};
use weir_wire::h2::frame::HEAD_BYTES;
use weir_wire::h2::{ErrorCode, H2Fault};
use weir_wire::section::message;

use super::super::error::{Error, NOT_SPOKEN};
use super::super::incoming::is_passing;
use super::super::streams::{HeadKind, Lost, StreamSession};
use super::carrier::{H2Carrier, OUT_MAX};
use super::lost;

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Most reads in one turn; then other tasks get their turn.
const READS_MAX: usize = 4;
/// Position of a frame's type. A server's first frame must be SETTINGS (RFC 9113 §3.4).
const KIND_AT: usize = 3;
const SETTINGS: u8 = 4;

/// Starts the driver of a new session.
pub(super) fn start(session: Rc<StreamSession<H2Carrier>>) {
    let mut driver = Driver { session, input: Lease::none(), start: 0, needs: 0 };
    worker::spawn(async move { poll_fn(|_| driver.poll()).await });
}

struct Driver {
    session: Rc<StreamSession<H2Carrier>>,
    input: Lease,
    /// Bytes before this index are handled.
    start: usize,
    /// Number of bytes that must be there before the next frame can be handled.
    needs: usize,
}

impl Driver {
    fn poll(&mut self) -> Poll<()> {
        self.session.carrier.driven_here();
        let lost = match self.turn() {
            Ok(()) if !self.session.is_done() => return Poll::Pending,
            Ok(()) => {
                self.session.carrier.wire.borrow_mut().goaway(ErrorCode::NoError);
                let _ = self.session.carrier.flush();
                Lost::for_good(Error::closed(Step::AwaitHead))
            }
            Err(lost) => lost,
        };
        self.session.carrier.leave();
        self.session.end(lost);
        self.session.carrier.transport.shutdown();
        Poll::Ready(())
    }

    /// Reads the bytes that arrived, and sends the waiting frames.
    ///
    /// It reads first: a request must not be sent over a connection that the server has closed meanwhile.
    fn turn(&mut self) -> Result<(), Lost> {
        if self.session.carrier.waiting_bytes() >= OUT_MAX {
            self.flush()?;
        }
        if self.session.carrier.waiting_bytes() < OUT_MAX {
            self.read()?;
            self.session.call_next();
        }
        self.flush()
    }

    fn flush(&self) -> Result<(), Lost> {
        let flushed = self.session.carrier.flush();
        if flushed.map_err(|error| Lost::cut(Error::io(Step::SendRequest, &error)))? {
            self.session.wake_blocked(None);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Lost> {
        for _ in 0..READS_MAX {
            if self.session.carrier.transport.poll_readable().is_pending() {
                return Ok(());
            }
            let room = READ_BYTES.max(self.needs.saturating_sub(self.input.len()));
            if self.input.capacity() == 0 {
                self.input = buffer::lease(room);
            }
            match self.session.carrier.transport.try_read_vec(&mut self.input, room) {
                Ok(0) => return Err(Lost::cut(Error::closed(Step::AwaitHead))),
                Ok(_) => {}
                Err(error) if is_passing(&error) => {
                    self.shrink();
                    continue;
                }
                Err(error) => return Err(Lost::cut(Error::io(Step::AwaitHead, &error))),
            }
            self.check_first()?;
            self.session.carrier.hear();
            self.take_frames(clock::precise())?;
            self.shrink();
        }
        // Give other tasks their turn.
        Task::current().wake();
        Ok(())
    }

    /// Detects a server that does not speak HTTP/2, by its first frame.
    fn check_first(&self) -> Result<(), Lost> {
        let is_strange =
            self.session.carrier.is_unheard() && self.input.get(KIND_AT).is_some_and(|&kind| kind != SETTINGS);
        if is_strange { Err(Lost::for_good(Error::named(Step::AwaitHead, NOT_SPOKEN))) } else { Ok(()) }
    }

    /// Drops the handled bytes, and gives the buffer back if no bytes are left.
    fn shrink(&mut self) {
        if self.start == self.input.len() {
            self.input = Lease::none();
        } else {
            self.input.drain(..self.start);
        }
        self.start = 0;
    }

    fn take_frames(&mut self, now: Instant) -> Result<(), Lost> {
        loop {
            let rest = self.input.get(self.start..).unwrap_or_default();
            if rest.is_empty() || rest.len() < self.needs {
                return Ok(());
            }
            let step = self.session.carrier.wire.borrow_mut().next(rest);
            match step {
                Ok(connection::Step::Need(count)) => self.needs = count,
                Ok(connection::Step::Took { used, event }) => {
                    act(&self.session, event, now);
                    self.start += used;
                    self.needs = 0;
                }
                Err(fault) => {
                    self.session.carrier.wire.borrow_mut().fail(fault);
                    let _ = self.session.carrier.flush();
                    return Err(lost::fault(fault));
                }
            }
        }
    }
}

/// Does the work of one frame.
fn act(session: &StreamSession<H2Carrier>, event: H2Event<'_>, now: Instant) {
    match event {
        H2Event::Nothing | H2Event::Pong | H2Event::Malformed { .. } => {}
        H2Event::Head { stream, ends, .. } => head_came(session, stream, ends, now),
        H2Event::Data { stream, data, counted, ends } => data_came(session, stream, (data, counted), ends, now),
        H2Event::Trailers { stream } => {
            let Some(slot) = session.slot(stream.into()) else { return };
            match message::check_trailers(session.carrier.wire.borrow_mut().block()) {
                Ok(()) => slot.complete(now),
                // The stream has ended already.
                Err(what) => slot.lose(lost::fault(H2Fault::stream(stream, ErrorCode::Protocol, what))),
            }
        }
        H2Event::Reset { stream, code, fault } => {
            if let Some(slot) = session.slot(stream.into()) {
                slot.lose(fault.map_or_else(|| lost::reset(code), lost::fault));
            }
        }
        H2Event::Writable { stream } => session.wake_blocked(stream.map(u64::from)),
        H2Event::GoAway { last, code } => session.go(Some((u64::from(last) + 1, lost::unbegun(code)))),
    }
}

fn head_came(session: &StreamSession<H2Carrier>, id: u32, ends: bool, now: Instant) {
    let mut wire = session.carrier.wire.borrow_mut();
    let Some(slot) = session.slot(id.into()) else { return wire.answered(id, None) };
    let mut state = slot.state.borrow_mut();
    state.received += (HEAD_BYTES + wire.block().sent) as u64;
    let taken = state.take_head(wire.block(), ends, now);
    drop(state);
    match taken {
        Ok(HeadKind::Interim) => {}
        Ok(HeadKind::Answer(declared)) => {
            wire.answered(id, declared);
            if ends {
                slot.complete(now);
            }
        }
        Err(lost) => {
            wire.reset(id, ErrorCode::Protocol);
            slot.lose(lost);
        }
    }
}

fn data_came(session: &StreamSession<H2Carrier>, id: u32, (data, counted): (&[u8], usize), ends: bool, now: Instant) {
    session.carrier.wire.borrow_mut().consumed(id, counted);
    let Some(slot) = session.slot(id.into()) else { return };
    let mut state = slot.state.borrow_mut();
    state.received += (HEAD_BYTES + counted) as u64;
    let taken = state.take_data(data, now);
    drop(state);
    match taken {
        Ok(()) if ends => slot.complete(now),
        Ok(()) => {}
        Err(lost) => {
            session.carrier.wire.borrow_mut().reset(id, ErrorCode::Cancel);
            slot.lose(lost);
        }
    }
}
