//! The heart of a worker: tasks, sockets, timers, one loop.
//!
//! Everything lives in one thread-local [`Core`]. A turn of the loop is: poll what
//! is queued, run what was mailed, fire timers, run the turn-end hooks, wait in
//! `epoll_wait`, read the clock, ring alarms, note what became ready.
//!
//! What is under way is finished before anything is begun: who waits for a connection
//! that we opened (an upstream's answer) is polled before who waits for one that we
//! accepted (a client's request), and of those only [`BEGUN_MAX`] a turn. Otherwise an
//! answer stands behind hundreds of new requests where a thousand clients ask at once.
//! Measured there: 0.6 of the CPU a request (bench row `1k-1000`, tuned).
//!
//! Our own primitives (readiness, deadlines) remember the *task* that polls them
//! and wake it by pushing its number on the run queue: no `Waker`, no atomics, no
//! allocation. Invariant: no `RefCell` is borrowed while foreign code (a future's
//! poll or drop, a hook, an errand) runs.

use crate::alarm::Alarms;
use crate::clock::{Clock, Instant, NS_PER_MS, NS_PER_SECOND};
use crate::counts::{Kind, count};
use crate::mailbox::{LocalWake, Mail, Mailbox};
use crate::slots::{Key, Slots};
use crate::sys;
use crate::wheel::Wheel;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// Events fetched by one `epoll_wait`; nginx's epoll_events is 512.
const EVENTS_MAX: usize = 256;
/// Tasks polled a turn besides those that wait for an answer: one `epoll_wait` is little for so many.
const BEGUN_MAX: usize = 32;
/// An alarm nearer than this is waited for exactly, which costs a look at the clock each turn.
const NEAR_NS: u64 = 50 * NS_PER_MS;
/// How much later than asked the kernel may wake a worker that has alarms; 50 µs are its default.
const SLACK: NonZeroU64 = NonZeroU64::MIN;
/// Turn-end hooks per worker.
pub(crate) const HOOKS_MAX: usize = 64;
/// The longest wait asked of the kernel.
const DAY_MS: u64 = 86_400_000;
/// The bell of the mailbox, where a registration's key would be.
const BELL: u64 = u64::MAX;

thread_local! {
    // Without a destructor no access need ask whether it ran; an exchange makes some twenty. `Core::end` frees it.
    static CORE: ManuallyDrop<Core> = const { ManuallyDrop::new(Core::new()) };
}

/// Calls `f` with this thread's core.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Core) -> R) -> Option<R> {
    CORE.try_with(|core| f(core)).ok()
}

type PanicHook = Rc<dyn Fn(&str)>;
type BoxFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    /// Absent while it is being polled.
    future: Option<BoxFuture>,
    /// Made the first time a future clones its waker, and kept for the next.
    waker: Option<Waker>,
    queued: bool,
}

/// What is known about one socket.
pub(crate) struct Registration {
    pub(crate) ready: u8,
    side: Side,
    reader: Key,
    writer: Key,
}

/// Who opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// We did: what comes is an answer.
    Ours,
    /// The peer did, or it is a listener.
    Theirs,
}

/// Bits of [`Registration::ready`].
pub(crate) const READ: u8 = 1;
pub(crate) const WRITE: u8 = 2;
/// The peer shut its side down: read on until 0.
pub(crate) const PEER_CLOSED: u8 = 4;
/// Both sides are shut.
pub(crate) const HUNG_UP: u8 = 8;
pub(crate) const FAILED: u8 = 16;
/// After any of these a short read does not mean "drained".
pub(crate) const ENDING: u8 = PEER_CLOSED | HUNG_UP | FAILED;

/// One worker's state.
pub(crate) struct Core {
    epoll: RefCell<Option<Rc<OwnedFd>>>,
    mailbox: RefCell<Option<Arc<Mailbox>>>,
    tasks: RefCell<Slots<Task>>,
    queue: RefCell<VecDeque<u32>>,
    /// The part of the queue that goes first: tasks whose answers came.
    answered: RefCell<VecDeque<u32>>,
    sockets: RefCell<Slots<Registration>>,
    pub(crate) wheel: RefCell<Wheel>,
    pub(crate) alarms: RefCell<Alarms>,
    /// Whether the kernel was asked to be punctual; only who has alarms asks.
    is_punctual: Cell<bool>,
    /// The kernel has no `epoll_pwait2`.
    is_coarse: Cell<bool>,
    pub(crate) clock: Clock,
    /// The task being polled.
    current: Cell<Key>,
    /// A waker the current task cloned, on its way into the task's slot.
    cloned: RefCell<Option<Waker>>,
    hooks: RefCell<Vec<Rc<dyn Fn()>>>,
    panic_hook: RefCell<Option<PanicHook>>,
    ending: Cell<bool>,
}

impl Core {
    const fn new() -> Core {
        Core {
            epoll: RefCell::new(None),
            mailbox: RefCell::new(None),
            tasks: RefCell::new(Slots::new()),
            queue: RefCell::new(VecDeque::new()),
            answered: RefCell::new(VecDeque::new()),
            sockets: RefCell::new(Slots::new()),
            wheel: RefCell::new(Wheel::new()),
            alarms: RefCell::new(Alarms::new()),
            is_punctual: Cell::new(false),
            is_coarse: Cell::new(false),
            clock: Clock::new(),
            current: Cell::new(Key::NONE),
            cloned: RefCell::new(None),
            hooks: RefCell::new(Vec::new()),
            panic_hook: RefCell::new(None),
            ending: Cell::new(false),
        }
    }

    /// Makes this thread a worker.
    pub(crate) fn begin(&self, epoll: OwnedFd, mailbox: Arc<Mailbox>) -> io::Result<()> {
        if self.epoll.borrow().is_some() {
            return Err(io::Error::other("this thread already is a worker"));
        }
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, mailbox.bell(), epoll::EventData::new_u64(BELL), flags)?;
        self.epoll.replace(Some(Rc::new(epoll)));
        self.mailbox.replace(Some(mailbox));
        self.ending.set(false);
        self.clock.tick();
        Ok(())
    }

    /// Turns until the mailbox says stop or `done` does.
    pub(crate) fn run(&self, done: impl Fn() -> bool) -> io::Result<()> {
        let epoll = self.epoll.borrow().clone();
        let mailbox = self.mailbox.borrow().clone();
        let (Some(epoll), Some(mailbox)) = (epoll, mailbox) else {
            return Err(not_a_worker());
        };
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            self.poll_queued(&mailbox);
            if let Some(mail) = mailbox.fetch() {
                self.deliver(mail);
            }
            self.fire_timers();
            self.run_hooks();
            if mailbox.is_stopped() || done() {
                return Ok(());
            }
            self.wait(&epoll, &mut events)?;
        }
    }

    /// Drops every task, then everything else; the thread is no worker any more.
    pub(crate) fn end(&self) {
        self.ending.set(true);
        loop {
            let Some(task) = self.tasks.borrow_mut().pop() else {
                break;
            };
            self.guarded(|| drop(task));
        }
        let mailbox = self.mailbox.borrow().clone();
        if let Some(mailbox) = mailbox {
            let mail = mailbox.close();
            self.guarded(|| drop(mail));
        }
        self.run_hooks();
        let hooks = self.hooks.take();
        self.guarded(|| drop(hooks));
        self.queue.take();
        self.answered.take();
        self.panic_hook.take();
        self.mailbox.take();
        self.epoll.take();
        self.clock.stop();
        self.cloned.take();
        self.tasks.take();
        self.sockets.take();
        self.wheel.replace(Wheel::new());
    }

    // Tasks.

    pub(crate) fn spawn(&self, future: BoxFuture) {
        if self.ending.get() || self.epoll.borrow().is_none() {
            return;
        }
        let key = self.tasks.borrow_mut().insert(Task { future: Some(future), waker: None, queued: true });
        self.queue.borrow_mut().push_back(key.index);
    }

    pub(crate) fn live_tasks(&self) -> usize {
        self.tasks.borrow().len()
    }

    pub(crate) fn live_sockets(&self) -> usize {
        self.sockets.borrow().len()
    }

    #[inline]
    pub(crate) fn current(&self) -> Key {
        self.current.get()
    }

    /// Puts a task on the run queue, once. A key to a task that ended does nothing.
    #[inline]
    pub(crate) fn wake(&self, task: Key) {
        self.wake_in(&self.queue, task);
    }

    #[inline]
    fn wake_in(&self, queue: &RefCell<VecDeque<u32>>, task: Key) {
        if let Some(task_slot) = self.tasks.borrow_mut().get_mut(task)
            && !task_slot.queued
        {
            task_slot.queued = true;
            queue.borrow_mut().push_back(task.index);
        }
    }

    /// Polls each task whose answer came and the first of the others; what they queue waits for the next turn.
    fn poll_queued(&self, mailbox: &Arc<Mailbox>) {
        self.poll_first(&self.answered, usize::MAX, mailbox);
        self.poll_first(&self.queue, BEGUN_MAX, mailbox);
    }

    fn poll_first(&self, queue: &RefCell<VecDeque<u32>>, max: usize, mailbox: &Arc<Mailbox>) {
        let batch = queue.borrow().len().min(max);
        for _ in 0..batch {
            let Some(index) = queue.borrow_mut().pop_front() else {
                return;
            };
            self.poll_one(index, mailbox);
        }
    }

    fn poll_one(&self, index: u32, mailbox: &Arc<Mailbox>) {
        let (key, mut future, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let Some((key, task)) = tasks.at_mut(index) else {
                return;
            };
            task.queued = false;
            let Some(future) = task.future.take() else {
                return;
            };
            (key, future, task.waker.take())
        };
        count(Kind::Poll);
        self.current.set(key);
        let outcome = catch_unwind(AssertUnwindSafe(|| match &waker {
            Some(waker) => future.as_mut().poll(&mut std::task::Context::from_waker(waker)),
            None => {
                let wake = LocalWake { mailbox, task: key };
                sys::with_waker(&wake, |context| future.as_mut().poll(context))
            }
        }));
        let cloned = self.cloned.take();
        if let Ok(Poll::Pending) = outcome {
            if let Some(task) = self.tasks.borrow_mut().get_mut(key) {
                task.future = Some(future);
                task.waker = waker.or(cloned);
            }
        } else {
            let task = self.tasks.borrow_mut().remove(key);
            self.guarded(|| drop((future, waker, cloned, task)));
            if let Err(panic) = outcome {
                self.report_panic(panic);
            }
        }
        self.current.set(Key::NONE);
    }

    /// Runs foreign code; a panic in it is counted, reported and goes no further.
    pub(crate) fn guarded(&self, f: impl FnOnce()) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(f)) {
            self.report_panic(panic);
        }
    }

    fn report_panic(&self, panic: Box<dyn Any + Send>) {
        count(Kind::Panic);
        let hook = self.panic_hook.borrow().clone();
        let what = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown");
        if let Some(hook) = hook {
            // A hook that panics itself must not recurse.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(what)));
        }
        // The payload is foreign too, and its drop may panic.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    }

    pub(crate) fn on_panic(&self, hook: PanicHook) {
        self.panic_hook.replace(Some(hook));
    }

    // The parts of a turn.

    fn deliver(&self, mail: Mail) {
        for wake in mail.wakes {
            self.wake(wake.receive());
        }
        for errand in mail.errands {
            self.guarded(errand);
        }
    }

    fn fire_timers(&self) {
        let now = self.clock.now_ms();
        self.wheel.borrow_mut().advance(now, |task| self.wake(task));
    }

    /// Wakes the current task at that moment; the number is what takes the alarm away again.
    pub(crate) fn add_alarm(&self, at: Instant) -> u64 {
        if !self.is_punctual.replace(true) {
            // A kernel that refuses is late by its default, and nothing else is wrong.
            let _ = rustix::thread::set_current_timer_slack(Some(SLACK));
        }
        self.alarms.borrow_mut().add(at.ns(), self.current.get())
    }

    /// Those on time go before all that became ready.
    fn ring_alarms(&self) {
        let Some(now) = self.clock.now() else { return };
        loop {
            let Some(task) = self.alarms.borrow_mut().ring(now.ns()) else { return };
            self.wake_in(&self.answered, task);
        }
    }

    pub(crate) fn add_hook(&self, hook: Rc<dyn Fn()>) -> bool {
        let mut hooks = self.hooks.borrow_mut();
        let fits = hooks.len() < HOOKS_MAX;
        if fits {
            hooks.push(hook);
        }
        fits
    }

    fn run_hooks(&self) {
        for index in 0..HOOKS_MAX {
            let Some(hook) = self.hooks.borrow().get(index).cloned() else {
                return;
            };
            self.guarded(|| hook());
        }
    }

    fn wait(&self, epoll: &OwnedFd, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let is_idle = self.queue.borrow().is_empty() && self.answered.borrow().is_empty();
        let timeout = if is_idle {
            let now = self.clock.now_ms();
            let next = self.wheel.borrow().next();
            next.map(|at| milliseconds(at.saturating_sub(now)))
        } else {
            Some(milliseconds(0))
        };
        events.clear();
        count(Kind::EpollWait);
        let alarm = if is_idle { self.alarms.borrow().next() } else { None };
        let waited = match alarm.zip(self.clock.now()) {
            Some((at_ns, now)) if at_ns.saturating_sub(now.ns()) <= NEAR_NS => {
                self.wait_exactly(epoll, events, timeout, at_ns)
            }
            // Far away: a wait in milliseconds that ends well before it.
            Some((at_ns, now)) => {
                let ms = at_ns.saturating_sub(now.ns()).saturating_sub(NEAR_NS) / NS_PER_MS;
                let timeout = timeout.map_or(milliseconds(ms), |other| shorter(other, milliseconds(ms)));
                epoll::wait(epoll, spare_capacity(events), Some(&timeout)).map(drop)
            }
            None => epoll::wait(epoll, spare_capacity(events), timeout.as_ref()).map(drop),
        };
        match waited {
            Ok(()) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.clock.tick();
        self.ring_alarms();
        for event in events.iter() {
            let (word, flags) = (event.data.u64(), event.flags);
            if word != BELL {
                self.note(Key::unpack(word), flags);
            }
        }
        Ok(())
    }

    /// Waits no longer than `timeout`, and not beyond an alarm.
    ///
    /// The turn took its time, so the clock is read again: an alarm may be nearer than the turn was long.
    fn wait_exactly(
        &self,
        epoll: &OwnedFd,
        events: &mut Vec<epoll::Event>,
        timeout: Option<Timespec>,
        at_ns: u64,
    ) -> rustix::io::Result<()> {
        let alarm = nanoseconds(at_ns.saturating_sub(sys::monotonic_ns()));
        let timeout = timeout.map_or(alarm, |other| shorter(other, alarm));
        if !self.is_coarse.get() {
            match sys::epoll_wait_exactly(epoll.as_fd(), events, &timeout) {
                // What a filter that does not know the call says instead of NOSYS.
                Err(Errno::NOSYS | Errno::PERM) => self.is_coarse.set(true),
                waited => return waited,
            }
        }
        // Rounded up to milliseconds there, so never early.
        epoll::wait(epoll, spare_capacity(events), Some(&timeout)).map(drop)
    }

    // Sockets.

    /// Registers a descriptor, edge-triggered, once for its life.
    pub(crate) fn register(
        &self,
        fd: BorrowedFd<'_>,
        side: Side,
        ready: u8,
        flags: epoll::EventFlags,
    ) -> io::Result<Key> {
        let epoll = self.epoll.borrow().clone().ok_or_else(not_a_worker)?;
        let key = self.sockets.borrow_mut().insert(Registration { ready, side, reader: Key::NONE, writer: Key::NONE });
        count(Kind::EpollCtl);
        let data = epoll::EventData::new_u64(key.pack());
        if let Err(error) = epoll::add(&epoll, fd, data, flags | epoll::EventFlags::ET) {
            self.sockets.borrow_mut().remove(key);
            return Err(error.into());
        }
        Ok(key)
    }

    /// Forgets a descriptor that is about to be closed: closing the last copy of a
    /// descriptor takes it out of the epoll set without a syscall of ours.
    pub(crate) fn forget(&self, key: Key) {
        self.sockets.borrow_mut().remove(key);
    }

    /// Forgets a descriptor that lives on elsewhere, so epoll must be told.
    pub(crate) fn unregister(&self, key: Key, fd: BorrowedFd<'_>) {
        self.forget(key);
        if let Some(epoll) = self.epoll.borrow().as_ref() {
            count(Kind::EpollCtl);
            let _ = epoll::delete(epoll.as_fd(), fd);
        }
    }

    fn note(&self, key: Key, flags: epoll::EventFlags) {
        use epoll::EventFlags as E;
        let mut bits = 0;
        if flags.intersects(E::IN | E::RDHUP | E::HUP | E::ERR) {
            bits |= READ;
        }
        if flags.intersects(E::OUT | E::HUP | E::ERR) {
            bits |= WRITE;
        }
        if flags.contains(E::RDHUP) {
            bits |= PEER_CLOSED;
        }
        if flags.contains(E::HUP) {
            bits |= HUNG_UP;
        }
        if flags.contains(E::ERR) {
            bits |= FAILED;
        }
        // An event for a socket closed since finds nobody here.
        let (mut reader, mut writer) = (Key::NONE, Key::NONE);
        let mut queue = &self.queue;
        if let Some(socket) = self.sockets.borrow_mut().get_mut(key) {
            socket.ready |= bits;
            if socket.side == Side::Ours {
                queue = &self.answered;
            }
            if bits & READ != 0 {
                reader = std::mem::replace(&mut socket.reader, Key::NONE);
            }
            if bits & WRITE != 0 {
                writer = std::mem::replace(&mut socket.writer, Key::NONE);
            }
        }
        self.wake_in(queue, reader);
        self.wake_in(queue, writer);
    }

    /// What is known to be ready; nothing for an unknown key.
    #[inline]
    pub(crate) fn ready(&self, key: Key) -> u8 {
        self.sockets.borrow().get(key).map_or(0, |socket| socket.ready)
    }

    #[inline]
    pub(crate) fn clear_ready(&self, key: Key, bits: u8) {
        if let Some(socket) = self.sockets.borrow_mut().get_mut(key) {
            socket.ready &= !bits;
        }
    }

    /// Notes that a socket was read empty. See `Stream::after_read`.
    #[inline]
    pub(crate) fn clear_read_unless_ending(&self, key: Key) {
        if let Some(socket) = self.sockets.borrow_mut().get_mut(key)
            && socket.ready & ENDING == 0
        {
            socket.ready &= !READ;
        }
    }

    /// Ready if any of `bits` is; otherwise the current task is woken when it is.
    #[inline]
    pub(crate) fn poll_ready(&self, key: Key, bits: u8) -> Poll<()> {
        let mut sockets = self.sockets.borrow_mut();
        let Some(socket) = sockets.get_mut(key) else {
            return Poll::Pending;
        };
        if socket.ready & bits != 0 {
            return Poll::Ready(());
        }
        if bits & (READ | ENDING) != 0 {
            socket.reader = self.current.get();
        }
        if bits & WRITE != 0 {
            socket.writer = self.current.get();
        }
        Poll::Pending
    }
}

/// Wakes a task if the caller is on the worker the mailbox belongs to.
pub(crate) fn wake_if_home(mailbox: &Arc<Mailbox>, task: Key) -> bool {
    with(|core| {
        let home = is_home(core, mailbox);
        if home {
            core.wake(task);
        }
        home
    })
    .unwrap_or(false)
}

/// Keeps a waker the current task just cloned, to be offered at its next poll.
pub(crate) fn keep_waker(mailbox: &Arc<Mailbox>, task: Key, waker: &Waker) {
    with(|core| {
        if is_home(core, mailbox) && core.current.get() == task {
            core.cloned.replace(Some(waker.clone()));
        }
    });
}

fn is_home(core: &Core, mailbox: &Arc<Mailbox>) -> bool {
    core.mailbox.borrow().as_ref().is_some_and(|own| Arc::ptr_eq(own, mailbox))
}

fn milliseconds(ms: u64) -> Timespec {
    // epoll_wait takes an int of milliseconds; a day is as good as longer.
    let ms = ms.min(DAY_MS);
    Timespec { tv_sec: (ms / 1000) as i64, tv_nsec: ((ms % 1000) * 1_000_000) as i64 }
}

fn nanoseconds(ns: u64) -> Timespec {
    if ns >= DAY_MS * NS_PER_MS {
        return milliseconds(DAY_MS);
    }
    Timespec { tv_sec: (ns / NS_PER_SECOND) as i64, tv_nsec: (ns % NS_PER_SECOND) as i64 }
}

fn shorter(a: Timespec, b: Timespec) -> Timespec {
    if (a.tv_sec, a.tv_nsec) <= (b.tv_sec, b.tv_nsec) { a } else { b }
}

pub(crate) fn not_a_worker() -> io::Error {
    io::Error::other("not on a worker thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A registration without a descriptor.
    fn register(core: &Core) -> Key {
        register_by(core, Side::Theirs)
    }

    fn register_by(core: &Core, side: Side) -> Key {
        core.sockets.borrow_mut().insert(Registration { ready: 0, side, reader: Key::NONE, writer: Key::NONE })
    }

    /// A task that says its number each time it is polled, and the connection it waits for.
    fn waiter(core: &Core, side: Side, number: usize, said: &Rc<RefCell<Vec<usize>>>) -> Key {
        let said = said.clone();
        let future: BoxFuture = Box::pin(std::future::poll_fn(move |_| {
            said.borrow_mut().push(number);
            Poll::Pending
        }));
        let task = core.tasks.borrow_mut().insert(Task { future: Some(future), waker: None, queued: false });
        let socket = register_by(core, side);
        core.current.set(task);
        assert!(core.poll_ready(socket, READ).is_pending());
        socket
    }

    #[test]
    fn answers_go_first_and_a_turn_begins_only_so_much() -> io::Result<()> {
        let core = Core::new();
        let mailbox = Arc::new(Mailbox::new()?);
        let said = Rc::default();
        let requests: Vec<Key> = (0..=BEGUN_MAX).map(|n| waiter(&core, Side::Theirs, n, &said)).collect();
        let answer = waiter(&core, Side::Ours, 1000, &said);
        for socket in requests.into_iter().chain([answer]) {
            core.note(socket, epoll::EventFlags::IN);
        }
        core.poll_queued(&mailbox);
        assert_eq!(said.take(), [1000].into_iter().chain(0..BEGUN_MAX).collect::<Vec<_>>());
        core.poll_queued(&mailbox);
        assert_eq!(said.take(), [BEGUN_MAX]);
        Ok(())
    }

    #[test]
    fn an_event_for_a_closed_socket_does_not_reach_its_successor() {
        let core = Core::new();
        let old = register(&core);
        core.note(old, epoll::EventFlags::IN);
        assert_eq!(core.ready(old), READ);
        core.forget(old);
        let new = register(&core);
        assert_eq!(new.index, old.index, "the slot is reused");
        core.note(old, epoll::EventFlags::IN | epoll::EventFlags::HUP);
        assert_eq!(core.ready(new), 0);
        assert_eq!(core.ready(old), 0);
        assert!(core.poll_ready(old, READ).is_pending());
    }

    #[test]
    fn events_become_bits() {
        use epoll::EventFlags as E;
        let check = |flags: E, expect: u8| {
            let core = Core::new();
            let key = register(&core);
            core.note(key, flags);
            assert_eq!(core.ready(key), expect, "{flags:?}");
        };
        check(E::IN, READ);
        check(E::OUT, WRITE);
        check(E::IN | E::RDHUP, READ | PEER_CLOSED);
        check(E::HUP, READ | WRITE | HUNG_UP);
        check(E::ERR, READ | WRITE | FAILED);
    }

    #[test]
    fn after_an_announced_end_a_short_read_keeps_readiness() {
        let core = Core::new();
        let key = register(&core);
        core.note(key, epoll::EventFlags::IN);
        core.clear_read_unless_ending(key);
        assert_eq!(core.ready(key), 0);
        core.note(key, epoll::EventFlags::IN | epoll::EventFlags::RDHUP);
        core.clear_read_unless_ending(key);
        assert_eq!(core.ready(key), READ | PEER_CLOSED);
    }

    /// As on a kernel with the exact call, and on one without.
    #[test]
    fn a_wait_ends_at_the_alarm_or_sooner_and_never_early() -> io::Result<()> {
        for (is_coarse, after_ns) in [(false, 300_000), (true, 300_000), (false, NEAR_NS + 2_300_000)] {
            let core = Core::new();
            core.is_coarse.set(is_coarse);
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            core.clock.tick();
            let task = Task { future: None, waker: None, queued: false };
            core.current.set(core.tasks.borrow_mut().insert(task));
            let at = crate::clock::precise() + std::time::Duration::from_nanos(after_ns);
            core.add_alarm(at);
            while core.answered.borrow().is_empty() {
                core.wait(&epoll, &mut Vec::with_capacity(EVENTS_MAX))?;
            }
            assert!(core.clock.now() >= Some(at), "coarse: {is_coarse}");
            assert_eq!(core.is_coarse.get(), is_coarse, "this kernel has the call");
            assert_eq!(core.alarms.borrow().next(), None);
        }
        Ok(())
    }

    #[test]
    fn the_nearer_of_two_waits() {
        let check = |a: u64, b: u64, ns: i64| {
            let wait = shorter(milliseconds(a), nanoseconds(b));
            assert_eq!(wait.tv_sec * 1_000_000_000 + wait.tv_nsec, ns, "{a} ms, {b} ns");
        };
        check(1, 999_999, 999_999);
        check(1, 1_000_001, 1_000_000);
        check(2_000, 1_999_999_999, 1_999_999_999);
        check(0, 1, 0);
        check(u64::MAX, u64::MAX, 86_400_000_000_000);
    }

    #[test]
    fn an_idle_connection_is_cheap() {
        let task = Slots::<Task>::slot_bytes();
        let socket = Slots::<Registration>::slot_bytes();
        let timer = Wheel::entry_bytes();
        let handles = size_of::<crate::Stream>() + size_of::<crate::Deadline>();
        assert!(task <= 48, "task {task}");
        assert!(socket <= 28, "socket {socket}");
        assert!(timer <= 56, "timer {timer}");
        assert!(task + socket + timer + handles <= 160, "handles {handles}");
    }
}
