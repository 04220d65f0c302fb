//! The mailbox through which other threads reach a worker: they send closures, wake-ups and a stop.
//!
//! Two parts: the [`Mailbox`] itself (a locked queue and a bell), and the [`TaskWake`] behind every cloned `Waker`.
//! Invariant: the lock is never held while foreign code runs, and a worker takes no lock if the mailbox was not rung.
//!
//! `tests/mailbox.rs` compiles this file once more, with the types of loom behind `crate::sync` and `crate::bell`, and tries
//! every order of the threads' steps.

use crate::bell::Bell;
use crate::counts::{Kind, count};
use crate::slots::SlotKey;
use crate::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering};
use std::collections::VecDeque;
use std::io;
use std::sync::PoisonError;

/// Closures that may wait for one worker; more are refused.
pub const MAIL_MAX: usize = 65_536;

/// Work sent to a worker from elsewhere.
pub(crate) type Closure = Box<dyn FnOnce() + Send>;

/// Work that was sent and not yet fetched.
#[derive(Default)]
pub(crate) struct Mail {
    pub(crate) closures: VecDeque<Closure>,
    /// At most one per task: `TaskWake::sent` makes sure of this.
    pub(crate) wakes: Vec<Arc<TaskWake>>,
    /// The worker has ended, and fetches nothing any more.
    closed: bool,
}

/// The mailbox of one worker.
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    bell: Bell,
    rung: AtomicBool,
    stop: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Mailbox> {
        Ok(Mailbox {
            mail: Mutex::new(Mail::default()),
            bell: Bell::new()?,
            rung: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    /// Adds a closure; false if the worker has ended, or if [`MAIL_MAX`] closures wait.
    pub(crate) fn send(&self, closure: Closure) -> bool {
        let mut mail = self.lock();
        if mail.closed || mail.closures.len() >= MAIL_MAX {
            return false;
        }
        mail.closures.push_back(closure);
        drop(mail);
        self.ring();
        true
    }

    /// Adds a wake-up; a task has at most one waiting wake-up.
    pub(crate) fn send_wake(&self, wake: &Arc<TaskWake>) {
        if wake.sent.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut mail = self.lock();
        if !mail.closed {
            mail.wakes.push(wake.clone());
            drop(mail);
            self.ring();
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ring();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// All closures and wake-ups since the last call. Takes no lock if nothing was sent.
    pub(crate) fn fetch(&self) -> Option<Mail> {
        if !self.rung.load(Ordering::Acquire) {
            return None;
        }
        // A swap, not a store: it reads the last ring, so all that came before that ring is visible here, a stop too.
        self.rung.swap(false, Ordering::SeqCst);
        let mut mail = self.lock();
        let closed = mail.closed;
        Some(std::mem::replace(&mut mail, Mail { closed, ..Mail::default() }))
    }

    /// Refuses all further mail and returns the rest.
    pub(crate) fn close(&self) -> Mail {
        let mut mail = self.lock();
        mail.closed = true;
        std::mem::replace(&mut mail, Mail { closed: true, ..Mail::default() })
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            count(Kind::Notify);
            self.bell.ring();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        // No code that may panic runs under the lock, so the data is always valid.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The target of a task's owned `Waker`s: made when a waker is first cloned.
pub(crate) struct TaskWake {
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) task: SlotKey,
    sent: AtomicBool,
}

impl TaskWake {
    #[inline]
    pub(crate) fn new(mailbox: Arc<Mailbox>, task: SlotKey) -> TaskWake {
        TaskWake { mailbox, task, sent: AtomicBool::new(false) }
    }

    /// On the worker: takes the wake-up out of the mail.
    pub(crate) fn receive(&self) -> SlotKey {
        // A swap, not a store: a wake-up that was not sent because this one waited is read here, with all that came
        // before it. The poll that follows sees the cause of both.
        self.sent.swap(false, Ordering::AcqRel);
        self.task
    }
}
