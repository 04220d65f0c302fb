//! What is made of a stored response for clients and kept beside it, so that it is made once.
//!
//! Forms count in the memory tier, leave it with their object, and are never written to a file. Objects do not change:
//! keeping a form puts a copy in the object's place that shares the body, if nobody was there first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_net::Instant;

use super::object::{Body, Chunk, Head, Object, Times};
use super::shard::Gone;
use super::Zone;

/// A compressed body is kept in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;

/// The forms of one object.
#[derive(Clone, Default)]
pub(super) struct Forms {
    /// Its body compressed by gzip at this level, as an object of its own that has nothing but the body.
    packed: Option<(u32, Arc<Object>)>,
}

impl Forms {
    /// Those that follow from the body alone: they outlive a change of the head.
    pub fn of_body(&self) -> Forms {
        Forms { packed: self.packed.clone() }
    }

    /// What they take in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.packed.as_ref().map_or(0, |(_, packed)| packed.memory_bytes())
    }
}

impl Object {
    /// Its body compressed at this level, if that is kept.
    pub fn packed(&self, level: u32) -> Option<&Arc<Object>> {
        self.forms.packed.as_ref().filter(|(known, _)| *known == level).map(|(_, packed)| packed)
    }

    /// The same response with other forms.
    fn with_forms(&self, forms: Forms) -> Object {
        Object {
            label: self.label.clone(),
            head: self.head.clone(),
            times: self.times,
            body: self.body.clone(),
            parsed: self.parsed.clone(),
            serial: self.serial,
            born: self.born,
            soft_purged: AtomicBool::new(self.is_soft_purged()),
            is_spooled: self.is_spooled,
            forms,
            is_being_packed: AtomicBool::new(false),
        }
    }

    /// Its body in another coding: an object that only bodies are read of.
    fn in_coding(&self, body: Body) -> Object {
        Object { head: Head::default(), times: Times::default(), parsed: Default::default(), body, ..self.with_forms(Forms::default()) }
    }
}

impl Zone {
    /// Keeps forms with an object; false when it is not what requests find any more, or they do not fit.
    fn dress(&self, object: &Arc<Object>, forms: Forms, now: Instant) -> bool {
        let label = &object.label;
        let place = self.place_of(&label.key, label.variant);
        let dressed = Arc::new(object.with_forms(forms));
        let mut gone = Gone::default();
        let mut shard = self.shard(place);
        let Some(at) = shard.find(place.hash, &label.key, label.variant) else { return false };
        shard.touch(at, self.second(now));
        let is_done = shard.exchange(at, object, dressed, &mut gone);
        drop(shard);
        self.finish(gone);
        is_done
    }
}

/// A body being compressed that will be kept. One at a time for an object; dropped, another may begin.
pub struct Packing {
    zone: Arc<Zone>,
    object: Arc<Object>,
    level: u32,
    bytes: Vec<u8>,
}

impl Packing {
    /// Begins, unless somebody does already or the body is not in memory.
    pub fn begin(zone: &Arc<Zone>, object: &Arc<Object>, level: u32) -> Option<Packing> {
        if !object.body.is_in_memory() || object.is_being_packed.swap(true, Ordering::AcqRel) {
            return None;
        }
        Some(Packing { zone: zone.clone(), object: object.clone(), level, bytes: Vec::new() })
    }

    /// Takes compressed bytes. Of more than an object may have nothing is kept.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() as u64 <= self.zone.object_bytes_max {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The last of them has come; whether they are kept.
    pub fn finish(mut self, now: Instant) -> bool {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.len() as u64 > self.zone.object_bytes_max {
            return false;
        }
        let body = match bytes.len() {
            ..=PIECE_BYTES => Body::One(bytes.into()),
            _ => Body::Many(bytes.chunks(PIECE_BYTES).map(Chunk::from).collect()),
        };
        let packed = Arc::new(self.object.in_coding(body));
        self.zone.dress(&self.object, Forms { packed: Some((self.level, packed)) }, now)
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        self.object.is_being_packed.store(false, Ordering::Release);
    }
}
