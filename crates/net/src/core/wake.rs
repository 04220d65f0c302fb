//! Wakers of tasks: on the task's own worker they push its number on the run queue, elsewhere they send it by mail.

use super::{Core, with};
use crate::mailbox::{Mailbox, TaskWake};
use crate::slots::SlotKey;
use crate::sys::Borrowed;
use std::sync::Arc;
use std::task::{Wake, Waker};

/// The waker a task is polled with; lives on the worker's stack for one poll.
pub(super) struct LocalWake<'a> {
    pub(super) mailbox: &'a Arc<Mailbox>,
    pub(super) task: SlotKey,
}

impl Borrowed for LocalWake<'_> {
    fn owned(&self) -> Waker {
        let waker = Waker::from(Arc::new(TaskWake::new(self.mailbox.clone(), self.task)));
        keep_waker(self.mailbox, self.task, &waker);
        waker
    }

    fn wake(&self) {
        if !wake_if_home(self.mailbox, self.task) {
            // A borrowed waker on another thread: rare enough for an allocation.
            self.owned().wake();
        }
    }
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !wake_if_home(&self.mailbox, self.task) {
            self.mailbox.send_wake(self);
        }
    }
}

/// Wakes a task if the caller is on the worker the mailbox belongs to.
fn wake_if_home(mailbox: &Arc<Mailbox>, task: SlotKey) -> bool {
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
fn keep_waker(mailbox: &Arc<Mailbox>, task: SlotKey, waker: &Waker) {
    with(|core| {
        if is_home(core, mailbox) && core.current.get() == task {
            core.cloned.replace(Some(waker.clone()));
        }
    });
}

fn is_home(core: &Core, mailbox: &Arc<Mailbox>) -> bool {
    core.mailbox.borrow().as_ref().is_some_and(|own| Arc::ptr_eq(own, mailbox))
}
