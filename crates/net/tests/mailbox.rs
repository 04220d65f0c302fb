//! A model of the mailbox: loom runs its code in every order of the threads' steps, with every value that the memory model
//! of C11 allows a load to read.
//!
//! The mailbox is the file of the crate itself. loom's types are behind it, and a bell that waits as `epoll_wait` does.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../src/mailbox.rs"]
mod mailbox;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

mod counts {
    pub(crate) enum Kind {
        Notify,
    }

    pub(crate) fn count(_: Kind) {}
}

mod slots {
    #[derive(Clone, Copy)]
    pub(crate) struct SlotKey;
}

mod bell {
    use loom::sync::{Condvar, Mutex};
    use std::io;

    pub(crate) struct Bell {
        rung: Mutex<bool>,
        wait: Condvar,
    }

    impl Bell {
        pub(crate) fn new() -> io::Result<Bell> {
            Ok(Bell { rung: Mutex::new(false), wait: Condvar::new() })
        }

        pub(crate) fn ring(&self) {
            *self.rung.lock().unwrap() = true;
            self.wait.notify_one();
        }

        /// Waits for a ring since the last wait.
        pub(crate) fn wait(&self) {
            let mut rung = self.rung.lock().unwrap();
            while !*rung {
                rung = self.wait.wait(rung).unwrap();
            }
            *rung = false;
        }
    }
}

use loom::thread;
use mailbox::{Mail, Mailbox, TaskWake};
use sync::{Arc, AtomicBool, Ordering};

/// Tries every order in which no thread is interrupted more than three times against its will: more take minutes.
fn model(steps: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(steps);
}

/// Runs the closures and returns their number.
fn run(mail: Mail) -> usize {
    let closures = mail.closures.len();
    mail.closures.into_iter().for_each(|closure| closure());
    closures
}

/// A mailbox that lost something makes its worker wait without end, which loom reports.
#[test]
fn each_errand_arrives() {
    model(|| {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let mailbox = mailbox.clone();
                thread::spawn(move || assert!(mailbox.send(Box::new(|| {}))))
            })
            .collect();
        let mut done = 0;
        loop {
            done += mailbox.fetch().map_or(0, run);
            if done == senders.len() {
                break;
            }
            mailbox.bell().wait();
        }
        senders.into_iter().for_each(|sender| sender.join().unwrap());
    });
}

/// The second wake-up may find the first one still in the mail: then the poll after the first sees both causes.
#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let wake = Arc::new(TaskWake::new(mailbox.clone(), slots::SlotKey));
        let causes = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let waker = {
            let (mailbox, causes) = (mailbox.clone(), causes.clone());
            thread::spawn(move || {
                for cause in causes.iter() {
                    cause.store(true, Ordering::Release);
                    mailbox.send_wake(&wake);
                }
            })
        };
        let is_over = || causes.iter().all(|cause| cause.load(Ordering::Acquire));
        loop {
            let wakes = mailbox.fetch().map(|mail| mail.wakes).unwrap_or_default();
            let woken = wakes.len();
            wakes.into_iter().for_each(|wake| {
                wake.receive();
            });
            if woken > 0 && is_over() {
                break;
            }
            mailbox.bell().wait();
        }
        waker.join().unwrap();
        // The last wake-up may still be there, and it holds the mailbox.
        drop(mailbox.close());
    });
}

/// Also if a closure has already rung the bell.
#[test]
fn a_stop_is_seen() {
    model(|| {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let sender = {
            let mailbox = mailbox.clone();
            thread::spawn(move || {
                mailbox.send(Box::new(|| {}));
                mailbox.stop();
            })
        };
        loop {
            if let Some(mail) = mailbox.fetch() {
                run(mail);
            }
            if mailbox.is_stopped() {
                break;
            }
            mailbox.bell().wait();
        }
        sender.join().unwrap();
    });
}

/// A closure that was accepted runs, if the worker runs the rest of its mail at its end; another one is refused.
#[test]
fn a_closed_mailbox_refuses() {
    model(|| {
        let mailbox = Arc::new(Mailbox::new().unwrap());
        let sender = {
            let mailbox = mailbox.clone();
            thread::spawn(move || usize::from(mailbox.send(Box::new(|| {}))))
        };
        let fetched = mailbox.fetch().map_or(0, run) + run(mailbox.close());
        assert_eq!(sender.join().unwrap(), fetched);
        assert!(!mailbox.send(Box::new(|| {})));
    });
}
