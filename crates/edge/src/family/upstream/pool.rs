//! Idle connections to peers: one pool a worker, group by group, the last put in taken out first.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use weir_net::{Deadline, Instant, Transport, clock};

use weir_peers::pool_policy::{Finished, PoolPolicy};
use crate::counters::{self, AllCounters};
use crate::family::proxy_ssl::Party;
use crate::h2;
use crate::worker::Place;

/// A connection to a peer. Boxed wherever it goes: it changes hands several times an exchange.
pub struct Link {
    /// What its bytes come and go by.
    pub stream: Transport,
    /// Bounds whatever the peer is waited for.
    pub deadline: Deadline,
    /// The peer's index in its group.
    pub peer: usize,
    /// The local address it was asked to come from (`proxy_bind`): only for exchanges that ask for the same.
    pub bound: Option<SocketAddr>,
    /// Whom TLS was made with; none speaks plain text. Likewise only for exchanges that ask for the same.
    pub party: Option<Arc<Party>>,
    /// When it was opened.
    pub opened: Instant,
    /// Exchanges it carried before this one.
    pub carried: u64,
    /// Its place in the worker's connection table; a stream among others has none of its own.
    pub place: Option<Place>,
    /// It is a stream among others (HTTP/2), and this one.
    pub h2: Option<Held>,
}

/// A stream that is left when this is dropped: a socket closes by itself.
pub struct Held(pub Rc<h2::Stream>);

impl Deref for Held {
    type Target = h2::Stream;

    fn deref(&self) -> &h2::Stream {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// What a connection must have been made with, beside the peer.
#[derive(Clone, Copy)]
pub struct Terms<'t> {
    /// The local address (`proxy_bind`).
    pub bound: Option<SocketAddr>,
    /// Whom TLS is to be made with.
    pub party: Option<&'t Arc<Party>>,
}

impl Terms<'_> {
    /// Any connection without TLS, from wherever the kernel chose.
    pub const PLAIN: Terms<'static> = Terms { bound: None, party: None };

    /// Whether any connection without TLS does.
    pub fn is_plain(self) -> bool {
        self.bound.is_none() && self.party.is_none()
    }

    /// Whether a connection was made with them.
    pub fn fit(self, link: &Link) -> bool {
        link.bound == self.bound && is_same(link.party.as_ref(), self.party)
    }
}

/// Whether two parties are one.
pub(super) fn is_same(one: Option<&Arc<Party>>, other: Option<&Arc<Party>>) -> bool {
    match (one, other) {
        (None, None) => true,
        // Nearly always the same one: no need to compare names.
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

struct Idle {
    link: Box<Link>,
    until: Instant,
}

/// All idle connections of one worker, by the number of the group.
pub struct Pools {
    shelf: Shelf,
    groups: RefCell<Vec<VecDeque<Idle>>>,
    waiting: RefCell<VecDeque<(usize, usize, Weak<Handover>)>>,
}

/// A try that waits for a connection another exchange has done with; it leaves the queue by being dropped.
#[derive(Default)]
pub struct Handover {
    party: Option<Arc<Party>>,
    link: Cell<Option<Box<Link>>>,
    waker: Cell<Option<Waker>>,
}

impl Handover {
    /// The connection, once there is one.
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<Box<Link>> {
        match self.link.take() {
            Some(link) => Poll::Ready(link),
            None => {
                self.waker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

/// A link that looked closed is dropped and the next one looked at, this often at most.
const DEAD_LINKS_MAX: usize = 64;

/// Where other workers see how many there are to have.
pub struct Shelf {
    /// All workers' counters.
    pub counters: AllCounters,
    /// The seat of the worker whose pools these are.
    pub seat: usize,
    /// The configuration that numbers groups and peers.
    pub generation: u32,
}

impl Shelf {
    fn shift(&self, group: usize, link: &Link, by: i64) {
        if matches!(link.stream, Transport::Plain(_)) && link.bound.is_none() {
            let lendable = &self.counters.seat(self.seat).lendable;
            counters::shift(lendable.to(self.generation, group, link.peer), by);
        }
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        for (group, idle) in self.groups.get_mut().iter().enumerate() {
            idle.iter().for_each(|idle| self.shelf.shift(group, &idle.link, -1));
        }
    }
}

impl Pools {
    /// No connections yet.
    pub fn new(shelf: Shelf) -> Pools {
        Pools { shelf, groups: RefCell::default(), waiting: RefCell::default() }
    }

    /// Takes the most recently used live connection to a peer that was made on such terms.
    pub fn take(&self, group: usize, peer: usize, terms: Terms<'_>) -> Option<Box<Link>> {
        let mut groups = self.groups.borrow_mut();
        let idle = groups.get_mut(group)?;
        for _ in 0..DEAD_LINKS_MAX {
            let index = idle.iter().rposition(|idle| idle.link.peer == peer && terms.fit(&idle.link))?;
            // The order of the rest is the order of use: keep it.
            let last = index + 1 == idle.len();
            let Idle { link, until } = if last { idle.pop_back() } else { idle.remove(index) }?;
            self.shelf.shift(group, &link, -1);
            if clock::now() < until && !link.stream.peek_closed() {
                return Some(link);
            }
        }
        None
    }

    /// Keeps a connection if the policy allows; otherwise it is closed. A full pool closes its oldest.
    pub fn put(&self, group: usize, mut link: Box<Link>, policy: &PoolPolicy, is_reusable: bool) {
        if link.h2.is_some() {
            return; // its line is kept, not the stream
        }
        let now = clock::now();
        link.carried += 1;
        let finished = Finished {
            requests: link.carried,
            age_ms: now.ms_since(link.opened),
            reusable: is_reusable,
            request_complete: true,
            quiet: !link.stream.peek_closed(),
        };
        if !policy.may_keep(&finished) {
            return;
        }
        // Its deadline stays as it is: nobody asks about it before it is moved, and moving it twice an exchange costs.
        let Some(link) = self.hand_over(group, link) else { return };
        let mut groups = self.groups.borrow_mut();
        if groups.len() <= group {
            groups.resize_with(group + 1, VecDeque::new);
        }
        if let Some(idle) = groups.get_mut(group) {
            if idle.len() >= policy.max_idle
                && let Some(oldest) = idle.pop_front()
            {
                self.shelf.shift(group, &oldest.link, -1);
            }
            self.shelf.shift(group, &link, 1);
            idle.push_back(Idle { link, until: now + Duration::from_millis(policy.idle_timeout_ms) });
        }
    }

    /// Waits for a connection to a peer, behind those that wait already.
    pub fn wait(&self, group: usize, peer: usize, party: Option<&Arc<Party>>) -> Rc<Handover> {
        let handover = Rc::new(Handover { party: party.cloned(), ..Handover::default() });
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|(_, _, waits)| waits.strong_count() > 0);
        waiting.push_back((group, peer, Rc::downgrade(&handover)));
        handover
    }

    /// Whether a try waits for a connection to a peer.
    pub fn is_awaited(&self, group: usize, peer: usize) -> bool {
        self.waiting
            .borrow()
            .iter()
            .any(|(number, index, waits)| (*number, *index) == (group, peer) && waits.strong_count() > 0)
    }

    /// Gives a connection to whoever waits for one longest; back if nobody does.
    fn hand_over(&self, group: usize, link: Box<Link>) -> Option<Box<Link>> {
        if link.bound.is_some() {
            return Some(link); // who waits asked for no particular local address
        }
        let mut waiting = self.waiting.borrow_mut();
        let fits = |(number, peer, waits): &(usize, usize, Weak<Handover>)| {
            let is_wanted = |waits: Rc<Handover>| is_same(waits.party.as_ref(), link.party.as_ref());
            // One that nobody waits for any more fits too: it is taken away below.
            *number == group && *peer == link.peer && waits.upgrade().is_none_or(is_wanted)
        };
        while let Some(at) = waiting.iter().position(fits) {
            if let Some(handover) = waiting.remove(at).and_then(|(_, _, waits)| waits.upgrade()) {
                handover.link.set(Some(link));
                if let Some(waker) = handover.waker.take() {
                    waker.wake();
                }
                return None;
            }
        }
        Some(link)
    }

    /// Closes what lay idle too long or was closed by its peer.
    pub fn sweep(&self) {
        let now = clock::now();
        for (group, idle) in self.groups.borrow_mut().iter_mut().enumerate() {
            idle.retain(|idle| {
                let stays = now < idle.until && !idle.link.stream.peek_closed();
                if !stays {
                    self.shelf.shift(group, &idle.link, -1);
                }
                stays
            });
        }
    }

    /// Closes the connection that lay idle longest, of all groups; `false` when none is kept.
    pub fn close_oldest(&self) -> bool {
        let mut groups = self.groups.borrow_mut();
        // Within a group they stand in the order of use.
        let kept = groups.iter_mut().enumerate().filter(|(_, idle)| !idle.is_empty());
        let oldest = kept.min_by_key(|(_, idle)| idle.front().map(|idle| idle.until));
        let oldest = oldest.and_then(|(group, idle)| Some((group, idle.pop_front()?)));
        oldest.inspect(|(group, idle)| self.shelf.shift(*group, &idle.link, -1)).is_some()
    }

    /// Tells of each group how many idle connections are kept to each of its peers, as far as the last that has any.
    pub fn count_idle(&self, mut tell: impl FnMut(usize, &[u64])) {
        let mut counts: Vec<u64> = Vec::new();
        for (number, idle) in self.groups.borrow().iter().enumerate() {
            counts.clear();
            for idle in idle {
                if counts.len() <= idle.link.peer {
                    counts.resize(idle.link.peer + 1, 0);
                }
                if let Some(count) = counts.get_mut(idle.link.peer) {
                    *count += 1;
                }
            }
            tell(number, &counts);
        }
    }

    /// Idle connections kept now.
    pub fn len(&self) -> usize {
        self.groups.borrow().iter().map(VecDeque::len).sum()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
