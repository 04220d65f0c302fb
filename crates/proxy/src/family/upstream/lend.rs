//! Workers lend each other idle connections: before a worker opens a new connection to a peer, it asks the worker that
//! keeps most idle connections to this peer. Each worker has its own pool. Some origins serve one connection per
//! process (Apache's prefork, many Python servers). There, a new connection would wait until the other worker closes
//! its idle connection.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_http::worker::{Generation, Worker};
use weir_net::{Deadline, Instant, Stream, Transport};

use super::pool::{Link, Terms, pools};

/// The longest wait for the other worker; a worker that is busy for longer is skipped.
const ANSWER_TIME: Duration = Duration::from_millis(20);

/// Asks for a connection to a peer of a group; `None` if no other worker keeps one to lend.
pub(super) fn ask(
    worker: &Worker,
    generation: &Generation,
    group: usize,
    peer: usize,
    terms: Terms<'_>,
) -> Option<Asked> {
    let number = generation.conf.generation;
    let lender = if terms.is_plain() { worker.richest_colleague(number, group, peer)? } else { return None };
    let desk = Arc::new(Desk::default());
    let answer = desk.clone();
    let is_sent = worker.on_colleague(lender, move |worker| answer.serve(worker, number, group, peer));
    let deadline = Deadline::new();
    deadline.set(ANSWER_TIME);
    is_sent.then_some(Asked { desk, deadline, peer })
}

/// The shared state of the two workers.
#[derive(Default)]
struct Desk(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Asked,
    Awaited(Waker),
    /// The loan, or `None` if there was nothing to lend.
    Answered(Option<Loan>),
    /// The asking worker has left.
    Left,
}

/// A connection in transit: a [`Link`] without the parts that belong to a worker.
pub(super) struct Loan {
    fd: OwnedFd,
    opened: Instant,
    carried: u64,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on the lender's thread.
    fn serve(&self, worker: &Worker, number: u32, group: usize, peer: usize) {
        let mut state = self.state();
        if matches!(*state, State::Left) {
            return;
        }
        let generation = worker.generation();
        let link = if generation.conf.generation == number {
            pools(&generation).take(group, peer, Terms::PLAIN)
        } else {
            None
        };
        let loan = link.and_then(|link| match link.stream {
            Transport::Plain(stream) => Some(Loan { fd: stream.into_fd(), opened: link.opened, carried: link.carried }),
            Transport::Tls(_) | Transport::Carried(_) => None,
        });
        let before = std::mem::replace(&mut *state, State::Answered(loan));
        drop(state);
        if let State::Awaited(waker) = before {
            waker.wake();
        }
    }
}

/// A question to another worker; resolves to a connection, or to `None` if that worker has none or no time.
pub(super) struct Asked {
    desk: Arc<Desk>,
    deadline: Deadline,
    peer: usize,
}

impl Asked {
    /// Makes the connection this worker's own; `None` if that fails, for example if the connection table is full.
    pub(super) async fn answer(self, worker: &Worker) -> Option<Box<Link>> {
        let peer = self.peer;
        let Loan { fd, opened, carried } = self.await?;
        let place = worker.take_place()?;
        let stream = Stream::from_fd(fd).ok()?.into();
        Some(Box::new(Link {
            stream,
            deadline: Deadline::new(),
            peer,
            bound: None,
            party: None,
            opened,
            carried,
            place: Some(place),
            h2: None,
        }))
    }
}

impl Future for Asked {
    type Output = Option<Loan>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Loan>> {
        let mut state = self.desk.state();
        if let State::Answered(loan) = &mut *state {
            return Poll::Ready(loan.take());
        }
        *state = State::Awaited(context.waker().clone());
        drop(state);
        self.deadline.poll_expired().map(|()| None)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        *self.desk.state() = State::Left;
    }
}
