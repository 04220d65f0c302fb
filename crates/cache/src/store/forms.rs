//! What is made of a stored response for clients and kept beside it, so that it is made once.
//!
//! Forms count in the memory tier, leave it with their object, and are never written to a file. Objects do not change:
//! keeping a form puts a copy in the object's place that shares the body, if nobody was there first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use weir_net::Instant;

use super::Zone;
use super::object::{Body, Chunk, Head, Object, Times};
use super::shard::Gone;
use crate::ready::Ready;

/// A compressed body is kept in pieces of this size.
const PIECE_BYTES: usize = 256 << 10;

/// The forms of one object.
#[derive(Clone, Default)]
pub(super) struct Forms {
    /// Its body compressed by gzip.
    packed: Option<Packed>,
    /// Its head as it goes out with the plain body.
    ready: Option<Arc<Ready>>,
}

#[derive(Clone)]
struct Packed {
    level: u32,
    /// An object of its own that has nothing but the body.
    object: Arc<Object>,
    /// The head as it goes out with this body.
    ready: Option<Arc<Ready>>,
}

impl Forms {
    /// Those that follow from the body alone: they outlive a change of the head.
    pub fn of_body(&self) -> Forms {
        let packed = self.packed.clone().map(|packed| Packed { ready: None, ..packed });
        Forms { packed, ready: None }
    }

    /// What they take in memory.
    pub fn memory_bytes(&self) -> u64 {
        let ready = |ready: &Option<Arc<Ready>>| ready.as_ref().map_or(0, |ready| ready.memory_bytes());
        let packed = self.packed.as_ref().map_or(0, |packed| packed.object.memory_bytes() + ready(&packed.ready));
        packed + ready(&self.ready)
    }
}

impl Object {
    /// Its body compressed at this level, if that is kept.
    pub fn packed(&self, level: u32) -> Option<&Arc<Object>> {
        self.forms.packed.as_ref().filter(|packed| packed.level == level).map(|packed| &packed.object)
    }

    /// Its head ready to be written before the plain body.
    pub fn ready(&self) -> Option<&Arc<Ready>> {
        self.forms.ready.as_ref()
    }

    /// Its body compressed at this level, and the head ready to be written before it.
    pub fn ready_packed(&self, level: u32) -> Option<(&Arc<Object>, &Arc<Ready>)> {
        let packed = self.forms.packed.as_ref().filter(|packed| packed.level == level)?;
        Some((&packed.object, packed.ready.as_ref()?))
    }

    /// The same response with other forms.
    fn with_forms(&self, forms: Forms) -> Object {
        Object {
            label: self.label.clone(),
            head: self.head.clone(),
            times: self.times,
            body: self.body.clone(),
            // With a ready head most hits need no other; who does looks again.
            parsed: OnceLock::new(),
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
        Object { head: Head::default(), times: Times::default(), body, ..self.with_forms(Forms::default()) }
    }
}

impl Zone {
    /// Keeps a head that was made for an object, before its plain body or before the one compressed at this level.
    pub fn keep_ready(&self, object: &Arc<Object>, level: Option<u32>, ready: Ready, now: Instant) -> bool {
        let (mut forms, ready) = (object.forms.clone(), Some(Arc::new(ready)));
        match (&mut forms.packed, level) {
            (_, None) => forms.ready = ready,
            (Some(packed), Some(level)) if packed.level == level => packed.ready = ready,
            (_, Some(_)) => return false,
        }
        self.dress(object, forms, now)
    }

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
        let packed = Packed { level: self.level, object: Arc::new(self.object.in_coding(body)), ready: None };
        self.zone.dress(&self.object, Forms { packed: Some(packed), ..self.object.forms.clone() }, now)
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        self.object.is_being_packed.store(false, Ordering::Release);
    }
}
