//! A ticket: one thread makes an answer, and a task of a worker waits for it while the worker serves other requests.

use std::future::poll_fn;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_http::board::lock;
use weir_net::Deadline;

/// How long a request waits for an answer: making an answer takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A question, and the place for its answer.
pub(crate) struct Ticketed<Q, A> {
    /// The question.
    pub question: Q,
    ticket: Arc<Ticket<A>>,
}

/// The place for the answer.
struct Ticket<A>(Mutex<(Option<A>, Option<Waker>)>);

impl<A> Ticket<A> {
    fn poll(&self, context: &Context<'_>) -> Poll<A> {
        let mut state = lock(&self.0);
        match state.0.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<Q, A> Ticketed<Q, A> {
    /// Whether anybody still waits.
    pub fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.ticket) > 1
    }

    /// Makes the answer and gives it.
    pub fn settle_with(self, make: impl FnOnce(Q) -> A) {
        let Ticketed { question, ticket } = self;
        Ticketed { question: (), ticket }.settle(make(question));
    }

    /// Gives the answer.
    pub fn settle(self, answer: A) {
        let mut state = lock(&self.ticket.0);
        state.0 = Some(answer);
        let waker = state.1.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Asks the thread at the other end, and waits for its answer; `None` if too many questions wait, or it takes too long.
pub(crate) async fn ask<Q, A>(list: &SyncSender<Ticketed<Q, A>>, question: Q) -> Option<A> {
    let ticket = Arc::new(Ticket(Mutex::new((None, None))));
    let errand = Ticketed { question, ticket: ticket.clone() };
    match list.try_send(errand) {
        Ok(()) => {}
        Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return None,
    }
    let deadline = Deadline::new();
    deadline.set(PATIENCE);
    poll_fn(|context| match ticket.poll(context) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => deadline.poll_expired().map(|()| None),
    })
    .await
}
