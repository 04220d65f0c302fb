//! Deadlines and sleep.
//!
//! Each connection or exchange has one [`Deadline`] for its whole life: a new phase stores a new moment, and the wheel
//! notices it when the old one fires. No timer syscall, no tree operation on the steady path. Resolution 1 ms; never
//! early by the worker's clock, which weir reads once per loop turn.
//!
//! [`until`] is for tasks that must be on time: it gives the kernel a time in nanoseconds, and wakes some microseconds
//! late.

use crate::core;
use crate::instant::Instant;
use crate::slots::SlotKey;
use crate::wheel::{NEVER, Wheel};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::marker::PhantomData;
use std::task::Poll;
use std::time::Duration;

/// A moment that can be moved and waited for. Belongs to one worker.
pub struct Deadline {
    /// The timer, made when first set or awaited.
    timer: Cell<SlotKey>,
    not_send: PhantomData<*const ()>,
}

impl Deadline {
    /// A deadline that never comes until it is set.
    pub const fn new() -> Deadline {
        Deadline { timer: Cell::new(SlotKey::NONE), not_send: PhantomData }
    }

    /// Moves it to `after` from now.
    #[inline]
    pub fn set(&self, after: Duration) {
        core::with(|core| self.want(core, core.clock.after_ms(after)));
    }

    /// Moves it to a moment.
    pub fn set_at(&self, at: Instant) {
        core::with(|core| self.want(core, core.clock.at_ms(at)));
    }

    /// Clears it: it never comes until it is set again.
    pub fn clear(&self) {
        if self.timer.get() != SlotKey::NONE {
            core::with(|core| self.want(core, NEVER));
        }
    }

    fn want(&self, core: &core::Core, at: u64) {
        let mut wheel = core.wheel.borrow_mut();
        let timer = self.timer_in(&mut wheel);
        wheel.want(timer, at);
    }

    #[inline]
    fn timer_in(&self, wheel: &mut Wheel) -> SlotKey {
        if self.timer.get() == SlotKey::NONE {
            self.timer.set(wheel.add());
        }
        self.timer.get()
    }

    /// True if it is set, also if it has passed.
    pub fn is_set(&self) -> bool {
        core::with(|core| core.wheel.borrow().wanted(self.timer.get()) != NEVER).unwrap_or(false)
    }

    /// Ready once the moment has passed, and until it is moved; otherwise the
    /// current task is woken when it does.
    pub fn poll_expired(&self) -> Poll<()> {
        let expired = core::with(|core| {
            let (now, task) = (core.clock.now_ms(), core.current());
            let mut wheel = core.wheel.borrow_mut();
            let timer = self.timer_in(&mut wheel);
            wheel.poll(timer, now, task)
        });
        match expired {
            Some(true) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Moves it to `after` from now and polls it: [`Deadline::set`] and [`Deadline::poll_expired`] in one.
    pub fn poll_after(&self, after: Duration) -> Poll<()> {
        let expired = core::with(|core| {
            let (at, now, task) = (core.clock.after_ms(after), core.clock.now_ms(), core.current());
            let mut wheel = core.wheel.borrow_mut();
            let timer = self.timer_in(&mut wheel);
            wheel.want_and_poll(timer, at, now, task)
        });
        if expired == Some(true) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits for the moment; forever if it is not set.
    pub async fn expired(&self) {
        poll_fn(|_| self.poll_expired()).await;
    }
}

impl Default for Deadline {
    fn default() -> Deadline {
        Deadline::new()
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        let key = self.timer.get();
        if key != SlotKey::NONE {
            core::with(|core| core.wheel.borrow_mut().remove(key));
        }
    }
}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").field("is_set", &self.is_set()).finish()
    }
}

/// Waits for `after` to pass.
pub async fn sleep(after: Duration) {
    let deadline = Deadline::new();
    deadline.set(after);
    deadline.expired().await;
}

/// Waits for a moment, as exactly as the machine can: never early, and late only by the time of a wake-up.
///
/// Without `epoll_pwait2` (before Linux 5.11, or with a seccomp filter of that time) it is up to 1 ms late. It costs
/// more than a [`Deadline`] that is moved again and again, so use it only where a task must be on time.
pub async fn until(at: Instant) {
    let alarm = Alarm { at, number: Cell::new(None), not_send: PhantomData };
    poll_fn(|_| alarm.poll()).await;
}

/// A moment that a task waits for; a drop removes it from the worker's alarms.
struct Alarm {
    at: Instant,
    /// Set at the first poll.
    number: Cell<Option<u64>>,
    not_send: PhantomData<*const ()>,
}

impl Alarm {
    fn poll(&self) -> Poll<()> {
        let polled = core::with(|core| {
            if core.clock.now().is_some_and(|now| now >= self.at) {
                return Poll::Ready(());
            }
            match self.number.get() {
                Some(number) => core.alarms.borrow_mut().pass_on(self.at.ns(), number, core.current()),
                None => self.number.set(Some(core.add_alarm(self.at))),
            }
            Poll::Pending
        });
        polled.unwrap_or(Poll::Pending)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(number) = self.number.get() {
            core::with(|core| core.alarms.borrow_mut().remove(self.at.ns(), number));
        }
    }
}

/// A deadline passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("timed out")
    }
}

impl std::error::Error for TimedOut {}

impl From<TimedOut> for io::Error {
    /// `ETIMEDOUT`, so that its text is the "(110: Connection timed out)" of nginx.
    fn from(_: TimedOut) -> io::Error {
        io::Error::from_raw_os_error(libc::ETIMEDOUT)
    }
}
