//! The shared state of a connection's exchanges: its frames, the slot of each stream, and the exchanges that wait for
//! a stream.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::worker::Task;
use weir_net::{Instant, Transport, clock};
use weir_wire::h2::ErrorCode;
use weir_wire::h2::connection::{Connection, Limits, Role};
use weir_wire::section::composed::Composed;

use super::super::answer::Answer;
use super::super::error::Error;
use super::super::incoming::is_passing;
use super::super::session::ReadyRequest;
use super::super::timings::Timings;
use super::lost::Lost;
use super::slot::StreamSlot;

/// Limit of bytes that wait for the socket. Above it, no body is written and no frame is read.
pub(super) const OUT_MAX: usize = 64 << 10;
/// Capacity kept while no bytes wait.
const OUT_KEPT: usize = 16 << 10;
/// The receive window. The driver consumes all data at once, so the server never waits for a window update.
const WINDOW: u32 = (1 << 30) - 1;
/// Largest head or trailer section of an answer, in bytes.
const SECTION_MAX: usize = 256 << 10;

/// A connection that carries streams.
pub(super) struct H2Session {
    pub transport: Transport,
    pub wire: RefCell<Connection>,
    out: RefCell<Out>,
    streams: RefCell<Vec<Rc<StreamSlot>>>,
    /// Waiting exchanges, in order of arrival.
    waiting: RefCell<VecDeque<Rc<StreamSlot>>>,
    /// Exchanges that have begun and whose requests the kernel has not taken completely.
    unsent: RefCell<Vec<Rc<StreamSlot>>>,
    streams_max: usize,
    driver: Cell<Task>,
    /// No further exchange may begin: the server announced the end, or nobody uses the line any more.
    is_going: Cell<bool>,
    /// Why the connection is over.
    over: RefCell<Option<Lost>>,
    /// Something was read.
    is_heard: Cell<bool>,
    carried: Cell<u64>,
    /// Times to resolve the address, to connect and to do the TLS handshake.
    opening: (Duration, Duration, Option<Duration>),
}

/// Bytes that wait for the socket.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    start: usize,
}

impl Out {
    fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The buffer for new frames, which come after the connection's own frames.
    fn behind(&mut self, wire: &mut Connection) -> &mut Vec<u8> {
        let own = wire.output();
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, own);
        } else {
            self.bytes.append(own);
        }
        &mut self.bytes
    }
}

impl H2Session {
    /// A session over a new connection; a driver must be started for it.
    pub fn new(
        transport: Transport,
        streams_max: usize,
        opening: (Duration, Duration, Option<Duration>),
    ) -> Rc<H2Session> {
        let limits = Limits {
            streams: 0,
            section: SECTION_MAX,
            window: WINDOW,
            connection_window: WINDOW,
            is_connect_extended: false,
        };
        Rc::new(H2Session {
            transport,
            wire: RefCell::new(Connection::new(Role::Client, limits)),
            out: RefCell::default(),
            streams: RefCell::default(),
            waiting: RefCell::default(),
            unsent: RefCell::default(),
            streams_max,
            driver: Cell::new(Task::NONE),
            is_going: Cell::new(false),
            over: RefCell::new(None),
            is_heard: Cell::new(false),
            carried: Cell::new(0),
            opening,
        })
    }

    /// True if another exchange may begin here, at once or after waiting.
    pub fn is_open(&self) -> bool {
        !self.is_going.get() && self.over.borrow().is_none() && self.wire.borrow().has_numbers()
    }

    /// Carries out one exchange; the caller has set the slot's deadline.
    pub async fn exchange(
        &self,
        call: &ReadyRequest<'_>,
        slot: &Rc<StreamSlot>,
        started: Instant,
    ) -> Result<Answer, Lost> {
        let composed = Composed::read(call.head)
            .map_err(|_| Lost::for_good(Error::named(Step::SendRequest, "ERR_INVALID_CHAR")))?;
        slot.begin(call.wants_body, call.method == b"HEAD");
        let mut asking = Asking { session: self, slot, is_sent: false };
        self.leave_to_begin(slot).await?;
        let (dns, tcp, tls) = self.opening;
        let is_fresh = self.carried.get() == 0;
        self.carried.set(self.carried.get() + 1);
        let timings = Timings { started, dns, tcp, tls, is_fresh, sent: started, head: started, end: started };
        self.send_head(slot, &composed, call.body.is_empty());
        let mut body = call.body;
        asking.is_sent = body.is_empty();
        let is_late = poll_fn(|_| {
            if slot.is_over() {
                return Poll::Ready(false);
            }
            slot.task.set(Task::current());
            if !body.is_empty() {
                self.send_body(slot, &mut body);
                asking.is_sent = body.is_empty();
            }
            slot.deadline.poll_expired().map(|()| true)
        })
        .await;
        let mut state = slot.state.borrow_mut();
        if is_late {
            return Err(Lost::for_good(state.place(Error::timed_out(state.step()), timings)));
        }
        if let Some(lost) = state.lost.clone() {
            let lost = lost.after(state.sent.is_some());
            return Err(Lost { error: state.place(lost.error, timings), ..lost });
        }
        let answer = state.take(timings);
        answer.ok_or_else(|| Lost::for_good(Error::closed(Step::AwaitHead)))
    }

    /// Waits in line for a stream.
    async fn leave_to_begin(&self, slot: &Rc<StreamSlot>) -> Result<(), Lost> {
        let mut is_in_line = false;
        poll_fn(|_| {
            if let Some(lost) = self.over.borrow().clone() {
                return Poll::Ready(Err(lost.after(false)));
            }
            if self.is_going.get() {
                return Poll::Ready(Err(Lost::unbegun(0).after(false)));
            }
            let mut waiting = self.waiting.borrow_mut();
            let is_first = waiting.front().is_none_or(|first| Rc::ptr_eq(first, slot));
            if is_first && self.has_room() {
                if is_in_line {
                    waiting.pop_front();
                }
                return Poll::Ready(Ok(()));
            }
            if !is_in_line {
                waiting.push_back(slot.clone());
                is_in_line = true;
            }
            drop(waiting);
            slot.task.set(Task::current());
            let late = Error::timed_out(Step::Queue);
            slot.deadline.poll_expired().map(|()| Err(Lost::for_good(late)))
        })
        .await
    }

    fn has_room(&self) -> bool {
        self.streams.borrow().len() < self.streams_max && self.wire.borrow().room() > 0
    }

    /// Wakes the first waiting exchange.
    pub fn call_next(&self) {
        let waiting = self.waiting.borrow();
        if let Some(first) = waiting.front().filter(|_| self.has_room()) {
            first.wake();
        }
    }

    fn send_head(&self, slot: &Rc<StreamSlot>, composed: &Composed<'_>, ends: bool) {
        let scheme: &[u8] = if self.transport.is_secure() { b"https" } else { b"http" };
        let mut wire = self.wire.borrow_mut();
        // There was room a moment ago. If there is none, the exchange is lost here.
        let Some(id) = wire.open() else { return slot.lose(Lost::unbegun(0)) };
        wire.head(id, ends, |encoder, out| composed.write(scheme, encoder, out));
        self.out.borrow_mut().behind(&mut wire);
        drop(wire);
        slot.id.set(id);
        self.streams.borrow_mut().push(slot.clone());
        self.unsent.borrow_mut().push(slot.clone());
        self.tell_driver();
        self.call_next();
    }

    /// Writes as much of a body as the windows and the socket accept.
    fn send_body(&self, slot: &StreamSlot, body: &mut &[u8]) {
        let (mut wire, mut out) = (self.wire.borrow_mut(), self.out.borrow_mut());
        slot.is_blocked.set(false);
        let id = slot.id.get();
        while !body.is_empty() {
            let length = wire.sendable(id).min(body.len());
            if length == 0 || out.len() >= OUT_MAX {
                slot.is_blocked.set(true);
                break;
            }
            let (piece, rest) = body.split_at(length);
            let frame = wire.data(id, length, rest.is_empty());
            let bytes = out.behind(&mut wire);
            bytes.extend_from_slice(&frame);
            bytes.extend_from_slice(piece);
            *body = rest;
        }
        self.tell_driver();
    }

    // Functions for the driver.

    pub fn driven_here(&self) {
        self.driver.set(Task::current());
    }

    pub fn tell_driver(&self) {
        self.driver.get().wake();
    }

    pub fn hear(&self) {
        self.is_heard.set(true);
    }

    /// True if nothing has been read yet.
    pub fn is_unheard(&self) -> bool {
        !self.is_heard.get()
    }

    /// Bytes that wait for the socket.
    pub fn waiting_bytes(&self) -> usize {
        self.out.borrow().len()
    }

    /// The slot of this stream.
    pub fn slot(&self, id: u32) -> Option<Rc<StreamSlot>> {
        self.streams.borrow().iter().find(|slot| slot.id.get() == id).cloned()
    }

    /// Sends the waiting bytes, as far as the socket accepts them.
    pub fn flush(&self) -> io::Result<()> {
        let (mut wire, mut out) = (self.wire.borrow_mut(), self.out.borrow_mut());
        out.behind(&mut wire);
        if out.len() == 0 {
            return Ok(());
        }
        let mut unsent = self.unsent.borrow_mut();
        if !unsent.is_empty() {
            let now = clock::precise();
            unsent.drain(..).for_each(|slot| {
                slot.state.borrow_mut().sent.get_or_insert(now);
            });
        }
        while out.len() > 0 {
            match self.transport.try_write(out.bytes.get(out.start..).unwrap_or_default()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => out.start += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.transport.poll_writable().is_pending() {
                        break;
                    }
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if out.len() == 0 {
            out.start = 0;
            out.bytes.clear();
            out.bytes.shrink_to(OUT_KEPT);
        }
        let has_room = out.len() < OUT_MAX;
        drop((wire, out, unsent));
        if has_room {
            self.wake_blocked(None);
        }
        Ok(())
    }

    /// Wakes the exchanges that wait to send more of a body: the one on stream `id`, or all.
    pub fn wake_blocked(&self, id: Option<u32>) {
        let streams = self.streams.borrow();
        let concerned = streams.iter().filter(|slot| id.is_none_or(|id| slot.id.get() == id));
        concerned.filter(|slot| slot.is_blocked.get()).for_each(|slot| slot.wake());
    }

    /// Ends the session for new exchanges. Current ones go on, except those that the server reports as not begun.
    pub fn go(&self, unbegun: Option<(u32, u32)>) {
        self.is_going.set(true);
        if let Some((last, code)) = unbegun {
            let lost: Vec<_> = self.streams.borrow().iter().filter(|slot| slot.id.get() > last).cloned().collect();
            lost.iter().for_each(|slot| slot.lose(Lost::unbegun(code)));
        }
        self.waiting.borrow().iter().for_each(|slot| slot.wake());
        self.tell_driver();
    }

    /// True if the session ends as soon as no exchange is left.
    pub fn is_done(&self) -> bool {
        self.is_going.get() && self.streams.borrow().is_empty()
    }

    /// Ends the session; every exchange gets the error.
    pub fn end(&self, lost: Lost) {
        self.driver.set(Task::NONE);
        for slot in self.streams.borrow().iter() {
            slot.lose(lost.clone());
        }
        self.over.replace(Some(lost));
        self.waiting.borrow().iter().for_each(|slot| slot.wake());
    }
}

/// A current exchange. If it is dropped before its end, nobody waits for its answer any more.
struct Asking<'s> {
    session: &'s H2Session,
    slot: &'s Rc<StreamSlot>,
    /// The whole request was written.
    is_sent: bool,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Asking { session, slot, is_sent } = *self;
        let id = slot.id.replace(0);
        slot.task.set(Task::NONE);
        if id == 0 {
            session.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
        } else {
            session.streams.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
            session.unsent.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
            let (is_complete, is_lost) = (slot.state.borrow().is_complete, slot.state.borrow().lost.is_some());
            if session.over.borrow().is_none() {
                if !(is_lost || is_complete && is_sent) {
                    session.wire.borrow_mut().reset(id, ErrorCode::Cancel);
                    session.tell_driver();
                } else if session.is_done() {
                    session.tell_driver();
                }
            }
        }
        session.call_next();
    }
}
