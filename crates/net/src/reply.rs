//! One value from any thread to a task, which waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use crate::sync::{Arc, Mutex, MutexGuard};

/// A promise of a value, and the wait for it.
pub fn promise<T>() -> (Promise<T>, Reply<T>) {
    let shared = Arc::new(Mutex::new(State::Asked(None)));
    (Promise(shared.clone()), Reply(shared))
}

/// The side that gives the value. Dropping it gives none.
pub struct Promise<T>(Arc<Mutex<State<T>>>);

/// The wait: the value, or `None` if the other side gives none. Dropping it takes back the question.
pub struct Reply<T>(Arc<Mutex<State<T>>>);

enum State<T> {
    /// There is no value yet; the waker of the task that waits.
    Asked(Option<Waker>),
    /// The value, until the task takes it.
    Given(Option<T>),
    /// Nobody waits any more.
    Left,
}

impl<T> Promise<T> {
    /// Makes the value and gives it, unless nobody waits any more. The waiting side cannot leave while `make` runs.
    pub fn give(self, make: impl FnOnce() -> T) {
        self.end(|| Some(make()));
    }

    /// Whether somebody still waits.
    pub fn is_awaited(&self) -> bool {
        matches!(*lock(&self.0), State::Asked(_))
    }

    fn end(&self, make: impl FnOnce() -> Option<T>) {
        let mut state = lock(&self.0);
        if let State::Asked(waker) = &mut *state {
            let waker = waker.take();
            let value = make();
            *state = State::Given(value);
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.end(|| None);
    }
}

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        match &mut *lock(&self.0) {
            State::Given(value) => Poll::Ready(value.take()),
            State::Asked(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            State::Left => Poll::Ready(None),
        }
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *lock(&self.0), State::Left);
        // A value that nobody takes is dropped without the lock.
        drop(before);
    }
}

fn lock<T>(shared: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    // After a panic in `make` there is still no value.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
