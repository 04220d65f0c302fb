//! The inner part of a zone's index: look-ups, storing, removal.
//!
//! The order of locks, never two of a kind: a shard of flights, a flight, a shard of nodes, the queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_net::Instant;

use super::ban::Force;
use super::label::{Key, Label, Place, Variant};
use super::leader::StoreRefusal;
use super::node::{Disk, Gone, Variants};
use super::object::{Body, Object};
use super::queue::Job;
use super::shard::{Shard, VARIANTS_MAX};
use super::tier::Tier;
use super::zone::Zone;

/// The result of a look-up.
pub enum Found {
    /// The whole object; the caller checks whether it is fresh.
    Object(Arc<Object>),
    /// An object that is only on disk: load it.
    Cold(Cold),
    /// Nothing.
    Nothing,
}

/// An object on disk, or one that may be there because the directory is not fully read yet.
pub struct Cold {
    zone: Arc<Zone>,
    place: Place,
    label: Arc<Label>,
    serial: u64,
}

impl Cold {
    /// Lets the zone's thread read the object; `None` if it is missing, corrupt, or purged meanwhile. All callers at
    /// the same time share one read.
    pub async fn load(self) -> Option<Arc<Object>> {
        let answer = self.zone.queue.load(self.place, &self.label, self.serial)?;
        std::future::poll_fn(|context| answer.poll(context)).await
    }
}

/// The content of one place of the index.
pub(super) enum Looked {
    Object(Arc<Object>),
    /// Only on disk, with the object's number.
    Cold(Arc<Label>, u64),
    /// The key varies by these fields.
    Varies(Arc<[u8]>),
    Nothing,
}

impl Zone {
    /// The result of a look-up, for the caller; an object stored when the key varied by other fields does not count.
    pub(super) fn found(self: &Arc<Zone>, looked: Looked, key: &Key<'_>, place: Place, vary: &[u8]) -> Found {
        let cold = |label: Arc<Label>, serial| Found::Cold(Cold { zone: self.clone(), place, label, serial });
        match looked {
            Looked::Object(object) if *object.label.vary == *vary => Found::Object(object),
            Looked::Cold(label, serial) if *label.vary == *vary => cold(label, serial),
            // Its file may exist and may not have been read yet.
            Looked::Nothing if self.is_cold() => {
                let (key, vary) = (key.bytes.into(), vary.into());
                cold(Arc::new(Label { key, variant: place.variant, vary, tags: Box::default() }), 0)
            }
            _ => Found::Nothing,
        }
    }

    pub(super) fn look(&self, place: Place, key: &[u8], now: Instant) -> Looked {
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let looked = self.look_in(&mut shard, place, key, now, &mut gone);
        drop(shard);
        self.finish(gone);
        looked
    }

    fn look_in(&self, shard: &mut Shard, place: Place, key: &[u8], now: Instant, gone: &mut Gone) -> Looked {
        let Some(at) = shard.find(place.hash, key, place.variant) else { return Looked::Nothing };
        if !self.survives(shard, at, gone) {
            return Looked::Nothing;
        }
        shard.touch(at, self.second(now));
        let Some(node) = shard.node(at) else { return Looked::Nothing };
        match (&node.memory, &node.variants) {
            (Some(object), _) => Looked::Object(object.clone()),
            (None, Some(variants)) => Looked::Varies(variants.vary.clone()),
            (None, None) if matches!(node.disk, Disk::Blocks(_)) => Looked::Cold(node.label.clone(), node.serial),
            (None, None) => Looked::Nothing,
        }
    }

    /// Applies the purges that a node has not seen; false if the node is removed.
    pub(super) fn survives(&self, shard: &mut Shard, at: u32, gone: &mut Gone) -> bool {
        let Some(node) = shard.node(at) else { return false };
        if node.checked == self.bans.newest() {
            return true;
        }
        let (force, checked) = self.bans.judge(node.checked, &node.label);
        node.checked = checked;
        match force {
            // A node that only points to variants is not an object: each variant is checked by itself.
            _ if node.serial == 0 => true,
            Some(Force::Hard) => {
                shard.remove(at, gone);
                self.purged.fetch_add(1, Ordering::Relaxed);
                false
            }
            Some(Force::Soft) => {
                node.soft_purge(gone);
                true
            }
            None => true,
        }
    }

    /// Puts a whole object into the index.
    pub(super) fn store(&self, object: &Arc<Object>, now: Instant) -> Result<(), StoreRefusal> {
        let label = &object.label;
        let (force, checked) = self.bans.judge(object.born, label);
        match force {
            Some(Force::Hard) => return Err(StoreRefusal::Purged),
            Some(Force::Soft) => object.soft_purged.store(true, Ordering::Release),
            None => {}
        }
        let place = self.place_of(&label.key, label.variant);
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let at = shard.place(place.hash, label, self.second(now), &mut gone);
        shard.relabel(at, label);
        if let Some(node) = shard.node(at) {
            node.serial = object.serial;
            node.checked = checked;
            node.soft_purged = object.is_soft_purged();
            if let Some(variants) = node.variants.take() {
                gone.variants.push((label.clone(), variants.known));
            }
        }
        let in_memory = shard.admit(at, object.clone(), &mut gone);
        let disk = if in_memory && object.stays_in_memory { Disk::None } else { self.disk_for(object, now) };
        let old = shard.node(at).map_or(Disk::None, |node| node.disk);
        if disk == Disk::None && old != Disk::None {
            gone.files.push(label.clone());
        }
        shard.set_disk(at, disk);
        if disk == Disk::Pending && matches!(object.body, Body::File(_)) {
            shard.hold(at, object.clone());
        }
        let is_kept = in_memory || disk != Disk::None;
        if !is_kept {
            shard.remove(at, &mut gone);
        }
        drop(shard);
        self.finish(gone);
        if is_kept && label.variant != Variant::NONE {
            self.note_variant(label, now);
        }
        if is_kept { Ok(()) } else { Err(StoreRefusal::TooLarge) }
    }

    /// Lets an object be written; returns its place on disk.
    fn disk_for(&self, object: &Arc<Object>, now: Instant) -> Disk {
        let Some(tier) = &self.tier else { return Disk::None };
        if let (Body::File(body), true) = (&object.body, object.is_spooled) {
            return Tier::disk_of(body);
        }
        if tier.writes(self.second(now)) && self.queue.push(Job::Write(object.clone())).is_ok() {
            return Disk::Pending;
        }
        tier.skipped.fetch_add(1, Ordering::Relaxed);
        Disk::None
    }

    /// Records a variant at the key's own place.
    pub(super) fn note_variant(&self, label: &Arc<Label>, now: Instant) {
        let place = self.place_of(&label.key, Variant::NONE);
        let primary = Arc::new(Label { key: label.key.clone(), ..Label::default() });
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let at = shard.place(place.hash, &primary, self.second(now), &mut gone);
        // An earlier response without Vary is no longer valid for this origin.
        shard.strip(at, &mut gone);
        let checked = self.bans.newest();
        if let Some(node) = shard.node(at) {
            node.checked = checked;
            let variants = node
                .variants
                .get_or_insert_with(|| Box::new(Variants { vary: label.vary.as_ref().into(), known: Vec::new() }));
            if *variants.vary != *label.vary {
                variants.vary = label.vary.as_ref().into();
            }
            variants.known.retain(|known| *known != label.variant);
            variants.known.push(label.variant);
            if variants.known.len() > VARIANTS_MAX {
                let oldest = variants.known.remove(0);
                gone.variants.push((primary.clone(), vec![oldest]));
            }
        }
        drop(shard);
        self.finish(gone);
    }

    /// Finishes, outside any lock, the removals of a shard: the thread handles the files.
    pub(super) fn finish(&self, gone: Gone) {
        if gone.is_nothing() {
            return;
        }
        self.finish_by(gone, |label| {
            if let Err(Job::Remove(label)) = self.queue.push(Job::Remove(label)) {
                self.drop_file(&label);
            }
        });
    }

    fn finish_by(&self, gone: Gone, remove: impl Fn(Arc<Label>)) {
        for (label, variants) in gone.variants {
            for variant in variants {
                let place = self.place_of(&label.key, variant);
                let mut more = Gone::default();
                let mut shard = self.shard(place);
                if let Some(at) = shard.find(place.hash, &label.key, variant) {
                    shard.remove(at, &mut more);
                }
                drop(shard);
                more.files.into_iter().for_each(&remove);
            }
        }
        gone.files.into_iter().for_each(&remove);
        for label in gone.marks {
            // Without the mark, the object would be fresh again after a restart.
            if let Err(Job::Mark(label)) = self.queue.push(Job::Mark(label)) {
                self.drop_file(&label);
            }
        }
    }

    /// Removes a file at once.
    pub(super) fn drop_file(&self, label: &Label) {
        if let Some((tier, _)) = self.tier()
            && tier.directory.remove(label).is_err()
        {
            tier.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn purge_key(&self, key: &[u8], force: Force) -> bool {
        let place = self.place_of(key, Variant::NONE);
        let mut shard = self.shard(place);
        let Some(at) = shard.find(place.hash, key, Variant::NONE) else { return false };
        let variants = shard.node(at).and_then(|node| node.variants.as_ref()).map(|known| known.known.clone());
        let mut gone = Gone::default();
        let mut was_there = shard.purge(at, force, &mut gone);
        drop(shard);
        gone.variants.clear();
        for variant in variants.unwrap_or_default() {
            let place = self.place_of(key, variant);
            let mut shard = self.shard(place);
            if let Some(at) = shard.find(place.hash, key, variant) {
                was_there |= shard.purge(at, force, &mut gone);
            }
        }
        self.purged.fetch_add(gone.objects, Ordering::Relaxed);
        // The thread must not do this later: if the process were killed after the answer, a restart would find the
        // files again.
        self.finish_by(gone, |label| self.drop_file(&label));
        was_there
    }
}
