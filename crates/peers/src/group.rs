//! An upstream group: its peers, its policy, and the state that workers have of it.
//!
//! Failures are shared. In a plain group each worker has its own turn of round robin and its own count of exchanges, in a
//! [`WorkerPart`]; it takes no lock. A group that compares all workers' exchanges, or limits them, or has a `zone`,
//! keeps both for all workers under a lock. This is nginx's rule, but nginx shares failures only with a `zone`.
//!
//! It is neither a pool of connections nor a resolver. A group's peers never change; a new list is a new group that
//! [`Group::adopt`]s the old one's state.
//!
//! Invariant: every `Ok` of [`Group::pick`] adds one to the peer's count of exchanges, and the matching
//! [`Group::release`] subtracts one.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::balance::{self, Affinity, Field, Policy, Ring, SHARES, Until};
use crate::health::{CheckRule, Health, Shown, State};
use crate::peer::{Peer, PeerState, Record, Slot, Times};
use crate::selection::{Held, Selection};

/// The most peers of one group, backups included.
pub const MAX_PEERS: usize = 4096;
/// The largest total weight of one list of a group; a consistent ring of that weight takes 128 MiB.
pub const MAX_TOTAL_WEIGHT: u32 = 100_000;

/// Peers that serve under one name, and the choice among them.
///
/// Shared by all workers. The semantics are those of nginx's upstream modules (nginx.org `ngx_http_upstream_module`),
/// with one addition: passive ejection never leaves a group without a peer (see [`Group::pick`]).
#[derive(Debug)]
pub struct Group {
    name: String,
    policy: Policy,
    /// Primaries first, then backups.
    slots: Box<[Slot]>,
    primary: List,
    backup: List,
    ring: Ring,
    /// The units of a full share: more than one if a peer has `slow_start`.
    shares: u16,
    /// All workers have one turn and one count, in `states` and in the slots.
    is_shared: bool,
    /// Guards picks of a shared group; never held during a wait.
    states: Mutex<Box<[PeerState]>>,
    /// The counts of the workers that have a part of it.
    counts: Mutex<Vec<Weak<[AtomicU32]>>>,
}

/// What one worker has of a plain group: its turn of round robin, and the exchanges that it has in progress.
///
/// Only its worker writes to it. A part of a shared group is empty.
#[derive(Debug, Default)]
pub struct WorkerPart {
    turns: RefCell<Box<[PeerState]>>,
    conns: Arc<[AtomicU32]>,
}

impl WorkerPart {
    /// Adds to the exchanges of a peer. No other thread writes to the count, so this needs no locked instruction.
    fn count(&self, peer: usize, change: impl Fn(u32) -> u32) {
        if let Some(count) = self.conns.get(peer) {
            count.store(change(count.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
    }
}

/// A contiguous part of a group's slots.
#[derive(Clone, Copy, Debug)]
struct List {
    start: usize,
    len: usize,
    total_weight: u32,
    /// The number of peers not marked down.
    tries: u32,
}

/// The inputs of one pick.
struct Turn<'a> {
    affinity: &'a Affinity<'a>,
    random: &'a mut dyn FnMut(u32) -> u32,
    now_ms: u64,
}

/// Why a list of peers is not a valid group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupError {
    /// There is no primary peer.
    NoPeers,
    /// There are more than [`MAX_PEERS`].
    TooManyPeers,
    /// A weight is zero.
    ZeroWeight,
    /// The weights of a list add up to more than [`MAX_TOTAL_WEIGHT`].
    TooHeavy,
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeers => f.write_str("no servers in upstream"),
            Self::TooManyPeers => write!(f, "more than {MAX_PEERS} servers in upstream"),
            Self::ZeroWeight => f.write_str("a server of weight zero in upstream"),
            Self::TooHeavy => write!(f, "server weights add up to more than {MAX_TOTAL_WEIGHT} in upstream"),
        }
    }
}

impl std::error::Error for GroupError {}

/// The peer chosen for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// Index for [`Group::peer`].
    pub peer: usize,
    /// The peer was chosen although ejected, because ejection had left no other peer.
    pub last_resort: bool,
}

/// No peer can serve this attempt: nginx's `no live upstreams`, and a 502 to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoLivePeers;

impl fmt::Display for NoLivePeers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no live upstreams")
    }
}

impl std::error::Error for NoLivePeers {}

/// The outcome of an attempt for the peer's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The peer answered and the answer is used.
    Ok,
    /// The peer failed: connection, timeout, bad header, or a status that `proxy_next_upstream` names (except 403 and
    /// 404).
    Failed,
    /// The answer is not used, without blame: a 403 or 404 that `proxy_next_upstream` names.
    Next,
    /// The exchange ended before the peer could answer: the client left, or the exchange was dropped. This counts
    /// neither for nor against the peer; nginx counts it as an answer.
    Abandoned,
}

/// The current state of one peer, for status pages and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// The number of exchanges in progress.
    pub conns: u32,
    /// Failures in the current window.
    pub fails: u32,
    /// Whether failures keep it out at the given time.
    pub ejected: bool,
    /// The state and the counts of its health checks; `None` without a check.
    pub health: Option<Shown>,
}

impl PeerView {
    /// Whether failures or health checks keep the peer out.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.ejected || self.health.is_some_and(|health| health.state != State::Up)
    }
}

impl Group {
    /// Builds a group from its peers in configuration order; backups may be anywhere in the list.
    ///
    /// # Errors
    ///
    /// See [`GroupError`].
    pub fn new(name: impl Into<String>, peers: Vec<Peer>, policy: Policy) -> Result<Self, GroupError> {
        if peers.iter().all(|peer| peer.backup) {
            return Err(GroupError::NoPeers);
        }
        Self::of_now(name, peers, policy)
    }

    /// Builds a group from the current peers, of which there may be none.
    ///
    /// # Errors
    ///
    /// See [`GroupError`].
    pub fn of_now(name: impl Into<String>, peers: Vec<Peer>, policy: Policy) -> Result<Self, GroupError> {
        if peers.len() > MAX_PEERS {
            return Err(GroupError::TooManyPeers);
        }
        let (backups, primaries): (Vec<_>, Vec<_>) = peers.into_iter().partition(|peer| peer.backup);
        let primary = List::of(&primaries, 0)?;
        let backup = List::of(&backups, primaries.len())?;
        let slots: Box<[Slot]> = primaries.into_iter().chain(backups).map(Slot::new).collect();
        let states = slots.iter().map(PeerState::fresh).collect();
        let ring = match policy {
            Policy::Hash { consistent: true } => Ring::build(primary.of_slice(&slots)),
            _ => Ring::default(),
        };
        let shares = if slots.iter().any(|slot| slot.peer.slow_start_ms > 0) { SHARES } else { 1 };
        let is_shared = policy.compares() || slots.iter().any(|slot| slot.peer.max_conns > 0);
        let (name, states) = (name.into(), Mutex::new(states));
        Ok(Self { name, policy, slots, primary, backup, ring, shares, is_shared, states, counts: Mutex::default() })
    }

    /// A group without peers.
    #[must_use]
    pub fn nobody(name: &str, policy: Policy) -> Self {
        let none = List { start: 0, len: 0, total_weight: 0, tries: 0 };
        let (slots, states, counts) = (Box::default(), Mutex::default(), Mutex::default());
        let (name, ring) = (name.to_owned(), Ring::default());
        Self { name, policy, slots, primary: none, backup: none, ring, shares: 1, is_shared: true, states, counts }
    }

    /// Gives all workers one turn and one count (`zone`). Call this before the group is used.
    pub fn share(&mut self) {
        self.is_shared = true;
    }

    /// A worker's part: one for each worker that picks.
    #[must_use]
    pub fn part(&self) -> WorkerPart {
        if self.is_shared {
            return WorkerPart::default();
        }
        // A group with one peer has no turns.
        let turns = if self.is_single() { Box::default() } else { self.slots.iter().map(PeerState::fresh).collect() };
        let part =
            WorkerPart { turns: RefCell::new(turns), conns: self.slots.iter().map(|_| AtomicU32::new(0)).collect() };
        let mut counts = lock(&self.counts);
        counts.retain(|count| count.strong_count() > 0);
        counts.push(Arc::downgrade(&part.conns));
        part
    }

    /// The name that exchanges report if no peer could serve them.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The policy the group was built with.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// All peers, primaries first; the order is that of [`Picked::peer`].
    pub fn peers(&self) -> impl ExactSizeIterator<Item = &Peer> {
        self.slots.iter().map(|slot| &slot.peer)
    }

    /// One peer by its index.
    #[must_use]
    pub fn peer(&self, index: usize) -> Option<&Peer> {
        self.slots.get(index).map(|slot| &slot.peer)
    }

    /// The peer's name for `sticky`.
    #[must_use]
    pub fn name_of(&self, index: usize) -> &str {
        self.slots.get(index).map_or("", |slot| &slot.name)
    }

    /// Starts an exchange's selection. Its number of tries is the number of peers not down, limited by
    /// `proxy_next_upstream_tries` (0 is no limit).
    #[must_use]
    #[inline]
    pub fn begin(&self, tries_limit: u32) -> Selection {
        let widest = self.primary.len.max(self.backup.len);
        let mut selection = Selection::new(widest, self.primary.tries + self.backup.tries);
        selection.limit_tries(tries_limit);
        selection
    }

    /// Chooses the peer of the exchange's next attempt and counts the attempt.
    ///
    /// `now_ms` is in milliseconds of one steady or wall clock; `random(n)` returns a number below `n`, and only
    /// [`Policy::Random`] calls it. A peer still held from an earlier pick is given back first, as abandoned.
    ///
    /// `part` is the worker's own.
    ///
    /// If an exchange has tried no peer yet and only failures keep every peer out, it gets the peer whose failure is
    /// oldest. Peers that are down or that a health check keeps out do not count as an alternative. A live peer at
    /// `max_conns` does: then load refuses the exchange, not ejection.
    ///
    /// # Errors
    ///
    /// [`NoLivePeers`] if every peer was tried, is down, ejected or full.
    pub fn pick(
        &self,
        part: &WorkerPart,
        selection: &mut Selection,
        affinity: &Affinity<'_>,
        random: &mut dyn FnMut(u32) -> u32,
        now_ms: u64,
    ) -> Result<Picked, NoLivePeers> {
        if selection.held.is_some() {
            self.release(part, selection, Outcome::Abandoned, now_ms);
        }
        let turn = &mut Turn { affinity, random, now_ms };
        let picked = match self.single() {
            Some(slot) => {
                let is_free = slot.may_serve(affinity.bound) && (!self.is_shared || slot.enter());
                is_free.then_some(Picked { peer: 0, last_resort: false })
            }
            None if self.is_shared => self.pick_of_several(&mut self.lock(), selection, turn),
            None => self.pick_of_several(&mut part.turns.borrow_mut(), selection, turn),
        }
        .ok_or(NoLivePeers)?;
        part.count(picked.peer, |conns| conns.wrapping_add(1));
        selection.picks = selection.picks.saturating_add(1);
        let inflight = !picked.last_resort && !self.is_single() && self.policy.counts_inflight();
        let Picked { peer, last_resort } = picked;
        selection.held = Some(Held::new(peer, last_resort, inflight, now_ms));
        Ok(picked)
    }

    /// Gives the held peer back and counts its attempt as ended; true if this failure ejects the peer (`upstream
    /// server temporarily disabled`).
    ///
    /// `part` is the one that picked. Every outcome costs a try. Without a held peer nothing happens.
    pub fn release(&self, part: &WorkerPart, selection: &mut Selection, outcome: Outcome, now_ms: u64) -> bool {
        let Some(held) = selection.held.take() else {
            return false;
        };
        let Some(slot) = self.slots.get(held.peer()) else {
            return false;
        };
        if self.is_shared {
            slot.leave();
        }
        part.count(held.peer(), |conns| conns.saturating_sub(1));
        if self.is_single() {
            selection.tries = 0;
            return false;
        }
        selection.tries = selection.tries.saturating_sub(1);
        if self.policy.measures()
            && let Some(state) = self.lock().get_mut(held.peer())
        {
            self.policy.note_end(&mut state.times, &held, outcome, now_ms);
        }
        match outcome {
            Outcome::Failed => return slot.note_failure(now_ms),
            Outcome::Abandoned => {}
            Outcome::Ok | Outcome::Next if held.last_resort => slot.readmit(now_ms),
            Outcome::Ok | Outcome::Next => slot.note_success(now_ms),
        }
        false
    }

    /// Records that the connection of a session to the held peer is made. nginx's `stream` then forgives failures: the
    /// end of the session may be far away, and other sessions need the peer. A group with one peer has nothing to
    /// forgive.
    pub fn note_connected(&self, selection: &Selection, now_ms: u64) {
        let Some(held) = selection.held.filter(|_| !self.is_single()) else { return };
        let Some(slot) = self.slots.get(held.peer()) else { return };
        match held.last_resort {
            true => slot.readmit(now_ms),
            false => slot.note_success(now_ms),
        }
    }

    /// Records that the head of the held peer's answer has come and is used. Only a policy that measures times needs
    /// this.
    pub fn note_head(&self, selection: &mut Selection, now_ms: u64) {
        let Some(held) = &mut selection.held else { return };
        let header_ms = held.note_head(now_ms);
        if !self.policy.ends_at_head() || !std::mem::take(&mut held.inflight) {
            return;
        }
        if let Some(state) = self.lock().get_mut(held.peer()) {
            Times::average(&mut state.times.header, header_ms);
            state.times.leave(now_ms, header_ms);
        }
    }

    /// Whether a peer that cannot serve this exchange now may be able to do so later. A peer that is down, draining,
    /// or tried already cannot.
    #[must_use]
    pub fn may_wait(&self, selection: &Selection) -> bool {
        let list = if selection.on_backup { self.backup } else { self.primary };
        let is_tried = |index: usize| index.checked_sub(list.start).is_some_and(|at| selection.tried.contains(at));
        let is_open = |index: usize, slot: &Slot| match selection.picks {
            0 => slot.peer.may_serve(),
            _ => (list.start..list.start + list.len).contains(&index) && !is_tried(index) && slot.peer.may_serve(),
        };
        (selection.picks == 0 || selection.tries > 0)
            && self.slots.iter().enumerate().any(|(index, slot)| is_open(index, slot))
    }

    /// The tries that would be left if the current attempt ended at this moment.
    #[must_use]
    pub fn tries_after(&self, selection: &Selection) -> u32 {
        match (&selection.held, self.single()) {
            (None, _) => selection.tries,
            (Some(_), Some(_)) => 0,
            (Some(_), None) => selection.tries.saturating_sub(1),
        }
    }

    /// Takes over the state of `old` for the peers that both groups have. They are matched by address and, if one
    /// address is listed several times, by order.
    ///
    /// Both groups share failures and ejections from now on. A shared group also takes over the exchanges in progress, and the
    /// turn of round robin if the lists are equal; a plain one takes over the exchanges if the lists are equal. Call
    /// this before the group is used. Later results of exchanges of `old` count in both, and these exchanges still
    /// leave the count when they end. A peer that may serve again starts slowly.
    pub fn adopt(&mut self, old: &Self, now_ms: u64) {
        let same_list = self.peers().eq(old.peers());
        let old_states = old.lock();
        let states = self.states.get_mut().unwrap_or_else(PoisonError::into_inner);
        let mut known = by_address(&old.slots);
        for (slot, state) in self.slots.iter_mut().zip(states.iter_mut()) {
            let Some(index) = known.get_mut(slot.peer.address.as_str()).and_then(VecDeque::pop_front) else {
                continue;
            };
            let (Some(old_slot), Some(old_state)) = (old.slots.get(index), old_states.get(index)) else {
                continue;
            };
            slot.conns = Arc::<AtomicU32>::clone(&old_slot.conns);
            if let Some(health) = &mut slot.health {
                *health = Health::follow(health, old_slot.health.as_ref());
            }
            slot.record = Arc::<Record>::clone(&old_slot.record);
            state.inherit(old_state, slot);
            if slot.peer.may_serve() && old_slot.peer.down {
                slot.record.recover(now_ms);
            }
            if same_list {
                state.current_weight = old_state.current_weight;
            }
        }
        if same_list {
            self.counts = Mutex::new(lock(&old.counts).clone());
        }
    }

    /// Sets the rules of health checks. Call this before the group is shared, and before it adopts.
    pub fn guard(&mut self, rules: &Arc<[CheckRule]>) {
        for slot in &mut self.slots {
            slot.health = Some(Arc::new(Health::new(rules)));
        }
    }

    /// The health of a peer, by its index.
    #[must_use]
    pub fn health(&self, index: usize) -> Option<&Arc<Health>> {
        self.slots.get(index).and_then(|slot| slot.health.as_ref())
    }

    /// The current state of every peer, in the order of [`Group::peers`].
    #[must_use]
    pub fn view(&self, now_ms: u64) -> Vec<PeerView> {
        let parts: Vec<Arc<[AtomicU32]>> = lock(&self.counts).iter().filter_map(Weak::upgrade).collect();
        let own = |peer: usize| -> u32 {
            parts.iter().filter_map(|counts| counts.get(peer)).map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let view = |(peer, slot): (usize, &Slot)| PeerView {
            conns: slot.conns() + own(peer),
            fails: slot.record.fails(),
            ejected: !self.is_single() && slot.ejected(now_ms / 1000),
            health: slot.health.as_ref().map(|health| health.shown()),
        };
        self.slots.iter().enumerate().map(view).collect()
    }

    /// Whether there is only one peer: then neither a key nor the client's address matters.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.single().is_some()
    }

    /// The only peer of a group with one; failures never eject it.
    fn single(&self) -> Option<&Slot> {
        match &*self.slots {
            [slot] => Some(slot),
            _ => None,
        }
    }

    fn pick_of_several(
        &self,
        states: &mut [PeerState],
        selection: &mut Selection,
        turn: &mut Turn<'_>,
    ) -> Option<Picked> {
        if !selection.on_backup {
            let chosen = self.choose_in(self.primary, states, selection, turn);
            if chosen.is_some() {
                return chosen;
            }
            if self.backup.len > 0 {
                selection.move_to_backup();
            }
        }
        if selection.on_backup {
            let chosen = self.choose_in(self.backup, states, selection, turn);
            if chosen.is_some() {
                return chosen;
            }
        }
        if selection.picks > 0 {
            return None;
        }
        let peer = self.last_resort(turn.now_ms / 1000)?;
        selection.on_backup = peer >= self.backup.start;
        let list = if selection.on_backup { self.backup } else { self.primary };
        selection.tried.insert(peer - list.start);
        Some(Picked { peer, last_resort: true })
    }

    fn choose_in(
        &self,
        list: List,
        states: &mut [PeerState],
        selection: &mut Selection,
        turn: &mut Turn<'_>,
    ) -> Option<Picked> {
        if list.len == 0 {
            return None;
        }
        let slots = list.of_slice(&self.slots);
        let states = states.get_mut(list.start..list.start + list.len)?;
        let List { total_weight, .. } = list;
        let Turn { now_ms, .. } = *turn;
        let mut field = Field { slots, states, tried: &selection.tried, total_weight, shares: self.shares, now_ms };
        // Hashing and random draws are only for primaries; backups take turns.
        let policy = match self.policy {
            Policy::LeastConn | Policy::LeastTime { .. } => self.policy,
            _ if selection.on_backup => Policy::RoundRobin,
            policy => policy,
        };
        let index = balance::choose(policy, &self.ring, &mut field, &mut selection.walk, turn.affinity, turn.random)?;
        let slot = slots.get(index)?;
        // An older group that shares the count may have taken the last place meanwhile.
        if self.is_shared && !slot.enter() {
            return None;
        }
        slot.note_pick(now_ms / 1000);
        if self.policy.counts_inflight() {
            states.get_mut(index)?.times.enter(now_ms);
        }
        selection.tried.insert(index);
        Some(Picked { peer: list.start + index, last_resort: false })
    }

    /// The ejected peer whose failure is oldest, if ejection alone is the reason that no peer can serve.
    fn last_resort(&self, now_s: u64) -> Option<usize> {
        let mut choice: Option<(u64, usize)> = None;
        for (index, slot) in self.slots.iter().enumerate() {
            if !slot.may_serve(None) {
                continue;
            }
            if !slot.ejected(now_s) {
                // This peer is alive but was not chosen, so it is full.
                return None;
            }
            let failed_ms = slot.record.failed_ms();
            if !slot.saturated() && choice.is_none_or(|(failed, _)| failed_ms < failed) {
                choice = Some((failed_ms, index));
            }
        }
        let (_, peer) = choice?;
        (!self.is_shared || self.slots.get(peer)?.enter()).then_some(peer)
    }

    fn lock(&self) -> MutexGuard<'_, Box<[PeerState]>> {
        lock(&self.states)
    }

    /// The effective weights, for tests.
    #[cfg(test)]
    pub(crate) fn effective_weights(&self, part: &WorkerPart) -> Vec<i64> {
        let weights = |states: &[PeerState]| states.iter().map(PeerState::effective_weight).collect();
        if self.is_shared { weights(&self.lock()) } else { weights(&part.turns.borrow()) }
    }
}

/// Each step leaves the numbers valid, so a panic of a lock holder is no reason to stop serving.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Policy {
    /// Whether the policy counts exchanges that have no answer yet.
    fn counts_inflight(self) -> bool {
        matches!(self, Self::LeastTime { inflight: true, .. })
    }

    /// Whether such an exchange ends with the head of its answer.
    fn ends_at_head(self) -> bool {
        matches!(self, Self::LeastTime { inflight: true, until: Until::Header })
    }

    /// Adds the times of an exchange that ends to the averages of its peer. A failed try does not count: a peer that
    /// fails fast would seem fast.
    fn note_end(self, times: &mut Times, held: &Held, outcome: Outcome, now_ms: u64) {
        let response_ms = held.age_ms(now_ms);
        if held.inflight {
            times.leave(now_ms, response_ms);
        }
        let (Some(header_ms), Outcome::Ok | Outcome::Abandoned) = (held.header_ms(), outcome) else { return };
        Times::average(&mut times.response, response_ms);
        if !self.ends_at_head() {
            Times::average(&mut times.header, header_ms);
        }
    }
}

impl List {
    fn of(peers: &[Peer], start: usize) -> Result<Self, GroupError> {
        let mut total_weight: u32 = 0;
        let mut tries = 0;
        for peer in peers {
            if peer.weight == 0 {
                return Err(GroupError::ZeroWeight);
            }
            total_weight = total_weight.saturating_add(peer.weight);
            tries += u32::from(peer.may_serve());
        }
        if total_weight > MAX_TOTAL_WEIGHT {
            return Err(GroupError::TooHeavy);
        }
        Ok(Self { start, len: peers.len(), total_weight, tries })
    }

    fn of_slice(self, slots: &[Slot]) -> &[Slot] {
        slots.get(self.start..self.start + self.len).unwrap_or_default()
    }
}

/// The positions of each address in a list, in order.
fn by_address(slots: &[Slot]) -> HashMap<&str, VecDeque<usize>> {
    let mut places: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (index, slot) in slots.iter().enumerate() {
        places.entry(slot.peer.address.as_str()).or_default().push_back(index);
    }
    places
}
