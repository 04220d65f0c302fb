//! Blocking work for a task of a worker: a thread of its own does it, and the task waits for the result.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::worker;

/// Threads that may do such work at once in this process; further work is refused.
pub const THREADS_MAX: usize = 32;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Does `work` on a thread of its own, while the other tasks of this worker go on.
///
/// Fails if [`THREADS_MAX`] threads work already, if there can be no thread, or if the work panicked. The work goes on
/// when the future is dropped.
pub async fn run<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let place = Place::take().ok_or_else(|| io::Error::other("too many threads do such work"))?;
    let shared = Arc::new(Mutex::new(State { result: None, has_ended: false, waker: None }));
    let ending = Ending(shared.clone());
    worker::block_aside(name, move || {
        let (_place, ending) = (place, ending);
        let result = work();
        lock(&ending.0).result = Some(result);
    })?;
    poll_fn(|context| {
        let mut state = lock(&shared);
        match state.result.take() {
            Some(result) => Poll::Ready(Ok(result)),
            None if state.has_ended => Poll::Ready(Err(io::Error::other("the work panicked"))),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

struct State<T> {
    result: Option<T>,
    has_ended: bool,
    waker: Option<Waker>,
}

/// Wakes the task when the work ends, also by a panic.
struct Ending<T>(Arc<Mutex<State<T>>>);

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.has_ended = true;
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// One of the threads; its drop makes room for another one.
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let more = |running: usize| (running < THREADS_MAX).then_some(running + 1);
        RUNNING.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

fn lock<T>(shared: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    // No code that may panic runs under the lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_result_comes_back_and_other_tasks_go_on() {
        let number = worker::block_on(async {
            let (tell, told) = mpsc::channel();
            // The work ends only after another task of the same worker has run.
            worker::spawn(async move { tell.send(7).unwrap() });
            run("test", move || told.recv().unwrap()).await.unwrap()
        });
        assert_eq!(number.unwrap(), 7);
    }

    #[test]
    fn a_panic_is_an_error() {
        let failed = worker::block_on(async {
            run("test", || -> () { std::panic::resume_unwind(Box::new(())) }).await.is_err()
        });
        assert!(failed.unwrap());
    }
}
