//! Connections that are kept for the next request, with a limit on their number.
//!
//! There is one [`Sockets`] for each virtual user, or one for a whole worker with `http.pool` (artillery.md §1.7,
//! §1.8). If no connection is free, a request waits in line.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use weir_net::tls::Sessions;
use weir_net::{Instant, clock};

use crate::client::line::{Line, STREAMS_MAX};
use crate::client::{IDLE_MAX, KeptConnection, Origin, Protocol};
use crate::url::Scheme;

/// TLS 1.3 tickets kept for one virtual user. A shared pool keeps one for each connection, up to
/// [`POOL_TICKETS_MAX`].
const OWN_TICKETS: usize = 1;
/// See [`OWN_TICKETS`].
const POOL_TICKETS_MAX: usize = 64;

/// Connections of one virtual user, or shared by all: at most `limit` for each origin.
pub(super) struct Sockets {
    limit: usize,
    origins: RefCell<Vec<OriginSockets>>,
    /// TLS sessions that can be resumed; made when the first connection needs them.
    sessions: OnceCell<Box<Sessions>>,
    tickets_max: usize,
}

/// The connections of one origin.
struct OriginSockets {
    origin: Rc<Origin>,
    in_use: usize,
    /// The connections that no request uses, the newest last.
    idle: Vec<KeptConnection>,
    /// Connections of HTTP/2 and of HTTP/3: also at most `limit` of each, with many requests on each.
    lines: Vec<Rc<Line>>,
    waiting: VecDeque<Rc<Waiter>>,
}

impl OriginSockets {
    fn of(origin: &Rc<Origin>) -> OriginSockets {
        OriginSockets {
            origin: origin.clone(),
            in_use: 0,
            idle: Vec::new(),
            lines: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Closes the connections that no request has used for [`IDLE_MAX`].
    fn close_old(&mut self, now: Instant) {
        // Requests give connections back in the order of their ends.
        let old = self.idle.partition_point(|kept| now.saturating_duration_since(kept.idle_since) >= IDLE_MAX);
        self.idle.drain(..old);
    }
}

/// A request that waits in line.
struct Waiter {
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Permission to use one connection; dropping it gives the connection back.
pub(super) struct Permit {
    sockets: Rc<Sockets>,
    origin: Rc<Origin>,
    /// The connection, if there is one.
    pub(super) kept: Option<KeptConnection>,
}

impl Sockets {
    /// Connections of one virtual user.
    pub(super) fn new(limit: usize) -> Rc<Sockets> {
        Sockets::with(limit, OWN_TICKETS)
    }

    /// Connections shared by all virtual users.
    pub(super) fn pool(limit: usize) -> Rc<Sockets> {
        Sockets::with(limit, limit.min(POOL_TICKETS_MAX))
    }

    fn with(limit: usize, tickets_max: usize) -> Rc<Sockets> {
        let origins = RefCell::new(Vec::new());
        Rc::new(Sockets { limit: limit.max(1), origins, sessions: OnceCell::new(), tickets_max })
    }

    /// The TLS sessions that a connection may resume. Artillery has one Node agent for each virtual user or one for
    /// all, and an agent resumes only its own sessions.
    pub(super) fn sessions(&self, origin: &Origin) -> Option<&Sessions> {
        (origin.scheme == Scheme::Https)
            .then(|| &**self.sessions.get_or_init(|| Box::new(Sessions::new(self.tickets_max))))
    }

    fn of_origin<T>(&self, origin: &Rc<Origin>, f: impl FnOnce(&mut OriginSockets) -> T) -> T {
        let mut origins = self.origins.borrow_mut();
        let index = origins.iter().position(|sockets| Rc::ptr_eq(&sockets.origin, origin));
        let index = index.unwrap_or_else(|| {
            let sockets = OriginSockets::of(origin);
            origins.reserve_exact(1);
            origins.push(sockets);
            origins.len() - 1
        });
        match origins.get_mut(index) {
            Some(sockets) => f(sockets),
            // This cannot happen: the entry was found or pushed just before.
            None => f(&mut OriginSockets::of(origin)),
        }
    }

    /// Closes the connections that no request has used for [`IDLE_MAX`].
    pub(super) fn close_old(&self, now: Instant) {
        self.origins.borrow_mut().iter_mut().for_each(|sockets| sockets.close_old(now));
    }

    /// The connection of a protocol to this origin with the fewest current requests. Makes another one if all are busy
    /// and the limit allows it.
    pub(super) fn line(&self, origin: &Rc<Origin>, protocol: Protocol) -> Rc<Line> {
        self.of_origin(origin, |sockets| {
            let lines = || sockets.lines.iter().filter(|line| line.protocol() == protocol);
            match lines().min_by_key(|line| line.load()) {
                Some(line) if line.load() == 0 || lines().count() >= self.limit => line.clone(),
                Some(_) | None => {
                    let line = Line::new(origin.clone(), protocol, STREAMS_MAX);
                    sockets.lines.reserve_exact(1);
                    sockets.lines.push(line.clone());
                    line
                }
            }
        })
    }

    /// A connection to this origin, or permission to open one; waits in line if there is none.
    pub(super) async fn acquire(self: &Rc<Sockets>, origin: &Rc<Origin>) -> Permit {
        if let Some(permit) = self.try_acquire(origin) {
            return permit;
        }
        let waiter = Rc::new(Waiter { granted: Cell::new(false), waker: RefCell::new(None) });
        self.of_origin(origin, |sockets| sockets.waiting.push_back(waiter.clone()));
        let place = Place { sockets: self, origin, waiter };
        poll_fn(|context| {
            if place.waiter.granted.get() {
                return Poll::Ready(());
            }
            place.waiter.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        place.waiter.granted.set(false);
        self.permit(origin, clock::now())
    }

    fn try_acquire(self: &Rc<Sockets>, origin: &Rc<Origin>) -> Option<Permit> {
        let is_free = self.of_origin(origin, |sockets| {
            let is_free = sockets.in_use < self.limit;
            sockets.in_use += usize::from(is_free);
            is_free
        });
        is_free.then(|| self.permit(origin, clock::now()))
    }

    fn permit(self: &Rc<Sockets>, origin: &Rc<Origin>, now: Instant) -> Permit {
        let kept = self.of_origin(origin, |sockets| {
            sockets.close_old(now);
            sockets.idle.pop()
        });
        Permit { sockets: self.clone(), origin: origin.clone(), kept }
    }

    /// A connection is free again: the first request in line gets it.
    fn release(&self, origin: &Rc<Origin>) {
        let waker = self.of_origin(origin, |sockets| match sockets.waiting.pop_front() {
            Some(next) => {
                next.granted.set(true);
                next.waker.take()
            }
            None => {
                sockets.in_use = sockets.in_use.saturating_sub(1);
                None
            }
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(kept) = self.kept.take() {
            self.sockets.of_origin(&self.origin, |sockets| {
                // One idle connection is usual; the default room for four would waste memory in each virtual user.
                if sockets.idle.is_empty() {
                    sockets.idle.reserve_exact(1);
                }
                sockets.idle.push(kept);
            });
        }
        self.sockets.release(&self.origin);
    }
}

/// A place in line. If the request leaves early, the place is removed, or a granted connection is passed on.
struct Place<'s> {
    sockets: &'s Rc<Sockets>,
    origin: &'s Rc<Origin>,
    waiter: Rc<Waiter>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.waiter.granted.get() {
            self.sockets.release(self.origin);
        } else {
            self.sockets
                .of_origin(self.origin, |sockets| sockets.waiting.retain(|waiter| !Rc::ptr_eq(waiter, &self.waiter)));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::client::{ReadyRequest, Resolver, exchange};
    use crate::url::Url;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;
    use weir_net::worker;

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_connection_that_was_idle_for_long_is_closed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 512]).unwrap();
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
                std::thread::spawn(move || stream.read(&mut [0; 512]));
            }
        });
        worker::block_on(async move {
            let (origin, sockets) = (Rc::new(Origin::of(&url, &Rc::default())), Sockets::new(2));
            let (head, timeout) = (b"GET / HTTP/1.1\r\n\r\n", Duration::from_secs(9));
            let call = ReadyRequest {
                origin: &origin,
                method: b"GET",
                head,
                body: b"",
                wants_body: false,
                sessions: None,
                timeout,
                started: None,
            };
            let mut permits = [sockets.acquire(&origin).await, sockets.acquire(&origin).await];
            let mut ends = Vec::new();
            for (permit, later) in permits.iter_mut().zip([Duration::ZERO, IDLE_MAX / 2]) {
                exchange(&mut permit.kept, &call, &Resolver::default()).await.unwrap();
                let kept = permit.kept.as_mut().unwrap();
                kept.idle_since = kept.idle_since + later;
                ends.push(kept.idle_since);
            }
            drop(permits);
            let idle = |sockets: &Sockets| sockets.of_origin(&origin, |sockets| sockets.idle.len());
            let (moment, is_there) = (Duration::from_millis(1), |permit: Permit| permit.kept.is_some());
            assert!(is_there(sockets.permit(&origin, ends[0] + (IDLE_MAX - moment))));
            assert_eq!(idle(&sockets), 2);
            assert!(is_there(sockets.permit(&origin, ends[0] + IDLE_MAX)));
            assert_eq!(idle(&sockets), 1, "the older one is closed");
            sockets.close_old(ends[1] + (IDLE_MAX - moment));
            assert_eq!(idle(&sockets), 1);
            sockets.close_old(ends[1] + IDLE_MAX);
            assert_eq!(idle(&sockets), 0);
            assert!(!is_there(sockets.permit(&origin, ends[1])));
        })
        .unwrap();
    }

    #[test]
    fn who_comes_first_is_served_first() {
        let order = worker::block_on(async {
            let sockets = Sockets::new(1);
            let origin = Rc::new(Origin::of(&Url::parse("http://127.0.0.1/").unwrap(), &Rc::default()));
            let order = Rc::new(RefCell::new(Vec::new()));
            let first = sockets.acquire(&origin).await;
            for number in 0..3 {
                let (sockets, origin, order) = (sockets.clone(), origin.clone(), order.clone());
                worker::spawn(async move {
                    let permit = sockets.acquire(&origin).await;
                    order.borrow_mut().push(number);
                    worker::yield_now().await;
                    drop(permit);
                });
            }
            worker::yield_now().await;
            worker::yield_now().await;
            assert!(order.borrow().is_empty());
            drop(first);
            assert!(sockets.try_acquire(&origin).is_none(), "those in line go first");
            for _ in 0..20 {
                worker::yield_now().await;
            }
            assert!(sockets.try_acquire(&origin).is_some());
            order.take()
        })
        .unwrap();
        assert_eq!(order, [0, 1, 2]);
    }
}
