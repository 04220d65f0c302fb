//! Waits in the kernel until something is ready, a timer is due or an alarm rings.

use super::{BELL, Coalesce, Core};
use crate::counts::{Kind, count};
use crate::instant::{Instant, NS_PER_MS, NS_PER_SECOND, precise};
use crate::slots::SlotKey;
use crate::sys;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

/// weir waits exactly for an alarm nearer than this, which costs a look at the clock each turn.
const NEAR_NS: u64 = 50 * NS_PER_MS;
/// How much later than asked the kernel may wake a worker that has alarms or coalesces; its default is 50 µs.
const SLACK: NonZeroU64 = NonZeroU64::MIN;
/// The longest wait asked of the kernel.
const DAY_MS: u64 = 86_400_000;

impl Core {
    /// Wakes the current task at that moment; the returned number removes the alarm again.
    pub(crate) fn add_alarm(&self, at: Instant) -> u64 {
        self.be_punctual();
        self.alarms.borrow_mut().add(at.ns(), self.current.get())
    }

    /// Alarms that ring go before all that became ready.
    fn ring_alarms(&self) {
        let Some(now) = self.clock.now() else { return };
        loop {
            let Some(task) = self.alarms.borrow_mut().ring(now.ns()) else { return };
            self.wake_in(&self.answered, task);
        }
    }

    /// Lets requests be delayed, so that one wake-up of this worker serves several events.
    pub(crate) fn set_coalescing(&self, how: Coalesce) {
        if self.coalescing.set(how) {
            self.be_punctual();
        }
    }

    fn be_punctual(&self) {
        if !self.is_punctual.replace(true) {
            // If the kernel refuses, its default delay makes the worker late, and nothing else changes.
            let _ = rustix::thread::set_current_timer_slack(Some(SLACK));
        }
    }

    /// Sleeps if several events are expected meanwhile, but not beyond a timer or an alarm.
    fn coalesce(&self) {
        let Some(woken) = self.clock.now() else { return };
        let now = precise();
        let Some(sleep_ns) = self.coalescing.sleep(woken, now) else { return };
        let timer_ms = self.wheel.borrow().next().map(|at| at.saturating_sub(self.clock.now_ms()));
        let timer_ns = timer_ms.map_or(u64::MAX, |ms| ms.saturating_mul(NS_PER_MS));
        let alarm_ns = self.alarms.borrow().next().map_or(u64::MAX, |at| at.saturating_sub(now.ns()));
        if timer_ns.min(alarm_ns) > sleep_ns {
            count(Kind::Sleep);
            // A signal that ends the sleep early does no harm.
            let _ = rustix::thread::nanosleep(&nanoseconds(sleep_ns));
        }
    }

    pub(super) fn wait(&self, epoll: &OwnedFd, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let is_idle = self.queue.borrow().is_empty() && self.answered.borrow().is_empty();
        if is_idle && self.coalescing.is_on() {
            self.coalesce();
        }
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
            // The alarm is far away: weir waits in milliseconds and wakes well before it.
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
                self.note(SlotKey::unpack(word), flags);
            }
        }
        Ok(())
    }

    /// Waits no longer than `timeout`, and not beyond an alarm.
    ///
    /// Reads the clock again, because the turn itself took time: an alarm may be nearer than the length of the turn.
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
                // A seccomp filter that does not know the call returns PERM instead of NOSYS.
                Err(Errno::NOSYS | Errno::PERM) => self.is_coarse.set(true),
                waited => return waited,
            }
        }
        // `epoll::wait` rounds up to milliseconds, so it is never early.
        epoll::wait(epoll, spare_capacity(events), Some(&timeout)).map(drop)
    }
}

fn milliseconds(ms: u64) -> Timespec {
    // epoll_wait takes an int of milliseconds; a day is long enough.
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

#[cfg(test)]
mod tests {
    use super::super::Task;
    use super::super::turn::EVENTS_MAX;
    use super::*;

    #[test]
    fn a_wait_ends_at_the_alarm_or_sooner_and_never_early() -> io::Result<()> {
        for (is_coarse, after_ns) in [(false, 300_000), (true, 300_000), (false, NEAR_NS + 2_300_000)] {
            let core = Core::new();
            core.is_coarse.set(is_coarse);
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            core.clock.tick();
            let task = Task { future: None, waker: None, queued: false };
            core.current.set(core.tasks.borrow_mut().insert(task));
            let at = crate::instant::precise() + std::time::Duration::from_nanos(after_ns);
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
}
