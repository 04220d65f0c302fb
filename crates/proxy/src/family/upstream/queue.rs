//! `queue`: exchanges that wait until a peer of their group may take them (NGINX Plus).
//!
//! ```text
//!  no peer is free ─► enter ─► the first in the queue tries again ─► a peer, or its timeout
//!                        └ full: 502      ▲
//!                     a peer is given back ┘ (or the first one leaves, or a moment passes)
//! ```
//!
//! Exchanges of all workers wait in one queue, in the order in which they came. Only the first one asks for a peer.
//! Invariant: a place belongs to a `Ticket`, and its drop frees the place and lets the next exchange try.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::message::Try;
use weir_http::hold::board::Leg;
use weir_http::hold::conn::{Conn, Gone};
use weir_http::hold::worker::Worker;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_meter::Step;
use weir_meter::live::cells::Why;
use weir_net::log::Level;
use weir_net::{Deadline, Instant, clock};

/// nginx: "The default value of the timeout parameter is 60 seconds."
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);

/// The pause after which the first exchange tries again without a sign: a failed peer may serve again, or the API may
/// have changed the servers.
const PAUSE: Duration = Duration::from_millis(250);

/// The exchanges that wait for a peer of one group.
#[derive(Debug)]
pub struct Queue {
    /// The most exchanges that wait at once.
    pub most: usize,
    timeout: Duration,
    /// The number of places taken, for a look without the lock.
    size: AtomicUsize,
    places: Mutex<Places>,
    overflows: AtomicU64,
    waited: AtomicU64,
    timed_out: AtomicU64,
}

/// The counters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The exchanges that wait at this moment.
    pub size: u64,
    /// The exchanges that found the queue full.
    pub overflows: u64,
    /// The exchanges that waited so far.
    pub waited: u64,
    /// The exchanges whose timeout passed.
    pub timed_out: u64,
}

#[derive(Debug, Default)]
struct Places {
    list: VecDeque<Place>,
    next: u64,
}

#[derive(Debug)]
struct Place {
    number: u64,
    /// The exchange may try: it is the first, and something has changed.
    may_try: bool,
    waker: Option<Waker>,
}

/// A place in a queue.
pub struct Ticket {
    queue: Arc<Queue>,
    number: u64,
    since: Instant,
}

/// The next step of an exchange in the queue.
#[derive(Debug, PartialEq, Eq)]
enum Turn {
    /// Ask for a peer.
    Try,
    /// Wait; it is the first.
    First,
    /// Wait behind others.
    Behind,
}

/// Why an exchange gets no peer.
pub enum Refused {
    /// The queue is full, or its timeout has passed: 502.
    Unserved,
    /// The client left.
    Gone(Gone),
}

/// The setting of a block: `queue NUMBER [timeout=TIME]`.
pub fn read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let most = value::number(statement.text(0))
        .and_then(|number| usize::try_from(number).ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| Refusal::whole(format!("invalid value \"{}\" in \"queue\" directive", statement.text(0))))?;
    let timeout = match statement.args.get(1).map(|word| word.text.as_str()) {
        None => TIMEOUT_DEFAULT,
        Some(word) => word
            .strip_prefix("timeout=")
            .and_then(value::long_time_of)
            .ok_or_else(|| Refusal::whole(format!("invalid parameter \"{word}\"")))?,
    };
    crate::settings(b).upstream.queue = Some(Some((most, timeout)));
    Ok(())
}

impl Queue {
    /// An empty queue.
    pub fn new(most: usize, timeout: Duration) -> Queue {
        Queue {
            most,
            timeout,
            size: AtomicUsize::new(0),
            places: Mutex::default(),
            overflows: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
        }
    }

    /// The counters.
    pub fn counted(&self) -> Counted {
        Counted {
            size: self.size.load(Ordering::Relaxed) as u64,
            overflows: self.overflows.load(Ordering::Relaxed),
            waited: self.waited.load(Ordering::Relaxed),
            timed_out: self.timed_out.load(Ordering::Relaxed),
        }
    }

    /// Goes on counting where the queue of the older configuration stopped.
    pub fn adopt(&self, old: &Queue) {
        let Counted { size: _, overflows, waited, timed_out } = old.counted();
        self.overflows.store(overflows, Ordering::Relaxed);
        self.waited.store(waited, Ordering::Relaxed);
        self.timed_out.store(timed_out, Ordering::Relaxed);
    }

    /// Whether nobody waits: then a new exchange may ask for a peer at once.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.size.load(Ordering::SeqCst) == 0
    }

    /// Lets the first exchange try again: a peer was given back, or the servers changed.
    #[inline]
    pub fn offer(&self) {
        if !self.is_empty() {
            self.lock().call_first();
        }
    }

    /// Takes a place; `None` if all are taken.
    fn enter(self: &Arc<Queue>) -> Option<Ticket> {
        let mut places = self.lock();
        if places.list.len() >= self.most {
            self.overflows.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let number = places.next;
        places.next += 1;
        // The first one tries at once: a peer may have become free before the exchange was in the queue.
        let may_try = places.list.is_empty();
        places.list.push_back(Place { number, may_try, waker: None });
        self.size.store(places.list.len(), Ordering::SeqCst);
        self.waited.fetch_add(1, Ordering::Relaxed);
        Some(Ticket { queue: self.clone(), number, since: clock::now() })
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        // Each step leaves a valid list.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn call_first(&mut self) {
        let Some(first) = self.list.front_mut() else { return };
        first.may_try = true;
        if let Some(waker) = first.waker.take() {
            waker.wake();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut places = self.queue.lock();
        let was_first = places.list.front().is_some_and(|first| first.number == self.number);
        places.list.retain(|place| place.number != self.number);
        self.queue.size.store(places.list.len(), Ordering::SeqCst);
        if was_first {
            places.call_first();
        }
    }
}

impl Ticket {
    /// Microseconds since the exchange entered the queue.
    pub fn waited_us(&self) -> u64 {
        clock::now().us_since(self.since)
    }

    fn poll_turn(&self, context: &Context<'_>) -> Turn {
        let mut places = self.queue.lock();
        let Some(at) = places.list.iter().position(|place| place.number == self.number) else { return Turn::Try };
        let Some(place) = places.list.get_mut(at) else { return Turn::Try };
        if std::mem::take(&mut place.may_try) {
            return Turn::Try;
        }
        place.waker = Some(context.waker().clone());
        if at == 0 { Turn::First } else { Turn::Behind }
    }

    /// Waits until the exchange may ask for a peer; `None` if its time is over.
    async fn turn(&self, watched: Option<&Conn>) -> Result<Option<()>, Gone> {
        let (give_up, pause) = (Deadline::new(), Deadline::new());
        give_up.set_at(self.since + self.queue.timeout);
        poll_fn(|context| {
            match self.poll_turn(context) {
                Turn::Try => return Poll::Ready(Ok(Some(()))),
                Turn::First if !pause.is_set() => pause.set(PAUSE),
                Turn::First | Turn::Behind => {}
            }
            if give_up.poll_expired().is_ready() {
                return Poll::Ready(Ok(None));
            }
            if let Some(Poll::Ready(error)) = watched.map(Conn::poll_gone) {
                return Poll::Ready(Err(Gone::Closed(error)));
            }
            if pause.is_set() && pause.poll_expired().is_ready() {
                return Poll::Ready(Ok(Some(())));
            }
            Poll::Pending
        })
        .await
    }
}

/// Waits until the exchange may ask for a peer of the group of this name again; takes a place in the queue if it has
/// none. The connection is that of the client, if nobody else needs the answer.
pub async fn wait(
    exchange: &mut Exchange<'_>,
    watched: Option<&Conn>,
    name: &str,
    queue: &Arc<Queue>,
    ticket: Option<Ticket>,
) -> Result<Ticket, Refused> {
    exchange.facts.step = Step::Queue;
    let ticket = match ticket {
        Some(ticket) => ticket,
        None => {
            let Some(ticket) = queue.enter() else {
                exchange.facts.step = Step::Connect;
                return Err(refuse(exchange, name, 0, format_args!("upstream queue is full")));
            };
            exchange.log(Level::Info, format_args!("no server of upstream \"{name}\" is free, the request is queued"));
            ticket
        }
    };
    match ticket.turn(watched).await {
        Ok(Some(())) => Ok(ticket),
        Ok(None) => {
            queue.timed_out.fetch_add(1, Ordering::Relaxed);
            let waited_us = leave(exchange.worker, ticket);
            Err(refuse(exchange, name, waited_us, format_args!("upstream timed out (110: Connection timed out)")))
        }
        Err(gone) => {
            leave(exchange.worker, ticket);
            exchange.log(Level::Info, format_args!("client prematurely closed connection"));
            Err(Refused::Gone(gone))
        }
    }
}

/// Leaves the queue; returns the microseconds in it.
pub fn leave(worker: &Worker, ticket: Ticket) -> u64 {
    let waited_us = ticket.waited_us();
    worker.board.took(Leg::Queue, waited_us);
    waited_us
}

fn refuse(exchange: &mut Exchange<'_>, name: &str, queue_us: u64, what: std::fmt::Arguments<'_>) -> Refused {
    let group = Try::at(name.into());
    exchange.tries.push(Try { status: 502, why: Some(Why::Queue), queue_us, ..group });
    exchange.log(Level::Error, what);
    Refused::Unserved
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn turn(ticket: &Ticket) -> Turn {
        ticket.poll_turn(&Context::from_waker(Waker::noop()))
    }

    #[test]
    fn the_first_tries_and_the_others_follow_in_order() {
        let queue = Arc::new(Queue::new(3, TIMEOUT_DEFAULT));
        assert!(queue.is_empty());
        let [one, two, three] = [(); 3].map(|()| queue.enter().unwrap());
        // A peer may have become free before it entered; after this try it waits.
        assert_eq!(
            [turn(&one), turn(&one), turn(&two), turn(&three)],
            [Turn::Try, Turn::First, Turn::Behind, Turn::Behind]
        );
        queue.offer();
        assert_eq!([turn(&two), turn(&one), turn(&one)], [Turn::Behind, Turn::Try, Turn::First]);
        // The second one gives up; the place behind it stays in order.
        drop(two);
        assert_eq!(turn(&three), Turn::Behind);
        drop(one);
        assert_eq!([turn(&three), turn(&three)], [Turn::Try, Turn::First]);
        drop(three);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_refuses_and_counts() {
        let queue = Arc::new(Queue::new(2, TIMEOUT_DEFAULT));
        let held = [queue.enter(), queue.enter()];
        assert!(queue.enter().is_none());
        assert_eq!(queue.counted(), Counted { size: 2, overflows: 1, waited: 2, timed_out: 0 });
        drop(held);
        let next = Queue::new(9, TIMEOUT_DEFAULT);
        next.adopt(&queue);
        assert_eq!(next.counted(), Counted { size: 0, overflows: 1, waited: 2, timed_out: 0 });
        assert!(queue.enter().is_some());
    }
}
