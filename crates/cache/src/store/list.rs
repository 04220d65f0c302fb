//! The nodes of a shard in a slab, and linked lists of them by number: a node is in two lists at a time.

use super::node::Node;

/// Selects one of a node's two pairs of neighbours.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// By last use.
    Used,
    /// In a queue of the memory tier.
    Queued,
}

const NOBODY: u32 = u32::MAX;

/// Nodes per allocation: growing by pieces copies nothing, so no insertion stalls because of the slab's size.
const PIECE: usize = 1 << PIECE_BITS;
const PIECE_BITS: u32 = 7;

#[derive(Clone, Copy)]
struct Links {
    newer: u32,
    older: u32,
}

struct Slot {
    links: [Links; 2],
    node: Option<Node>,
}

/// The nodes.
#[derive(Default)]
pub(super) struct Nodes {
    pieces: Vec<Vec<Slot>>,
    len: u32,
    free: Vec<u32>,
}

impl Nodes {
    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn get(&self, at: u32) -> Option<&Node> {
        self.pieces.get((at >> PIECE_BITS) as usize)?.get(at as usize % PIECE)?.node.as_ref()
    }

    pub fn get_mut(&mut self, at: u32) -> Option<&mut Node> {
        self.slot(at)?.node.as_mut()
    }

    pub fn insert(&mut self, node: Node) -> u32 {
        let slot = Slot { links: [Links { newer: NOBODY, older: NOBODY }; 2], node: Some(node) };
        if let Some(at) = self.free.pop()
            && let Some(free) = self.slot(at)
        {
            *free = slot;
            return at;
        }
        match self.pieces.last_mut() {
            Some(piece) if piece.len() < PIECE => piece.push(slot),
            _ => {
                let mut piece = Vec::with_capacity(PIECE);
                piece.push(slot);
                self.pieces.push(piece);
            }
        }
        self.len += 1;
        self.len - 1
    }

    pub fn remove(&mut self, at: u32) -> Option<Node> {
        let node = self.slot(at)?.node.take()?;
        self.free.push(at);
        Some(node)
    }

    fn slot(&mut self, at: u32) -> Option<&mut Slot> {
        self.pieces.get_mut((at >> PIECE_BITS) as usize)?.get_mut(at as usize % PIECE)
    }

    fn links(&mut self, at: u32, which: Which) -> Option<&mut Links> {
        self.slot(at)?.links.get_mut(which as usize)
    }
}

/// A list from the newest to the oldest.
pub(super) struct List {
    newest: u32,
    oldest: u32,
}

impl Default for List {
    fn default() -> List {
        List { newest: NOBODY, oldest: NOBODY }
    }
}

impl List {
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NOBODY).then_some(self.oldest)
    }

    /// Puts a node at the front; the node must not be in the list.
    pub fn push(&mut self, nodes: &mut Nodes, which: Which, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        if let Some(links) = nodes.links(at, which) {
            *links = Links { newer: NOBODY, older };
        }
        match nodes.links(older, which) {
            Some(links) => links.newer = at,
            None => self.oldest = at,
        }
    }

    /// Removes a node that is in the list.
    pub fn remove(&mut self, nodes: &mut Nodes, which: Which, at: u32) {
        let Some(Links { newer, older }) = nodes.links(at, which).copied() else { return };
        match nodes.links(newer, which) {
            Some(links) => links.older = older,
            None => self.newest = older,
        }
        match nodes.links(older, which) {
            Some(links) => links.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Moves a node in the list to the front.
    pub fn renew(&mut self, nodes: &mut Nodes, which: Which, at: u32) {
        if self.newest != at {
            self.remove(nodes, which, at);
            self.push(nodes, which, at);
        }
    }
}
