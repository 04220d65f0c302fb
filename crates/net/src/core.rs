//! The runtime of a worker: its tasks, sockets, timers, and its loop.
//!
//! Everything lives in one thread-local [`Core`]. `turn` is the loop, `wake` makes the wakers of tasks, `sockets` keeps
//! the readiness of sockets, and `waiting` waits in the kernel.
//!
//! Our own primitives (readiness, deadlines) remember the *task* that polls them and wake it by pushing its number on
//! the run queue: no `Waker`, no atomics, no allocation. Invariant: no `RefCell` is borrowed while foreign code (a
//! future's poll or drop, a hook, a closure) runs.

mod clock;
mod coalesce;
mod registration;
mod sockets;
mod turn;
mod waiting;
mod wake;

use crate::alarm::Alarms;
use crate::counts::{Kind, count};
use crate::mailbox::Mailbox;
use crate::slots::{SlotKey, Slots};
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
use std::task::Waker;

use clock::Clock;
pub use coalesce::Coalesce;
use coalesce::Coalescing;
use registration::Registration;
pub(crate) use registration::{ENDING, FAILED, HUNG_UP, OPENING, OpenedBy, PEER_CLOSED, READ, WRITE};

/// Turn-end hooks per worker.
pub(crate) const HOOKS_MAX: usize = 64;
/// Marks the mailbox's eventfd, in place of a registration's key.
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
    /// Whether weir asked the kernel for exact wake-ups; only a worker with alarms, or that coalesces, does.
    is_punctual: Cell<bool>,
    /// The kernel has no `epoll_pwait2`.
    is_coarse: Cell<bool>,
    pub(crate) clock: Clock,
    pub(crate) coalescing: Coalescing,
    /// The task being polled.
    current: Cell<SlotKey>,
    /// A waker that the current task cloned; after the poll it moves to the task's slot.
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
            coalescing: Coalescing::new(),
            current: Cell::new(SlotKey::NONE),
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
    pub(crate) fn current(&self) -> SlotKey {
        self.current.get()
    }

    /// Puts a task on the run queue, once. The key of an ended task does nothing.
    #[inline]
    pub(crate) fn wake(&self, task: SlotKey) {
        self.wake_in(&self.queue, task);
    }

    #[inline]
    fn wake_in(&self, queue: &RefCell<VecDeque<u32>>, task: SlotKey) {
        if let Some(task_slot) = self.tasks.borrow_mut().get_mut(task)
            && !task_slot.queued
        {
            task_slot.queued = true;
            queue.borrow_mut().push_back(task.index);
        }
    }

    /// Runs foreign code; a panic in it is counted, reported and goes no further.
    #[inline]
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
            // If the hook itself panics, weir does not call the hook for that panic.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(what)));
        }
        // Foreign code made the payload too, so dropping it may panic.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(panic)));
    }

    pub(crate) fn on_panic(&self, hook: PanicHook) {
        self.panic_hook.replace(Some(hook));
    }

    pub(crate) fn add_hook(&self, hook: Rc<dyn Fn()>) -> bool {
        let mut hooks = self.hooks.borrow_mut();
        let fits = hooks.len() < HOOKS_MAX;
        if fits {
            hooks.push(hook);
        }
        fits
    }

    #[inline]
    fn run_hooks(&self) {
        for index in 0..HOOKS_MAX {
            let Some(hook) = self.hooks.borrow().get(index).cloned() else {
                return;
            };
            self.guarded(|| hook());
        }
    }
}

pub(crate) fn not_a_worker() -> io::Error {
    io::Error::other("not on a worker thread")
}

#[cfg(test)]
mod tests {
    use super::*;

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
