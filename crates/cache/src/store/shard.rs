//! One shard of a zone's index: nodes by hash and by last use, and nodes in memory in the queues of S3-FIFO.
//!
//! S3-FIFO (Yang et al., SOSP 2023): a new object enters a small queue. If it is requested again there, or comes back
//! soon after it was removed, it enters the main queue; there, a requested object gets another turn. A hit writes one
//! number. Invariant: `memory` is the sum over the nodes in the queues, `keys` over all nodes. Neither exceeds its
//! limit when a call returns, except for a single node.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ban::Force;
use super::label::{Label, Variant};
use super::list::{List, Nodes, Which};
use super::node::{Disk, Gone, Node, QueueName};
use super::object::Object;

/// The assumed cost of a node besides its label: the node, its place in the table, the allocator's overhead.
pub(super) const NODE_BYTES: usize = size_of::<Node>() + 40;

/// The small queue has one part in this many of the memory.
const SMALL_SHARE: u64 = 10;

/// The highest count of uses in a queue.
const USES_MAX: u8 = 3;

/// The most nodes examined to free memory for one object; then the next node is removed whatever its uses, to limit a
/// stall.
const EVICT_STEPS_MAX: usize = 64;

/// The most variants of one key; the one stored first is removed.
pub const VARIANTS_MAX: usize = 64;

/// The limits of a shard.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    /// Bytes of objects in memory.
    pub memory: u64,
    /// Bytes of nodes and labels.
    pub keys: u64,
}

pub(super) struct Shard {
    bounds: Bounds,
    index: HashMap<u64, u32, BuildHasherDefault<AsIs>>,
    nodes: Nodes,
    used: List,
    small: List,
    main: List,
    small_bytes: u64,
    ghosts: Box<[u32]>,
    pub memory: u64,
    pub keys: u64,
    pub blocks: u64,
    /// Objects in memory or on disk.
    pub objects: u64,
    pub evicted: u64,
}

impl Shard {
    pub fn new(bounds: Bounds) -> Shard {
        // Remembers one removed object per 4 KiB of memory, which is about an object's size.
        let ghosts = usize::try_from(bounds.memory / 4096).unwrap_or(GHOSTS_MAX).clamp(64, GHOSTS_MAX);
        Shard {
            bounds,
            index: HashMap::default(),
            nodes: Nodes::default(),
            used: List::default(),
            small: List::default(),
            main: List::default(),
            small_bytes: 0,
            ghosts: vec![0; ghosts.next_power_of_two()].into(),
            memory: 0,
            keys: 0,
            blocks: 0,
            objects: 0,
            evicted: 0,
        }
    }

    /// The node of a key and variant.
    pub fn find(&mut self, hash: u64, key: &[u8], variant: Variant) -> Option<u32> {
        let at = *self.index.get(&hash)?;
        let node = self.nodes.get(at)?;
        (node.label.variant == variant && *node.label.key == *key).then_some(at)
    }

    pub fn node(&mut self, at: u32) -> Option<&mut Node> {
        self.nodes.get_mut(at)
    }

    /// The number of places in the slab, including empty ones: for walks in slices.
    pub fn places(&self) -> u32 {
        self.nodes.len()
    }

    /// The least recently used node.
    pub fn oldest(&self) -> Option<u32> {
        self.used.oldest()
    }

    /// Notes a request for a node. The node moves to the front at most once a second: more precision is not needed,
    /// and every move touches the memory of its neighbours.
    pub fn touch(&mut self, at: u32, now_s: u32) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.hits = node.hits.saturating_add(1).min(USES_MAX);
        if std::mem::replace(&mut node.used_s, now_s) == now_s {
            return;
        }
        self.used.renew(&mut self.nodes, Which::Used, at);
    }

    /// The node of a label; makes one if needed. A node with the same hash but another key is removed.
    pub fn place(&mut self, hash: u64, label: &Arc<Label>, now_s: u32, gone: &mut Gone) -> u32 {
        if let Some(at) = self.find(hash, &label.key, label.variant) {
            self.touch(at, now_s);
            return at;
        }
        if let Some(at) = self.index.get(&hash).copied() {
            self.remove(at, gone);
        }
        let cost = cost_of(label);
        while self.keys + cost > self.bounds.keys {
            let Some(oldest) = self.oldest() else { break };
            self.evicted += 1;
            self.remove(oldest, gone);
        }
        let node = Node {
            hash,
            label: label.clone(),
            memory: None,
            variants: None,
            serial: 0,
            checked: 0,
            used_s: now_s,
            disk: Disk::None,
            queue: QueueName::None,
            soft_purged: false,
            hits: 0,
            uses: 0,
        };
        let at = self.nodes.insert(node);
        self.index.insert(hash, at);
        self.used.push(&mut self.nodes, Which::Used, at);
        self.keys += cost;
        at
    }

    /// Sets the label of a node; tags and fields may differ from the object before.
    pub fn relabel(&mut self, at: u32, label: &Arc<Label>) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        self.keys = self.keys - cost_of(&node.label) + cost_of(label);
        node.label = label.clone();
    }

    /// Puts an object into the memory tier and makes room for it; false if it is too large.
    pub fn admit(&mut self, at: u32, object: Arc<Object>, gone: &mut Gone) -> bool {
        self.dismiss(at);
        let bytes = object.memory_bytes();
        if !object.body.is_in_memory() || bytes > self.object_bytes_max() {
            return false;
        }
        let Some(hash) = self.nodes.get(at).map(|node| node.hash) else { return false };
        let queue = if self.take_ghost(hash) { QueueName::Main } else { QueueName::Small };
        self.make_room(bytes, gone);
        let Some(node) = self.nodes.get_mut(at) else { return false };
        if node.disk == Disk::None {
            self.objects += 1;
        }
        (node.memory, node.hits) = (Some(object), 0);
        self.enqueue(at, queue, bytes);
        true
    }

    /// Replaces an object by another form of itself, and makes room for it; false if the node has another object by
    /// now, or if the new one is too large.
    pub fn exchange(&mut self, at: u32, old: &Arc<Object>, new: Arc<Object>, gone: &mut Gone) -> bool {
        let bytes = new.memory_bytes();
        let most = self.object_bytes_max();
        let Some(node) = self.nodes.get_mut(at) else { return false };
        let is_it = node.memory.as_ref().is_some_and(|known| Arc::ptr_eq(known, old));
        if !is_it || node.queue == QueueName::None || bytes > most {
            return false;
        }
        new.soft_purged.store(node.soft_purged, Ordering::Release);
        let queue = node.queue;
        node.memory = Some(new);
        self.memory = self.memory - old.memory_bytes() + bytes;
        if queue == QueueName::Small {
            self.small_bytes = self.small_bytes - old.memory_bytes() + bytes;
        }
        self.make_room(0, gone);
        true
    }

    /// While weir rewrites the header of a file, requests can still find the node whose body is in that file; the node
    /// is in no queue.
    pub fn hold(&mut self, at: u32, object: Arc<Object>) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        self.objects += u64::from(node.memory.is_none() && node.disk == Disk::None);
        node.memory = Some(object);
    }

    /// Ends the effect of `hold`.
    pub fn release(&mut self, at: u32) {
        if self.nodes.get(at).is_some_and(|node| node.queue == QueueName::None) {
            self.dismiss(at);
        }
    }

    /// The largest object for the memory tier.
    pub fn object_bytes_max(&self) -> u64 {
        self.bounds.memory / 2
    }

    /// Removes a node's object from memory; the node stays.
    pub fn dismiss(&mut self, at: u32) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let Some(object) = node.memory.take() else { return };
        if node.disk == Disk::None {
            self.objects -= 1;
        }
        self.dequeue(at, object.memory_bytes());
    }

    /// Records whether a node's object is on disk.
    pub fn set_disk(&mut self, at: u32, disk: Disk) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let (old, has_memory) = (std::mem::replace(&mut node.disk, disk), node.memory.is_some());
        if !has_memory {
            self.objects -= u64::from(old != Disk::None);
            self.objects += u64::from(disk != Disk::None);
        }
        self.blocks = self.blocks - blocks_of(old) + blocks_of(disk);
    }

    /// Removes a node.
    pub fn remove(&mut self, at: u32, gone: &mut Gone) {
        self.dismiss(at);
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.disk != Disk::None {
            gone.files.push(node.label.clone());
        }
        self.set_disk(at, Disk::None);
        self.used.remove(&mut self.nodes, Which::Used, at);
        let Some(node) = self.nodes.remove(at) else { return };
        self.index.remove(&node.hash);
        self.keys -= cost_of(&node.label);
        if let Some(variants) = node.variants {
            gone.variants.push((node.label.clone(), variants.known));
        }
        gone.objects += u64::from(node.serial != 0);
    }

    /// Removes a node's object from memory and disk; the node stays.
    pub fn strip(&mut self, at: u32, gone: &mut Gone) {
        self.dismiss(at);
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.disk != Disk::None {
            gone.files.push(node.label.clone());
        }
        (node.serial, node.soft_purged) = (0, false);
        self.set_disk(at, Disk::None);
    }

    /// Purges a node; returns whether there was an object.
    pub fn purge(&mut self, at: u32, force: Force, gone: &mut Gone) -> bool {
        let Some(node) = self.nodes.get_mut(at) else { return false };
        let was_there = node.serial != 0;
        match force {
            Force::Soft => node.soft_purge(gone),
            Force::Hard => self.remove(at, gone),
        }
        was_there
    }

    /// Frees memory until `bytes` more fit.
    fn make_room(&mut self, bytes: u64, gone: &mut Gone) {
        let mut steps = 0;
        while self.memory + bytes > self.bounds.memory {
            steps += 1;
            let spare = steps <= EVICT_STEPS_MAX;
            let from_small = self.small_bytes > self.bounds.memory / SMALL_SHARE || self.main.oldest().is_none();
            let oldest = if from_small { self.small.oldest() } else { self.main.oldest() };
            let Some(at) = oldest.or(self.small.oldest()) else { return };
            let Some(node) = self.nodes.get_mut(at) else { return };
            let size = node.memory.as_ref().map_or(0, |object| object.memory_bytes());
            if spare && node.hits > 0 {
                // It was requested again: it moves from the small queue to the main one, or gets one more turn there.
                node.hits = if node.queue == QueueName::Small { 0 } else { node.hits - 1 };
                self.dequeue(at, size);
                self.enqueue(at, QueueName::Main, size);
            } else {
                self.evict(at, gone);
            }
        }
    }

    fn evict(&mut self, at: u32, gone: &mut Gone) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let (hash, on_disk, from_small) = (node.hash, node.disk != Disk::None, node.queue == QueueName::Small);
        if from_small {
            self.leave_ghost(hash);
        }
        self.evicted += 1;
        if on_disk {
            self.dismiss(at);
        } else {
            self.remove(at, gone);
        }
    }

    fn enqueue(&mut self, at: u32, queue: QueueName, bytes: u64) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.queue = queue;
        self.memory += bytes;
        match queue {
            QueueName::Small => {
                self.small_bytes += bytes;
                self.small.push(&mut self.nodes, Which::Queued, at);
            }
            QueueName::Main => self.main.push(&mut self.nodes, Which::Queued, at),
            QueueName::None => {}
        }
    }

    fn dequeue(&mut self, at: u32, bytes: u64) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let queue = std::mem::replace(&mut node.queue, QueueName::None);
        match queue {
            QueueName::Small => {
                self.small_bytes -= bytes;
                self.small.remove(&mut self.nodes, Which::Queued, at);
            }
            QueueName::Main => self.main.remove(&mut self.nodes, Which::Queued, at),
            QueueName::None => return,
        }
        self.memory -= bytes;
    }

    fn leave_ghost(&mut self, hash: u64) {
        let (place, mark) = ghost(hash, self.ghosts.len());
        if let Some(ghost) = self.ghosts.get_mut(place) {
            *ghost = mark;
        }
    }

    fn take_ghost(&mut self, hash: u64) -> bool {
        let (place, mark) = ghost(hash, self.ghosts.len());
        match self.ghosts.get_mut(place) {
            Some(ghost) if *ghost == mark => {
                *ghost = 0;
                true
            }
            _ => false,
        }
    }
}

/// The most removed objects that a shard remembers.
const GHOSTS_MAX: usize = 1 << 16;

/// The slot and the mark of a remembered hash: a newer hash in the same slot replaces it, as a queue would in time.
fn ghost(hash: u64, places: usize) -> (usize, u32) {
    (hash as usize & (places - 1), (hash >> 32) as u32 | 1)
}

fn cost_of(label: &Label) -> u64 {
    (NODE_BYTES + label.memory_bytes()) as u64
}

fn blocks_of(disk: Disk) -> u64 {
    match disk {
        Disk::None | Disk::Pending => 0,
        Disk::Blocks(blocks) => u64::from(blocks),
    }
}

/// The keys are already hashes, made with the zone's secret.
#[derive(Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}
