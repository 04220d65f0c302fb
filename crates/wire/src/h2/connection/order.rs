//! The order of streams that are ready to send: the tree of dependencies and weights that clients may still send (RFC
//! 7540 §5.3, removed from RFC 9113), read as nginx reads it.
//!
//! Streams nearer to the root go first; among equally near streams, the heavier one goes first. A stream that the
//! client never mentions depends on the root with weight 16. There are few nodes, so the tree is a list that is
//! searched.

use std::cmp::Reverse;

use super::super::priority::Priority;

/// The smaller value goes first.
pub type Turn = (u32, Reverse<u64>);

/// The weight of a stream without one (RFC 7540 §5.3.5).
const WEIGHT_DEFAULT: u16 = 16;
/// Streams remembered, open or not; above this limit, the stream that was mentioned first is forgotten.
const NODES_MAX: usize = 192;
/// The unit of a share: the share of the root.
const WHOLE: u64 = 1 << 32;

#[derive(Clone, Copy, Debug)]
struct Node {
    id: u32,
    /// 0 is the root.
    parent: u32,
    weight: u16,
}

/// The tree. Empty as long as a client sends no priorities, as most clients do.
#[derive(Debug, Default)]
pub struct PriorityTree {
    nodes: Vec<Node>,
}

impl PriorityTree {
    /// Takes over the priority of a stream from a frame. The stream does not depend on itself.
    pub fn set(&mut self, id: u32, priority: Priority) {
        let Priority { on, mut is_exclusive, mut weight } = priority;
        let mut parent = on;
        if on != 0 && self.place(on).is_none() {
            // An unknown parent counts as the root (RFC 7540 §5.3.1).
            (parent, is_exclusive, weight) = (0, false, WEIGHT_DEFAULT);
        }
        let at = self.place_or_new(id);
        if self.is_above(id, parent) {
            // The new parent depends on this stream: the new parent moves up first (§5.3.3).
            let up = self.nodes.get(at).map_or(0, |node| node.parent);
            if let Some(node) = self.place(parent).and_then(|at| self.nodes.get_mut(at)) {
                node.parent = up;
            }
        }
        if is_exclusive {
            for node in self.nodes.iter_mut().filter(|node| node.parent == parent && node.id != id) {
                node.parent = id;
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            (node.parent, node.weight) = (parent, weight);
        }
    }

    /// Notes a stream that began without a priority; an earlier priority stays valid.
    pub fn begin(&mut self, id: u32) {
        if !self.nodes.is_empty() {
            self.place_or_new(id);
        }
    }

    /// The turn of a stream.
    pub fn turn(&self, id: u32) -> Turn {
        let (mut depth, mut share, mut at) = (1, WHOLE, id);
        let mut weight = WEIGHT_DEFAULT;
        let mut is_top = true;
        // At most as many steps as nodes, in case the list ever has a cycle.
        for _ in 0..self.nodes.len() {
            let Some(node) = self.place(at).and_then(|at| self.nodes.get(at)) else { break };
            share = share / 256 * u64::from(node.weight);
            (at, weight, is_top) = (node.parent, node.weight, false);
            if at == 0 {
                break;
            }
            depth += 1;
        }
        if is_top {
            share = share / 256 * u64::from(weight);
        }
        (depth, Reverse(share))
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == id)
    }

    fn place_or_new(&mut self, id: u32) -> usize {
        if let Some(at) = self.place(id) {
            return at;
        }
        if self.nodes.len() >= NODES_MAX {
            self.forget_first();
        }
        self.nodes.push(Node { id, parent: 0, weight: WEIGHT_DEFAULT });
        self.nodes.len() - 1
    }

    /// The children of the forgotten stream move to its parent (§5.3.4).
    fn forget_first(&mut self) {
        let gone = self.nodes.remove(0);
        for node in self.nodes.iter_mut().filter(|node| node.parent == gone.id) {
            node.parent = gone.parent;
        }
    }

    /// Whether `low` depends on `high`, directly or through others.
    fn is_above(&self, high: u32, low: u32) -> bool {
        let mut at = low;
        for _ in 0..self.nodes.len() {
            let Some(node) = self.place(at).and_then(|at| self.nodes.get(at)) else { return false };
            if node.parent == high {
                return true;
            }
            at = node.parent;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(said: &[(u32, u32, bool, u16)]) -> PriorityTree {
        let mut order = PriorityTree::default();
        for &(id, on, is_exclusive, weight) in said {
            order.set(id, Priority { on, is_exclusive, weight });
        }
        order
    }

    fn turns(order: &PriorityTree, ids: &[u32]) -> Vec<u32> {
        let mut ids = ids.to_vec();
        ids.sort_by_key(|&id| order.turn(id));
        ids
    }

    #[test]
    fn the_nearer_goes_first_and_then_the_heavier() {
        for (said, wanted) in [
            (&[][..], [1, 3, 5]),
            (&[(1, 0, false, 1), (3, 0, false, 256), (5, 0, false, 16)], [3, 5, 1]),
            (&[(3, 0, false, 16), (1, 3, false, 256)], [3, 5, 1]),
            (&[(5, 0, false, 17), (1, 5, false, 256), (3, 5, false, 1)], [5, 1, 3]),
            // 3 depends on an unknown stream: that counts as the root.
            (&[(3, 77, false, 256), (5, 0, false, 20)], [5, 1, 3]),
            // 5 takes 1's place, and 1 and 3 depend on it.
            (&[(1, 0, false, 200), (3, 0, false, 100), (5, 0, true, 1)], [5, 1, 3]),
        ] {
            assert_eq!(turns(&order(said), &[1, 3, 5]), wanted, "{said:?}");
        }
    }

    #[test]
    fn what_would_be_a_circle_is_none() {
        let mut order = order(&[(1, 0, false, 16), (3, 1, false, 16), (5, 3, false, 16)]);
        order.set(1, Priority { on: 5, is_exclusive: false, weight: 16 });
        assert_eq!(turns(&order, &[1, 3, 5]), [5, 1, 3]);
        order.set(5, Priority { on: 3, is_exclusive: true, weight: 16 });
        assert_eq!(turns(&order, &[1, 3, 5]), [3, 5, 1], "3 was below 1, and 1 below 5");
    }

    #[test]
    fn as_much_is_remembered_as_there_is_room_for() {
        let mut order = PriorityTree::default();
        for id in (1..=2001).step_by(2) {
            order.set(id, Priority { on: id.saturating_sub(2), is_exclusive: false, weight: 256 });
        }
        assert_eq!(order.nodes.len(), NODES_MAX);
        assert_eq!(order.turn(2001).0, NODES_MAX as u32);
    }
}
