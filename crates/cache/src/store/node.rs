//! The entry of one key and variant in a shard, and the tasks that remain after a shard removed an entry.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::label::{Label, Variant};
use super::object::Object;

/// The size of a disk block; file sizes count in blocks.
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The place of an object on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    /// Not on disk.
    None,
    /// About to be written; an older object's file may be there.
    Pending,
    /// In its file, with this many blocks.
    Blocks(u32),
}

/// The queue of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueName {
    None,
    Small,
    Main,
}

/// The variants of a key with `Vary`: kept at the key's own place, where a response without `Vary` would be.
pub(super) struct Variants {
    /// The selecting fields of the response stored last.
    pub vary: Arc<[u8]>,
    /// Its variants, the oldest first.
    pub known: Vec<Variant>,
}

/// The entry of one key and variant.
pub(super) struct Node {
    pub hash: u64,
    pub label: Arc<Label>,
    pub memory: Option<Arc<Object>>,
    pub variants: Option<Box<Variants>>,
    /// The object's serial number, even if it is only on disk; 0 for a node without an object.
    pub serial: u64,
    /// The purges up to this one are applied.
    pub checked: u32,
    /// The second of the last use, in the zone's time.
    pub used_s: u32,
    pub disk: Disk,
    pub queue: QueueName,
    pub soft_purged: bool,
    /// How often it was requested in its queue.
    pub hits: u8,
    /// How often it was requested before it was stored (nginx: `proxy_cache_min_uses`).
    pub uses: u16,
}

impl Node {
    /// Makes the object stale.
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

/// Removals of a shard that must be finished outside its lock.
#[derive(Default)]
pub(super) struct Gone {
    /// Files to remove.
    pub files: Vec<Arc<Label>>,
    /// Files to mark as soft-purged.
    pub marks: Vec<Arc<Label>>,
    /// Keys whose variants must be removed too.
    pub variants: Vec<(Arc<Label>, Vec<Variant>)>,
    /// The number of objects.
    pub objects: u64,
}

impl Gone {
    /// Whether there is nothing to finish.
    pub fn is_nothing(&self) -> bool {
        self.files.is_empty() && self.marks.is_empty() && self.variants.is_empty()
    }
}
