//! The heart of a worker: tasks, sockets, timers, one loop.
//!
//! Everything lives in one thread-local [`Core`]. A turn of the loop polls the queued tasks, runs the mailed errands,
//! fires timers, runs the turn-end hooks, waits in `epoll_wait`, reads the clock, rings alarms, and notes which
//! sockets became ready.
//!
//! Started work goes before new work. A task that waits for a connection that we opened (an upstream's answer) is
//! polled before a task that waits for one that we accepted (a client's request); of the latter, only [`BEGUN_MAX`]
//! per turn. Otherwise, if a thousand clients send requests at once, an answer waits behind hundreds of new requests.
//! Measured in that case: 0.6 of the CPU per request (bench row `1k-1000`, tuned).
//!
//! Our own primitives (readiness, deadlines) remember the *task* that polls them and wake it by pushing its number on
//! the run queue: no `Waker`, no atomics, no allocation. Invariant: no `RefCell` is borrowed while foreign code (a
//! future's poll or drop, a hook, an errand) runs.

mod sockets;
mod waiting;

use crate::alarm::Alarms;
use crate::clock::Clock;
use crate::counts::{Kind, count};
use crate::mailbox::{LocalWake, Mail, Mailbox};
use crate::slots::{Key, Slots};
use crate::sys;
use crate::wheel::Wheel;
use rustix::event::epoll;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

pub(crate) use sockets::{ENDING, FAILED, HUNG_UP, PEER_CLOSED, READ, Registration, Side, WRITE};

/// Events fetched by one `epoll_wait`; nginx's epoll_events is 512.
const EVENTS_MAX: usize = 256;
/// Tasks polled per turn besides those that wait for an answer: for this many, the cost of one `epoll_wait` is small.
const BEGUN_MAX: usize = 32;
/// Turn-end hooks per worker.
pub(crate) const HOOKS_MAX: usize = 64;
/// Marks the bell of the mailbox, in place of a registration's key.
const BELL: u64 = u64::MAX;

thread_local! {
    // Without a destructor, an access need not check whether the destructor ran; an exchange makes some twenty
    // accesses. `Core::end` frees it.
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
    /// Made the first time a future clones its waker, and kept for later polls.
    waker: Option<Waker>,
    queued: bool,
}

/// One worker's state.
pub(crate) struct Core {
    epoll: RefCell<Option<Rc<OwnedFd>>>,
    mailbox: RefCell<Option<Arc<Mailbox>>>,
    tasks: RefCell<Slots<Task>>,
    queue: RefCell<VecDeque<u32>>,
    /// The part of the queue that goes first: tasks whose answers arrived.
    answered: RefCell<VecDeque<u32>>,
    sockets: RefCell<Slots<Registration>>,
    pub(crate) wheel: RefCell<Wheel>,
    pub(crate) alarms: RefCell<Alarms>,
    /// Whether weir asked the kernel for exact wake-ups; only a worker with alarms does.
    is_punctual: Cell<bool>,
    /// The kernel has no `epoll_pwait2`.
    is_coarse: Cell<bool>,
    pub(crate) clock: Clock,
    /// The task being polled.
    current: Cell<Key>,
    /// A waker the current task cloned, on its way to the task's slot.
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

    /// Runs turns until the mailbox is stopped or `done` returns true.
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

    /// Drops every task, then everything else; the thread is not a worker any more.
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

    /// Puts a task on the run queue, once. The key of an ended task does nothing.
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

    /// Polls each task whose answer arrived, and the first of the others; tasks that they queue wait for the next turn.
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
            // If the hook itself panics, it must not be called again for that.
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

/// Keeps a waker that the current task has just cloned, for its next poll.
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

    /// A task that reports its number each time it is polled, and the connection it waits for.
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

    /// Runs as on a kernel with the exact call, and as on one without it.
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
