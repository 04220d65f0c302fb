//! The balancing policies: each looks at one list of a group and names the peer for an attempt.
//!
//! A policy never counts a connection or a failure: the group does, after the choice. Every policy except `least_conn`
//! may return `None` (no key, too few peers, too many misses). The group then falls back to round robin, as nginx
//! does.

mod hash;
mod ip_hash;
mod least_conn;
mod prng;
mod random;
mod ring;
mod round_robin;

use std::net::IpAddr;

use crate::peer::{PeerState, Slot};
use crate::selection::{Tried, Walk};
pub use prng::Prng;
pub(crate) use ring::Ring;

/// The misses that a hashing or random policy allows per exchange before round robin takes over; the number is
/// nginx's.
const MAX_MISSES: u32 = 20;

/// How a group spreads exchanges over its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Smooth weighted round robin, the default.
    #[default]
    RoundRobin,
    /// `least_conn`: the fewest exchanges in progress, relative to the weight.
    LeastConn,
    /// `ip_hash`: by the client's network: three octets of IPv4, or all of IPv6.
    IpHash,
    /// `hash key [consistent]`: by a key that the configuration composes.
    Hash {
        /// On a ketama ring instead of modulo the weights.
        consistent: bool,
    },
    /// `random [two [least_conn]]`.
    Random {
        /// Draws two peers and takes the one with fewer exchanges in progress.
        two: bool,
    },
}

/// The data of an exchange that a policy may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Affinity<'a> {
    /// The composed key of `hash`; empty if there is none.
    pub key: &'a [u8],
    /// The client's address for `ip_hash`; `None` for a unix socket client.
    pub client: Option<IpAddr>,
    /// The name of the exchange's peer, from `sticky`.
    pub bound: Option<&'a [u8]>,
}

/// One list of a group at one moment, for a policy.
pub(crate) struct Field<'a> {
    pub slots: &'a [Slot],
    pub states: &'a mut [PeerState],
    pub tried: &'a Tried,
    pub total_weight: u32,
    pub now_s: u64,
}

impl Field<'_> {
    /// Whether a policy may choose the peer: this exchange has not tried it, and it is not down, ejected, full, or
    /// excluded by a health check.
    fn usable(&self, index: usize) -> bool {
        let (Some(slot), Some(state)) = (self.slots.get(index), self.states.get(index)) else {
            return false;
        };
        slot.peer.may_serve() && self.is_able(index, slot, state)
    }

    /// Whether the peer could serve, regardless of `down` and `drain`.
    fn is_able(&self, index: usize, slot: &Slot, state: &PeerState) -> bool {
        !self.tried.contains(index) && !state.ejected(&slot.peer, self.now_s) && !slot.saturated() && slot.is_healthy()
    }

    /// The peer of that name, if it may be chosen: a draining peer keeps its clients.
    fn bound(&self, name: &[u8]) -> Option<usize> {
        let index = self.slots.iter().position(|slot| slot.name.as_bytes() == name)?;
        let (slot, state) = (self.slots.get(index)?, self.states.get(index)?);
        (!slot.peer.down && self.is_able(index, slot, state)).then_some(index)
    }

    /// The peer that owns unit `unit`, if each peer owns `weight` units in list order.
    fn owner_of(&self, unit: u32) -> Option<usize> {
        let mut rest = unit;
        for (index, slot) in self.slots.iter().enumerate() {
            if rest < slot.peer.weight {
                return Some(index);
            }
            rest -= slot.peer.weight;
        }
        None
    }

    fn weight(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(1, |slot| u64::from(slot.peer.weight))
    }

    fn conns(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(u64::MAX, |slot| u64::from(slot.conns()))
    }

    /// Charges a turn of round robin to a peer chosen in another way, so that the others get their turns meanwhile. A
    /// peer that already owes a whole round is not charged again.
    fn charge(&mut self, chosen: usize) {
        let round = i64::from(self.total_weight) - self.weight(chosen) as i64;
        if self.states.get(chosen).is_none_or(|state| state.current_weight <= -round) {
            return;
        }
        let mut turn_total = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            if self.usable(index)
                && let Some(state) = self.states.get_mut(index)
            {
                turn_total += state.earn_credit(&slot.peer);
            }
        }
        if let Some(state) = self.states.get_mut(chosen) {
            state.current_weight -= turn_total;
        }
    }

    /// Runs one turn of smooth weighted round robin over the usable peers that `joins` allows, and charges the winner.
    /// `leader`, if given, wins ties.
    fn rotate(&mut self, leader: Option<usize>, joins: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        let mut best = leader;
        let mut turn_total = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            if !self.usable(index) || !joins(self, index) {
                continue;
            }
            let Some(state) = self.states.get_mut(index) else {
                continue;
            };
            turn_total += state.earn_credit(&slot.peer);
            let credit = state.current_weight;
            let leads =
                best.and_then(|leader| self.states.get(leader)).is_none_or(|leader| credit > leader.current_weight);
            if leads {
                best = Some(index);
            }
        }
        let winner = best?;
        self.states.get_mut(winner)?.current_weight -= turn_total;
        Some(winner)
    }
}

/// Returns the peer of `field` that `policy` chooses, or `None` if no peer in the list is usable.
pub(crate) fn choose(
    policy: Policy,
    ring: &Ring,
    field: &mut Field<'_>,
    walk: &mut Walk,
    affinity: &Affinity<'_>,
    random: &mut dyn FnMut(u32) -> u32,
) -> Option<usize> {
    if let Some(bound) = affinity.bound.and_then(|name| field.bound(name)) {
        if policy == Policy::RoundRobin {
            field.charge(bound);
        }
        return Some(bound);
    }
    let preferred = match policy {
        Policy::RoundRobin => None,
        // If no peer is usable here, round robin would not find one either.
        Policy::LeastConn => return least_conn::choose(field),
        Policy::IpHash => ip_hash::choose(field, walk, affinity.client),
        Policy::Hash { consistent: false } => hash::choose(field, walk, affinity.key),
        Policy::Hash { consistent: true } => ring.choose(field, walk, affinity.key),
        Policy::Random { two: false } => random::one(field, walk, random),
        Policy::Random { two: true } => random::two(field, walk, random),
    };
    preferred.or_else(|| round_robin::choose(field))
}

/// Counts a miss; true if the exchange has used up its allowed misses.
fn gives_up(walk: &mut Walk) -> bool {
    walk.misses += 1;
    walk.misses > MAX_MISSES
}
