//! Idle connections to the peers of a group: each worker has one pool for each group; the last connection put in is taken out
//! first.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_http::hold::counters::{self, AllCounters};
use weir_http::hold::table_place::TablePlace;
use weir_http::receive::h2;
use weir_net::{Deadline, Instant, Local, Transport, clock};
use weir_peers::pool_policy::{Finished, PoolPolicy};
use weir_wire::h2::connection::Connection;

use crate::family::proxy_ssl::Party;
use crate::family::proxy_ssl::sessions::AllSessions;

/// A connection to a peer. Always boxed: it moves several times per exchange.
pub struct Link {
    /// The transport of its bytes.
    pub stream: Transport,
    /// Limits every wait for the peer.
    pub deadline: Deadline,
    /// The peer's index in its group.
    pub peer: usize,
    /// The local address (`proxy_bind`): the connection serves only exchanges with the same one.
    pub bound: Option<Local>,
    /// The TLS party; `None` for plain text. The connection serves only exchanges with the same party.
    pub party: Option<Arc<Party>>,
    /// The time when it was opened.
    pub opened: Instant,
    /// Exchanges it carried before this one.
    pub carried: u32,
    /// The seconds for which the peer keeps it while it is idle; [`UNTOLD`] if the last answer has not told them.
    pub peer_keeps_s: u32,
    /// Its place in the worker's connection table; a stream of a line has none of its own.
    pub place: Option<TablePlace>,
    /// The stream, if it is one of a line (HTTP/2).
    pub h2: Option<Held>,
}

/// A peer that does not tell how long it keeps a connection: as if it were for ever.
pub const UNTOLD: u32 = u32::MAX;

/// The stream of a link. Dropping this leaves the stream; a socket closes itself.
pub struct Held {
    stream: Rc<h2::stream::Stream>,
    line: Weak<dyn Carries>,
}

/// A connection that carries streams.
pub trait Carries {
    /// A stream has left it.
    fn left(&self);
}

impl Held {
    /// A stream of this connection.
    pub fn new(stream: Rc<h2::stream::Stream>, line: Weak<dyn Carries>) -> Held {
        Held { stream, line }
    }
}

impl Deref for Held {
    type Target = h2::stream::Stream;

    fn deref(&self) -> &h2::stream::Stream {
        &self.stream
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.stream.leave();
        // At once, as a link is put into the pool: the client may ask another worker as soon as it has the answer.
        if let Some(line) = self.line.upgrade() {
            line.left();
        }
    }
}

/// A connection on its way to another worker: without the parts that belong to a worker.
pub(super) struct Loan {
    pub(super) fd: OwnedFd,
    pub(super) opened: Instant,
    pub(super) carried: u32,
    /// The state of a connection that carries streams.
    pub(super) wire: Option<Box<Connection>>,
}

/// The requirements for a connection, besides the peer.
#[derive(Clone, Copy)]
pub struct Terms<'t> {
    /// The local address (`proxy_bind`).
    pub bound: Option<&'t Local>,
    /// The TLS party.
    pub party: Option<&'t Arc<Party>>,
    /// The TLS sessions of the group, if all workers share them.
    pub sessions: Option<&'t AllSessions>,
}

impl Terms<'_> {
    /// Any connection without TLS, with a local address that the kernel chose.
    pub const PLAIN: Terms<'static> = Terms { bound: None, party: None, sessions: None };

    /// Whether any connection without TLS will do.
    pub fn is_plain(self) -> bool {
        self.bound.is_none() && self.party.is_none()
    }

    /// Whether a connection meets the terms.
    pub fn fit(self, link: &Link) -> bool {
        link.bound.as_ref() == self.bound && is_same(link.party.as_ref(), self.party)
    }
}

/// Whether two parties are equal.
pub(super) fn is_same(one: Option<&Arc<Party>>, other: Option<&Arc<Party>>) -> bool {
    match (one, other) {
        (None, None) => true,
        // Both are nearly always the same object, so weir rarely compares names.
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

struct Idle {
    link: Box<Link>,
    until: Instant,
}

/// The idle connections of one worker to the peers of a group.
pub struct Pool {
    shelf: Shelf,
    idle: RefCell<VecDeque<Idle>>,
    waiting: RefCell<VecDeque<(usize, Weak<Handover>)>>,
}

/// A try that waits for a connection of another exchange, or for a local port; dropping it leaves the queue.
#[derive(Default)]
pub struct Handover {
    party: Option<Arc<Party>>,
    news: Cell<Option<News>>,
    waker: Cell<Option<Waker>>,
}

/// The end of a wait.
pub enum News {
    /// A connection that another exchange has finished with.
    Link(Box<Link>),
    /// The try before it has got a local port: there may be another one.
    Port,
}

impl Handover {
    /// What the try waits for, once it is there.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<News> {
        match self.news.take() {
            Some(news) => Poll::Ready(news),
            None => {
                self.waker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }

    fn tell(&self, news: News) {
        self.news.set(Some(news));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The most links that look closed and are dropped in one search for a live one.
const DEAD_LINKS_MAX: usize = 64;

/// The counters that show other workers how many connections they can borrow.
#[derive(Clone)]
pub struct Shelf {
    /// All workers' counters.
    pub counters: AllCounters,
    /// The seat of the worker that owns the pool.
    pub seat: usize,
    /// The configuration that numbers groups and peers.
    pub generation: u32,
    /// The number of the group.
    pub group: usize,
}

impl Shelf {
    /// Changes the number of connections to a peer that others can borrow.
    pub fn offer(&self, peer: usize, by: i64) {
        let lendable = &self.counters.seat(self.seat).lendable;
        counters::shift(lendable.to(self.generation, self.group, peer), by);
    }

    /// The configuration and the number of the group.
    pub fn place(&self) -> (u32, usize) {
        (self.generation, self.group)
    }

    fn shift(&self, link: &Link, by: i64) {
        if matches!(link.stream, Transport::Plain(_)) && link.bound.is_none() {
            self.offer(link.peer, by);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.idle.get_mut().iter().for_each(|idle| self.shelf.shift(&idle.link, -1));
    }
}

impl Pool {
    /// No connections yet.
    pub fn new(shelf: Shelf) -> Pool {
        Pool { shelf, idle: RefCell::default(), waiting: RefCell::default() }
    }

    /// The configuration and the number of the group by which other workers find it.
    pub fn place(&self) -> (u32, usize) {
        self.shelf.place()
    }

    /// Takes the most recently used live connection to a peer with these terms.
    pub fn take(&self, peer: usize, terms: Terms<'_>) -> Option<Box<Link>> {
        let idle = &mut *self.idle.borrow_mut();
        let fits = |idle: &Idle| idle.link.peer == peer && terms.fit(&idle.link);
        for _ in 0..DEAD_LINKS_MAX {
            // Usually the newest connection fits, so no search is needed.
            let index = if idle.back().is_some_and(fits) { idle.len() - 1 } else { idle.iter().rposition(fits)? };
            // The remaining connections are in the order of use: keep that order.
            let last = index + 1 == idle.len();
            let Idle { link, until } = if last { idle.pop_back() } else { idle.remove(index) }?;
            self.shelf.shift(&link, -1);
            if clock::now() < until && !link.stream.peek_closed() {
                return Some(link);
            }
        }
        None
    }

    /// Keeps a connection if the policy allows; otherwise closes it. A full pool closes its oldest.
    pub fn put(&self, mut link: Box<Link>, policy: &PoolPolicy, is_reusable: bool) {
        if link.h2.is_some() {
            return; // the line is kept, not the stream
        }
        let now = clock::now();
        link.carried = link.carried.saturating_add(1);
        let finished = Finished {
            requests: link.carried.into(),
            age_ms: now.ms_since(link.opened),
            reusable: is_reusable,
            request_complete: true,
            quiet: !link.stream.peek_closed(),
        };
        if !policy.may_keep(&finished) {
            return;
        }
        // The deadline stays: nothing checks it before it is set again, and setting it twice per exchange costs time.
        let Some(link) = self.hand_over(link) else { return };
        let mut idle = self.idle.borrow_mut();
        if idle.len() >= policy.max_idle
            && let Some(oldest) = idle.pop_front()
        {
            self.shelf.shift(&oldest.link, -1);
        }
        self.shelf.shift(&link, 1);
        let until = now + Duration::from_millis(policy.idle_ms(link.peer_keeps_s));
        idle.push_back(Idle { link, until });
    }

    /// Joins the queue for a connection to a peer.
    pub fn wait(&self, peer: usize, party: Option<&Arc<Party>>) -> Rc<Handover> {
        let handover = Rc::new(Handover { party: party.cloned(), ..Handover::default() });
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|(_, waits)| waits.strong_count() > 0);
        waiting.push_back((peer, Rc::downgrade(&handover)));
        handover
    }

    /// Whether a try waits for a connection to a peer.
    pub fn is_awaited(&self, peer: usize) -> bool {
        self.longest(peer).is_some()
    }

    /// The try that has waited longest for a connection to a peer.
    fn longest(&self, peer: usize) -> Option<Rc<Handover>> {
        let waiting = self.waiting.borrow();
        let mut to_peer = waiting.iter().filter(|(index, _)| *index == peer);
        to_peer.find_map(|(_, waits)| waits.upgrade())
    }

    /// Whether no other try has waited longer for a connection to the same peer.
    pub fn is_longest(&self, peer: usize, handover: &Handover) -> bool {
        self.longest(peer).is_some_and(|longest| std::ptr::eq(Rc::as_ptr(&longest), handover))
    }

    /// After a try has got a local port, the longest waiter asks for one too.
    pub fn tell_of_port(&self, peer: usize) {
        if let Some(longest) = self.longest(peer) {
            longest.tell(News::Port);
        }
    }

    /// Gives a connection to the longest waiter; returns it if nobody waits.
    fn hand_over(&self, link: Box<Link>) -> Option<Box<Link>> {
        if link.bound.is_some() {
            return Some(link); // waiters want no particular local address
        }
        let mut waiting = self.waiting.borrow_mut();
        if waiting.is_empty() {
            return Some(link); // as nearly always
        }
        let fits = |(peer, waits): &(usize, Weak<Handover>)| {
            let is_wanted = |waits: Rc<Handover>| is_same(waits.party.as_ref(), link.party.as_ref());
            // An abandoned entry matches too: the loop below removes it.
            *peer == link.peer && waits.upgrade().is_none_or(is_wanted)
        };
        while let Some(at) = waiting.iter().position(fits) {
            if let Some(handover) = waiting.remove(at).and_then(|(_, waits)| waits.upgrade()) {
                handover.tell(News::Link(link));
                return None;
            }
        }
        Some(link)
    }

    /// Closes connections that were idle too long or that the peer closed.
    pub fn sweep(&self) {
        let now = clock::now();
        self.idle.borrow_mut().retain(|idle| {
            let stays = now < idle.until && !idle.link.stream.peek_closed();
            if !stays {
                self.shelf.shift(&idle.link, -1);
            }
            stays
        });
    }

    /// The end of the connection that was idle for longest; `None` if none is kept.
    pub fn oldest(&self) -> Option<Instant> {
        // The connections are in the order of use.
        self.idle.borrow().front().map(|idle| idle.until)
    }

    /// Closes the connection that was idle for longest; `false` if none is kept.
    pub fn close_oldest(&self) -> bool {
        let oldest = self.idle.borrow_mut().pop_front();
        oldest.inspect(|idle| self.shelf.shift(&idle.link, -1)).is_some()
    }

    /// How many idle connections each peer has, up to the last peer that has any.
    pub fn count_idle(&self) -> Vec<u64> {
        let mut counts: Vec<u64> = Vec::new();
        for idle in &*self.idle.borrow() {
            if counts.len() <= idle.link.peer {
                counts.resize(idle.link.peer + 1, 0);
            }
            if let Some(count) = counts.get_mut(idle.link.peer) {
                *count += 1;
            }
        }
        counts
    }

    /// The number of idle connections.
    pub fn len(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{link, on_worker};
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::Ordering;
    use weir_net::worker::yield_now;

    fn is_told_of_port(handover: &Handover) -> bool {
        matches!(handover.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(News::Port))
    }

    #[test]
    fn tries_without_a_port_get_their_turn_one_after_another() {
        let pool = Pool::new(Shelf { counters: AllCounters::new(), seat: 0, generation: 0, group: 1 });
        let [first, second] = [pool.wait(7, None), pool.wait(7, None)];
        let elsewhere = pool.wait(8, None);
        assert!(pool.is_longest(7, &first) && !pool.is_longest(7, &second) && pool.is_longest(8, &elsewhere));
        drop(first);
        pool.tell_of_port(7);
        assert!(is_told_of_port(&second) && pool.is_longest(7, &second));
        assert!(!is_told_of_port(&second) && !is_told_of_port(&elsewhere), "each port is told to one, once");
        drop(second);
        pool.tell_of_port(7);
        assert!(!pool.is_awaited(7) && pool.is_awaited(8));
    }

    fn empty() -> Pool {
        let counters = AllCounters::new();
        counters.occupy(0);
        Pool::new(Shelf { counters, seat: 0, generation: 0, group: 1 })
    }

    /// Keeps connections to these peers, marked by their order; returns the peers' ends.
    fn filled(pool: &Pool, peers: &[usize], policy: &PoolPolicy) -> Vec<UnixStream> {
        let put = |(number, peer): (usize, &usize)| {
            let (mut link, end) = link(*peer);
            link.carried = 10 * number as u32;
            pool.put(link, policy, true);
            end
        };
        peers.iter().enumerate().map(put).collect()
    }

    /// The order numbers of the connections to a peer, as they are taken.
    fn taken(pool: &Pool, peer: usize) -> Vec<u32> {
        std::iter::from_fn(|| pool.take(peer, Terms::PLAIN)).map(|link| link.carried / 10).collect()
    }

    #[test]
    fn the_newest_connection_to_the_peer_is_taken_first_and_a_full_pool_closes_the_oldest() {
        let most = |max_idle| PoolPolicy { max_idle, ..PoolPolicy::default() };
        for (max_idle, first, second) in
            [(9, &[3, 2, 0][..], &[4, 1][..]), (3, &[3, 2], &[4]), (1, &[], &[4]), (0, &[], &[])]
        {
            on_worker(async move {
                let pool = empty();
                let _ends = filled(&pool, &[7, 8, 7, 7, 8], &most(max_idle));
                assert_eq!(pool.len(), max_idle.min(5), "{max_idle}");
                assert_eq!((taken(&pool, 7), taken(&pool, 8)), (first.to_vec(), second.to_vec()), "{max_idle}");
                assert!(pool.is_empty() && pool.take(7, Terms::PLAIN).is_none());
            });
        }
    }

    #[test]
    fn a_connection_serves_only_exchanges_with_its_terms() {
        on_worker(async {
            let pool = empty();
            let address = |text: &str| Some(Local { address: text.parse().unwrap(), transparent: false });
            let (mut bound, _end) = link(7);
            bound.bound = address("127.0.0.5:0");
            pool.put(bound, &PoolPolicy::default(), true);
            let wants = |bound: Option<Local>| pool.take(7, Terms { bound: bound.as_ref(), ..Terms::PLAIN });
            assert!(wants(None).is_none() && wants(address("127.0.0.6:0")).is_none());
            assert!(wants(address("127.0.0.5:0")).is_some() && wants(address("127.0.0.5:0")).is_none());
        });
    }

    #[test]
    fn a_connection_that_its_peer_has_closed_or_used_is_no_answer_s() {
        on_worker(async {
            let pool = empty();
            let mut ends = filled(&pool, &[7, 7, 7], &PoolPolicy::default());
            drop(ends.remove(2));
            std::io::Write::write_all(&mut ends[1], b"unasked").unwrap();
            yield_now().await;
            assert_eq!(taken(&pool, 7), [0], "the newer two are dropped on the way");
            assert!(pool.is_empty());
            let _ends = filled(&pool, &[7, 7], &PoolPolicy::default());
            drop(filled(&pool, &[8], &PoolPolicy::default()));
            yield_now().await;
            pool.sweep();
            assert_eq!(pool.len(), 2);
        });
    }

    #[test]
    fn the_time_that_the_peer_tells_bounds_the_time_in_the_pool() {
        on_worker(async {
            for (peer_keeps_s, idle_timeout_ms, is_usable) in
                [(UNTOLD, 60_000, true), (60, 60_000, true), (0, 60_000, false), (60, 0, false)]
            {
                let pool = empty();
                let (mut kept, _end) = link(7);
                kept.peer_keeps_s = peer_keeps_s;
                pool.put(kept, &PoolPolicy { idle_timeout_ms, ..PoolPolicy::default() }, true);
                assert_eq!(pool.len(), 1);
                assert_eq!(pool.take(7, Terms::PLAIN).is_some(), is_usable, "{peer_keeps_s} {idle_timeout_ms}");
            }
        });
    }

    #[test]
    fn a_connection_is_kept_only_while_its_policy_allows() {
        on_worker(async {
            let policy = PoolPolicy { max_requests: 3, ..PoolPolicy::default() };
            for (carried, is_reusable, is_kept) in
                [(0, true, true), (1, true, true), (2, true, false), (0, false, false)]
            {
                let pool = empty();
                let (mut used, _end) = link(7);
                used.carried = carried;
                pool.put(used, &policy, is_reusable);
                assert_eq!(pool.len() == 1, is_kept, "{carried} {is_reusable}");
            }
        });
    }

    #[test]
    fn a_try_that_waits_gets_the_next_free_connection_to_its_peer() {
        on_worker(async {
            let pool = empty();
            let (first, second, other) = (pool.wait(7, None), pool.wait(7, None), pool.wait(8, None));
            let _ends = filled(&pool, &[7, 7, 7], &PoolPolicy::default());
            let got = |handover: &Handover| match handover.poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(News::Link(link)) => Some(link.carried / 10),
                Poll::Ready(News::Port) | Poll::Pending => None,
            };
            assert_eq!((got(&first), got(&second), got(&other)), (Some(0), Some(1), None));
            assert_eq!(taken(&pool, 7), [2], "nobody waited for the third");
        });
    }

    #[test]
    fn other_workers_see_how_many_connections_they_may_borrow() {
        on_worker(async {
            let pool = empty();
            let lendable = |peer| pool.shelf.counters.seat(0).lendable.to(0, 1, peer).load(Ordering::Relaxed);
            let _ends = filled(&pool, &[7, 7, 8], &PoolPolicy { max_idle: 3, ..PoolPolicy::default() });
            assert_eq!((lendable(7), lendable(8)), (2, 1));
            assert_eq!(pool.count_idle(), [0, 0, 0, 0, 0, 0, 0, 2, 1]);
            assert!(pool.oldest().is_some() && pool.close_oldest());
            assert_eq!((lendable(7), lendable(8), pool.len()), (1, 1, 2));
            let newest = pool.take(7, Terms::PLAIN).unwrap();
            assert_eq!((lendable(7), newest.carried / 10), (0, 1), "the oldest of all was closed");
            let counters = pool.shelf.counters.clone();
            drop(pool);
            assert_eq!(counters.seat(0).lendable.to(0, 1, 8).load(Ordering::Relaxed), 0);
        });
    }
}
