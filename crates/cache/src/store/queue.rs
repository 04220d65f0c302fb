//! The queue of a zone's own thread: reads of cold objects first, then writes and removals in order.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::label::{Label, Place};
use super::object::Object;
use super::spool::Spool;

/// The most bytes of objects that wait to be written; beyond this, weir keeps an object in memory only.
pub const QUEUED_BYTES_MAX: u64 = 64 << 20;

/// The most waiting writes, marks and removals.
pub const QUEUED_JOBS_MAX: usize = 16_384;

/// The most waiting reads; beyond this, a cold object counts as not stored.
pub const LOADS_MAX: usize = 16_384;

/// A job on files.
pub(super) enum Job {
    /// Write an object whose body is whole.
    Write(Arc<Object>),
    /// Write an object whose body is arriving.
    Spool(Arc<Spool>),
    /// Remove a file that belongs to no object.
    Remove(Arc<Label>),
    /// Mark a file as soft-purged.
    Mark(Arc<Label>),
}

/// A requested read.
pub(super) struct QueuedRead {
    pub place: Place,
    pub label: Arc<Label>,
    /// The object's number in the index; 0 if the index does not know it yet.
    pub serial: u64,
    pub answer: Arc<ReadAnswer>,
}

/// Receives the result of a read.
#[derive(Default)]
pub(super) struct ReadAnswer(Mutex<Answered>);

#[derive(Default)]
struct Answered {
    outcome: Option<Option<Arc<Object>>>,
    wakers: Vec<Waker>,
}

impl ReadAnswer {
    pub fn give(&self, object: Option<Arc<Object>>) {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answered.outcome = Some(object);
        let wakers = std::mem::take(&mut answered.wakers);
        drop(answered);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub fn poll(&self, context: &Context<'_>) -> Poll<Option<Arc<Object>>> {
        let mut answered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = &answered.outcome {
            return Poll::Ready(outcome.clone());
        }
        if !answered.wakers.iter().any(|known| known.will_wake(context.waker())) {
            if answered.wakers.len() >= LOADS_MAX {
                return Poll::Ready(None);
            }
            answered.wakers.push(context.waker().clone());
        }
        Poll::Pending
    }
}

#[derive(Default)]
struct Waiting {
    loads: VecDeque<QueuedRead>,
    loading: HashMap<Place, Arc<ReadAnswer>>,
    jobs: VecDeque<Job>,
    bytes: u64,
    /// Something happened since the thread last slept.
    is_rung: bool,
    is_closed: bool,
}

/// The queue.
#[derive(Default)]
pub(super) struct ReadQueue {
    waiting: Mutex<Waiting>,
    bell: Condvar,
}

impl ReadQueue {
    /// Requests an object, or joins a request for it; `None` if too many wait.
    pub fn load(&self, place: Place, label: &Arc<Label>, serial: u64) -> Option<Arc<ReadAnswer>> {
        let mut waiting = self.lock();
        if let Some(answer) = waiting.loading.get(&place) {
            return Some(answer.clone());
        }
        if waiting.is_closed || waiting.loads.len() >= LOADS_MAX {
            return None;
        }
        let answer = Arc::new(ReadAnswer::default());
        waiting.loading.insert(place, answer.clone());
        waiting.loads.push_back(QueuedRead { place, label: label.clone(), serial, answer: answer.clone() });
        self.ring(waiting);
        Some(answer)
    }

    /// Adds a job; gives it back if too many wait already.
    pub fn push(&self, job: Job) -> Result<(), Job> {
        let mut waiting = self.lock();
        let bytes = waiting.bytes + job.bytes();
        if waiting.is_closed || waiting.jobs.len() >= QUEUED_JOBS_MAX || bytes > QUEUED_BYTES_MAX {
            return Err(job);
        }
        waiting.bytes = bytes;
        waiting.jobs.push_back(job);
        self.ring(waiting);
        Ok(())
    }

    /// The next read.
    pub fn next_load(&self) -> Option<QueuedRead> {
        self.lock().loads.pop_front()
    }

    /// A read is done: later requests read again.
    pub fn loaded(&self, place: Place) {
        self.lock().loading.remove(&place);
    }

    /// The next job. Its bytes count until `done`.
    pub fn next_job(&self) -> Option<Job> {
        self.lock().jobs.pop_front()
    }

    /// A job with this many bytes is done.
    pub fn done(&self, bytes: u64) {
        let mut waiting = self.lock();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
    }

    /// Wakes the thread, because something changed that it checks by itself.
    pub fn wake(&self) {
        self.ring(self.lock());
    }

    /// Sleeps until there is work, or at most this long. False once closed.
    pub fn sleep(&self, at_most: Duration) -> bool {
        let waiting = self.lock();
        let asleep = |waiting: &mut Waiting| {
            !waiting.is_rung && !waiting.is_closed && waiting.loads.is_empty() && waiting.jobs.is_empty()
        };
        let slept = self.bell.wait_timeout_while(waiting, at_most, asleep);
        let (mut waiting, _) = slept.unwrap_or_else(PoisonError::into_inner);
        waiting.is_rung = false;
        !waiting.is_closed
    }

    /// Ends the thread; waiting reads get no object.
    pub fn close(&self) {
        let mut waiting = self.lock();
        waiting.is_closed = true;
        let jobs = std::mem::take(&mut waiting.jobs);
        waiting.loads.clear();
        let answers = std::mem::take(&mut waiting.loading);
        self.ring(waiting);
        for job in jobs {
            if let Job::Spool(spool) = job {
                spool.give_up();
            }
        }
        answers.into_values().for_each(|answer| answer.give(None));
    }

    fn ring(&self, mut waiting: MutexGuard<'_, Waiting>) {
        waiting.is_rung = true;
        drop(waiting);
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    /// The bytes it holds in memory while it waits.
    pub fn bytes(&self) -> u64 {
        match self {
            Job::Write(object) => object.memory_bytes(),
            Job::Spool(_) => 0,
            Job::Remove(label) | Job::Mark(label) => label.memory_bytes() as u64,
        }
    }
}
