//! The balancing policies: each looks at one list of a group and names the peer for an attempt.
//!
//! A policy never counts a connection or a failure: the group does, after the choice. Every policy except `least_conn`
//! may return `None` (no key, too few peers, too many misses). The group then falls back to round robin, as nginx
//! does.

mod hash;
mod ip_hash;
mod least_conn;
mod least_time;
mod prng;
mod random;
mod ring;
mod round_robin;

use std::net::IpAddr;

use std::cmp::Ordering;

use crate::peer::{PeerState, Slot};
use crate::selection::{Tried, Walk};
pub use prng::Prng;
pub(crate) use ring::Ring;

/// The misses that a hashing or random policy allows per exchange before round robin takes over; the number is
/// nginx's.
const MAX_MISSES: u32 = 20;

/// The units of a full share in a group with `slow_start`.
pub(crate) const SHARES: u16 = 1000;

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
    /// `least_time`: the shortest answers and the fewest exchanges in progress, relative to the weight.
    LeastTime {
        /// The time that counts.
        until: Until,
        /// The times of exchanges without an answer count as well.
        inflight: bool,
    },
    /// `random [two [METHOD]]`.
    Random {
        /// Draws two peers and takes the better one.
        two: Option<Better>,
    },
}

/// The end of the time that `least_time` measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The head of the answer.
    Header,
    /// Its last byte.
    LastByte,
}

/// How `random two` compares two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// By their exchanges in progress.
    LeastConn,
    /// By the time of their answers.
    LeastTime(Until),
}

impl Policy {
    /// Whether the policy compares the times of answers.
    #[must_use]
    pub fn measures(self) -> bool {
        matches!(self, Self::LeastTime { .. } | Self::Random { two: Some(Better::LeastTime(_)) })
    }

    /// Whether the policy compares the exchanges or the times of peers, those of all workers.
    #[must_use]
    pub fn compares(self) -> bool {
        matches!(self, Self::LeastConn | Self::LeastTime { .. } | Self::Random { two: Some(_) })
    }

    /// Whether the policy chooses among the primaries only, and ignores each peer's recovery (`backup` and
    /// `slow_start`).
    #[must_use]
    pub fn is_plain(self) -> bool {
        matches!(self, Self::IpHash | Self::Hash { .. } | Self::Random { .. })
    }
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
    /// The units of a full share: 1, or [`SHARES`] if a peer of the group has `slow_start`.
    pub shares: u16,
    pub now_ms: u64,
}

impl Field<'_> {
    /// Whether a policy may choose the peer: this exchange has not tried it, and it is not down, ejected, full, or
    /// excluded by a health check.
    fn usable(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.peer.may_serve() && self.is_able(index, slot))
    }

    /// Whether the peer could serve, regardless of `down` and `drain`.
    fn is_able(&self, index: usize, slot: &Slot) -> bool {
        !self.tried.contains(index) && !slot.ejected(self.now_ms / 1000) && !slot.saturated() && slot.is_healthy()
    }

    /// The peer of that name, if it may be chosen: a draining peer keeps its clients.
    fn bound(&self, name: &[u8]) -> Option<usize> {
        let index = self.slots.iter().position(|slot| slot.name.as_bytes() == name)?;
        let slot = self.slots.get(index)?;
        (!slot.peer.down && self.is_able(index, slot)).then_some(index)
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

    /// The weight in units of its share.
    fn weight(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(1, |slot| u64::from(slot.peer.weight)) * self.share(index) as u64
    }

    /// The part of its weight that the peer has now: less than all of it while a recovered peer starts slowly.
    fn share(&self, index: usize) -> i64 {
        let full = i64::from(self.shares);
        if full == 1 {
            return 1;
        }
        let Some(slot) = self.slots.get(index) else { return full };
        let since_ms = slot.recovered_ms();
        let elapsed_ms = self.now_ms.saturating_sub(since_ms);
        if since_ms == 0 || elapsed_ms >= slot.peer.slow_start_ms {
            return full;
        }
        // Not zero: a group whose peers all start at this moment still serves.
        (elapsed_ms as i64 * full / slot.peer.slow_start_ms as i64).max(1)
    }

    /// The usable peer that is first in this order; equal peers take turns by smooth weighted round robin.
    fn least(&mut self, order: impl Fn(&Self, usize, usize) -> Ordering) -> Option<usize> {
        let mut best: Option<usize> = None;
        let mut several = false;
        for index in 0..self.slots.len() {
            if !self.usable(index) {
                continue;
            }
            match best.map(|leader| order(self, index, leader)) {
                None | Some(Ordering::Less) => {
                    best = Some(index);
                    several = false;
                }
                Some(Ordering::Equal) => several = true,
                Some(Ordering::Greater) => {}
            }
        }
        let leader = best?;
        if !several {
            return Some(leader);
        }
        self.rotate(Some(leader), |field, index| order(field, index, leader).is_eq())
    }

    fn conns(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(u64::MAX, |slot| u64::from(slot.conns()))
    }

    /// Charges a turn of round robin to a peer chosen in another way, so that the others get their turns meanwhile. A
    /// peer that already owes a whole round is not charged again.
    fn charge(&mut self, chosen: usize) {
        let round = i64::from(self.total_weight) * i64::from(self.shares) - self.weight(chosen) as i64;
        if self.states.get(chosen).is_none_or(|state| state.current_weight <= -round) {
            return;
        }
        let mut turn_total = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            let share = self.share(index);
            if self.usable(index)
                && let Some(state) = self.states.get_mut(index)
            {
                turn_total += state.earn_credit(slot, share);
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
            let share = self.share(index);
            let Some(state) = self.states.get_mut(index) else {
                continue;
            };
            turn_total += state.earn_credit(slot, share);
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
        Policy::LeastTime { until, .. } => return least_time::choose(field, until),
        Policy::IpHash => ip_hash::choose(field, walk, affinity.client),
        Policy::Hash { consistent: false } => hash::choose(field, walk, affinity.key),
        Policy::Hash { consistent: true } => ring.choose(field, walk, affinity.key),
        Policy::Random { two: None } => random::one(field, walk, random),
        Policy::Random { two: Some(better) } => random::two(field, walk, better, random),
    };
    preferred.or_else(|| round_robin::choose(field))
}

/// Counts a miss; true if the exchange has used up its allowed misses.
fn gives_up(walk: &mut Walk) -> bool {
    walk.misses += 1;
    walk.misses > MAX_MISSES
}
