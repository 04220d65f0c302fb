//! One shard of a zone's index: nodes by hash, in the order of use, and those in memory in the queues of S3-FIFO.
//!
//! S3-FIFO (Yang et al., SOSP 2023): what is new enters a small queue; what was asked for again there, or comes back
//! soon after it was pushed out, enters the main one; there, what was asked for gets another turn. A hit writes one
//! number. Invariant: `memory` is the sum over the nodes in the queues, `keys` over all nodes, and neither exceeds
//! its bound when a call returns, but for a lone node's.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::ban::Force;
use super::label::{Label, Variant};
use super::list::{List, Nodes, Which};
use super::object::Object;

/// What a node is taken to cost besides its label: itself, its place in the table, the allocator's share.
pub(super) const NODE_BYTES: usize = size_of::<Node>() + 40;

/// Of 10 parts of the memory the small queue has one.
const SMALL_SHARE: u64 = 10;

/// Uses that are remembered while in a queue.
const USES_MAX: u8 = 3;

/// Nodes looked at to free memory for one, at most; then the next goes whatever its uses: a bound on a stall.
const EVICT_STEPS_MAX: usize = 64;

/// Variants of one key, at most; the one stored first goes.
pub const VARIANTS_MAX: usize = 64;

/// A block of a disk, in which files are counted.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Where an object is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// Not there.
    None,
    /// About to be written; an older object's file may be there.
    Pending,
    /// In its file, of so many blocks.
    Blocks(u32),
}

/// Which queue a node is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    None,
    Small,
    Main,
}

/// The variants of a key that varies: kept at the key's own place, where its only variant would be.
pub(super) struct Variants {
    /// The selecting fields of the response stored last.
    pub vary: Arc<[u8]>,
    /// Their variants, the oldest first.
    pub known: Vec<Variant>,
}

/// What is known of one key and variant.
pub(super) struct Node {
    pub hash: u64,
    pub label: Arc<Label>,
    pub memory: Option<Arc<Object>>,
    pub variants: Option<Box<Variants>>,
    /// The object's serial number, also when it is only on disk; 0 for a node without.
    pub serial: u64,
    /// Purges up to this one have been applied.
    pub checked: u32,
    /// Second of the zone's time of the last use.
    pub used_s: u32,
    pub disk: Disk,
    pub queue: Queue,
    pub soft_purged: bool,
    /// How often it was asked for while in its queue.
    pub hits: u8,
    /// How often it was asked for before it was stored (nginx: `proxy_cache_min_uses`).
    pub uses: u16,
}

impl Node {
    /// The object is stale from now on.
    pub fn soft_purge(&mut self, gone: &mut Gone) {
        self.soft_purged = true;
        if self.disk != Disk::None {
            gone.marks.push(self.label.clone());
        }
        if let Some(object) = &self.memory {
            object.soft_purged.store(true, Ordering::Release);
        }
    }
}

/// What left a shard and has to be finished outside its lock.
#[derive(Default)]
pub(super) struct Gone {
    /// Files to remove.
    pub files: Vec<Arc<Label>>,
    /// Files to mark as purged softly.
    pub marks: Vec<Arc<Label>>,
    /// Keys whose variants have to go too.
    pub variants: Vec<(Arc<Label>, Vec<Variant>)>,
    /// How many objects.
    pub objects: u64,
}

impl Gone {
    /// Whether there is nothing to finish.
    pub fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.marks.is_empty() && self.variants.is_empty()
    }
}

/// What a shard may hold.
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
        // One remembered for every 4 KiB of memory, which is about an object's size.
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

    /// How many places the slab has, empty ones among them: for walks in slices.
    pub fn places(&self) -> u32 {
        self.nodes.len()
    }

    /// The node unused longest.
    pub fn oldest(&self) -> Option<u32> {
        self.used.oldest()
    }

    /// A node was asked for. It moves to the front once a second: what more would say nobody asks, and every move
    /// touches its neighbours' memory.
    pub fn touch(&mut self, at: u32, now_s: u32) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.hits = node.hits.saturating_add(1).min(USES_MAX);
        if std::mem::replace(&mut node.used_s, now_s) == now_s {
            return;
        }
        self.used.renew(&mut self.nodes, Which::Used, at);
    }

    /// The node of a label, made if there is none; another that has its hash makes room.
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
            queue: Queue::None,
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

    /// Sets what a node is labelled; tags and fields may be others than those of the object before.
    pub fn relabel(&mut self, at: u32, label: &Arc<Label>) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        self.keys = self.keys - cost_of(&node.label) + cost_of(label);
        node.label = label.clone();
    }

    /// Puts an object into the memory tier; false when it is too large for it. Others make room.
    pub fn admit(&mut self, at: u32, object: Arc<Object>, gone: &mut Gone) -> bool {
        self.dismiss(at);
        let bytes = object.memory_bytes();
        if !object.body.is_in_memory() || bytes > self.object_bytes_max() {
            return false;
        }
        let Some(hash) = self.nodes.get(at).map(|node| node.hash) else { return false };
        let queue = if self.take_ghost(hash) { Queue::Main } else { Queue::Small };
        self.make_room(bytes, gone);
        let Some(node) = self.nodes.get_mut(at) else { return false };
        if node.disk == Disk::None {
            self.objects += 1;
        }
        (node.memory, node.hits) = (Some(object), 0);
        self.enqueue(at, queue, bytes);
        true
    }

    /// Puts another form of the very object in its place, whatever room that takes from others; false when it is not
    /// this one's turn: the node has another by now, or the new one is too large.
    pub fn exchange(&mut self, at: u32, old: &Arc<Object>, new: Arc<Object>, gone: &mut Gone) -> bool {
        let bytes = new.memory_bytes();
        let most = self.object_bytes_max();
        let Some(node) = self.nodes.get_mut(at) else { return false };
        let is_it = node.memory.as_ref().is_some_and(|known| Arc::ptr_eq(known, old));
        if !is_it || node.queue == Queue::None || bytes > most {
            return false;
        }
        new.soft_purged.store(node.soft_purged, Ordering::Release);
        let queue = node.queue;
        node.memory = Some(new);
        self.memory = self.memory - old.memory_bytes() + bytes;
        if queue == Queue::Small {
            self.small_bytes = self.small_bytes - old.memory_bytes() + bytes;
        }
        self.make_room(0, gone);
        true
    }

    /// Lets a node whose body is in a file be found while that file's header is written: it takes no part in the
    /// queues.
    pub fn hold(&mut self, at: u32, object: Arc<Object>) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        self.objects += u64::from(node.memory.is_none() && node.disk == Disk::None);
        node.memory = Some(object);
    }

    /// Ends what `hold` began.
    pub fn release(&mut self, at: u32) {
        if self.nodes.get(at).is_some_and(|node| node.queue == Queue::None) {
            self.dismiss(at);
        }
    }

    /// The largest object the memory tier takes.
    pub fn object_bytes_max(&self) -> u64 {
        self.bounds.memory / 2
    }

    /// Takes a node's object out of memory; the node stays.
    pub fn dismiss(&mut self, at: u32) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let Some(object) = node.memory.take() else { return };
        if node.disk == Disk::None {
            self.objects -= 1;
        }
        self.dequeue(at, object.memory_bytes());
    }

    /// Notes that a node's object is on disk, or is no more.
    pub fn set_disk(&mut self, at: u32, disk: Disk) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let (old, has_memory) = (std::mem::replace(&mut node.disk, disk), node.memory.is_some());
        if !has_memory {
            self.objects -= u64::from(old != Disk::None);
            self.objects += u64::from(disk != Disk::None);
        }
        self.blocks = self.blocks - blocks_of(old) + blocks_of(disk);
    }

    /// Takes a node out.
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

    /// Takes a node's object away, in memory and on disk; the node stays.
    pub fn strip(&mut self, at: u32, gone: &mut Gone) {
        self.dismiss(at);
        let Some(node) = self.nodes.get_mut(at) else { return };
        if node.disk != Disk::None {
            gone.files.push(node.label.clone());
        }
        (node.serial, node.soft_purged) = (0, false);
        self.set_disk(at, Disk::None);
    }

    /// Purges a node; whether there was an object.
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
                // Asked for again: from the small queue to the main one, or one more turn there.
                node.hits = if node.queue == Queue::Small { 0 } else { node.hits - 1 };
                self.dequeue(at, size);
                self.enqueue(at, Queue::Main, size);
            } else {
                self.evict(at, gone);
            }
        }
    }

    fn evict(&mut self, at: u32, gone: &mut Gone) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let (hash, on_disk, from_small) = (node.hash, node.disk != Disk::None, node.queue == Queue::Small);
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

    fn enqueue(&mut self, at: u32, queue: Queue, bytes: u64) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.queue = queue;
        self.memory += bytes;
        match queue {
            Queue::Small => {
                self.small_bytes += bytes;
                self.small.push(&mut self.nodes, Which::Queued, at);
            }
            Queue::Main => self.main.push(&mut self.nodes, Which::Queued, at),
            Queue::None => {}
        }
    }

    fn dequeue(&mut self, at: u32, bytes: u64) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        let queue = std::mem::replace(&mut node.queue, Queue::None);
        match queue {
            Queue::Small => {
                self.small_bytes -= bytes;
                self.small.remove(&mut self.nodes, Which::Queued, at);
            }
            Queue::Main => self.main.remove(&mut self.nodes, Which::Queued, at),
            Queue::None => return,
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

/// Objects pushed out that a shard remembers, at most.
const GHOSTS_MAX: usize = 1 << 16;

/// Where a hash is remembered, and as what: a newer one in its place makes it forgotten, as a queue would in time.
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

/// The keys are hashes already, made with the zone's secret.
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
