//! The mailbox through which other threads reach a worker: they send closures, wake-ups and a stop.
//!
//! Two parts: the [`Mailbox`] itself (a locked queue and an eventfd), and the [`TaskWake`] behind every cloned `Waker`.
//! Invariant: the lock is never held while foreign code runs, and a worker takes no lock if the mailbox was not rung.

use crate::counts::{Kind, count};
use crate::slots::Key;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Closures that may wait for one worker; more are refused.
pub const MAIL_MAX: usize = 65_536;

/// Work sent to a worker from elsewhere.
pub(crate) type Errand = Box<dyn FnOnce() + Send>;

/// Work that was sent and not yet fetched.
#[derive(Default)]
pub(crate) struct Mail {
    pub(crate) errands: VecDeque<Errand>,
    /// At most one per task: `TaskWake::sent` makes sure of this.
    pub(crate) wakes: Vec<Arc<TaskWake>>,
    /// The worker has ended, and fetches nothing any more.
    closed: bool,
}

/// The mailbox of one worker.
pub(crate) struct Mailbox {
    mail: Mutex<Mail>,
    bell: OwnedFd,
    rung: AtomicBool,
    stop: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Mailbox> {
        Ok(Mailbox {
            mail: Mutex::default(),
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            rung: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    /// Adds a closure (an errand); false if the worker has ended, or if [`MAIL_MAX`] closures wait.
    pub(crate) fn send(&self, errand: Errand) -> bool {
        let mut mail = self.lock();
        if mail.closed || mail.errands.len() >= MAIL_MAX {
            return false;
        }
        mail.errands.push_back(errand);
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
        self.rung.store(false, Ordering::SeqCst);
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

    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// The eventfd is edge-triggered and never read: each write is a new edge.
    fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            count(Kind::Notify);
            // The counter could only be full after 2^64 rings.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
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
    pub(crate) task: Key,
    sent: AtomicBool,
}

impl TaskWake {
    #[inline]
    pub(crate) fn new(mailbox: Arc<Mailbox>, task: Key) -> TaskWake {
        TaskWake { mailbox, task, sent: AtomicBool::new(false) }
    }

    /// On the worker: takes the wake-up out of the mail.
    pub(crate) fn receive(&self) -> Key {
        self.sent.store(false, Ordering::Release);
        self.task
    }
}
