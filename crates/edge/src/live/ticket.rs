//! A question to a thread: the thread makes the answer, and a task of a worker waits for it while the worker serves other requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::SyncSender;
use std::task::Poll;
use std::time::Duration;

use weir_net::Deadline;
use weir_net::reply::{self, Promise};

/// How long a request waits for an answer: making an answer takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question, and the way of its answer.
pub(crate) struct PendingQuestion<Q, A> {
    /// The question.
    pub question: Q,
    promise: Promise<A>,
}

impl<Q, A> PendingQuestion<Q, A> {
    /// Whether the task still waits.
    pub fn is_awaited(&self) -> bool {
        self.promise.is_awaited()
    }

    /// Makes the answer and gives it.
    pub fn settle_with(self, make: impl FnOnce(Q) -> A) {
        // The answer is made first: the worker asks for it again and again, and must not wait for the thread.
        let answer = make(self.question);
        self.promise.give(|| answer);
    }

    /// Gives the answer.
    pub fn settle(self, answer: A) {
        self.promise.give(|| answer);
    }
}

/// Asks the thread at the other end, and waits for its answer; `None` if too many questions wait, or it takes too long.
pub(crate) async fn ask<Q, A>(list: &SyncSender<PendingQuestion<Q, A>>, question: Q) -> Option<A> {
    let (promise, reply) = reply::promise();
    list.try_send(PendingQuestion { question, promise }).ok()?;
    let deadline = Deadline::new();
    deadline.set(PATIENCE);
    let mut reply = pin!(reply);
    poll_fn(|context| match reply.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(answer),
        Poll::Pending => deadline.poll_expired().map(|()| None),
    })
    .await
}
