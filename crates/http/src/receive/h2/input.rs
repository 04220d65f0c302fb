//! The incoming bytes of a connection: reads them, cuts them into frames and handles each frame.

use std::io;

use weir_net::worker::Task;
use weir_net::{Lease, buffer};
use weir_wire::h2::connection::{H2Event, PREFACE, Step};
use weir_wire::h2::{ErrorCode, H2Fault};

use super::session::{OUT_MAX, Session};

/// Bytes read at a time: some requests, or one full frame with its head.
const READ_BYTES: usize = 18 << 10;
/// Reads in one turn; then other tasks have their turn.
const READS_MAX: usize = 8;

/// Bytes read; those before `start` have been used.
pub struct Input {
    bytes: Lease,
    start: usize,
    /// At least this many bytes from `start` must be there before there is anything to do.
    needs: usize,
    /// The client's preface arrived; an origin sends none.
    is_begun: bool,
}

/// Why nothing more can be read.
pub enum Over {
    /// The peer has closed.
    Closed,
    /// The connection failed.
    Broken(io::Error),
    /// The peer broke a rule, and weir must send the error.
    Fault(H2Fault),
}

impl Input {
    /// The input of a client; `early` has already arrived.
    pub fn of_client(early: &[u8]) -> Input {
        let mut bytes = buffer::lease(READ_BYTES.max(early.len()));
        bytes.extend_from_slice(early);
        Input { bytes, start: 0, needs: 0, is_begun: false }
    }

    /// The input of an origin.
    pub fn of_origin() -> Input {
        Input { bytes: Lease::none(), start: 0, needs: 0, is_begun: true }
    }

    /// Whether the preface, or the rest of a frame, is missing.
    pub fn is_within(&self) -> bool {
        !self.is_begun || self.start < self.bytes.len()
    }

    /// Reads and handles the bytes that are there; returns whether there may be more.
    pub fn read(&mut self, session: &Session, act: &mut dyn FnMut(H2Event<'_>)) -> Result<bool, Over> {
        for _ in 0..READS_MAX {
            self.take_frames(session, act).map_err(Over::Fault)?;
            if session.waiting() >= OUT_MAX {
                return Ok(true);
            }
            let stream = session.transport();
            if stream.poll_readable().is_pending() {
                self.shrink();
                return Ok(false);
            }
            self.bytes.drain(..self.start);
            self.start = 0;
            let room = READ_BYTES.max(self.needs.saturating_sub(self.bytes.len()));
            if self.bytes.capacity() == 0 {
                self.bytes = buffer::lease(room);
            } else if self.bytes.capacity() < self.bytes.len() + room {
                self.bytes.reserve(room);
            }
            match stream.try_read_vec(&mut self.bytes, room) {
                // A frame that was cut off has no meaning; open streams have lost their peer.
                Ok(0) => return Err(Over::Closed),
                Ok(_) => session.hear(),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(Over::Broken(error)),
            }
        }
        // Gives other tasks their turn.
        Task::current().wake();
        Ok(false)
    }

    /// A connection that waits holds no buffer.
    fn shrink(&mut self) {
        if self.start == self.bytes.len() {
            (self.bytes, self.start) = (Lease::none(), 0);
        }
    }

    fn take_frames(&mut self, session: &Session, act: &mut dyn FnMut(H2Event<'_>)) -> Result<(), H2Fault> {
        if !self.is_begun && !self.begin()? {
            return Ok(());
        }
        loop {
            let rest = self.bytes.get(self.start..).unwrap_or_default();
            if rest.len() < self.needs || rest.is_empty() {
                return Ok(());
            }
            let step = session.wire.borrow_mut().next(rest)?;
            match step {
                Step::Need(count) => self.needs = count,
                Step::Took { used, event } => {
                    act(event);
                    self.start += used;
                    self.needs = 0;
                    if session.waiting() >= OUT_MAX {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Checks the preface; `false` if it is not complete.
    fn begin(&mut self) -> Result<bool, H2Fault> {
        match super::preface(&self.bytes) {
            super::Preface::Whole => {
                self.start = PREFACE.len();
                self.is_begun = true;
                Ok(true)
            }
            super::Preface::Part => Ok(false),
            super::Preface::Other => {
                Err(H2Fault::connection(ErrorCode::Protocol, "client sent invalid HTTP/2 preface"))
            }
        }
    }
}
