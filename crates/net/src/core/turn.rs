//! The loop of a worker, and its turns.
//!
//! A turn of the loop polls the queued tasks, runs the mailed closures, fires timers, runs the turn-end hooks, waits in
//! `epoll_wait`, reads the clock, rings alarms, and notes which sockets became ready.
//!
//! Started work goes before new work. A task that waits for a connection that we opened (an upstream's answer) is
//! polled before a task that waits for one that we accepted (a client's request); of the latter, only [`BEGUN_MAX`]
//! per turn. Otherwise, if a thousand clients send requests at once, an answer waits behind hundreds of new requests.
//! Measured in that case: 0.6 of the CPU per request (bench row `1k-1000`, tuned).

use super::wake::LocalWake;
use super::{Core, not_a_worker};
use crate::counts::{Kind, count};
use crate::mailbox::{Mail, Mailbox};
use crate::slots::SlotKey;
use crate::sys;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

/// Events fetched by one `epoll_wait`; nginx's epoll_events is 512.
pub(super) const EVENTS_MAX: usize = 256;
/// Tasks polled per turn besides those that wait for an answer: for this many, the cost of one `epoll_wait` is small.
const BEGUN_MAX: usize = 32;

impl Core {
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
        self.current.set(SlotKey::NONE);
    }

    fn deliver(&self, mail: Mail) {
        for wake in mail.wakes {
            self.wake(wake.receive());
        }
        for closure in mail.closures {
            self.guarded(closure);
        }
    }

    fn fire_timers(&self) {
        let now = self.clock.now_ms();
        self.wheel.borrow_mut().advance(now, |task| self.wake(task));
    }
}

#[cfg(test)]
mod tests {
    use super::super::registration::{OpenedBy, READ, Registration};
    use super::super::{BoxFuture, Task};
    use super::*;
    use rustix::event::epoll;
    use std::rc::Rc;

    /// A task that reports its number each time it is polled, and the connection it waits for.
    fn waiter(core: &Core, side: OpenedBy, number: usize, said: &Rc<RefCell<Vec<usize>>>) -> SlotKey {
        let said = said.clone();
        let future: BoxFuture = Box::pin(std::future::poll_fn(move |_| {
            said.borrow_mut().push(number);
            Poll::Pending
        }));
        let task = core.tasks.borrow_mut().insert(Task { future: Some(future), waker: None, queued: false });
        let socket = Registration { ready: 0, side, reader: SlotKey::NONE, writer: SlotKey::NONE };
        let socket = core.sockets.borrow_mut().insert(socket);
        core.current.set(task);
        assert!(core.poll_ready(socket, READ).is_pending());
        socket
    }

    #[test]
    fn answers_go_first_and_a_turn_begins_only_so_much() -> io::Result<()> {
        let core = Core::new();
        let mailbox = Arc::new(Mailbox::new()?);
        let said = Rc::default();
        let requests: Vec<SlotKey> = (0..=BEGUN_MAX).map(|n| waiter(&core, OpenedBy::Theirs, n, &said)).collect();
        let answer = waiter(&core, OpenedBy::Ours, 1000, &said);
        for socket in requests.into_iter().chain([answer]) {
            core.note(socket, epoll::EventFlags::IN);
        }
        core.poll_queued(&mailbox);
        assert_eq!(said.take(), [1000].into_iter().chain(0..BEGUN_MAX).collect::<Vec<_>>());
        core.poll_queued(&mailbox);
        assert_eq!(said.take(), [BEGUN_MAX]);
        Ok(())
    }
}
