//! Workers lend each other idle connections: before a worker opens a new connection to a peer, it asks the worker that
//! keeps most idle connections to this peer. Each worker has its own pool. Some origins serve one connection per
//! process (Apache's prefork, many Python servers). There, a new connection would wait until the other worker closes
//! its idle connection.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use weir_http::worker::{Generation, Worker};
use weir_net::reply::{self, Reply};
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
    let (promise, reply) = reply::promise();
    let is_sent = worker.on_colleague(lender, move |worker| promise.give(|| lend(worker, number, group, peer)));
    let deadline = Deadline::new();
    deadline.set(ANSWER_TIME);
    is_sent.then_some(Asked { reply, deadline, peer })
}

/// A connection in transit: a [`Link`] without the parts that belong to a worker.
pub(super) struct Loan {
    fd: OwnedFd,
    opened: Instant,
    carried: u64,
}

/// Takes a connection out of the lender's pool, on the lender's thread; `None` if there is nothing to lend.
fn lend(worker: &Worker, number: u32, group: usize, peer: usize) -> Option<Loan> {
    let generation = worker.generation();
    if generation.conf.generation != number {
        return None;
    }
    let link = pools(&generation).take(group, peer, Terms::PLAIN)?;
    match link.stream {
        Transport::Plain(stream) => Some(Loan { fd: stream.into_fd(), opened: link.opened, carried: link.carried }),
        Transport::Tls(_) | Transport::Carried(_) => None,
    }
}

/// A question to another worker; resolves to a connection, or to `None` if that worker has none or no time.
pub(super) struct Asked {
    reply: Reply<Option<Loan>>,
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

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Loan>> {
        match Pin::new(&mut self.reply).poll(context) {
            Poll::Ready(loan) => Poll::Ready(loan.flatten()),
            Poll::Pending => self.deadline.poll_expired().map(|()| None),
        }
    }
}
