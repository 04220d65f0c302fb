//! Derived forms of a stored response, kept with it so that they are made only once.
//!
//! Forms count in the memory tier, leave it with their object, and are never written to a file. Objects do not change:
//! to keep a form, the store replaces the object by a copy with the same body, unless another copy was first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use weir_net::Instant;

use super::node::Gone;
use super::object::{Body, Coding, Forms, Object, Packed, StoredHead, Times};
use super::piece::Chunk;
use super::zone::Zone;
use crate::ready::Ready;

/// Size of the pieces of a compressed body.
const PIECE_BYTES: usize = 256 << 10;

impl Object {
    /// The same response with other forms.
    fn with_forms(&self, forms: Forms) -> Object {
        Object {
            label: self.label.clone(),
            head: self.head.clone(),
            times: self.times,
            body: self.body.clone(),
            // With a ready head most hits need no parsed head; others parse it again.
            parsed: OnceLock::new(),
            serial: self.serial,
            born: self.born,
            soft_purged: AtomicBool::new(self.is_soft_purged()),
            is_spooled: self.is_spooled,
            stays_in_memory: self.stays_in_memory,
            forms,
            is_being_packed: AtomicBool::new(false),
        }
    }

    /// The body in another coding: an object of which only the body is read.
    fn in_coding(&self, body: Body) -> Object {
        Object { head: StoredHead::default(), times: Times::default(), body, ..self.with_forms(Forms::default()) }
    }
}

impl Zone {
    /// Keeps a head made for an object, for its plain body or for the body in this coding.
    pub fn keep_ready(&self, object: &Arc<Object>, coding: Option<Coding>, ready: Ready, now: Instant) -> bool {
        let (mut forms, ready) = (object.forms.clone(), Some(Arc::new(ready)));
        match coding {
            None => forms.ready = ready,
            Some(coding) => match forms.packed.iter_mut().find(|packed| packed.coding == coding) {
                Some(packed) => packed.ready = ready,
                None => return false,
            },
        }
        self.dress(object, forms, now)
    }

    /// Keeps forms with an object; false if the object was replaced in the index, or if the forms do not fit.
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

/// A body being compressed, to be kept. At most one per object at a time; after a drop another may begin.
pub struct Packing {
    zone: Arc<Zone>,
    object: Arc<Object>,
    coding: Coding,
    bytes: Vec<u8>,
}

impl Packing {
    /// Begins, unless another one is in progress or the body is not in memory.
    pub fn begin(zone: &Arc<Zone>, object: &Arc<Object>, coding: Coding) -> Option<Packing> {
        if !object.body.is_in_memory() || object.is_being_packed.swap(true, Ordering::AcqRel) {
            return None;
        }
        Some(Packing { zone: zone.clone(), object: object.clone(), coding, bytes: Vec::new() })
    }

    /// Takes compressed bytes. A body larger than an object may be is not kept.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() as u64 <= self.zone.object_bytes_max {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Ends the compressed body; returns whether it is kept.
    pub fn finish(mut self, now: Instant) -> bool {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes.len() as u64 > self.zone.object_bytes_max {
            return false;
        }
        let body = match bytes.len() {
            ..=PIECE_BYTES => Body::One(bytes.into()),
            _ => Body::Many(bytes.chunks(PIECE_BYTES).map(Chunk::from).collect()),
        };
        let mut forms = self.object.forms.clone();
        forms.packed.retain(|packed| packed.coding.number != self.coding.number);
        let object = Arc::new(self.object.in_coding(body));
        forms.packed.push(Packed { coding: self.coding, object, ready: None });
        self.zone.dress(&self.object, forms, now)
    }
}

impl Drop for Packing {
    fn drop(&mut self) {
        self.object.is_being_packed.store(false, Ordering::Release);
    }
}
