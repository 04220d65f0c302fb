//! One list of a group, and the arithmetic that the policies share.

use std::cmp::Ordering;

use crate::peer::{PeerState, Slot};
use crate::selection::Tried;

/// The units of a full share in a group with `slow_start`.
pub(crate) const SHARES: u16 = 1000;

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
    pub fn usable(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.peer.may_serve() && self.is_able(index, slot))
    }

    /// Whether the peer could serve, regardless of `down` and `drain`.
    fn is_able(&self, index: usize, slot: &Slot) -> bool {
        !self.tried.contains(index) && !slot.ejected(self.now_ms / 1000) && !slot.saturated() && slot.is_healthy()
    }

    /// The peer of that name, if it may be chosen: a draining peer keeps its clients.
    pub fn bound(&self, name: &[u8]) -> Option<usize> {
        let index = self.slots.iter().position(|slot| slot.name.as_bytes() == name)?;
        let slot = self.slots.get(index)?;
        (!slot.peer.down && self.is_able(index, slot)).then_some(index)
    }

    /// The peer that owns unit `unit`, if each peer owns `weight` units in list order.
    pub fn owner_of(&self, unit: u32) -> Option<usize> {
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
    pub fn weight(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(1, |slot| u64::from(slot.peer.weight)) * self.share(index) as u64
    }

    /// The part of its weight that the peer has now: less than all of it while a recovered peer starts slowly.
    pub fn share(&self, index: usize) -> i64 {
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
    pub fn least(&mut self, order: impl Fn(&Self, usize, usize) -> Ordering) -> Option<usize> {
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

    /// The exchanges in progress.
    pub fn conns(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(u64::MAX, |slot| u64::from(slot.conns()))
    }

    /// Charges a turn of round robin to a peer chosen in another way, so that the others get their turns meanwhile. A
    /// peer that already owes a whole round is not charged again.
    pub fn charge(&mut self, chosen: usize) {
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
    pub fn rotate(&mut self, leader: Option<usize>, joins: impl Fn(&Self, usize) -> bool) -> Option<usize> {
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
