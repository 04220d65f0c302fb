//! Workers lend each other idle connections: before a worker opens a new connection to a peer, it asks the worker that
//! keeps most idle connections to this peer. Each worker has its own pool. Some origins serve one connection per
//! process (Apache's prefork, many Python servers). There, a new connection would wait until the other worker closes
//! its idle connection. A connection that carries streams moves with its tables and windows, while it has no stream.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use weir_http::hold::worker::Worker;
use weir_net::reply::{self, Reply};
use weir_net::{Deadline, Stream, Transport};

use super::groups::groups;
use super::line::{Opened, Past};
use super::pool::{Link, Loan, Pool, Terms, UNTOLD};

/// The longest wait for the other worker; a worker that is busy for longer is skipped.
const ANSWER_TIME: Duration = Duration::from_millis(20);

/// The kind of connection that is asked for.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// It carries one exchange at a time.
    Link,
    /// It carries streams (HTTP/2).
    Line,
}

/// Asks for a connection to a peer of a group, which others find by the numbers of its configuration and of the group; `None`
/// if no other worker keeps one to lend.
pub(super) fn ask(
    worker: &Worker,
    (number, group): (u32, usize),
    peer: usize,
    terms: Terms<'_>,
    kind: Kind,
) -> Option<AskedWorker> {
    let lender = if terms.is_plain() { worker.richest_colleague(number, group, peer)? } else { return None };
    let (promise, reply) = reply::promise();
    let is_sent = worker.on_colleague(lender, move |worker| {
        // Another configuration numbers its groups in another way.
        let Some(generation) = worker.in_force().find(|own| own.conf.generation == number) else { return };
        let Some(home) = groups(&generation).home(group) else { return };
        match kind {
            Kind::Link => promise.give(|| lend(&home.pool, peer)),
            Kind::Line => home.lines.ask(peer, promise),
        }
    });
    let deadline = Deadline::new();
    deadline.set(ANSWER_TIME);
    is_sent.then_some(AskedWorker { reply, deadline })
}

/// Takes a connection out of the lender's pool, on the lender's thread; `None` if there is nothing to lend.
fn lend(pool: &Pool, peer: usize) -> Option<Loan> {
    let link = pool.take(peer, Terms::PLAIN)?;
    let Link { stream, opened, carried, .. } = *link;
    match stream {
        Transport::Plain(stream) => Some(Loan { fd: stream.into_fd(), opened, carried, wire: None }),
        Transport::Tls(_) | Transport::Carried(_) => None,
    }
}

/// A question to another worker; resolves to a connection, or to `None` if that worker has none or no time.
pub(super) struct AskedWorker {
    reply: Reply<Option<Loan>>,
    deadline: Deadline,
}

impl AskedWorker {
    /// Makes the connection this worker's own; `None` if that fails, for example if the connection table is full.
    async fn answer(self, worker: &Worker) -> Option<(Opened, u32)> {
        let Loan { fd, opened, carried, wire } = self.await?;
        let place = worker.take_place()?;
        let stream = Stream::from_fd(fd).ok()?.into();
        let past = wire.map(|wire| Past { wire, carried });
        Some((Opened { stream, place, at: opened, opening: None, past }, carried))
    }

    /// A connection that carries one exchange at a time.
    pub(super) async fn link(self, worker: &Worker, peer: usize) -> Option<Box<Link>> {
        let (Opened { stream, place, at: opened, .. }, carried) = self.answer(worker).await?;
        let (deadline, place) = (Deadline::new(), Some(place));
        Some(Box::new(Link {
            stream,
            deadline,
            peer,
            bound: None,
            party: None,
            opened,
            carried,
            peer_keeps_s: UNTOLD,
            place,
            h2: None,
        }))
    }

    /// A connection that carries streams.
    pub(super) async fn line(self, worker: &Worker) -> Option<Opened> {
        self.answer(worker).await.map(|(opened, _)| opened)
    }
}

impl Future for AskedWorker {
    type Output = Option<Loan>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Loan>> {
        match Pin::new(&mut self.reply).poll(context) {
            Poll::Ready(loan) => Poll::Ready(loan.flatten()),
            Poll::Pending => self.deadline.poll_expired().map(|()| None),
        }
    }
}
