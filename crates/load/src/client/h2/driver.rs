//! The task that drives a connection: passes incoming frames to their slots, and sends the frames of all exchanges at
//! once.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use weir_meter::Step;
use weir_net::worker::Task;
use weir_net::{Instant, Lease, buffer, clock, worker};
use weir_wire::h2::connection::{self, H2Event};
use weir_wire::h2::{ErrorCode, H2Fault};
use weir_wire::section::message;

use super::super::error::{Error, NOT_SPOKEN};
use super::super::incoming::is_passing;
use super::lost::Lost;
use super::session::{H2Session, OUT_MAX};
use super::slot::HeadKind;

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;
/// Most reads in one turn; then other tasks get their turn.
const READS_MAX: usize = 4;
/// Position of a frame's type. A server's first frame must be SETTINGS (RFC 9113 §3.4).
const KIND_AT: usize = 3;
const SETTINGS: u8 = 4;

/// Starts the driver of a new session.
pub(super) fn start(session: Rc<H2Session>) {
    let mut driver = Driver { session, input: Lease::none(), start: 0, needs: 0 };
    worker::spawn(async move { poll_fn(|_| driver.poll()).await });
}

struct Driver {
    session: Rc<H2Session>,
    input: Lease,
    /// Bytes before this index are handled.
    start: usize,
    /// Number of bytes that must be there before the next frame can be handled.
    needs: usize,
}

impl Driver {
    fn poll(&mut self) -> Poll<()> {
        self.session.driven_here();
        let lost = match self.turn() {
            Ok(()) if !self.session.is_done() => return Poll::Pending,
            Ok(()) => {
                self.session.wire.borrow_mut().goaway(ErrorCode::NoError);
                let _ = self.session.flush();
                Lost::for_good(Error::closed(Step::AwaitHead))
            }
            Err(lost) => lost,
        };
        self.session.end(lost);
        self.session.transport.shutdown();
        Poll::Ready(())
    }

    /// Reads the bytes that arrived, and sends the waiting frames.
    ///
    /// It reads first: a request must not be sent over a connection that the server has closed meanwhile.
    fn turn(&mut self) -> Result<(), Lost> {
        if self.session.waiting_bytes() >= OUT_MAX {
            self.flush()?;
        }
        if self.session.waiting_bytes() < OUT_MAX {
            self.read()?;
            self.session.call_next();
        }
        self.flush()
    }

    fn flush(&self) -> Result<(), Lost> {
        self.session.flush().map_err(|error| Lost::cut(Error::io(Step::SendRequest, &error)))
    }

    fn read(&mut self) -> Result<(), Lost> {
        for _ in 0..READS_MAX {
            if self.session.transport.poll_readable().is_pending() {
                return Ok(());
            }
            let room = READ_BYTES.max(self.needs.saturating_sub(self.input.len()));
            if self.input.capacity() == 0 {
                self.input = buffer::lease(room);
            }
            match self.session.transport.try_read_vec(&mut self.input, room) {
                Ok(0) => return Err(Lost::cut(Error::closed(Step::AwaitHead))),
                Ok(_) => {}
                Err(error) if is_passing(&error) => {
                    self.shrink();
                    continue;
                }
                Err(error) => return Err(Lost::cut(Error::io(Step::AwaitHead, &error))),
            }
            self.check_first()?;
            self.session.hear();
            self.take_frames(clock::precise())?;
            self.shrink();
        }
        // Give other tasks their turn.
        Task::current().wake();
        Ok(())
    }

    /// Detects a server that does not speak HTTP/2, by its first frame.
    fn check_first(&self) -> Result<(), Lost> {
        let is_strange = self.session.is_unheard() && self.input.get(KIND_AT).is_some_and(|&kind| kind != SETTINGS);
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
            let step = self.session.wire.borrow_mut().next(rest);
            match step {
                Ok(connection::Step::Need(count)) => self.needs = count,
                Ok(connection::Step::Took { used, event }) => {
                    act(&self.session, event, now);
                    self.start += used;
                    self.needs = 0;
                }
                Err(fault) => {
                    self.session.wire.borrow_mut().fail(fault);
                    let _ = self.session.flush();
                    return Err(Lost::fault(fault));
                }
            }
        }
    }
}

/// Does the work of one frame.
fn act(session: &H2Session, event: H2Event<'_>, now: Instant) {
    match event {
        H2Event::Nothing | H2Event::Pong | H2Event::Malformed { .. } => {}
        H2Event::Head { stream, ends, .. } => head_came(session, stream, ends, now),
        H2Event::Data { stream, data, counted, ends } => data_came(session, stream, (data, counted), ends, now),
        H2Event::Trailers { stream } => {
            let Some(slot) = session.slot(stream) else { return };
            match message::check_trailers(session.wire.borrow_mut().block()) {
                Ok(()) => slot.complete(now),
                // The stream has ended already.
                Err(what) => slot.lose(Lost::fault(H2Fault::stream(stream, ErrorCode::Protocol, what))),
            }
        }
        H2Event::Reset { stream, code, fault } => {
            if let Some(slot) = session.slot(stream) {
                slot.lose(fault.map_or_else(|| Lost::reset(code), Lost::fault));
            }
        }
        H2Event::Writable { stream } => session.wake_blocked(stream),
        H2Event::GoAway { last, code } => session.go(Some((last, code))),
    }
}

fn head_came(session: &H2Session, id: u32, ends: bool, now: Instant) {
    let mut wire = session.wire.borrow_mut();
    let Some(slot) = session.slot(id) else { return wire.answered(id, None) };
    let taken = slot.state.borrow_mut().take_head(wire.block(), ends, now);
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

fn data_came(session: &H2Session, id: u32, (data, counted): (&[u8], usize), ends: bool, now: Instant) {
    session.wire.borrow_mut().consumed(id, counted);
    let Some(slot) = session.slot(id) else { return };
    let taken = slot.state.borrow_mut().take_data(data, counted, now);
    match taken {
        Ok(()) if ends => slot.complete(now),
        Ok(()) => {}
        Err(lost) => {
            session.wire.borrow_mut().reset(id, ErrorCode::Cancel);
            slot.lose(lost);
        }
    }
}
