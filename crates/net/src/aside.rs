//! Blocking work for a task of a worker: a thread of its own does it, and the task waits for the result.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{reply, worker};

/// Threads that may do such work at once in this process; further work is refused.
pub const THREADS_MAX: usize = 32;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Does `work` on a thread of its own, while the other tasks of this worker go on.
///
/// Fails if [`THREADS_MAX`] threads work already, if there can be no thread, or if the work panicked. The work goes on
/// when the future is dropped.
pub async fn run<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let place = Place::take().ok_or_else(|| io::Error::other("too many threads do such work"))?;
    let (promise, reply) = reply::promise();
    worker::block_aside(name, move || {
        let _place = place;
        let result = work();
        promise.give(|| result);
    })?;
    reply.await.ok_or_else(|| io::Error::other("the work panicked"))
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
