//! The exchanges of a connection: the slot of each stream, and the exchanges that wait for a stream.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weir_meter::Step;
use weir_net::Instant;
use weir_net::worker::Task;
use weir_wire::Version;
use weir_wire::section::composed::Composed;

use super::super::answer::Answer;
use super::super::error::Error;
use super::super::session::ReadyRequest;
use super::super::timings::Timings;
use super::lost::Lost;
use super::slot::StreamSlot;

/// Largest head or trailer section of an answer, in bytes.
pub const SECTION_MAX: usize = 256 << 10;

/// Times to resolve the address, to connect and to do the TLS handshake.
pub type OpeningTimes = (Duration, Duration, Option<Duration>);

/// The protocol of a connection: it sends what the exchanges ask for. Its driver receives.
pub trait Carrier {
    /// The version of the answers.
    fn version(&self) -> Version;

    /// True if streams may begin, now or later.
    fn has_numbers(&self) -> bool;

    /// True if a stream may begin now.
    fn has_room(&self) -> bool;

    /// Begins a stream with the head of a request and a body of `body` bytes; its number, or `None` if there is no room.
    fn begin(&self, slot: &Rc<StreamSlot>, head: &Composed<'_>, body: u64) -> Option<u64>;

    /// Sends as much of a body as there is room for; if something is left, [`StreamSession::wake_blocked`] goes on.
    fn send_body(&self, stream: u64, body: &mut &[u8]);

    /// Forgets a stream, whose answer is complete and whose request was sent, or which is lost.
    fn forget(&self, slot: &Rc<StreamSlot>, stream: u64);

    /// Cancels a stream whose answer nobody waits for.
    fn cancel(&self, stream: u64);

    /// The loss of an exchange that came too late for the connection.
    fn too_late(&self) -> Lost;

    /// Wakes the driver.
    fn tell_driver(&self);
}

/// A connection that carries streams.
pub struct StreamSession<C: Carrier + ?Sized> {
    streams: RefCell<Vec<Rc<StreamSlot>>>,
    /// Waiting exchanges, in order of arrival.
    waiting: RefCell<VecDeque<Rc<StreamSlot>>>,
    streams_max: usize,
    /// Exchanges that the connection may carry, and those that have come.
    exchanges_max: u64,
    entered: Cell<u64>,
    /// No further exchange may begin: the server announced the end, or nobody uses the line any more.
    is_going: Cell<bool>,
    /// Why the connection is over.
    over: RefCell<Option<Lost>>,
    carried: Cell<u64>,
    opening: OpeningTimes,
    pub carrier: C,
}

impl<C: Carrier> StreamSession<C> {
    /// A session over a new connection; a driver must be started for it.
    pub fn new(
        carrier: C,
        streams_max: usize,
        exchanges_max: Option<u64>,
        opening: OpeningTimes,
    ) -> Rc<StreamSession<C>> {
        Rc::new(StreamSession {
            streams: RefCell::default(),
            waiting: RefCell::default(),
            streams_max,
            exchanges_max: exchanges_max.unwrap_or(u64::MAX),
            entered: Cell::new(0),
            is_going: Cell::new(false),
            over: RefCell::new(None),
            carried: Cell::new(0),
            opening,
            carrier,
        })
    }
}

impl<C: Carrier + ?Sized> StreamSession<C> {
    /// True if another exchange may begin here, at once or after waiting.
    pub fn is_open(&self) -> bool {
        !self.is_going.get() && !self.is_full() && self.over.borrow().is_none() && self.carrier.has_numbers()
    }

    /// True if as many exchanges have come as the connection may carry; it ends after the last of them.
    pub fn is_full(&self) -> bool {
        self.entered.get() >= self.exchanges_max
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
        self.entered.set(self.entered.get() + 1);
        slot.begin(self.carrier.version(), call.wants_body, call.method == b"HEAD");
        let mut asking = Asking { session: self, slot, is_sent: false };
        self.leave_to_begin(slot).await?;
        let (dns, tcp, tls) = self.opening;
        let is_fresh = self.carried.get() == 0;
        self.carried.set(self.carried.get() + 1);
        let timings = Timings { started, dns, tcp, tls, is_fresh, sent: started, head: started, end: started };
        self.send_head(slot, &composed, call.body.len() as u64);
        let mut body = call.body;
        asking.is_sent = body.is_empty();
        let is_late = poll_fn(|_| {
            if slot.is_over() {
                return Poll::Ready(false);
            }
            slot.task.set(Task::current());
            if !body.is_empty() {
                if let Some(id) = slot.id.get() {
                    self.carrier.send_body(id, &mut body);
                }
                slot.is_blocked.set(!body.is_empty());
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
                return Poll::Ready(Err(self.carrier.too_late().after(false)));
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
        self.streams.borrow().len() < self.streams_max && self.carrier.has_room()
    }

    fn send_head(&self, slot: &Rc<StreamSlot>, head: &Composed<'_>, body: u64) {
        // There was room a moment ago. If there is none, the exchange is lost here.
        let Some(id) = self.carrier.begin(slot, head, body) else { return slot.lose(self.carrier.too_late()) };
        slot.id.set(Some(id));
        self.streams.borrow_mut().push(slot.clone());
        self.carrier.tell_driver();
        self.call_next();
    }

    /// Wakes the first waiting exchange.
    pub fn call_next(&self) {
        let waiting = self.waiting.borrow();
        if let Some(first) = waiting.front().filter(|_| self.has_room()) {
            first.wake();
        }
    }

    /// The slot of this stream.
    pub fn slot(&self, id: u64) -> Option<Rc<StreamSlot>> {
        self.streams.borrow().iter().find(|slot| slot.id.get() == Some(id)).cloned()
    }

    /// Wakes the exchanges that wait to send more of a body: the one on stream `id`, or all.
    pub fn wake_blocked(&self, id: Option<u64>) {
        let streams = self.streams.borrow();
        let concerned = streams.iter().filter(|slot| id.is_none_or(|id| slot.id.get() == Some(id)));
        concerned.filter(|slot| slot.is_blocked.get()).for_each(|slot| slot.wake());
    }

    /// Ends the session for new exchanges. Current ones go on, except those that the server reports as not begun: the
    /// streams from a number on.
    pub fn go(&self, unbegun: Option<(u64, Lost)>) {
        self.is_going.set(true);
        if let Some((first, lost)) = unbegun {
            let is_unbegun = |slot: &&Rc<StreamSlot>| slot.id.get().is_some_and(|id| id >= first);
            let all: Vec<_> = self.streams.borrow().iter().filter(is_unbegun).cloned().collect();
            all.iter().for_each(|slot| slot.lose(lost.clone()));
        }
        self.waiting.borrow().iter().for_each(|slot| slot.wake());
        self.carrier.tell_driver();
    }

    /// True if the session ends as soon as no exchange is left.
    pub fn is_done(&self) -> bool {
        self.is_going.get() && self.streams.borrow().is_empty()
    }

    /// Ends all current exchanges with this loss; the numbers of their streams may be used again.
    pub fn begin_anew(&self, lost: &Lost) {
        let streams = self.streams.take();
        self.entered.set(self.entered.get().saturating_sub(streams.len() as u64));
        for slot in streams {
            slot.id.set(None);
            slot.lose(lost.clone());
        }
    }

    /// Ends the session; every exchange gets the error.
    pub fn end(&self, lost: Lost) {
        self.streams.borrow().iter().for_each(|slot| slot.lose(lost.clone()));
        self.over.replace(Some(lost));
        self.waiting.borrow().iter().for_each(|slot| slot.wake());
    }
}

/// A current exchange. If it is dropped before its end, nobody waits for its answer any more.
struct Asking<'s, C: Carrier + ?Sized> {
    session: &'s StreamSession<C>,
    slot: &'s Rc<StreamSlot>,
    /// The whole request was written.
    is_sent: bool,
}

impl<C: Carrier + ?Sized> Drop for Asking<'_, C> {
    fn drop(&mut self) {
        let Asking { session, slot, is_sent } = *self;
        let id = slot.id.take();
        slot.task.set(Task::NONE);
        if let Some(id) = id {
            session.streams.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
            let (is_complete, is_lost) = (slot.state.borrow().is_complete, slot.state.borrow().lost.is_some());
            if session.over.borrow().is_none() {
                if !(is_lost || is_complete && is_sent) {
                    session.carrier.cancel(id);
                    session.carrier.tell_driver();
                } else if session.is_done() {
                    session.carrier.tell_driver();
                }
            }
            session.carrier.forget(slot, id);
        } else {
            session.waiting.borrow_mut().retain(|other| !Rc::ptr_eq(other, slot));
        }
        if session.is_full() && session.streams.borrow().is_empty() && session.waiting.borrow().is_empty() {
            session.go(None);
        }
        session.call_next();
    }
}
