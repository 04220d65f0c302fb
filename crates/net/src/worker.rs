//! Worker threads: how to start them, spawn tasks, reach them from outside, and stop them.
//!
//! A worker is one OS thread with one single-threaded executor; workers neither share tasks nor take tasks from each
//! other. Other threads reach it through its [`Remote`]. A panic in a task ends that task only; it is counted and
//! handed to [`on_panic`]'s hook.
//!
//! Our own primitives wake the *task* that polled them last, not the `Waker` they were polled with: inside one task
//! poll them directly (`poll_fn`, a hand-written join), not through combinators that make their own wakers, such as
//! `FuturesUnordered`; spawn tasks instead.

use crate::core::{self, not_a_worker};
use crate::mailbox::Mailbox;
use crate::slots::SlotKey;
use rustix::event::epoll;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::thread::JoinHandle;

pub use crate::core::Coalesce;
pub use crate::mailbox::MAIL_MAX;

/// Starts a worker thread; `init` runs on it first and spawns its tasks.
///
/// `cpu` pins it. Fails if the thread or its epoll cannot be made, or if this
/// process may not run on `cpu`.
pub fn start(name: &str, cpu: Option<usize>, init: impl FnOnce() + Send + 'static) -> io::Result<Remote> {
    let mailbox = Arc::new(Mailbox::new()?);
    let inside = mailbox.clone();
    let (tell, told) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        let begun = pin(cpu).and_then(|()| begin(inside));
        let failed = begun.is_err();
        let _ = tell.send(begun);
        if !failed {
            core::with(|core| {
                core.guarded(init);
                if core.run(|| false).is_err() {
                    // epoll_wait fails only because of a bug in weir; end cleanly.
                    debug_assert!(false, "epoll_wait failed");
                }
                core.end();
            });
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("worker did not start")))?;
    Ok(Remote { mailbox, thread: Arc::new(Mutex::new(Some(thread))) })
}

/// Starts a plain thread for blocking work: a wait for a signal, a call of a library. It ends with the process at the
/// latest; nobody waits for it.
pub fn block_aside(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(what).map(drop)
}

/// Runs `future` on this thread, as a worker, until it is done.
///
/// For tools and tests: tasks it spawned are dropped at its end. Fails if this
/// thread already is a worker, or if the future panicked.
pub fn block_on<T: 'static>(future: impl Future<Output = T> + 'static) -> io::Result<T> {
    begin(Arc::new(Mailbox::new()?))?;
    let result = Rc::new(Cell::new(None));
    let ended = Rc::new(Cell::new(false));
    let (give, tell) = (result.clone(), SetOnDrop(ended.clone()));
    spawn(async move {
        let _tell = tell;
        give.set(Some(future.await));
    });
    let run = core::with(|core| {
        let run = core.run(|| ended.get());
        core.end();
        run
    });
    run.unwrap_or_else(|| Err(not_a_worker()))?;
    result.take().ok_or_else(|| io::Error::other("the task ended without a result"))
}

struct SetOnDrop(Rc<Cell<bool>>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn begin(mailbox: Arc<Mailbox>) -> io::Result<()> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    core::with(|core| core.begin(epoll, mailbox)).unwrap_or_else(|| Err(not_a_worker()))
}

fn pin(cpu: Option<usize>) -> io::Result<()> {
    let Some(cpu) = cpu else {
        return Ok(());
    };
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// A handle to a worker, for other threads.
#[derive(Clone)]
pub struct Remote {
    mailbox: Arc<Mailbox>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Remote {
    /// Runs `f` on the worker, after closures sent before it.
    ///
    /// False, and `f` is dropped, if the worker has ended or [`MAIL_MAX`] closures wait.
    pub fn run(&self, f: impl FnOnce() + Send + 'static) -> bool {
        self.mailbox.send(Box::new(f))
    }

    /// Ends the loop after the current turn; its tasks are dropped.
    pub fn stop(&self) {
        self.mailbox.stop();
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the thread has ended. Must not be called on that thread.
    pub fn join(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // Panics of foreign code are caught earlier; a panic that gets here was already reported.
            let _ = thread.join();
        }
    }
}

/// Starts a task on the current worker; it is polled in the next turn.
///
/// Outside a worker, or while the worker ends, the future is dropped at once.
pub fn spawn(future: impl Future<Output = ()> + 'static) {
    core::with(|core| core.spawn(Box::pin(future)));
}

/// Tasks of this worker that have not ended.
pub fn live_tasks() -> usize {
    core::with(core::Core::live_tasks).unwrap_or(0)
}

/// A task of this worker, for another of its tasks to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task(SlotKey);

impl Task {
    /// No task: waking it does nothing.
    pub const NONE: Task = Task(SlotKey::NONE);

    /// The task being polled.
    pub fn current() -> Task {
        Task(core::with(core::Core::current).unwrap_or(SlotKey::NONE))
    }

    /// Polls the task once more; nothing happens if it has ended.
    pub fn wake(self) {
        core::with(|core| core.wake(self.0));
    }
}

/// The kernel's number of this thread, as `top -H` and nginx's log lines show it.
pub fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Streams and listeners open on this worker.
pub fn live_sockets() -> usize {
    core::with(core::Core::live_sockets).unwrap_or(0)
}

/// Registers a hook run at the end of every loop turn, before the worker blocks, and once more when it ends.
///
/// For work that is better done once per turn than once per exchange, such as flushing a log. False if 64 are
/// registered already.
pub fn at_turn_end(hook: Rc<dyn Fn()>) -> bool {
    core::with(|core| core.add_hook(hook)).unwrap_or(false)
}

/// Sets the hook that gets the message when a task of this worker panics.
pub fn on_panic(hook: Rc<dyn Fn(&str)>) {
    core::with(|core| core.on_panic(hook));
}

/// Lets this worker sleep while it is busy, so that one wake-up serves several events; an event waits for that up to half
/// of the time, because a request and its answer are an event each.
pub fn coalesce(how: Coalesce) {
    core::with(|core| core.set_coalescing(how));
}

/// Tells how long a request took, in microseconds: `Coalesce::Auto` goes by that.
#[inline]
pub fn took(us: u64) {
    core::with(|core| core.coalescing.took(us.saturating_mul(1000)));
}

/// Lets every other ready task and new events go first.
pub fn yield_now() -> impl Future<Output = ()> {
    let mut yielded = false;
    poll_fn(move |_| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        core::with(|core| core.wake(core.current()));
        Poll::Pending
    })
}
