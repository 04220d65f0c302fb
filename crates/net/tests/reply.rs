//! A model of a reply: loom runs its code in every order of the threads' steps. Workers lend each other connections
//! through it.

#![allow(clippy::unwrap_used)]

#[path = "../src/reply.rs"]
mod reply;

mod sync {
    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::{model, thread};
use reply::promise;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Wake, Waker};

/// A thread that sleeps until it is woken.
#[derive(Default)]
struct Sleeper {
    is_woken: Mutex<bool>,
    wait: Condvar,
}

impl Wake for Sleeper {
    fn wake(self: std::sync::Arc<Self>) {
        *self.is_woken.lock().unwrap() = true;
        self.wait.notify_one();
    }
}

/// Polls until the end. If a wake-up is lost, loom reports a thread that waits without end.
fn finish<F: Future>(future: F) -> F::Output {
    let sleeper = std::sync::Arc::new(Sleeper::default());
    let waker = Waker::from(sleeper.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        let mut is_woken = sleeper.is_woken.lock().unwrap();
        while !*is_woken {
            is_woken = sleeper.wait.wait(is_woken).unwrap();
        }
        *is_woken = false;
    }
}

/// A connection that is counted until it is closed.
struct Connection(Arc<AtomicUsize>);

impl Connection {
    fn open(count: &Arc<AtomicUsize>) -> Connection {
        count.fetch_add(1, Ordering::Relaxed);
        Connection(count.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn the_value_arrives() {
    model(|| {
        let (promise, reply) = promise();
        let giver = thread::spawn(move || promise.give(|| 7));
        assert_eq!(finish(reply), Some(7));
        giver.join().unwrap();
    });
}

#[test]
fn without_a_value_the_wait_ends() {
    model(|| {
        let (promise, reply) = promise::<u8>();
        let giver = thread::spawn(move || drop(promise));
        assert_eq!(finish(reply), None);
        giver.join().unwrap();
    });
}

/// The asker leaves before, while or after the value comes: no connection stays open without an owner.
#[test]
fn a_value_that_nobody_takes_is_dropped() {
    model(|| {
        let open = Arc::new(AtomicUsize::new(0));
        let (promise, mut reply) = promise();
        let giver = {
            let open = open.clone();
            thread::spawn(move || promise.give(|| Connection::open(&open)))
        };
        let mut context = Context::from_waker(Waker::noop());
        let taken = match pin!(&mut reply).poll(&mut context) {
            Poll::Ready(taken) => taken,
            Poll::Pending => None,
        };
        drop(reply);
        giver.join().unwrap();
        assert_eq!(open.load(Ordering::Relaxed), usize::from(taken.is_some()));
        drop(taken);
        assert_eq!(open.load(Ordering::Relaxed), 0);
    });
}

/// Once the asker has left, the lender keeps its connection.
#[test]
fn nothing_is_made_for_nobody() {
    model(|| {
        let (promise, reply) = promise::<()>();
        drop(reply);
        promise.give(|| unreachable!("nobody waits"));
    });
}

#[test]
fn a_reply_that_is_left_is_awaited_no_more() {
    model(|| {
        let (promise, reply) = promise::<()>();
        assert!(promise.is_awaited());
        let leaver = thread::spawn(move || drop(reply));
        leaver.join().unwrap();
        assert!(!promise.is_awaited());
    });
}
